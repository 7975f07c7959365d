"""What docs/ shows is what happens, and the rules that its data are made by are learnt."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pages import ROOT, PageError, find_blocks, find_commands, matches, run_page

DOCS = {page.stem: page for page in sorted((ROOT / "docs").glob("*.md"))}


def run_doc(name: str, folder: Path) -> dict[str, Any]:
    return run_page(DOCS[name], folder)


def score(folder: Path, run: str, level: str, metric: str, part: str = "test") -> float:
    """What the metrics.json of a run says."""
    metrics: dict[str, Any] = json.loads((folder / "runs" / run / "metrics.json").read_text())
    return float(metrics[part][level][metric])


def test_every_page_is_run() -> None:
    run = {match[1] for match in re.finditer(r'run_doc\("([\w-]+)"', Path(__file__).read_text())}
    assert {name for name, page in DOCS.items() if find_blocks(page.read_text())} == run


def test_what_the_tests_read_is_in_the_source_archive() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    needed = {
        "src",
        "tests",
        "docs",
        "benchmarks",
        "README.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "Makefile",
        "constraints.txt",
    }
    assert needed <= set(targets["sdist"]["include"])


@pytest.mark.slow
def test_report(tmp_path: Path) -> None:
    page = run_doc("report", tmp_path)["page"]
    assert page == (tmp_path / "karate.html").read_text()


@pytest.mark.slow
def test_serve(tmp_path: Path) -> None:
    names = run_doc("serve", tmp_path)
    assert names["ethanol"]["size_low"] < names["ethanol"]["size_predicted"] < names["ethanol"]["size_high"]


@pytest.mark.slow
def test_quickstart(tmp_path: Path) -> None:
    run_doc("quickstart", tmp_path)
    assert score(tmp_path, "fraud", "edge", "accuracy", "train") > 0.9
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 2000


def test_method(tmp_path: Path) -> None:
    names = run_doc("method", tmp_path)
    assert names["dense"].shape == (4, 3)


@pytest.mark.slow
def test_scale(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    assert len(run_doc("scale", tmp_path)["found"]) == 3000


def test_settings(tmp_path: Path) -> None:
    run_doc("settings", tmp_path)


@pytest.mark.slow
def test_nodes(tmp_path: Path) -> None:
    run_doc("nodes", tmp_path)
    people, answers = pd.read_csv(tmp_path / "people" / "nodes.csv"), pd.read_csv(tmp_path / "clubs.csv")
    assert answers["id"].tolist() == people["id"].tolist()
    assert score(tmp_path, "club", "node", "auc") > 0.9
    others, found = pd.read_csv(tmp_path / "others" / "nodes.csv"), pd.read_csv(tmp_path / "others.csv")
    known = others["club"].notna()
    assert (found["club_predicted"] == others["club"])[known].mean() > 0.75
    assert score(tmp_path, "income", "node", "r2") > 0.3


@pytest.mark.slow
def test_edges(tmp_path: Path) -> None:
    run_doc("edges", tmp_path)
    assert score(tmp_path, "fraud", "edge", "auc") > 0.95
    assert score(tmp_path, "fee", "edge", "r2") > 0.4
    table, answers = pd.read_csv(tmp_path / "tomorrow" / "edges.csv"), pd.read_csv(tmp_path / "tomorrow.csv")
    assert (answers["is_fraud_predicted"] == table["is_fraud"]).mean() > 0.85
    pairs = answers.groupby(["source", "target"])["is_fraud_p_yes"]
    assert pairs.nunique().max() > 1, "two payments between the same accounts have one answer"


@pytest.mark.slow
def test_time(tmp_path: Path) -> None:
    run_doc("time", tmp_path)
    assert score(tmp_path, "returned", "edge", "auc") > 0.8
    splits, orders = (pd.read_csv(tmp_path / name) for name in ("runs/returned/splits.csv", "orders/edges.csv"))
    train, validation = (orders["ordered"][splits["split"] == part] for part in ("train", "validation"))
    assert train.max() < validation.min()


@pytest.mark.slow
def test_flows(tmp_path: Path) -> None:
    run_doc("flows", tmp_path)
    assert score(tmp_path, "pipes", "edge", "r2") > 0.5
    assert score(tmp_path, "pipes", "node", "r2") > 0.2


def test_molecules(tmp_path: Path) -> None:
    run_doc("molecules", tmp_path)
    stored = pd.read_csv(tmp_path / "runs" / "acids" / "predictions.csv")
    assert stored["acid"].tolist()[:4] == [1, 0, 1, 0]
    assert stored["error"].notna().sum() == 1


@pytest.mark.slow
def test_graphs(tmp_path: Path) -> None:
    run_doc("graphs", tmp_path)
    assert score(tmp_path, "boiling", "graph", "r2") > 0.5
    assert score(tmp_path, "knot", "graph", "auc") > 0.85
    split = pd.read_csv(tmp_path / "runs" / "scaffold" / "splits.csv")
    scaffold = split["smiles"].str.extract(r"([cC]1.*1)", expand=False).fillna("")
    assert split.groupby(scaffold)["split"].nunique().max() == 1
    answers = pd.read_csv(tmp_path / "groups.csv")
    assert answers["error"].notna().tolist() == [False, False, True]
    assert answers["acid_p_1"].notna().tolist() == [True, True, False]


@pytest.mark.slow
def test_links(tmp_path: Path) -> None:
    run_doc("links", tmp_path)
    assert score(tmp_path, "mails", "link", "auc") > 0.7
    table, likely = pd.read_csv(tmp_path / "mails" / "edges.csv"), pd.read_csv(tmp_path / "likely.csv")
    edges = {frozenset(pair) for pair in table[["source", "target"]].itertuples(index=False)}
    assert not any(frozenset(pair) in edges for pair in likely[["source", "target"]].itertuples(index=False))
    assert likely["link_p"].is_monotonic_decreasing


@pytest.mark.slow
def test_data(tmp_path: Path) -> None:
    run_doc("data", tmp_path)
    splits = pd.read_csv(tmp_path / "runs" / "by_time" / "splits.csv")["split"]
    days = pd.read_csv(tmp_path / "loans" / "edges.csv")["day"]
    assert days[splits == "train"].max() <= days[splits == "validation"].min()
    assert days[splits == "validation"].max() <= days[splits == "test"].min()
    assert pd.read_csv(tmp_path / "runs" / "again" / "splits.csv")["split"].equals(splits)


@pytest.mark.slow
def test_runs(tmp_path: Path) -> None:
    run_doc("runs", tmp_path)
    history = pd.read_csv(tmp_path / "runs" / "long" / "history.csv")
    assert history["epoch"].tolist() == list(range(1, len(history) + 1))
    assert not (tmp_path / "runs" / "long" / "checkpoint").exists()


@pytest.mark.slow
def test_ensembles(tmp_path: Path) -> None:
    run_doc("ensembles", tmp_path)
    predictions = pd.read_csv(tmp_path / "predictions.csv")
    assert (predictions.filter(like="_std_") > 0).all(axis=None)
    summary = json.loads((tmp_path / "runs" / "init" / "replicates.json").read_text())
    assert summary["vary"] == "init"
    splits = [pd.read_csv(tmp_path / "runs" / "init" / f"seed-{number}" / "splits.csv") for number in range(3)]
    assert all(split.equals(splits[0]) for split in splits)


@pytest.mark.slow
def test_uncertainty(tmp_path: Path) -> None:
    names = run_doc("uncertainty", tmp_path)
    assert names["scores"]["fee/coverage"] > 0.8
    rows = pd.read_csv(tmp_path / "predictions.csv")
    assert (rows["fee_low"] < rows["fee_high"]).all()
    assert rows["unlike_training"].notna().mean() < 0.1
    assert names["found"]["unlike_training"].notna().tolist()[:2] == [True, True]


@pytest.mark.slow
def test_compare(tmp_path: Path) -> None:
    names = run_doc("compare", tmp_path)
    assert names["found"].table["seeds"].max() == 2
    assert len(pd.read_csv(tmp_path / "table.csv")) == len(names["found"].table)


@pytest.mark.slow
def test_explain(tmp_path: Path) -> None:
    names = run_doc("explain", tmp_path)
    assert set(names["table"]["kind"]) == {"edge", "node", "column"}
    assert {path.suffix for path in (tmp_path / "why").glob("row-8.*")} == {".svg", ".png"}


@pytest.mark.slow
def test_python(tmp_path: Path) -> None:
    names = run_doc("python", tmp_path)
    assert names["x"].shape == (3, 32)
    assert names["edge_attr"].shape == (3, 32)
    assert float(names["loss"].detach()) < 0.69


@pytest.mark.slow
def test_scikit_learn(tmp_path: Path) -> None:
    names = run_doc("scikit-learn", tmp_path)
    assert len(names["scores"]) == 2
    assert (tmp_path / "runs" / "acid" / "config.json").exists()


@pytest.mark.parametrize(("expected", "printed"), [("a ... z", "a b\n c z"), ("a ... z", "a z"), ("...b", "a b")])
def test_three_dots_are_anything(expected: str, printed: str) -> None:
    assert matches(expected, printed)


def test_white_space_is_folded_and_all_else_has_to_be_the_same() -> None:
    assert matches("a b", "a   b\n")
    assert not matches("a b", "a b c")
    assert not matches("a...", "b a")


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("auc 0.91 ...", "auc 0.93 and so on"),
        ("took 3.5 s, epoch 5 of 9", "took 12 s, epoch 7 of 8"),
        ("said no    1,608   21\n", "said no    1,611   18\n"),
    ],
)
def test_scores_of_a_training_need_only_be_near(expected: str, printed: str) -> None:
    assert matches(expected, printed, near=True)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        *(("auc 0.91", printed) for printed in ("auc 0.71", "auc 1")),
        ("4 rows", "5 rows"),
        ("said no    1,608   21\n", "said no    1,308   321\n"),
    ],
)
def test_what_is_not_near_is_seen(expected: str, printed: str) -> None:
    assert not matches(expected, printed, near=True)


def test_a_page_that_shows_what_does_not_happen_is_caught(tmp_path: Path) -> None:
    shown = {
        "output": "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "exit": "```sh\nls nowhere\n```\n",
        "command": "```sh\ncensnet inspect nowhere/\n```\n",
    }
    for name, text in shown.items():
        page = tmp_path / f"{name}.md"
        page.write_text(text)
        with pytest.raises(PageError, match=f"{name}.md, line 1"):
            run_page(page, tmp_path)
    assert Path.cwd() != tmp_path


def test_commands_go_on_over_lines_and_have_comments() -> None:
    text = "# first\ncensnet train a \\\n    --out b  # exits with 2\n\nls\n"
    assert find_commands(text) == [("censnet train a      --out b", "exits with 2"), ("ls", "")]
