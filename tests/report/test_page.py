"""A page has the numbers of metrics.json and predictions.csv, reads nothing from a network, and works for any run."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_content import content_of
from samples import payments, quick, shapes

from censnet.comparison import load_comparison
from censnet.comparison.methods import METHODS
from censnet.comparison.records import Compared, Record, Start, Stored, write_stored
from censnet.data.tables.files import Tables
from censnet.errors import ArgumentError
from censnet.pipeline import train
from censnet.report import report_page
from censnet.report.page import SCRIPTS, STYLE, _asset
from censnet.runs.run import Run, load_run

NUMBERS = {"f4": np.float32, "i4": np.int32, "u2": np.uint16, "u1": np.uint8}


def unpack(text: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(text), np.dtype(NUMBERS[kind]).newbyteorder("<"))


def shown_scores(page: str) -> dict[str, float]:
    return {path: float(value) for path, value in re.findall(r'data-score="([^"]+)" data-value="([^"]+)"', page)}


def test_every_score_is_that_of_metrics_json(fraud: tuple[Run, Path], fraud_page: str) -> None:
    metrics = json.loads((fraud[1] / "fraud" / "metrics.json").read_text())
    shown = shown_scores(fraud_page)
    expected = {
        f"{part}/{level}/{name}": value
        for part, levels in metrics.items()
        for level, scores in levels.items()
        for name, value in scores.items()
        if "/" not in name
    }
    assert shown == expected


def test_counts_at_any_threshold_are_those_of_predictions_csv(fraud: tuple[Run, Path], fraud_page: str) -> None:
    frame = pd.read_csv(fraud[1] / "fraud" / "predictions.csv")
    (target,) = content_of(fraud_page)["targets"]
    for part, curve in target["curves"][0]["parts"].items():
        mine = frame[frame["split"] == part]
        for side, label in (("positive", 1), ("negative", 0)):
            expected = np.sort(mine.loc[mine["fraud"] == label, "fraud_p_1"].to_numpy(np.float32))
            np.testing.assert_array_equal(unpack(curve[side], "f4"), expected)
        counts = target["confusion"][part]["counts"]
        table = pd.crosstab(mine["fraud"], mine["fraud_predicted"]).reindex(index=[0, 1], columns=[0, 1], fill_value=0)
        assert counts == table.to_numpy().tolist()
        bins = target["reliability"][part]
        assert sum(one["rows"] for one in bins) == len(mine)
        total = sum(one["rows"] * one["predicted"] for one in bins)
        assert total == pytest.approx(mine["fraud_p_1"].sum(), rel=1e-6)


def test_the_worst_errors_are_those_of_test_rows(fraud: tuple[Run, Path], fraud_page: str) -> None:
    frame = pd.read_csv(fraud[1] / "fraud" / "predictions.csv")
    test = frame[frame["split"] == "test"]
    p = np.where(test["fraud"] == 1, test["fraud_p_1"], test["fraud_p_0"])
    expected = test.index[np.argsort(p, kind="stable")][:15].tolist()
    worst = content_of(fraud_page)["targets"][0]["worst"]
    assert (worst["part"], worst["ids"]) == ("test", ["source", "target"])
    assert sorted(row["row"] for row in worst["rows"]) == sorted(expected)
    assert worst["rows"][0]["ids"] == frame.loc[expected[0], ["source", "target"]].tolist()


def test_the_map_has_every_node_and_edge_with_its_ends_and_colors(fraud: tuple[Run, Path], fraud_page: str) -> None:
    folder = fraud[1] / "payments"
    nodes, edges = (pd.read_csv(folder / f"{name}.csv") for name in ("nodes", "edges"))
    of = {panel["level"]: panel for panel in content_of(fraud_page)["map"]["panels"]}
    assert of["node"]["names"] == nodes["id"].tolist()
    ends = np.array(of["node"]["names"])[unpack(of["edge"]["ends"], "i4").reshape(-1, 2)]
    row = unpack(of["edge"]["rows"], "i4")
    np.testing.assert_array_equal(ends, edges.loc[row, ["source", "target"]].to_numpy())
    colors = {color["name"]: color for color in of["edge"]["colors"]}
    assert list(colors) == ["label", "prediction", "probability of 1", "loss", "part"]
    np.testing.assert_array_equal(unpack(colors["label"]["values"], "u1"), edges.loc[row, "fraud"])
    assert len(unpack(of["edge"]["xy"], "u2")) == 2 * len(edges)


def test_molecules_are_drawn_atom_by_atom(molecules: tuple[Run, Path], molecule_page: str) -> None:
    of = {panel["level"]: panel for panel in content_of(molecule_page)["map"]["panels"]}
    graphs, atoms, bonds = of["graph"], of["node"], of["edge"]
    assert graphs["shown"] == 60
    sizes = np.bincount(unpack(atoms["owner"], "i4"))
    assert [len(each["atoms"]) for each in graphs["molecules"]] == sizes.tolist()
    assert [len(each["bonds"]) for each in graphs["molecules"]] == np.bincount(
        unpack(bonds["owner"], "i4"), minlength=60
    ).tolist()
    first = graphs["molecules"][graphs["names"].index("CO")]
    assert [atom[2:] for atom in first["atoms"]] == [[], ["O", 1, 0]]
    panels = content_of(molecule_page)["targets"]
    assert [panel["column"] for panel in panels] == ["size", "acid"]


def test_parity_has_the_labels_and_predictions_of_each_part(molecules: tuple[Run, Path], molecule_page: str) -> None:
    frame = pd.read_csv(molecules[1] / "run" / "predictions.csv")
    parity = content_of(molecule_page)["targets"][0]["parity"]
    for part, found in parity.items():
        mine = frame[(frame["split"] == part) & frame["error"].isna()]
        np.testing.assert_allclose(unpack(found["label"], "f4"), mine["size"], rtol=1e-6)
        np.testing.assert_allclose(unpack(found["predicted"], "f4"), mine["size_predicted"], rtol=1e-6)
        assert sum(one["rows"] for one in found["fifths"]) == len(mine)


def test_the_policy_allows_our_script_and_style_and_no_network(fraud_page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', fraud_page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert not re.search(r"unsafe|http|\*", policy[1])
    for pattern in (r"<style>(.*?)</style>", r"<script>(.*?)</script>"):
        (inside,) = re.findall(pattern, fraud_page, re.S)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert not re.search(r"\s(src|href|style|on\w+)\s*=\s*[\"'](?!#)", fraud_page.split("<script type")[0])


def test_our_own_files_read_nothing_and_run_no_text() -> None:
    for name in (STYLE, *SCRIPTS):
        text = _asset(name)
        outside = re.sub(r'"http://www.w3.org/2000/svg"', "", text)
        forbidden = r"https?:|fetch\(|XMLHttp|innerHTML|insertAdjacentHTML|eval\(|Function\(|import\(|@import|url\(|</"
        assert not re.search(forbidden, outside), name


@pytest.mark.slow
def test_labels_ids_and_columns_of_any_text_stay_text(tmp_path: Path) -> None:
    tables = payments(accounts=12, rows=60)
    assert tables.nodes is not None
    assert tables.edges is not None
    evil = "</script><script>document.title='x'</script>\u202e"
    names = {name: f"{evil}{name}" for name in tables.nodes["id"]}
    nodes = tables.nodes[["id", "age"]].assign(id=tables.nodes["id"].map(names))
    nodes["<b>kind"] = np.where(tables.nodes["age"] > 50, "<img src=x onerror=alert(1)>", 'a"\x01')
    edges = tables.edges.assign(source=tables.edges["source"].map(names), target=tables.edges["target"].map(names))
    data = Tables(nodes, edges[["source", "target", "amount"]])
    run = train(data, "node:<b>kind", tmp_path / "run <i>", settings=quick(training__epochs=1))
    page = report_page(run, data)
    assert len(re.findall("<script", page)) == 2
    assert not re.search(r"<(img|b|i)[ >]", page)
    assert not set("\u202e\x01") & set(page)
    found = content_of(page)
    assert found["map"]["panels"][0]["names"][0].startswith("</script>")
    assert found["targets"][0]["confusion"]["test"]["names"] == ["<img src=x onerror=alert(1)>", 'a"\\u0001']


def test_a_run_of_links_has_curves_and_a_map(links: Run) -> None:
    found = content_of(report_page(links))
    (target,) = found["targets"]
    assert (target["level"], target["parts"]) == ("link", {"validation": 6, "test": 14})
    edges = next(panel for panel in found["map"]["panels"] if panel["level"] == "edge")
    part = unpack(edges["colors"][0]["values"], "u1")
    assert np.bincount(part, minlength=3).tolist() == [68, 3, 7]


@pytest.mark.slow
def test_many_graphs_with_targets_of_three_levels(many: Run) -> None:
    page = report_page(many, shapes())
    found = content_of(page)
    assert {target["level"] for target in found["targets"]} == {"graph", "node", "edge"}
    assert [panel["level"] for panel in found["map"]["panels"]] == ["node", "edge", "graph"]
    assert all(f'data-score="test/{level}/' in page for level in ("graph", "node", "edge"))


@pytest.mark.slow
def test_a_run_without_data_predictions_or_test_rows(many: Run) -> None:
    page = report_page(many)
    assert content_of(page)["map"] is None
    assert "There is none" in page
    bare = dataclasses.replace(many, predictions={}, history=many.history.iloc[:0])
    found = content_of(report_page(bare))
    assert (found["targets"], found["history"]["series"]) == ([], [])
    frames = {
        level: frame[frame["split"] == "train"].reset_index(drop=True) for level, frame in many.predictions.items()
    }
    metrics = {"train": many.metrics["train"]}
    found = content_of(report_page(dataclasses.replace(many, predictions=frames, metrics=metrics)))
    assert all(list(target["parts"]) == ["train"] for target in found["targets"])


@pytest.mark.slow
def test_other_data_get_scores_curves_and_errors_of_their_own(fraud: tuple[Run, Path], tmp_path: Path) -> None:
    tables = payments(accounts=20, rows=80, seed=3)
    run = load_run(fraud[1] / "fraud")
    page = report_page(run, tables)
    found = content_of(page)
    expected = run.evaluate(tables)["all"]["edge"]
    shown = shown_scores(page)
    assert shown["all/edge/auc"] == expected["auc"]
    assert shown["test/edge/auc"] == run.metrics["test"]["edge"]["auc"]
    assert found["targets"][0]["parts"] == {"all": 80}
    assert found["map"]["panels"][1]["shown"] == 80
    assert tables.edges is not None
    unlabeled = Tables(tables.nodes, tables.edges.drop(columns="fraud"))
    found = content_of(report_page(run, unlabeled))
    assert found["targets"][0]["parts"] == {}


@pytest.mark.slow
def test_a_page_is_the_same_each_time(fraud: tuple[Run, Path], fraud_page: str) -> None:
    assert report_page(load_run(fraud[1] / "fraud"), explain=2) == fraud_page


def test_another_method_is_refused(fraud: tuple[Run, Path]) -> None:
    with pytest.raises(ArgumentError, match="method is 'umap', expected 'pca' or 'tsne'"):
        report_page(fraud[0], method="umap")  # type: ignore[arg-type]


def test_the_table_of_a_comparison_is_shown(fraud: tuple[Run, Path], tmp_path: Path) -> None:
    start = Start(data="x", target_specs=["edge:fraud"], preset="strong", changes={}, overrides={}, strict=False)
    records = [
        Record(method=method.key, seed=seed, seconds=2.0, scores={"test": {"edge": {"fraud/auc": 0.8 + seed / 100}}})
        for method in METHODS[:3]
        for seed in range(3)
    ]
    target = Compared.of("edge", "fraud", "binary", "auc")
    write_stored(tmp_path, Stored(start=start, targets=[target], records=records))
    page = report_page(fraud[0], comparison=tmp_path)
    section = page.split('<section id="comparison">')[1].split("</section>")[0]
    table = load_comparison(tmp_path).table
    for name in table["method"].unique():
        assert html.escape(name) in section
    assert section.count("0.8100") == 3
    assert html.escape(load_comparison(tmp_path).sentence) in section
