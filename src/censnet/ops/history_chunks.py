"""A history in chunks, one after the other in time: what each edge of a chunk sees in it, beside what was before it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.caching import cached
from censnet.ops.history import History, Relation
from censnet.ops.timed_lists import Reads, TimedLists


@dataclass(frozen=True, eq=False)
class HistoryChunk:
    """Some edges of a history, of all that happen from one moment on and before another.

    What an edge sees is the sum over the edges before the chunk, which is carried along, and over those before it in
    the chunk. Chunks are cut between two moments, so that edges of one time are in one chunk.

    Args:
        history: the whole of it.
        rows: the edges of the chunk, in rising order of their rows.
        label_rows: the edges whose labels arrive from its first moment on and before the first one of the next chunk.

    Shape:
        rows (C,), label_rows (L,).

    Example:
        >>> from censnet.ops import Incidence
        >>> path = Incidence(torch.tensor([[0, 1, 0], [1, 2, 1]]), num_nodes=3)
        >>> chunks = cut_history(History(path, torch.tensor([1.0, 2.0, 3.0]).double()), torch.tensor([3.0]).double())
        >>> [chunk.rows.tolist() for chunk in chunks]
        [[0, 1], [2]]
        >>> chunks[1].reads("out").count.tolist(), chunks[1].count("out").tolist()  # in the chunk, and in all
        ([0, 0], [1, 1])
    """

    history: History
    rows: Tensor
    label_rows: Tensor

    def reads(self, relation: Relation, labels: bool = False) -> Reads:
        """What each edge sees in the chunk, at its start and then at its end, or of the pair there and then back. 2C"""
        return self._reads[relation, labels and self.history.arrivals is not None]

    def asked(self, relation: Relation) -> Tensor:
        """The list of the whole history that each query reads. (2C,)"""
        return self.history.asked(relation)[self._both]

    def count(self, relation: Relation) -> Tensor:
        """How many edges each query sees, those before the chunk among them. (2C,)"""
        return self._counts[relation]

    @property
    def ends(self) -> Tensor:
        """The nodes of its edges. (2, C)"""
        return self.history.incidence.ends[:, self.rows]

    # -- inside -------------------------------------------------------------------------------------------------------

    @cached
    def _both(self) -> Tensor:
        """The queries of the whole history that its edges make. (2C,)"""
        return torch.cat([self.rows, self.history.incidence.num_edges + self.rows])

    @cached
    def _counts(self) -> dict[Relation, Tensor]:
        whole = self.history
        return {of: whole.reads(of).count[self._both] for of in ("out", "in", "pair")}

    @cached
    def _reads(self) -> dict[tuple[Relation, bool], Reads]:
        whole, found = self.history, dict[tuple[Relation, bool], Reads]()
        time = whole.times[self.rows].repeat(2)
        instant = None if whole.instants is None else whole.instants[self.rows].repeat(2)
        relations: tuple[Relation, ...] = ("out", "in", "pair")
        for relation in relations:
            for labels in (False, True) if whole.arrivals is not None else (False,):
                lists, rows = whole.lists(relation, labels), self.label_rows if labels else self.rows
                # lists of the chunk alone are numbered, so that its cost does not grow with the history
                known, number = torch.unique(torch.cat([lists.key[rows], self.asked(relation)]), return_inverse=True)
                key, asked = number.split([len(rows), len(time)])
                own = None if lists.instant is None else lists.instant[rows]
                few = TimedLists(key, lists.time[rows], len(known), own)
                found[relation, labels] = few.before(asked, time, instant)
        return found


def cut_history(history: History, bounds: Tensor) -> list[HistoryChunk]:
    """Cut a history where these moments begin: the chunks in the order of time, of which some may have no edge.

    Args:
        history: of all edges.
        bounds: rising times, each the first one of a chunk; the first chunk has all that is earlier.

    Shape:
        bounds (K,) -> K + 1 chunks.
    """
    arrivals = history.times if history.arrivals is None else history.arrivals
    edges, labels = (torch.searchsorted(bounds, times, right=True) for times in (history.times, arrivals))
    labels = labels.masked_fill(arrivals.isinf(), -1)  # never
    return [
        HistoryChunk(history, (edges == number).nonzero().squeeze(1), (labels == number).nonzero().squeeze(1))
        for number in range(len(bounds) + 1)
    ]
