"""Subgraphs for minibatches: neighbor sampling, and induced subgraphs of proportional batches.

There is no loop over nodes, no tensor as large as the whole graph is built for a subgraph, and the same
`torch.Generator` gives the same subgraph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from censnet.ops.caching import store, stored
from censnet.ops.checks import check_numbering, check_shape
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.segments import offsets, ranges, take_rows

Level = Literal["node", "edge"]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A subgraph, and the positions of its nodes and edges in the whole graph.

    Args:
        graph: some of the nodes and some of the edges between them, each edge once, both in rising order.
        nodes: the positions of the nodes in the whole graph.
        edges: the positions of the edges in the whole graph.
        seeds: the seed nodes or edges, as positions in the subgraph, in the order they were given.

    Shape:
        nodes (n,), edges (e,), seeds (number of seeds,).
    """

    graph: Graph
    nodes: Tensor
    edges: Tensor
    seeds: Tensor

    def to(self, device: torch.device | str) -> Subgraph:
        """The same on another device, with the same degrees."""
        graph, known = self.graph.to(device), stored(self.graph.incidence, "node_degree", "edge_count")
        store(graph.incidence, **{name: degree.to(device) for name, degree in known.items()})  # those of edges follow
        return Subgraph(graph, *(rows.to(device) for rows in (self.nodes, self.edges, self.seeds)))


def induced_subgraph(graph: Graph, nodes: Tensor) -> Subgraph:
    """The nodes and all edges between them. Degrees are those of the subgraph, as in the paper.

    Time is linear in the edges at the nodes.

    Example:
        >>> path = Graph(torch.ones(4, 1), torch.ones(3, 1), torch.tensor([[0, 1, 2], [1, 2, 3]]))
        >>> found = induced_subgraph(path, torch.tensor([2, 0, 1]))
        >>> found.graph, found.nodes.tolist(), found.edges.tolist(), found.seeds.tolist()
        (Graph(3 nodes x 1, 2 edges x 1), [0, 1, 2], [0, 1], [2, 0, 1])
    """
    nodes = check_rows("nodes", nodes, graph, "node")
    inside = torch.unique(nodes)
    edge, source = _sample_edges(graph.incidence, inside)
    first, second = graph.ends[:, edge]
    edge = edge[(first == source) & is_in(second, inside)]  # each is met from both of its ends
    return _subgraph(graph, edge.sort().values, nodes)


def sample_neighbors(
    graph: Graph,
    rows: Tensor,
    level: Level = "node",
    fanout: Sequence[int | None] = (15, 10, 5),
    generator: torch.Generator | None = None,
) -> Subgraph:
    """Neighbor sampling: the seeds, and hop by hop some edges of each node reached and the nodes at their other ends.

    Every hop samples, without replacement, edges of each node that the hop before has reached for the first time; the
    first hop those of the seeds, or of both ends of seeds that are edges. An edge that is sampled from both ends is
    there once. With `Model.receptive_field` hops and all edges, the embedding of a seed is that in the whole graph.

    **Degrees.** A node whose edges were sampled has the degree of the subgraph: it sums over some of its edges, and is
    normalized by their number. A boundary node, reached by the last hop, is read and not updated, and has the degree of
    the whole graph. When all edges are taken, both are the degrees of the whole graph.

    Args:
        graph: the whole graph.
        rows: the seeds; one may come twice.
        level: whether the seeds are nodes or edges.
        fanout: for each hop, the most edges of each node that are sampled; None is all. A hub costs as much as any
            other node.
        generator: of the random draws.

    Example:
        >>> star = Graph(torch.ones(9, 1), torch.ones(8, 1), torch.stack([torch.zeros(8).long(), torch.arange(1, 9)]))
        >>> sample_neighbors(star, torch.tensor([0]), fanout=(3,)).graph
        Graph(4 nodes x 1, 3 edges x 1)
        >>> sample_neighbors(star, torch.tensor([5]), fanout=(None, None)).graph
        Graph(9 nodes x 1, 8 edges x 1)
    """
    if level not in ("node", "edge"):
        raise ValueError(f"level is {level!r}, expected 'node' or 'edge'")
    rows = check_rows("rows", rows, graph, level)
    edges = [rows if level == "edge" else rows[:0]]
    reached = seeds = torch.unique(rows if level == "node" else graph.ends[:, rows])
    inner = seeds[:0]
    for most in fanout:
        new = reached[~is_in(reached, inner)]
        inner = torch.cat([inner, new]).sort().values
        edge, source = _sample_edges(graph.incidence, new, most, generator)
        edges.append(edge)
        reached = torch.unique(graph.ends[:, edge].sum(0) - source)
    every = torch.unique(torch.cat(edges))
    found = _subgraph(graph, every, seeds)
    _set_boundary_degrees(found, graph.incidence, is_in(found.nodes, inner))
    return replace(found, seeds=torch.searchsorted(found.nodes if level == "node" else every, rows))


def proportional_batches(codes: Tensor, batch_size: int, generator: torch.Generator) -> list[Tensor]:
    """Nodes in batches, each node once, drawn from the parts of a split in proportion: Algorithm 2 of the paper.

    Every batch has its share of the nodes of each part, rounded up or down.

    Args:
        codes: the part of each node: 0 train, 1 validation, 2 test, -1 none.
        batch_size: nodes of a batch, at most.
        generator: of the random draws.

    Example:
        >>> codes = torch.tensor([0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
        >>> first, second = proportional_batches(codes, 5, torch.Generator().manual_seed(0))
        >>> sorted(torch.cat([first, second]).tolist()) == list(range(10)), (first < 2).sum().item()
        (True, 1)
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    batches = -(-len(codes) // batch_size)
    batch = torch.empty(len(codes), dtype=torch.int64)
    for part in range(-1, 3):
        group = (codes == part).nonzero().squeeze(1)
        start = torch.rand(1, generator=generator, dtype=torch.float64)  # so that few nodes do not all go to the first
        position = (torch.randperm(len(group), generator=generator) + start) * (batches / max(len(group), 1))
        batch[group] = position.long().clamp(max=batches - 1)
    sizes = torch.bincount(batch, minlength=batches)
    order = torch.argsort(batch, stable=True)
    return [nodes for nodes in torch.split(order, sizes.tolist()) if len(nodes)]


def incident_edges(incidence: Incidence) -> tuple[Tensor, Tensor]:
    """The edges at each node, one node after the other, and the offset of each. A loop is there once."""
    csr = incidence.csr.edge
    if csr.chunks is None and incidence.is_loop is None:
        return csr.index, csr.offset

    def order() -> Tensor:  # as in `csr`, without chunks and without the second entry of a loop
        first, second = incidence.ends
        end = torch.cat([first, second.masked_fill(first == second, incidence.num_nodes)])
        return (torch.argsort(end, stable=True) % incidence.num_edges).to(csr.index.dtype)

    offset = incidence.cache(("edges around: offset",), lambda: offsets(incidence.edge_count))
    return incidence.cache(("edges around",), order), offset


def _sample_edges(
    incidence: Incidence, nodes: Tensor, most: int | None = None, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Edges at each node, all or `most` of them uniformly at random, and the node of each."""
    edge, offset = incident_edges(incidence)
    start = offset[nodes].long()
    count = offset[nodes + 1].long() - start
    if most is None:
        return edge[ranges(start, count)].long(), nodes.repeat_interleave(count)
    if most < 0:
        raise ValueError(f"fanout has {most}, expected a number of edges, or None for all")
    many = count > most
    few, index = ~many, start[many].unsqueeze(1) + _sample_without_replacement(count[many], most, generator)
    taken = edge[torch.cat([ranges(start[few], count[few]), index.reshape(-1)])].long()
    return taken, torch.cat([nodes[few].repeat_interleave(count[few]), nodes[many].repeat_interleave(most)])


def _sample_without_replacement(count: Tensor, most: int, generator: torch.Generator | None) -> Tensor:
    """For each count > most, `most` different numbers below it, by Floyd's method. (n,) -> (n, most)

    The number drawn in step k is below count - most + k + 1, and is replaced by that bound's last number, which no
    step before could have drawn, if it was drawn before.
    """
    index = count.new_empty(len(count), most)
    if not len(count):
        return index
    device = count.device if generator is None else generator.device
    for k in range(most):
        last = count - most + k
        uniform = torch.rand(len(count), generator=generator, dtype=torch.float64, device=device).to(count.device)
        number = torch.minimum((uniform * (last + 1)).long(), last)
        again = (index[:, :k] == number.unsqueeze(1)).any(1)
        index[:, k] = torch.where(again, last, number)
    return index


def _set_boundary_degrees(found: Subgraph, whole: Incidence, inner: Tensor) -> None:
    """Give boundary nodes the degrees that they have in the whole graph."""
    incidence = found.graph.incidence
    if bool(whole.cache(("simple",), lambda: (whole.multiplicity == 1).all())):  # saves looking for parallel edges
        ones = torch.ones_like(found.edges)
        store(incidence, multiplicity=ones, is_first=ones.bool())
    degree, count = incidence.node_degree, incidence.edge_count
    store(  # before the degrees of the edges are computed from these
        incidence,
        node_degree=torch.where(inner, degree, whole.node_degree[found.nodes]),
        edge_count=torch.where(inner, count, whole.edge_count[found.nodes]),
    )


def _subgraph(graph: Graph, edges: Tensor, seeds: Tensor) -> Subgraph:
    """The subgraph of these edges, in rising order, their ends, and some nodes as seeds."""
    both = torch.cat([graph.ends[:, edges].reshape(-1), seeds])
    nodes, local = torch.unique(both, return_inverse=True)
    ends, local = local[: 2 * len(edges)].view(2, -1), local[2 * len(edges) :]
    owner = None if graph.owner is None else graph.owner[nodes]
    features = take_features(graph.nodes, nodes), take_features(graph.edges, edges)
    found = Graph(*features, ends, owner, graph.num_graphs, graph.graph_features, graph.directed, graph.odd_width)
    found = found if graph.times is None else found.with_times(graph.times[edges])
    return Subgraph(found, nodes, edges, local)


def take_features(table: Tensor, rows: Tensor) -> Tensor:
    """Rows of dense or sparse features."""
    if table.layout == torch.strided:
        return table.index_select(0, rows) if table.requires_grad else take_rows(table, rows)
    start = table.crow_indices()[rows]
    lengths = table.crow_indices()[rows + 1] - start
    entries = ranges(start, lengths)
    columns, values = table.col_indices()[entries], table.values()[entries]
    shape = (len(rows), table.shape[1])
    return torch.sparse_csr_tensor(offsets(lengths), columns, values, shape, check_invariants=False)


def is_in(numbers: Tensor, rising: Tensor) -> Tensor:
    """A mask of the numbers that are in a rising list."""
    if len(rising) == 0:
        return torch.zeros_like(numbers, dtype=torch.bool)
    return rising[torch.searchsorted(rising, numbers).clamp(max=len(rising) - 1)] == numbers


def check_rows(name: str, rows: Tensor, graph: Graph, level: Level) -> Tensor:
    """Some nodes or edges of a graph as indices; raise unless they are."""
    check_shape(name, rows, (None,), f"(n,), some {level}s of the graph")
    if len(rows) == 0:
        raise ValueError(f"{name} is empty, expected at least one {level}")
    check_numbering(name, rows, graph.num_nodes if level == "node" else graph.num_edges, level)
    return rows.to(graph.ends.device, torch.int64).contiguous()
