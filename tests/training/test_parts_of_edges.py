"""Inference by parts of the edges gives what a pass over the whole graph gives, and begins where memory ends."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest
import torch
from samples import payments, quick

from censnet.nn.encoder import CensNet
from censnet.nn.parts import can_split, edges_at_once, embed_in_parts, infer_in_parts
from censnet.ops import Incidence
from censnet.ops.parts import Parts
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.training import evaluator
from censnet.training.task_data import build_model

MODELS = {
    "strong": ("edge:fraud", {"model.triangles": False}),  # directed, with known labels and means over pairs
    "strong, undirected": ("edge:fraud", {"data.directed": False, "model.triangles": False}),
    "numbers": ("edge:fee", {"model.label_factors": False, "model.norm": "layer"}),
    "nodes": ("node:vip", {"training.recipe": "high_label"}),
    "two levels": (["edge:sort", "node:tier"], {}),
    "paper": ("edge:fraud", quick(data__directed=False, model__layers="ENEN", model__edge_content=True)),
    "hops": ("edge:fraud", quick(data__directed=False, model__kernel="power", model__self_weight="incident")),
    "diffusion": ("edge:fraud", quick(data__directed=False, model__kernel="pagerank", model__self_weight="one")),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("most", [1, 60])
def test_parts_give_what_the_whole_graph_gives(name, most):
    target, changes = MODELS[name]
    prepared = prepare(with_loops(), target, changes=changes)
    task_data = prepared.task_data.with_inputs(prepared.settings.model)
    graph = task_data.show_labels({level: task_data.training_rows(level) for level in task_data.known_levels})
    torch.manual_seed(0)
    model = build_model(task_data, prepared.settings).eval()
    assert can_split(model, graph)
    with torch.no_grad():
        expected, embedded = model(graph), model.embed(graph)
    found = infer_in_parts(model, graph, most)
    assert found.by_level.keys() == expected.by_level.keys()
    assert found.unclipped.keys() == expected.unclipped.keys()
    for both in zip(embed_in_parts(model, graph, most), embedded, strict=True):
        torch.testing.assert_close(*both, rtol=1e-5, atol=1e-5)
    for level, rows in expected.by_level.items():
        torch.testing.assert_close(found.by_level[level], rows, rtol=1e-5, atol=1e-5)


def with_loops():
    """Payments of which one goes from an account to itself, in parallel with another."""
    tables = payments(25, 200)
    edges = tables.edges.copy()
    edges.loc[[10, 11], ["source", "target"]] = "a7"
    return type(tables)(tables.nodes, edges)


def test_an_edge_is_in_one_part_with_all_between_its_nodes():
    ends = torch.randint(0, 30, (2, 200), generator=torch.Generator().manual_seed(0))
    for most in (1, 9, 50, 200, 1000):
        parts = Parts(Incidence(ends, 30), most, "cpu")
        assert torch.cat(parts.rows).sort().values.equal(torch.arange(200))
        lows = [torch.minimum(*ends[:, rows]) for rows in parts.rows]
        assert all(int(a.max()) < int(b.min()) for a, b in itertools.pairwise(lows))
        assert all(len(rows) <= most or len(low.unique()) == 1 for rows, low in zip(parts.rows, lows, strict=True))
    assert len(parts.rows) == 1
    assert repr(Parts(Incidence(ends[:, :0], 30), 5, "cpu")) == "Parts(1 of 0 edges)"


def test_the_size_of_a_part_follows_from_the_memory_of_the_device(monkeypatch):
    prepared = prepare(payments(), "edge:fraud", changes=quick())
    model, graph = build_model(prepared.task_data, prepared.settings), prepared.task_data.graph
    assert evaluator.edges_of_part(model, graph) is None
    sizes = []
    for memory in (20_000, 40_000):
        monkeypatch.setattr(evaluator, "total_memory", lambda _, memory=memory: memory)
        sizes.append(evaluator.edges_of_part(model, graph))
        assert sizes[-1] == edges_at_once(model, graph, memory * evaluator.MAX_PART)
    assert sizes[1] == pytest.approx(2 * sizes[0], abs=1)
    model.encoder.variant = "released"  # whose edges read the largest entry of a column
    assert evaluator.edges_of_part(model, graph) is None


def test_a_run_predicts_and_embeds_by_parts(monkeypatch):
    run = train(payments(), "edge:fraud", settings=quick(model__known_labels=True), device="cpu")
    whole, embedded = run.predict(payments(), device="cpu"), run.embed(payments(), device="cpu")
    calls, forward = [], CensNet.forward
    monkeypatch.setattr(CensNet, "forward", lambda *inputs: calls.append(1) or forward(*inputs))
    monkeypatch.setattr(evaluator, "total_memory", lambda _: 20_000)
    found, parts = run.predict(payments(), device="cpu"), run.embed(payments(), device="cpu")
    assert not calls, "no pass over the whole graph"
    pd.testing.assert_frame_equal(found, whole, rtol=1e-5, atol=1e-5)
    for one, other in ((parts.nodes, embedded.nodes), (parts.edges, embedded.edges)):
        pd.testing.assert_frame_equal(one, other, rtol=1e-5, atol=1e-5)
