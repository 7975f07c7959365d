"""Tables of the library's presets: cells trained as `censnet train` does, from a preset and some changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from censnet.data.tables.schema import Schema
from censnet.data.tables.table_graph import count_degree, encode_degree, fit_degree
from censnet.errors import ArgumentError
from censnet.nn.chunked import dense
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.resolve import resolve_settings
from censnet.selection.candidates import Candidate, Selection
from censnet.selection.pseudo_labels import INVERSE_TEMPERATURES
from censnet.selection.self_training import fit_ensemble
from censnet.settings.presets import make_settings
from censnet.tasks.metrics import MONITORS
from censnet.training.devices import make_accelerator
from censnet.training.ensemble import average
from censnet.training.evaluator import Evaluator, infer
from censnet.training.task_data import TaskData
from censnet_experiments.baselines.encoders import baseline_encoder
from censnet_experiments.data import PresetData
from censnet_experiments.plan import SECTIONS, Plan, Preset
from censnet_experiments.records import Record, Run


def train_runs(plan: Plan[Preset], runs: Sequence[Run], data: PresetData, device: torch.device) -> list[Record]:
    """Train the runs of one cell, several as one batch, and score the selected networks.

    Args:
        plan: the method.
        runs: of one cell, their seeds without a gap.
        data: with the inputs of these seeds.
        device: for training.
    """
    task_data = [data.task_data[cell][plan.split_seed(seed)] for cell, seed in runs]
    start, recipe, seeds = time.perf_counter(), plan.recipe, [seed for _, seed in runs]
    if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        raise ArgumentError(f"seeds are {seeds}, expected no gap: members are drawn from the first one onwards")
    if not recipe.edge_features:
        task_data = _with_graphs(task_data, _without_edge_features)
    if not recipe.node_features:
        task_data = [replace(one, node_features=False) for one in _with_graphs(task_data, _without_node_features)]
    settings = make_settings(recipe.preset, SECTIONS[plan.table], recipe.changes, seeds[0])
    if settings.data.descriptors is not True:  # "auto" has none on sets as large as those of the table
        task_data = _with_graphs(task_data, _without_descriptors)
    elif any(one.graph.graph_width == 0 for one in task_data):
        raise ArgumentError("the molecules have no descriptors, expected them for data.descriptors: prepare them again")
    settings = resolve_settings(task_data[0], settings, set(recipe.changes))
    encoder = None if recipe.encoder == "censnet" else baseline_encoder(recipe.encoder)
    selections = fit_ensemble(
        _batch_splits(task_data, recipe.ensemble), settings, len(task_data) * recipe.ensemble,
        accelerator=make_accelerator(settings.training.precision, str(device)), make_encoder=encoder,
    )  # fmt: skip
    seconds = (time.perf_counter() - start) / len(seeds)
    records = []
    for number, (run, one) in enumerate(zip(runs, task_data, strict=True)):
        members = slice(number * recipe.ensemble, (number + 1) * recipe.ensemble)
        metrics = _evaluate([selection.model for selection in selections[members]], one, device)
        chosen, num_candidates = _chosen(selections[members][0]), count_candidates(selections[0].candidates)
        records.append(Record.of(plan, run, metrics, seconds, device, chosen=chosen, num_candidates=num_candidates))
    return records


def _batch_splits(task_data: Sequence[TaskData], ensemble: int) -> TaskData:
    """Merge inputs of one graph with the same labels into one, whose members have a split each."""
    first = task_data[0]
    if not first.parts:
        return first
    if any(one.graph is not first.graph or one.targets != first.targets for one in task_data):
        raise ArgumentError("inputs of one batch are of several graphs or targets, expected one of each")
    parts = {level: torch.cat([one.parts[level].expand(-1, ensemble) for one in task_data], 1) for level in first.parts}
    return replace(first, parts=parts)


def _with_graphs(
    task_data: Sequence[TaskData], change: Callable[[Graph | GraphSet], Graph | GraphSet]
) -> list[TaskData]:
    """Replace the graph of each; a shared one is changed once."""
    graphs = {id(one.graph): one.graph for one in task_data}
    changed = {key: change(graph) for key, graph in graphs.items()}
    return [replace(one, graph=changed[id(one.graph)]) for one in task_data]


def _without_edge_features(graph: Graph | GraphSet) -> Graph | GraphSet:
    """Give all edges the same feature."""
    return replace(graph, edges=torch.ones(len(graph.edges), 1))


def _without_node_features(graph: Graph | GraphSet) -> Graph | GraphSet:
    """Replace node features by the default ones of a table of edges alone."""
    if isinstance(graph, GraphSet):
        raise ArgumentError("node_features is false for many graphs, expected one graph")
    degree = count_degree(graph.ends.numpy(), graph.num_nodes)
    return replace(graph, nodes=encode_degree(fit_degree(Schema(), degree, None), degree))


def _without_descriptors(graph: Graph | GraphSet) -> Graph | GraphSet:
    """Remove graph features: molecules are prepared with descriptors, for the plans that use them."""
    return graph.with_graph_features(None) if isinstance(graph, GraphSet) else graph


def _chosen(selection: Selection) -> dict[str, float]:
    """The epoch selected on the validation set, and the candidate where there were several."""
    chosen: dict[str, float] = {"epoch": selection.fit_result.best_epoch[0]}
    if selection.candidates:
        selected = selection.candidates[selection.selected]
        chosen |= {
            "round": selected.round,
            "pseudo_label_weight": selected.pseudo_label_weight,
            "frozen_gates": float(selected.gates == "frozen"),
        }
    return chosen


def count_candidates(candidates: Sequence[Candidate]) -> int:
    """The number of settings selected from: initial pseudo-labels are themselves the best of several temperatures."""
    initial = [one.pseudo_label_weight > 0 and one.round == 1 for one in candidates]
    return max(1, sum(len(INVERSE_TEMPERATURES) if one else 1 for one in initial))


def _evaluate(models: Sequence[Model], task_data: TaskData, device: torch.device) -> dict[str, float]:
    """The monitored score on the validation and test set; of links, all scores."""
    task_data, found = task_data.to(device), dict[str, float]()
    models = [model.to(device).eval() for model in models]
    if task_data.links is not None:
        for part, prefix in (("validation", "validation_"), ("test", "")):
            scores = Evaluator(task_data, part)(models[0])[0]["link"]
            found |= {f"{prefix}{name}": scores[name] for name in ("auc", "ap")}
        return found
    (level,) = task_data.parts
    outputs = torch.stack([dense(infer(model, task_data.graph).by_level[level]) for model in models])
    metric = MONITORS[task_data.targets[0].kind]
    for part in ("validation", "test"):
        scores = Evaluator(task_data, part).score({level: average(task_data.of(level), outputs)})[0][level]
        found[part] = scores[metric]
    return found
