"""Links by time: what is asked is new and later than all that is seen, between nodes that were known then."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from censnet import load_run, train
from censnet.data.splits.links import LinkSplit, link_rows, read_links
from censnet.data.splits.timed_links import links_by_time
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.ops.graph import Graph
from censnet.pipeline.inspect import inspect_data
from censnet.pipeline.prepare import prepare
from censnet.pipeline.train import describe_times


def history(seed: int, nodes: int = 30, edges: int = 300, bipartite: bool = False) -> Graph:
    """Edges in no order, with loops, ties, repeats and nodes that come late."""
    draw = np.random.default_rng(seed)
    newest = np.minimum(nodes, 5 + (nodes * np.arange(edges)) // edges)  # nodes that there are so far
    ends = (draw.random((2, edges)) * newest).astype(np.int64)
    if bipartite:
        ends[1] += nodes
    times, order = np.arange(edges) // 3, draw.permutation(edges)
    total = nodes * (2 if bipartite else 1)
    return Graph(
        torch.ones(total, 1),
        torch.ones(edges, 1),
        torch.from_numpy(ends[:, order]),
        times=torch.from_numpy(times[order]).double(),
    )


def pairs_of(ends: torch.Tensor, ordered: bool) -> set[tuple[int, ...]]:
    found = [tuple(pair) if ordered else tuple(sorted(pair)) for pair in ends.t().tolist()]
    return set(found)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("bipartite", [False, True])
def test_asked_links_are_new_later_and_of_known_nodes(ordered: bool, bipartite: bool) -> None:
    for seed in range(10):
        graph = history(seed, bipartite=bipartite)
        assert graph.times is not None
        split, of = links_by_time(graph, (0.7, 0.15, 0.15), seed, ordered), graph.times
        parts = split.rows.parts
        cuts = [float(of[parts[name]].min()) for name in ("validation", "test")]
        assert float(of[parts["train"]].max()) < cuts[0] <= float(of[parts["validation"]].max()) < cuts[1]
        assert not set(parts["train"].tolist()) & {*parts["validation"].tolist(), *parts["test"].tolist()}
        known, before = (
            set(graph.ends[:, parts["train"]].flatten().tolist()),
            pairs_of(graph.ends[:, parts["train"]], ordered),
        )
        every = pairs_of(graph.ends, ordered)
        boundary = float(of[parts["validation"]].max())
        until = pairs_of(graph.ends[:, of <= boundary], ordered)
        for name, linked, free in (
            ("validation", split.validation_links, split.validation_negatives),
            ("test", split.test_links, split.test_negatives),
        ):
            asked = pairs_of(linked, ordered)
            assert asked == pairs_of(graph.ends[:, parts[name]], ordered)
            assert len(asked) == linked.shape[1] == free.shape[1] == len(pairs_of(free, ordered))
            assert not asked & before, "a link that was there before is not asked for"
            assert {node for pair in asked | pairs_of(free, ordered) for node in pair} <= known
            assert not pairs_of(free, ordered) & (until if name == "validation" else every)
            assert bool((free[0] != free[1]).all())
            before |= asked
        assert not pairs_of(split.validation_negatives, ordered) & pairs_of(split.test_negatives, ordered)


def test_the_split_of_validation_knows_nothing_of_what_comes_after_it() -> None:
    graph = history(0)
    assert graph.times is not None
    other, late = graph.ends.clone(), graph.times >= 90
    other[:, late] = (other[:, late] + torch.tensor([[1], [2]])) % graph.num_nodes
    changed = Graph(graph.nodes, graph.edges, other, times=graph.times)
    first, second = (links_by_time(each, seed=3, starts=(70.0, 90.0)) for each in (graph, changed))
    for name in ("validation_links", "validation_negatives"):
        assert torch.equal(getattr(first, name), getattr(second, name))
    assert torch.equal(first.rows.train, second.rows.train)
    assert not torch.equal(first.test_links, second.test_links)


def test_rows_of_a_split_by_time_are_read_again() -> None:
    graph = history(1)
    split = links_by_time(graph, (0.7, 0.15, 0.15))
    again = read_links(link_rows(split, graph))
    assert isinstance(again, LinkSplit)
    for name in ("validation_links", "validation_negatives", "test_links", "test_negatives"):
        assert torch.equal(getattr(again, name), getattr(split, name))
    for part, rows in split.rows.parts.items():
        assert torch.equal(again.rows.parts[part], rows)


def test_parts_without_a_new_link_are_an_error() -> None:
    ends = torch.tensor([[0, 1, 0, 0, 1, 0], [1, 2, 2, 1, 2, 2]])
    graph = Graph(torch.ones(3, 1), torch.ones(6, 1), ends, times=torch.arange(6).double())
    with pytest.raises(DataError, match="of 1 validation edges none is a new link between nodes that have an edge in"):
        links_by_time(graph, (4, 1, 1))
    with pytest.raises(DataError, match="all edges are after the time at which validation begins"):
        links_by_time(graph, starts=(-1.0, 4.0))


def messages(rows: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    source = draw.integers(0, 40, rows)
    target = np.where(
        draw.random(rows) < 0.8, (source // 8) * 8 + draw.integers(0, 8, rows), draw.integers(0, 40, rows)
    )
    sent = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(rows), unit="h")
    return pd.DataFrame({"source": source, "target": target, "sent": sent, "size": draw.random(rows)})


def test_links_with_times_are_split_by_them_and_a_run_scores_them_again(tmp_path) -> None:
    tables = Tables(edges=messages())
    quick = {"training.epochs": 3, "model.hidden": 16, "data.link_fractions": (0.6, 0.2, 0.2)}
    run = train(tables, "link", tmp_path / "run", settings=quick, time="sent")
    split = prepare(tables, "link", "strong", quick | {"data.time": "sent"}).split_sources["link"]
    assert "by time, column sent of edges, validation from 2024-03-" in split
    assert "later edges repeat a link, join a new node or are loops: neither seen nor scored" in split
    again = load_run(tmp_path / "run").evaluate(tables)
    assert again["test"]["link"]["auc"] == pytest.approx(run.metrics["test"]["link"]["auc"])


def test_a_random_split_of_links_with_times_says_that_it_sees_the_future() -> None:
    changes = {"data.time": "sent"}
    assert "by time" in prepare(Tables(edges=messages()), "link", "strong", changes).split_sources["link"]
    found = prepare(Tables(edges=messages()), "link", "strong", {**changes, "data.split": "random"})
    assert "drawn at random" in found.split_sources["link"]
    assert describe_times(found) == ["links are not split by time: later edges are seen when a link is scored"]
    times = "2024-03-12", "2024-03-15"
    found = prepare(Tables(edges=messages()), "link", "strong", {**changes, "data.split_times": times})
    assert "validation from 2024-03-12 03:00, test from 2024-03-15 02:00" in found.split_sources["link"]


def test_edges_beside_links_are_split_before_the_links_that_are_hidden() -> None:
    frame = messages()
    frame["read"] = np.where(np.arange(len(frame)) % 3 == 0, "yes", "no")
    found = prepare(Tables(edges=frame), ["link", "edge:read"], "strong", {"data.time": "sent"})
    assert found.links is not None
    edges = found.splits["edge"].parts
    assert [len(rows) for rows in edges.values()] == [272, 34, 34]
    assert int(edges["test"].max()) <= int(found.links.rows.train.max())
    assert "test from 2024-03-" in found.split_sources["edge"]


def test_inspection_warns_of_a_random_split_of_links() -> None:
    (warning,) = [
        finding.what
        for finding in inspect_data(Tables(edges=messages()), "link").findings
        if "the time of each edge" in finding.what
    ]
    assert "a random split of links trains on edges that are later" in warning
