"""GCN, APPNP and GAT as node encoders that replace CensNet in the same training loop.

They use the settings of any encoder (`model.hidden`, `dropout`, `activation`, `kernel`) but no edge features, and train
batched members as CensNet does (`censnet.nn.ensemble`). The model adds the same head as to CensNet:
``fit_ensemble(task_data, settings, ..., make_encoder=baseline_encoder("gat"))``. With the kernel "hop", GCN (Kipf and
Welling 2017) and GAT (Velickovic et al. 2018) have the published layers. APPNP (Gasteiger et al. 2019) predicts and
then propagates: a linear head before or after the kernel is the same, except for its bias.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from censnet.errors import SettingsError
from censnet.nn.diffusion import normalized_adjacency
from censnet.nn.dropout import Dropout, dropout
from censnet.nn.encoder import ACTIVATIONS
from censnet.nn.ensemble import batched_linear, check_rows, init_members
from censnet.nn.kernels import KERNELS, Kernel, Operator, make_kernel
from censnet.nn.recompute import Recomputing
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head
from censnet.settings.build import MakeEncoder
from censnet.settings.schema import ModelSettings
from censnet_experiments.baselines import attention

BaselineName = Literal["gcn", "appnp", "gat"]
HEADS = 8  # of attention, as published; the channels are divided among them
EPSILON = 1e-6  # least sum of an attention row after dropout, before it is normalized


class Convolution(nn.Module):
    """kernel(A~) x; see `normalized_adjacency`."""

    members = 1

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = make_kernel(kernel)

    def reset_parameters(self) -> None:
        """Re-initialize the parameters."""
        self.kernel.reset_parameters()

    def forward(self, nodes: Tensor, incidence: Incidence) -> Tensor:
        """Propagate the nodes. (N, d) -> (N, d)"""
        out: Tensor = self.kernel(normalized_adjacency(incidence, nodes.dtype), nodes)
        return out


class Attention(nn.Module):
    """kernel(alpha) x with attention coefficients alpha from the channels of each head; see `attention.py`.

    Dropout removes entries of alpha. With one hop the others are scaled by 1 / (1 - p), as published; over several hops
    the scale would be multiplied at each hop, so the remaining entries of each row are normalized to sum 1.
    """

    members = 1

    def __init__(self, width: int, heads: int, kernel: Kernel, dropout: float = 0.0) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(
                f"width is {width}, expected a multiple of {heads}: the channels are divided among the heads"
            )
        self.heads = heads
        self.kernel, self.dropout = make_kernel(kernel), Dropout(dropout)
        self.target = nn.Parameter(torch.empty(heads, width // heads))
        self.source = nn.Parameter(torch.empty(heads, width // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initialize the parameters."""
        init_members(self.target, nn.init.xavier_uniform_)
        init_members(self.source, nn.init.xavier_uniform_)
        self.kernel.reset_parameters()

    def forward(self, nodes: Tensor, incidence: Incidence) -> Tensor:
        """Propagate the nodes. (N, M d) -> (N, M d)"""
        near, shares = attention.neighbors_of(incidence), by_head(nodes, self.members * self.heads)
        target, source = ((shares * each.flatten(0, -2)).sum(2) for each in (self.target, self.source))
        alpha, own = (self.dropout(each) for each in attention.attend(target, source, near))
        if self.training and self.dropout.p > 0 and self.kernel.steps > 1:
            total = (own + near.sum(alpha)).clamp(min=EPSILON)
            alpha, own = alpha / near.at_node(total), own / total
        operator = Operator(
            lambda x: attention.propagate(x, alpha, own, near), False, incidence.owner, incidence.num_graphs
        )
        out: Tensor = self.kernel(operator, nodes)
        return out


class Layer(nn.Module):
    """propagate(H W) + b. (N, in_width) -> (N, out_width), or M times each; the first input may be CSR and shared."""

    members = 1

    def __init__(self, in_width: int, out_width: int, propagate: nn.Module | None) -> None:
        super().__init__()
        self.in_width, self.out_width, self.propagate = in_width, out_width, propagate
        self.weight = nn.Parameter(torch.empty(in_width, out_width))
        self.bias = nn.Parameter(torch.empty(out_width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initialize: W by Glorot and Bengio, b at 0, as in CensNet."""
        init_members(self.weight, nn.init.xavier_uniform_)
        nn.init.zeros_(self.bias)
        if self.propagate is not None:
            self.propagate.reset_parameters()  # type: ignore[operator]

    def extra_repr(self) -> str:
        return f"{self.in_width} -> {self.out_width}"

    def forward(self, nodes: Tensor, incidence: Incidence) -> Tensor:
        """The updated nodes."""
        check_rows("nodes", nodes, incidence.num_nodes, self.in_width, self.members, "(N, node_width)")
        mixed = batched_linear(nodes, self.weight)
        return (mixed if self.propagate is None else self.propagate(mixed, incidence)) + self.bias


class BaselineEncoder(Recomputing):
    """Node layers, each followed by activation and dropout, and an optional propagation after the last.

    Args:
        layers: in order; the edges are returned unchanged.
        edge_width: channels of the edges.
        kernel: of the layers, or of `end`.
        end: propagates the nodes after the last layer.
        dropout: probability of a channel to be dropped after each layer.
        activation: as in `CensNet`.
        last_layer_is_head: whether the last layer has no activation and no dropout, so that with the linear head of the
            model it is the output layer.
    """

    variant = "paper"

    def __init__(
        self,
        layers: list[Layer],
        edge_width: int,
        kernel: Kernel,
        end: Convolution | None,
        dropout: float,
        activation: str,
        last_layer_is_head: bool,
    ) -> None:
        super().__init__()
        self.last_layer_is_head = last_layer_is_head
        self.layers, self.end = nn.ModuleList(layers), end
        self.dropout, self.activation = Dropout(dropout), activation
        self.out_node_width, self.out_edge_width = layers[-1].out_width, edge_width
        self.layer_order, self.steps = "N" * (len(layers) if end is None else 1), kernel.steps

    def reset_parameters(self) -> None:
        """Re-initialize the parameters."""
        for part in (*self.layers, *([] if self.end is None else [self.end])):
            part.reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
        """The embedded nodes, and the edges unchanged."""
        for number, layer in enumerate(self.layers, 1):
            nodes = self.call(layer, nodes, incidence)
            if number < len(self.layers) or not self.last_layer_is_head:
                nodes = self._finish(nodes)
        return nodes if self.end is None else self.end(nodes, incidence), edges

    def _finish(self, rows: Tensor) -> Tensor:
        if self.activation == "relu":
            return dropout(rows, self.dropout.p, self.training, relu=True)
        finished: Tensor = self.dropout(ACTIVATIONS[self.activation](rows))
        return finished


def baseline_encoder(name: BaselineName, kernel: Kernel | None = None) -> MakeEncoder:
    """A factory of encoders for `Model` and `fit_ensemble`, in place of CensNet.

    Args:
        name: "gcn" has two layers, each a linear map followed by the kernel of the normalized adjacency; "gat" the same
            with the kernel of attention with 8 heads; "appnp" has two linear maps and then the kernel once.
        kernel: replaces that of the settings: with `Hop()`, GCN and GAT are as published.

    Example:
        >>> path = Incidence(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> encoder = baseline_encoder("gat")(4, 2, ModelSettings(hidden=16, kernel="pagerank"))
        >>> nodes, edges = encoder(torch.randn(3, 4), torch.randn(2, 2), path)
        >>> nodes.shape, edges.shape
        (torch.Size([3, 16]), torch.Size([2, 2]))
    """
    if name not in ("gcn", "appnp", "gat"):
        raise ValueError(f"name is {name!r}, expected 'gcn', 'appnp' or 'gat'")

    def make(node_width: int, edge_width: int, settings: ModelSettings) -> BaselineEncoder:
        if settings.norm is not None or settings.residual or settings.pre_layers or settings.variant != "paper":
            raise SettingsError(
                f"model.norm is {settings.norm}, model.residual {settings.residual}, "
                f"model.pre_layers {settings.pre_layers} and model.variant {settings.variant!r}, expected none, False, "
                "0 and 'paper': the baselines have none of these"
            )
        dropout = settings.dropout_for(regression=False)
        hops = KERNELS[settings.kernel](**settings.kernel_options) if kernel is None else kernel
        layers = []
        for width in (node_width, settings.hidden):
            propagate: nn.Module | None = None
            if name == "gcn":
                propagate = Convolution(hops)
            elif name == "gat":
                propagate = Attention(settings.hidden, HEADS, hops, dropout)
            layers.append(Layer(width, settings.hidden, propagate))
        end = Convolution(hops) if name == "appnp" else None
        return BaselineEncoder(layers, edge_width, hops, end, dropout, settings.activation, settings.last_layer_is_head)

    return make
