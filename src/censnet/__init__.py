"""Co-embedding of the nodes and edges of a graph, exactly and in linear time."""

from censnet.ops.graph import Graph, GraphSet
from censnet.ops.incidence import Incidence

__version__ = "0.1.0"
__all__ = ["Graph", "GraphSet", "Incidence"]
