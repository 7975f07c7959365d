"""The size of a graph beside that of the graph that was trained on: predictions depend on the edges around a row."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.text import count

FACTOR = 2.0  # between mean degrees, from which a graph is unlike the one that was trained on


class GraphSize(BaseModel):
    """The number of nodes, edges and graphs.

    Example:
        >>> GraphSize(nodes=60, edges=500)
        GraphSize(nodes=60, edges=500, graphs=1)
        >>> print(GraphSize(nodes=60, edges=500))
        60 nodes, 500 edges, mean degree 16.7
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: int = Field(ge=0)
    edges: int = Field(ge=0)
    graphs: int = Field(1, ge=0)

    @classmethod
    def of(cls, graph: Graph | GraphSet) -> GraphSize:
        """The size of a graph, or of many together."""
        count = len(graph) if isinstance(graph, GraphSet) else graph.num_graphs
        return cls(nodes=len(graph.nodes), edges=len(graph.edges), graphs=count)

    @property
    def mean_degree(self) -> float:
        """Ends of edges at a node, on average."""
        return 2 * self.edges / max(self.nodes, 1)

    def __str__(self) -> str:
        if self.graphs == 1:
            nodes, edges = count(self.nodes, "node"), count(self.edges, "edge")
            return f"{nodes}, {edges}, mean degree {self.mean_degree:.1f}"
        each = [total / max(self.graphs, 1) for total in (self.nodes, self.edges)]
        size = f"{each[0]:.1f} nodes and {each[1]:.1f} edges"
        return f"{count(self.graphs, 'graph')} of {size}, mean degree {self.mean_degree:.1f}"


def compare_sizes(found: GraphSize, trained: GraphSize) -> tuple[str, bool]:
    """One sentence on a graph beside the one that was trained on, and whether they differ much.

    >>> compare_sizes(GraphSize(nodes=60, edges=500), GraphSize(nodes=60, edges=500))
    ('the graph has 60 nodes, 500 edges, mean degree 16.7, as in training', False)
    >>> print(compare_sizes(GraphSize(nodes=60, edges=100), GraphSize(nodes=60, edges=500))[0])
    the graph has 60 nodes, 100 edges, mean degree 3.3; trained on 60 nodes, 500 edges, mean degree 16.7: predictions...
    """
    subject = "the graph has" if found.graphs == 1 else "there are"
    if found == trained:
        return f"{subject} {found}, as in training", False
    line = f"{subject} {found}; trained on {trained}"
    low, high = sorted((found.mean_degree, trained.mean_degree))
    if high <= FACTOR * low:
        return line, False
    return f"{line}: predictions depend on the edges around a row, so give new rows with the history before them", True
