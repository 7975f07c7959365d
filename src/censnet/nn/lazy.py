"""The layers with widths that are inferred in the first call, as torch's own lazy modules do."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedParameter

from censnet.nn.layers import EdgeLayer, IncidenceLayer, NodeLayer


class _Lazy(LazyModuleMixin, IncidenceLayer):
    """A layer whose widths, where they are given as -1, are those of its first inputs."""

    def __init__(self, node_width: int, edge_width: int, out_width: int, **options: Any) -> None:
        super().__init__(1, 1, out_width, **options)
        given = {"node": node_width, "edge": edge_width}
        self.in_width, self.read_width = given[self.updates], given[self.reads]
        for name in ("weight", "gate_weight", "root_weight"):
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedParameter())

    def reset_parameters(self) -> None:
        """Initialize the parameters, if they have a shape yet."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, nodes: Tensor, edges: Tensor, *_: Any) -> None:
        """Take the widths of the first inputs, where they were not given."""
        found = {"node": nodes.shape[1], "edge": edges.shape[1]}
        width = found[self.updates] if self.in_width < 0 else self.in_width
        read_width = found[self.reads] if self.read_width < 0 else self.read_width
        if self.has_uninitialized_params():  # and not loaded from a state_dict before the first call
            shapes = {
                "weight": (width, self.out_width),
                "gate_weight": (read_width, self.heads),
                "root_weight": (width, self.out_width),
            }
            for name, shape in shapes.items():
                parameter = getattr(self, name)
                if parameter is not None:
                    parameter.materialize(shape)
            self.reset_parameters()
        self.in_width, self.read_width = len(self.weight), len(self.gate_weight)


class LazyNodeLayer(_Lazy, NodeLayer):
    """A `NodeLayer` that infers its widths in the first call."""

    cls_to_become = NodeLayer


class LazyEdgeLayer(_Lazy, EdgeLayer):
    """An `EdgeLayer` that infers its widths in the first call."""

    cls_to_become = EdgeLayer


LAZY_LAYERS: dict[type[IncidenceLayer], type[_Lazy]] = {NodeLayer: LazyNodeLayer, EdgeLayer: LazyEdgeLayer}
