"""Statistics of a graph: degrees, components, loops, parallel edges, and the size of its line graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from pydantic import BaseModel, Field
from scipy.sparse.csgraph import connected_components

from censnet.ops.arrays import Array, unique_inverse
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


class Degrees(BaseModel):
    """Node degrees; a loop counts once. The histogram has the bins 0, 1, 2-3, 4-7, 8-15, ..."""

    least: int
    median: float
    mean: float
    most: int
    histogram: list[tuple[int, int, int]] = Field(description="lowest degree, highest degree, nodes")


class Structure(BaseModel):
    """Counts of one graph, or of all graphs of a set together."""

    nodes: int
    edges: int
    graphs: int
    node_width: int
    edge_width: int
    sparse: bool
    nodes_per_graph: tuple[int, float, int] = Field(description="least, median, most")
    degrees: Degrees
    components: int
    largest_component: int
    isolated: int
    loops: int
    parallel: int = Field(description="edges beyond the first between the same two nodes")


class LineGraph(BaseModel):
    """The size of the line graph, which is never built, and the memory that building it would take.

    Its links are the pairs of edges that share a node: sum over nodes of deg (deg - 1) / 2, less the pairs of parallel
    edges, which share two. Explicit: both directions, two whole numbers and a weight each. Dense: E x E numbers of
    4 bytes, for many graphs a block for each.
    """

    links: int
    explicit_bytes: int
    dense_bytes: int


def measure_structure(graph: Graph | GraphSet) -> tuple[Structure, LineGraph]:
    """Count the structure of a graph, or of many, and the size of its line graph."""
    low, high = pair_ends(graph)
    num_nodes, num_edges = graph.nodes.shape[0], graph.edges.shape[0]
    proper = low != high
    degree = np.bincount(low, minlength=num_nodes) + np.bincount(high[proper], minlength=num_nodes)
    pairs, pair_of = unique_inverse(low * num_nodes + high)
    multiplicity = np.bincount(pair_of, minlength=len(pairs)).astype(np.int64)
    adjacency = scipy.sparse.coo_matrix((np.ones(num_edges, dtype=bool), (low, high)), shape=(num_nodes, num_nodes))
    components, label = connected_components(adjacency.tocsr(), directed=False)
    if isinstance(graph, GraphSet):
        sizes, edge_sizes = graph.node_offset.diff().cpu().numpy(), graph.edge_offset.diff().cpu().numpy()
    else:
        sizes, edge_sizes = np.array([num_nodes]), np.array([num_edges])
    several = pairs // max(num_nodes, 1) != pairs % max(num_nodes, 1)
    twice = (multiplicity * (multiplicity - 1) // 2)[several].sum()
    line_links = int((degree * (degree - 1) // 2).sum() - twice)
    structure = Structure(
        nodes=num_nodes,
        edges=num_edges,
        graphs=len(sizes),
        node_width=graph.node_width,
        edge_width=graph.edge_width,
        sparse=str(graph.nodes.layout) == "torch.sparse_csr",
        nodes_per_graph=(int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        degrees=_degrees(degree),
        components=int(components),
        largest_component=int(np.bincount(label).max()),
        isolated=int((degree == 0).sum()),
        loops=int((~proper).sum()),
        parallel=int(num_edges - len(pairs)),
    )
    dense = int((edge_sizes.astype(np.float64) ** 2).sum() * 4)
    return structure, LineGraph(links=line_links, explicit_bytes=2 * line_links * 20, dense_bytes=dense)


def _degrees(degree: Array) -> Degrees:
    counts = np.bincount(np.where(degree > 0, np.floor(np.log2(np.maximum(degree, 1))) + 1, 0).astype(np.int64))
    bins = [(0, 0)] + [(2**power, 2 ** (power + 1) - 1) for power in range(len(counts) - 1)]
    return Degrees(
        least=int(degree.min()),
        median=float(np.median(degree)),
        mean=float(degree.mean()),
        most=int(degree.max()),
        histogram=[(*ends, int(count)) for ends, count in zip(bins, counts, strict=True)],
    )


def pair_ends(graph: Graph | GraphSet) -> tuple[Array, Array]:
    """The lower and the higher end node of each edge, numbered over all graphs of a set."""
    ends = graph.global_ends.cpu().numpy()
    return ends.min(0), ends.max(0)
