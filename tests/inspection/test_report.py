from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from samples import write_splits

from censnet.cli.render_report import ReportScreen
from censnet.data import DataError, Tables, load_data, write_table
from censnet.data.splits.links import link_rows, links
from censnet.data.splits.split_file import Split
from censnet.inspection.report import Report, make_report
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline import inspect_data


def report_on(ends: list[tuple[int, int]], num_nodes: int) -> Report:
    columns = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t()
    return make_report(load_data(Graph(torch.ones(num_nodes, 1), torch.ones(len(ends), 1), columns)))


def screen(report: Report, width: int = 100, encoding: str = "utf-8") -> list[str]:
    with open(os.devnull, "w", encoding=encoding) as file:
        console = Console(width=width, file=file, record=True, highlight=False)
        console.print(ReportScreen(report))
    return console.export_text().splitlines()


def test_a_small_graph_is_counted_right():
    # a path 0-1-2, its first edge three times, a loop at 3, and 4 alone
    report = report_on([(0, 1), (1, 2), (1, 0), (0, 1), (3, 3)], 5)
    shape = report.structure
    assert (shape.nodes, shape.edges, shape.loops, shape.parallel, shape.isolated) == (5, 5, 1, 2, 1)
    assert (shape.components, shape.largest_component) == (3, 3)
    assert (shape.degrees.least, shape.degrees.median, shape.degrees.most) == (0, 1, 4)
    assert shape.degrees.histogram == [(0, 0, 1), (1, 1, 2), (2, 3, 1), (4, 7, 1)]
    # at 0 three edges meet, at 1 four: 3 + 6 pairs, of which the 3 pairs of parallel edges were counted twice
    assert report.line_graph.links == 6
    assert report.line_graph.dense_bytes == 4 * 25
    assert report.line_graph.explicit_bytes == 2 * 6 * 20


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=15))
@settings(max_examples=25, deadline=None)
def test_the_line_graph_is_counted_as_one_would_by_hand(ends):
    pairs = sum(bool(set(ends[i]) & set(ends[j])) for i in range(len(ends)) for j in range(i))
    assert report_on(ends, 7).line_graph.links == pairs


def test_a_star_of_many_leaves_ends_because_nothing_square_is_built():
    report = report_on([(0, leaf) for leaf in range(1, 100_001)], 100_001)
    assert report.line_graph.links == 100_000 * 99_999 // 2
    assert report.structure.degrees.most == 100_000


def test_graphs_of_a_set_are_counted_each_for_itself():
    path = Graph(torch.ones(3, 1), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
    dot = Graph(torch.ones(1, 1), torch.ones(0, 1), torch.empty(2, 0, dtype=torch.long))
    report = make_report(load_data(GraphSet.pack([path, dot, path])))
    assert report.structure.nodes_per_graph == (1, 3.0, 3)
    assert (report.structure.components, report.structure.isolated) == (3, 1)
    assert (report.line_graph.links, report.line_graph.dense_bytes) == (2, 4 * (4 + 4))


def payments(bad: bool = False) -> Tables:
    rng = np.random.default_rng(0)
    edges = pd.DataFrame(
        {
            "source": rng.integers(0, 300, 1000),
            "target": rng.integers(0, 300, 1000),
            "amount": rng.normal(size=1000),
            "currency": rng.choice(["EUR", "NOK"], 1000),
            "memo": [f"for {n} things and some more of them" for n in range(1000)],
            "is_fraud": pd.array(np.where(rng.random(1000) < 0.1, None, rng.integers(0, 2, 1000)), dtype="Int64"),
        }
    )
    nodes = pd.DataFrame({"id": range(299 if bad else 300), "age": rng.normal(size=299 if bad else 300)})
    return Tables(nodes, edges, names={"nodes": "nodes.csv", "edges": "edges.csv"})


def test_columns_say_what_they_became_and_why():
    report = inspect_data(payments(), "edge:is_fraud")
    columns = {(column.table, column.name): column for column in report.columns}
    assert (columns["edges", "amount"].kind, columns["edges", "amount"].features) == ("number", 1)
    assert columns["edges", "currency"].reason == "2 categories"
    assert columns["edges", "memo"].features == 0
    assert columns["edges", "memo"].reason
    assert ("edges", "is_fraud") not in columns


def test_labels_are_counted_with_their_gaps():
    tables = payments()
    (label,) = inspect_data(tables, "edge:is_fraud").labels
    expected = tables.edges["is_fraud"].value_counts()
    assert label.missing == int(tables.edges["is_fraud"].isna().sum()) > 50
    assert label.classes == {"0": expected[0], "1": expected[1]}
    (amount,) = inspect_data(tables, "edge:amount").labels
    assert amount.classes == {}
    assert amount.quantity["mean"] == pytest.approx(tables.edges["amount"].mean())


def test_labels_that_are_numbers_in_text_are_a_quantity_and_padded_ones_are_codes():
    tables = payments()
    amounts = np.linspace(500, 2000, 1000)
    tables.edges["price"] = [f"{amount:,.2f}" for amount in amounts]
    tables.edges["fee"] = amounts / 50
    tables.edges["code"] = [f"{number % 30:03d}" for number in range(1000)]
    report = inspect_data(tables, "edge:price,code")
    price, code = report.labels
    assert price.quantity["most"] == 2000
    assert code.num_classes == 30
    assert any("column fee leaks price" in finding.what for finding in report.problems)


def test_a_report_comes_back_from_its_json():
    report = inspect_data(payments(bad=True), "edge:is_fraud")
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_a_healthy_set_is_one_screen_and_says_so():
    lines = screen(inspect_data(payments(), "edge:is_fraud"))
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert any("nothing wrong was found" in line for line in lines)
    assert not any("✗" in line for line in lines)


def test_problems_stand_out_and_many_columns_stay_on_one_screen():
    tables = payments(bad=True)
    rng = np.random.default_rng(1)
    more = pd.DataFrame({f"measurement number {n}": rng.normal(size=1000) for n in range(60)})
    tables = Tables(tables.nodes, pd.concat([tables.edges, more], axis=1), names=tables.names)
    lines = screen(inspect_data(tables, "edge:is_fraud"))
    assert len(lines) <= 45
    assert any("✗" in line and "rows of edges.csv cannot be used" in line for line in lines)
    assert any("and 52 more" in line for line in lines)


def test_a_terminal_without_unicode_gets_plain_letters():
    text = "\n".join(screen(inspect_data(payments(bad=True), "edge:is_fraud"), encoding="ascii"))
    assert text.isascii()
    assert "  x " in text


def test_a_splits_file_is_read_and_audited(tmp_path):
    tables = payments()
    edges = tables.edges
    edges.loc[900, ["source", "target"]] = edges.loc[5, ["target", "source"]].to_numpy()
    split = Split.of([0] * 800 + [1] * 50 + [2] * 150)
    write_splits({"edges": split}, tmp_path / "splits.csv", {"edges": edges[["source", "target"]]})
    report = inspect_data(tables, "edge:is_fraud", tmp_path / "splits.csv")
    assert report.splits == {"edges": {"train": 800, "validation": 50, "test": 150}}
    assert any("test rows has its reverse in training" in finding.what for finding in report.findings)
    with pytest.raises(DataError, match="the table was changed or reordered"):
        inspect_data(Tables(tables.nodes, edges.iloc[::-1]), "edge:is_fraud", tmp_path / "splits.csv")


def test_a_link_split_in_the_file_is_audited(tmp_path):
    tables = payments()
    data = load_data(tables)
    write_splits({}, tmp_path / "splits.csv", more=[link_rows(links(data.graph), data.graph, data.rows("edge"))])
    report = inspect_data(tables, splits=tmp_path / "splits.csv")
    assert sum(report.splits["links"].values()) == 1000
    assert report.problems == []


def test_a_split_of_a_table_that_is_not_there_is_an_error(tmp_path):
    (tmp_path / "splits.csv").write_text("table,row,split\nplanets,1,train\n")
    with pytest.raises(ValueError, match=r"splits.csv has a split of planets, which is not a table"):
        inspect_data(payments(), splits=tmp_path / "splits.csv")


def test_a_split_column_is_audited_by_itself():
    tables = payments()
    tables.edges["split"] = np.repeat(["train", "val", "test"], [800, 50, 150])
    assert inspect_data(tables, "edge:is_fraud").splits["edges"] == {"train": 800, "validation": 50, "test": 150}


def test_molecules_are_reported_with_their_features_and_bad_rows(tmp_path):
    frame = pd.DataFrame({"smiles": ["CCO", "C", "C1CC", "c1ccccc1"] * 3, "y": [0.5, 1.5, 2.5, None] * 3})
    write_table(frame, tmp_path / "drugs.csv")
    report = inspect_data(str(tmp_path / "drugs.csv"), "graph:y")
    assert report.structure.graphs == 9
    assert report.tables[0].bad_rows == 3
    assert report.columns[0].kind == "molecule"
    assert report.labels[0].missing == 3
    assert any("molecules stand in" in finding.what for finding in report.findings)


@pytest.mark.slow
def test_the_estimate_is_for_the_network_that_is_trained():
    report = inspect_data(payments(), ["link", "edge:is_fraud"], estimate=True)
    assert any("an estimate for one model, ENE with 64 units" in line for line in screen(report, 140))
    assert inspect_data(payments(), "link", estimate=True).cost.network == "EN with 128 units"
    assert inspect_data(payments(), estimate=True).cost.network == "NEN with 32 units"
    assert inspect_data(payments()).cost is None


def test_karate_is_healthy():
    report = inspect_data("karate")
    assert (report.structure.nodes, report.structure.edges, report.line_graph.links) == (34, 78, 528)
    assert report.labels[0].num_classes == 2
    assert report.problems == []


def test_cora_is_as_the_papers_count_it(real_data):
    report = inspect_data("cora")
    assert (report.structure.nodes, report.structure.edges, report.line_graph.links) == (2708, 5278, 52_301)
    assert (report.structure.components, report.structure.largest_component) == (78, 2485)
    assert report.structure.degrees.most == 168
    assert len(screen(report)) <= 45


def test_the_picture_of_degrees_begins_where_there_are_nodes():
    every = [(one, other) for one in range(20) for other in range(one)]  # each node has degree 19
    shown = next(line for line in screen(report_on(every, 20)) if "degrees" in line)
    assert shown.rstrip().endswith("max 19   16-31 █")


def test_inspect_says_what_training_takes_each_target_for_and_how_to_have_it_otherwise():
    edges = payments().edges
    rows = np.arange(len(edges))
    fee = [f">{40}" if row % 5 == 0 else f"<= {-1}" if row % 7 == 0 else str(row / 3) for row in rows]
    tables = Tables(edges=edges.assign(rating=rows % 5 + 1, sign=np.where(rows % 10, "pos", "neg"), fee=fee))
    report = inspect_data(tables, ["edge:rating,fee", "edge:sign=binary:pos", "edge:is_fraud"])
    rating, price, sign, _ = report.labels
    assert (rating.kind, rating.num_classes) == ("multiclass", 5)
    assert "edge:rating=regression learns them as numbers" in rating.reason
    assert (price.kind, price.missing) == ("regression", 0)
    assert price.censored == sum(text[0] in "<>" for text in fee)
    assert price.quantity["most"] < 1 + len(edges) / 3
    assert "positive: pos (90 % of the labels)" in sign.reason
    text = " ".join(" ".join(screen(report, width=200)).split())
    assert f"{price.censored:,} more are censored" in text
    assert "edge:rating=regression learns them as numbers" in text
    assert "positive: " in text


def test_inspect_reports_a_number_that_was_asked_for_as_one_and_what_cannot_be_learnt_as_a_problem():
    edges = payments().edges
    tables = Tables(
        edges=edges.assign(rating=np.arange(len(edges)) % 5 + 1, memo=[f"word {n}" for n in range(len(edges))])
    )
    (rating,) = inspect_data(tables, "edge:rating=regression").labels
    assert (rating.kind, rating.num_classes, rating.quantity["mean"]) == ("regression", 0, 3.0)
    report = inspect_data(tables, "edge:memo")
    assert any("column memo: has" in finding.what for finding in report.problems)
    report = inspect_data(tables, "edge:rating=binary:7")
    assert any("different values, expected two for binary" in finding.what for finding in report.problems)
