"""Co-embedding of the nodes and edges of a graph, exactly and in linear time."""

from censnet.nn import CensNet, CensNetVAE, EdgeLayer, NodeLayer
from censnet.ops.graph import Graph, GraphSet

__version__ = "0.1.0"
__all__ = ["CensNet", "CensNetVAE", "EdgeLayer", "Graph", "GraphSet", "NodeLayer"]
