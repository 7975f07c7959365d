"""A batch: the graph of one step and its labeled samples; and how samples are drawn and cut into batches."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
from torch import Tensor

from censnet.nn.carried import ChunkInput
from censnet.ops.graph import Graph
from censnet.training.task_data import TaskData


@dataclass(frozen=True, eq=False)
class Batch:
    """A graph and its labeled samples.

    Args:
        graph: the input of the model.
        rows: level -> the nodes, edges or graphs in the loss.
        labels: level -> their labels.
        weight: level -> the weight of each for each member; without one, all count the same.
        positives, negatives: linked and other pairs, (2, P) and (2, Q), where links are learned from sampled pairs.
        censoring: level -> the side of each label, where some are censored.
        chunk: where a step has some edges of a history alone, which `rows` then number.
    """

    graph: Graph
    rows: Mapping[str, Tensor]
    labels: Mapping[str, Tensor]
    weight: Mapping[str, Tensor] = field(default_factory=dict)
    positives: Tensor | None = None
    negatives: Tensor | None = None
    censoring: Mapping[str, Tensor] = field(default_factory=dict)
    chunk: ChunkInput | None = None


class Batches(Protocol):
    """Batches of an epoch. Planning is cheap, so that an epoch can be resumed in its middle."""

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        """For each step of an epoch, the samples that it takes."""

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        """Make the batch of a step."""

    @property
    def repeats(self) -> Literal["objects", "shapes"] | None:
        """Whether batches repeat as objects or in their shapes, so that steps can be recorded (`step_graphs.py`)."""


def draw_share(count: int, share: float, generator: torch.Generator) -> Tensor:
    """A share of so many rows, each with the same chance; at least one of them. In rising order."""
    draw = torch.rand(count, generator=generator)
    if count:
        share = max(share, float(draw.min()))
    return (draw <= share).nonzero().squeeze(1)


def draw_latest(task_data: TaskData, edges: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Of some edges those from a moment on, as indices: in the mean this share of them, and twice as many at most."""
    assert task_data.graph.times is not None
    times = task_data.graph.times[edges]
    share = min(1.0, 2 * share) * float(torch.rand(1, generator=generator))
    return (times >= times.sort().values[int((1 - share) * (len(times) - 1))]).nonzero().squeeze(1)


def even_batches(rows: Tensor, size: int) -> list[Tensor]:
    """Batches of one size; a last one of less than half of it joins the one before, as batch norm needs several."""
    count = max(1, round(len(rows) / size)) if len(rows) < size * 2 else (len(rows) + size // 2) // size
    bounds = [min(number * size, len(rows)) for number in range(count)] + [len(rows)]
    return [rows[start:end] for start, end in itertools.pairwise(bounds)]


def sample_balanced(labels: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Balanced sampling: samples with replacement, each class of the first column as often as the others."""
    first = labels[:, 0].cpu()
    _, code, times = torch.unique(first.nan_to_num(-1), return_inverse=True, return_counts=True)
    weight = (1 / times)[code]
    return torch.multinomial(weight, count, replacement=True, generator=generator).to(labels.device)
