from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from censnet.data.datasets.download import cache_dir
from censnet.errors import DataError
from censnet_experiments.edges.bde import bond_data, read_bde
from censnet_experiments.edges.files import FILES


@pytest.fixture
def table() -> pd.DataFrame:
    """Ten molecules, of which eight are for training, with one to three bonds each."""
    rows = [
        (f"{'C' * (n + 1)}O", bond, 90.0 + n + bond, 80.0 + n, {8: "valid", 9: "test"}.get(n, "train"))
        for n in range(10)
        for bond in range(1 + n % 3)
    ]
    return pd.DataFrame(rows, columns=["molecule", "bond_index", "bde", "bdfe", "set"])


def test_the_long_table_names_molecules_by_number(table):
    data = bond_data(table)
    assert data.molecules["smiles"].tolist() == table["molecule"].unique().tolist()
    assert data.molecules["smiles"].to_numpy()[data.bonds["molecule"]].tolist() == table["molecule"].tolist()
    assert repr(data.split()) == "Split(8 train, 1 validation, 1 test)"


def test_a_share_of_the_training_molecules_keeps_whole_molecules_and_both_other_parts(table):
    data = bond_data(table)
    half, quarter = data.keep_training(0.5, seed=1), data.keep_training(0.25, seed=1)
    assert repr(half.split()) == "Split(4 train, 1 validation, 1 test)"
    assert set(quarter.molecules["smiles"]) < set(half.molecules["smiles"])
    smiles = half.molecules["smiles"].to_numpy()[half.bonds["molecule"]]
    expected = table[table["molecule"].isin(half.molecules["smiles"])]
    assert smiles.tolist() == expected["molecule"].tolist()
    assert half.bonds["bde"].tolist() == expected["bde"].tolist()
    assert data.keep_training(0.5, seed=2).molecules["smiles"].tolist() != half.molecules["smiles"].tolist()
    with pytest.raises(DataError, match="share is 0, expected more than 0"):
        data.keep_training(0, seed=0)


def test_contradictions_are_refused(table):
    moved = table.assign(set=[*table["set"][:17], "train", "test"])
    with pytest.raises(DataError, match="bonds, row 18, column set: the molecule is in another part above"):
        bond_data(moved)
    with pytest.raises(DataError, match="bonds, row 20, column bond_index: the bond has a label above"):
        bond_data(pd.concat([table, table[:1]], ignore_index=True))


@pytest.mark.slow
def test_the_published_table_has_the_published_counts():
    path = FILES["bonds.csv.gz"].path
    if not any((folder / path).is_file() for folder in (Path(os.environ.get("CENSNET_DATA", "-")), cache_dir())):
        pytest.skip("the table of ALFABET is neither in CENSNET_DATA nor in the cache: read_bde() fetches it")
    data = read_bde()
    assert len(data.bonds) == 816_311
    assert repr(data.split()) == "Split(61331 train, 1000 validation, 1000 test)"
    assert data.bonds["set"].value_counts().to_dict() == {"train": 790_177, "test": 13_222, "valid": 12_912}
