"""Ego graphs: the neighborhood of each of some nodes as a graph of its own, in which that node can be marked.

Message passing cannot tell whether a walk that leaves a node comes back to it, or ends at another node that looks the
same: all nodes are computed at once, and none is marked. In an ego graph one node is asked, so it can be.

There is no loop over nodes: a node of an ego graph is a pair (ego, node), written as one number.
"""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.ops.sampling import Subgraph, check_rows, incident_edges, is_in, take_features
from censnet.ops.segments import ranges

SAMPLED = 64  # ego graphs by which the size of others is estimated
COUNTED = 2**21  # entries of T that are looked at together where ego graphs are counted


def ego_graphs(graph: Graph, nodes: Tensor, hops: int) -> Subgraph:
    """The ego graph of each node: the nodes up to so many hops away, and all edges between them.

    The ego graphs are disjoint: a node, or an edge, is there once for each that it is in. Direction does not matter to
    hops. With `Model.receptive_field` hops, the embedding of an ego in its graph is that in the whole graph: the nodes
    farther in have all of their edges, and all have the degrees of the whole graph, by which undirected layers
    normalize. Directed layers divide by the number of edges that are there.

    Args:
        graph: the whole graph.
        nodes: the egos; one may come twice.
        hops: the largest distance from the ego.

    Returns:
        The ego graphs as one batch, whose seeds are the egos: by ego, then by node, edges by the node they start at.

    Example:
        >>> ring = Graph(torch.ones(6, 1), torch.ones(6, 1), torch.stack([torch.arange(6), torch.arange(6).roll(-1)]))
        >>> found = ego_graphs(ring, torch.tensor([0, 3]), hops=1)
        >>> found.graph, found.nodes.tolist(), found.edges.tolist(), found.seeds.tolist()
        (Graph(6 nodes x 1, 4 edges x 1, 2 graphs), [0, 1, 5, 2, 3, 4], [0, 5, 2, 3], [0, 4])
    """
    nodes = check_rows("nodes", nodes, graph, "node")
    if hops < 0:
        raise ValueError(f"hops is {hops}, expected 0 or more")
    whole, width = graph.incidence, graph.num_nodes
    key = _neighborhoods(whole, nodes, hops)
    owner, node = key // width, key % width
    edge, at = _edges_of(whole, node)
    starts = graph.ends[0][edge] == node[at]  # each edge is met from both of its ends
    edge, at = edge[starts], at[starts]
    end = owner[at] * width + graph.ends[1][edge]
    place = torch.searchsorted(key, end).clamp(max=len(key) - 1)
    inside = key[place] == end
    edge, ends = edge[inside], torch.stack([at[inside], place[inside]])
    incidence = Incidence.from_known(
        ends,
        len(key),
        owner,
        len(nodes),
        node_degree=whole.node_degree[node],
        edge_count=whole.edge_count[node],
        multiplicity=whole.multiplicity[edge],  # parallel edges are all there
        **({"is_loop": None} if whole.is_loop is None else {}),
    )
    features = take_features(graph.nodes, node), take_features(graph.edges, edge)
    times = None if graph.times is None else graph.times[edge]
    found = Graph.from_incidence(*features, incidence, None, graph.directed, graph.odd_width, times)
    egos = torch.arange(len(nodes), device=nodes.device) * width + nodes
    return Subgraph(found, node, edge, torch.searchsorted(key, egos))


def mark_egos(found: Subgraph) -> Graph:
    """The ego graphs with one more feature of nodes, the last: 1 at each ego, 0 elsewhere.

    Example:
        >>> path = Graph(torch.ones(3, 1), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
        >>> mark_egos(ego_graphs(path, torch.tensor([0, 1]), hops=1)).nodes.tolist()
        [[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    """
    graph = found.graph
    mark = graph.nodes.new_zeros(graph.num_nodes, 1).index_fill(0, found.seeds, 1)
    nodes = torch.cat([graph.nodes, mark], dim=1)
    about = None, graph.directed, graph.odd_width, graph.times
    return Graph.from_incidence(nodes, graph.edges, graph.incidence, *about)


def ego_batches(graph: Graph, nodes: Tensor, hops: int, most: int) -> list[Tensor]:
    """Nodes in their order, in batches whose ego graphs have about so many nodes and edges at most, or are one.

    Args:
        graph: the whole graph.
        nodes: the egos.
        hops: of the ego graphs.
        most: nodes and edges of a batch; it may have one ego graph more.

    Example:
        >>> ring = Graph(torch.ones(6, 1), torch.ones(6, 1), torch.stack([torch.arange(6), torch.arange(6).roll(-1)]))
        >>> [batch.tolist() for batch in ego_batches(ring, torch.arange(5), hops=1, most=12)]
        [[0, 1], [2, 3], [4]]
    """
    return _batches(nodes, ego_sizes(graph.incidence, hops)[nodes], most)


def ego_sizes(incidence: Incidence, hops: int) -> Tensor:
    """For each node, the number of nodes of its ego graph and of the edges that start at these. (N,)

    Some of these edges may end outside.
    """
    every = torch.arange(incidence.num_nodes, device=incidence.ends.device)
    return incidence.cache(("ego sizes", hops), lambda: _count(incidence, every, hops))


def mean_ego_size(incidence: Incidence, nodes: Tensor, hops: int) -> float:
    """The mean of `ego_sizes` over some nodes, estimated from a few of them."""
    few = nodes[torch.linspace(0, len(nodes) - 1, min(len(nodes), SAMPLED), device=nodes.device).long()]
    return float(_count(incidence, few, hops).double().mean())


def _count(incidence: Incidence, nodes: Tensor, hops: int) -> Tensor:
    width, weight, parts = incidence.num_nodes, 1 + incidence.out_degree, []
    for some in _batches(nodes, _most_entries(incidence, hops)[nodes], COUNTED):
        key = _neighborhoods(incidence, some, hops)
        parts.append(torch.zeros_like(some).index_add(0, key // width, weight[key % width]))
    return torch.cat(parts)


def _most_entries(incidence: Incidence, hops: int) -> Tensor:
    """At least the number of nodes and entries of T that an ego graph of each node has: one for each walk. (N,)"""
    first, second = incidence.ends
    own = incidence.edge_count + 1
    found = own
    for _ in range(hops):
        around = own.index_add(0, first, found[second]).index_add(0, second, found[first])
        found = around.clamp(max=incidence.num_nodes + 2 * incidence.num_edges)
    return found


def _batches(rows: Tensor, sizes: Tensor, most: int) -> list[Tensor]:
    """Rows in their order, cut whenever a multiple of `most` is exceeded."""
    batch = (sizes.cumsum(0) - 1) // most
    _, counts = torch.unique_consecutive(batch, return_counts=True)
    return list(torch.split(rows, counts.tolist()))


def _neighborhoods(incidence: Incidence, nodes: Tensor, hops: int) -> Tensor:
    """The nodes up to so many hops from each ego: ego * N + node, where egos are counted, in rising order."""
    width = incidence.num_nodes
    found = new = torch.arange(len(nodes), device=nodes.device) * width + nodes
    for _ in range(hops):
        if len(new) == 0:
            break
        ego, node = new // width, new % width
        edge, at = _edges_of(incidence, node)
        reached = torch.unique(ego[at] * width + incidence.ends[:, edge].sum(0) - node[at])
        new = reached[~is_in(reached, found)]
        found = torch.cat([found, new]).sort().values
    return found


def _edges_of(incidence: Incidence, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """The edges at each node, one node after the other, and the place of that node among these."""
    edge, offset = incident_edges(incidence)
    start = offset[nodes].long()
    count = offset[nodes + 1].long() - start
    every = torch.arange(len(nodes), device=nodes.device)
    return edge[ranges(start, count)].long(), every.repeat_interleave(count)
