"""Explain rows by trained models: their neighborhoods, with the known labels that their predictions are shown."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

import torch
from torch import Tensor

from censnet.console import counting
from censnet.data.dataset import Dataset
from censnet.errors import ArgumentError, DataError
from censnet.explanation.answers import answer_of, losses
from censnet.explanation.parts import WHOLE, Effort, count_copies, explain_parts, fidelity
from censnet.explanation.probe import Probe, neighborhood, pair_neighborhood
from censnet.levels import Level
from censnet.nn.chunked import dense
from censnet.nn.model import Model, Outputs
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.runs.explain import Explained, PartNames, find_rows, row_names
from censnet.runs.explained_links import find_pairs, likeliest_pairs, pair_name
from censnet.runs.known_labels_in_prediction import KnownLabels
from censnet.runs.links import one_graph
from censnet.runs.uncertainty import Uncertainty
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.targets import Target, output_slices
from censnet.training.task_data import row_labels

Order = Literal["score", "loss"]
TIMED, TIMED_ROWS = 16, 10_000  # copies of a neighborhood, and nodes and edges in all of them
MOST_IF_SLOW = 50  # edges, and nodes, that are left out where each takes a diffusion of the graph or its whole past


class Explainable(Protocol):
    """What is asked of a run: `Predictor` is one."""

    @property
    def models(self) -> list[Model]: ...

    @property
    def uncertainty(self) -> Uncertainty: ...

    @property
    def inputs(self) -> ModelInputs: ...

    @property
    def targets(self) -> Mapping[str, list[Target]]: ...

    def outputs(
        self, graph: Graph | GraphSet, device: torch.device, progress: bool = ..., known: KnownLabels | None = ...
    ) -> list[Outputs]: ...

    def known_labels(self, dataset: Dataset) -> KnownLabels | None: ...


def explain_rows(
    run: Explainable,
    dataset: Dataset,
    target: Target,
    rows: Sequence[str | int] | str | int | None,
    top: int | None,
    by: Order,
    progress: bool,
    effort: Effort = WHOLE,
    seconds: float | None = None,
) -> list[Explained]:
    """Explain rows of one target. The arguments are those of `Predictor.explain` and `Predictor.explain_rows`."""
    end = None if seconds is None else time.monotonic() + seconds
    level, known = str(target.level), run.known_labels(dataset)
    asked = [rows] if isinstance(rows, str | int) else rows
    passes, models = _Passes(run, dataset, known), [model.cpu().eval() for model in run.models]
    chosen: Sequence[int | tuple[int, int]]
    if level == Level.LINK:
        chosen = _chosen_pairs(run, dataset, asked, top or 1, by, known)
    elif asked is not None:
        chosen = find_rows(dataset, level, asked)
    else:
        chosen = _top_rows(run, dataset, target, top or 1, by, known)
    columns, names = PartNames(dataset, run.inputs).columns, [] if level == Level.LINK else row_names(dataset, level)
    found = list[Explained]()
    with counting("explaining", len(chosen), progress) as tick:
        for one in chosen:
            if end is not None and time.monotonic() > end:
                break
            chosen_class = 1
            if isinstance(one, tuple):
                row, name = len(found), pair_name(dataset, one)
                graph = passes.graph_for(level, -1)
                assert isinstance(graph, Graph)
                probe = Probe(models, pair_neighborhood(graph, *one, models[0]), level, lambda scores: scores[:, 0])
            else:
                row, name, number = one, names[one], int(dataset.rows(level)[one])
                place = neighborhood(passes.graph_for(level, number), level, number, models[0])
                slices = output_slices(run.targets[level])
                mine = dict(zip([each.column for each in run.targets[level]], slices, strict=True))
                chosen_class = _predicted_class(models, place.graph, place.seed, level, target, mine[target.column])
                probe = Probe(models, place, level, answer_of(target, mine[target.column], chosen_class))
            if probe.is_slow:
                effort = replace(effort, most=min(effort.most, MOST_IF_SLOW))
            if end is not None and time.monotonic() + _seconds_of(probe) * count_copies(probe, columns, effort) > end:
                tick(1)
                continue
            parts = explain_parts(probe, columns, effort)
            faithful = {kind: fidelity(probe, parts, kind) for kind in ("edge", "node")}
            word = target.classes[chosen_class] if target.classes else ""
            measured = {kind: one for kind, one in faithful.items() if one is not None}
            answer = probe.whole()
            found.append(Explained(row, name, target.column, word, answer, probe.place, level, parts, measured))
            tick(1)
    return found


def _chosen_pairs(
    run: Explainable,
    dataset: Dataset,
    asked: Sequence[str | int] | None,
    top: int,
    by: Order,
    known: KnownLabels | None,
) -> list[tuple[int, int]]:
    """The pairs of nodes that are named, or those of the most probable missing links."""
    one_graph(dataset)
    if asked is not None:
        return find_pairs(dataset, asked)
    if by == "loss":
        raise ArgumentError("by is loss, expected score: a link that is not there has no label")
    outputs = run.outputs(dataset.graph, torch.device("cpu"), known=known)
    return likeliest_pairs(dataset, run.models, outputs, top)


def _seconds_of(probe: Probe) -> float:
    """How long one answer takes, computed with some others as in an explanation."""
    graph = probe.place.graph
    copies = max(1, min(TIMED, probe.copies, TIMED_ROWS // (graph.num_nodes + graph.num_edges + 1)))
    nodes, edges = (features.expand(copies, *features.shape) for features in (graph.nodes, graph.edges))
    probe.whole()  # the first answer takes longer
    begin = time.monotonic()
    with torch.no_grad():
        probe.of_features(nodes, edges)
    return (time.monotonic() - begin) / copies


class _Passes:
    """The graph that the prediction of a row reads: known labels of other rows are shown, and not its own."""

    def __init__(self, run: Explainable, dataset: Dataset, known: KnownLabels | None) -> None:
        self.known, self.inputs, self.plain = known, run.inputs, run.inputs.add(dataset.graph)
        self.made: dict[int, Graph] = {}

    def graph_for(self, level: str, row: int) -> Graph | GraphSet:
        if self.known is None or not isinstance(self.plain, Graph):
            return self.plain
        number = int(self.known.group[level][row]) if level in self.known.group else self.known.num_passes - 1
        if number not in self.made:
            graphs = self.known.graphs(self.plain, self.inputs)
            self.made[number] = next(graph for place, (graph, _) in enumerate(graphs) if place == number)
        return self.made[number]


def _predicted_class(
    models: Sequence[Model], graph: Graph, seed: int, level: str, target: Target, columns: slice
) -> int:
    """The class whose log odds are explained: the positive one of two, or the most probable one."""
    if target.kind != "multiclass":
        return len(target.classes) - 1
    with torch.no_grad():
        rows = [dense(model(graph).by_level[level])[seed, columns].softmax(0) for model in models]
    return int(torch.stack(rows).mean(0).argmax())


def _top_rows(
    run: Explainable,
    dataset: Dataset,
    target: Target,
    top: int,
    by: Literal["score", "loss"],
    known: KnownLabels | None,
) -> list[int]:
    """The rows of the highest score, or loss: of a number, its size; of classes, the positive or the likeliest one."""
    level = str(target.level)
    mine = run.targets[level]
    members = run.outputs(dataset.graph, torch.device("cpu"), known=known)
    sure = run.uncertainty.where_known(0.0 if known is None else known.share)
    outputs = sure.combine(level, mine, [dense(one.by_level[level]) for one in members])
    own = dense(outputs)[:, output_slices(mine)[[one.column for one in mine].index(target.column)]]
    if by == "score":
        value = own[:, 0] if own.shape[1] == 1 else own.softmax(1).amax(1)
    else:
        labels = target.encode(dataset.labels(level, target.column))
        value = losses(target, own, row_labels([target], [labels], dataset.rows(level), dataset.count(level))[:, 0])
        if bool(value.isnan().all()):
            raise DataError("no row has a label, expected some to order by their loss", column=target.column)
    rows = dataset.rows(level)
    of_row = torch.where(rows >= 0, value[rows.clamp(min=0)], torch.nan)
    order = of_row.nan_to_num(-torch.inf).argsort(descending=True, stable=True)[:top]
    return _usable(order, of_row)


def _usable(order: Tensor, values: Tensor) -> list[int]:
    return [row for row in order.tolist() if not bool(values[row].isnan())]
