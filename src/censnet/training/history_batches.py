"""Training on the chunks of a history, one after the other: many steps in one pass over it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from censnet.nn.carried import CarriedSums, ChunkInput
from censnet.ops.graph import Graph
from censnet.training.batch import Batch, sample_balanced
from censnet.training.task_data import TaskData


class HistoryBatches:
    """The edges of a history in chunks in the order of time; an epoch is one pass, a step is a chunk.

    An edge sees all edges before it. The sums of what those before its chunk have sent are carried along: they were
    computed by the weights of earlier steps of the pass, and have no gradient.

    Args:
        task_data: whose edges are predicted.
        batch_size: labeled edges of a chunk, about.
        balanced: whether the classes of a chunk are drawn equally often.
    """

    repeats = None

    def __init__(self, task_data: TaskData, batch_size: int, balanced: bool) -> None:
        assert isinstance(task_data.graph, Graph)
        assert task_data.graph.times is not None
        times, self.balanced = task_data.graph.times, balanced
        shown = {level: task_data.training_rows(level) for level in task_data.known_levels}
        graph = task_data.show_labels(shown)
        assert isinstance(graph, Graph)
        self.graph = graph
        training = (task_data.parts["edge"] == 0).any(1)
        self.bounds = chunk_bounds(times[training], batch_size)
        chunk = torch.searchsorted(self.bounds, times, right=True)
        self.rows, self.labels, self.censoring = list[Tensor](), list[Tensor](), list[dict[str, Tensor]]()
        for number in range(len(self.bounds)):  # what comes after the last bound is not trained on
            edges = (chunk == number).nonzero().squeeze(1)
            rows = training[edges].nonzero().squeeze(1)
            self.rows.append(rows)
            self.labels.append(task_data.labels["edge"][edges[rows]])
            self.censoring.append({level: found[edges[rows]] for level, found in task_data.censoring.items()})
        self.carried: list[CarriedSums] = []
        self.clocks: dict[int, tuple[Tensor, Tensor]] = {}

    def plan(self, generator: torch.Generator) -> Sequence[Tensor]:
        """The numbers of the chunks, in the order of time."""
        return list(torch.split(torch.arange(len(self.bounds)), 1))

    def make(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        """A chunk, with what the steps before it carry to it."""
        number = int(chosen)
        if number == 0:
            self.carried = []
        rows, labels, censoring = self.rows[number], self.labels[number], self.censoring[number]
        if self.balanced:
            drawn = sample_balanced(labels, len(labels), generator)
            rows, labels = rows[drawn], labels[drawn]
            censoring = {level: found[drawn] for level, found in censoring.items()}
        chunk = ChunkInput(self.graph, self.bounds, number, self.carried, self.clocks)
        return Batch(self.graph, {"edge": rows}, {"edge": labels}, censoring=censoring, chunk=chunk)


def chunk_bounds(times: Tensor, size: int) -> Tensor:
    """Bounds between which there are about so many of some times, and one right after the last of them.

    >>> chunk_bounds(torch.tensor([1.0, 2, 2, 3, 4, 5]).double(), 2).tolist()[:2]
    [2.0, 4.0]
    """
    ordered = times.sort().values
    count = max(1, round(len(ordered) / size))
    cuts = ordered[[len(ordered) * number // count for number in range(1, count)]]
    last = torch.nextafter(ordered[-1], ordered.new_tensor(torch.inf))
    bounds: Tensor = torch.unique(torch.cat([cuts, last.unsqueeze(0)]))
    return bounds[bounds > ordered[0]]
