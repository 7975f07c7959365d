"""Types of numpy arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
