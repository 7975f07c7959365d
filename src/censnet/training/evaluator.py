"""Inference without gradients, and the scores of its outputs on train, validation or test samples."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.data.splits.split_file import PARTS
from censnet.errors import SettingsError
from censnet.nn.chunked import HeadOutputs, LazyOutputs, RowOutputs, dense, join
from censnet.nn.decoder import LinkInputs
from censnet.nn.encoder import CensNet
from censnet.nn.model import Model, Outputs
from censnet.nn.parts import can_split, edges_at_once, infer_in_parts
from censnet.ops.ego import ego_batches, ego_graphs, mark_egos
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.normalization import by_head
from censnet.tasks.losses import RegressionLoss, label_count, row_loss
from censnet.tasks.metrics import METRICS, MONITORS, condense, condensed_width, score, score_links
from censnet.tasks.targets import Target
from censnet.training.batch import even_batches
from censnet.training.devices import total_memory
from censnet.training.task_data import TaskData

logger = logging.getLogger(__name__)

MAX_WHOLE, MAX_PART = 0.3, 0.1  # shares of the memory of the device that a layer on a whole graph, or on a part, takes
BATCH_ROWS = 200_000  # nodes and edges of a GraphSet in one batch of inference
CPU_BATCH_ROWS = 4_000  # of one on a CPU, whose caches a layer's tensors then fit into: more than twice as fast
MORE_COLORS = 4  # times as many rows where equal neighborhoods are computed once
Scores = dict[str, dict[str, float]]  # level -> metric -> value


@torch.no_grad()
def infer(
    model: Model,
    graph: Graph | GraphSet,
    tick: Callable[[int], None] = lambda _: None,
    nodes: Tensor | None = None,
) -> Outputs:
    """Outputs for every node, edge and graph, without dropout.

    Args:
        model: the model.
        graph: a graph, or many.
        tick: called with the number of graphs done, or of nodes where each is predicted in a graph of its own.
        nodes: of a model with ego marks, the nodes to predict, and all if None; the outputs of others are 0.
    """
    was_training = model.training
    model.eval()
    try:
        most = edges_of_part(model, graph)
        if most is not None and isinstance(graph, Graph):
            found: Outputs = infer_in_parts(model, graph, most)
            tick(1)
            return found
        if model.ego_hops:
            return _infer_egos(model, graph if isinstance(graph, Graph) else graph.whole, tick, nodes)
        if isinstance(graph, Graph):
            found = model(graph)
            tick(1)
            return found
        batches = list[Outputs]()
        for index in graph_batches(graph, model):
            batches.append(model(graph.batch(index)))
            tick(len(index))
        by_level = {level: join([batch.by_level[level] for batch in batches]) for level in batches[0].by_level}
        unclipped = {level: join([batch.unclipped[level] for batch in batches]) for level in batches[0].unclipped}
        return Outputs(by_level, None, unclipped)
    finally:
        model.train(was_training)


def edges_of_part(model: Model, graph: Graph | GraphSet) -> int | None:
    """The most edges of a part where inference is by parts; None where the whole graph fits into memory.

    It follows from the total memory of the device of the model: the free one would make two predictions differ.
    """
    if not isinstance(graph, Graph) or not can_split(model, graph):
        return None
    memory = total_memory(next(model.parameters()).device)
    if graph.num_edges <= edges_at_once(model, graph, memory * MAX_WHOLE):
        return None
    return edges_at_once(model, graph, memory * MAX_PART)


def _infer_egos(model: Model, graph: Graph, tick: Callable[[int], None], nodes: Tensor | None) -> Outputs:
    """The outputs of nodes, each at the ego of its own graph."""
    every = torch.arange(graph.num_nodes, device=graph.ends.device) if nodes is None else nodes
    outputs, unclipped = list[Tensor](), list[Tensor]()
    for chosen in ego_batches(graph, every, model.ego_hops, batch_rows(graph)):
        egos = ego_graphs(graph, chosen, model.ego_hops)
        found: Outputs = model(mark_egos(egos))
        for parts, levels in ((outputs, found.by_level), (unclipped, found.unclipped)):
            if "node" in levels:
                rows = levels["node"]
                parts.append(rows[egos.seeds] if isinstance(rows, Tensor) else dense(rows.select(egos.seeds)))
        tick(len(chosen))

    def place(parts: list[Tensor]) -> dict[str, HeadOutputs]:
        if not parts:
            return {}
        values = torch.cat(parts)
        return {"node": values.new_zeros(graph.num_nodes, values.shape[1]).index_copy(0, every, values)}

    return Outputs(place(outputs), None, place(unclipped))


def graph_batches(graph: GraphSet, model: Model) -> list[Tensor]:
    """The graphs of a set in order, in batches of a bounded number of nodes and edges.

    Larger batches have more equal neighborhoods, where the encoder computes these once, as its first batch says.
    """
    rows = (len(graph.nodes) + len(graph.edges)) / len(graph)
    every, most = torch.arange(len(graph), device=graph.nodes.device), batch_rows(graph) / rows
    if most < len(graph) and isinstance(model.encoder, CensNet):
        first = graph.batch(every[: max(1, int(most))])
        if model.encoder.quotient(first.nodes, first.edges, first.incidence) is not None:
            most *= MORE_COLORS
    return even_batches(every, max(1, int(most)))


def batch_rows(graph: Graph | GraphSet) -> int:
    """The nodes and edges of small graphs in one batch of inference, on the device of this graph."""
    return min(BATCH_ROWS, CPU_BATCH_ROWS) if graph.ends.device.type == "cpu" else BATCH_ROWS


class Evaluator:
    """Scores on the samples of one part of the split.

    Args:
        task_data: graph, labels and split. Of a GraphSet, `task_data.only(part)` is enough.
        part: train, validation or test.
        metrics: the metrics to compute; None is all.
        regression_loss: of numbers, in the metric `loss`.
    """

    def __init__(
        self,
        task_data: TaskData,
        part: str,
        metrics: set[str] | None = None,
        regression_loss: RegressionLoss = "squared",
    ) -> None:
        self.task_data, self.part, self.metrics, self.regression_loss = task_data, part, metrics, regression_loss
        self.rows: dict[str, Tensor] = {}  # level -> samples of the part for any member
        self.own: dict[str, list[Tensor]] = {}  # level -> of these, those of each member
        self.labels: dict[str, Tensor] = {}
        self.censoring: dict[str, Tensor] = {}
        for level, codes in task_data.parts.items():
            there = codes == PARTS.index(part)
            rows = self.rows[level] = there.any(1).nonzero().squeeze(1)
            self.own[level] = [mine.nonzero().squeeze(1) for mine in there[rows].cpu().unbind(1)]
            self.labels[level] = task_data.labels[level][rows].cpu()
            if level in task_data.censoring:
                self.censoring[level] = task_data.censoring[level][rows].cpu()
        shown = {level: task_data.training_rows(level) for level in task_data.known_levels}
        if task_data.is_causal:
            shown = {level: task_data.known_until(part, level) for level in shown}
        elif part == "validation":
            shown = {level: task_data.known_for(part, level) for level in shown}
        self.graph = task_data.show_labels(shown)  # training labels are known when others are predicted

    def __call__(self, model: Model) -> list[Scores]:
        """Scores of each member, by level. Outputs that are not finite raise a FloatingPointError."""
        outputs = infer(model, self.graph, nodes=self.rows.get("node"))
        links = {} if outputs.link_inputs is None else {"link": outputs.link_inputs.embedding}
        for level, values in {**outputs.by_level, **links}.items():
            if not bool((values if isinstance(values, Tensor) else values.inputs).isfinite().all()):
                raise FloatingPointError(f"the output for a {level} is not finite")
        found = self.score(outputs.by_level)
        if outputs.link_inputs is not None and self.part != "train":
            found[0]["link"] = self._links(model, outputs.link_inputs)
        return found

    def score(self, outputs: Mapping[str, RowOutputs]) -> list[Scores]:
        """Scores of the outputs of a forward pass, for each member by level."""
        members = self.task_data.members
        found: list[Scores] = [{} for _ in range(members)]
        for level, values in outputs.items():
            targets = self.task_data.of(level)
            if not isinstance(values, Tensor):
                for member, scores in self._score_chunks(level, values):
                    found[member][level] = scores
                continue
            values = values.index_select(0, self.rows[level]).float().cpu()  # all members at once: one copy from a GPU
            values = by_head(values, members)
            for member, mine in enumerate(self.own[level]):
                if len(mine) == 0:
                    continue
                output, labels = values[:, member].index_select(0, mine), self.labels[level][mine]
                censoring = self.censoring[level][mine] if level in self.censoring else None
                limits = None if censoring is None else censoring.numpy()
                scores = score(targets, output.numpy(), labels.numpy(), self.metrics, limits)
                output = output.unsqueeze(1)
                scores["loss"] = float(row_loss(targets, output, labels, None, None, censoring, self.regression_loss))
                found[member][level] = scores
        return found

    def _score_chunks(self, level: str, outputs: LazyOutputs) -> Iterator[tuple[int, dict[str, float]]]:
        """Scores of each member with samples in this part, from outputs that are computed some rows at a time."""
        targets, members, own = self.task_data.of(level), self.task_data.members, self.own[level]
        labels, censoring, start = self.labels[level], self.censoring.get(level), 0
        mine = torch.zeros(len(labels), members)
        for member, rows in enumerate(own):
            mine[rows, member] = 1
        loss, condensed = torch.zeros(members), []
        for chunk in outputs.select(self.rows[level]).split():
            part = slice(start, start + len(chunk))
            some, counts = labels[part], mine[part]
            values = by_head(chunk.compute().float().cpu(), members)
            limits = None if censoring is None else censoring[part]
            of_chunk = row_loss(targets, values, some, counts, None, limits, self.regression_loss)
            loss += of_chunk * label_count(some, counts)
            of_member = (condense(targets, x.numpy(), some.numpy()) for x in values.unbind(1))
            condensed.append(np.stack(list(of_member), axis=1))
            start = part.stop
        if not condensed:
            return
        every, loss = np.concatenate(condensed), loss / label_count(labels, mine).clamp(min=1)
        for member, rows in enumerate(own):
            if len(rows):
                sides = None if censoring is None else censoring[rows].numpy()
                scores = score(targets, every[rows, member], labels[rows].numpy(), self.metrics, sides, condensed=True)
                yield member, {**scores, "loss": float(loss[member])}

    def defines(self, metric: str) -> bool:
        """Whether the labels define a metric for every member: an AUC needs two classes."""
        if self.task_data.links is not None and metric in (*METRICS["link"], "loss"):
            return True
        for member in range(self.task_data.members):
            scores: Scores = {}
            for level, own in self.own.items():
                targets, labels = self.task_data.of(level), self.labels[level][own[member]].numpy()
                sides = self.censoring[level][own[member]].numpy() if level in self.censoring else None
                zeros = np.zeros((len(labels), sum(map(condensed_width, targets))))
                if len(labels):
                    found = score(targets, zeros, labels, {metric}, sides, condensed=True)
                    scores[level] = {**found, "loss": 0.0}
            if mean_over_levels(scores, metric) is None:
                return False
        return True

    def _links(self, model: Model, inputs: LinkInputs) -> dict[str, float]:
        """Scores of held-out links against as many negative pairs, and the cross entropy."""
        links, decoder = self.task_data.links, model.decoder
        assert links is not None
        assert decoder is not None
        positives, negatives = (
            (links.validation_links, links.validation_negatives)
            if self.part == "validation"
            else (links.test_links, links.test_negatives)
        )
        with torch.no_grad():
            positive, negative = (decoder.score(inputs, pairs).float().cpu() for pairs in (positives, negatives))
        loss = torch.cat([F.softplus(-positive), F.softplus(negative)]).mean()
        return {**score_links(positive.numpy(), negative.numpy()), "loss": float(loss)}


def score_split(task_data: TaskData, outputs: Mapping[str, RowOutputs]) -> dict[str, Scores]:
    """Scores of train, validation and test samples from the outputs of one forward pass.

    Args:
        task_data: labels and split.
        outputs: level -> outputs for all its samples, of one model or combined from several (`combine`).

    Returns:
        part -> level -> metric -> value; a part without samples is absent.
    """
    found = {part: Evaluator(task_data, part).score(outputs)[0] for part in PARTS}
    return {part: scores for part, scores in found.items() if scores}


def choose_monitor(
    asked: str, task_data: TaskData, evaluator: Evaluator | None, regression_loss: RegressionLoss = "squared"
) -> str:
    """The validation metric that selects the best epoch; the loss where the labels do not define it."""
    kinds = {target.kind for target in task_data.targets} | ({"link"} if task_data.links is not None else set())
    known = {"loss", *(metric for kind in kinds for metric in METRICS[kind])}
    if asked == "auto":
        asked = MONITORS[kinds.pop()] if len(kinds) == 1 else "loss"
        asked = "mae" if asked == "rmse" and regression_loss == "absolute" else asked
    if asked not in known:
        raise SettingsError(f"training.monitor is {asked!r}, expected auto or one of {', '.join(sorted(known))}")
    if evaluator is None or evaluator.defines(asked):
        return asked
    why = "censored labels" if asked in METRICS["regression"] else "one class"
    logger.warning("%s is not defined on the validation samples (%s only): the loss selects the best epoch", asked, why)
    return "loss"


def mean_over_levels(scores: Scores, metric: str) -> float | None:
    """Mean of a metric over the levels that have it; None if none has."""
    found = [values[metric] for values in scores.values() if np.isfinite(values.get(metric, np.nan))]
    return float(np.mean(found)) if found else None


def score_rows(
    targets: Sequence[Target], outputs: RowOutputs, labels: Tensor, rows: Tensor, censoring: Tensor | None = None
) -> dict[str, float]:
    """Metrics of some samples, whose outputs may be in chunks."""
    chosen, limits = labels[rows].numpy(), None if censoring is None else censoring[rows].numpy()
    if isinstance(outputs, Tensor):
        return score(targets, outputs[rows].numpy(), chosen, censoring=limits)
    parts, start = [], 0
    for chunk in outputs.select(rows).split():
        parts.append(condense(targets, chunk.compute().float().cpu().numpy(), chosen[start : start + len(chunk)]))
        start += len(chunk)
    return score(targets, np.concatenate(parts), chosen, censoring=limits, condensed=True)
