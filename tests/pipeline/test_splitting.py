"""Splits that the data state: every form of masks, and what is wrong with one said with names and counts."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from rich.console import Console
from samples import payments, quick
from torch_geometric.data import Batch, Data

from censnet.cli.render_run import run_screen
from censnet.data import load_data
from censnet.data.splits.split_file import PARTS
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.pipeline import inspect_data, train
from censnet.pipeline.splitting import split_rows
from censnet.settings.schema import DataSettings

NODES, EDGES = 40, 100


def graph(**attributes: object) -> Data:
    generator = torch.Generator().manual_seed(1)
    found = {
        "x": torch.randn(NODES, 3, generator=generator),
        "edge_index": torch.randint(0, NODES, (2, EDGES), generator=generator),
        "y": torch.arange(NODES) % 2,
    }
    return Data(**(found | attributes))


def mask(*rows: int, size: int = NODES) -> torch.Tensor:
    found = torch.zeros(size, dtype=torch.bool)
    found[list(rows)] = True
    return found


def parts(data: object, target: str = "node:y", **settings: object) -> dict[str, list[int]]:
    """The rows of each part, and where they came from."""
    level, column = target.split(":")
    dataset = load_data(data, target=target)
    split = split_rows(dataset, {level: [column]}, DataSettings(**settings), 0)[level]
    return {name: rows.tolist() for name, rows in split.parts.items()} | {"source": split.source}


TRAIN, VALIDATION, TEST = range(10), range(10, 20), range(20, 30)


@pytest.mark.parametrize("form", [torch.Tensor.bool, torch.Tensor.byte, torch.Tensor.long, torch.Tensor.float])
@pytest.mark.parametrize("shape", [(NODES,), (NODES, 1)])
def test_masks_are_the_split_also_where_rows_are_in_none(form, shape):
    masks = {
        name: form(mask(*rows)).reshape(shape)
        for name, rows in (("train_mask", TRAIN), ("val_mask", VALIDATION), ("test_mask", TEST))
    }
    found = parts(graph(**masks))
    assert [found[part] for part in PARTS] == [list(TRAIN), list(VALIDATION), list(TEST)]
    assert found["source"] == "masks of the data, train_mask, val_mask, test_mask"


def test_validation_rows_are_drawn_from_training_rows_where_no_mask_has_them():
    found = parts(graph(train_mask=mask(*range(20)), test_mask=mask(*range(30, 40))))
    assert sorted(found["train"] + found["validation"]) == list(range(20))
    assert len(found["validation"]) == 2
    assert found["test"] == list(range(30, 40))
    assert "validation drawn from the training rows, stratified, seed 0" in found["source"]
    every = parts(graph(train_mask=mask(*range(20)), test_mask=mask(30)), fractions=(0.9, 0.0, 0.1))
    assert (every["train"], every["validation"]) == (list(range(20)), [])


def test_all_other_rows_train_where_only_test_rows_are_masked():
    found = parts(graph(test_mask=mask(*range(20, 40))))
    assert found["test"] == list(range(20, 40))
    assert sorted(found["train"] + found["validation"]) == list(range(20))
    assert found["validation"]
    assert "all other rows train; validation drawn from those" in found["source"]


def test_all_other_rows_test_where_only_training_rows_are_masked():
    found = parts(graph(train_mask=mask(*range(20))))
    assert found["test"] == list(range(20, 40))
    assert "all other rows test" in found["source"]


def test_no_test_rows_are_made_up_beside_training_and_validation():
    found = parts(graph(train_mask=mask(*TRAIN), val_mask=mask(*VALIDATION)))
    assert [found[part] for part in PARTS] == [list(TRAIN), list(VALIDATION), []]


def test_a_class_with_one_masked_row_stays_in_training():
    found = parts(graph(y=torch.arange(NODES) % 4, train_mask=mask(0, 1, 2, 3)))
    assert (found["train"], found["validation"]) == ([0, 1, 2, 3], [])


def test_masks_of_several_splits_need_a_choice():
    wide = {
        "train_mask": torch.stack([mask(*range(20)), mask(*range(20, 40))], 1),
        "val_mask": torch.stack([mask(*range(20, 30)), mask(*range(10))], 1),
        "test_mask": mask(*[]),
    }
    with pytest.raises(DataError, match=r"train_mask has 2 columns, each of them a split, .*'data.split_index': 0"):
        parts(graph(**wide))
    with pytest.raises(DataError, match=r"data\.split_index is 2, expected one from 0 to 1"):
        parts(graph(**wide), split_index=2)
    found = parts(graph(**wide), split_index=1)
    assert (found["train"], found["validation"]) == (list(range(20, 40)), list(range(10)))
    assert found["source"].startswith("number 1 of 2 in the masks of the data")


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (
            {"train_mask": mask(*range(22)), "test_mask": mask(*range(20, 40))},
            "train_mask and test_mask have 2 rows in ",
        ),
        ({"train_mask": torch.arange(NODES)}, "nodes, row 3, column train_mask: 2 is neither 0 nor 1"),
        ({"train_mask": mask(0, size=30)}, r"train_mask has shape \(30,\), expected .* 40 nodes, 100 edges"),
        ({"val_mask": mask(0), "valid_mask": mask(1)}, "val_mask and valid_mask are both masks of validation rows"),
        ({"train_mask": mask(0), "split": ["train"] * NODES}, "has split, train_mask, which all state a split"),
        ({"train_idx": torch.arange(5)}, "data has train_idx, expected masks of a split: give train_mask ="),
        ({"train_mask": torch.zeros(NODES, 2), "val_mask": torch.zeros(NODES, 3)}, "train_mask has 2, val_mask has 3"),
    ],
)
def test_masks_that_cannot_be_are_refused_with_names_and_counts(masks, message):
    with pytest.raises(DataError, match=message):
        parts(graph(**masks))


def test_masks_of_edges_are_known_by_name_or_by_length():
    first, last = mask(*range(50), size=EDGES), mask(*range(50, 100), size=EDGES)
    for masks in ({"edge_train_mask": first, "edge_test_mask": last}, {"train_mask": first, "test_mask": last}):
        found = parts(graph(edge_y=torch.arange(EDGES) % 2, **masks), "edge:edge_y")
        assert found["test"] == list(range(50, 100))


def test_masks_of_a_list_of_graphs_are_read_for_nodes_and_for_graphs():
    each = [graph(train_mask=mask(*range(20)), test_mask=mask(*range(20, 40))) for _ in range(3)]
    assert parts(each)["test"] == [40 * number + row for number in range(3) for row in range(20, 40)]
    assert parts(Batch.from_data_list(each))["test"] == parts(each)["test"]
    whole = [graph(z=torch.tensor([number % 2]), test_mask=torch.tensor([number >= 7])) for number in range(10)]
    assert parts(whole, "graph:z")["test"] == [7, 8, 9]
    nodes = parts(whole)  # they go with their graphs
    assert nodes["test"] == list(range(7 * NODES, 10 * NODES))
    assert nodes["source"].startswith("graphs by masks of the data, test_mask")


def test_networkx_and_tables_state_it_alike():
    club = nx.karate_club_graph()
    nx.set_node_attributes(club, {node: node < 20 for node in range(0, 34, 2)}, "train_mask")  # others have none
    assert parts(club, "node:club")["test"] == [node for node in range(34) if node % 2 or node >= 20]
    nx.set_node_attributes(club, "train", "split")
    with pytest.raises(DataError, match="has split, train_mask, which all state a split"):
        parts(club, "node:club")
    nodes = pd.DataFrame({"id": range(6), "y": [0, 1] * 3, "train_mask": [1, 1, 1, 1, 0, 0], "a": range(6)})
    tables = Tables(nodes, pd.DataFrame({"source": [0, 1], "target": [1, 2]}))
    assert parts(tables)["test"] == [4, 5]
    assert load_data(tables, target="node:y").schema.nodes.names == ["a"]
    features = load_data(tables, target="node:y", overrides={"train_mask": "boolean"})
    assert features.schema.nodes.names == ["train_mask", "a"]
    assert split_rows(features, {"node": ["y"]}, DataSettings(), 0)["node"].source.startswith("drawn at random")


def test_rows_without_a_value_in_the_column_split_are_in_no_part():
    said = ["train"] * 20 + [None] * 10 + ["test"] * 9 + ["val"]
    nodes = pd.DataFrame({"id": range(NODES), "y": [0, 1] * 20, "split": said})
    tables = Tables(nodes, pd.DataFrame({"source": [0, 1], "target": [1, 2]}))
    for settings in ({}, {"split": "column"}):
        found = parts(tables, **settings)
        assert [found[part] for part in PARTS] == [list(range(20)), [39], list(range(30, 39))]
        assert found["source"] == "column split of nodes"
    with pytest.raises(DataError, match="nodes, column split: is empty, expected train, validation or test"):
        parts(Tables(nodes.assign(split=None), tables.edges))


def test_a_split_of_graphs_is_that_of_their_nodes():
    tables = Tables(
        pd.DataFrame({"graph": np.repeat(range(6), 3), "id": list(range(3)) * 6, "y": [0, 1, 1] * 6}),
        pd.DataFrame({"graph": range(6), "source": 0, "target": 1}),
        pd.DataFrame({"graph": range(6), "split": ["train", "test", "val"] * 2}),
    )
    assert parts(tables)["test"] == [3, 4, 5, 12, 13, 14]
    with pytest.raises(
        DataError, match=r"data\.split is stratified, expected auto, random, ratio, column, time or file"
    ):
        parts(tables, split="stratified")


def test_another_split_that_was_asked_for_says_that_the_stated_one_is_not_read():
    found = parts(graph(train_mask=mask(*TRAIN), test_mask=mask(*TEST)), split="ratio")
    assert found["source"] == "drawn at random, seed 0 (train_mask, test_mask not read: data.split is ratio)"


@pytest.mark.slow
def test_what_states_a_split_does_not_say_who_a_row_is_and_rows_in_no_part_are_not_said_to_lack_a_label():
    data = payments()
    masks = {"train_mask": [1] * 12 + [0] * 18, "val_mask": [0] * 24 + [1] * 6}
    run = train(Tables(data.nodes.assign(**masks), data.edges), "node:vip", settings=quick(training__epochs=1))
    assert list(run.splits.columns) == ["table", "row", "split", "id", "digest"]
    assert list(run.predictions["node"].columns[:2]) == ["id", "split"]
    console = Console(width=200)
    with console.capture() as capture:
        console.print(run_screen(run))
    assert "30 nodes: 12 train, 6 validation; 12 in no part or without a label" in capture.get()
    assert "masks of the data, train_mask, val_mask (12 train, 6 validation, 0 test)" in capture.get()


def test_inspect_reads_a_stated_split_and_finds_nothing_wrong_with_parts_that_are_drawn():
    data = payments()
    masks = {"train_mask": [1] * 12 + [0] * 18, "test_mask": [0] * 24 + [1] * 6}
    report = inspect_data(Tables(data.nodes.assign(**masks), data.edges), "node:vip")
    assert report.splits == {"nodes": {"train": 12, "validation": 0, "test": 6}}
    assert not [finding for finding in report.problems if "part" in finding.what]
