"""The encoder of a history: every edge as of just before it happens, every node as of a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from censnet.nn.carried import CarriedSums, ChunkInput
from censnet.nn.causal import CausalLayer, is_known
from censnet.nn.clock import clock_of_nodes, clock_of_pairs, clock_of_triads, node_clock_width, pair_clock_width
from censnet.nn.dropout import Dropout
from censnet.nn.encoder import ACTIVATIONS
from censnet.nn.norms import Norm, make_norm
from censnet.nn.recompute import Recomputing
from censnet.ops.history import History, Ties
from censnet.ops.history_chunks import HistoryChunk, cut_history
from censnet.ops.incidence import Incidence

KEPT = 2  # clocks: of the graphs of training and validation
KEPT_IF_FEW = 8  # also of graphs with fewer labels, where there are no more than
FEW_EDGES = 2**20


class CausalEncoder(Recomputing):
    r"""Embed the edges of a history from the past alone, and its nodes as of a time.

    The state of a node starts from its features and from counts, gaps and windows of what it has seen
    (`censnet.nn.clock`); an edge starts from its features, the same of its pair, and the states of its nodes. Each
    layer is a `CausalLayer`, after which edges and states are normalized, activated, passed through dropout and added
    to what they were.

    Nothing that comes later has any influence: an edge is a function of the edges before it and of the labels that
    arrived before it. Its own label never is among them.

    Args:
        node_width: channels of each node that comes in.
        edge_width: channels of each edge that comes in, with the labels.
        label_width: how many of those, the last ones, are its known label: zeros where it is not known.
        hidden: channels that each layer gives.
        layers: as many letters C as there are layers.
        dropout: probability of a channel to be dropped after each layer.
        norm: "layer" or None; the statistics of a batch norm include later edges.
        residual: whether to add the input of a layer.
        activation: relu, elu, gelu, silu, tanh or none.
        windows: widths of the windows in which edges and labels are counted, in the unit of the times.
        num_rates: decay rates of each layer.
        label_delay: time after which the label of an edge is known.
        ties: whether edges of the same time see each other: "time", they do not; "row", the later the earlier.
        triads: whether an edge starts from the triads of the past as well (`censnet.ops.past_triads`).

    Shape:
        nodes (N, node_width), edges (E, edge_width), times (E,) -> nodes (N, hidden), after the last edge, and edges
        (E, 3 * hidden): the edge, its start and its end, just before it.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> encoder = CausalEncoder(node_width=4, edge_width=2, hidden=8)
        >>> times = torch.tensor([1.0, 2.0]).double()
        >>> nodes, edges = encoder(torch.randn(3, 4), torch.randn(2, 2), path, times)
        >>> nodes.shape, edges.shape
        (torch.Size([3, 8]), torch.Size([2, 24]))
    """

    members = 1
    steps, variant, reads_times = 1, "paper", True

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        label_width: int = 0,
        hidden: int = 32,
        layers: str = "CC",
        *,
        dropout: float = 0.0,
        norm: Norm | None = "layer",
        residual: bool = True,
        activation: str = "relu",
        windows: Sequence[float] = (),
        num_rates: int = 0,
        label_delay: float = 0.0,
        ties: Ties = "time",
        triads: bool = False,
    ) -> None:
        super().__init__()
        if not layers or set(layers) != {"C"}:
            raise ValueError(f"layers is {layers!r}, expected letters C, such as 'CC': other layers use later edges")
        if norm == "batch":
            raise ValueError("norm is 'batch', expected 'layer' or None: statistics over rows include later edges")
        self.layer_order, self.hidden, self.label_width = layers, hidden, label_width
        self.residual, self.activation = residual, activation
        self.windows, self.ties = tuple(sorted(windows)), ties
        self.label_delay, self.triads = label_delay, triads
        self.unit = self.windows[0] if self.windows else 1.0
        self.dropout = Dropout(dropout)
        clock = label_width, len(self.windows)
        self.node_pre_layer = nn.Linear(node_width + node_clock_width(*clock), hidden)
        self.edge_pre_layer = nn.Linear(edge_width - label_width + pair_clock_width(*clock, triads), hidden)
        self.ends_pre_layer = nn.Linear(2 * hidden, hidden, bias=False)
        self.node_pre_norm, self.edge_pre_norm = make_norm(norm, hidden), make_norm(norm, hidden)
        scales = tuple(self.unit * 4.0**number for number in range(num_rates))
        self.layers = nn.ModuleList(
            CausalLayer(hidden, label_width, num_rates=num_rates, time_scales=scales) for _ in layers
        )
        self.node_norms = nn.ModuleList(make_norm(norm, hidden) for _ in layers)
        self.edge_norms = nn.ModuleList(make_norm(norm, hidden) for _ in layers)
        self.out_node_width, self.out_edge_width = hidden, 3 * hidden

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.LayerNorm | CausalLayer):
                module.reset_parameters()

    def forward(
        self, nodes: Tensor, edges: Tensor, incidence: Incidence, times: Tensor, as_of: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Embed the nodes, as of a time of each (N,) or after the last edge, and the edges."""
        history = self.history(incidence, times, as_of)
        features, labels = self._split(edges)
        clock, of_pairs = self.clocks(history, edges, labels)
        rows = torch.cat([*incidence.ends, torch.arange(len(nodes), device=nodes.device)])
        x = self.enter_nodes(nodes[rows], clock)
        h = self.enter_edges(features, of_pairs, x)
        for depth in range(len(self.layers)):
            h, x = self.call(self._update, depth, h, x, labels, history)
        starts, ends, now = torch.split(x, [len(h), len(h), len(nodes)])
        return now, torch.cat([h, starts, ends], dim=1)

    def forward_chunk(self, at: ChunkInput) -> Tensor:
        """Embed the edges of a chunk as `forward` does, but for the gradient, which ends where the chunk begins.

        What was carried to it was computed by the weights of earlier steps, where this is a training. (C, 3 * hidden)
        """
        graph = at.graph
        if graph.times is None or any(cast(CausalLayer, layer).num_rates for layer in self.layers):
            raise ValueError("the graph has no times, or layers decay, expected times and no rates: a chunk needs both")
        history = self.history(graph.incidence, graph.times)
        chunk = self._chunks(history, at.bounds)[at.number]
        if not at.carried:
            widths = [cast(CausalLayer, layer).carried_label_width for layer in self.layers]
            at.carried.extend(CarriedSums(history, self.hidden, width) for width in widths)
        of_nodes, of_pairs = self._clocks_of_chunk(history, at)
        features, labels = self._split(graph.edges[chunk.rows])
        x = self.enter_nodes(graph.nodes[chunk.ends.flatten()], of_nodes)
        h = self.enter_edges(features, of_pairs, x)
        for depth, (layer, sums) in enumerate(zip(self.layers, at.carried, strict=True)):
            new_h, new_x = cast(CausalLayer, layer).forward_chunk(h, x, labels, chunk, sums)
            h, x = self.finish_edges(depth, new_h, h), self.finish_nodes(depth, new_x, x)
        return torch.cat([h, *x.chunk(2)], dim=1)

    def _split(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        """The features of edges, and their known labels."""
        features, labels = torch.split(edges, [edges.shape[1] - self.label_width, self.label_width], dim=1)
        return features, labels

    def _chunks(self, history: History, bounds: Tensor) -> list[HistoryChunk]:
        place = ("chunks", history.times.data_ptr(), bounds.data_ptr(), self.label_delay, self.ties)
        return history.incidence.cache(place, lambda: cut_history(history, bounds))

    def _clocks_of_chunk(self, history: History, at: ChunkInput) -> tuple[Tensor, Tensor]:
        """The clocks of both nodes of each edge of a chunk (2C), and of its pair (C), kept for the next pass."""
        if not at.clocks:
            edges = at.graph.edges
            of_nodes, of_pairs = self.clocks(history, edges, self._split(edges)[1])
            for number, chunk in enumerate(self._chunks(history, at.bounds)):
                both = torch.cat([chunk.rows, len(edges) + chunk.rows])
                at.clocks[number] = of_nodes[both], of_pairs[chunk.rows]
            history.clocks.clear()
        return at.clocks[at.number]

    def _update(self, depth: int, h: Tensor, x: Tensor, labels: Tensor, history: History) -> tuple[Tensor, Tensor]:
        new_h, new_x = self.layers[depth](h, x, labels, history)
        return self.finish_edges(depth, new_h, h), self.finish_nodes(depth, new_x, x)

    def history(self, incidence: Incidence, times: Tensor, as_of: Tensor | None = None) -> History:
        """The lists of a graph, sorted once; the times are kept with them, so that their place is theirs alone."""

        def make() -> History:
            return History(incidence, times, times + self.label_delay if self.label_delay else None, self.ties, as_of)

        if as_of is not None:
            return make()
        return incidence.cache(("history", times.data_ptr(), self.label_delay, self.ties), make)

    def clocks(self, history: History, edges: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The clocks of nodes (2E + N) and pairs (E); the last ones are kept, for the next steps of a training."""
        place = (edges.data_ptr(), edges._version, self.windows, self.label_width, self.triads)
        found = history.clocks.get(place)
        if found is None:
            known = is_known(labels).squeeze(1)
            about = labels, known, self.windows, self.unit
            of_pairs = clock_of_pairs(history, *about)
            if self.triads:
                of_pairs = torch.cat([of_pairs, clock_of_triads(history, labels, known)], dim=1)
            found = edges, clock_of_nodes(history, *about), of_pairs
            if edges.requires_grad:
                return found[1:]
            while len(history.clocks) >= (KEPT_IF_FEW if len(edges) <= FEW_EDGES else KEPT):
                history.clocks.pop(next(iter(history.clocks)))
            history.clocks[place] = found  # with the edges, so that their place is theirs alone
        return found[1:]

    # -- steps that a stream takes too --------------------------------------------------------------------------------

    def enter_nodes(self, nodes: Tensor, clock: Tensor) -> Tensor:
        """The first states of nodes, from their features and their clocks."""
        return self._finish(self.node_pre_norm(self.node_pre_layer(torch.cat([nodes, clock], dim=1))))

    def enter_edges(self, edges: Tensor, clock: Tensor, states: Tensor) -> Tensor:
        """The first embedding of edges, from their features, the clock of their pair and the states of their nodes."""
        own = self.edge_pre_layer(torch.cat([edges, clock], dim=1))
        ends = torch.cat([states[: len(edges)], states[len(edges) : 2 * len(edges)]], dim=1)
        return self._finish(self.edge_pre_norm(own + self.ends_pre_layer(ends)))

    def finish_nodes(self, depth: int, new: Tensor, old: Tensor) -> Tensor:
        """Normalize, activate and drop, and add to what the states were."""
        new = self._finish(self.node_norms[depth](new))
        return old + new if self.residual else new

    def finish_edges(self, depth: int, new: Tensor, old: Tensor) -> Tensor:
        """The same of edges."""
        new = self._finish(self.edge_norms[depth](new))
        return old + new if self.residual else new

    def _finish(self, rows: Tensor) -> Tensor:
        finished: Tensor = self.dropout(ACTIVATIONS[self.activation](rows))
        return finished
