"""What the chunks of a history carry along: the sums of what earlier edges sent to the lists of one causal layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.ops.graph import Graph
from censnet.ops.history import History, Relation
from censnet.ops.history_chunks import HistoryChunk

RELATIONS: tuple[Relation, ...] = ("out", "in", "pair")


class CarriedSums:
    """The sums over the edges before a chunk, for one layer: of the messages of edges, and of those of known labels.

    They are kept in float64 and have no gradient: a chunk is trained through its own messages alone.

    Args:
        history: of all chunks.
        width: channels of the messages of edges.
        label_width: channels of the messages of labels, and one more that counts them; 0 where labels are not read.
    """

    def __init__(self, history: History, width: int, label_width: int) -> None:
        def table(rows: int, channels: int) -> Tensor:
            return torch.zeros(rows, channels, dtype=torch.float64, device=history.times.device)

        lists = {of: history.lists(of).num_lists for of in RELATIONS}
        self.edges = {of: table(count, width) for of, count in lists.items()}
        self.labels = {of: table(count, label_width) for of, count in lists.items()}
        # messages of labels that arrive in a later chunk than their edge happens in
        late = 0 if history.arrivals is None else len(history.times)
        self.sent = torch.zeros(late, label_width, dtype=history.times.dtype, device=history.times.device)

    def before(self, chunk: HistoryChunk, relation: Relation, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The sums over what was before the chunk, for its queries. (2C, width), (2C, label_width)"""
        lists = chunk.asked(relation)
        return self.edges[relation][lists].to(dtype), self.labels[relation][lists].to(dtype)

    def arriving(self, chunk: HistoryChunk, sent: Tensor) -> Tensor:
        """The messages of the labels that arrive in the chunk: of its own edges, which are given, and of earlier ones.

        (C, w) -> (L, w), with gradients to those of its own edges.
        """
        if not len(self.sent):
            return sent
        if not len(chunk.rows):
            return self.sent[chunk.label_rows].to(sent.dtype)
        own = torch.searchsorted(chunk.rows, chunk.label_rows).clamp(max=len(chunk.rows) - 1)
        is_own = chunk.rows[own] == chunk.label_rows
        return torch.where(is_own.unsqueeze(1), sent[own], self.sent[chunk.label_rows].to(sent.dtype))

    @torch.no_grad()
    def add(self, chunk: HistoryChunk, relation: Relation, sent: Tensor, labels: Tensor) -> None:
        """Add what the edges of a chunk have sent, and the labels that have arrived in it, after it has read."""
        of_edges = chunk.history.lists(relation).key[chunk.rows]
        self.edges[relation].index_add_(0, of_edges, sent.double())
        rows = chunk.label_rows if len(self.sent) else chunk.rows
        self.labels[relation].index_add_(0, chunk.history.lists(relation, True).key[rows], labels.double())

    @torch.no_grad()
    def keep(self, chunk: HistoryChunk, sent: Tensor) -> None:
        """Keep the messages of labels until they arrive. (C, w)"""
        if len(self.sent):
            self.sent[chunk.rows] = sent.to(self.sent.dtype)


@dataclass(frozen=True, eq=False)
class ChunkInput:
    """A chunk of a history as the input of a causal encoder. The chunks of a pass come in order.

    Args:
        graph: the whole graph, with the labels that are shown to later edges.
        bounds: where the chunks after the first one begin, see `cut_history`.
        number: of the chunk.
        carried: what was carried to it, for each layer; the encoder adds to it, and begins with an empty list.
        clocks: what the encoder has computed for each chunk, for all passes.
    """

    graph: Graph
    bounds: Tensor
    number: int
    carried: list[CarriedSums]
    clocks: dict[int, tuple[Tensor, Tensor]]
