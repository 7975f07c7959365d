from __future__ import annotations

import csv
import re
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch.testing import assert_close
from torch_geometric.utils import from_smiles

from censnet.data.molecules import atoms_and_bonds as chemistry
from censnet.data.molecules import parallel as workers
from censnet.data.molecules.atoms import ATOM_CODES, PAPER_ATOM, RICH_ATOM, RICH_BOND, encode, names_of
from censnet.data.molecules.featurize import Molecules, canonical, featurize, read_smiles
from censnet.data.tables.schema import MoleculeReading
from censnet.errors import MissingDependencyError
from censnet.ops.graph_set import GraphSet

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
DRUGS = [
    ASPIRIN,
    "C[C@H](N)C(=O)O",
    "F/C=C/Cl",
    "CN1CCC[C@H]1c1cccnc1",
    "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O",
    "O=C1c2ccccc2C(=O)N1C1CCC(=O)NC1=O",
    "C1CC2CCC1CC2",
    "[O-][N+](=O)c1ccc(Cl)cc1",
    "N#Cc1ccc(F)cc1",
    "OC(=O)/C=C\\C(=O)O",
]


POLYMERS = MoleculeReading(dummies=True)


def graphs_of(read: Molecules) -> GraphSet:
    assert read.graphs is not None
    return read.graphs


def atom(read: Molecules, number: int) -> dict[str, float]:
    """What is not 0 of an atom."""
    row = graphs_of(read).nodes[number].tolist()
    return {name: value for name, value in zip(read.node_names, row, strict=True) if value}


def bond(read: Molecules, number: int) -> dict[str, float]:
    row = graphs_of(read).edges[number].tolist()
    return {name: value for name, value in zip(read.edge_names, row, strict=True) if value}


def read_column(path: Path, column: str = "smiles") -> list[str]:
    with open(path, newline="") as stream:
        return [row[column] for row in csv.DictReader(stream)]


def test_an_alcohol_by_hand():
    read = featurize(["CCO"])
    graphs = graphs_of(read)
    assert graphs.ends.tolist() == [[0, 1], [1, 2]]
    assert {name: round(value, 6) for name, value in atom(read, 2).items()} == {
        "element=O": 1,
        "element": 0.08,
        "degree=1": 1,
        "hydrogens=1": 1,
        "charge=0": 1,
        "hybridization=sp3": 1,
        "chirality=none": 1,
        "ring=none": 1,
    }
    assert bond(read, 0) == {"type=single": 1, "stereo=none": 1}


def test_rings_aromaticity_and_conjugation_by_hand():
    read = featurize(["c1ccc2[nH]ccc2c1"])  # indole: atoms 3 and 8 are in both rings
    assert [atom(read, n).get("rings") for n in range(9)] == [1, 1, 1, 2, 1, 1, 1, 2, 1]
    assert "ring=5" in atom(read, 3)
    assert "ring=6" in atom(read, 0)
    assert atom(read, 4).items() >= {"element=N": 1, "hydrogens=1": 1, "aromatic": 1}.items()
    assert bond(read, 0) == {"type=aromatic": 1, "conjugated": 1, "ring": 1, "stereo=none": 1}


def test_charges_radicals_isotopes_and_dummy_atoms():
    read = featurize(["C[N+](C)(C)C", "[CH3]", "[13CH4]", "*C", "[Fe+3]", "[U]", "[C-5]"], reading=POLYMERS)
    assert len(read.rows) == 7
    first = graphs_of(read).node_offset.tolist()
    assert "charge=1" in atom(read, first[0] + 1)
    assert atom(read, first[1])["radicals"] == 1
    assert "element=C" in atom(read, first[2])
    assert "element=?" in atom(read, first[3])
    assert "charge=?" in atom(read, first[4])
    assert "element=?" in atom(read, first[5])


def test_what_cleaning_up_charges_is_seen_though_the_text_has_no_bracket():
    read = featurize(["CN(=O)=O"])
    assert "charge=1" in atom(read, 1)
    assert sum("charge=-1" in atom(read, n) for n in range(4)) == 1


def test_stereochemistry_has_names_that_do_not_depend_on_the_spelling():
    read = featurize(["C[C@H](N)C(=O)O", "OC(=O)[C@@H](N)C", "C[C@@H](N)C(=O)O", "F/C=C/F", "F/C=C\\F", "FC=CF"])
    named = [
        [name for name in ("chirality=R", "chirality=S") if name in atom(read, n)]
        for n in range(len(graphs_of(read).nodes))
    ]
    offset = graphs_of(read).node_offset.tolist()
    found = [list(chain.from_iterable(named[a:b])) for a, b in pairwise(offset)]
    assert found == [["chirality=S"], ["chirality=S"], ["chirality=R"], [], [], []]
    first = graphs_of(read).edge_offset.tolist()
    stereo = [[name for name in bond(read, first[g] + 1) if name.startswith("stereo")] for g in (3, 4, 5)]
    assert stereo == [["stereo=E"], ["stereo=Z"], ["stereo=none"]]


def rows_of(read: Molecules, number: int) -> list[list[float]]:
    """The atoms of a molecule with the sum over their bonds, in an order of their own."""
    graph = graphs_of(read)[number]
    around = graph.incidence.scatter(graph.edges)
    return sorted(torch.cat([graph.nodes, around], dim=1).tolist())


@pytest.mark.parametrize("features", ["rich", "paper"])
def test_another_spelling_is_the_same_graph(features):
    vocabulary = featurize(DRUGS, features).vocabulary or None
    for text in DRUGS:
        molecule = Chem.MolFromSmiles(text)
        spellings = Chem.MolToRandomSmilesVect(molecule, 6, randomSeed=7)
        read = featurize([text, *spellings], features, vocabulary)
        assert all(rows_of(read, n) == rows_of(read, 0) for n in range(1, 7)), text


def test_a_salt_is_one_graph_and_a_single_atom_has_no_edges():
    read = featurize(["[Na+].[Cl-]", "C", "CC(=O)[O-].[K+]"])
    assert graphs_of(read).node_offset.diff().tolist() == [2, 1, 5]
    assert graphs_of(read).edge_offset.diff().tolist() == [0, 0, 3]
    assert graphs_of(read).batch(torch.tensor([1, 0])).num_edges == 0
    only = featurize(["[Na+].[Cl-]", "C"])
    assert graphs_of(only).edges.shape == (0, len(only.edge_names))
    assert graphs_of(featurize(["C"], "paper")).edges.shape == (0, 0)


def test_bad_rows_keep_their_place():
    read = featurize(["CCO", "C1CCC", "", "CC", None, "xyz"])  # type: ignore[list-item]
    assert read.rows.tolist() == [0, 3]
    assert read.problems == {
        1: "not a molecule: 'C1CCC' (unclosed ring)",
        2: "no SMILES given",
        4: "no SMILES given",
        5: "not a molecule: 'xyz' (not the syntax of SMILES)",
    }


def test_nothing_readable_is_no_graph():
    read = featurize(["C(", "C)"])
    assert read.graphs is None
    assert read.rows.tolist() == []
    assert list(read.problems) == [0, 1]
    assert featurize([]).graphs is None


def test_a_name_after_the_smiles_is_ignored():
    read = featurize(["CCO ethanol", " CCO "])
    assert torch.equal(graphs_of(read)[0].nodes, graphs_of(read)[1].nodes)


def test_every_one_hot_block_has_one_one():
    read = featurize([*DRUGS, "[U]", "*", "[C-5]", "[CH3]", "[Fe]->[O]"], reading=POLYMERS)
    for names, rows in ((read.node_names, graphs_of(read).nodes), (read.edge_names, graphs_of(read).edges)):
        for block in {name.split("=")[0] for name in names if "=" in name}:
            columns = [n for n, name in enumerate(names) if name.startswith(f"{block}=")]
            assert_close(rows[:, columns].sum(1), torch.ones(len(rows)))


def test_the_widths_are_what_is_promised():
    assert len(names_of(PAPER_ATOM)) == 25
    assert (len(names_of(RICH_ATOM)), len(names_of(RICH_BOND))) == (81, 11)
    assert len(set(names_of(RICH_ATOM))) == 81


def test_codes_out_of_range_are_other_values():
    codes = np.zeros((2, len(ATOM_CODES)), dtype=np.int16)
    codes[0], codes[1] = 9_999, -999
    out = encode(codes, ATOM_CODES, RICH_ATOM)
    assert np.isfinite(out).all()
    assert out[:, names_of(RICH_ATOM).index("charge=?")].tolist() == [1, 1]


def test_the_vocabulary_is_learnt_once_and_a_new_bond_type_is_zeros():
    train = featurize(["CCO", "C=O"], "paper")
    assert train.vocabulary == ["C-C", "C-O", "C=O"]
    assert train.edge_names == ["type=C-C", "type=C-O", "type=C=O"]
    later = featurize(["OCC", "CN", "O=C"], "paper", train.vocabulary)
    assert later.vocabulary == train.vocabulary
    assert graphs_of(later).edges.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_rare_elements_are_one_in_the_vocabulary():
    assert featurize(["C[Si]", "CB", "P=O", "C[Hg]C"], "paper").vocabulary == ["C-?", "O=?"]


@pytest.mark.parametrize("vocabulary", [["C-Xx"], ["C-C", "C-C"]])
def test_a_wrong_vocabulary_is_refused(vocabulary):
    with pytest.raises(ValueError, match=r"vocabulary has .*, expected distinct bond types such as"):
        featurize(["CC"], "paper", vocabulary)


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="features is 'best', expected 'rich' or 'paper'"):
        featurize(["C"], "best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="smiles is the text 'CCO', expected a list"):
        featurize("CCO")
    with pytest.raises(ValueError, match="processes is 0, expected at least 1"):
        featurize(["C"], processes=0)


def test_without_rdkit_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(chemistry, "Chem", None)
    with pytest.raises(MissingDependencyError, match=r"needs rdkit.*pip install 'censnet\[chem\]'"):
        featurize(["C"])


def test_rdkit_is_imported_by_the_readers_of_molecules_alone():
    folder = Path(chemistry.__file__).parents[1]
    users = [
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"^\s*(from|import) rdkit", path.read_text(), re.MULTILINE)
    ]
    assert set(users) <= {"atoms_and_bonds.py", "smiles_to_mol.py", "standardize.py", "structure_files.py"}


def test_rdkit_writes_nothing_and_its_settings_come_back(capfd):
    Chem.SetUseLegacyStereoPerception(False)
    try:
        read = featurize(["C[C@H](N)C(=O)O", "C1CC", "c1cccc1", "CC(C)(C)(C)C"])
        assert Chem.GetUseLegacyStereoPerception() is False
    finally:
        Chem.SetUseLegacyStereoPerception(True)
    assert "chirality=S" in atom(read, 1)
    assert capfd.readouterr() == ("", "")
    Chem.MolFromSmiles("C1CC")
    assert "unclosed ring" in capfd.readouterr().err


def same(one: Molecules, other: Molecules) -> bool:
    a, b = graphs_of(one), graphs_of(other)
    pairs = ((a.nodes, b.nodes), (a.edges, b.edges), (a.ends, b.ends), (one.rows, other.rows))
    pairs += ((a.node_offset, b.node_offset), (a.edge_offset, b.edge_offset))
    return all(torch.equal(x, y) for x, y in pairs) and one.problems == other.problems


@pytest.mark.slow
@pytest.mark.parametrize("features", ["rich", "paper"])
def test_several_processes_give_the_same_in_the_same_order(features, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 7)
    texts = [*DRUGS, "C1CCC", ""] * 3
    alone = featurize(texts, features, processes=1)
    assert same(featurize(texts, features, processes=3), alone)
    monkeypatch.setattr(workers, "SMALL", 10)
    assert same(featurize(texts, features), alone)
    assert canonical(texts, processes=2) == canonical(texts, processes=1)


def test_a_progress_bar_changes_nothing(capsys):
    assert same(featurize(DRUGS, progress=True), featurize(DRUGS))
    assert "molecules" in capsys.readouterr().err


def test_canonical_texts_are_equal_for_one_molecule():
    assert canonical(["OCC", "C(O)C", "CCN", "C1CCC", ""]) == ["CCO", "CCO", "CCN", None, None]
    assert canonical(["[Na+].CC(=O)[O-]", "[O-]C(C)=O.[Na+]"]) == ["CC(=O)[O-].[Na+]"] * 2
    left, right = canonical(["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"])
    assert left != right


def test_scaffolds_are_rings_and_what_joins_them():
    smiles = [ASPIRIN, "c1ccccc1CCc1ccncc1C", "CCO", "nonsense", "C[C@H]1CCCO1"]
    found = read_smiles(smiles, scaffolds=True).scaffolds
    assert found == ["c1ccccc1", "c1ccc(CCc2ccncc2)cc1", "", None, "C1CCOC1"]


@pytest.mark.slow
def test_lipophilicity_has_the_atoms_and_bonds_of_pytorch_geometric(real_data):
    smiles = read_column(real_data / "moleculenet" / "lipo" / "raw" / "Lipophilicity.csv")
    read = featurize(smiles)
    graphs = graphs_of(read)
    assert (len(graphs), len(graphs.nodes), len(graphs.edges)) == (4200, 113_568, 123_899)
    element, aromatic = read.node_names.index("element"), read.node_names.index("aromatic")
    hydrogens = [read.node_names.index(f"hydrogens={count}") for count in range(5)]
    for number in range(0, 4200, 140):
        theirs, ours = from_smiles(smiles[number]), graphs[number]
        assert_close(ours.nodes[:, element] * 100, theirs.x[:, 0].float(), rtol=0, atol=1e-4)
        assert_close(ours.nodes[:, hydrogens].argmax(1), theirs.x[:, 4])
        assert_close(ours.nodes[:, aromatic], theirs.x[:, 7].float())
        both = torch.cat([ours.ends, ours.ends.flip(0)], dim=1)
        order = (both[0] * ours.num_nodes + both[1]).argsort()
        assert_close(both[:, order], theirs.edge_index)
        conjugated = ours.edges[:, read.edge_names.index("conjugated")].repeat(2)[order]
        assert_close(conjugated, theirs.edge_attr[:, 2].float())


@pytest.mark.slow
def test_the_vocabularies_of_the_paper(real_data):
    lipophilicity = read_column(real_data / "moleculenet" / "lipo" / "raw" / "Lipophilicity.csv")
    assert len(featurize(lipophilicity, "paper").vocabulary) == 35  # 34 in the paper
    read = featurize(read_column(real_data / "moleculenet" / "tox21" / "raw" / "tox21.csv"), "paper")
    assert len(read.vocabulary) == 55
    assert (len(read.rows), len(read.problems)) == (7823, 8)
    graphs = graphs_of(read)
    assert int((graphs.edge_offset.diff() == 0).sum()) == 19
    assert graphs.nodes.shape[1] == 25
    assert_close(graphs.edges.sum(1), torch.ones(len(graphs.edges)))


def test_a_text_of_two_lines_is_no_molecule():
    read = featurize(["CC\nO", "CCO\n"])
    assert "more than one line" in read.problems[0]
    assert read.rows.tolist() == [1]
