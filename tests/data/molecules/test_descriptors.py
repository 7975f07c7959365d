"""Descriptors of whole molecules: rdkit's own values, and features that stay finite whatever the molecule."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Descriptors

from censnet.data import DataError, Dataset, Tables, load_data
from censnet.data.load import read_data
from censnet.data.molecules import atoms_and_bonds as chemistry
from censnet.data.molecules.descriptors import FARTHEST, describe, encode_descriptors, fit_descriptors
from censnet.data.tables.schema import Schema
from censnet.ops.graph_set import GraphSet

CHAINS = ["C" * length + end for length in range(1, 9) for end in ("O", "N", "C(=O)O", "c1ccccc1")]


def read(smiles: list[str] = CHAINS, **more: object) -> Dataset:
    frame = pd.DataFrame({"smiles": smiles, "label": np.arange(len(smiles)) % 2})
    return load_data(Tables(graphs=frame), target="graph:label", descriptors=True, **more)  # type: ignore[arg-type]


def wholes(data: Dataset) -> torch.Tensor:
    assert isinstance(data.graph, GraphSet)
    assert data.graph.graph_features is not None
    return data.graph.graph_features


def test_descriptors_of_ethanol_are_rdkit_s() -> None:
    (row,) = describe(["OCC"]).to_dict("records")
    expected = Descriptors.CalcMolDescriptors(Chem.MolFromSmiles("CCO"))
    assert list(row) == list(expected), "all of them, in rdkit's order"
    assert row == pytest.approx(expected)
    assert row["MolWt"] == pytest.approx(46.069)
    assert row["NumHDonors"] == 1


@pytest.mark.slow
def test_features_are_compressed_and_scaled_by_training_rows_alone() -> None:
    rows = np.arange(0, len(CHAINS), 2)
    data = read(train_rows=rows)
    place = data.schema.descriptors.names.index("MolWt")
    weight = np.log1p(describe(CHAINS, ["MolWt"])["MolWt"].to_numpy())
    expected = (weight - weight[rows].mean()) / weight[rows].std()
    torch.testing.assert_close(wholes(data)[:, place], torch.from_numpy(expected).float().clamp(-FARTHEST, FARTHEST))
    others = [smiles if row % 2 == 0 else "C" * 60 + "S(=O)(=O)O" for row, smiles in enumerate(CHAINS)]
    changed = read(others, train_rows=rows)
    assert changed.schema == data.schema
    assert wholes(changed)[rows].equal(wholes(data)[rows])


@pytest.mark.slow
def test_typed_data_are_encoded_with_any_training_rows() -> None:
    rows = np.arange(3, 20)
    frame = pd.DataFrame({"smiles": CHAINS, "label": np.arange(len(CHAINS)) % 2})
    typed = read_data(Tables(graphs=frame), target="graph:label", descriptors=True)
    encoded, direct = typed.encode({"graph": rows}), read(train_rows=rows)
    assert encoded.schema == direct.schema
    assert encoded.schema != read().schema
    assert wholes(encoded).equal(wholes(direct))
    assert wholes(typed.encode()).equal(wholes(read()))


def test_a_stored_schema_computes_the_same_descriptors() -> None:
    data = read(train_rows=np.arange(9))
    schema = Schema.from_json(data.schema.to_json())
    again = load_data(pd.DataFrame({"smiles": CHAINS[5:8]}), schema=schema)
    assert wholes(again).equal(wholes(data)[5:8])
    assert any(column.kind == "constant" for column in schema.descriptors.columns), "what never changes is no feature"
    assert wholes(data).shape[1] == schema.descriptors.width < len(schema.descriptors.columns)


@pytest.mark.slow
@pytest.mark.parametrize(
    "smiles",
    [
        pytest.param("C" * chemistry.WITH_DESCRIPTORS, id="Ipc of 1e100"),
        pytest.param("C" * (chemistry.WITH_DESCRIPTORS + 1), id="too large"),
        "C",
        "[Na+]",
        "[Na+].[Cl-]",
        "[U](F)(F)(F)(F)(F)F",
        "[H][H]",
        "[Fe+2].[cH-]1cccc1.[cH-]1cccc1",
    ],
)
def test_hostile_molecules_stay_finite_and_near(smiles: str) -> None:
    for data in (load_data(pd.DataFrame({"smiles": [smiles]}), schema=read().schema), read([*CHAINS, smiles])):
        assert bool(wholes(data).isfinite().all())
        assert float(wholes(data).abs().max()) <= FARTHEST
        assert not data.problems


def test_a_value_that_is_missing_becomes_the_mean() -> None:
    described = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [0.0, 0.0, 0.0]})
    schema = fit_descriptors(described, np.arange(3))
    assert schema.names == ["a"]
    torch.testing.assert_close(encode_descriptors(schema, described), torch.tensor([[-1.0], [1.0], [0.0]]))


def test_what_is_no_molecule_is_no_statistic() -> None:
    bad = read(["C1CC", *CHAINS, "no molecule"])
    assert bad.schema.descriptors == read().schema.descriptors
    assert wholes(bad).equal(wholes(read()))


def test_infinite_values_count_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> float:
        raise RuntimeError("no parameters")

    wild = {"Ipc": lambda _: np.inf, "BalabanJ": lambda _: np.nan, "BCUT2D_MWHI": fail, "MolWt": lambda _: 16.0}
    monkeypatch.setattr(chemistry, "_descriptors", lambda: wild)
    assert describe(["C"]).isna().to_numpy().tolist() == [[True, True, True, False]]


def test_without_the_flag_there_are_none() -> None:
    data = load_data(pd.DataFrame({"smiles": CHAINS}))
    assert data.graph.graph_width == 0
    assert "descriptors" not in data.schema.to_json()


def test_graphs_that_are_no_molecules_have_no_descriptors() -> None:
    edges = pd.DataFrame({"source": [1, 2], "target": [2, 3]})
    for data in (edges, "karate", load_data(edges).graph, load_data(pd.DataFrame({"smiles": CHAINS})).graph):
        with pytest.raises(DataError, match=r"data\.descriptors\), expected molecules: there is no table of SMILES"):
            load_data(data, descriptors=True)


def test_a_descriptor_that_this_rdkit_lacks_is_named() -> None:
    with pytest.raises(ValueError, match=r"has no descriptor 'Magic', expected it as in training"):
        describe(["C"], ["MolWt", "Magic"])
