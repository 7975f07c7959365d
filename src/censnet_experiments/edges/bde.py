"""Bond dissociation enthalpies: 816,311 bonds of 63,331 molecules, computed by DFT (St. John et al. 2020, ALFABET).

The table lies in the wheel of `alfabet` 0.1.0, which is read as a zip; nothing of it is installed or run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from censnet.data.splits.splitters import Split, by_column
from censnet.errors import DataError
from censnet_experiments.edges.files import find_edge_file

COLUMNS = ["molecule", "bond_index", "bde", "bdfe", "set"]


@dataclass(frozen=True, eq=False)
class BondData:
    """Molecules, and labels for some of their bonds.

    Args:
        molecules: one row for each molecule: molecule (its number), smiles, set (train, valid or test).
        bonds: one row for each labeled bond: molecule, bond_index (of RDKit's `AddHs(MolFromSmiles(smiles))`), bde and
            bdfe (kcal/mol), set. Rings and multiple bonds have no row.
    """

    molecules: pd.DataFrame
    bonds: pd.DataFrame

    def split(self) -> Split:
        """The molecules as the authors split them: 61,331 for training, 1,000 for validation, 1,000 for testing."""
        return by_column(self.molecules["set"], "molecules", "set")

    def keep_training(self, share: float, seed: int) -> BondData:
        """Keep a share of the training molecules, chosen by the seed, with all molecules of the other parts.

        Of one seed, a smaller share is part of a larger one. The molecules are numbered anew.
        """
        if not 0 < share <= 1:
            raise DataError(f"share is {share}, expected more than 0 and at most 1")
        train = np.flatnonzero(self.molecules["set"] == "train")
        kept = np.ones(len(self.molecules), bool)
        kept[np.random.default_rng(seed).permutation(train)[max(1, round(share * len(train))) :]] = False
        number = np.cumsum(kept) - 1
        bonds = self.bonds[kept[self.bonds["molecule"]]]
        return BondData(
            self.molecules[kept].assign(molecule=np.arange(kept.sum())).reset_index(drop=True),
            bonds.assign(molecule=number[bonds["molecule"]]).reset_index(drop=True),
        )


def read_bde() -> BondData:
    """Read molecules and bond labels, in the order of the authors' table."""
    return bond_data(pd.read_csv(find_edge_file("bonds.csv.gz"), compression="gzip", usecols=COLUMNS))


def bond_data(table: pd.DataFrame) -> BondData:
    """The molecules and bonds of the authors' long table, whose column `molecule` has SMILES.

    Raises:
        DataError: a molecule is in two parts, or a bond has two labels.
    """
    number, smiles = pd.factorize(table["molecule"])
    bonds = table[COLUMNS].assign(molecule=number).reset_index(drop=True)
    first = bonds.drop_duplicates("molecule")
    molecules = pd.DataFrame({"molecule": np.arange(len(smiles)), "smiles": smiles, "set": first["set"].to_numpy()})
    other = np.flatnonzero(molecules["set"].to_numpy()[number] != bonds["set"].to_numpy())
    if len(other):
        raise DataError("the molecule is in another part above, expected one part", "bonds", int(other[0]), "set")
    twice = np.flatnonzero(bonds.duplicated(["molecule", "bond_index"]))
    if len(twice):
        raise DataError("the bond has a label above, expected one", "bonds", int(twice[0]), "bond_index")
    return BondData(molecules, bonds)
