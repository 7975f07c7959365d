"""A graph, and many small graphs packed end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from censnet.ops.batching import PackedIncidence, choose
from censnet.ops.caching import cached
from censnet.ops.checks import check_floating, check_numbering, check_same_device, check_same_dtype, check_shape
from censnet.ops.dictionary_rows import DictionaryRows
from censnet.ops.incidence import Incidence
from censnet.ops.segments import offsets
from censnet.text import plural


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes and edges with their features, each undirected edge once; or a union of many such graphs.

    Args:
        nodes: features of the nodes, dense or sparse CSR.
        edges: features of the edges.
        ends: the two nodes of each edge, numbered from 0, in any order.
        owner: which graph each node is in, when this is a union.
        num_graphs: how many graphs that is.
        graphs: features of each graph as a whole, if there are any.

    Shape:
        nodes (N, d_v), edges (E, d_e), ends (2, E), owner (N,), graphs (num_graphs, d_g).

    Example:
        >>> path = Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> path
        Graph(3 nodes x 4, 2 edges x 1)
        >>> Graph.union([path, path])
        Graph(6 nodes x 4, 4 edges x 1, 2 graphs)
    """

    nodes: Tensor
    edges: Tensor
    ends: Tensor
    owner: Tensor | None = None
    num_graphs: int = 1
    graphs: Tensor | None = None

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
        check_same_device("edges", self.edges, "nodes", self.nodes)
        check_same_device("ends", self.ends, "nodes", self.nodes)
        check_graphs(self.graphs, self.num_graphs, self.nodes)
        self.incidence  # noqa: B018 - checks the numbering of ends and owner

    def __repr__(self) -> str:
        sparse = " sparse" if self.nodes.layout == torch.sparse_csr else ""
        own = "" if self.graphs is None else f" x {self.graph_width}"
        graphs = (
            f", {self.num_graphs} {plural(self.num_graphs, 'graph')}{own}"
            if self.owner is not None
            else own and f", the graph{own}"
        )
        nodes = f"{self.num_nodes} {plural(self.num_nodes, 'node')} x {self.node_width}"
        edges = f"{self.num_edges} {plural(self.num_edges, 'edge')} x {self.edge_width}"
        return f"Graph({nodes}{sparse}, {edges}{graphs})"

    @property
    def num_nodes(self) -> int:
        return self.nodes.shape[0]

    @property
    def num_edges(self) -> int:
        return self.ends.shape[1]

    @property
    def node_width(self) -> int:
        return self.nodes.shape[1]

    @property
    def edge_width(self) -> int:
        return self.edges.shape[1]

    @property
    def graph_width(self) -> int:
        return 0 if self.graphs is None else self.graphs.shape[1]

    @cached
    def incidence(self) -> Incidence:
        """T, whose sorted order and degrees are computed once for this graph."""
        return Incidence(self.ends, self.num_nodes, self.owner, self.num_graphs)

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device."""
        owner, graphs = (None if part is None else part.to(device) for part in (self.owner, self.graphs))
        return Graph(self.nodes.to(device), self.edges.to(device), self.ends.to(device), owner, self.num_graphs, graphs)

    def with_features(self, nodes: Tensor, edges: Tensor) -> Graph:
        """The same nodes and edges described otherwise; the order and degrees that are known already stay known."""
        graph = Graph(nodes, edges, self.ends, self.owner, self.num_graphs, self.graphs)
        graph.__dict__["incidence"] = self.incidence
        return graph

    @staticmethod
    def union(graphs: Sequence[Graph]) -> Graph:
        """The graphs side by side, as one, in order."""
        every = GraphSet.pack(graphs)
        return every.batch(torch.arange(len(every), device=every.nodes.device))


_KEPT = ("_starts", "_order")  # what a set knows of its order once it was asked


@dataclass(frozen=True, eq=False)
class GraphSet:
    """Many small graphs packed end to end, from which a batch is gathered without a loop over graphs, on any device.

    Each graph numbers its own nodes from 0 in `ends`. Graph g has the nodes `node_offset[g]:node_offset[g + 1]` and the
    edges `edge_offset[g]:edge_offset[g + 1]`. The sorted order of the incidence and the degrees are computed once for
    the whole set; a batch gathers them along with its features. What is known of each graph as a whole, if anything is,
    stands in `graphs`.

    Shape:
        nodes (sum N, d_v), edges (sum E, d_e), ends (2, sum E), node_offset and edge_offset (G + 1,), graphs (G, d_g).

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
    graphs: Tensor | None = None

    def __post_init__(self) -> None:
        check_shape("nodes", self.nodes, (None, None), "(N, node_width)")
        check_shape("edges", self.edges, (None, None), "(E, edge_width)")
        check_floating("nodes", self.nodes)
        check_floating("edges", self.edges)
        check_shape("ends", self.ends, (2, len(self.edges)), "(2, E), one column for each edge")
        check_same_device("edges", self.edges, "nodes", self.nodes)
        check_same_device("ends", self.ends, "nodes", self.nodes)
        check_dense(self.nodes)
        for name, rows in (("node_offset", len(self.nodes)), ("edge_offset", len(self.edges))):
            offset: Tensor = getattr(self, name)
            check_shape(name, offset, (None,), "(G + 1,), where each graph begins and the last one ends")
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
        check_graphs(self.graphs, len(self), self.nodes)
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
        nodes = f"{len(self.nodes)} {plural(len(self.nodes), 'node')} x {self.node_width}"
        edges = f"{len(self.edges)} {plural(len(self.edges), 'edge')} x {self.edge_width}"
        graphs = f"{len(self)} {plural(len(self), 'graph')}" + ("" if self.graphs is None else f" x {self.graph_width}")
        return f"GraphSet({graphs}, {nodes}, {edges})"

    def __len__(self) -> int:
        return len(self.node_offset) - 1

    def __getitem__(self, number: int) -> Graph:
        """One graph."""
        if not -len(self) <= number < len(self):
            raise IndexError(f"graph {number} was asked for, expected one from 0 to {len(self) - 1}")
        number %= len(self)
        nodes = slice(int(self.node_offset[number]), int(self.node_offset[number + 1]))
        edges = slice(int(self.edge_offset[number]), int(self.edge_offset[number + 1]))
        graphs = None if self.graphs is None else self.graphs[number : number + 1]
        return Graph(self.nodes[nodes], self.edges[edges], self.ends[:, edges], graphs=graphs)

    @property
    def node_width(self) -> int:
        return self.nodes.shape[1]

    @property
    def edge_width(self) -> int:
        return self.edges.shape[1]

    @property
    def graph_width(self) -> int:
        return 0 if self.graphs is None else self.graphs.shape[1]

    def to(self, device: torch.device | str) -> GraphSet:
        """The same set on another device."""
        return GraphSet(
            nodes=self.nodes.to(device),
            edges=self.edges.to(device),
            ends=self.ends.to(device),
            node_offset=self.node_offset.to(device),
            edge_offset=self.edge_offset.to(device),
            graphs=None if self.graphs is None else self.graphs.to(device),
        )

    def with_features(self, nodes: Tensor, edges: Tensor) -> GraphSet:
        """The same graphs, their nodes and edges described otherwise; what is known of their order stays known."""
        return self._described(nodes=nodes, edges=edges)

    def with_graphs(self, graphs: Tensor | None) -> GraphSet:
        """The same graphs, each as a whole described otherwise, or not at all."""
        return self._described(graphs=graphs)

    def _described(self, **features: Tensor | None) -> GraphSet:
        made = replace(self, **features)  # type: ignore[arg-type]
        made.__dict__.update({name: self.__dict__[name] for name in _KEPT if name in self.__dict__})
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
            if graph.owner is not None:
                raise ValueError(f"graph {number} is a union of {graph.num_graphs}, expected single graphs")
            check_dense(graph.nodes)
            check_same_dtype(f"graph {number}: nodes", graph.nodes, "graph 0", graphs[0].nodes)
            check_same_dtype(f"graph {number}: edges", graph.edges, "graph 0", graphs[0].edges)
            check_same_device(f"graph {number}", graph.nodes, "graph 0", graphs[0].nodes)
        device = graphs[0].nodes.device
        whole = [graph.graphs for graph in graphs if graph.graphs is not None]
        return GraphSet(
            nodes=torch.cat([graph.nodes for graph in graphs]),
            edges=torch.cat([graph.edges for graph in graphs]),
            ends=torch.cat([graph.ends for graph in graphs], dim=1),
            node_offset=offsets(torch.tensor([graph.num_nodes for graph in graphs], device=device)),
            edge_offset=offsets(torch.tensor([graph.num_edges for graph in graphs], device=device)),
            graphs=torch.cat(whole) if len(whole) == len(graphs) else None,
        )

    def batch(self, numbers: Tensor) -> Graph:
        """The graphs with these numbers as one graph, in this order; a number may come twice.

        The batch's incidence comes with its sorted order and degrees, gathered from those of the set.
        """
        numbers = self._check_numbers(numbers)
        chosen = choose(self._starts, numbers)
        incidence = self._order.of_batch(chosen)
        graph = Graph.__new__(Graph)  # what is gathered from a checked set needs no second check
        graph.__dict__.update(
            nodes=self._palettes[0].take(chosen.rows),
            edges=self._palettes[1].take(chosen.edge_rows),
            ends=incidence.ends,
            owner=incidence.owner,
            num_graphs=len(numbers),
            graphs=None if self.graphs is None else self.graphs.index_select(0, numbers),
            incidence=incidence,
        )
        return graph

    def subset(self, numbers: Tensor) -> GraphSet:
        """The graphs with these numbers as a set, in this order."""
        numbers = self._check_numbers(numbers)
        chosen = choose(self._starts, numbers)
        return GraphSet(
            nodes=self.nodes.index_select(0, chosen.rows),
            edges=self.edges.index_select(0, chosen.edge_rows),
            ends=self.ends.index_select(1, chosen.edge_rows),
            node_offset=chosen.bounds[0].contiguous(),
            edge_offset=chosen.bounds[1].contiguous(),
            graphs=None if self.graphs is None else self.graphs.index_select(0, numbers),
        )

    def _check_numbers(self, numbers: Tensor) -> Tensor:
        check_shape("numbers", numbers, (None,), "(B,), the graphs of the batch")
        if len(numbers) == 0:
            raise ValueError("numbers is empty, expected at least one graph")
        if numbers.dtype == torch.int64:
            least, most = numbers.aminmax()
            if int(least) >= 0 and int(most) < len(self):
                return numbers.to(self.nodes.device)
        check_numbering("numbers", numbers, len(self), "graph")
        return numbers.to(self.nodes.device, torch.int64)

    @cached
    def _starts(self) -> Tensor:
        """Where the nodes and the edges of each graph begin, and how many there are. (4, G)"""
        offset = torch.stack([self.node_offset, self.edge_offset])
        return torch.cat([offset[:, :-1], offset.diff()])

    @cached
    def _palettes(self) -> tuple[DictionaryRows, DictionaryRows]:
        return DictionaryRows(self.nodes), DictionaryRows(self.edges)

    @cached
    def _order(self) -> PackedIncidence:
        """The incidence of the whole set, from which batches take theirs."""
        shift = torch.repeat_interleave(self.node_offset[:-1], self.edge_offset.diff())
        return PackedIncidence(Incidence(self.ends + shift, len(self.nodes)), int(self._starts[2:].max()))


def check_graphs(graphs: Tensor | None, count: int, nodes: Tensor) -> None:
    """Raise unless each graph has a row of features, or none has."""
    if graphs is not None:
        check_shape("graphs", graphs, (count, None), "(G, graph_width), a row for each graph")
        check_floating("graphs", graphs)
        check_same_device("graphs", graphs, "nodes", nodes)


def check_dense(nodes: Tensor) -> None:
    """Raise unless the features can be gathered row by row."""
    if nodes.layout != torch.strided:
        raise ValueError(f"nodes has layout {nodes.layout}, expected dense: the rows of a batch are gathered")


def _brief(values: Tensor) -> str:
    text = ", ".join(map(str, values[:4].tolist()))
    return f"[{text}{', ...' if len(values) > 4 else ''}]"
