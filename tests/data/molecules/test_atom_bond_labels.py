"""Labels of atoms and bonds: each comes to its atom or bond, and what cannot is said and loses nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from censnet.data import load_data
from censnet.data.dataset import Dataset
from censnet.data.load import read_data
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.pipeline.splitting import split_rows
from censnet.settings.schema import DataSettings

Chem = pytest.importorskip("rdkit.Chem")

SMILES = ["CCO", "c1ccccc1", "CC(=O)O"]


def molecules(**columns: Sequence[Any]) -> pd.DataFrame:
    return pd.DataFrame({"smiles": SMILES, **columns})


def read(bonds: Mapping[str, Sequence[Any]], target: Any = "bond:bde", **options: Any) -> Dataset:
    names = {"graphs": "molecules.csv", "edges": "bonds.csv"}
    graphs = options.pop("graphs", molecules())
    return load_data(Tables(graphs=graphs, edges=pd.DataFrame(bonds), names=names), target=target, **options)


def labels_of(data: Dataset, level: str = "edge", column: str = "bde") -> dict[tuple[int, int], float]:
    """(row, index) -> label, of rows that have one and can be used."""
    frame = data.tables.frames()[f"{level}s"]
    index = frame["atom_index" if level == "node" else "bond_index"]
    good = (data.rows(level).numpy() >= 0) & frame[column].notna().to_numpy()
    found = zip(frame["row"][good], index[good], frame[column][good], strict=True)
    return {(int(row), int(place)): float(value) for row, place, value in found}


def errors_of(data: Dataset, level: str = "edge") -> list[str]:
    return list(data.problems.get(f"{level}s", {}).values())


def test_bonds_are_those_of_rdkit_in_its_order() -> None:
    for hydrogens in ("implicit", "explicit"):
        data = read({"molecule": ["CCO"], "bond_index": [0], "bde": [85.0]}, hydrogens=hydrogens)
        frame = data.tables.frames()["edges"]
        expected = []
        for row, text in enumerate(SMILES, 1):
            molecule = Chem.MolFromSmiles(text)
            molecule = Chem.AddHs(molecule) if hydrogens == "explicit" else molecule
            for bond in molecule.GetBonds():
                ends = bond.GetBeginAtom(), bond.GetEndAtom()
                places = [atom.GetIdx() for atom in ends]
                kind = str(bond.GetBondType()).lower()
                expected.append([row, text, bond.GetIdx(), *places, *(atom.GetSymbol() for atom in ends), kind])
        columns = ["row", "molecule", "bond_index", "atom_1", "atom_2", "begin_atom", "end_atom", "bond_type"]
        assert frame[columns].to_numpy().tolist() == expected
        assert data.graph.ends.T.tolist() == frame[["atom_1", "atom_2"]].to_numpy().tolist()


def test_labels_by_smiles_by_row_by_id_and_by_pair_of_atoms_are_the_same() -> None:
    graphs = molecules(id=["ethanol", "benzene", "acetic acid"])
    index = {"bond_index": [1, 0, 2], "bde": [1.0, 2.0, 3.0]}
    pair = {"atom_1": [2, 1, 3], "atom_2": [1, 0, 1], "bde": [1.0, 2.0, 3.0]}
    keys = (
        {"molecule": ["CCO", "c1ccccc1", "CC(=O)O"]},
        {"row": [1, 2, 3]},
        {"molecule": graphs["id"]},
        {"id": graphs["id"]},
    )
    for key in keys:
        for where in (index, pair):
            data = read({**key, **where}, graphs=graphs)
            assert labels_of(data) == {(1, 1): 1.0, (2, 0): 2.0, (3, 2): 3.0}
            assert not errors_of(data)


def test_lists_are_one_value_for_each_atom_or_bond() -> None:
    forms: list[list[Any]] = [
        ["[1.5, null, 3]", "[0, 1, 2, 3, 4, 5]", None],
        ["[1.5 nan 3.]", "(0, 1, 2, 3, 4, 5,)", ""],
        [[1.5, None, 3.0], [0, 1, 2, 3, 4, 5], None],
        [np.array([1.5, np.nan, 3.0]), np.arange(6.0), None],
    ]
    for cells in forms:
        data = load_data(molecules(charge=cells), target="atom:charge")
        expected = {(1, 0): 1.5, (1, 2): 3.0} | {(2, place): float(place) for place in range(6)}
        assert labels_of(data, "node", "charge") == expected
        assert not errors_of(data, "node")


def test_a_list_of_classes() -> None:
    data = load_data(molecules(kind=['["a", "b"]', None, '["a", null, "c"]']), target="bond:kind")
    assert data.labels("edge", "kind").dropna().tolist() == ["a", "b", "a", "c"]


def test_lists_of_the_wrong_length_lose_their_labels_alone() -> None:
    cells = ["[1, 2]", "[1, 2, 3]", "lots"]
    data = load_data(molecules(bde=cells, size=[3, 6, 4]), target=["bond:bde", "graph:size"])
    assert labels_of(data) == {(1, 0): 1.0, (1, 1): 2.0}
    other, short = sorted(errors_of(data))
    assert short.startswith("the table, row 3, column bde: 'lots' is not a list") or other.startswith(
        "the table, row 2"
    )
    assert any(
        "row 2, column bde: the list has 3 entries, expected 6: 'c1ccccc1' has 6 bonds" in e for e in (other, short)
    )
    assert "graphs" not in data.problems
    assert (data.rows("edge") >= 0).sum() == data.count("edge") == 11


def test_a_column_that_holds_no_list_is_refused() -> None:
    with pytest.raises(DataError, match=r"the table, row 1, column bde: 3\.5 is not a list, expected one value"):
        load_data(molecules(bde=[3.5, 2.5, 1.5]), target="bond:bde")
    with pytest.raises(DataError, match=r"target is bond:bde, but there is no such column.*bonds\.csv"):
        load_data(molecules(), target="bond:bde")


def test_each_mistake_is_named_and_loses_nothing_else() -> None:
    bonds = pd.DataFrame(
        [
            ("CCO", 0, 80.0),
            ("CCO", 2, 81.0),  # past the molecule
            ("CCN", 0, 82.0),  # no row has it
            ("c1ccccc1", "first", 83.0),  # no number
            ("c1ccccc1", 1.5, 84.0),  # no whole number
            ("c1ccccc1", -1, 85.0),
            (None, 0, 86.0),
            ("CC(=O)O", None, 87.0),
            ("CC(=O)O", 1, 88.0),  # two labels
            ("CC(=O)O", 1, 89.0),
            ("CC(=O)O", 2, 90.0),  # the same label twice
            ("CC(=O)O", 2, 90.0),
            ("CC(=O)O", 0, None),
        ],
        columns=["molecule", "bond_index", "bde"],
    )
    data = read(bonds.to_dict("list"))
    assert labels_of(data) == {(1, 0): 80.0, (3, 2): 90.0}
    expected = [
        "row 2, column bond_index: 'CCO' has no bond 2 (it has 2 bonds, counted from 0; data.hydrogens=explicit",
        "row 3, column molecule: no row of the molecules is 'CCN' (molecules.csv has 3 rows)",
        "row 4, column bond_index: 'first' is not a whole number",
        "row 5, column bond_index: '1.5' is not a whole number",
        "row 6, column bond_index: 'c1ccccc1' has no bond -1",
        "row 7, column molecule: the molecule is missing",
        "row 8, column bond_index: the number of the bond is missing",
        "row 9, column bde: 88.0, but row 10 has 89.0 for the same bond",
        "row 10, column bde: 89.0, but row 9 has 88.0 for the same bond",
    ]
    found = errors_of(data)
    for text, start in zip(found, expected, strict=True):
        assert text.replace("1.5 is", "'1.5' is").startswith(f"bonds.csv, {start}")
    assert (data.rows("edge") >= 0).sum() == data.count("edge") == 11
    answers = data.results("edge", pd.DataFrame({"bde_predicted": np.arange(11.0)}))
    assert answers["bde_predicted"].notna().sum() == 11
    assert answers["error"].notna().sum() == 9
    assert answers["molecule"].iloc[11:].tolist()[:2] == ["CCO", "CCN"]
    with pytest.raises(DataError, match=r"bonds\.csv, row 2, column bond_index: 'CCO' has no bond 2"):
        read(bonds.to_dict("list"), strict=True)


def test_pairs_of_atoms_that_are_no_bond() -> None:
    pairs = {
        "row": [1, 1, 9, 1, 1],
        "atom_1": [0, 0, 0, 7, "x"],
        "atom_2": [1, 2, 1, 1, 1],
        "bde": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
    data = read(pairs)
    assert labels_of(data) == {(1, 0): 1.0}
    bond, row, atom, text = sorted(errors_of(data))[0], *sorted(errors_of(data))[1:]
    assert bond.startswith("bonds.csv, row 2, column atom_2: atoms 0 and 2 of 'CCO' have no bond")
    assert row.startswith("bonds.csv, row 3, column row: there is no row 9 (molecules.csv has 3 rows, counted from 1)")
    assert atom.startswith("bonds.csv, row 4, column atom_1: 'CCO' has no atom 7 (it has 3 atoms, counted from 0")
    assert text.startswith("bonds.csv, row 5, column atom_1: 'x' is not a whole number")


def test_keys_that_contradict_each_other() -> None:
    both = {"row": [1, 1], "molecule": ["CCO", "c1ccccc1"], "bond_index": [0, 0], "bde": [1.0, 2.0]}
    data = read(both)
    assert labels_of(data) == {(1, 0): 1.0}
    assert "'c1ccccc1' is not row 1 of molecules.csv, which is 'CCO'" in errors_of(data)[0]
    pair = {"row": [1, 1], "bond_index": [0, 1], "atom_1": [0, 0], "atom_2": [1, 1], "bde": [1.0, 2.0]}
    data = read(pair)
    assert labels_of(data) == {(1, 0): 1.0}
    assert "bond 1 is not that of these atoms" in errors_of(data)[0]


def test_a_molecule_that_cannot_be_read_takes_no_other_with_it() -> None:
    graphs = pd.DataFrame({"smiles": ["CCO", "C1CC", "CC", "what"]})
    data = read({"molecule": ["CCO", "C1CC", "CC"], "bond_index": [0, 0, 0], "bde": [1.0, 2.0, 3.0]}, graphs=graphs)
    assert labels_of(data) == {(1, 0): 1.0, (3, 0): 3.0}
    of_table, of_molecule = errors_of(data)
    assert of_table.startswith("bonds.csv, row 2, column molecule: the molecule cannot be read: molecules.csv, row 2")
    assert of_molecule.startswith("molecules.csv, row 4, column smiles: not a molecule")
    assert errors_of(data, "node")[0].startswith("molecules.csv, row 2, column smiles: not a molecule")


@pytest.mark.parametrize(
    ("bonds", "message"),
    [
        (
            {"bond_index": [0], "bde": [1.0]},
            r"bonds\.csv: has the columns bond_index, bde, expected molecule .* or row",
        ),
        ({"molecule": ["CCO"], "bde": [1.0]}, r"bonds\.csv: .*expected bond_index or the pair atom_1 and atom_2"),
        ({"molecule": ["CCO"], "atom_1": [0], "bde": [1.0]}, r"bonds\.csv: .*expected bond_index or the pair"),
        ({"molecule": ["N"], "bond_index": [0], "bde": [1.0]}, r"bonds\.csv: no row is of a bond of molecules\.csv"),
        ({"molecule": ["CCO"], "bond_index": [0], "bda": [1.0]}, r"bonds\.csv, column bde: is the target, but missing"),
    ],
)
def test_tables_that_are_no_labels(bonds: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(bonds)


def test_labels_in_two_places_are_refused() -> None:
    graphs = molecules(bde=["[1, 2]", None, None])
    with pytest.raises(DataError, match=r"column bde: is in bonds\.csv, too"):
        read({"molecule": ["CCO"], "bond_index": [0], "bde": [1.0]}, graphs=graphs)


def test_atom_and_bond_are_words_for_molecules_alone() -> None:
    payments = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "fraud": [0, 1]})
    with pytest.raises(DataError, match="target is bond:fraud, expected edge:fraud: atom: and bond: are for tables of"):
        load_data(payments, target="bond:fraud")
    with pytest.raises(DataError, match="target is atom:faction, expected node:faction"):
        load_data("karate", target="atom:faction")
    with pytest.raises(DataError, match=r"data\.hydrogens is explicit, expected molecules"):
        load_data(payments, hydrogens="explicit")


def test_map_numbers_are_the_numbers_of_atoms() -> None:
    graphs = pd.DataFrame({"smiles": ["[CH3:3][CH2:1][OH:2]", "CCO", "[CH3:1]CO", "[CH3:1][OH:1]"]})
    pairs = {"row": [1, 2, 3], "atom_1": [2, 2, 0], "atom_2": [1, 1, 1], "bde": [1.0, 2.0, 3.0]}
    data = read(pairs, graphs=graphs)
    frame = data.tables.frames()["edges"]
    assert labels_of(data) == {(1, 1): 1.0, (2, 1): 2.0, (3, 0): 3.0}
    assert frame[["atom_1", "atom_2"]].iloc[:2].to_numpy().tolist() == [[3, 1], [1, 2]]
    assert any("2 of 4 rows: some atoms have no map number" in note for note in data.notes)


def test_hydrogens_with_map_numbers_keep_them() -> None:
    text = "[C:1]([H:7])([H:5])([H:9])[O:2][H:6]"
    pairs = {"row": [1, 1], "atom_1": [9, 6], "atom_2": [1, 2], "bde": [1.0, 2.0]}
    data = read(pairs, graphs=pd.DataFrame({"smiles": [text]}), hydrogens="explicit")
    assert sorted(data.tables.frames()["nodes"]["atom_index"]) == [1, 2, 5, 6, 7, 9]
    assert sorted(labels_of(data).values()) == [1.0, 2.0]
    assert not errors_of(data)
    ends = {frozenset(pair) for pair in data.tables.frames()["edges"][["atom_1", "atom_2"]].to_numpy().tolist()}
    assert ends == {frozenset(pair) for pair in ([1, 2], [1, 7], [1, 5], [1, 9], [2, 6])}


def test_labeled_hydrogens_are_atoms_as_in_rdkit() -> None:
    data = load_data(pd.DataFrame({"smiles": ["[2H]OC"], "bde": ["[1, 2]"]}), target="bond:bde")
    assert data.tables.frames()["nodes"]["element"].tolist() == ["H", "O", "C"]


def test_standardization_is_refused_beside_labels() -> None:
    with pytest.raises(DataError, match=r"data\.standardize is parent, expected none where atoms or bonds have labels"):
        load_data(molecules(bde=["[1, 2]", None, None]), target="bond:bde", standardize="parent")


def test_molecules_that_stand_twice_have_their_labels_twice() -> None:
    graphs = pd.DataFrame({"smiles": ["CCO", "CC", "CCO"]})
    data = read({"molecule": ["CCO"], "bond_index": [1], "bde": [1.0]}, graphs=graphs)
    assert labels_of(data) == {(1, 1): 1.0, (3, 1): 1.0}


def test_a_folder_of_molecules_bonds_and_atoms(tmp_path: Path) -> None:
    molecules(id=["007", "008", "009"]).to_csv(tmp_path / "molecules.csv", index=False)
    pd.DataFrame({"molecule": ["007", "009"], "bond_index": [1, 0], "bde": [1.0, 2.0]}).to_parquet(
        tmp_path / "bonds.parquet"
    )
    atoms = pd.DataFrame({"molecule": ["008", "008"], "atom_index": [0, 5], "charge": [0.5, 0.25], "note": ["x", None]})
    atoms.to_csv(tmp_path / "atoms.csv", index=False)
    data = load_data(tmp_path, target=["bond:*", "atom:charge"])
    assert labels_of(data) == {(1, 1): 1.0, (3, 0): 2.0}
    assert labels_of(data, "node", "charge") == {(2, 0): 0.5, (2, 5): 0.25}
    assert data.schema.id_columns >= {"row", "molecule", "bond_index", "atom_index", "id"}
    again = load_data(tmp_path, schema=data.schema)
    assert labels_of(again) == labels_of(data)
    bare = load_data(pd.DataFrame({"smiles": ["CC"]}), schema=data.schema)
    assert bare.tables.frames()["edges"]["bond_index"].tolist() == [0]
    other = load_data(tmp_path)
    assert set(other.tables.frames()) == {"nodes", "edges", "graphs"}


def test_a_folder_of_bonds_alone_has_their_molecules(tmp_path: Path) -> None:
    bonds = {"molecule": ["CCO", "CC", "CCO"], "bond_index": [1, 0, 0], "bde": [1.0, 2.0, 3.0]}
    pd.DataFrame(bonds).to_csv(tmp_path / "bonds.csv", index=False)
    assert labels_of(load_data(tmp_path, target="bond:bde")) == {(1, 1): 1.0, (2, 0): 2.0, (1, 0): 3.0}


def parts_of(data: Any, settings: DataSettings, columns: dict[str, list[str]]) -> dict[str, dict[str, set[int]]]:
    """Level -> part -> the rows of the molecules in it."""
    splits = split_rows(data, columns, settings, 0)
    found = {}
    for level, split in splits.items():
        frame = data.tables.frames()[f"{level}s"]
        row = frame["row"].to_numpy() if level != "graph" else np.arange(len(frame)) + 1
        found[level] = {part: {int(row[place]) for place in rows.tolist()} for part, rows in split.parts.items()}
    return found


def many(**columns: Any) -> Tables:
    texts = ["C" * length + "O" for length in range(2, 22)]
    rows = [(text, place, float(place), text) for text in texts for place in range(len(text) - 1)]
    bonds = pd.DataFrame(rows, columns=["molecule", "bond_index", "bde", "set"])
    if "of_bond" in columns:
        bonds["set"] = bonds["set"].map(dict(zip(texts, columns.pop("of_bond"), strict=True)))
    else:
        bonds = bonds.drop(columns="set")
    graphs = pd.DataFrame({"smiles": texts, "size": [len(text) for text in texts], **columns})
    return Tables(graphs=graphs, edges=bonds, names={"graphs": "molecules.csv", "edges": "bonds.csv"})


@pytest.mark.parametrize("split", ["auto", "ratio", "scaffold"])
def test_a_molecule_is_in_one_part_with_all_of_its_bonds_and_its_own_label(split: Any) -> None:
    data = read_data(many(), target=["bond:bde", "graph:size"], scaffolds=True)
    found = parts_of(data, DataSettings(split=split), {"edge": ["bde"], "graph": ["size"]})
    assert found["edge"] == found["graph"]
    assert sum(len(rows) for rows in found["edge"].values()) == 20


def test_a_stated_split_of_molecules_or_of_bonds() -> None:
    words = ["train"] * 12 + ["valid"] * 4 + ["test"] * 4
    expected = {"train": set(range(1, 13)), "validation": set(range(13, 17)), "test": set(range(17, 21))}
    for tables in (many(split=words), many(set=words), many(of_bond=words)):
        data = read_data(tables, target="bond:bde")
        assert parts_of(data, DataSettings(), {"edge": ["bde"]}) == {"edge": expected}
    data = read_data(many(of_bond=words), target="bond:bde")
    named = DataSettings(split="column", split_column="set")
    assert parts_of(data, named, {"edge": ["bde"]}) == {"edge": expected}


def test_a_molecule_in_two_parts_is_refused() -> None:
    tables = many(of_bond=["train"] * 20)
    bonds = tables.frames()["edges"]
    bonds.loc[1, "set"] = "test"
    data = read_data(tables, target="bond:bde")
    with pytest.raises(
        DataError, match=r"bonds\.csv, column set: the molecule of row 1 is in train and test, expected one"
    ):
        split_rows(data, {"edge": ["bde"]}, DataSettings(), 0)


def test_statistics_come_from_molecules_of_training_bonds() -> None:
    data = read_data(many(), target="bond:bde", features="paper")
    chosen, _ = data._training_rows({"edge": np.array([0, 1, 2])}, None)
    assert chosen["graphs"].tolist() == [0, 1]


def test_one_table_with_a_row_for_each_bond_is_enough(tmp_path: Path) -> None:
    rows = {"smiles": ["CCO", "CC", "CCO"], "bond_index": [1, 0, 7], "bde": [1.0, 2.0, 3.0]}
    pd.DataFrame(rows).to_csv(tmp_path / "bde.csv", index=False)
    data = load_data(tmp_path / "bde.csv", target="bond:bde")
    assert labels_of(data) == {(1, 1): 1.0, (2, 0): 2.0}
    assert errors_of(data)[0].startswith("bde.csv, row 3, column bond_index: 'CCO' has no bond 7")
    assert labels_of(load_data(tmp_path / "bde.csv", schema=data.schema)) == labels_of(data)


def test_every_column_that_is_left_and_the_kinds_that_the_user_says() -> None:
    bonds = {
        "molecule": ["CCO", "CCO"],
        "bond_index": [0, 1],
        "bde": ["1,5", "2,5"],
        "bdfe": [1.5, 2.5],
        "set": ["train"] * 2,
    }
    data = read(bonds, target="bond:*", overrides={"bonds.bde": "drop"})
    assert data.schema.targets["edges"] == ["bdfe"]
    data = read(bonds, target="bond:bde", overrides={"bonds.bde": "decimal-comma"})
    assert data.schema.edges.notations == {"bde": "comma"}
    with pytest.raises(DataError, match="did you mean bond:bdfe or bond:bde"):
        read(bonds, target="bond:bdf")


def test_lists_that_fit_no_molecule_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"no list is of the bonds of its molecule; the first: .*the list has 9 entries"
    ):
        load_data(molecules(bde=[[0.5] * 9, None, None]), target="bond:bde")


def test_names_behind_smiles_are_not_compared() -> None:
    graphs = pd.DataFrame({"smiles": ["CCO ethanol", " CC"]})
    data = read({"molecule": ["CCO", "CC ethane"], "bond_index": [0, 0], "bde": [1.0, 2.0]}, graphs=graphs)
    assert labels_of(data) == {(1, 0): 1.0, (2, 0): 2.0}
    assert data.tables.frames()["edges"]["molecule"].iloc[0] == "CCO ethanol"


def test_a_column_of_the_user_that_has_the_name_of_one_of_the_answer_is_kept() -> None:
    bonds = {"molecule": ["CCO", "CCO"], "bond_index": [0, 9], "bond_type": ["C-C", "?"], "bde": [1.0, 2.0]}
    frame = read(bonds).tables.frames()["edges"]
    assert frame["bond_type"].iloc[0] == "single"
    assert frame["bond_type_"].dropna().tolist() == ["C-C", "?"]


def test_molecules_without_bonds_and_empty_lists() -> None:
    graphs = pd.DataFrame({"smiles": ["C", "CC", "[Na+].[Cl-]"], "bde": ["[]", "[2.5]", "[]"]})
    data = load_data(graphs, target="bond:bde")
    assert labels_of(data) == {(2, 0): 2.5}
    assert not errors_of(data)


def test_large_tables_are_joined_by_columns() -> None:
    texts = ["C" * length for length in range(2, 40)] * 50
    graphs = pd.DataFrame({"smiles": texts, "id": [f"m{number}" for number in range(len(texts))]})
    rows = [(f"m{number}", place) for number, text in enumerate(texts) for place in range(len(text) - 1)]
    bonds = pd.DataFrame(rows, columns=["molecule", "bond_index"]).sample(frac=1, random_state=0)
    bonds["bde"] = bonds["bond_index"] + 0.5
    data = read(bonds.to_dict("list"), graphs=graphs)
    frame = data.tables.frames()["edges"]
    assert len(frame) == len(bonds) == data.count("edge")
    assert (frame["bde"].to_numpy() == frame["bond_index"].to_numpy() + 0.5).all()
