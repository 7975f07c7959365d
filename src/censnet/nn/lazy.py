"""The layers with widths that are inferred in the first call, as torch's own lazy modules do."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedParameter

from censnet.nn.directed import DirectedEdgeLayer, DirectedNodeLayer
from censnet.nn.layers import EdgeLayer, IncidenceLayer, NodeLayer


class _Lazy(LazyModuleMixin, IncidenceLayer):
    """A layer whose widths, where they are given as -1, are those of its first inputs."""

    def __init__(self, node_width: int, edge_width: int, out_width: int, **options: Any) -> None:
        super().__init__(1, 1, out_width, **options)
        given = {"node": node_width, "edge": edge_width}
        self.in_width, self.read_width = given[self.updates], given[self.reads]
        self.columns = {name: int(getattr(self, name).shape[1]) for name in self.matrix_sides()}
        for name in self.columns:
            setattr(self, name, UninitializedParameter())

    def reset_parameters(self) -> None:
        """Initialize the parameters, if they have a shape yet."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, nodes: Tensor, edges: Tensor, *_: Any) -> None:
        """Take the widths of the first inputs, where they were not given."""
        found = {"node": nodes.shape[1], "edge": edges.shape[1]}
        given = {self.updates: self.in_width, self.reads: self.read_width}
        if self.has_uninitialized_params():  # and not loaded from a state_dict before the first call
            for name, side in self.matrix_sides().items():
                width = found[side] if given[side] < 0 else given[side]
                getattr(self, name).materialize((width, self.columns[name]))
            self.reset_parameters()
        self.in_width, self.read_width = len(self.weight), len(self.gate_weight)


class LazyNodeLayer(_Lazy, NodeLayer):
    """A `NodeLayer` that infers its widths in the first call."""

    cls_to_become = NodeLayer


class LazyEdgeLayer(_Lazy, EdgeLayer):
    """An `EdgeLayer` that infers its widths in the first call."""

    cls_to_become = EdgeLayer


class LazyDirectedNodeLayer(_Lazy, DirectedNodeLayer):
    """A `DirectedNodeLayer` that infers its widths in the first call."""

    cls_to_become = DirectedNodeLayer


class LazyDirectedEdgeLayer(_Lazy, DirectedEdgeLayer):
    """A `DirectedEdgeLayer` that infers its widths in the first call."""

    cls_to_become = DirectedEdgeLayer


LAZY_LAYERS: dict[type[IncidenceLayer], type[_Lazy]] = {
    NodeLayer: LazyNodeLayer,
    EdgeLayer: LazyEdgeLayer,
    DirectedNodeLayer: LazyDirectedNodeLayer,
    DirectedEdgeLayer: LazyDirectedEdgeLayer,
}
