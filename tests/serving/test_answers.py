"""Answers are those of `predict` and `explain`: numbers, intervals, marks and errors, alone or in a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from samples import payments, shapes, smiles
from serving_client import Service

from censnet.data.tables.files import Tables
from censnet.runs import load_run

pytestmark = pytest.mark.slow
PEPTIDE = "C(=O)N" * 60


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as a program sends them: without what is missing."""
    return [
        {name: value for name, value in row.items() if value == value and value is not None}
        for row in frame.astype(object).to_dict("records")
    ]


def assert_same(found: Sequence[dict[str, Any]], expected: pd.DataFrame, tolerance: float = 1e-6) -> None:
    """Each row has the columns and the values that `predict` gives."""
    assert len(found) == len(expected)
    assert list(found[0]) == list(map(str, expected.columns))
    columns = {str(name): expected[name].tolist() for name in expected}
    for number, row in enumerate(found):
        for name, value in row.items():
            theirs = columns[name][number]
            if value is None:
                assert pd.isna(theirs), (name, theirs)
            elif isinstance(value, float):
                assert math.isclose(value, float(theirs), rel_tol=tolerance, abs_tol=tolerance), (name, value, theirs)
            else:
                assert str(value) == str(theirs), (name, value, theirs)


@pytest.fixture(scope="module")
def fresh() -> Tables:
    """Payments that no run was trained on, with a bad amount."""
    tables = payments(accounts=30, rows=120, seed=3)
    assert tables.edges is not None
    edges = tables.edges.drop(columns=["sort", "fee", "fraud"]).astype({"amount": object})
    edges.loc[5, "amount"] = "lots"
    return tables.with_frames({"edges": edges, "nodes": tables.nodes.drop(columns=["wealth"])})  # type: ignore[union-attr]


def test_rows_of_nodes_and_edges_have_the_answers_of_predict(service: Service, home: Path, fresh: Tables) -> None:
    run = load_run(home / "payments")
    found = service.predict(
        run="payments", coverage=0.9, keep="all", nodes=rows_of(fresh.frames()["nodes"]),
        edges=rows_of(fresh.frames()["edges"]),
    )  # fmt: skip
    assert list(found) == ["node", "edge"]
    for level in ("node", "edge"):
        assert_same(found[level], run.predict(fresh, level, coverage=0.9))
    assert found["edge"][5]["error"] == "edges, row 6, column amount: 'lots' is not a finite number"
    assert found["node"][0]["wealth_low"] < found["node"][0]["wealth_predicted"] < found["node"][0]["wealth_high"]


def test_csv_has_the_answers_of_a_file(service: Service, home: Path, fresh: Tables, tmp_path: Path) -> None:
    text = {table: frame.to_csv(index=False) for table, frame in fresh.frames().items()}
    for table, content in text.items():
        (tmp_path / f"{table}.csv").write_text(content, encoding="utf-8")
    found = service.predict(run="payments", level="edge", **text)["edge"]
    expected = load_run(home / "payments").predict(tmp_path, "edge", keep="ids")
    expected["error"] = expected["error"].str.replace("edges.csv", "edges")
    assert_same(found, expected)


def test_molecules_have_intervals_marks_and_errors(service: Service, home: Path) -> None:
    texts = ["CCO", "CCCl", "C1CC", PEPTIDE, "[Fe]C", "C" * 30]
    run = load_run(home / "molecules")
    found = service.predict(run="molecules", smiles=texts, coverage=0.9)["graph"]
    assert_same(found, run.predict(texts, coverage=0.9, keep="ids"))
    assert [bool(row["error"]) for row in found] == [False, False, True, False, False, False]
    assert found[2]["error"] == "the table, row 3, column smiles: not a molecule: 'C1CC' (unclosed ring)"
    assert found[3]["unlike_training"]
    assert found[3]["size_clipped"] in (True, False)
    assert found[0]["size_low"] <= found[0]["size_predicted"] <= found[0]["size_high"]


def test_molecules_as_rows_of_graphs_are_as_smiles(service: Service) -> None:
    texts = ["CCO", "CCCl", "CCCCC(=O)O"]
    rows = [{"smiles": text, "batch": number} for number, text in enumerate(texts)]
    one = service.predict(run="molecules", graphs=rows)["graph"]
    other = service.predict(run="molecules", smiles=texts)["graph"]
    for row, expected in zip(one, other, strict=True):
        assert row["size_predicted"] == pytest.approx(expected["size_predicted"], abs=1e-6)


def test_many_graphs_of_three_levels(service: Service, home: Path) -> None:
    tables = shapes(6, seed=5)
    sent = {table: rows_of(frame) for table, frame in tables.frames().items()}
    run = load_run(home / "many")
    found = service.predict(run="many", known_labels=False, **sent)
    for level in ("graph", "node", "edge"):
        assert_same(found[level], run.predict(tables, level, known_labels=False, keep="ids"))


def test_links_of_rows_of_pairs_and_the_most_probable(service: Service, home: Path) -> None:
    run = load_run(home / "contacts")
    rng = np.random.default_rng(0)
    edges = pd.DataFrame({"source": rng.integers(0, 20, 60), "target": rng.integers(20, 40, 60)})
    edges = edges.drop_duplicates().assign(hours=2.5).reset_index(drop=True)
    rows: list[dict[str, Any]] = edges.to_dict("records")  # type: ignore[assignment]
    assert_same(service.predict(run="contacts", edges=rows)["link"], run.predict(Tables(edges=edges), keep="ids"))
    pairs = [{"source": 1, "target": 22}, {"source": 1, "target": 999}]
    found = service.predict(run="contacts", edges=rows, pairs=pairs)["link"]
    assert_same(found, run.predict(Tables(edges=edges), pairs=pd.DataFrame(pairs, dtype="int64[pyarrow]")))
    top = service.predict(run="contacts", edges=rows, top=3)["link"]
    assert_same(top, run.predict(Tables(edges=edges), top=3))


def test_requests_that_come_together_have_the_answers_they_have_alone(service: Service, home: Path) -> None:
    frame = smiles(80, seed=9)
    bodies = [{"run": "molecules", "smiles": frame["smiles"][n : n + 2].tolist()} for n in range(0, 80, 2)]
    bodies[7] = {"run": "molecules", "smiles": ["CCO", "c1ccc"]}
    bodies[9] |= {"coverage": 0.8}
    before = service.workers.batches
    with ThreadPoolExecutor(len(bodies)) as threads:
        found = list(threads.map(lambda body: service.post("/predict", body).json()["predictions"]["graph"], bodies))
    assert service.workers.batches - before < len(bodies), "none came together"
    run = load_run(home / "molecules")
    for body, rows in zip(bodies, found, strict=True):
        assert_same(rows, run.predict(body["smiles"], keep="ids", coverage=body.get("coverage")), 1e-5)  # type: ignore[arg-type]
    assert found[7][1]["error"] == "the table, row 2, column smiles: not a molecule: 'c1ccc' (unclosed ring)"


def test_rows_are_explained_as_by_explain(service: Service, home: Path, fresh: Tables) -> None:
    run = load_run(home / "molecules")
    body = {"run": "molecules", "smiles": ["CCO", "CCCl"], "rows": [2], "target": "size"}
    (found,) = service.post("/explain", body).json()["explanations"]
    expected = run.explain(["CCO", "CCCl"], [2], target="size")
    assert (found["row"], found["id"], found["target"]) == (2, "CCCl", "size")
    assert found["answer"] == pytest.approx(expected["answer"][0], abs=1e-5)
    theirs = {(part, where): change for part, where, change in expected[["part", "where", "change"]].to_numpy()}
    for part in found["parts"]:
        if part["change"] is not None:
            assert part["change"] == pytest.approx(theirs[part["part"], part["where"] or ""], abs=1e-5)
    assert found["drawing"].startswith("<svg")
    sent = {table: rows_of(frame) for table, frame in fresh.frames().items()}
    answer = service.post("/explain", {"run": "payments", "top": 1, "target": "fraud", "drawing": False, **sent})
    (found,) = answer.json()["explanations"]
    assert (found["class"], "drawing" in found) == ("1", False)
    assert {part["kind"] for part in found["parts"]} >= {"edge", "node", "column"}


def test_what_is_missing_or_of_other_types_is_read_as_in_a_file(service: Service) -> None:
    edges = [{"source": "a1", "target": "a2", "amount": 10}, {"source": "a2", "target": "a1", "way": "card"}]
    nodes = [{"id": "a1", "age": 30, "country": "de", "vip": "yes", "tier": "gold"}, {"id": "a2", "age": "31"}]
    found = service.predict(run="payments", level="edge", nodes=nodes, edges=edges)["edge"]
    text = {"nodes": "id,age,country,vip,tier\na1,30,de,yes,gold\na2,31,,,\n",
            "edges": "source,target,amount,way\na1,a2,10,\na2,a1,,card\n"}  # fmt: skip
    other = service.predict(run="payments", level="edge", **text)["edge"]
    for row, expected in zip(found, other, strict=True):
        assert row["fraud_p_1"] == pytest.approx(expected["fraud_p_1"], abs=1e-6)
