"""Which rows are learnt from: every way to say it, and that nothing learns from rows it is judged on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick, shapes, smiles

from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run


def parts(run) -> dict[str, int]:
    return run.splits["split"].value_counts().to_dict()


@pytest.mark.parametrize("split", ["ratio", "stratified"])
def test_fractions_are_those_asked_for(split):
    settings = quick(data__split=split, data__fractions=(0.5, 0.25, 0.25))
    prepared = prepare(payments(40, 100), "edge:sort", "strong", settings, 0)
    sizes = [len(part) for part in prepared.splits["edge"].parts.values()]
    assert sum(sizes) == 100
    np.testing.assert_allclose(sizes, [50, 25, 25], atol=3)


@pytest.mark.slow
def test_a_column_of_the_table_can_say_it():
    data = payments()
    said = np.resize(["train", "val", "test"], len(data.nodes))
    data = Tables(data.nodes.assign(split=said, fold=np.roll(said, 1)), data.edges)
    for settings, column in ((quick(), "split"), (quick(data__split="column", data__split_column="fold"), "fold")):
        run = train(data, "node:vip", settings=settings | {"training.epochs": 1})
        stored = run.predictions["node"]["split"].replace({"validation": "val"})
        assert stored.tolist() == data.nodes[column].tolist()


def test_time_puts_the_latest_rows_last():
    data = payments()
    when = pd.date_range("2020-01-01", periods=len(data.edges), freq="h")[::-1]
    data = Tables(data.nodes, data.edges.assign(when=when))
    settings = quick(data__split="time", data__split_column="when", training__epochs=1)
    run = train(data, "edge:fraud", settings=settings)
    stored = run.predictions["edge"]["split"]
    assert when[stored == "train"].max() < when[stored == "validation"].min()
    assert when[stored == "validation"].max() < when[stored == "test"].min()
    with pytest.raises(ValueError, match=r"data\.split_column is not set, expected a column of edges: source, target"):
        train(data, "edge:fraud", settings=quick(data__split="time"))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["node:tier", ["edge:fraud", "link"]])
def test_a_split_of_an_earlier_run_is_taken_over(target, tmp_path):
    first = train(payments(), target, tmp_path / "a", settings=quick(training__epochs=1), seed=3)
    settings = quick(data__split="file", data__split_file=str(tmp_path / "a" / "splits.csv"), training__epochs=1)
    second = train(payments(), target, settings=settings, seed=8)
    pd.testing.assert_frame_equal(second.splits, first.splits)
    with pytest.raises(ValueError, match=r"data\.split_file is not set"):
        train(payments(), target, settings=quick(data__split="file"))


def test_few_labels_for_each_class():
    settings = quick(data__split="label-rate", data__label_rate=0.2)
    prepared = prepare(payments(60, 100), "node:tier", "strong", settings, 0)
    train_rows = prepared.splits["node"].train
    tiers = prepared.data.labels("node", "tier").iloc[train_rows.numpy()]
    assert tiers.value_counts().tolist() == [4, 4, 4]  # round(0.2 * 60 / 3)


def test_scaffolds_keep_molecules_of_one_skeleton_together():
    pytest.importorskip("rdkit")
    rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCOC1", "c1ccsc1"]
    frame = pd.DataFrame({"smiles": [ring + "C" * n for ring in rings for n in range(8)]})
    frame["long"] = [n > 3 for _ in rings for n in range(8)]
    run = train(frame, "graph:long", settings=quick(data__split="scaffold", training__epochs=1))
    assert run.config.split["graph"].startswith("scaffolds, seed 0 (")
    part = run.predictions["graph"]["split"].to_numpy().reshape(len(rings), 8)
    assert all(len(set(row)) == 1 for row in part)
    with pytest.raises(ValueError, match=r"data\.split is scaffold, expected molecules"):
        train(payments(), "node:vip", settings=quick(data__split="scaffold"))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["node:warm", "edge:length"])
def test_rows_of_a_graph_go_with_their_graph(target):
    run = train(shapes(20), target, settings=quick(training__epochs=1))
    stored = run.predictions[target.split(":")[0]]
    assert (stored.groupby("graph")["split"].nunique() == 1).all()
    assert set(stored["split"]) == {"train", "validation", "test"}


def test_the_split_has_a_seed_of_its_own():
    def splits(seed: int, **change: object) -> list[str]:
        prepared = prepare(payments(), "edge:fraud", "strong", quick(**change), seed)
        return prepared.splits["edge"].train.tolist()

    assert splits(0) != splits(1)
    assert splits(0, data__split_seed=7) == splits(1, data__split_seed=7)


def test_statistics_come_from_training_rows_alone():
    data = payments()
    prepared = prepare(data, "edge:fee", "strong", quick(), 0)
    rows = prepared.splits["edge"].train.numpy()
    fee = data.edges["fee"].iloc[rows]
    assert prepared.targets[0].mean == pytest.approx(fee.mean())
    assert prepared.targets[0].scale == pytest.approx(fee.std(ddof=0))
    amount = next(column for column in prepared.data.schema.edges.columns if column.name == "amount")
    values = data.edges["amount"].iloc[rows]
    assert (amount.mean, amount.scale) == (pytest.approx([values.mean()]), pytest.approx([values.std(ddof=0)]))


def test_labels_that_are_missing_everywhere_or_in_training_are_said():
    data = payments()
    none = Tables(data.nodes.assign(vip=None), data.edges)
    with pytest.raises(ValueError, match="vip"):
        train(none, "node:vip", settings=quick())
    said = np.where(np.arange(len(data.nodes)) < 5, "validation", "test")
    with pytest.raises(ValueError, match="no node row with a label is for training, expected some"):
        train(Tables(data.nodes.assign(split=said), data.edges), "node:vip", settings=quick())
    with pytest.raises(ValueError, match="the data are one graph, expected many"):
        train(Tables(data.nodes, data.edges, pd.DataFrame({"graph": [0], "y": [1]})), "graph:y", settings=quick())


def test_what_is_hidden_as_a_link_is_not_seen():
    prepared = prepare(payments(), ["edge:fraud", "link"], "strong", quick(), 0)
    assert prepared.links is not None
    seen = {tuple(pair) for pair in prepared.task_data.graph.ends.t().tolist()}  # the edge back may be seen
    for pairs in (prepared.links.validation_links, prepared.links.test_links):
        assert seen.isdisjoint(tuple(pair) for pair in pairs.t().tolist())
    assert len(prepared.task_data.labels["edge"]) == prepared.task_data.graph.num_edges
    labels = prepared.data.labels("edge", "fraud")
    rows = prepared.data.rows("edge")
    for row in prepared.splits["edge"].train.tolist()[:20]:
        place = (prepared.links.rows.train == rows[row]).nonzero().item()
        assert prepared.task_data.labels["edge"][place, 0] == labels.iloc[row]
        assert prepared.task_data.parts["edge"][place, 0] == 0


@pytest.mark.slow
def test_a_run_remembers_its_parts_by_the_users_ids(tmp_path):
    run = train(payments(), "node:vip", tmp_path / "run", settings=quick(training__epochs=1))
    back = load_run(tmp_path / "run")
    assert back.splits["id"].tolist() == run.splits["id"].astype(str).tolist()
    assert parts(back) == parts(run)
    assert torch.equal(run.split("node").train, back.split("node").train)


def test_molecules_are_split_too():
    pytest.importorskip("rdkit")
    run = train(smiles(), "graph:acid", settings=quick(training__epochs=1))
    assert parts(run) == {"train": 32, "validation": 4, "test": 4}


@pytest.mark.slow
def test_a_training_says_where_its_split_came_from_and_keeps_it(tmp_path, caplog):
    data = payments()
    with caplog.at_level("INFO", "censnet"):
        train(data, ["node:tier", "edge:fraud", "link"], tmp_path / "a", settings=quick(training__epochs=1), seed=3)
    kept = load_run(tmp_path / "a").config.split
    assert kept["node"] == "drawn at random, stratified, seed 3 (24 train, 3 validation, 3 test)"
    assert kept["link"].startswith("drawn at random, seed 3 (")
    for level, table in (("node", "nodes"), ("edge", "edges"), ("link", "links")):
        assert f"split of {table}: {kept[level]}" in caplog.messages
    settings = quick(data__split="file", data__split_file=str(tmp_path / "a" / "splits.csv"))
    prepared = prepare(data, ["node:tier", "link"], "strong", settings, 0)
    assert [source.partition(" (")[0] for source in prepared.split_sources.values()] == ["file splits.csv"] * 2


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        ({"data.split": "time", "data.split_column": "age"}, "by time, column age of nodes"),
        ({"data.split": "ratio"}, "drawn at random, seed 0"),
        ({"data.split": "label-rate", "data.label_rate": 0.2}, "drawn at random, label rate 0.2, seed 0"),
        ({"data.split": "ratio", "data.split_seed": 7}, "drawn at random, seed 7"),
    ],
)
def test_each_way_to_split_has_its_words(settings, source):
    prepared = prepare(payments(60, 100), "node:tier", "strong", quick() | settings, 0)
    assert prepared.splits["node"].source == source


def test_a_column_that_is_the_split_is_neither_a_feature_nor_called_unused():
    frame = smiles().assign(split=np.resize(["train", "val", "test"], 40), fold=np.resize(["test", "val", "train"], 40))
    pytest.importorskip("rdkit")
    prepared = prepare(frame, "graph:acid", "strong", quick(), 0)
    assert [note for note in prepared.data.notes if "not used" in note] == [
        "the table: size, fold not used: a molecule is described by its atoms and bonds alone"
    ]
    asked = quick(data__split="column", data__split_column="fold")
    prepared = prepare(frame, "graph:acid", "strong", asked, 0)
    assert [note for note in prepared.data.notes if "not used" in note] == [
        "the table: size not used: a molecule is described by its atoms and bonds alone"
    ]
    data = payments()
    stated = Tables(data.nodes.assign(fold=np.resize(["train", "val", "test"], len(data.nodes))), data.edges)
    prepared = prepare(stated, "node:vip", "strong", asked, 0)
    assert not [name for name in prepared.data.schema.nodes.names if "fold" in name]
    assert prepared.splits["node"].source == "column fold of nodes"


def test_an_error_of_a_target_names_its_file(tmp_path):
    for table, frame in payments().frames().items():
        frame.assign(day="2024-01-31").to_csv(tmp_path / f"{table}.csv", index=False)
    with pytest.raises(DataError, match=r"nodes\.csv, column day: holds dates"):
        prepare(tmp_path, "node:day")


@pytest.mark.parametrize("target", ["node:id", "edge:source", "edge:target"])
def test_what_says_who_a_row_is_is_no_target(target):
    column = target.partition(":")[2]
    with pytest.raises(DataError, match=f"column {column}: is the {column} of each row, expected labels"):
        prepare(payments(), target)


def test_labels_that_are_arrays_are_refused_by_their_column():
    data = payments()
    nodes = data.nodes.assign(odd=pd.Series([np.eye(2)] * len(data.nodes), dtype=object))
    with pytest.raises(DataError, match="column odd: holds ndarray, expected one number or one class in each row"):
        prepare(Tables(nodes, data.edges), "node:odd")
