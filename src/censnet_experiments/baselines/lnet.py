"""LNet and AdaLNet (Liao et al. 2019): multi-scale convolutions, short scales by powers, long scales by Lanczos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.ops.graph import Graph
from censnet_experiments.baselines.convolutions import dense, with_loops

Multiply = Callable[[Tensor], Tensor]


def affinity(index: Tensor, weight: Tensor) -> Multiply:
    """x -> S x for the matrix with these entries, which may be learned. (N,) -> (N,)

    The gradient of `index_select` is a scatter sum; that of indexing sorts first, and takes far longer.
    """
    row, column = index

    def multiply(x: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, row, weight * x.index_select(0, column))

    return multiply


class _Product(torch.autograd.Function):
    """S x for a symmetric sparse S. The channels of batched networks are concatenated into one product."""

    @staticmethod
    def forward(S: Tensor, x: Tensor) -> Tensor:
        return S @ x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.S = inputs[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, product(ctx.S, gradient)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, int], S: Tensor, x: Tensor) -> tuple[Tensor, int]:
        columns = x.movedim(in_dims[1], 1)
        return product(S, columns.flatten(1)).view(columns.shape), 1


def product(S: Tensor, x: Tensor) -> Tensor:
    """S x for a symmetric matrix in CSR form. (N, N), (N, d) -> (N, d)"""
    out: Tensor = _Product.apply(S, x)  # type: ignore[no-untyped-call]
    return out


def as_matrix(index: Tensor, weight: Tensor) -> Tensor:
    """The symmetric matrix with these entries, in CSR form."""
    size = int(index.max()) + 1  # every node has a loop
    return torch.sparse_coo_tensor(index, weight, (size, size), check_invariants=True).coalesce().to_sparse_csr()


def tridiagonalize(multiply: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    r"""K Lanczos steps: :math:`Q^\top S Q = T` with orthonormal columns Q, the first along the start vector.

    .. math::
        \beta_{k} q_{k+1} = S q_k - \alpha_k q_k - \beta_{k-1} q_{k-1}, \qquad \alpha_k = q_k^\top S q_k

    Each new column is orthogonalized against all before it, twice, against rounding. Where the Krylov space ends before
    K steps, the rest of Q and T is 0. Nothing branches on a value, so it can be differentiated and run under `vmap`.

    Args:
        multiply: x -> S x for a symmetric S. (N,) -> (N,)
        start: any vector but 0. (N,)
        steps: K.

    Shape:
        Q (N, K), T (K, K).

    Example:
        >>> S = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
        >>> Q, T = tridiagonalize(lambda x: S @ x, torch.tensor([1.0, 0.0], dtype=torch.float64), 2)
        >>> torch.allclose(Q @ T @ Q.t(), S)
        True
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}, expected at least 1")
    floor = (64 * torch.finfo(start.dtype).eps) ** 2
    columns, diagonal, beside = [start / start.norm()], [], []
    for step in range(steps):
        moved = multiply(columns[-1])
        diagonal.append((moved * columns[-1]).sum())
        if step == steps - 1:
            break
        Q = torch.stack(columns, dim=1)
        rest = moved
        for _ in range(2):
            rest = rest - Q @ (Q.t() @ rest)
        square = (rest * rest).sum()
        goes_on = square > floor
        length = torch.where(goes_on, square, 1).sqrt()  # no root of 0, whose slope is infinite
        beside.append(torch.where(goes_on, length, 0))
        columns.append(torch.where(goes_on, rest / length, 0))
    T = torch.diag(torch.stack(diagonal))
    if beside:
        between = torch.stack(beside)
        T = T + torch.diag(between, 1) + torch.diag(between, -1)
    return torch.stack(columns, dim=1), T


def ritz(Q: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
    """The Ritz values, rising, and vectors: T = B diag(r) B^t gives S ~ V diag(r) V^t with V = Q B. (K,), (N, K)"""
    values, B = torch.linalg.eigh(T)
    return values, Q @ B


def start_vector(num_nodes: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Draw a start vector, the same for all graphs of this size."""
    return torch.randn(num_nodes, dtype=dtype, generator=torch.Generator().manual_seed(0))


class MultiScale(nn.Module):
    r"""One layer over several scales of an affinity S.

    .. math::
        Y = \sum_{i \in \text{short}} S^i X W_i + \sum_{l \in \text{long}} \hat S_l X W_l + b

    where :math:`\hat S_l` has low rank and comes from the Lanczos iteration. The paper concatenates
    the scaled features before one matrix, which is the same sum; here the linear map comes first, since it has fewer
    output channels, and the powers are computed by Horner's rule.
    """

    def __init__(self, in_width: int, out_width: int, short: Sequence[int], num_long: int) -> None:
        super().__init__()
        self.short, self.num_long = tuple(sorted(short)), num_long
        self.mix = nn.Linear(in_width, out_width * (len(self.short) + num_long), bias=False)
        self.bias = nn.Parameter(torch.zeros(out_width))
        nn.init.xavier_uniform_(self.mix.weight)

    def forward(self, nodes: Tensor, S: Tensor, long: Callable[[Tensor, int], Tensor]) -> Tensor:
        """The updated nodes; `long` applies the low-rank matrix of a long scale. (N, d) -> (N, out_width)"""
        mixed = self.mix(nodes).chunk(len(self.short) + self.num_long, dim=1)
        of_power = dict(zip(self.short, mixed, strict=False))
        total = torch.zeros_like(mixed[0])
        for power in range(max(self.short, default=0), 0, -1):
            total = product(S, total + of_power[power] if power in of_power else total)
        for number, part in enumerate(mixed[len(self.short) :]):
            total = total + long(part, number)
        return total + self.bias


def mlp(width: int, hidden: int, out_width: int, depth: int) -> nn.Sequential:
    """Linear maps with ReLU between them."""
    parts: list[nn.Module] = []
    for _ in range(depth):
        parts += [nn.Linear(width, hidden), nn.ReLU()]
        width = hidden
    return nn.Sequential(*parts, nn.Linear(width, out_width))


class LanczosNet(nn.Module):
    """Two multi-scale layers; a subclass has the long scales.

    Args:
        graph, out_width: as for every classifier here.
        hidden: channels between the layers.
        short, long: the powers of S. Those of the citation graphs are not in the authors' code, which has no such task.
        dropout: before each layer.
        filter_width: units of the perceptrons.
    """

    def __init__(
        self,
        graph: Graph,
        out_width: int,
        hidden: int = 32,
        short: Sequence[int] = (1, 2, 3, 5),
        long: Sequence[int] = (10, 20, 30),
        dropout: float = 0.5,
        filter_width: int = 128,
    ) -> None:
        super().__init__()
        self.long, self.dropout, self.filter_width = tuple(long), dropout, filter_width
        self.first = MultiScale(graph.node_width, hidden, short, len(long))
        self.second = MultiScale(hidden, out_width, short, len(long))


class LNet(LanczosNet):
    r"""Two multi-scale layers whose long scales are learned filters of the Ritz values.

    K steps of the Lanczos iteration on :math:`S = D^{-1/2} (A + I) D^{-1/2}` give Ritz values r and vectors V. The long
    scale l is :math:`V \operatorname{diag}(f_l(r^{l_1}, r^{l_2}, \dots))\, V^\top`, where the perceptron f of each
    layer sees all long powers of one Ritz value and gives one number for each scale.

    Args:
        steps: K.
        options: of `LanczosNet`.
    """

    options_of = LanczosNet

    def __init__(self, graph: Graph, out_width: int, steps: int = 20, **options: Any) -> None:
        super().__init__(graph, out_width, **options)
        self.steps, num_long = steps, len(self.long)
        self.filters = nn.ModuleList(mlp(num_long, self.filter_width, num_long, depth=3) for _ in range(2))

    def inputs(self, graph: Graph) -> tuple[Tensor, ...]:
        """The features, S, and its Ritz values and vectors."""
        index, weight = with_loops(graph)
        exact = affinity(index, weight.double())
        start = start_vector(graph.num_nodes).to(weight.device)
        values, vectors = ritz(*tridiagonalize(exact, start, min(self.steps, graph.num_nodes)))
        return dense(graph.nodes), as_matrix(index, weight), values.to(weight.dtype), vectors.to(weight.dtype)

    def forward(self, nodes: Tensor, S: Tensor, values: Tensor, vectors: Tensor) -> Tensor:
        """The logits."""
        powers = torch.stack([values**power for power in self.long], dim=1)
        for number, layer in enumerate((self.first, self.second)):
            response = self.filters[number](powers)

            def long(x: Tensor, scale: int, response: Tensor = response) -> Tensor:
                return vectors @ (response[:, scale].unsqueeze(1) * (vectors.t() @ x))

            nodes = layer(F.dropout(nodes, self.dropout, self.training), S, long)
            nodes = F.relu(nodes) if number == 0 else nodes
        return nodes


class AdaLNet(LanczosNet):
    r"""LNet with a learned affinity, a function of the distance of neighbors after a linear map f.

    .. math::
        A_{ij} = \exp\bigl(-\|f(x_i) - f(x_j)\|^2 / \sigma^2\bigr) \quad \text{on edges and loops}, \qquad
        S = D^{-1/2} A D^{-1/2}

    with the mean of the squared distances over edges as :math:`\sigma^2`. The gradient passes through the Lanczos
    iteration on S. Its eigenvectors would have no stable gradient, so a long scale is :math:`Q F_l(T^l)\, Q^\top` with
    a perceptron :math:`F_l` over the entries of the power of T, made symmetric. Short scales are powers of the given
    affinity, as in the authors' code.

    Each of the K x K entries that :math:`F_l` gives is divided by how many they are. Otherwise the first steps of Adam
    make the long scales larger than all others, while Q still turns with every change of the affinity.

    Args:
        steps: as in `LNet`.
        embedding: channels of f.
        options: of `LanczosNet`.
    """

    options_of = LanczosNet

    def __init__(self, graph: Graph, out_width: int, steps: int = 10, embedding: int = 32, **options: Any) -> None:
        super().__init__(graph, out_width, **options)
        self.steps = min(steps, graph.num_nodes)
        self.embed = nn.Linear(graph.node_width, embedding, bias=False)
        nn.init.xavier_uniform_(self.embed.weight)
        self.filters = nn.ModuleList(mlp(self.steps**2, self.filter_width, self.steps**2, depth=1) for _ in self.long)
        for learned in self.filters:  # a long scale is 0 at initialization
            for parameter in cast(nn.Sequential, learned)[-1].parameters():
                nn.init.zeros_(parameter)

    def inputs(self, graph: Graph) -> tuple[Tensor, ...]:
        """The features, the given affinity, where it has entries, and where the iteration starts."""
        index, weight = with_loops(graph)
        return dense(graph.nodes), as_matrix(index, weight), index, start_vector(graph.num_nodes).to(weight)

    def learned_affinity(self, nodes: Tensor, index: Tensor) -> Tensor:
        """The entries of S where the graph has edges and loops."""
        row, column = index
        embedded = self.embed(nodes)
        square = (embedded.index_select(0, row) - embedded.index_select(0, column)).square().sum(1)
        weight = torch.exp(-square / square.mean().clamp(min=1e-12))
        root = torch.zeros_like(embedded[:, 0]).index_add(0, row, weight).rsqrt()  # a loop weighs 1: no degree is 0
        return root.index_select(0, row) * weight * root.index_select(0, column)

    def forward(self, nodes: Tensor, S: Tensor, index: Tensor, start: Tensor) -> Tensor:
        """The logits."""
        Q, T = tridiagonalize(affinity(index, self.learned_affinity(nodes, index)), start, self.steps)
        responses = []
        for power, learned in zip(self.long, self.filters, strict=True):
            raised = torch.linalg.matrix_power(T, power)
            response = learned(raised.flatten()).view(T.shape)
            responses.append((response + response.t()) / (2 * self.steps**2))
        for layer in (self.first, self.second):
            nodes = layer(
                F.dropout(nodes, self.dropout, self.training),
                S,
                lambda x, scale: Q @ (responses[scale] @ (Q.t() @ x)),
            )
            nodes = F.relu(nodes) if layer is self.first else nodes
        return nodes
