"""The rules as printed in the paper, and as in the authors' released code, dense: for readers and for tests.

Everything here is O(E^2) or worse. Nothing outside the tests calls it. Letters are the paper's: T the incidence matrix,
A_v and A_e the adjacency of the nodes and of the line graph, w = H_e p_e the edge gates, u = H_v p_v the node gates.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def incidence_matrix(ends: Tensor, num_nodes: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """T (N, E): T[i, e] = 1 if edge e touches node i. The column of a loop has a single 1."""
    T = torch.zeros(num_nodes, ends.shape[1], dtype=dtype, device=ends.device)
    every = torch.arange(ends.shape[1], device=ends.device)
    T[ends[0], every] = 1
    T[ends[1], every] = 1
    return T


def node_adjacency(T: Tensor) -> Tensor:
    """A_v (N, N): 1 where two different nodes are the ends of one edge."""
    return _without_diagonal((T @ T.t() > 0).to(T.dtype))


def edge_adjacency(T: Tensor) -> Tensor:
    """A_e (E, E), the adjacency of the line graph: 1 where two different edges share a node."""
    return _without_diagonal((T.t() @ T > 0).to(T.dtype))


def normalize(A: Tensor, normalization: str = "symmetric", loop: float = 1.0) -> Tensor:
    """A~ = D^-1/2 (A + I) D^-1/2, or D^-1 (A + I); `loop` is what is put on the diagonal."""
    A = A + loop * torch.eye(len(A), dtype=A.dtype, device=A.device)
    D = A.sum(1)
    if normalization == "row":
        return A / D.unsqueeze(1)
    return D.rsqrt().unsqueeze(1) * A * D.rsqrt().unsqueeze(0)


def with_self_weight(fused: Tensor, self_weight: str | float) -> Tensor:
    """The fused matrix with its own diagonal ("incident"), or with a number there ("one" is 1)."""
    if self_weight == "incident":
        return fused
    value = 1.0 if self_weight == "one" else float(self_weight)
    return _without_diagonal(fused) + value * torch.eye(len(fused), dtype=fused.dtype, device=fused.device)


def node_operator(
    T: Tensor, w: Tensor, self_weight: str | float = "incident", normalization: str = "symmetric"
) -> Tensor:
    """T diag(w) T^t * A~_v: the matrix that the node layer multiplies H_v W_v with."""
    return with_self_weight(T @ torch.diag(w) @ T.t(), self_weight) * normalize(node_adjacency(T), normalization)


def edge_operator(
    T: Tensor, u: Tensor, self_weight: str | float = "incident", normalization: str = "symmetric"
) -> Tensor:
    """T^t diag(u) T * A~_e: the matrix that the edge layer multiplies H_e W_e with."""
    return with_self_weight(T.t() @ torch.diag(u) @ T, self_weight) * normalize(edge_adjacency(T), normalization)


def released_node_operator(T: Tensor, w: Tensor) -> Tensor:
    """The released node layer: row normalisation, and 1 on the diagonal of the gates."""
    return node_operator(T, w, self_weight="one", normalization="row")


def released_edge_operator(T: Tensor, u: Tensor) -> Tensor:
    """The released edge layer: also a self loop of 2 on the line graph, and columns divided by their maxima."""
    gates = with_self_weight(T.t() @ torch.diag(u) @ T, "one")
    product = gates * normalize(edge_adjacency(T), "row", loop=2.0)
    return product / product.max(dim=0, keepdim=True).values if len(product) else product


def end_matrices(ends: Tensor, num_nodes: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """S and R (N, E): S[i, e] = 1 if edge e starts at node i, R[i, e] = 1 if it ends there. A loop does both."""
    every = torch.arange(ends.shape[1], device=ends.device)
    S, R = (torch.zeros(num_nodes, ends.shape[1], dtype=dtype, device=ends.device) for _ in range(2))
    S[ends[0], every] = 1
    R[ends[1], every] = 1
    return S, R


def row_means(A: Tensor) -> Tensor:
    """The rows of a matrix of zeros and ones divided by their sums, or by 1 where that is 0: a mean of each row."""
    return A / A.sum(1, keepdim=True).clamp(min=1)


def directed_edge_operators(S: Tensor, R: Tensor) -> list[Tensor]:
    """The four means of an edge over the OTHER edges that meet it, and those over its pair: six matrices (E, E).

    Same start; ends where e starts; starts where e ends; same end; same start and end; the opposite direction.
    """
    same_start, into_start, out_of_end, same_end = S.t() @ S, S.t() @ R, R.t() @ S, R.t() @ R
    met = (same_start, into_start, out_of_end, same_end, same_start * same_end, into_start * out_of_end)
    return [row_means(_without_diagonal(A)) for A in met]


def oriented_node_update(
    T: Tensor, B: Tensor, x: Tensor, a: Tensor, b: Tensor, w: Tensor, weights: Mapping[str, Tensor]
) -> Tensor:
    """x W_0 + D^-1 [T (w o T^t x W + a U) + B b U_b]; B = R - S, D counts the edges of a node, w is (E, out)."""
    content = T @ (w * (T.t() @ x @ weights["W"]) + a @ weights["U"]) + B @ b @ weights["U_b"]
    return x @ weights["W_0"] + _per_edge(T) @ content


def oriented_edge_update(
    T: Tensor, B: Tensor, x: Tensor, a: Tensor, b: Tensor, u: tuple[Tensor, Tensor], weights: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """The even update, the odd one inside of its tanh, and its gate; the gates u of even and odd are (N, out) each.

    These are ``a W_0 + T^t u D^-1 (T a W + B b W_b) + T^t x V + (b M)^2 + |B^t x N|``, then
    ``b W_0' + B^t u' D^-1 (B b W' + T a W_a) + B^t x V'`` and ``sigmoid(a G + T^t x G_x)``.
    """
    D = _per_edge(T)
    even = a @ weights["W_0"] + T.t() @ (u[0] * (D @ (T @ a @ weights["W"] + B @ b @ weights["W_b"])))
    even = even + T.t() @ x @ weights["V"] + (b @ weights["M"]) ** 2 + (B.t() @ x @ weights["N"]).abs()
    odd = b @ weights["W_0'"] + B.t() @ (u[1] * (D @ (B @ b @ weights["W'"] + T @ a @ weights["W_a"])))
    odd = odd + B.t() @ x @ weights["V'"]
    return even, odd, torch.sigmoid(a @ weights["G"] + T.t() @ x @ weights["G_x"])


def potentials(B: Tensor, w: Tensor, g: Tensor, q: Tensor) -> Tensor:
    """(B diag(w) B^t + diag(g))^-1 q, channel by channel."""
    channels = zip(w.unbind(1), g.unbind(1), q.unbind(1), strict=True)
    return torch.stack([torch.linalg.solve(B @ torch.diag(a) @ B.t() + torch.diag(b), c) for a, b, c in channels], 1)


def _per_edge(T: Tensor) -> Tensor:
    """D^-1, where D counts the edges of a node, at least 1."""
    return torch.diag(1 / T.sum(1).clamp(min=1))


def past(
    key: Tensor, time: Tensor, asked: Tensor, now: Tensor, since: Tensor | None = None, rate: float | None = None
) -> Tensor:
    """The matrix of a sum over the past: 1, or exp(-rate (now_q - time_f)), where query q sees message f. (Q, M)

    It sees those of its list, key_f = asked_q, with since_q <= time_f < now_q.
    """
    gap = now.unsqueeze(1) - time
    seen = (key == asked.unsqueeze(1)) & (gap > 0)
    if since is not None:
        seen &= time >= since.unsqueeze(1)
    weight = torch.ones_like(gap) if rate is None else torch.exp(-rate * gap.clamp(min=0))
    return weight * seen


def multiply(operator: Tensor, x: Tensor) -> Tensor:
    """S x where S is one matrix, or one for each head and its share of the channels: (heads, n, n), (n, d)."""
    heads = operator if operator.dim() == 3 else operator.unsqueeze(0)
    return torch.cat([S @ share for S, share in zip(heads, x.chunk(len(heads), dim=1), strict=True)], dim=1)


def _without_diagonal(A: Tensor) -> Tensor:
    return A * (1 - torch.eye(len(A), dtype=A.dtype, device=A.device))
