"""GCN, APPNP and GAT as encoders of nodes, to be trained in the place of CensNet with all else the same.

They read what the recipe says of any network (`model.hidden`, `dropout`, `activation`, `kernel`), never the features of
edges, and their members stand side by side as CensNet's do (`censnet.nn.ensemble`). Above them is the head of the
learner, as above CensNet: ``fit_members(lesson, settings, ..., make_encoder=peer("gat"))``. With the kernel "hop", GCN
(Kipf and Welling 2017) and GAT (Velickovic et al. 2018) have the layers that were published. APPNP (Gasteiger et al.
2019) predicts and then propagates: a linear head is the same on either side of the kernel, but for its bias.
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
from censnet.ops.incidence import Incidence
from censnet.ops.normalization import by_head
from censnet.settings.build import MakeEncoder
from censnet.settings.schema import ModelSettings
from censnet_experiments.baselines.attention import attend, neighbors_of, propagate

BaselineName = Literal["gcn", "appnp", "gat"]
HEADS = 8  # of attention, as published; each has its share of the channels
LEAST = 1e-6  # of what dropout leaves of a row of attention, where that is divided by


class Convolution(nn.Module):
    """kernel(A~) x; see `normalized_adjacency`."""

    members = 1

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = make_kernel(kernel)

    def reset_parameters(self) -> None:
        """Start afresh."""
        self.kernel.reset_parameters()

    def forward(self, nodes: Tensor, incidence: Incidence) -> Tensor:
        """The nodes with what they get of each other. (N, d) -> (N, d)"""
        spread: Tensor = self.kernel(normalized_adjacency(incidence, nodes.dtype), nodes)
        return spread


class Attention(nn.Module):
    """kernel(alpha) x: each head of channels decides from them what passes between neighbours; see `attention.py`.

    Dropout takes out entries of alpha. In one hop what is left is raised by 1 / (1 - p), as published; in a walk of
    several that would multiply from step to step and swamp the rows, so there what is left of each row sums to 1 again.
    """

    members = 1

    def __init__(self, width: int, heads: int, kernel: Kernel, dropout: float = 0.0) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width is {width}, expected a multiple of {heads}: each head has its share of channels")
        self.heads = heads
        self.kernel, self.dropout = make_kernel(kernel), Dropout(dropout)
        self.target = nn.Parameter(torch.empty(heads, width // heads))
        self.source = nn.Parameter(torch.empty(heads, width // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start afresh."""
        init_members(self.target, nn.init.xavier_uniform_)
        init_members(self.source, nn.init.xavier_uniform_)
        self.kernel.reset_parameters()

    def forward(self, nodes: Tensor, incidence: Incidence) -> Tensor:
        """The nodes with what they get of each other. (N, M d) -> (N, M d)"""
        near, shares = neighbors_of(incidence), by_head(nodes, self.members * self.heads)
        target, source = ((shares * each.flatten(0, -2)).sum(2) for each in (self.target, self.source))
        alpha, own = (self.dropout(each) for each in attend(target, source, near))
        if self.training and self.dropout.p > 0 and self.kernel.steps > 1:
            total = (own + near.sum(alpha)).clamp(min=LEAST)
            alpha, own = alpha / near.at_node(total), own / total
        operator = Operator(lambda x: propagate(x, alpha, own, near), False, incidence.owner, incidence.num_graphs)
        spread: Tensor = self.kernel(operator, nodes)
        return spread


class Layer(nn.Module):
    """spread(H W) + b. (N, in_width) -> (N, out_width), or M times each; what comes in first may be CSR, and shared."""

    members = 1

    def __init__(self, in_width: int, out_width: int, spread: nn.Module | None) -> None:
        super().__init__()
        self.in_width, self.out_width, self.spread = in_width, out_width, spread
        self.weight = nn.Parameter(torch.empty(in_width, out_width))
        self.bias = nn.Parameter(torch.empty(out_width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start afresh: W by Glorot and Bengio, b at 0, as in CensNet."""
        init_members(self.weight, nn.init.xavier_uniform_)
        nn.init.zeros_(self.bias)
        if self.spread is not None:
            self.spread.reset_parameters()  # type: ignore[operator]

    def extra_repr(self) -> str:
        return f"{self.in_width} -> {self.out_width}"

    def forward(self, nodes: Tensor, incidence: Incidence) -> Tensor:
        """The renewed nodes."""
        check_rows("nodes", nodes, incidence.num_nodes, self.in_width, self.members, "(N, node_width)")
        mixed = batched_linear(nodes, self.weight)
        return (mixed if self.spread is None else self.spread(mixed, incidence)) + self.bias


class BaselineEncoder(nn.Module):
    """Layers of nodes, each activated and thinned by dropout, and what is spread once after the last, if anything is.

    Args:
        layers: in order; the edges pass by as they are.
        edge_width: channels of those.
        kernel: the one that the layers have, or `end` has.
        end: spreads the nodes after the last layer.
        dropout: probability of a channel to be dropped after each layer.
        activation: as in `CensNet`.
        linear_end: whether the last layer is not activated and not thinned, so that with the learner's head, which is
            linear, it is the layer that answers.
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
        """Start afresh."""
        for part in (*self.layers, *([] if self.end is None else [self.end])):
            part.reset_parameters()

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> tuple[Tensor, Tensor]:
        """The embedded nodes, and the edges as they came."""
        for number, layer in enumerate(self.layers, 1):
            nodes = layer(nodes, incidence)
            if number < len(self.layers) or not self.last_layer_is_head:
                nodes = self._finish(nodes)
        return nodes if self.end is None else self.end(nodes, incidence), edges

    def _finish(self, rows: Tensor) -> Tensor:
        if self.activation == "relu":
            return dropout(rows, self.dropout.p, self.training, relu=True)
        finished: Tensor = self.dropout(ACTIVATIONS[self.activation](rows))
        return finished


def baseline_encoder(name: BaselineName, kernel: Kernel | None = None) -> MakeEncoder:
    """What makes a network for `Model` and `fit_ensemble` to train in the place of CensNet.

    Args:
        name: "gcn" has two layers, each of which mixes the channels and then spreads them by the kernel of A~; "gat"
            so too, by the kernel of attention with 8 heads; "appnp" has two that mix, and then the kernel once.
        kernel: another than the settings say: `Hop()` makes GCN and GAT what was published.

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
                "0 and 'paper': the peers of CensNet have none of these"
            )
        dropout = settings.dropout_for(regression=False)
        walk = KERNELS[settings.kernel](**settings.kernel_options) if kernel is None else kernel
        layers = []
        for width in (node_width, settings.hidden):
            spread: nn.Module | None = None
            if name == "gcn":
                spread = Convolution(walk)
            elif name == "gat":
                spread = Attention(settings.hidden, HEADS, walk, dropout)
            layers.append(Layer(width, settings.hidden, spread))
        end = Convolution(walk) if name == "appnp" else None
        return BaselineEncoder(layers, edge_width, walk, end, dropout, settings.activation, settings.last_layer_is_head)

    return make
