"""A graph with features of nodes, edges and the graph itself, or a batch of many."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from censnet.ops.caching import cached, store, unchecked
from censnet.ops.checks import check_floating, check_same_device, check_shape
from censnet.ops.incidence import Incidence
from censnet.text import plural


class GraphSizes:
    """Counts and feature widths, the same for a `Graph` and a `GraphSet`."""

    nodes: Tensor
    edges: Tensor
    graph_features: Tensor | None
    num_graphs: int
    directed: bool
    odd_width: int
    times: Tensor | None

    @property
    def num_nodes(self) -> int:
        return self.nodes.shape[0]

    @property
    def num_edges(self) -> int:
        return self.edges.shape[0]

    @property
    def node_width(self) -> int:
        return self.nodes.shape[1]

    @property
    def edge_width(self) -> int:
        return self.edges.shape[1]

    @property
    def graph_width(self) -> int:
        return 0 if self.graph_features is None else self.graph_features.shape[1]

    def count(self, level: str) -> int:
        """The number of nodes, edges or graphs."""
        return {"node": self.num_nodes, "edge": self.num_edges, "graph": self.num_graphs}[level]

    def _show(self, sparse: str = "") -> tuple[str, str]:
        nodes = f"{self.num_nodes} {plural(self.num_nodes, 'node')} x {self.node_width}{sparse}"
        odd = f", {self.odd_width} odd" if self.odd_width else ""
        return nodes, f"{self.num_edges} {plural(self.num_edges, 'edge')} x {self.edge_width}{odd}"


@dataclass(frozen=True, eq=False)
class Graph(GraphSizes):
    """Nodes and edges with their features, each edge once; or a batch of many such graphs.

    Args:
        nodes: features of the nodes, dense or sparse CSR.
        edges: features of the edges.
        ends: the two nodes of each edge, numbered from 0: its start, and its end.
        owner: the graph of each node, when this is a batch (PyG: ``batch``).
        num_graphs: the number of graphs in the batch.
        graph_features: features of each graph itself, if there are any.
        directed: whether the order of the two ends means something.
        odd_width: how many of the features of edges, the last ones, change sign where the two ends are exchanged.
        times: when each edge happened, in float64, in seconds where times are dates; None if unknown.

    Shape:
        nodes (N, d_v), edges (E, d_e), ends (2, E), owner (N,), graph_features (num_graphs, d_g), times (E,).

    Example:
        >>> path = Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> path
        Graph(3 nodes x 4, 2 edges x 1)
    """

    nodes: Tensor
    edges: Tensor
    ends: Tensor
    owner: Tensor | None = None
    num_graphs: int = 1
    graph_features: Tensor | None = None
    directed: bool = False
    odd_width: int = 0
    times: Tensor | None = None

    def __post_init__(self) -> None:
        check_shape("nodes", self.nodes, (None, None), "(N, node_width)")
        check_floating("nodes", self.nodes)
        if self.nodes.shape[0] == 0:
            raise ValueError("nodes has no row, expected at least one: a graph without nodes has nothing to embed")
        if self.nodes.layout not in (torch.strided, torch.sparse_csr):
            raise ValueError(f"nodes has layout {self.nodes.layout}, expected dense or CSR: call nodes.to_sparse_csr()")
        check_shape("ends", self.ends, (2, None), "(2, E), one column for each edge")
        check_shape("edges", self.edges, (self.ends.shape[1], None), "(E, edge_width), a row for each column of ends")
        check_floating("edges", self.edges)
        check_odd_width(self.odd_width, self.edges, self.directed)
        check_same_device("edges", self.edges, "nodes", self.nodes)
        check_same_device("ends", self.ends, "nodes", self.nodes)
        check_graph_features(self.graph_features, self.num_graphs, self.nodes)
        check_times(self.times, self.edges)
        self.incidence  # noqa: B018 - checks the numbering of ends and owner

    def __repr__(self) -> str:
        sparse = " sparse" if self.nodes.layout == torch.sparse_csr else ""
        own = "" if self.graph_features is None else f" x {self.graph_width}"
        graphs = (
            f", {self.num_graphs} {plural(self.num_graphs, 'graph')}{own}"
            if self.owner is not None
            else own and f", the graph{own}"
        )
        nodes, edges = self._show(sparse)
        directed, timed = ", directed" if self.directed else "", "" if self.times is None else ", with times"
        return f"Graph({nodes}, {edges}{graphs}{directed}{timed})"

    @cached
    def incidence(self) -> Incidence:
        """T, whose sorted order and degrees are computed once for this graph."""
        return Incidence(self.ends, self.num_nodes, self.owner, self.num_graphs)

    @property
    def global_ends(self) -> Tensor:
        """The two nodes of each edge, numbered over all graphs. (2, E)"""
        return self.ends

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device."""
        some = self.owner, self.graph_features, self.times
        owner, features, times = (None if part is None else part.to(device) for part in some)
        nodes, edges, ends = self.nodes.to(device), self.edges.to(device), self.ends.to(device)
        return Graph(nodes, edges, ends, owner, self.num_graphs, features, self.directed, self.odd_width, times)

    def with_features(self, nodes: Tensor, edges: Tensor, odd_width: int | None = None) -> Graph:
        """The same graph with other features; the sorted order and degrees that are computed already stay."""
        odd_width = self.odd_width if odd_width is None else odd_width
        about = self.owner, self.num_graphs, self.graph_features, self.directed, odd_width, self.times
        graph = Graph(nodes, edges, self.ends, *about)
        store(graph, incidence=self.incidence)
        return graph

    def with_edges(self, rows: Tensor) -> Graph:
        """The same nodes with some of the edges alone."""
        about = self.owner, self.num_graphs, self.graph_features, self.directed, self.odd_width
        times = None if self.times is None else self.times[rows]
        return Graph(self.nodes, self.edges[rows], self.ends[:, rows], *about, times)

    def with_times(self, times: Tensor | None) -> Graph:
        """The same graph with other times of edges, or without any."""
        graph = replace(self, times=times)
        store(graph, incidence=self.incidence)
        return graph

    @classmethod
    def from_incidence(
        cls,
        nodes: Tensor,
        edges: Tensor,
        incidence: Incidence,
        graph_features: Tensor | None = None,
        directed: bool = False,
        odd_width: int = 0,
        times: Tensor | None = None,
    ) -> Graph:
        """A graph of an incidence that is checked already, as a batch gathers it."""
        return unchecked(
            cls,
            nodes=nodes,
            edges=edges,
            ends=incidence.ends,
            owner=incidence.owner,
            num_graphs=incidence.num_graphs,
            graph_features=graph_features,
            directed=directed,
            odd_width=odd_width,
            times=times,
            incidence=incidence,
        )


def check_odd_width(odd_width: int, edges: Tensor, directed: bool) -> None:
    """Raise unless there are so many features of edges, and the order of the two ends is arbitrary."""
    if not 0 <= odd_width <= edges.shape[1]:
        raise ValueError(
            f"odd_width is {odd_width}, expected 0 to {edges.shape[1]}: the last features of edges are odd"
        )
    if odd_width and directed:
        raise ValueError(
            f"odd_width is {odd_width} in a directed graph, expected 0: an odd feature changes sign with an order of "
            "ends that means nothing; a direction that means something enters as an odd feature of 1"
        )


def check_graph_features(features: Tensor | None, count: int, nodes: Tensor) -> None:
    """Raise unless each graph has a row of features, or none has."""
    if features is not None:
        check_shape("graph_features", features, (count, None), "(G, graph_width), a row for each graph")
        check_floating("graph_features", features)
        check_same_device("graph_features", features, "nodes", nodes)


def check_times(times: Tensor | None, edges: Tensor) -> None:
    """Raise unless each edge has a time, a finite number in float64, or none has."""
    if times is None:
        return
    check_shape("times", times, (edges.shape[0],), "(E,), a time for each row of edges")
    if times.dtype != torch.float64:
        raise ValueError(f"times has dtype {times.dtype}, expected torch.float64: float32 has no seconds since 1970")
    check_same_device("times", times, "edges", edges)
    bad = (~times.isfinite()).nonzero()
    if len(bad):
        raise ValueError(f"times[{int(bad[0])}] is {float(times[bad[0]])}, expected a finite number")
