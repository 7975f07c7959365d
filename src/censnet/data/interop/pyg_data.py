"""To and from PyTorch Geometric. Nothing is scaled or encoded here, and nothing is lost on the way back."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from censnet.data.interop.check_pyg_data import check_pyg
from censnet.data.interop.check_pyg_data import num_nodes as count_nodes
from censnet.data.tables.undirected import find_reverse_duplicates
from censnet.errors import DataError
from censnet.ops.arrays import unique_inverse
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Imported:
    """What a PyG object became.

    Args:
        graph: the same graph with each undirected edge once; a `GraphSet` if it was a `Batch` or a list.
        edge_rows: for each column of `edge_index`, the edge it became.
        extra: every other attribute, as it was: `y`, masks, `pos`, `edge_label`, names, numbers.
        notes: what a user should know about the reading.
        data: the object that was read.
    """

    graph: Graph | GraphSet
    edge_rows: Tensor
    extra: dict[str, Any]
    notes: list[str]
    data: Data = field(repr=False)

    def to_pyg(self, nodes: Tensor | None = None, edges: Tensor | None = None) -> Data:
        """The object that was read, its columns in the same order, with new features if some are given.

        Args:
            nodes: features of the nodes, such as embeddings; those it had if None.
            edges: features of the edges, each once; both directions get them.
        """
        data = copy.copy(self.data)
        if nodes is not None:
            data.x = nodes
        if edges is not None:
            data.edge_attr = edges[self.edge_rows]
        return data


def from_pyg(data: Data | Batch | Sequence[Data]) -> Imported:
    """Read a PyG graph, a batch or a list of graphs.

    PyG stores an undirected edge twice, once in each direction, with its attributes twice. The r-th copy of i -> j and
    the r-th copy of j -> i are then one edge. If some copy has no partner, or partners have different attributes
    (`edge_attr`, or else `edge_weight`), each column is an edge of its own. Either way a note says so.

    Example:
        >>> both_ways = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> path = from_pyg(Data(x=torch.ones(3, 4), edge_index=both_ways, y=torch.tensor([0, 1, 0])))
        >>> path.graph, path.edge_rows.tolist(), path.notes
        (Graph(3 nodes x 4, 2 edges x 0), [0, 0, 1, 1], ['edge_index has each edge twice: 4 columns became 2 edges'])
    """
    if isinstance(data, Sequence):
        data = as_one(data)
    if isinstance(data, HeteroData) or not isinstance(data, Data):
        raise DataError(
            f"data is a {type(data).__name__}, expected Data, Batch or a list of Data: one kind of nodes and of edges "
            "(a HeteroData has to_homogeneous())"
        )
    if data.edge_index is None and "adj_t" in data:
        raise DataError("data has adj_t and no edge_index, expected edge_index: the two rows of source and target")
    read, data = data, check_pyg(data)
    num_nodes = count_nodes(data)
    columns = torch.empty(2, 0, dtype=torch.long) if data.edge_index is None else data.edge_index
    nodes = _features(data.x, num_nodes, "x", columns.device)
    given = data.edge_attr if data.edge_attr is not None else data.get("edge_weight")
    edges = _features(given, columns.shape[1], "edge_attr", nodes.device)
    Graph(nodes, edges, columns)  # says what is wrong with any of them

    first, edge_rows, notes = _merge(columns.cpu().numpy(), edges, num_nodes)
    if data.edge_attr is None and given is not None:
        notes.append("there is no edge_attr: edge_weight is the feature of the edges")
    extra = {name: value for name, value in data.to_dict().items() if name not in ("x", "edge_index", "edge_attr")}
    notes += _disagreements(extra, first, edge_rows)
    keep, rows = torch.from_numpy(first).to(columns.device), torch.from_numpy(edge_rows).to(columns.device)
    graph = Graph(nodes, edges[keep], columns[:, keep], data.get("batch"), _num_graphs(data))
    if isinstance(data, Batch):
        return Imported(*_set(graph, rows, data.ptr), extra, notes, read)
    return Imported(graph, rows, extra, notes, read)


def to_pyg(graph: Graph | GraphSet, **extra: Any) -> Data:
    """A PyG `Data`, or a `Batch` for a set of graphs: each edge in both directions, one after the other; a loop once.

    Args:
        graph: what to convert. A union of graphs becomes a `Data` with `batch`.
        extra: further attributes of the result, such as `y`.

    Example:
        >>> to_pyg(Graph(torch.ones(3, 4), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))).edge_index.tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    ends = graph.ends
    both = torch.stack([ends, ends.flip(0)], dim=2).flatten(1)
    keep = torch.stack([torch.ones_like(ends[0], dtype=torch.bool), ends[0] != ends[1]], dim=1).flatten()
    edges = graph.edges.repeat_interleave(2, dim=0)[keep]
    if isinstance(graph, Graph):
        if graph.owner is not None:
            extra = {"batch": graph.owner, **extra}
        return Data(x=graph.nodes, edge_index=both[:, keep], edge_attr=edges, **extra)
    count = graph.edge_offset.diff()
    edge_graph = torch.arange(len(graph), device=count.device).repeat_interleave(2 * count)[keep]
    columns = torch.bincount(edge_graph, minlength=len(graph)).cumsum(0)
    owner = torch.arange(len(graph), device=count.device).repeat_interleave(graph.node_offset.diff())
    shift = graph.node_offset[edge_graph]
    batch = Batch(
        x=graph.nodes, edge_index=both[:, keep] + shift, edge_attr=edges, batch=owner, ptr=graph.node_offset, **extra
    )
    # what Batch.to_data_list cuts by: where each graph's rows begin, and what was added to its node numbers
    cuts = torch.cat([columns.new_zeros(1), columns]).cpu()
    none = torch.zeros(len(graph), dtype=torch.long)
    batch._slice_dict = {"x": graph.node_offset.cpu(), "edge_index": cuts, "edge_attr": cuts}
    batch._inc_dict = {"x": none, "edge_index": graph.node_offset[:-1].cpu(), "edge_attr": none}
    batch._num_graphs = len(graph)
    for name, value in extra.items():
        if isinstance(value, Tensor) and value.dim() and len(value) == len(graph):
            batch._slice_dict[name], batch._inc_dict[name] = torch.arange(len(graph) + 1), none
    return batch


# -- the pieces -------------------------------------------------------------------------------------------------------


def as_one(graphs: Sequence[Data]) -> Batch:
    """A list of graphs as a batch."""
    if len(graphs) == 0:
        raise DataError("the list of graphs is empty, expected at least one")
    for number, graph in enumerate(graphs):
        if isinstance(graph, HeteroData) or not isinstance(graph, Data):
            raise DataError(f"item {number} of the list is a {type(graph).__name__}, expected Data")
        if set(graph.keys()) != set(graphs[0].keys()):
            odd = ", ".join(sorted(set(graph.keys()) ^ set(graphs[0].keys())))
            raise DataError(f"graph {number} and graph 0 do not have the same attributes ({odd}), expected all to")
        for name in graph.keys():  # noqa: SIM118
            widths = [value.shape[1:] for value in (graph[name], graphs[0][name]) if isinstance(value, Tensor)]
            if name != "edge_index" and len(widths) == 2 and widths[0] != widths[1]:
                raise DataError(
                    f"{name} of graph {number} has shape {tuple(graph[name].shape)}, expected as many columns as in "
                    f"graph 0, which has {tuple(graphs[0][name].shape)}"
                )
    return Batch.from_data_list(list(graphs))


def _features(given: Any, rows: int, name: str, device: torch.device) -> Tensor:
    if given is None:
        return torch.zeros(rows, 0, device=device)
    if not isinstance(given, Tensor):
        raise DataError(f"{name} is a {type(given).__name__}, expected a tensor")
    values: Tensor = given
    if values.layout == torch.sparse_coo:
        values = values.to_sparse_csr()
    if values.dim() == 1:
        values = values.unsqueeze(1)
    return values if values.is_floating_point() else values.float()


def _num_graphs(data: Data) -> int:
    owner = data.get("batch")
    return 1 if owner is None else max(int(data.num_graphs), int(owner.max()) + 1 if len(owner) else 1)


def _merge(columns: Array, edges: Tensor, num_nodes: int) -> tuple[Array, Array, list[str]]:
    """The first column of each edge, for each column its edge, and what to say about it."""
    every = np.arange(columns.shape[1])
    source, target = columns
    if (source == target).all():
        return every, every, []
    value = edges.detach().cpu().nan_to_num(nan=3e38).float().numpy()  # NaN is equal to itself here
    labels = np.zeros(len(every), np.uint64)
    first = find_reverse_duplicates(columns, num_nodes, value, lambda: labels)
    if first is None or not _same(edges, first):
        if find_reverse_duplicates(columns, num_nodes, value[:, :0], lambda: labels) is not None:
            return every, every, ["edge_index has both directions with different attributes: each column is an edge"]
        pair = unique_inverse(np.minimum(source, target) * num_nodes + np.maximum(source, target))[1]
        alone = int(np.abs(np.bincount(pair, weights=np.sign(target - source))).sum())
        return every, every, [f"edge_index has each edge once ({alone:,} of {len(every):,} columns have no reverse)"]
    kept, edge_rows = unique_inverse(first)
    return kept, edge_rows, [f"edge_index has each edge twice: {len(every):,} columns became {len(kept):,} edges"]


def _same(edges: Tensor, first: Array) -> bool:
    """Whether each column has the attributes of the first one of its edge, to the last bit."""
    other = edges[torch.from_numpy(first).to(edges.device)]
    return bool(((edges == other) | (edges.isnan() & other.isnan())).all())


def _disagreements(extra: dict[str, Any], first: Array, edge_rows: Array) -> list[str]:
    """A note for each attribute of the columns that is not the same in both directions of an edge."""
    notes = []
    for name, value in extra.items():
        if "edge" in name and isinstance(value, Tensor) and value.dim() and len(value) == len(edge_rows):
            other = (value != value[torch.from_numpy(first[edge_rows]).to(value.device)]).flatten(
                1 if value.dim() > 1 else 0
            )
            count = int((other.any(1) if other.dim() > 1 else other).sum())
            if count:
                notes.append(f"{name} differs between the two directions of {count:,} edges")
    return notes


def _set(graph: Graph, edge_rows: Tensor, ptr: Tensor) -> tuple[GraphSet, Tensor]:
    """A union whose graphs are contiguous, as a set; its edges are brought into the order of the graphs."""
    owner = torch.bucketize(graph.ends[0], ptr, right=True) - 1
    order = owner.argsort(stable=True)
    place = torch.empty_like(order).index_copy(0, order, torch.arange(len(order), device=order.device))
    count = torch.bincount(owner, minlength=len(ptr) - 1)
    offset = torch.cat([count.new_zeros(1), count.cumsum(0)])
    ends = graph.ends[:, order] - ptr[owner[order]]
    return GraphSet(graph.nodes, graph.edges[order], ends, ptr, offset), place[edge_rows]
