"""Batches of an epoch, made for the data and the settings; and the share of a step that each process takes."""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.graph_set import GraphSet
from censnet.settings.schema import TrainingSettings
from censnet.training.batch import Batches
from censnet.training.ego_batches import EgoBatches
from censnet.training.full_batches import CausalBatch, FullBatch, MaskedLinkBatch
from censnet.training.graph_batches import GraphBatches, PaddedGraphBatches
from censnet.training.history_batches import HistoryBatches
from censnet.training.padding import can_pad
from censnet.training.sampled_subgraphs import SampledSubgraphs
from censnet.training.task_data import TaskData


def make_batches(
    task_data: TaskData,
    settings: TrainingSettings,
    hops: int,
    pairs: bool = False,
    ego_hops: int = 0,
    processes: int = 1,
    padded: bool = False,
) -> Batches:
    """The batches that the settings ask for.

    Args:
        task_data: graph, labels and split.
        settings: sampling, batch size, imbalance, edge masking and negative sampling.
        hops: the receptive field, which a sampled subgraph has to cover.
        pairs: whether links are learned from sampled pairs.
        ego_hops: hops of the ego graphs that nodes are predicted in; 0 where they are in the whole graph.
        processes: how many take a step together: the samples of a step are then those of all, see `share_of`.
        padded: whether batches of graphs are padded where they can be.
    """
    balanced = settings.imbalance == "sampling"
    if ego_hops:
        return EgoBatches(task_data, settings, ego_hops, processes)
    if isinstance(task_data.graph, GraphSet):
        kind = PaddedGraphBatches if padded and can_pad(task_data.graph) else GraphBatches
        return kind(task_data, settings, balanced, processes)
    if settings.sampling in ("neighbors", "proportional"):
        return SampledSubgraphs(task_data, settings, hops, processes)
    if settings.sampling == "history":
        labeled = int((task_data.parts["edge"] == 0).any(1).sum())
        return HistoryBatches(task_data, settings.batch_size_for(labeled), balanced)
    if pairs:
        return MaskedLinkBatch(task_data, balanced, settings.edge_mask_ratio, settings.negative_ratio)
    if task_data.is_causal:
        return CausalBatch(task_data, balanced, settings.stale_label_ratio)
    return FullBatch(task_data, balanced, settings.hidden_label_ratio)


def share_of(chosen: Tensor, process: int, processes: int) -> Tensor:
    """The samples of a step that one of several processes takes: each takes as many as the others, or one fewer.

    Where there are fewer samples than processes, some are taken by several, as a process without any would be missed.

    >>> [share_of(torch.arange(5), process, 2).tolist() for process in range(2)]
    [[0, 2, 4], [1, 3]]
    """
    if processes > 1 and len(chosen) < processes:
        chosen = chosen[torch.arange(processes, device=chosen.device) % len(chosen)]
    return chosen[process::processes]
