"""rdkit's descriptors of whole molecules, and the same as features.

Their ranges differ by hundreds of orders of magnitude: most count something and are 0 nearly always, and Ipc grows
exponentially with the molecule. So each is first compressed, x -> sign(x) log(1 + |x|), which leaves small values as
they are; then scaled by the mean and deviation of training molecules; then cut off at `FARTHEST` deviations, for a
group that one molecule in thousands has is no reason to be fifty of them away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from torch import Tensor

from censnet.data.molecules.atoms_and_bonds import PLAIN, descriptor_names
from censnet.data.molecules.featurize import read_smiles
from censnet.data.tables.columns import as_arrow
from censnet.data.tables.schema import MoleculeReading, TableSchema
from censnet.data.tables.typed_column import standardize_column
from censnet.data.tables.typed_table import TypedTable
from censnet.ops.arrays import IntArray

FARTHEST = 5.0  # standard deviations


def describe(
    smiles: Sequence[str],
    names: Sequence[str] | None = None,
    processes: int | None = None,
    reading: MoleculeReading = PLAIN,
) -> pd.DataFrame:
    """rdkit's descriptors of each molecule, a row for each text; NaN where one has no value, or the text no molecule.

    Args:
        smiles: the texts.
        names: which descriptors, in this order; None is all that rdkit has, in its order.
        processes, reading: as in `featurize`.

    Example:
        >>> describe(["CCO", "no molecule"], ["MolWt", "NumHDonors"]).round(2)
           MolWt  NumHDonors
        0  46.07         1.0
        1    NaN         NaN
    """
    names = descriptor_names(names)
    return pd.DataFrame(read_smiles(smiles, reading, names, processes=processes).descriptors, columns=names)


def fit_descriptors(described: pd.DataFrame, rows: IntArray) -> TableSchema:
    """The schema of descriptors, with statistics of these rows alone; one that never changes is no feature.

    None is marked as missing: a dozen descriptors are missing together, for a metal that the atoms tell.
    """
    every = [(str(name), as_arrow(values.iloc[rows])) for name, values in _compress(described).items()]
    columns = [standardize_column(name, values, "a descriptor") for name, values in every]
    return TableSchema(columns=[column.model_copy(update={"missing": False}) for column in columns])


def encode_descriptors(schema: TableSchema, described: pd.DataFrame) -> Tensor:
    """The features of each molecule. What is missing becomes the mean."""
    return TypedTable.read(schema, _compress(described)).encode(schema).clamp_(-FARTHEST, FARTHEST)


def _compress(described: pd.DataFrame) -> pd.DataFrame:
    values = described.to_numpy()
    return pd.DataFrame(np.sign(values) * np.log1p(np.abs(values)), columns=described.columns)
