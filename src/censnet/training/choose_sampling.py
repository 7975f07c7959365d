"""Whether a training samples neighborhoods, and whether it computes layers again, by memory and time."""

from __future__ import annotations

import logging

from censnet.nn.layers import LAYERS
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.settings.schema import TrainingSettings
from censnet.training.task_data import TaskData

logger = logging.getLogger(__name__)

SAVED_VALUES = 12  # values saved for the backward pass, for each node or edge and channel of a layer
MAX_MEMORY = 0.6  # share of the memory that these may take
MAX_FULL_BATCH = 2**24  # values of all layers in one pass on a CPU, from which on a full-batch step takes seconds


def choose_sampling(
    task_data: TaskData, settings: TrainingSettings, model: Model, memory: int, on_cpu: bool = True
) -> TrainingSettings:
    """Resolve sampling "auto": full batch, unless a step on the whole graph takes too much memory, or too long.

    A sampled subgraph is not much smaller than a graph of a few hundred thousand edges, and a full batch has all labels
    in each step. Beyond that a full-batch training has too few steps for the time that it takes.

    Args:
        task_data: the graph and what is predicted.
        settings: of the training.
        model: whose layers and width decide how much is saved for the backward pass.
        memory: total bytes of the device; the free ones would make two runs of one training differ.
        on_cpu: whether the training is on a CPU.
    """
    graph = task_data.graph
    if settings.sampling != "auto":
        return settings
    if model.ego_hops or getattr(model.encoder, "reads_times", False):  # a sampled past would lack events
        return settings.model_copy(update={"sampling": "full"})
    too_large = too_slow = False
    if isinstance(graph, Graph) and task_data.links is None and task_data.members == 1:
        encoder, values = model.encoder, _layer_values(graph, model)
        too_large = values * SAVED_VALUES * 4 > memory * MAX_MEMORY
        too_slow = on_cpu and encoder.steps == 1 and values > MAX_FULL_BATCH
    if too_large or too_slow:
        why = "too large for full-batch training" if too_large else "so large that full-batch steps are slow"
        logger.info("the graph is %s, so neighbors are sampled (training.sampling)", why)
    return settings.model_copy(update={"sampling": "neighbors" if too_large or too_slow else "full"})


def choose_recompute(task_data: TaskData, settings: TrainingSettings, model: Model, memory: int) -> bool:
    """Resolve recomputation "auto": where a step takes the full graph, and what it saves would take most of the memory.

    Args:
        task_data, model, memory: as in `choose_sampling`.
        settings: with their sampling resolved.
    """
    graph = task_data.graph
    if settings.recompute != "auto":
        return settings.recompute
    if not isinstance(graph, Graph) or settings.sampling != "full" or model.ego_hops:
        return False
    chosen = _layer_values(graph, model) * task_data.members * SAVED_VALUES * 4 > memory * MAX_MEMORY
    if chosen:
        logger.info("layers are computed again in the backward pass, which takes less memory (training.recompute)")
    return chosen


def _layer_values(graph: Graph, model: Model) -> int:
    """The numbers that the layers of a model give on a graph."""
    encoder = model.encoder
    width = max(encoder.out_node_width, encoder.out_edge_width)
    return width * sum(graph.count(LAYERS[letter].updates) for letter in encoder.layer_order)
