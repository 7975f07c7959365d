"""Files of molecules, .smi, .sdf and .mol: each record a row, its properties columns, a bad one a bad row."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import AllChem

from censnet.data import DataError, load_data
from censnet.data.molecules import atoms_and_bonds as chemistry
from censnet.data.molecules.featurize import canonical
from censnet.errors import MissingDependencyError


def block(smiles: str, title: str = "", spatial: bool = False) -> str:
    molecule = Chem.MolFromSmiles(smiles)
    if spatial:
        molecule = Chem.AddHs(molecule)
        AllChem.EmbedMolecule(molecule, randomSeed=1)  # type: ignore[attr-defined]
    else:
        AllChem.Compute2DCoords(molecule)  # type: ignore[attr-defined]
    molecule.SetProp("_Name", title)
    return str(Chem.MolToMolBlock(molecule))


def record(text: str, **properties: object) -> str:
    return text + "".join(f">  <{name}>\n{value}\n\n" for name, value in properties.items()) + "$$$$\n"


def write(path: Path, text: str) -> Path:
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8", newline="")
    return path


GOOD = ["CCO", "C[C@H](F)Cl", "CC(=O)[O-].[Na+]", "c1cc[nH]c1", "F/C=C/F", "[2H]O[2H]"]


@pytest.mark.parametrize("name", ["set.sdf", "set.SDF", "set.sdf.gz", "set.sd"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_sdf_file_is_a_table_of_its_molecules_and_their_properties(name, newline, tmp_path):
    text = "".join(
        record(block(smiles, f"m{number}"), logP=number / 2, code=f"00{number}") for number, smiles in enumerate(GOOD)
    )
    data = load_data(write(tmp_path / name, text.replace("\n", newline)), target="graph:logP")
    frame = data.tables.graphs
    assert frame is not None
    assert canonical(frame["smiles"].tolist()) == canonical(GOOD)
    assert frame["name"].tolist() == [f"m{number}" for number in range(len(GOOD))]
    assert frame["logP"].tolist() == [number / 2 for number in range(len(GOOD))]
    assert frame["code"].tolist() == [f"00{number}" for number in range(len(GOOD))], "ids stay as they are written"
    direct = load_data(pd.DataFrame({"smiles": frame["smiles"], "logP": frame["logP"]}), target="graph:logP")
    assert torch.equal(data.graph.nodes, direct.graph.nodes)
    assert not data.problems


def test_a_record_that_cannot_be_read_is_a_bad_row_with_its_number_and_keeps_its_properties(tmp_path):
    broken = block("CCO").replace("  1  2  1", "  1  9  1")
    texts = [block("CC"), broken, block("*CC"), "garbage\n", block("C").replace("C   0", "Xx  0"), block("CCC")]
    text = "".join(record(text, y=number) for number, text in enumerate(texts))
    data = load_data(write(tmp_path / "set.sdf", text), target="graph:y")
    problems = data.problems["graphs"]
    assert sorted(problems) == [1, 2, 3, 4]
    assert problems[1].startswith("set.sdf, row 2, column smiles: not a connection table that rdkit can read")
    assert "an R-group or dummy atom" in problems[2]
    assert data.labels("graph", "y").tolist()[:3] == [0, 1, 2]
    assert len(data.tables.graphs) == 6  # type: ignore[arg-type]


def test_chemistry_that_rdkit_refuses_is_named(tmp_path):
    text = block("CC(C)(C)C").replace("  2  5  1", "  2  5  2")
    data = load_data(write(tmp_path / "set.sdf", record(text) + record(block("C"))))
    assert "Explicit valence for atom # 1 C, 5" in data.problems["graphs"][0]


def test_coordinates_in_space_are_said_not_to_be_read(tmp_path):
    text = record(block("C[C@H](F)Cl", spatial=True)) + record(block("C[C@H](F)Cl"))
    data = load_data(write(tmp_path / "set.sdf", text))
    assert any("1 of 2 molecules are in 3-D; coordinates are not read" in note for note in data.notes)
    first, second = data.graph[0], data.graph[1]  # type: ignore[index]
    assert torch.equal(first.nodes, second.nodes), "hydrogens of the file are no atoms, and chirality is the same"


def test_a_mol_file_is_one_molecule(tmp_path):
    data = load_data(write(tmp_path / "phenol.mol", block("Oc1ccccc1", "phenol")))
    assert data.tables.graphs["name"].tolist() == ["phenol"]  # type: ignore[index]
    assert data.graph.nodes.shape[0] == 7


def test_a_property_called_smiles_does_not_replace_the_structure(tmp_path):
    data = load_data(write(tmp_path / "set.sdf", record(block("CCO"), smiles="C", SMILES="CC", name="x")))
    frame = data.tables.graphs
    assert frame is not None
    assert frame.columns.tolist() == ["smiles", "smiles_", "SMILES", "name"]
    assert data.graph.nodes.shape[0] == 3


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        (
            "CCO ethanol\nCC\tethane gas\nC\n",
            ["smiles", "name"],
            [["CCO", "ethanol"], ["CC", "ethane gas"], ["C", None]],
        ),
        ("CCO\nCC\n", ["smiles"], [["CCO"], ["CC"]]),
        ("SMILES Name\nCCO 007\nCC a b\n", ["SMILES", "Name"], [["CCO", "007"], ["CC", "a b"]]),
        ("smiles\tid\ty\nCCO\t01\t1.5\nCC\t02\t\n", ["smiles", "id", "y"], [["CCO", "01", 1.5], ["CC", "02", None]]),
        ("CCO a\n\nCC b", ["smiles", "name"], [["CCO", "a"], [None, None], ["CC", "b"]]),
        ("\ufeffCCO a\r\nCC b\r\n", ["smiles", "name"], [["CCO", "a"], ["CC", "b"]]),
    ],
)
@pytest.mark.parametrize("name", ["set.smi", "set.smi.gz"])
def test_a_smi_file_has_smiles_and_names_with_a_header_or_without(text, columns, rows, name, tmp_path):
    frame = load_data(write(tmp_path / name, text)).tables.graphs
    assert frame is not None
    assert frame.columns.tolist() == columns
    found = frame.astype(object).where(frame.notna(), None).values.tolist()
    assert found == rows


@pytest.mark.parametrize(
    ("name", "written", "what"),
    [
        ("set.sdf", b"", "set.sdf: is empty"),
        ("set.smi", b" \n", "set.smi: is empty"),
        ("set.smi", b"smiles name\n", "set.smi: has no row under the names"),
        ("set.sdf", b"garbage", "no row is a molecule"),
        ("set.mol2", b"x", "expected a file that ends in .*smi, .sdf"),
        ("set.sdf.gz", b"\x1f\x8bnothing", r"set\.sdf\.gz: cannot be read"),
        ("set.smi", b"CCO a\nCC caf\xe9\n", r"set\.smi: line 2 is not UTF-8"),
    ],
)
def test_files_without_molecules_or_damaged_are_one_line(name, written, what, tmp_path):
    (tmp_path / name).write_bytes(written)
    with pytest.raises(DataError, match=what):
        load_data(tmp_path / name)


def test_without_rdkit_an_sdf_file_says_what_to_install(tmp_path, monkeypatch):
    write(tmp_path / "set.sdf", record(block("CCO")))
    monkeypatch.setattr(chemistry, "Chem", None)
    with pytest.raises(MissingDependencyError, match=r"needs rdkit.*pip install 'censnet\[chem\]'"):
        load_data(tmp_path / "set.sdf")
