"""`censnet predict`, `censnet embed` and `censnet evaluate` as a person types them."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import epochs, run, succeed

from censnet.runs import load_run


def test_several_columns_are_shown_one_by_one(place: Path) -> None:
    result = succeed("evaluate", place / "graphs", place / "molecules.csv")
    metrics = load_run(place / "graphs").metrics
    assert "mean of 2 columns" not in result.stdout  # one is a number, the other is not
    shown = next(line for line in result.stdout.splitlines() if line.startswith("  log_loss"))
    assert shown.split()[-3:] == [f"{metrics[part]['graph']['log_loss']:.4f}" for part in metrics]
    assert "1 of 21 rows cannot be used" in result.stderr
    found = json.loads(succeed("evaluate", place / "graphs", place / "molecules.csv", "--json").stdout)
    assert found.keys() == metrics.keys()
    assert found["test"]["graph"]["size/rmse"] == pytest.approx(metrics["test"]["graph"]["size/rmse"], abs=1e-5)


def test_predictions_are_what_the_run_says_in_every_form(place: Path, tmp_path: Path) -> None:
    source, expected = place / "molecules.csv", load_run(place / "graphs").predict(place / "molecules.csv")
    printed = succeed("predict", place / "graphs", source)
    files = [io.StringIO(printed.stdout), tmp_path / "deep" / "er" / "p.csv", tmp_path / "p.parquet"]
    for file in files[1:]:
        said = succeed("predict", place / "graphs", source, "--to", file).stdout
        assert said.replace("\n", "") == f"{file}: 21 rows, 1 of them with an error"
    for file in files:
        frame = pd.read_parquet(file) if str(file).endswith("parquet") else pd.read_csv(file)
        assert list(frame) == list(expected)
        np.testing.assert_allclose(frame["size_predicted"], expected["size_predicted"], rtol=1e-6)
        assert frame["error"].notna().tolist() == [False] * 20 + [True]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["p.csv", "p.parquet"]
    ids = pd.read_csv(io.StringIO(succeed("predict", place / "graphs", source, "--keep", "ids").stdout))
    assert list(ids)[:2] == ["smiles", "size_predicted"]
    strict = run("predict", place / "graphs", source, "--to", tmp_path / "strict.csv", "--strict")
    assert strict.exit_code == 2
    assert "molecules.csv, row 21, column smiles" in strict.stderr
    assert not (tmp_path / "strict.csv").exists()


def test_evaluate_says_how_many_rows_were_trained_on(place: Path, tmp_path: Path) -> None:
    table = pd.read_csv(place / "molecules.csv")
    table.head(15).to_csv(tmp_path / "some.csv", index=False)
    result = succeed("evaluate", place / "graphs", tmp_path / "some.csv")
    kept = load_run(place / "graphs").predictions["graph"]["split"].head(15)
    train_, validation = ((kept == part).sum() for part in ("train", "validation"))
    said = (
        f"{train_ + validation} of 15 graphs to score are known from training ({train_} for training, {validation} for"
    )
    assert said in " ".join(result.stderr.split())
    scores = json.loads(succeed("evaluate", place / "graphs", tmp_path / "some.csv", "--json").stdout)
    assert scores["all"]["graph"]["known_train"] == train_


def test_several_levels_are_several_files(place: Path, tmp_path: Path) -> None:
    succeed("predict", place / "joint", place / "payments", "--to", tmp_path / "all")
    nodes, edges = (pd.read_csv(tmp_path / "all" / f"predictions_{level}.csv") for level in ("node", "edge"))
    assert (len(nodes), len(edges)) == (30, 120)
    assert edges["error"].notna().sum() == 2
    printed = succeed("predict", place / "joint", place / "payments", "--level", "node")
    one = printed.stdout
    assert "the graph has 30 nodes, 118 edges, mean degree 7.9, as in training" in " ".join(printed.stderr.split())
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(one)), nodes)


def test_an_engine_writes_what_memory_does(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    succeed("predict", place / "joint", place / "payments", "--to", tmp_path / "memory")
    said = succeed(
        "predict", place / "joint", place / "payments", "--to", tmp_path / "engine", "--engine", "duckdb",
        "--memory-limit", "1GiB", "--spill", tmp_path / "spill",
    )  # fmt: skip
    assert "predictions_edge.csv: 120 rows, 2 of them with an error" in said.stdout.replace("\n", "")
    assert "edges.csv: 2 of 120 rows cannot be used" in " ".join(said.stderr.split())
    for level in ("node", "edge"):
        one, other = (pd.read_csv(tmp_path / way / f"predictions_{level}.csv") for way in ("memory", "engine"))
        pd.testing.assert_frame_equal(one, other, rtol=1e-5, atol=1e-5)
    assert list((tmp_path / "spill").iterdir()) == []


def test_links_are_suggested_and_judged(place: Path) -> None:
    top = pd.read_csv(io.StringIO(succeed("predict", place / "links", "karate", "--top", "3").stdout))
    assert len(top) == 3
    assert top["link_p"].is_monotonic_decreasing
    judged = succeed("predict", place / "links", "karate", "--pairs", place / "pairs.csv").stdout
    frame = pd.read_csv(io.StringIO(judged))
    assert frame["source"].tolist() == [0, 3]
    assert 0 < frame["link_p"][0] < 1
    assert "no node has the id 99" in frame["error"][1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["joint", "payments"], "there is no --to, expected a folder, or a --level: this run predicts"),
        (["joint", "payments", "--to", "p.csv"], "p.csv is one file, expected a folder, or a --level"),
        (["joint", "payments", "--level", "graph"], "level is 'graph', expected"),
        (
            ["joint", "payments", "--top", "3"],
            "--top is given, which is for links, but what is predicted is node and edge",
        ),
        (["joint", "payments", "--level", "node", "--top", "3"], "for links, but what is predicted is node"),
        (["graphs", "molecules.csv", "--pairs", "pairs.csv"], "--pairs is given, which is for links, but what is"),
        (["graphs", "molecules.csv", "--to", "p"], "p is not the name of a table, expected one that ends in .csv"),
        (["links", "pairs.csv", "--top", "3", "--pairs", "pairs.csv"], "--pairs and --top are both given"),
        (["graphs", "molecules.csv", "--to", "p.csv", "--engine", "duckdb"], "does not compute molecules, of which"),
        (["graphs", "molecules.csv", "--engine", "duckdb"], "--engine is given without --to or with SMILES, expected"),
        (
            ["joint", "payments", "--to", "p", "--engine", "duckdb", "--device", "cpu"],
            "--device is given, expected none beside --engine",
        ),
        (["nowhere", "molecules.csv"], "there is no run nowhere"),
        (["payments", "molecules.csv"], "payments has no config.json"),
    ],
)
def test_what_cannot_be_predicted_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], message: str
) -> None:
    monkeypatch.chdir(place)
    result = run("predict", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]
    assert not Path("p.csv").exists()


def test_embeddings_have_a_row_for_each_row_behind_its_ids(place: Path, tmp_path: Path) -> None:
    found = load_run(place / "graphs").embed(place / "molecules.csv")
    said = succeed("embed", place / "graphs", place / "molecules.csv", "--to", tmp_path / "a").stdout
    assert "8 channels" in said
    for name, expected in found._asdict().items():
        frame = pd.read_parquet(tmp_path / "a" / f"{name}.parquet")
        assert list(frame) == list(expected)
        np.testing.assert_allclose(frame["e0"].astype(float), expected["e0"].astype(float), rtol=1e-6)
    succeed("embed", place / "joint", place / "payments", "--to", tmp_path / "b", "--format", "csv")
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["edges.csv", "nodes.csv"]
    assert list(pd.read_csv(tmp_path / "b" / "edges.csv"))[:3] == ["source", "target", "e0"]
    taken = run("embed", place / "joint", place / "payments", "--to", place / "pairs.csv")
    assert taken.exit_code == 2
    assert "pairs.csv is a file, expected a folder" in taken.stderr


def test_a_damaged_run_is_refused(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "links", tmp_path / "links")
    weights = tmp_path / "links" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    result = run("evaluate", tmp_path / "links", "karate")
    assert result.exit_code == 2
    assert "model.safetensors is not what was written" in result.stderr


def test_predict_and_embed_take_one_smiles_or_several(place: Path, tmp_path: Path) -> None:
    one = pd.read_csv(io.StringIO(succeed("predict", place / "graphs", "CCO").stdout))
    several = pd.read_csv(io.StringIO(succeed("predict", place / "graphs", "CCO", "C1CC", "CCN").stdout))
    assert several["smiles"].tolist() == ["CCO", "C1CC", "CCN"]
    assert several["error"].notna().tolist() == [False, True, False]
    assert several["size_predicted"].iloc[0] == pytest.approx(one["size_predicted"].iloc[0], abs=1e-5)
    chain = "C" * 600  # longer than the name of any file
    long = pd.read_csv(io.StringIO(succeed("predict", place / "graphs", "CCO", chain).stdout))
    assert long["smiles"].tolist() == ["CCO", chain]
    assert long["unlike_training"].notna().tolist()[1]
    succeed("embed", place / "graphs", "CCO", "CCN", "--to", tmp_path, "--format", "csv")
    assert pd.read_csv(tmp_path / "nodes.csv")["row"].tolist() == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (["no_such.csv"], "there is no such file, folder or data set, and it is no SMILES either"),
        (["molecules.csv", "CCO"], "DATA are 2, of which molecules.csv is there: give one file or folder, or SMILES"),
    ],
)
def test_what_is_neither_one_file_nor_smiles_is_one_line_that_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, data: list[str], said: str
) -> None:
    monkeypatch.chdir(place)
    result = run("predict", "graphs", *data)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_predictions_do_not_replace_a_table_of_the_training(place: Path, tmp_path: Path) -> None:
    tables = tmp_path / "payments"
    shutil.copytree(place / "payments", tables)
    succeed("train", tables, "--target", "edge:is_fraud", "--out", tmp_path / "run", *epochs(1), "--quiet")
    before = (tables / "edges.csv").read_bytes()
    refused = run("predict", tmp_path / "run", place / "payments", "--to", tables / "edges.csv")
    assert refused.exit_code == 2
    assert "would be read as a table of the data" in " ".join(refused.stderr.split())
    assert (tables / "edges.csv").read_bytes() == before
