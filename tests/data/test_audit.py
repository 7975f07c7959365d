from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from censnet.data import Tables, load_data
from censnet.data.inspect.audit import audit
from censnet.data.inspect.giveaway import follows, gives_away, telling_features
from censnet.data.splits.links import LinkSplit, links
from censnet.data.splits.split import Split

ROWS = 400


def payments(**columns: object) -> Tables:
    """A ring of accounts with random payments around it; `columns` are added to the edges."""
    rng = np.random.default_rng(0)
    source = rng.permutation(ROWS)
    edges = {
        "source": [f"a{n}" for n in source],
        "target": [f"a{(n + 1) % ROWS}" for n in source],
        "amount": rng.lognormal(3, 1, ROWS).round(2),
        "currency": rng.choice(["EUR", "NOK", "USD"], ROWS),
        "is_fraud": (rng.random(ROWS) < 0.1).astype(int),
    }
    nodes = pd.DataFrame({"id": [f"a{n}" for n in rng.permutation(ROWS)], "age": rng.normal(size=ROWS)})
    return Tables(nodes, pd.DataFrame({**edges, **columns}), names={"nodes": "nodes.csv", "edges": "edges.csv"})


def found(tables: Tables, target: str = "edge:is_fraud", **rest: object) -> list[tuple[str, str]]:
    level, column = target.split(":")
    data = load_data(tables, target=target)
    return [(finding.level, finding.what) for finding in audit(data, {level + "s": [column]}, **rest)]


def fraud() -> np.ndarray:
    return payments().edges["is_fraud"].to_numpy()


def test_a_healthy_table_has_no_finding():
    assert found(payments()) == []


@pytest.mark.parametrize(
    "column",
    [
        lambda y: np.where(y == 1, "chargeback", "settled"),
        lambda y: np.where(y == 1, "2024-01-01", None),  # only fraud has a date of discovery
        lambda y: y * 3.5 + 2 + np.random.default_rng(1).normal(0, 0.01, len(y)),
        lambda y: np.array(["no", "yes"])[y],
    ],
    ids=["status", "gap", "number", "word"],
)
def test_a_column_that_gives_the_target_away_is_a_problem(column):
    tables = payments(leak=column(fraud()))
    findings = found(tables)
    assert len(findings) == 1
    assert "edges.csv, column leak gives is_fraud away" in findings[0][1]


def test_a_column_that_gives_a_quantity_away_is_a_problem():
    amount = payments().edges["amount"].to_numpy()
    findings = found(payments(cents=(amount * 100).round(), rank=np.exp(-amount)), "edge:amount")
    assert [level for level, _ in findings] == ["problem", "problem"]
    assert "column cents gives amount away (correlation 1.000" in findings[0][1]


def test_a_leaking_column_that_is_no_feature_is_only_a_warning():
    label = np.array([f"{'bad' if y else 'ok'}" for y in fraud()])
    data = load_data(payments(status=label), target="edge:is_fraud", overrides={"status": "drop"})
    findings = audit(data, {"edges": ["is_fraud"]})
    assert [finding.level for finding in findings] == ["warning"]
    assert "it is no feature" in findings[0].what


@given(st.integers(0, 10**6), st.integers(2, 60), st.floats(0.02, 0.5))
@settings(max_examples=60, deadline=None)
def test_chance_gives_nothing_away(seed, kinds, rate):
    rng = np.random.default_rng(seed)
    labels = pd.Series((rng.random(300) < rate).astype(int))
    for values in (rng.normal(size=300), rng.integers(0, kinds, 300), rng.integers(0, 10**9, 300).astype(str)):
        assert gives_away(pd.Series(values), labels) is None


def test_nearly_all_labels_alike_is_not_purity():
    labels = pd.Series([0] * 995 + [1] * 5)
    assert gives_away(pd.Series(np.arange(1000) % 10).astype(str), labels) is None


def test_unique_values_are_not_purity():
    labels = pd.Series([0, 1] * 100)
    assert gives_away(pd.Series([f"name {n}" for n in range(200)]), labels) is None


def test_three_classes_are_told_by_a_code():
    labels = pd.Series(["red", "green", "blue"] * 40)
    sure, how = gives_away(labels.map({"red": 7, "green": 1, "blue": 4}), labels)
    assert sure
    assert "3 values tell 100% of the labels" in how


def test_a_number_that_sorts_the_classes_apart_is_suspicious():
    rng = np.random.default_rng(0)
    labels = pd.Series([0] * 200 + [1] * 20)
    values = pd.Series(np.r_[rng.exponential(1, 200), 100 * rng.exponential(5, 20) + 8])
    sure, how = gives_away(values, labels)
    assert not sure
    assert "separates the two classes" in how


def test_an_id_that_follows_the_target_is_noticed():
    rng = np.random.default_rng(0)
    labels = np.sort(rng.random(ROWS) < 0.5).astype(int)
    nodes = pd.DataFrame({"id": [f"n-{n:04}" for n in range(ROWS)], "x": rng.normal(size=ROWS), "y": labels})
    edges = payments().edges[["source", "target"]].map(lambda name: f"n-{int(name[1:]):04}")
    findings = found(Tables(nodes, edges, names={"nodes": "nodes.csv"}), "node:y")
    assert findings == [
        (
            "warning",
            "nodes.csv, column id is an id that follows y (sorting by it separates the two classes (AUC 1.000))",
        )
    ]
    assert follows(pd.Series(rng.permutation(ROWS)), pd.Series(labels)) is None


def test_an_entry_of_a_vector_that_is_the_class_is_found():
    rng = np.random.default_rng(0)
    labels = pd.Series(rng.integers(0, 3, 200))
    features = rng.normal(size=(200, 5))
    assert telling_features(features, labels) == []
    features[:, 3] = (labels == 2) * 4.0
    assert [column for column, _ in telling_features(features, labels)] == [3]
    nodes = pd.DataFrame({"id": range(200), "x": features.tolist(), "label": labels})
    edges = pd.DataFrame({"source": range(199), "target": range(1, 200)})
    findings = found(Tables(nodes, edges), "node:label")
    assert len(findings) == 1
    assert "gives label away" in findings[0][1]


def test_labels_that_cannot_be_learnt_are_problems():
    assert found(payments(y=[None] * ROWS), "edge:y") == [("problem", "edges.csv, column y: no row has a label")]
    assert found(payments(y=["a"] * ROWS), "edge:y") == [("problem", "edges.csv, column y: every label is the same")]
    labels = [None] * 200 + [0, 1] * 100
    split = Split.of([0] * 100 + [1] * 100 + [2] * 200)
    levels = [what for _, what in found(payments(y=labels), "edge:y", splits={"edges": split})]
    assert "edges.csv, column y: no row of the train part has a label" in levels


def test_bad_rows_are_a_problem_that_names_the_first():
    tables = payments()
    tables.edges.loc[6, "target"] = "nobody"
    (level, what), *_ = found(tables)
    assert level == "problem"
    assert "1 of 400 rows of edges.csv cannot be used; the first: edges.csv, row 7, column target" in what


# -- across splits ----------------------------------------------------------------------------------------------------

SMILES = [
    "CCO",
    "c1ccccc1",
    "CCN",
    "CCC",
    "CCCC",
    "OCC",
    "C1=CC=CC=C1",
    "CCCl",
    "CCBr",
]  # OCC is CCO, and benzene twice


def test_one_molecule_in_two_parts_is_a_problem_whatever_its_spelling():
    frame = pd.DataFrame({"smiles": SMILES, "y": [0, 1, 0, 1, 0, 0, 1, 0, 1]})
    data = load_data(frame, target="graph:y")
    clean = audit(data, {"graphs": ["y"]}, {"graphs": Split.of([0, 0, 0, 0, 0, 0, 0, 1, 2])})
    assert [finding.level for finding in clean] == ["warning"]
    assert "2 molecules stand in 4 rows" in clean[0].what
    leaky = audit(data, {"graphs": ["y"]}, {"graphs": Split.of([0, 0, 0, 0, 1, 1, 2, 2, 2])})
    assert [finding.what for finding in leaky if finding.level == "problem"] == [
        "the table: 1 of 2 validation rows have the same molecule in training",
        "the table: 1 of 3 test rows have the same molecule in training",
    ]


def test_an_equal_row_in_two_parts_is_a_problem():
    tables = payments()
    edges = tables.edges
    edges.loc[300, edges.columns] = edges.loc[5, edges.columns]
    split = Split.of([0] * 200 + [1] * 50 + [2] * 150)
    findings = found(tables, splits={"edges": split})
    assert ("problem", "edges.csv: 1 of 150 test rows have an equal row in training") in findings


def test_a_reverse_edge_in_two_parts_is_a_warning_and_a_parallel_one_a_note():
    tables = payments()
    edges = tables.edges
    edges.loc[300, ["source", "target"]] = edges.loc[5, ["target", "source"]].to_numpy()
    edges.loc[302, ["source", "target"]] = edges.loc[7, ["target", "source"]].to_numpy()
    edges.loc[301, ["source", "target"]] = edges.loc[6, ["source", "target"]].to_numpy()
    split = Split.of([0] * 200 + [1] * 50 + [2] * 150)
    findings = found(tables, splits={"edges": split})
    assert ("warning", "edges.csv: 2 of 150 test rows have their reverse in training") in findings
    assert ("note", "edges.csv: 1 of 150 test rows have a parallel row in training") in findings
    assert findings[-1][0] == "note"


def test_the_two_rows_of_one_merged_edge_in_two_parts_are_a_problem():
    edges = payments().edges
    doubled = pd.concat([edges, edges.rename(columns={"source": "target", "target": "source"})], ignore_index=True)
    tables = Tables(edges=doubled, names={"edges": "edges.csv"})
    split = Split.of([0] * ROWS + [2] * ROWS)
    findings = found(tables, splits={"edges": split})
    assert ("problem", "edges.csv: 400 of 400 test rows have the same edge in training") in findings


def test_a_link_split_of_ours_is_clean_and_a_naive_one_is_not():
    tables = payments()
    data = load_data(tables)
    split = links(data.graph)
    assert audit(data, {}, links=split) == []
    shown = data.graph.ends[:, split.rows.train[:2]].sort(dim=0).values
    naive = LinkSplit(split.rows, shown, shown, split.test_links, split.test_non_links)
    whats = [finding.what for finding in audit(data, {}, links=naive)]
    assert whats == [
        "2 of 2 validation links are joined by an edge of training, parallel or reverse",
        "2 of 2 validation non-links are links",
    ]


def test_of_a_degree_it_is_said_on_which_links_it_is_counted():
    data = load_data(payments().edges[["source", "target"]])
    (finding,) = audit(data, {}, links=links(data.graph))
    assert finding.level == "note"
    assert "`Dataset.seen` counts it on the links of training alone" in finding.what


def test_coarse_nodes_are_not_called_twins():
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": range(100), "kind": rng.choice(["a", "b"], 100), "y": rng.integers(0, 2, 100)})
    edges = pd.DataFrame({"source": range(99), "target": range(1, 100)})
    split = Split.of(rng.integers(0, 3, 100))
    assert found(Tables(nodes, edges), "node:y", splits={"nodes": split}) == []
    assert torch.cat(list(split.parts.values())).numel() == 100
