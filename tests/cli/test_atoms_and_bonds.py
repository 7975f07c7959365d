"""Atoms and bonds of molecules from end to end, as a person types it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from commands import SMILES, epochs, run, succeed

from censnet import load_run, train

Chem = pytest.importorskip("rdkit.Chem")


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten molecules and one that is none, bonds with two bad rows, a list of charges, and a run."""
    place = tmp_path_factory.mktemp("bonds")
    data = place / "alcohols"
    data.mkdir()
    hydrogens = {text: Chem.AddHs(Chem.MolFromSmiles(text)) for text in SMILES}
    bonds = [
        (text, bond.GetIdx(), 80.5 + bond.GetBeginAtomIdx() + bond.GetEndAtom().GetAtomicNum())
        for text, molecule in hydrogens.items()
        for bond in molecule.GetBonds()
        if bond.GetIdx() % 3
    ]
    bonds += [("CO", 77, 1.0), ("CCCCCCC", 0, 1.0)]
    pd.DataFrame(bonds, columns=["molecule", "bond_index", "bde"]).to_csv(data / "bonds.csv", index=False)
    charges = [json.dumps([atom.GetAtomicNum() / 7 for atom in molecule.GetAtoms()]) for molecule in hydrogens.values()]
    charges[4] = "[0.5]"
    split = ["train"] * 6 + ["valid"] * 2 + ["test"] * 2
    table = pd.DataFrame({"smiles": SMILES, "charge": charges, "logp": range(10), "split": split})
    table.loc[10] = ["C1CC", None, 3, "train"]
    table.to_csv(data / "molecules.csv", index=False)
    targets = ["--target", "bond:bde", "--target", "atom:charge", "--target", "graph:logp=regression"]
    said = succeed("train", data, *targets, "--out", place / "run", "--set", "data.hydrogens=explicit", *epochs(2))
    assert f"bonds.csv: 2 of {len(bonds)} rows cannot be used" in said.stderr.replace("\n", " ")
    return place


def test_all_bonds_of_the_data_are_answered_with_their_labels(folder: Path, tmp_path: Path) -> None:
    succeed("predict", folder / "run", folder / "alcohols", "--to", tmp_path)
    bonds = pd.read_csv(tmp_path / "predictions_edge.csv")
    known = pd.read_csv(folder / "alcohols" / "bonds.csv").iloc[:-2]
    good = bonds[bonds["error"].isna()]
    assert len(good) == sum(Chem.AddHs(Chem.MolFromSmiles(text)).GetNumBonds() for text in SMILES)
    assert good["bde_predicted"].notna().all()
    joined = known.merge(good, on=["molecule", "bond_index"], suffixes=("", "_again"))
    assert (joined["bde"] == joined["bde_again"]).all()
    assert len(joined) == len(known) == good["bde"].notna().sum()
    lost = bonds[bonds["error"].notna()]
    assert lost["molecule"].tolist() == ["CO", "CCCCCCC", "C1CC"]
    assert lost["error"].iloc[0].startswith("bonds.csv, row ")
    assert "has no bond 77" in lost["error"].iloc[0]
    atoms = pd.read_csv(tmp_path / "predictions_node.csv")
    assert atoms["error"].dropna().str.contains("row 5, column charge: the list has 1 entry").any()
    assert len(pd.read_csv(tmp_path / "predictions_graph.csv")) == 11


def test_bare_smiles_are_answered_bond_by_bond(folder: Path) -> None:
    printed = succeed("predict", folder / "run", "CCO", "C1CC", "--level", "bond")
    table = pd.read_csv(io.StringIO(printed.stdout))
    assert table["bond_index"].tolist()[:8] == list(range(8))
    assert table["molecule"].tolist() == ["CCO"] * 8 + ["C1CC"]
    assert table[["atom_1", "atom_2"]].iloc[:8].to_numpy().tolist()[:3] == [[0, 1], [1, 2], [0, 3]]
    assert table["end_atom"].tolist()[:3] == ["C", "O", "H"]
    assert "unclosed ring" in table["error"].iloc[8]
    atoms = pd.read_csv(io.StringIO(succeed("predict", folder / "run", "CCO", "--level", "atom").stdout))
    assert atoms["element"].str.cat() == "CCOHHHHHH"
    refused = run("predict", folder / "run", "CCO")
    assert refused.exit_code == 2
    assert "this run predicts node, edge, graph" in refused.output.replace("\n", " ")


def test_scores_embeddings_and_the_files_of_the_run(folder: Path, tmp_path: Path) -> None:
    found = json.loads(succeed("evaluate", folder / "run", folder / "alcohols", "--json").stdout)
    metrics = load_run(folder / "run").metrics
    assert found["test"]["edge"]["rmse"] == pytest.approx(metrics["test"]["edge"]["rmse"], abs=1e-5)
    assert found["test"].keys() == {"edge", "node", "graph"}
    succeed("embed", folder / "run", "CCO", "--to", tmp_path, "--format", "csv")
    bonds = pd.read_csv(tmp_path / "edges.csv")
    assert list(bonds)[:3] == ["row", "molecule", "bond_index"]
    assert len(bonds) == 8
    splits = pd.read_csv(folder / "run" / "splits.csv")
    parts = splits[splits["table"] == "edges"].groupby("molecule")["split"].unique()
    assert parts.map(len).eq(1).all()
    assert parts["CO"][0] == "train"
    assert parts["CC(O)CC"][0] == "test"
    run_table = pd.read_csv(folder / "run" / "predictions_edge.csv")
    assert {"split", "bde", "bde_predicted", "error"} <= set(run_table)


def test_other_data_are_scored_by_what_is_known_of_them(folder: Path, tmp_path: Path) -> None:
    pd.DataFrame({"smiles": ["CCCCCO", "CO"]}).to_csv(tmp_path / "molecules.csv", index=False)
    pd.DataFrame({"row": [1, 2], "atom_1": [0, 0], "atom_2": [1, 1], "bde": [80.5, 90.5]}).to_csv(
        tmp_path / "bonds.csv", index=False
    )
    refused = run("evaluate", folder / "run", tmp_path)
    assert refused.exit_code == 2
    assert "column charge: is missing" in refused.output.replace("\n", " ")
    alone = train(
        folder / "alcohols",
        "bond:bde",
        settings={"data.hydrogens": "explicit", "training.epochs": 1, "model.hidden": 8},
        device="cpu",
    )
    scores = alone.evaluate(tmp_path, device="cpu")
    assert scores["all"]["edge"]["rows"] == 2
    assert scores["all"]["edge"]["known_train"] == 1
    answers = alone.predict(["CCO", "CC"], device="cpu")
    assert len(answers) == 8 + 7


def test_inspect_reads_labels_of_bonds(folder: Path) -> None:
    arguments = ["inspect", folder / "alcohols", "--target", "bond:bde", "--hydrogens", "explicit", "--json"]
    report = json.loads(succeed(*arguments).stdout)
    assert report["labels"][0]["target"] == "edge:bde"
    assert any("3 rows of bonds.csv cannot be used" in finding["what"] for finding in report["findings"])
    plain = json.loads(succeed("inspect", folder / "alcohols", "--json").stdout)
    assert {table["table"] for table in plain["tables"]} == {"nodes", "edges", "graphs"}
