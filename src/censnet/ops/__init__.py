"""Tensors and graphs, without parameters: the incidence of a graph and the two propagations over it."""

from censnet.ops.incidence import Incidence
from censnet.ops.propagate import propagate_edges, propagate_nodes
from censnet.ops.released import propagate_edges_released

__all__ = ["Incidence", "propagate_edges", "propagate_edges_released", "propagate_nodes"]
