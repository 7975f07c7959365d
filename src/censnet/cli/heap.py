"""Large tensors without page faults."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # names and numbers of malloc.h


def keep_heap() -> bool:
    """Let this process keep the memory that it has freed, and say whether that could be arranged.

    The C library gives tensors of more than 32 MB back to the system as soon as they are freed, and the system hands
    out zeroed pages one by one when the next is made: at a million edges that takes longer than the arithmetic.
    Afterwards freed memory is used again, and the process keeps its largest size. Only for glibc, and for the whole
    process, so a program calls it and the library never does.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, -1))
