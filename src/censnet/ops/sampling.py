"""Parts of a graph that is too big for one step: the surroundings of some rows, or some nodes and what is between them.

A part is a graph like any other. There is no loop over nodes, nothing as large as the whole graph is made for a part,
and the same `torch.Generator` gives the same part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from censnet.data.splits.split import Split
from censnet.ops.checks import check_numbering, check_shape
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.segments import offsets, ranges, take_rows

Level = Literal["node", "edge"]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A part of a graph, and where it comes from.

    Args:
        graph: some of the nodes and some of the edges between them, each edge once, both in rising order.
        nodes: which nodes of the whole graph these are.
        edges: which edges of the whole graph these are.
        seeds: the rows of the part that were asked for, in the order they were asked for.

    Shape:
        nodes (n,), edges (e,), seeds (as many as were asked for,).
    """

    graph: Graph
    nodes: Tensor
    edges: Tensor
    seeds: Tensor

    def to(self, device: torch.device | str) -> Subgraph:
        """The same part on another device, with the degrees that it was given."""
        graph, known = self.graph.to(device), self.graph.incidence.__dict__
        for name in ("node_degree", "edge_count"):  # those of the edges follow
            if name in known:
                graph.incidence.__dict__[name] = known[name].to(device)
        return Subgraph(graph, *(rows.to(device) for rows in (self.nodes, self.edges, self.seeds)))


def induced_subgraph(graph: Graph, nodes: Tensor) -> Subgraph:
    """The nodes and all edges between them. Degrees are those that the nodes have in the part, as in the paper.

    Time goes with the edges around the nodes.

    Example:
        >>> path = Graph(torch.ones(4, 1), torch.ones(3, 1), torch.tensor([[0, 1, 2], [1, 2, 3]]))
        >>> part = induced_subgraph(path, torch.tensor([2, 0, 1]))
        >>> part.graph, part.nodes.tolist(), part.edges.tolist(), part.seeds.tolist()
        (Graph(3 nodes x 1, 2 edges x 1), [0, 1, 2], [0, 1], [2, 0, 1])
    """
    nodes = _check_rows("nodes", nodes, graph, "node")
    inside = torch.unique(nodes)
    edge, source = _draw(graph.incidence, inside)
    first, second = graph.ends[:, edge]
    edge = edge[(first == source) & _is_in(second, inside)]  # each is met from both of its ends
    return _part(graph, edge.sort().values, nodes)


def sample_neighbors(
    graph: Graph,
    rows: Tensor,
    level: Level = "node",
    fanout: Sequence[int | None] = (15, 10, 5),
    generator: torch.Generator | None = None,
) -> Subgraph:
    """The rows and what is around them: from each node met, some of its edges and the nodes at their other ends.

    Every hop draws, without replacement, edges of each node that the hop before has met for the first time; the first
    hop those of the seeds, or of both ends of seeds that are edges. An edge that is drawn from both ends is there once.
    It takes as many hops as `receptive_field` says for the embedding of a seed to be that of the whole graph when
    all edges are taken.

    **Degrees.** A node whose edges were drawn has as many edges as the part has of it: it sums over some of its edges,
    and is normalised by how many those are. A node at the rim, which only the last hop has met, gives and does not
    take, and has the degree it has in the whole graph. When all edges are taken, both are the degrees of the whole
    graph.

    Args:
        graph: the whole graph.
        rows: the seeds; one may come twice.
        level: whether the rows are nodes or edges.
        fanout: for each hop, how many edges of each node are drawn at most; None is all. A hub costs as much as any
            other node.
        generator: where the draws come from.

    Example:
        >>> star = Graph(torch.ones(9, 1), torch.ones(8, 1), torch.stack([torch.zeros(8).long(), torch.arange(1, 9)]))
        >>> sample_neighbors(star, torch.tensor([0]), fanout=(3,)).graph
        Graph(4 nodes x 1, 3 edges x 1)
        >>> sample_neighbors(star, torch.tensor([5]), fanout=(None, None)).graph
        Graph(9 nodes x 1, 8 edges x 1)
    """
    if level not in ("node", "edge"):
        raise ValueError(f"level is {level!r}, expected 'node' or 'edge'")
    rows = _check_rows("rows", rows, graph, level)
    edges = [rows if level == "edge" else rows[:0]]
    met = seeds = torch.unique(rows if level == "node" else graph.ends[:, rows])
    inner = seeds[:0]
    for most in fanout:
        new = met[~_is_in(met, inner)]
        inner = torch.cat([inner, new]).sort().values
        edge, source = _draw(graph.incidence, new, most, generator)
        edges.append(edge)
        met = torch.unique(graph.ends[:, edge].sum(0) - source)
    every = torch.unique(torch.cat(edges))
    part = _part(graph, every, seeds)
    _keep_degrees(part, graph.incidence, _is_in(part.nodes, inner))
    return replace(part, seeds=torch.searchsorted(part.nodes if level == "node" else every, rows))


def receptive_field(layers: str, level: Level = "node", steps: int = 1, released: bool = False) -> int:
    """How many hops around a row its embedding depends on.

    Args:
        layers: the word of a `CensNet`, such as "NEN".
        level: whether the row is a node or an edge.
        steps: how often the kernel multiplies: 1 for one hop.
        released: whether it is the released network, whose edge layer also reads the largest entry of each column.

    Example:
        >>> receptive_field("NEN"), receptive_field("NEN", "edge"), receptive_field("EN"), receptive_field("NENEN")
        (2, 1, 2, 3)
    """
    nodes, edges = (0, -1) if level == "node" else (-1, 0)  # radius of the nodes, hops whose edges are read; -1 is none
    there = 0  # hops whose edges are to be there, even if they are not read
    for letter in reversed(layers):
        if letter == "N" and nodes >= 0:
            nodes += steps
            edges = max(edges, nodes)
        elif letter == "E" and edges >= 0:
            edges += steps
            there = max(there, edges + released)
            nodes = max(nodes, edges - 1 + released)
    return max(nodes, edges, there)


def proportional(split: Split, num_nodes: int, batch_size: int, generator: torch.Generator) -> list[Tensor]:
    """Nodes in batches, each node once, drawn from the parts of the split in proportion: Algorithm 2 of the paper.

    Of training, validation and test nodes, and of those in no part, every batch has its share, rounded up or down.

    Example:
        >>> split = Split.of([0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
        >>> first, second = proportional(split, 10, 5, torch.Generator().manual_seed(0))
        >>> sorted(torch.cat([first, second]).tolist()) == list(range(10)), (first < 2).sum().item()
        (True, 1)
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    code = torch.from_numpy(split.codes(num_nodes))
    batches = -(-num_nodes // batch_size)
    batch = torch.empty(num_nodes, dtype=torch.int64)
    for part in range(-1, 3):
        group = (code == part).nonzero().squeeze(1)
        start = torch.rand(
            1, generator=generator, dtype=torch.float64
        )  # a small part falls into other batches each time
        place = (torch.randperm(len(group), generator=generator) + start) * (batches / max(len(group), 1))
        batch[group] = place.long().clamp(max=batches - 1)
    sizes = torch.bincount(batch, minlength=batches)
    order = torch.argsort(batch, stable=True)
    return [nodes for nodes in torch.split(order, sizes.tolist()) if len(nodes)]


def edges_around(incidence: Incidence) -> tuple[Tensor, Tensor]:
    """The edges around each node, one node after the other, and where those of each begin. A loop is there once."""
    slots = incidence.slots.edge
    if slots.pieces is None and incidence.is_loop is None:
        return slots.index, slots.offset

    def order() -> Tensor:  # as the slots have it, without cuts and without the second entry of a loop
        first, second = incidence.ends
        end = torch.cat([first, second.masked_fill(first == second, incidence.num_nodes)])
        return (torch.argsort(end, stable=True) % incidence.num_edges).to(slots.index.dtype)

    offset = incidence.keep(("edges around: offset",), lambda: offsets(incidence.edge_count))
    return incidence.keep(("edges around",), order), offset


def _draw(
    incidence: Incidence, nodes: Tensor, most: int | None = None, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Edges around each node, all or `most`, each set of so many as likely as any other; and which node each is of."""
    edge, offset = edges_around(incidence)
    start = offset[nodes].long()
    count = offset[nodes + 1].long() - start
    if most is None:
        return edge[ranges(start, count)].long(), nodes.repeat_interleave(count)
    if most < 0:
        raise ValueError(f"fanout has {most}, expected a number of edges, or None for all")
    many = count > most
    few, chosen = ~many, start[many].unsqueeze(1) + _choose(count[many], most, generator)
    taken = edge[torch.cat([ranges(start[few], count[few]), chosen.reshape(-1)])].long()
    return taken, torch.cat([nodes[few].repeat_interleave(count[few]), nodes[many].repeat_interleave(most)])


def _choose(count: Tensor, most: int, generator: torch.Generator | None) -> Tensor:
    """For each count > most, `most` different numbers below it, by Floyd's method. (n,) -> (n, most)

    The number drawn in step k is below count - most + k + 1, and is replaced by that bound's last number, which no
    step before could have drawn, if it was drawn before.
    """
    chosen = count.new_empty(len(count), most)
    device = count.device if generator is None else generator.device
    for k in range(most):
        last = count - most + k
        uniform = torch.rand(len(count), generator=generator, dtype=torch.float64, device=device).to(count.device)
        number = torch.minimum((uniform * (last + 1)).long(), last)
        again = (chosen[:, :k] == number.unsqueeze(1)).any(1)
        chosen[:, k] = torch.where(again, last, number)
    return chosen


def _keep_degrees(part: Subgraph, whole: Incidence, inner: Tensor) -> None:
    """Give the nodes at the rim the degrees that they have in the whole graph."""
    incidence = part.graph.incidence
    if bool(whole.keep(("simple",), lambda: (whole.multiplicity == 1).all())):  # saves looking for parallel edges
        ones = torch.ones_like(part.edges)
        incidence.__dict__.update(multiplicity=ones, is_first=ones.bool())
    degree, count = incidence.node_degree, incidence.edge_count
    incidence.__dict__.update(  # before the degrees of the edges are asked for, which follow from these
        node_degree=torch.where(inner, degree, whole.node_degree[part.nodes]),
        edge_count=torch.where(inner, count, whole.edge_count[part.nodes]),
    )


def _part(graph: Graph, edges: Tensor, seeds: Tensor) -> Subgraph:
    """The part with these edges, which are in rising order, their ends, and some nodes as seeds."""
    both = torch.cat([graph.ends[:, edges].reshape(-1), seeds])
    nodes, place = torch.unique(both, return_inverse=True)
    ends, local = place[: 2 * len(edges)].view(2, -1), place[2 * len(edges) :]
    owner = None if graph.owner is None else graph.owner[nodes]
    features = _features(graph.nodes, nodes), _features(graph.edges, edges)
    part = Graph(*features, ends, owner, graph.num_graphs, graph.graphs)
    return Subgraph(part, nodes, edges, local)


def _features(table: Tensor, rows: Tensor) -> Tensor:
    if table.layout == torch.strided:
        return table.index_select(0, rows) if table.requires_grad else take_rows(table, rows)
    start = table.crow_indices()[rows]
    lengths = table.crow_indices()[rows + 1] - start
    entries = ranges(start, lengths)
    columns, values = table.col_indices()[entries], table.values()[entries]
    shape = (len(rows), table.shape[1])
    return torch.sparse_csr_tensor(offsets(lengths), columns, values, shape, check_invariants=False)


def _is_in(numbers: Tensor, rising: Tensor) -> Tensor:
    """Which numbers are in a rising list."""
    if len(rising) == 0:
        return torch.zeros_like(numbers, dtype=torch.bool)
    return rising[torch.searchsorted(rising, numbers).clamp(max=len(rising) - 1)] == numbers


def _check_rows(name: str, rows: Tensor, graph: Graph, level: Level) -> Tensor:
    check_shape(name, rows, (None,), f"(n,), some {level}s of the graph")
    if len(rows) == 0:
        raise ValueError(f"{name} is empty, expected at least one {level}")
    check_numbering(name, rows, graph.num_nodes if level == "node" else graph.num_edges, level)
    return rows.to(graph.ends.device, torch.int64).contiguous()
