"""How a column of SMILES is read, from the user's side: what is folded, left away, refused, and what is said of it."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import torch

from censnet.data import Dataset, Tables, load, load_data
from censnet.data.molecules.featurize import atom_positions, canonical, featurize
from censnet.data.tables.schema import MoleculeReading, Schema
from censnet.ops.graph_set import GraphSet
from censnet.pipeline import inspect_data

USUAL = MoleculeReading(isotopes=False)


def read(smiles: list[str], **more: object) -> Dataset:
    frame = pd.DataFrame({"smiles": smiles, "y": np.arange(len(smiles)) % 2})
    return load_data(frame, target="graph:y", **more)  # type: ignore[arg-type]


def graphs(data: Dataset) -> GraphSet:
    assert isinstance(data.graph, GraphSet)
    return data.graph


def note(data: Dataset, words: str) -> str:
    found = [text for text in data.notes if words in text]
    assert len(found) == 1, data.notes
    return found[0]


def same_graph(data: Dataset, one: int, other: int) -> bool:
    a, b = graphs(data)[one], graphs(data)[other]
    return torch.equal(a.nodes, b.nodes) and torch.equal(a.edges, b.edges) and torch.equal(a.ends, b.ends)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labeled", "plain"),
    [
        ("[2H]O[2H]", "O"),
        ("[3H]O", "O"),
        ("[2H]C([2H])([2H])O", "CO"),
        ("[13CH3][12CH2]O", "CCO"),
        ("C[C@H]([2H])O", "CCO"),
        ("[13CH3][C@H](C)O", "CC(C)O"),
        ("[2H][H]", "[H][H]"),
        ("[2H+]", "[H+]"),
        ("[2H]c1ccccc1", "c1ccccc1"),
        ("O.[2H][2H]", "O.[H][H]"),
    ],
)
def test_isotopes_are_not_told_apart_and_labeled_hydrogens_are_no_atoms(labeled, plain):
    data = read([plain, labeled, "c1ccncc1C(=O)O"], descriptors=True)
    assert same_graph(data, 0, 1)
    whole = graphs(data).graph_features
    assert whole is not None
    assert torch.equal(whole[0], whole[1]), "its descriptors are those of the molecule without labels"
    said = note(data, "isotopes are not distinguished")
    assert "1 of 3 rows" in said
    assert f"row 2, '{labeled}'" in said
    assert canonical([labeled], reading=USUAL) == canonical([plain], reading=USUAL)


def test_molecules_of_hydrogen_alone_stay_molecules():
    data = read(["[H][H]", "[2H][H]", "[H+]", "[H]", "[H-]", "O.[H+]"])
    assert graphs(data).node_offset.diff().tolist() == [2, 2, 1, 1, 1, 2]
    assert not data.problems


def test_a_hydrogen_with_two_bonds_is_a_bad_row_with_its_reason():
    data = read(["C", "B1[H]B[H]1", "CC"])
    assert "Explicit valence for atom # 1 H, 2" in data.problems["graphs"][1]


def test_the_built_in_sets_keep_isotope_labels_as_in_the_published_results(monkeypatch):
    labeled = "[2H]C([2H])([2H])[C@H](N)Cc1ccccc1"  # the one such molecule of tox21, half of it
    tables = Tables(graphs=pd.DataFrame({"smiles": ["CCO", labeled], "NR-AR": [0, 1]}))
    monkeypatch.setattr(load, "read_builtin", lambda *_: tables)
    data = load_data("tox21", target="graph:NR-AR")
    assert graphs(data)[1].num_nodes == 13
    assert data.schema.reading == MoleculeReading()
    assert not [said for said in data.notes if "isotopes" in said]
    later = load_data(pd.DataFrame({"smiles": ["[2H]O[2H]"]}), schema=data.schema)
    assert graphs(later).nodes.shape[0] == 1, "but not what is predicted later"
    again = load_data("tox21", schema=later.schema)
    assert torch.equal(graphs(again).nodes, graphs(data).nodes)


def test_what_stands_behind_a_smiles_is_said_not_to_be_read(caplog):
    data = read(["CCO ethanol", "CCO\tethyl alcohol", "CCO", "CCO |r|", "C |(1,2,;)| methane"])
    assert all(same_graph(data, 0, other) for other in (1, 2, 3))
    assert "2 of 5 rows: something stands behind the SMILES" in note(data, "as a name does")
    assert "row 4, 'CCO |r|'" in note(data, "an extension |...| stands behind the SMILES")
    with caplog.at_level(logging.WARNING, "censnet"):
        load_data(pd.DataFrame({"smiles": ["CC O"]}), schema=data.schema)
    assert "it is not read; the first: row 1, 'CC O'" in caplog.text


def test_stray_dummy_atoms_are_bad_rows_and_polymers_are_read_and_said():
    stray = read(["CCO", "*CC", "CCC", "CC"])
    assert list(stray.problems["graphs"]) == [1]
    assert "an R-group or dummy atom, not a molecule" in stray.problems["graphs"][1]
    assert stray.schema.reading.dummies is False
    polymers = read(["*CC*", "*CC(*)C", "*CO*", "CC"])
    assert not polymers.problems
    assert "3 of 4 rows: dummy atoms (*)" in note(polymers, "dummy atoms")
    schema = Schema.from_json(polymers.schema.to_json())
    assert not load_data(pd.DataFrame({"smiles": ["*CCC*"]}), schema=schema).problems
    (problem,) = load_data(pd.DataFrame({"smiles": ["*CCC*", "C"]}), schema=stray.schema).problems["graphs"].values()
    assert "put an atom, such as H, in the place of each *" in problem


def test_causes_of_bad_rows_are_counted_apart(caplog):
    data = read(["CCO", "C>>C", "[C,N]", "[#6]", "C1CC"])
    said = note(data, "cannot be used")
    assert "2 by column smiles (a query, not a molecule" in said
    assert "1 by column smiles (a reaction, not a molecule" in said


SALTS = {
    "CC(=O)[O-].[Na+]": {"fragment": "CC(=O)[O-]", "parent": "CC(=O)O", "tautomer": "CC(=O)O"},
    "Oc1ccccn1.Cl": {"fragment": "Oc1ccccn1", "parent": "Oc1ccccn1", "tautomer": "O=c1cccc[nH]1"},
    "C[NH2+]CC.[Cl-]": {"fragment": "CC[NH2+]C", "parent": "CCNC", "tautomer": "CCNC"},
    "C[N+](C)(C)C.[Br-]": dict.fromkeys(("fragment", "parent", "tautomer"), "C[N+](C)(C)C"),
    "C[C@H](F)Cl": dict.fromkeys(("fragment", "parent", "tautomer"), "C[C@H](F)Cl"),
}


@pytest.mark.parametrize("how", ["fragment", "parent", "tautomer"])
@pytest.mark.parametrize("features", ["rich", "paper"])
def test_a_standardized_molecule_is_read_as_its_standard_form(how, features):
    reading = MoleculeReading(isotopes=False, standardize=how)
    expected = [forms[how] for forms in SALTS.values()]
    vocabulary = featurize(expected, features).vocabulary or None
    found = featurize(list(SALTS), features, vocabulary, reading=reading).graphs
    direct = featurize(canonical(expected), features, vocabulary).graphs  # type: ignore[arg-type]
    assert found is not None
    assert direct is not None
    assert torch.equal(found.nodes, direct.nodes)
    assert torch.equal(found.edges, direct.edges)
    assert canonical(list(SALTS), reading=reading) == canonical(expected)


def test_standardizing_is_off_by_default_counted_when_on_and_kept_in_the_schema(caplog):
    smiles = [*SALTS, "CCO", "[Na+].[Cl-]"]
    off = read(smiles)
    said = note(off, "several fragments")
    assert "5 of 7 rows" in said
    assert "data.standardize=parent" in said
    on = read(smiles, standardize="parent")
    assert "5 of 7 rows: data.standardize is parent, which changed the molecule" in note(on, "data.standardize")
    with caplog.at_level(logging.WARNING, "censnet"):
        later = load_data(pd.DataFrame({"smiles": smiles[:1]}), schema=Schema.from_json(on.schema.to_json()))
    assert torch.equal(graphs(later).nodes, graphs(on)[0].nodes)
    assert "1 of 1 rows: data.standardize is parent" in caplog.text


def test_a_molecule_whose_standard_form_is_none_is_read_as_written_and_said():
    ferrocene = "[Fe+2].[cH-]1cccc1.[cH-]1cccc1"
    data = read(["CCO", ferrocene, "CC"], standardize="parent")
    assert graphs(data)[1].num_nodes == 11
    assert f"row 2, '{ferrocene}'" in note(data, "data.standardize=parent gives is no molecule: read as written")


def test_standardizing_what_is_no_molecule_is_refused():
    edges = pd.DataFrame({"source": [1, 2], "target": [2, 3]})
    with pytest.raises(ValueError, match=r"data\.standardize is parent, expected molecules"):
        load_data(edges, standardize="parent")


@pytest.mark.parametrize(
    ("text", "reading", "expected"),
    [
        ("CCO", USUAL, [0, 1, 2]),
        ("[H]C([H])([H])O", USUAL, [1, 4]),
        ("[2H]O[2H]", USUAL, [1]),
        ("[2H]O[2H]", MoleculeReading(), [0, 1, 2]),
        ("[H][H]", USUAL, [0, 1]),
        ("[Na+].CC(=O)[O-]", USUAL, [0, 1, 2, 3, 4]),
        ("C1CC", USUAL, []),
    ],
)
def test_atoms_are_numbered_as_they_are_written(text, reading, expected):
    assert atom_positions([text], reading=reading) == [expected]


@pytest.mark.parametrize("how", ["fragment", "parent", "tautomer"])
@pytest.mark.parametrize("text", ["[Na+].CC(=O)[O-]", "Cl.[H]N(C)c1nc(O)ccc1", "OC(=O)CC[NH3+].[2H]O[2H]"])
def test_atoms_of_a_standard_form_keep_their_numbers(how, text):
    reading = MoleculeReading(isotopes=False, standardize=how)
    (positions,) = atom_positions([text], reading=reading)
    written = featurize([text.replace("[2H]", "[H]").replace("[H]", "F")]).graphs
    standard = featurize([text], reading=reading).graphs
    assert written is not None
    assert standard is not None
    assert len(set(positions)) == standard.nodes.shape[0]
    element = slice(0, 38)
    assert torch.equal(written.nodes[positions, element], standard.nodes[:, element])


def test_a_column_whose_name_has_smiles_as_a_word_is_found_and_others_are_named():
    frame = pd.DataFrame({"Name": ["a", "b"], "Molecule SMILES": ["CC", "CO"], "y": [0, 1]})
    assert load_data(frame, target="graph:y").schema.smiles == "Molecule SMILES"
    both = frame.rename(columns={"Name": "canonical_smiles"}).assign(canonical_smiles=["CCC", "CCO"])
    data = load_data(both, target="graph:y")
    assert data.schema.smiles == "canonical_smiles"
    assert "and not from Molecule SMILES: overrides={'NAME': 'smiles'} chooses" in note(
        data, "molecules are read from column"
    )


def test_inspect_says_which_molecules_have_labels_that_contradict():
    frame = pd.DataFrame({"smiles": ["CCO", "OCC", "C", "CC", "CCC", "[13CH4]"], "y": [0, 1, 0, 1, 0, 1]})
    found = inspect_data(frame, ["graph:y"]).findings
    (said,) = [finding.what for finding in found if "different labels" in finding.what]
    assert "2 molecules have different labels in y" in said
    assert "rows 1, 2" in said
