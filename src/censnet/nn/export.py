"""Export of an encoder as a program of tensors in, tensors out, that does not need this library."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence


class FromEnds(nn.Module):
    """A model that takes the ends of the edges as a tensor, and makes the incidence itself.

    Shape:
        nodes (N, node_width), edges (E, edge_width), ends (2, E) -> the model's outputs.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, nodes: Tensor, edges: Tensor, ends: Tensor) -> Any:
        """Apply the model to this graph."""
        return self.model(nodes, edges, Incidence(ends, nodes.shape[0]))


def export(model: nn.Module, graph: Graph) -> ExportedProgram:
    """The model as a program that `torch.export.save` can write, for graphs of any size.

    Args:
        model: takes nodes, edges, incidence, as `CensNet` does. Call `eval()` first, or dropout is exported too.
        graph: an example, with dense nodes, and at least two nodes and two edges.

    Example:
        >>> from censnet.nn.encoder import CensNet
        >>> path = Graph(torch.randn(3, 4), torch.randn(2, 2), torch.tensor([[0, 1], [1, 2]]))
        >>> model = CensNet(4, 2, hidden=8).eval()
        >>> program = export(model, path).module()
        >>> nodes, edges = program(path.nodes, path.edges, path.ends)
        >>> torch.allclose(nodes, model(path.nodes, path.edges, path.incidence)[0], atol=1e-6)
        True
    """
    count, links = Dim("num_nodes"), Dim("num_edges")
    return torch.export.export(
        FromEnds(model),
        (graph.nodes, graph.edges, graph.ends),
        dynamic_shapes=({0: count}, {0: links}, {1: links}),
    )
