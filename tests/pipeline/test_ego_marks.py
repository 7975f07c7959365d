"""Ego marks: each node is predicted in a graph of its own, in training, in evaluation and on new data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick, shapes
from torch import Tensor

from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.inspection.cost import estimate_cost
from censnet.nn.chunked import dense
from censnet.nn.model import Model
from censnet.ops.ego import ego_graphs, mark_egos
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import Run, load_run
from censnet.settings.presets import of_ego_marks
from censnet.training.batches import make_batches
from censnet.training.ego_batches import EgoBatches
from censnet.training.evaluator import Evaluator, infer
from censnet.training.task_data import build_model

MARKED = quick(model__ego_marks=True, model__pre_layers=1)


def rings(graphs: int = 1, lengths: tuple[int, int] = (3, 6)) -> Tables:
    """Directed cycles of two lengths: every node has one edge in and one out, and only a walk back tells which."""
    nodes, edges = [], []
    for graph in range(graphs):
        names = iter(range(10**6))
        for length, count in zip(lengths, (24, 12), strict=True):
            for _ in range(count):
                ring = [next(names) for _ in range(length)]
                nodes += [{"graph": graph, "id": name, "short": int(length == lengths[0])} for name in ring]
                pairs = zip(ring, ring[1:] + ring[:1], strict=True)
                edges += [{"graph": graph, "source": one, "target": other} for one, other in pairs]
    found = Tables(pd.DataFrame(nodes), pd.DataFrame(edges))
    if graphs > 1:
        return found
    return Tables(*(frame.drop(columns="graph") for frame in (found.nodes, found.edges)))


def node_outputs(model: Model, graph: Graph | GraphSet, nodes: Tensor | None = None) -> Tensor:
    return dense(infer(model, graph, nodes=nodes).by_level["node"])


@pytest.fixture(scope="module")
def marked() -> Run:
    return train(payments(), "node:vip", settings=MARKED)


@pytest.mark.parametrize("graphs", [1, 3])
def test_without_the_weight_of_the_mark_predictions_are_those_in_the_whole_graph(graphs: int) -> None:
    data, target = (payments(), "node:tier") if graphs == 1 else (rings(3), "node:short")
    common = {"model.layers": "ENEN", "model.norm": "batch", "model.pre_layers": 1, "model.edge_pre_layer": True,
              "model.pair_means": True, "model.edge_content": True, "model.structural_features": True,
              "model.directed": "auto", "model.self_weight": "learned", "model.last_layer_is_head": False}  # fmt: skip
    changes = quick() | common | {"model.ego_marks": True, "model.ego_hops": "auto"}
    prepared = prepare(data, target, changes=changes)
    settings = prepared.settings
    task_data = prepared.task_data.with_inputs(settings.model)
    model = build_model(task_data, settings)
    assert model.ego_hops == model.receptive_field
    plain = build_model(task_data, settings.model_copy(update={"model": _without_marks(settings.model)}))
    weights = model.state_dict()
    first = weights["encoder.pre_layers.0.weight"]
    first[-1] = 0
    plain.load_state_dict(weights | {"encoder.pre_layers.0.weight": first[:-1]})
    assert_same(node_outputs(model, task_data.graph), node_outputs(plain, task_data.graph))
    first[-1] = 1
    model.load_state_dict(weights)
    assert float((node_outputs(model, task_data.graph) - node_outputs(plain, task_data.graph)).abs().max()) > 1e-3


def _without_marks(settings):
    return settings.model_copy(update={"ego_marks": False, "ego_hops": "auto"})


def assert_same(one: Tensor, other: Tensor) -> None:
    assert float((one - other).abs().max()) < 1e-5


@pytest.mark.parametrize("graphs", [1, 3])
def test_whether_a_node_is_on_a_cycle_is_learned_with_marks_and_only_with_them(graphs: int) -> None:
    data = rings(graphs)
    changes = quick(
        model__layers="ENEN", model__hidden=16, model__pre_layers=1, model__edge_content=True, model__directed="auto",
        model__self_weight="learned", model__residual=True, model__last_layer_is_head=False, training__epochs=30,
        training__patience=30, training__recipe="high_label", training__learning_rate=0.01,
    )  # fmt: skip
    without = train(data, "node:short", settings=changes)
    with_marks = train(data, "node:short", settings=changes | {"model.ego_marks": True})
    assert np.ptp(without.predictions["node"]["short_p_1"]) < 1e-5  # all nodes look the same
    assert with_marks.metrics["test"]["node"]["accuracy"] == 1.0
    longer = with_marks.evaluate(rings(graphs, (4, 5)))["all"]["node"] if graphs > 1 else None
    assert longer is None or longer["accuracy"] < 1.0  # another task: it was not learned by heart from the columns


def test_predictions_do_not_depend_on_the_order_of_rows_or_on_the_other_nodes(marked: Run) -> None:
    data = payments()
    first = marked.predict(data)
    order = np.random.default_rng(0).permutation(len(data.nodes))
    shuffled = marked.predict(Tables(data.nodes.iloc[order].reset_index(drop=True), data.edges))
    np.testing.assert_allclose(shuffled["vip_p_yes"], first["vip_p_yes"].iloc[order], atol=1e-6)


def test_a_saved_run_predicts_evaluates_and_embeds_as_before(marked: Run, tmp_path: Path) -> None:
    marked.save(tmp_path / "run")
    loaded, data = load_run(tmp_path / "run"), payments()
    assert loaded.models[0].ego_hops == marked.models[0].ego_hops == marked.models[0].receptive_field
    pd.testing.assert_frame_equal(loaded.predict(data), marked.predict(data))
    stored = marked.predictions["node"].set_index("id")["vip_p_yes"]
    np.testing.assert_allclose(loaded.predict(data).set_index("id")["vip_p_yes"], stored, atol=1e-6)
    scores = loaded.evaluate(data)
    assert scores["test"]["node"]["auc"] == pytest.approx(marked.metrics["test"]["node"]["auc"])
    embedded = loaded.embed(data)
    assert len(embedded.nodes) == len(data.nodes)
    assert len(embedded.edges) == len(data.edges)


def test_the_embedding_of_an_edge_is_the_mean_over_the_graphs_of_its_ends(marked: Run) -> None:
    data = payments()
    dataset = marked.read(data)
    model, graph, rows_of = marked.models[0], marked.inputs.add(dataset.graph), dataset.rows("edge")
    embedded = marked.embed(data).edges.filter(regex=r"^e\d+$").to_numpy()
    for row in (0, 17):
        edge = int(rows_of[row])
        found = ego_graphs(graph, graph.ends[:, edge], model.ego_hops)
        with torch.no_grad():
            rows = model.embed(mark_egos(found))[1][found.edges == edge]
        assert len(rows) == 2
        np.testing.assert_allclose(embedded[row], rows.mean(0).numpy(), atol=1e-6)


def test_validation_predicts_the_asked_nodes_alone(marked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(payments(), "node:vip", changes=MARKED)
    task_data = prepared.task_data.with_inputs(prepared.settings.model)
    asked = (task_data.parts["node"][:, 0] == 1).nonzero().squeeze(1)
    model, every = marked.models[0], node_outputs(marked.models[0], task_data.graph)
    some = node_outputs(model, task_data.graph, asked)
    assert_same(some[asked], every[asked])
    assert int((some != 0).any(1).sum()) == len(asked)
    scores = Evaluator(task_data, "validation")(model)[0]["node"]
    assert scores["auc"] == pytest.approx(marked.metrics["validation"]["node"]["auc"])


def test_batches_have_each_training_node_once_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(payments(), "node:vip", changes=MARKED | {"training.batch_size": 10})
    task_data = prepared.task_data.with_inputs(prepared.settings.model)
    batches = make_batches(task_data, prepared.settings.training, 2, ego_hops=1)
    assert isinstance(batches, EgoBatches)
    plan = batches.plan(torch.Generator().manual_seed(0))
    training = (task_data.parts["node"][:, 0] == 0).nonzero().squeeze(1)
    assert torch.cat(list(plan)).sort().values.equal(training)
    assert len(plan) == 2
    monkeypatch.setattr("censnet.training.ego_batches.MAX_EGO_ROWS", 60)
    smaller = batches.plan(torch.Generator().manual_seed(0))
    assert len(smaller) > len(plan)
    assert torch.cat(list(smaller)).equal(torch.cat(list(plan)))
    batch = batches.make(smaller[0], torch.Generator())
    assert batch.graph.nodes[batch.rows["node"], -1].eq(1).all()
    assert batch.labels["node"].equal(task_data.labels["node"][smaller[0]])


def test_the_default_is_a_recipe_of_its_own_and_yields_to_the_user() -> None:
    settings = prepare(payments(), "node:vip", changes={"model.ego_marks": True}).settings
    overlay = of_ego_marks("strong")
    assert settings.training.recipe == "high_label"
    assert settings.model.layers == overlay["model.layers"]
    assert settings.training.pseudo_label_weights == [0.0]
    assert settings.model.known_labels is False
    asked = prepare(payments(), "node:vip", changes={"model.ego_marks": True, "model.layers": "EN"}).settings
    assert asked.model.layers == "EN"


def test_the_cost_of_a_training_is_estimated() -> None:
    prepared = prepare(payments(), "node:vip", changes=MARKED | {"training.batch_size": 8})
    cost = estimate_cost(prepared.task_data, prepared.settings)
    assert cost.batches == 3
    assert cost.seconds > 0


@pytest.mark.parametrize(
    ("target", "changes", "why"),
    [
        ("edge:fraud", {}, "edge:fraud is predicted, and only nodes are marked"),
        (["node:vip", "edge:fraud"], {}, "edge:fraud is predicted"),
        (["node:vip", "link"], {}, "links are predicted"),
        ("link", {}, "links are predicted"),
        ("node:vip", {"model.known_labels": True}, "model.known_labels is true"),
        ("node:vip", {"training.sampling": "proportional"}, "training.sampling is proportional"),
        ("node:vip", {"training.sampling": "neighbors"}, "training.sampling is neighbors"),
        ("node:vip", {"training.pseudo_label_weights": [1.0]}, "there are pseudo-labels"),
        ("node:vip", {"training.self_training_rounds": 2}, "learn from pseudo-labels"),
    ],
)
def test_what_cannot_be_marked_is_refused(target: str | list[str], changes: dict[str, object], why: str) -> None:
    with pytest.raises(SettingsError, match=f"model.ego_marks is true, expected false: .*{why}"):
        prepare(payments(), target, changes={"model.ego_marks": True} | changes)


def test_graph_targets_and_oriented_columns_are_refused() -> None:
    with pytest.raises(SettingsError, match="graph:ring is predicted, and only nodes are marked"):
        prepare(shapes(), "graph:ring", changes={"model.ego_marks": True})
    with pytest.raises(SettingsError, match="oriented"):
        prepare(
            payments(), "node:vip", changes={"model.ego_marks": True, "data.directed": False},
            overrides={"amount": "oriented"},
        )  # fmt: skip


def test_hops_without_marks_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"model.ego_hops is 2, expected auto.*model.ego_marks is false"):
        prepare(payments(), "node:vip", changes={"model.ego_hops": 2})


def test_neighborhoods_that_would_take_hours_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("censnet.training.ego_batches.MAX_EGO_TOTAL", 100)
    with pytest.raises(SettingsError, match=r"fewer model.ego_hops: a neighborhood of 2 hops has at most \d+ nodes"):
        train(payments(), "node:vip", settings=MARKED)


def test_sparse_features_are_refused() -> None:
    with pytest.raises(SettingsError, match="the features of nodes are sparse"):
        prepare("cora", "node:label", changes={"model.ego_marks": True})
