"""The memory and time that a training takes, estimated by measuring one step of its own model on some of the data."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import psutil
import torch
from pydantic import BaseModel
from torch import Tensor

from censnet.errors import SettingsError
from censnet.inspection.peak_memory import PeakMemory, peak_memory
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.settings.schema import Settings
from censnet.training.batch import Batch
from censnet.training.batches import make_batches
from censnet.training.choose_sampling import SAVED_VALUES, choose_recompute, choose_sampling
from censnet.training.devices import free_memory, total_memory
from censnet.training.ego_batches import MAX_EGO_ROWS
from censnet.training.evaluator import infer
from censnet.training.objective import Objective
from censnet.training.processes import per_machine
from censnet.training.task_data import TaskData, build_model

logger = logging.getLogger(__name__)

MAX_EDGES = 8_000  # of one graph that a step is measured on
LARGE = 250_000  # edges of the graph that neighborhoods are sampled from to measure a step on them
FEW = 64  # graphs, or nodes in ego graphs, that inference is measured on
PATIENCE = 2.0  # seconds, after which a step is not measured again
OF_A_WEIGHT = 16  # bytes: the weight, its gradient, and what the optimizer keeps of both
LOOP_BYTES = 100 * 2**20  # of the training loop itself: the optimizer's code, metrics, tables of results
LOOP_SECONDS = 1.3  # times a step and a pass: the optimizer, metrics, checkpoints; fitted on trainings of each kind
SLACK = 1.15  # of the memory that tensors take, what the allocator takes: fitted on trainings of each kind
HEAP_KEPT_SLACK = 1.8  # the same where the process keeps what it has freed, which fragments: fitted on 200,000 edges
UNSURE = 1.25  # factor by which an estimate may be too high: only more than that over the free memory is refused
UNASKED = 1 / 8  # of the free memory: below that by a rough count, nothing is measured before a training


_slack = SLACK


def assume_heap_kept() -> None:
    """Estimate from now on for a process that keeps the memory that it has freed, as the command does."""
    global _slack
    _slack = HEAP_KEPT_SLACK


class Cost(BaseModel):
    """The estimated cost of training one model.

    Args:
        network: the layers and width of the model.
        bytes: memory of the whole process at its peak.
        seconds: of one epoch on the CPU that was measured: forward, backward, the optimizer, validation.
        batches: steps in an epoch: 1 for one graph.
        measured_edges: of the subgraph that was measured; time and memory are scaled up from it.
    """

    network: str
    bytes: int
    seconds: float
    batches: int
    measured_edges: int


def estimate_cost(task_data: TaskData, settings: Settings) -> Cost:
    """Estimate the memory of a training on this machine's CPU and the time of one of its epochs.

    A step is measured as it is trained: on a batch of graphs, or on sampled neighborhoods. A full batch is measured on
    a smaller graph with as many edges for each node, and so is the inference after each epoch; the neighborhoods are
    sampled from a smaller one as well where the graph has more than `LARGE` edges.

    Args:
        task_data: the graph, targets, labels and split.
        settings: of the training.
    """
    whole_data, more = task_data, 1.0
    if isinstance(task_data.graph, Graph) and task_data.links is None:
        task_data, more = _shrink(task_data, LARGE)
    task_data = task_data.with_inputs(settings.model)
    rest = round((more - 1) * _feature_bytes(task_data.graph))  # of what is not measured
    before, held = peak_memory(), psutil.Process().memory_info().rss + rest
    model = build_model(task_data, settings)
    available = total_memory(torch.device("cpu"))
    training = choose_sampling(whole_data, settings.training, model, available)
    model.encoder.recompute = choose_recompute(whole_data, training, model, available)
    settings = settings.model_copy(update={"training": training})
    few, scale = _shrink(task_data, MAX_EDGES)
    scale *= more
    sampled = isinstance(task_data.graph, Graph) and training.sampling in ("neighbors", "proportional")
    whole = isinstance(task_data.graph, Graph) and not sampled and not model.ego_hops
    in_parts = training.sampling == "history"  # each step has a part, of which there are more in a larger graph
    batches = make_batches(
        few if whole else task_data, training, model.receptive_field, model.samples_pairs, model.ego_hops
    )
    plan = batches.plan(torch.Generator().manual_seed(0))
    steps = round(len(plan) * scale) if in_parts else len(plan)
    if more > 1 and not whole:
        steps = min(round(steps * more), training.max_steps_per_epoch or round(steps * more))
    draw = partial(batches.make, plan[0], torch.Generator().manual_seed(0))
    memory, seconds = _Step(few if whole else task_data, settings, model).measure(draw)
    own = sum(weight.numel() for weight in model.parameters()) * OF_A_WEIGHT
    memory, seconds = (memory * scale, seconds * scale) if whole and not in_parts else (memory, seconds * steps)
    if model.ego_hops:
        pass_memory, pass_seconds = _measure_egos(model, task_data.graph, plan[0][:FEW])
        pass_seconds *= more
    else:
        pass_memory, pass_seconds = (value * scale for value in _measure_pass(model, few.graph))
    memory = max(memory, pass_memory)
    return Cost(
        network=f"{settings.model.layers} with {settings.model.hidden} units",
        bytes=max(before, held + LOOP_BYTES + round(_slack * memory) + own),
        seconds=LOOP_SECONDS * (seconds + pass_seconds / training.validate_every),
        batches=steps,
        measured_edges=draw().graph.num_edges,
    )


class _Step:
    """A training step as `fit` takes it, without the optimizer, whose import alone takes seconds."""

    def __init__(self, task_data: TaskData, settings: Settings, model: Model) -> None:
        self.model = model
        self.objective = Objective(task_data, settings.training, model)

    def measure(self, draw: Callable[[], Batch]) -> tuple[float, float]:
        """The bytes of activations, and the median seconds of a step."""
        with PeakMemory() as memory:
            self(draw())
        gradients = sum(weight.numel() * weight.element_size() for weight in self.model.parameters())
        return max(0, memory.peak - gradients), _median_seconds(lambda: self(draw()))

    def __call__(self, batch: Batch) -> None:
        self.model.train()
        self.model.zero_grad()
        self.objective(self.model(batch.graph, batch.chunk), batch).sum().backward()  # type: ignore[no-untyped-call]


def _measure_pass(model: Model, graph: Any) -> tuple[float, float]:
    """The bytes and seconds of inference on the whole graph."""
    if not isinstance(graph, Graph):
        graph = graph.subset(torch.arange(min(len(graph), FEW)))
    with PeakMemory() as memory:
        infer(model, graph)
    return memory.peak, _median_seconds(lambda: infer(model, graph))


def _measure_egos(model: Model, graph: Graph | GraphSet, nodes: Tensor) -> tuple[float, float]:
    """The bytes and seconds of inference on the ego graphs of all nodes, from those of some; memory is bounded."""
    graph = graph if isinstance(graph, Graph) else graph.whole
    with PeakMemory() as memory:
        infer(model, graph, nodes=nodes)
    return memory.peak, _median_seconds(lambda: infer(model, graph, nodes=nodes)) * graph.num_nodes / len(nodes)


def _median_seconds(work: Callable[[], object]) -> float:
    """The median seconds of a call."""
    begin, taken = time.perf_counter(), list[float]()
    while len(taken) < 20 and (not taken or time.perf_counter() - begin < PATIENCE / (2 if len(taken) < 3 else 4)):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _feature_bytes(graph: Graph | GraphSet) -> int:
    """Bytes of the features of nodes and edges."""
    tables = (graph.nodes, graph.edges)
    return sum(4 * (each.numel() if each.layout == torch.strided else 3 * each.values().numel()) for each in tables)


def _shrink(task_data: TaskData, most: int) -> tuple[TaskData, float]:
    """Task data on a graph of at most so many edges with the same mean degree and share of labels, and their ratio.

    The cost of an edge does not depend on which nodes it joins, so ends are renumbered.
    """
    graph = task_data.graph
    if not isinstance(graph, Graph):
        measured = min(len(graph), FEW)
        return task_data, len(graph) / measured
    share = min(1.0, most / max(graph.num_edges, graph.num_nodes / 4, 1))
    if share == 1.0:
        return task_data, 1.0
    num_nodes, num_edges = max(2, int(graph.num_nodes * share)), int(graph.num_edges * share)
    rows = torch.linspace(0, graph.num_edges - 1, num_edges).long()
    ends = graph.ends[:, rows] % num_nodes
    odd = graph.odd_width
    small = Graph(_head(graph.nodes, num_nodes), graph.edges[rows], ends, directed=graph.directed, odd_width=odd)
    small = small if graph.times is None else small.with_times(graph.times[rows])
    chosen = {"node": torch.arange(num_nodes), "edge": rows}
    labels = {level: values[chosen[level]] for level, values in task_data.labels.items()}
    parts = {level: values[chosen[level]] for level, values in task_data.parts.items()}
    censoring = {level: values[chosen[level]] for level, values in task_data.censoring.items()}
    return replace(task_data, graph=small, labels=labels, parts=parts, censoring=censoring), 1 / share


def _head(nodes: Tensor, count: int) -> Tensor:
    """The first rows of a dense or sparse matrix."""
    if nodes.layout == torch.strided:
        return nodes[:count]
    start = nodes.crow_indices()[: count + 1]
    entries = slice(0, int(start[-1]))
    values, columns = nodes.values()[entries], nodes.col_indices()[entries]
    return torch.sparse_csr_tensor(start, columns, values, (count, nodes.shape[1]))


def check_memory(task_data: TaskData, settings: Settings, device: torch.device) -> None:
    """Raise, before a training begins, if it clearly does not fit into free memory; warn if it may not.

    A step is measured only where a rough count is close to the limit. On a GPU the training itself runs out of memory.
    """
    free = free_memory() // per_machine()
    if device.type != "cpu" or _count_roughly(task_data, settings) < UNASKED * free:
        return
    advice = what_to_lower(task_data, settings)
    weights = _count_weights(task_data, settings) * OF_A_WEIGHT
    held = psutil.Process().memory_info().rss
    need = weights if weights > free else estimate_cost(task_data, settings).bytes - held
    said = f"this training takes about {need / 1e9:.1f} GB of memory more, and {free / 1e9:.1f} GB are free: {advice}"
    if need > UNSURE * free:
        raise SettingsError(said)
    if need > free:
        logger.warning("%s", said)


def _count_weights(task_data: TaskData, settings: Settings) -> int:
    """The number of parameters of the model, built on the meta device."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in build_model(task_data, settings).parameters())


def _count_roughly(task_data: TaskData, settings: Settings) -> float:
    """Bytes of the activations and weights, by their number."""
    model, graph = settings.model, task_data.graph
    rows = len(graph.nodes) + len(graph.edges)
    if model.ego_marks:
        rows = min(rows * settings.training.batch_size_for(rows), MAX_EGO_ROWS)
    elif not isinstance(graph, Graph):
        rows = int(rows / max(len(graph), 1) * settings.training.batch_size_for(len(graph)))
    depth = len(model.layers) + model.pre_layers
    weights = model.hidden * (graph.node_width + graph.edge_width + 4 * depth * model.hidden + sum(model.head))
    return 4 * SAVED_VALUES * rows * model.hidden * depth / 2 + OF_A_WEIGHT * weights


def what_to_lower(task_data: TaskData, settings: Settings) -> str:
    """Advice where memory is short: the settings to lower."""
    model, training = settings.model, settings.training
    said = f"lower model.hidden ({model.hidden:,})"
    if model.ego_marks:
        return f"{said}, model.ego_hops ({model.ego_hops}) or training.batch_size ({training.batch_size})"
    if not isinstance(task_data.graph, Graph):
        return f"{said} or training.batch_size ({training.batch_size_for(len(task_data.graph)):,} graphs)"
    if task_data.links is None and training.sampling == "full":
        return f"{said}, or set training.sampling=neighbors"
    return said
