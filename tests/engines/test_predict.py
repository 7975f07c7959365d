"""Predictions of an engine are those in memory, at every level and for every kind of layer that it computes."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from engine_samples import check_equal, each_twice, strong, tangled, with_bad_rows, with_gaps, write
from samples import payments, quick, shapes

from censnet import train
from censnet.data.tables.files import Tables
from censnet.engines import predict_files
from censnet.errors import ArgumentError, DataError, RunError

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def run():
    return train(tangled(), "edge:fee", settings=quick(training__epochs=2))


@pytest.mark.slow
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("target", ["edge:fraud", "edge:fee"])
def test_the_default_recipe_of_edges(target: str, directed: bool, tmp_path: Path) -> None:
    changes = strong(model__label_counts=True, model__triangles=True)
    run = train(tangled(), target, settings=changes, directed=directed)
    assert run.config.settings.model.known_labels
    check_equal(run, write(with_gaps(tangled()), tmp_path / "gaps"), tmp_path / "one.parquet")
    check_equal(run, write(tangled(), tmp_path / "whole", "parquet"), tmp_path / "two.parquet", known_labels=False)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_that_cannot_be_used_have_the_same_errors(run, form: str, tmp_path: Path) -> None:
    data = write(with_bad_rows(tangled()), tmp_path / "bad", form)
    found = check_equal(run, data, tmp_path / "out.parquet")
    assert found["error"].notna().sum() == 3
    assert found["error"][9].startswith(f"edges.{form}, row 10, column target: no node has the id 'nobody' (nodes")
    nodes = train(tangled(), "node:wealth", settings=strong(model__known_labels=True))
    errors = check_equal(nodes, data, tmp_path / "nodes.parquet")["error"].dropna()
    assert errors.iloc[-1].endswith("column id: the id 'a2' is in row 3 already")


@pytest.mark.slow
def test_nodes_with_many_labels_and_with_few(tmp_path: Path) -> None:
    data = write(with_gaps(tangled()), tmp_path / "data")
    few = train(tangled(), "node:vip", settings=strong())
    assert few.config.settings.model.kernel == "pagerank"
    check_equal(few, data, tmp_path / "few.parquet")
    layers = {"model__layers": "ENEN", "model__kernel": "hop", "model__kernel_options": {}, "model__pre_layers": 1}
    more = {"model__self_weight": "learned", "model__last_layer_is_head": False, "model__known_labels": True}
    more |= {"model__directed": True, "model__structural_features": True, "model__label_counts": True}
    check_equal(
        train(tangled(), "node:vip", settings=strong(**layers, **more)), data, tmp_path / "many.parquet", coverage=0.5
    )


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["paper", "released"])
@pytest.mark.parametrize("target", ["node:vip", "edge:sort"])
def test_published_layers_on_edges_that_are_there_twice(preset: str, target: str, tmp_path: Path) -> None:
    data = write(each_twice(tangled()), tmp_path / "data")
    run = train(str(data), target, preset=preset, settings={"training.epochs": 2})
    assert run.schema.edge_form == "twice"
    check_equal(run, data, tmp_path / "out.parquet")


@pytest.mark.slow
def test_known_labels_of_edges_that_are_there_twice(tmp_path: Path) -> None:
    data = write(each_twice(with_gaps(payments())), tmp_path / "data")
    run = train(each_twice(payments()), "edge:fraud", settings=strong(model__label_counts=True))
    check_equal(run, data, tmp_path / "out.parquet")
    rest = pd.read_csv(data / "edges.csv").iloc[:-1]
    rest.to_csv(data / "edges.csv", index=False)
    predict_files(run, data, tmp_path / "rest.parquet")
    errors = pd.read_parquet(tmp_path / "rest.parquet")["error"].dropna()
    assert len(errors) == 1
    assert "expected each edge twice, once in each direction, as in training: add that row" in errors.iloc[0]


@pytest.mark.slow
@pytest.mark.parametrize("pool", [["mean", "sum"], ["mean"]])
def test_graphs(pool: object, tmp_path: Path) -> None:
    tables = shapes(30)
    settings = strong(model__pool=pool, model__layers="NEN")
    run = train(tables, "graph:weight", settings=settings)
    data = write(tables, tmp_path / "data")
    check_equal(run, data, tmp_path / "out.parquet")
    graphs = pd.read_csv(data / "graphs.csv")
    pd.concat([graphs, graphs.tail(1).assign(graph="empty"), graphs.head(1)]).to_csv(data / "graphs.csv", index=False)
    found = check_equal(run, data, tmp_path / "bad.parquet")
    assert found["error"].notna().sum() == 2
    (data / "graphs.csv").unlink()
    found = check_equal(run, data, tmp_path / "made.parquet")
    assert list(found["graph"]) == [f"g{number}" for number in range(30)]
    check_equal(
        train(tables, "node:warm", settings=quick(training__epochs=2)), data, tmp_path / "nodes.parquet", keep="ids"
    )


@pytest.mark.slow
def test_edges_alone_and_the_mean_of_an_ensemble(tmp_path: Path) -> None:
    edges = Tables(edges=tangled().frames()["edges"])
    run = train(edges, "edge:fraud", settings=strong(model__known_labels=False), ensemble=2)
    data = write(edges, tmp_path / "data")
    found = check_equal(run, data / "edges.csv", tmp_path / "out.parquet")
    assert "fraud_std_1" in found


def test_a_csv_file_of_predictions_reads_as_that_in_memory(run, tmp_path: Path) -> None:
    data = write(tangled(), tmp_path / "data")
    written = predict_files(run, data, tmp_path / "out.csv", keep="ids")
    assert written == (tmp_path / "out.csv", 120, 0)
    expected = run.predict(str(data), keep="ids")
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns) == list(expected.columns)
    pd.testing.assert_series_equal(found["fee_predicted"], expected["fee_predicted"], rtol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out.csv"]  # nothing of the work is left


def test_damaged_input_is_one_line_and_leaves_nothing(run, tmp_path: Path) -> None:
    data = write(tangled(), tmp_path / "data", "parquet")
    content = (data / "edges.parquet").read_bytes()
    (data / "edges.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"edges\.parquet: is not a Parquet file that can be read"):
        predict_files(run, data, tmp_path / "out.parquet")
    (data / "edges.parquet").write_bytes(content)
    without = pd.read_parquet(data / "edges.parquet").drop(columns="amount")
    without.to_parquet(data / "edges.parquet")
    with pytest.raises(DataError, match=r"edges\.parquet, column amount: is missing, expected a number as in training"):
        predict_files(run, data, tmp_path / "out.parquet")
    (data / "edges.parquet").unlink()
    tangled().frames()["edges"].to_csv(data / "edges.csv", index=False)
    with (data / "edges.csv").open("a") as file:
        file.write("a1,a2\n")
    with pytest.raises(DataError, match=r"edges\.csv, row 121: has 2 fields, expected 7"):
        predict_files(run, data, tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_wrong_arguments_are_refused_before_any_work(run, tmp_path: Path) -> None:
    data = write(tangled(), tmp_path / "data")
    for options, message in (
        ({"engine": "abacus"}, "engine is 'abacus', expected one of duckdb"),
        ({"level": "node"}, "level is 'node', expected edge: this run predicts no other"),
    ):
        with pytest.raises(ArgumentError, match=message):
            predict_files(run, data, tmp_path / "out.csv", **options)
    with pytest.raises(DataError, match="karate: there is no such file or folder, expected one: engine duckdb reads"):
        predict_files(run, "karate", tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"out\.json: expected a name that ends in \.csv, \.tsv, \.parquet or \.pq"):
        predict_files(run, data, tmp_path / "out.json")
    with pytest.raises(RunError, match="memory_limit is '4 apples', expected a size such as 4GiB, at least 256MiB"):
        predict_files(run, data, tmp_path / "out.csv", memory_limit="4 apples")
    with pytest.raises(DataError, match=r"nodes\.csv, row 5, column age: 'old' is not a finite number"):
        predict_files(run, write(with_bad_rows(tangled()), tmp_path / "bad"), tmp_path / "out.csv", strict=True)


def test_a_full_disk_is_one_line(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write(tangled(), tmp_path / "data")
    replace = os.replace

    def full(*arguments: object, **keywords: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DataError, match=r"out\.csv: cannot be written: No space left on device"):
        predict_files(run, data, tmp_path / "out.csv")
    monkeypatch.setattr(os, "replace", replace)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
