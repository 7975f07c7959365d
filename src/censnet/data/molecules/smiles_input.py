"""SMILES that are given as such, and not in a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from censnet.data.datasets import download as sources
from censnet.data.molecules.featurize import featurize
from censnet.data.tables.schema import Schema
from censnet.errors import DataError, quote


def given_smiles(data: object, schema: Schema) -> list[object] | None:
    """The texts where data are a SMILES or several; None where they are something else, as a file that is there.

    Args:
        data: what the user gave. One text is a file, a folder or a built-in set if there is one of that name.
        schema: of the run that is to read it.
    """
    if isinstance(data, str):
        if sources.is_built_in(data) or schema.smiles is None or _exists(data):
            return None
        (problem,) = featurize([data], reading=schema.reading).problems.values() or ("",)
        if problem:
            what = "there is no such file, folder or data set, and it is no SMILES either"
            raise DataError(f"{quote(data)}: {what}: {problem}")
        return [data]
    if isinstance(data, pd.Series | np.ndarray) and data.ndim == 1 and data.dtype.kind in "OTU":
        data = data.tolist()
    if not isinstance(data, list | tuple) or not data or not all(isinstance(item, str) for item in data):
        return None
    if schema.smiles is None:
        raise DataError("data is a list of texts, expected tables: this run was not trained on SMILES")
    return list(data)


def _exists(text: str) -> bool:
    try:
        return text != "" and Path(text).exists()
    except (OSError, ValueError):  # a name that no file can have
        return False
