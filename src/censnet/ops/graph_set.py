"""Many small graphs packed end to end, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from censnet.ops.batching import BatchIndex, PackedIncidence, batch_index
from censnet.ops.caching import DictionaryRows, cached, store, stored
from censnet.ops.checks import check_floating, check_numbering, check_same_device, check_same_dtype, check_shape
from censnet.ops.graph import Graph, GraphSizes, check_graph_features, check_odd_width, check_times
from censnet.ops.incidence import Incidence
from censnet.ops.segments import offsets
from censnet.text import plural


@dataclass(frozen=True, eq=False)
class GraphSet(GraphSizes):
    """Many small graphs packed end to end, from which a batch is gathered without a loop over graphs, on any device.

    Each graph numbers its own nodes from 0 in `ends`. Graph g has the nodes `node_offset[g]:node_offset[g + 1]` and the
    edges `edge_offset[g]:edge_offset[g + 1]`. The sorted order of the incidence and the degrees are computed once for
    the whole set; a batch gathers them along with its features. Features of the graphs themselves, if any, are in
    `graph_features`; `directed` says whether the order of the two ends of an edge means something, `odd_width` how many
    of the last features of edges change sign where the ends are exchanged. Where edges have times, `times` has them.

    Shape:
        nodes (sum N, d_v), edges (sum E, d_e), ends (2, sum E), node_offset and edge_offset (G + 1,),
        graph_features (G, d_g), times (sum E,) in float64.

    Example:
        >>> path = Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> dot = Graph(torch.ones(1, 4), torch.ones(0, 1), torch.empty(2, 0, dtype=torch.long))
        >>> molecules = GraphSet.pack([path, dot, path])
        >>> molecules
        GraphSet(3 graphs, 7 nodes x 4, 4 edges x 1)
        >>> batch = molecules.batch(torch.tensor([2, 1]))
        >>> batch, batch.owner.tolist()
        (Graph(4 nodes x 4, 2 edges x 1, 2 graphs), [0, 0, 0, 1])
    """

    nodes: Tensor
    edges: Tensor
    ends: Tensor
    node_offset: Tensor
    edge_offset: Tensor
    graph_features: Tensor | None = None
    directed: bool = False
    odd_width: int = 0
    times: Tensor | None = None

    def __post_init__(self) -> None:
        check_shape("nodes", self.nodes, (None, None), "(N, node_width)")
        check_shape("edges", self.edges, (None, None), "(E, edge_width)")
        check_floating("nodes", self.nodes)
        check_floating("edges", self.edges)
        check_odd_width(self.odd_width, self.edges, self.directed)
        check_shape("ends", self.ends, (2, len(self.edges)), "(2, E), one column for each edge")
        check_same_device("edges", self.edges, "nodes", self.nodes)
        check_same_device("ends", self.ends, "nodes", self.nodes)
        check_dense(self.nodes)
        for name, rows in (("node_offset", len(self.nodes)), ("edge_offset", len(self.edges))):
            offset: Tensor = getattr(self, name)
            check_shape(name, offset, (None,), "(G + 1,), the offset of each graph and the end of the last")
            check_same_device(name, offset, "nodes", self.nodes)
            if offset.dtype != torch.int64:
                raise ValueError(f"{name} has dtype {offset.dtype}, expected torch.int64")
            least = 1 if name == "node_offset" else 0
            steps = offset.diff()
            if len(offset) < 2 or int(offset[0]) != 0 or int(offset[-1]) != rows or int(steps.min()) < least:
                raise ValueError(
                    f"{name} is {_brief(offset)}, expected to rise from 0 to {rows}, by at least {least} for each graph"
                )
        check_shape("edge_offset", self.edge_offset, (len(self.node_offset),), "(G + 1,), as node_offset")
        check_graph_features(self.graph_features, len(self), self.nodes)
        check_times(self.times, self.edges)
        check_numbering("ends", self.ends, len(self.nodes), "node")
        size = self.node_offset.diff().repeat_interleave(self.edge_offset.diff())
        bad = (self.ends >= size).any(0).nonzero()
        if len(bad):
            edge = int(bad[0])
            raise ValueError(
                f"ends[:, {edge}] is {self.ends[:, edge].tolist()}, expected nodes from 0 to {int(size[edge]) - 1}: "
                "each graph numbers its own nodes from 0"
            )

    def __repr__(self) -> str:
        nodes, edges = self._show()
        graphs = f"{len(self)} {plural(len(self), 'graph')}" + (
            "" if self.graph_features is None else f" x {self.graph_width}"
        )
        directed, timed = ", directed" if self.directed else "", "" if self.times is None else ", with times"
        return f"GraphSet({graphs}, {nodes}, {edges}{directed}{timed})"

    def __len__(self) -> int:
        return len(self.node_offset) - 1

    def __getitem__(self, number: int) -> Graph:
        """One graph."""
        if not -len(self) <= number < len(self):
            raise IndexError(f"graph {number} was asked for, expected one from 0 to {len(self) - 1}")
        number %= len(self)
        nodes = slice(int(self.node_offset[number]), int(self.node_offset[number + 1]))
        edges = slice(int(self.edge_offset[number]), int(self.edge_offset[number + 1]))
        own = None if self.graph_features is None else self.graph_features[number : number + 1]
        return Graph(
            self.nodes[nodes],
            self.edges[edges],
            self.ends[:, edges],
            graph_features=own,
            directed=self.directed,
            odd_width=self.odd_width,
            times=None if self.times is None else self.times[edges],
        )

    @property
    def num_graphs(self) -> int:  # type: ignore[override]
        return len(self)

    @property
    def global_ends(self) -> Tensor:
        """The two nodes of each edge, numbered over all graphs. (2, E)"""
        return self.ends + torch.repeat_interleave(self.node_offset[:-1], self.edge_offset.diff())

    def to(self, device: torch.device | str) -> GraphSet:
        """The same set on another device."""
        return GraphSet(
            nodes=self.nodes.to(device),
            edges=self.edges.to(device),
            ends=self.ends.to(device),
            node_offset=self.node_offset.to(device),
            edge_offset=self.edge_offset.to(device),
            graph_features=None if self.graph_features is None else self.graph_features.to(device),
            directed=self.directed,
            odd_width=self.odd_width,
            times=None if self.times is None else self.times.to(device),
        )

    def with_features(self, nodes: Tensor, edges: Tensor, odd_width: int | None = None) -> GraphSet:
        """The same graphs with other features of nodes and edges; their cached order stays."""
        return self._replace(nodes=nodes, edges=edges, odd_width=self.odd_width if odd_width is None else odd_width)

    def with_graph_features(self, features: Tensor | None) -> GraphSet:
        """The same graphs with other features of the graphs themselves, or without any."""
        return self._replace(graph_features=features)

    def without_last_features(self, count: int) -> GraphSet:
        """The same without the last features of each graph; where no others are left, it has none."""
        features = self.graph_features
        left = None if features is None or features.shape[1] <= count else features[:, : features.shape[1] - count]
        return self.with_graph_features(left)

    def with_times(self, times: Tensor | None) -> GraphSet:
        """The same graphs with other times of edges, or without any."""
        return self._replace(times=times)

    def _replace(self, **features: Tensor | int | None) -> GraphSet:
        made = replace(self, **features)  # type: ignore[arg-type]
        store(made, **stored(self, "_starts", "_incidence"))
        return made

    @staticmethod
    def pack(graphs: Sequence[Graph]) -> GraphSet:
        """Pack a list of single graphs."""
        if len(graphs) == 0:
            raise ValueError("graphs is empty, expected at least one: a set without graphs has no feature widths")
        for number, graph in enumerate(graphs):
            if (graph.node_width, graph.edge_width) != (graphs[0].node_width, graphs[0].edge_width):
                raise ValueError(
                    f"graph {number} has node and edge widths {graph.node_width}, {graph.edge_width}, expected "
                    f"{graphs[0].node_width}, {graphs[0].edge_width} as graph 0: a set has the same features throughout"
                )
            if graph.graph_width != graphs[0].graph_width:
                raise ValueError(
                    f"graph {number} has {graph.graph_width} features of its own, expected {graphs[0].graph_width} "
                    "as graph 0: a set has the same features throughout"
                )
            if graph.directed != graphs[0].directed:
                raise ValueError(
                    f"graph {number} has directed={graph.directed}, expected {graphs[0].directed} as graph 0"
                )
            if graph.odd_width != graphs[0].odd_width:
                raise ValueError(
                    f"graph {number} has odd_width={graph.odd_width}, expected {graphs[0].odd_width} as graph 0"
                )
            if (graph.times is None) != (graphs[0].times is None):
                have = ["no times" if one.times is None else "times of edges" for one in (graph, graphs[0])]
                raise ValueError(f"graph {number} has {have[0]}, expected {have[1]} as graph 0")
            if graph.owner is not None:
                raise ValueError(f"graph {number} is a batch of {graph.num_graphs}, expected single graphs")
            check_dense(graph.nodes)
            check_same_dtype(f"graph {number}: nodes", graph.nodes, "graph 0", graphs[0].nodes)
            check_same_dtype(f"graph {number}: edges", graph.edges, "graph 0", graphs[0].edges)
            check_same_device(f"graph {number}", graph.nodes, "graph 0", graphs[0].nodes)
        device = graphs[0].nodes.device
        own = [graph.graph_features for graph in graphs if graph.graph_features is not None]
        times = [graph.times for graph in graphs if graph.times is not None]
        return GraphSet(
            nodes=torch.cat([graph.nodes for graph in graphs]),
            edges=torch.cat([graph.edges for graph in graphs]),
            ends=torch.cat([graph.ends for graph in graphs], dim=1),
            node_offset=offsets(torch.tensor([graph.num_nodes for graph in graphs], device=device)),
            edge_offset=offsets(torch.tensor([graph.num_edges for graph in graphs], device=device)),
            graph_features=torch.cat(own) if len(own) == len(graphs) else None,
            directed=graphs[0].directed,
            odd_width=graphs[0].odd_width,
            times=torch.cat(times) if times else None,
        )

    def batch(self, index: Tensor) -> Graph:
        """The graphs at these positions as one graph, in this order; a position may come twice.

        The batch's incidence comes with its sorted order and degrees, gathered from those of the set.
        """
        return self.take(*self.rows_of(index))

    def rows_of(self, index: Tensor) -> tuple[Tensor, BatchIndex]:
        """The positions on the device of the set, and the rows of these graphs. A GPU is not waited for."""
        sizes = None
        if index.device.type == "cpu" and self.nodes.device.type != "cpu":
            index = self._check_index(index, move=False)
            nodes, edges = self._sizes.index_select(1, index).sum(1).tolist()
            sizes, index = (nodes, edges), index.pin_memory().to(self.nodes.device, non_blocking=True)
        else:
            index = self._check_index(index)
        return index, batch_index(self._starts, index, sizes)

    def take(self, index: Tensor, rows: BatchIndex) -> Graph:
        """The batch of these graphs, whose rows `rows_of` gave."""
        own = self.graph_features
        return Graph.from_incidence(
            self._nodes.take(rows.rows),
            self._edges.take(rows.edge_rows),
            self._incidence.of_batch(rows),
            None if own is None else own.index_select(0, index),
            self.directed,
            self.odd_width,
            None if self.times is None else self.times.index_select(0, rows.edge_rows),
        )

    def subset(self, index: Tensor) -> GraphSet:
        """The graphs at these positions as a set, in this order."""
        index = self._check_index(index)
        rows = batch_index(self._starts, index)
        return GraphSet(
            nodes=self.nodes.index_select(0, rows.rows),
            edges=self.edges.index_select(0, rows.edge_rows),
            ends=self.ends.index_select(1, rows.edge_rows),
            node_offset=rows.bounds[0].contiguous(),
            edge_offset=rows.bounds[1].contiguous(),
            graph_features=None if self.graph_features is None else self.graph_features.index_select(0, index),
            directed=self.directed,
            odd_width=self.odd_width,
            times=None if self.times is None else self.times.index_select(0, rows.edge_rows),
        )

    def _check_index(self, index: Tensor, move: bool = True) -> Tensor:
        check_shape("index", index, (None,), "(B,), the graphs of the batch")
        if len(index) == 0:
            raise ValueError("index is empty, expected at least one graph")
        if index.dtype == torch.int64:
            least, most = index.aminmax()
            if int(least) >= 0 and int(most) < len(self):
                return index.to(self.nodes.device) if move else index
        check_numbering("index", index, len(self), "graph")
        return index.to(self.nodes.device if move else index.device, torch.int64)

    @cached
    def whole(self) -> Graph:
        """All graphs as one, in order, without the graph of each node: no edge joins two of them."""
        return Graph.from_incidence(
            self.nodes,
            self.edges,
            self._incidence.whole,
            directed=self.directed,
            odd_width=self.odd_width,
            times=self.times,
        )

    @cached
    def _starts(self) -> Tensor:
        """The first node and the first edge of each graph, and how many there are. (4, G)"""
        offset = torch.stack([self.node_offset, self.edge_offset])
        return torch.cat([offset[:, :-1], offset.diff()])

    @cached
    def _sizes(self) -> Tensor:
        """The number of nodes and of edges of each graph, on the CPU. (2, G)"""
        return self._starts[2:].cpu()

    @cached
    def _nodes(self) -> DictionaryRows:
        return DictionaryRows(self.nodes)

    @cached
    def _edges(self) -> DictionaryRows:
        return DictionaryRows(self.edges)

    @cached
    def _incidence(self) -> PackedIncidence:
        """The incidence of the whole set, from which batches gather theirs."""
        return PackedIncidence(Incidence(self.global_ends, len(self.nodes)), int(self._starts[2:].max()))


def check_dense(nodes: Tensor) -> None:
    """Raise unless the features can be gathered row by row."""
    if nodes.layout != torch.strided:
        raise ValueError(f"nodes has layout {nodes.layout}, expected dense: the rows of a batch are gathered")


def _brief(values: Tensor) -> str:
    text = ", ".join(map(str, values[:4].tolist()))
    return f"[{text}{', ...' if len(values) > 4 else ''}]"
