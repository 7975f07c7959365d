"""Counts of known labels: by hand, against a slow reference, in subgraphs, and never of the row itself."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, sampled_from

import censnet.training.sampled_subgraphs as module
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.settings.schema import TrainingSettings
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.label_counts import count_channels, count_width, label_sums
from censnet.tasks.targets import Target
from censnet.training.batches import make_batches
from censnet.training.task_data import TaskData

FRAUD = Target(level="edge", column="fraud", kind="binary", classes=["no", "yes"])
PRICE = Target(level="edge", column="price", kind="regression")
SORT = Target(level="node", column="sort", kind="multiclass", classes=["a", "b", "c"])
MANY = Target(level="edge", column="shop", kind="multiclass", classes=[str(number) for number in range(17)])


def slow_sums(values, level, ends, num_nodes, directed):
    """The sums of `label_sums`, by a loop over all pairs of rows."""
    pairs, found = ends.T.tolist(), []
    if level == "node":
        for node in range(num_nodes):
            after = sum(values[t] for s, t in pairs if s == node != t)
            before = sum(values[s] for s, t in pairs if t == node != s)
            found.append([after, before] if directed else [after + before])
        return torch.tensor(found, dtype=torch.float64)
    for e, (s, t) in enumerate(pairs):
        others = [(*pair, values[f]) for f, pair in enumerate(pairs) if f != e]
        parallel = sum(y for a, b, y in others if (a, b) == (s, t))
        back = sum(y for a, b, y in others if (a, b) == (t, s))
        if directed:
            around = [sum(y for *ends, y in others if ends[way] == node) for node in (s, t) for way in (0, 1)]
            found.append([*around, parallel, back])
        else:
            around = [sum(y for a, b, y in others if node in (a, b)) for node in (s, t)]
            found.append([*around, parallel + back * (s != t)])
    return torch.tensor(found, dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(level=sampled_from(["node", "edge"]), directed=booleans(), num_nodes=integers(1, 6), seed=integers(0, 2**16))
def test_the_sums_are_those_of_a_slow_loop(level, directed, num_nodes, seed):
    draw = torch.Generator().manual_seed(seed)
    ends = torch.randint(num_nodes, (2, 12), generator=draw)  # with loops and parallel edges
    values = torch.randint(-5, 6, (12 if level == "edge" else num_nodes,), generator=draw).double()
    found = label_sums(values.unsqueeze(1), level, Incidence(ends, num_nodes), directed).squeeze(2)
    torch.testing.assert_close(found, slow_sums(values.tolist(), level, ends, num_nodes, directed))


def test_channels_by_hand():
    sums = torch.tensor([[[2.0, 1.0, 6.0, 3.0]]]).expand(1, 6, 4)  # no, yes; sum and number of prices
    found = count_channels(sums, [FRAUD, PRICE], "edge", directed=True)
    each = [math.log(3) / 2, math.log(2) / 2, 2 / 4, 1 / 4, math.log(4) / 2, 6 / 4]
    torch.testing.assert_close(found, torch.tensor([each * 6]))
    assert count_width([FRAUD, PRICE], "edge", directed=True) == found.shape[1]


def test_labels_of_many_classes_are_not_counted():
    assert count_width([MANY], "edge", directed=True) == 0
    assert ModelInputs(known=[MANY], label_counts=True).edge_width == 17
    assert ModelInputs(known=[MANY, FRAUD], directed=True, label_counts=True).edge_width == 17 + 2 + 6 * 4


@pytest.mark.parametrize("directed", [True, False])
def test_the_ends_of_an_undirected_edge_have_no_order(directed):
    draw = torch.Generator().manual_seed(0)
    ends, labels = torch.randint(8, (2, 30), generator=draw), torch.randint(2, (30, 1), generator=draw).float()
    swapped = torch.where(torch.rand(30, generator=draw) < 0.5, ends, ends.flip(0))
    inputs = ModelInputs(known=[FRAUD], directed=directed, label_counts=True)
    one, other = (
        inputs.show(inputs.add(graph), {"edge": labels}, {"edge": torch.ones(30)}).edges
        for graph in (Graph(torch.ones(8, 1), torch.ones(30, 1), each, directed=directed) for each in (ends, swapped))
    )
    assert one.equal(other) is not directed


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("sampling", ["neighbors", "proportional"])
@pytest.mark.parametrize("targets", [[FRAUD, PRICE], [SORT], [FRAUD, SORT]])
def test_a_subgraph_has_the_counts_of_the_whole_graph_less_what_is_hidden(targets, sampling, directed, monkeypatch):
    draw = torch.Generator().manual_seed(0)
    graph = Graph(torch.ones(30, 1), torch.ones(200, 1), torch.randint(30, (2, 200), generator=draw), directed=directed)
    inputs = ModelInputs(known=targets, directed=directed, label_counts=True)
    labels, parts = {}, {}
    for level in inputs.levels:
        mine, count = [target for target in targets if target.level == level], graph.count(level)
        labels[level] = torch.randint(2, (count, len(mine)), generator=draw).float()
        parts[level] = (torch.rand(count, 1, generator=draw) > 0.8).long() * 2
    task_data = TaskData(inputs.add(graph), targets, labels, parts, inputs=inputs)
    batches = make_batches(task_data, TrainingSettings(sampling=sampling, batch_size=8, fanout=2), 1)
    seen, shown = [], []
    for name in ("sample_neighbors", "induced_subgraph"):
        of = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, of=of: seen.append(of(*args)) or seen[-1])
    monkeypatch.setattr(ModelInputs, "show", lambda _, graph, *args: shown.append(args) or graph)
    for chosen in list(batches.plan(draw))[:3]:
        seen.clear()
        batches.make(chosen, draw)
        _, visible, _, sums = shown.pop()
        for level in inputs.levels:
            rows = seen[0].nodes if level == "node" else seen[0].edges
            assert not visible[level].all()
            whole = task_data.training_rows(level).index_copy(0, rows, visible[level])
            expected = inputs.label_sums(level, labels[level], whole, graph.incidence)[rows]
            torch.testing.assert_close(sums[level], expected, atol=1e-12, rtol=0)


def test_a_subgraph_of_data_split_by_time_counts_no_later_label():
    draw = torch.Generator().manual_seed(0)
    ends, times = torch.randint(30, (2, 200), generator=draw), torch.arange(200, dtype=torch.float64)
    graph = Graph(torch.ones(30, 1), torch.ones(200, 1), ends, directed=True, times=times)
    inputs = ModelInputs(known=[FRAUD], directed=True, label_counts=True)
    labels = {"edge": torch.randint(2, (200, 1), generator=draw).float()}
    parts = {"edge": (times >= 150).long().unsqueeze(1) * 2}
    task_data = TaskData(inputs.add(graph), [FRAUD], labels, parts, inputs=inputs)
    assert task_data.is_by_time
    batches = make_batches(task_data, TrainingSettings(sampling="neighbors", batch_size=8, fanout=2), 1)
    chosen = torch.arange(80, 100)
    found = batches.make(chosen, draw)
    expected = task_data.show_labels({"edge": times < 80}).edges[chosen]
    torch.testing.assert_close(found.graph.edges[found.rows["edge"]], expected)


def test_no_row_has_its_own_label():
    draw = torch.Generator().manual_seed(1)
    ends, labels = torch.randint(6, (2, 40), generator=draw), torch.randint(2, (40, 1), generator=draw).float()
    graph = Graph(torch.ones(6, 1), torch.ones(40, 1), ends, directed=True)
    inputs = ModelInputs(known=[FRAUD], directed=True, label_counts=True)
    own = inputs.show(inputs.add(graph), {"edge": labels}, {"edge": torch.ones(40)}).edges
    for row in range(40):
        flipped = labels.index_put((torch.tensor([row]),), 1 - labels[row])
        found = inputs.show(inputs.add(graph), {"edge": flipped}, {"edge": torch.ones(40)}).edges
        assert found[row, 3:].equal(own[row, 3:]), "behind its one-hot label"
        assert not found[:, 3:].equal(own[:, 3:])
