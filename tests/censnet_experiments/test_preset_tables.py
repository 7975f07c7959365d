"""Tables of the presets are trained by the library itself, on the inputs that a user's training would have."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from samples import payments, quick, shapes, smiles

from censnet import train
from censnet.data.tables.files import Tables
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import prepare
from censnet.training.task_data import TaskData
from censnet_experiments.batched_trainer import Compute
from censnet_experiments.bundle import Bundle, read_bundle, write_bundle
from censnet_experiments.data import PresetData
from censnet_experiments.plan import Plan, Preset
from censnet_experiments.preset_tables import train_runs
from censnet_experiments.records import Record, read
from censnet_experiments.runner import run_plan

CPU = torch.device("cpu")
SHORT = quick(training__epochs=4)
DESCRIBED: dict[str, object] = {"data.descriptors": True}


def plan(table: str, method: str = "strong", **recipe: object) -> Plan[Preset]:
    changes = {**SHORT, **recipe.pop("changes", {})}  # type: ignore[dict-item]
    return Plan(table, method, Preset("strong", changes, **recipe), runs=2)  # type: ignore[arg-type]


def inputs_of(data: object, target: str, seed: int = 0) -> TaskData:
    return prepare(data, target, "strong", SHORT, seed).task_data


def learn(plan: Plan[Preset], inputs: list[TaskData], seeds: list[int], device: torch.device = CPU) -> list[Record]:
    """Train these inputs from these seeds."""
    runs = [("cora-3", seed) for seed in seeds]
    by_seed = dict(zip(seeds, inputs, strict=True))
    data = PresetData({"cora-3": [by_seed.get(seed, inputs[0]) for seed in range(max(seeds) + 1)]})
    return train_runs(plan, runs, data, device)


def described(seed: int) -> TaskData:
    return prepare(smiles(), "graph:size", "strong", SHORT | DESCRIBED, seed).task_data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "target", "metric"),
    [("nodes", "node:tier", "accuracy"), ("links", "link", "auc"), ("molecules", "graph:weight", "rmse")],
)
def test_a_record_says_what_a_training_of_that_seed_reaches(table: str, target: str, metric: str) -> None:
    data = shapes(30) if table == "molecules" else payments()
    (record,) = learn(plan(table), [inputs_of(data, target, 3)], [3], CPU)
    level = target.partition(":")[0]
    scores = train(data, target, settings=SHORT, seed=3).metrics
    validation, test = ("validation_auc", "auc") if table == "links" else ("validation", "test")
    assert record.metrics[validation] == pytest.approx(scores["validation"][level][metric], abs=1e-5)
    assert record.metrics[test] == pytest.approx(scores["test"][level][metric], abs=1e-5)


def test_an_ensemble_is_scored_by_its_mean_prediction() -> None:
    data = shapes(30)
    (record,) = learn(plan("molecules", ensemble=2), [inputs_of(data, "graph:weight")], [0], CPU)
    scores = train(data, "graph:weight", settings=SHORT, ensemble=2).metrics
    assert record.metrics["test"] == pytest.approx(scores["test"]["graph"]["rmse"], abs=1e-5)


@pytest.mark.slow
def test_descriptors_are_used_by_the_plans_that_have_them() -> None:
    data = smiles()
    for changes in ({}, DESCRIBED):
        (record,) = learn(plan("molecules", changes=changes), [described(3)], [3], CPU)
        scores = train(data, "graph:size", settings=SHORT | changes, seed=3).metrics
        assert record.metrics["test"] == pytest.approx(scores["test"]["graph"]["rmse"], abs=1e-5)
        assert record.settings["changes"].get("data.descriptors", False) == bool(changes)
    with pytest.raises(ValueError, match="the molecules have no descriptors, expected them"):
        learn(plan("molecules", changes=DESCRIBED), [inputs_of(data, "graph:size")], [0], CPU)


def test_batched_seeds_have_splits_of_their_own() -> None:
    data = payments()
    first = inputs_of(data, "node:vip", 0)
    inputs = [first, replace(inputs_of(data, "node:vip", 1), graph=first.graph)]
    one, other = learn(plan("nodes"), inputs, [0, 1], CPU)
    assert (one.seed, other.seed) == (0, 1)
    assert {"validation", "test"} == set(one.metrics) == set(other.metrics)
    with pytest.raises(ValueError, match=r"seeds are \[0, 2\], expected no gap"):
        learn(plan("nodes"), inputs, [0, 2], CPU)
    with pytest.raises(ValueError, match="several graphs"):
        learn(plan("nodes"), [first, inputs_of(data, "node:vip", 1)], [0, 1], CPU)


def test_without_edge_features_all_edges_are_equal() -> None:
    task_data = inputs_of(payments(), "node:vip")
    assert isinstance(task_data.graph, Graph)
    alike = replace(task_data, graph=replace(task_data.graph, edges=torch.ones(task_data.graph.num_edges, 1)))
    (found,) = learn(plan("nodes", edge_features=False), [task_data], [0], CPU)
    (expected,) = learn(plan("nodes"), [alike], [0], CPU)
    assert found.metrics == expected.metrics


def test_without_node_features_it_is_as_with_a_table_of_ids_and_edges() -> None:
    data = payments()
    assert data.nodes is not None
    (found,) = learn(plan("links", node_features=False), [inputs_of(data, "link")], [0], CPU)
    (expected,) = learn(plan("links"), [inputs_of(Tables(data.nodes[["id"]], data.edges), "link")], [0], CPU)
    assert found.metrics == expected.metrics
    with pytest.raises(ValueError, match="node_features is false for many graphs, expected one graph"):
        learn(plan("molecules", node_features=False), [inputs_of(shapes(30), "graph:weight")], [0], CPU)


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["gcn", "appnp", "gat"])
def test_a_baseline_encoder_replaces_censnet(encoder: str) -> None:
    changes = {"model.norm": None, "model.pre_layers": 0, "model.residual": False, "model.hidden": 16}
    (record,) = learn(plan("nodes", encoder=encoder, changes=changes), [inputs_of(payments(), "node:vip")], [0], CPU)
    assert 0 <= record.metrics["test"] <= 1


@pytest.mark.slow
def test_a_cell_adds_the_seeds_that_are_missing(tmp_path: Path) -> None:
    inputs = [inputs_of(payments(), "node:vip", seed) for seed in range(3)]
    data = PresetData({"cora-3": inputs})
    run_plan(plan("nodes"), ["cora-3"], data, [0, 2], tmp_path, Compute(CPU))
    run_plan(plan("nodes"), ["cora-3"], data, [0, 1, 2], tmp_path, Compute(CPU))
    records = read(tmp_path / "nodes" / "cora-3" / "strong.jsonl")
    assert [(record.cell, record.seed) for record in records] == [("cora-3", 0), ("cora-3", 2), ("cora-3", 1)]
    assert all(record.chosen["epoch"] >= 1 for record in records)
    assert all({"round", "pseudo_label_weight", "frozen_gates"} <= record.chosen.keys() for record in records)
    # gates learned or frozen, each without pseudo-labels and with the best of four temperatures; then two rounds
    assert {record.num_candidates for record in records} == {2 * (1 + 4) + 2 + 2}


def test_bundled_inputs_are_read_back_with_their_shared_graph(tmp_path: Path) -> None:
    first = inputs_of(payments(), "node:vip", 0)
    second = replace(inputs_of(payments(), "node:vip", 1), graph=first.graph)
    sparse = replace(first, graph=replace(first.graph, nodes=first.graph.nodes.to_sparse_csr()))
    data = PresetData(
        {
            "cora-3": [first, second],
            "cora-1": [sparse],
            "tox21-random": [inputs_of(shapes(12), "graph:ring")],
            "cora": [inputs_of(payments(), "link")],
            "lipophilicity-random": [described(0)],
        }
    )
    write_bundle(tmp_path / "some.safetensors", Bundle("nodes", "cora", data, [plan("nodes")]))
    pack = read_bundle(tmp_path / "some.safetensors")
    assert list(pack.plans) == [plan("nodes")]
    assert isinstance(pack.data, PresetData)
    found = pack.data.task_data
    assert found["cora-3"][0].graph is found["cora-3"][1].graph
    for cell, inputs in data.task_data.items():
        for task_data, back in zip(inputs, found[cell], strict=True):
            _assert_same(task_data, back)


def _assert_same(task_data: TaskData, back: TaskData) -> None:
    assert list(back.targets) == list(task_data.targets)
    assert back.node_features == task_data.node_features
    torch.testing.assert_close(back.graph.nodes, task_data.graph.nodes)
    torch.testing.assert_close(back.graph.edges, task_data.graph.edges)
    torch.testing.assert_close(back.graph.ends, task_data.graph.ends)
    if isinstance(task_data.graph, GraphSet):
        assert isinstance(back.graph, GraphSet)
        torch.testing.assert_close(back.graph.node_offset, task_data.graph.node_offset)
        torch.testing.assert_close(back.graph.graph_features, task_data.graph.graph_features)
    for level in task_data.parts:
        torch.testing.assert_close(back.parts[level], task_data.parts[level].long())
        torch.testing.assert_close(back.labels[level], task_data.labels[level], equal_nan=True)
    assert (back.links is None) == (task_data.links is None)
    if task_data.links is not None and back.links is not None:
        torch.testing.assert_close(back.links.test_links, task_data.links.test_links)
        torch.testing.assert_close(back.links.rows.train, task_data.links.rows.train)


def test_records_of_a_preset_that_has_changed_are_not_mixed_with_new_ones(tmp_path: Path) -> None:
    inputs = [inputs_of(payments(), "node:vip", seed) for seed in range(2)]
    run_plan(plan("nodes"), ["cora-3"], PresetData({"cora-3": inputs}), [0], tmp_path, Compute(CPU))
    path = tmp_path / "nodes" / "cora-3" / "strong.jsonl"
    kept = json.loads(path.read_text())
    assert kept["settings"]["resolved"]["model"]["hidden"] == plan("nodes").recipe.changes["model.hidden"]
    kept["settings"]["resolved"]["model"]["dropout"] = 0.123
    path.write_text(json.dumps(kept) + "\n")
    with pytest.raises(ValueError, match="has records with another resolved, expected those of the spec"):
        run_plan(plan("nodes"), ["cora-3"], PresetData({"cora-3": inputs}), [1], tmp_path, Compute(CPU))
