"""The causal layer: edges, and both of their nodes just before each, updated from what was sent before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from censnet.nn.carried import CarriedSums
from censnet.nn.layers import LAYERS, GraphLayer
from censnet.ops.causal import Reads, decayed_sums, prefix_sums
from censnet.ops.history import History, Relation
from censnet.ops.history_chunks import HistoryChunk


class Messages(NamedTuple):
    """The messages of an edge when it has happened, and later, when its label is known: (E, width) each."""

    out: Tensor  # to the list of the edges that leave its start
    into: Tensor  # to that of the edges that arrive at its end
    pair: Tensor  # to that of the edges between the two
    label: Tensor  # to all three, when its label arrives; zeros where none is known


class CausalLayer(GraphLayer):
    r"""Update the edges of a history, and the states of both nodes just before each edge.

    An edge :math:`f = (s, t)` with embedding :math:`h_f` sends messages, which are frozen then:

    .. math::
        p_f = w_f \odot (x_t(f^-) W_o) + h_f U_o, \qquad q_f = w'_f \odot (x_s(f^-) W_i) + h_f U_i, \qquad
        r_f = h_f U_p, \qquad l_f = \sum_j y_{fj} (h_f L_j + c_j)

    to the edges that leave s, to those that arrive at t, to those from s to t, and, when its label is known, to all
    three. Its gates :math:`w, w'` are functions of :math:`h_f`. What a node v has seen just before e is
    :math:`z_v(e^-)`: the means of the messages p of the edges that left it, of q of those that arrived at it, and of
    the labels l of both. Then

    .. math::
        x_v'(e^-) &= x_v(e^-) W_0 + z_v(e^-) Z \\
        h_e' &= h_e W_1 + x_s(e^-) V_s + x_t(e^-) V_t + u_s \odot z_s(e^-) Z_s + u_t \odot z_t(e^-) Z_t
        + z_{st}(e^-) Z_p + z_{ts}(e^-) Z_r

    with gates :math:`u` that read :math:`x_v(e^-)`. This is the rule of a directed node layer and that of a directed
    edge layer at once, each mean over the past alone.

    **What is computed.** The sum over the edges of a node before e is an exclusive prefix sum along the node's edges in
    the order of time: one segmented scan for all edges of a history (`censnet.ops.causal`), :math:`O(E d)`. No edge
    changes what was before it, so a new edge needs the running sums of its two nodes alone
    (`censnet.nn.causal_stream`), with the same numbers.

    With `num_rates`, the second half of the channels of p, q and l are sums that decay, :math:`\exp(-\lambda \Delta t)`
    with learned :math:`\lambda`, divided by equally decayed counts.

    Args:
        width: channels of edges and of the states of nodes.
        label_width: channels of known labels.
        message_width: channels of the messages of labels.
        num_rates: decay rates.
        time_scales: time after which a sum has decayed to 1/e at first, one for each rate.

    Shape:
        edges (E, width), states (2E + N, width), those of the starts, of the ends, and of all nodes at their times,
        labels (E, label_width) -> edges and states of the same shape.

    Example:
        >>> from censnet.ops import Incidence
        >>> path = Incidence(torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
        >>> history = History(path, torch.tensor([1.0, 2.0, 3.0]).double())
        >>> layer = CausalLayer(width=8, label_width=2)
        >>> edges, states = layer(torch.randn(3, 8), torch.randn(9, 8), torch.eye(3)[:, :2], history)
        >>> edges.shape, states.shape
        (torch.Size([3, 8]), torch.Size([9, 8]))
    """

    updates, reads = "edge", "node"
    read_hops, causal = -1, True

    def __init__(
        self,
        width: int,
        label_width: int = 0,
        message_width: int = 16,
        num_rates: int = 0,
        time_scales: tuple[float, ...] = (),
    ) -> None:
        super().__init__()
        message_width = message_width if label_width else 0
        if num_rates and (width % (2 * num_rates) or message_width % (2 * num_rates)):
            raise ValueError(
                f"num_rates is {num_rates}, expected a divisor of half of width {width} and of message_width "
                f"{message_width}"
            )
        if len(time_scales) != num_rates:
            raise ValueError(f"time_scales has {len(time_scales)} times, expected {num_rates}, one for each rate")
        self.width, self.label_width, self.message_width = width, label_width, message_width
        self.num_rates, self.time_scales = num_rates, time_scales
        seen = 2 * (width + message_width)

        def matrix(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(rows, columns))

        # of an edge: both gates, both contents, the pair's message, the label's for each label channel, its own update
        self.edge_weight = matrix(width, 6 * width + label_width * message_width)
        self.label_bias = matrix(label_width, message_width)
        self.out_weight = matrix(width, width)
        self.in_weight = matrix(width, width)
        self.node_weight = matrix(width, width)
        self.node_seen = matrix(seen, width)
        # of a node, as the start and as the end of an edge: its gate and its content, and what it has seen
        self.start_weight = matrix(width, 2 * width)
        self.end_weight = matrix(width, 2 * width)
        self.start_seen = matrix(seen, width)
        self.end_seen = matrix(seen, width)
        self.parallel_seen = matrix(width + message_width, width)
        self.reciprocal_seen = matrix(width + message_width, width)
        self.node_bias = nn.Parameter(torch.empty(width))
        self.edge_bias = nn.Parameter(torch.empty(width))
        self.log_rate = nn.Parameter(torch.empty(num_rates)) if num_rates else None
        self.reset_parameters()

    def extra_repr(self) -> str:
        return f"{self.width}, labels={self.label_width}" + (f", rates={self.num_rates}" if self.num_rates else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    def reset_parameters(self) -> None:
        """Initialize: matrices by Glorot and Bengio, each of its own shape; gates so that they start at 1."""
        width = self.width
        for weight in self.parameters():
            if weight.dim() == 2 and weight.numel():
                blocks = torch.split(weight.data, width, 1) if weight.shape[1] % width == 0 else [weight.data]
                for block in blocks:
                    nn.init.xavier_uniform_(block)
        for block in torch.split(self.edge_weight.data[:, : 6 * width], width, 1):
            nn.init.xavier_uniform_(block)
        for gate in (self.edge_weight[:, : 2 * width], self.start_weight[:, :width], self.end_weight[:, :width]):
            gate.data.zero_()
        for bias in (self.node_bias, self.edge_bias):
            nn.init.zeros_(bias)
        if self.log_rate is not None:
            self.log_rate.data.copy_(-torch.tensor(self.time_scales, dtype=torch.float64).log())

    @property
    def carried_label_width(self) -> int:
        """Channels of labels that chunks carry on: those of their messages, and one that counts them."""
        return self.message_width + 1 if self.message_width else 0

    @property
    def rates(self) -> Tensor | None:
        """The decay rates. (K,)"""
        return None if self.log_rate is None else self.log_rate.exp()

    def forward(self, edges: Tensor, states: Tensor, labels: Tensor, history: History) -> tuple[Tensor, Tensor]:
        """Update the edges and the states of their nodes just before them."""
        messages, own = self.send(edges, states, labels)
        seen, pairs = self._see(messages, labels, history), self._see_pair(messages, labels, history)
        return self.update_edges(own, states, seen, *pairs.chunk(2)), self.update_nodes(states, seen)

    def forward_chunk(
        self, edges: Tensor, states: Tensor, labels: Tensor, chunk: HistoryChunk, carried: CarriedSums
    ) -> tuple[Tensor, Tensor]:
        """The same of the edges of a chunk, which also see what was carried to it; then their messages are carried on.

        edges (C, width), states (2C, width), labels (C, label_width) -> edges and states of the same shape.
        """
        messages, own = self.send(edges, states, labels)
        label = torch.cat([messages.label, is_known(labels)], dim=1) if self.message_width else edges[:, :0]
        arriving = carried.arriving(chunk, label)
        sent: list[tuple[Relation, Tensor]] = [("out", messages.out), ("in", messages.into), ("pair", messages.pair)]
        out, into, pairs = (self._see_chunk(rows, arriving, chunk, carried, of) for of, rows in sent)
        seen = torch.cat([mean for both in zip(out, into, strict=True) for mean in both], dim=1)
        for of, rows in sent:
            carried.add(chunk, of, rows, arriving)
        carried.keep(chunk, label)
        there, back = torch.cat(pairs, dim=1).chunk(2)
        return self.update_edges(own, states, seen, there, back), self.update_nodes(states, seen)

    # -- the rule -----------------------------------------------------------------------------------------------------

    def send(self, edges: Tensor, states: Tensor, labels: Tensor) -> tuple[Messages, Tensor]:
        """The messages of edges, and the share of each edge in its own update."""
        width = self.width
        sizes = [width] * 6 + [self.label_width * self.message_width]
        out_gate, in_gate, out, into, pair, own, label = torch.split(edges @ self.edge_weight, sizes, dim=1)
        start, end = _ends(states, len(edges))
        out = 2 * torch.sigmoid(out_gate) * (end @ self.out_weight) + out
        into = 2 * torch.sigmoid(in_gate) * (start @ self.in_weight) + into
        each = label.view(len(edges), self.label_width, self.message_width) + self.label_bias
        return Messages(out, into, pair, (labels.unsqueeze(2) * each).sum(1)), own

    def update_nodes(self, states: Tensor, seen: Tensor) -> Tensor:
        """x W_0 + z Z. (Q, width)"""
        return torch.addmm(self.node_bias, states, self.node_weight) + seen @ self.node_seen

    def update_edges(self, own: Tensor, states: Tensor, seen: Tensor, parallel: Tensor, reciprocal: Tensor) -> Tensor:
        """The rest of the sum over what both nodes and the pair have seen. (E, width)"""
        out = own + self.edge_bias + parallel @ self.parallel_seen + reciprocal @ self.reciprocal_seen
        ends = zip(_ends(states, len(own)), _ends(seen, len(own)), strict=True)
        weights = (self.start_weight, self.start_seen), (self.end_weight, self.end_seen)
        for (x, z), (weight, of_seen) in zip(ends, weights, strict=True):
            gate, content = (x @ weight).chunk(2, dim=1)
            out = out + content + 2 * torch.sigmoid(gate) * (z @ of_seen)
        return out

    # -- inside -------------------------------------------------------------------------------------------------------

    def _see(self, messages: Messages, labels: Tensor, history: History) -> Tensor:
        """The means of all messages to the two lists of each node. (2E + N, 2 * (width + message_width))"""
        out, into = (self._see_list(sent, messages.label, labels, history, of) for sent, of in _lists(messages))
        return torch.cat([mean for both in zip(out, into, strict=True) for mean in both], dim=1)

    def _see_list(
        self, sent: Tensor, label: Tensor, labels: Tensor, history: History, of: Relation, decay: bool = True
    ) -> list[Tensor]:
        """The means of the messages to the lists of a relation, and of those of labels to the same."""
        reads = history.reads(of)
        if not self.message_width:
            return self._means([(sent, None)], reads, decay)
        of_labels, about = history.reads(of, labels=True), (label, is_known(labels))
        if of_labels is reads:  # one scan for both
            return self._means([(sent, None), about], reads, decay)
        return self._means([(sent, None)], reads, decay) + self._means([about], of_labels, decay)

    def _see_chunk(
        self, sent: Tensor, arriving: Tensor, chunk: HistoryChunk, carried: CarriedSums, of: Relation
    ) -> list[Tensor]:
        """`_see_list` for a chunk. (2C, width), (2C, message_width)"""
        before, known = carried.before(chunk, of, sent.dtype)
        means = [(prefix_sums(sent, chunk.reads(of)) + before) / _at_least_one(chunk.count(of), sent)]
        if self.message_width:
            known = known + prefix_sums(arriving, chunk.reads(of, labels=True))
            means.append(known[:, :-1] / known[:, -1:].clamp(min=1))
        return means

    def _see_pair(self, messages: Messages, labels: Tensor, history: History) -> Tensor:
        """The means over the edges from start to end, and then over those back. (2E, width + message_width)"""
        return torch.cat(self._see_list(messages.pair, messages.label, labels, history, "pair", decay=False), dim=1)

    def _means(self, sent: Sequence[tuple[Tensor, Tensor | None]], reads: Reads, decay: bool) -> list[Tensor]:
        """The sums over counts: of all messages, or of the counted ones alone; half of them with decay."""
        rates = self.rates if decay else None
        half = [rows.shape[1] // (1 if rates is None else 2) for rows, _ in sent]
        known = [count for _, count in sent if count is not None]
        plain = [rows[:, :width] if rates is not None else rows for (rows, _), width in zip(sent, half, strict=True)]
        sums = prefix_sums(_beside(plain + known), reads)
        parts = torch.split(sums, half + [1] * len(known), dim=1)
        counts = iter(parts[len(half) :])
        means = [
            part / (_at_least_one(reads.count, part) if count is None else next(counts).clamp(min=1))
            for part, (_, count) in zip(parts, sent, strict=False)
        ]
        if rates is None:
            return means
        return [torch.cat(both, dim=1) for both in zip(means, self._decayed_means(sent, rates, reads), strict=True)]

    def _decayed_means(
        self, sent: Sequence[tuple[Tensor, Tensor | None]], rates: Tensor, reads: Reads
    ) -> Iterator[Tensor]:
        """The decayed sums of the second halves of messages over equally decayed counts."""
        shares, widths = [], []
        for rows, known in sent:
            half = rows.shape[1] // 2
            count = torch.ones_like(rows[:, :1]) if known is None else known
            shares += [rows[:, half:].reshape(len(rows), self.num_rates, half // self.num_rates)]
            shares += [count.unsqueeze(1).expand(-1, self.num_rates, -1)]
            widths += [half // self.num_rates, 1]
        sums = decayed_sums(torch.cat(shares, dim=2).flatten(1), rates, reads).view(len(reads), self.num_rates, -1)
        parts = torch.split(sums, widths, dim=2)
        for total, count in zip(parts[::2], parts[1::2], strict=True):
            yield (total / count.clamp(min=1)).flatten(1)


def _lists(messages: Messages) -> Iterator[tuple[Tensor, Relation]]:
    """The messages to the two lists of nodes."""
    yield messages.out, "out"
    yield messages.into, "in"


def _beside(columns: Sequence[Tensor]) -> Tensor:
    return columns[0] if len(columns) == 1 else torch.cat(list(columns), dim=1)


def is_known(labels: Tensor) -> Tensor:
    """1 where a label is known, which then has a channel that is not 0. (E, 1)"""
    return (labels != 0).any(1, keepdim=True).to(labels.dtype)


def _ends(states: Tensor, edges: int) -> tuple[Tensor, Tensor]:
    """The states of the starts and of the ends of so many edges, which come first."""
    starts, ends, _ = torch.split(states, [edges, edges, len(states) - 2 * edges])
    return starts, ends


def _at_least_one(count: Tensor, like: Tensor) -> Tensor:
    return count.clamp(min=1).to(like.dtype).unsqueeze(1)


LAYERS["C"] = CausalLayer
