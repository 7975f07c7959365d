"""Targets that hold more than one value in a row: a target for each number, or one line that says what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick
from torch_geometric.data import Data

from censnet import load_run, train
from censnet.data import load_data
from censnet.data.tables.files import Tables, write_table
from censnet.errors import DataError


def with_labels(labels: object) -> Tables:
    data = payments()
    return Tables(data.nodes.assign(y=labels), data.edges)


def several() -> Data:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(30, 3, generator=generator)
    ends = torch.randint(0, 30, (2, 60), generator=generator)
    return Data(x=x, edge_index=ends, edge_attr=torch.ones(60, 1), y=(x > 0).long())


@pytest.mark.slow
def test_labels_of_several_columns_are_as_many_targets(tmp_path):
    run = train(several(), "node:y", tmp_path / "run", settings=quick(training__epochs=2))
    assert [target.column for target in run.config.targets] == ["y[0]", "y[1]", "y[2]"]
    again = load_run(tmp_path / "run")
    assert "y[1]_predicted" in again.predict(several())
    assert again.evaluate(several())["test"]["node"]["y[2]/accuracy"] >= 0
    smaller = several().subgraph(torch.arange(20))
    assert again.evaluate(smaller)["all"]["node"]["y[2]/accuracy"] >= 0


def test_one_of_several_columns_can_be_named_and_the_others_are_no_features():
    data = load_data(several(), target="node:y[1]")
    assert data.labels("node", "y[1]").tolist() == several().y[:, 1].tolist()
    assert data.schema.nodes.names == ["x[0]", "x[1]", "x[2]"]
    run = train(several(), "node:y[1]=binary", settings=quick(training__epochs=1))
    assert [target.column for target in run.config.targets] == ["y[1]"]
    with pytest.raises(DataError, match=r"column y\[7\]: is the target, but missing"):
        load_data(several(), target="node:y[7]")


def test_lists_in_parquet_are_such_columns_too(tmp_path):
    labels = [[float(row), row % 2] if row else None for row in range(30)]
    data = with_labels(labels)
    write_table(data.nodes, tmp_path / "nodes.parquet")
    write_table(data.edges, tmp_path / "edges.parquet")
    found = load_data(tmp_path, target="node:y")
    assert found.labels("node", "y[1]").isna().tolist() == [True] + [False] * 29
    arrays = load_data(with_labels([np.array([row, 1.0]) for row in range(30)]), target="node:y")
    assert arrays.labels("node", "y[0]").tolist() == list(range(30))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([{"a": 1, "b": row} for row in range(30)], r"nodes, column y: holds .*, expected one number or one class in"),
        ([{1, row} for row in range(30)], r"nodes, column y: holds \{0, 1\}, expected one number or one class in each"),
        (
            [["a", "b"]] * 30,
            r"nodes, column y: holds list<.*string>, expected one number or one class in each row: give",
        ),
        (
            [[1] * (1 + row % 3) for row in range(30)],
            "nodes, column y: holds lists of 1 to 3 numbers, expected as many",
        ),
        ([[0.0] * 2000] * 30, "nodes, column y: holds lists of 2,000 to 2,000 numbers, expected .* at most 1,000"),
    ],
)
@pytest.mark.parametrize("kind", ["", "=classes", "=number"])
def test_other_targets_are_refused_in_one_line(labels, message, kind):
    with pytest.raises(DataError, match=message) as caught:
        train(with_labels(labels), f"node:y{kind}", settings=quick())
    assert "\n" not in str(caught.value)


def test_structs_in_parquet_are_refused_in_one_line(tmp_path):
    frame = pd.DataFrame({"smiles": ["CC", "CCO"] * 5, "y": [{"a": 1, "b": 2.0}] * 10})
    write_table(frame, tmp_path / "molecules.parquet")
    with pytest.raises(DataError, match=r"molecules.parquet, column y: holds struct<a: .*, expected one number or one"):
        train(tmp_path / "molecules.parquet", "graph:y", settings=quick())
