"""The weights of one causal layer as arrays, and its norms and activation on them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import nn

from censnet.nn.encoder import ACTIVATIONS
from censnet.ops.arrays import Array


class LayerWeights:
    """The rule of `CausalLayer` for one edge and both of its nodes, with matrices that read the same side by side.

    Args:
        weights: of the layer, by name.
    """

    def __init__(self, weights: dict[str, Array]) -> None:
        self.width = width = len(weights["node_weight"])
        edge = weights["edge_weight"].copy()
        edge[:, : 2 * width] /= 2  # 2 sigmoid(x) = 1 + tanh(x / 2)
        self.edge_weight, self.label_bias = edge, weights["label_bias"]
        ends, seen = [], []
        for side, message in (("start", "in"), ("end", "out")):
            own = weights[f"{side}_weight"].copy()
            own[:, :width] /= 2
            ends.append(np.concatenate([weights[f"{message}_weight"], own, weights["node_weight"]], 1))
            seen.append(np.concatenate([weights[f"{side}_seen"], weights["node_seen"]], 1))
        self.ends_weight, self.ends_seen = np.stack(ends), np.stack(seen)
        self.pair_seen = np.concatenate([weights["parallel_seen"], weights["reciprocal_seen"]])
        self.node_weight, self.node_seen = weights["node_weight"], weights["node_seen"]
        self.bias = np.stack([weights["edge_bias"], weights["node_bias"], weights["node_bias"]])

    def __call__(self, z: Array, seen: Array, pairs: Array | None) -> tuple[Array, Array, Array]:
        """The updated edge and states of its start and its end, its messages, and those of label channels.

        Args:
            z: the edge, its start and its end. (3, width)
            seen: by its start and by its end. (2, channels)
            pairs: what went between the two, the same way and back; None for nothing. (2, channels)
        """
        width = self.width
        parts = z[0] @ self.edge_weight
        gate = 1 + np.tanh(parts[: 2 * width])
        ends = np.matmul(z[1:, None], self.ends_weight)[:, 0]
        read = np.matmul(seen[:, None], self.ends_seen)[:, 0]
        sent = parts[2 * width : 5 * width].reshape(3, width).copy()
        sent[:2] += gate.reshape(2, width) * ends[::-1, :width]
        new = self.bias.copy()
        of_ends = (1 + np.tanh(ends[:, width : 2 * width])) * read[:, :width] + ends[:, 2 * width : 3 * width]
        new[0] += parts[5 * width : 6 * width] + of_ends[0] + of_ends[1]
        if pairs is not None:
            new[0] += pairs.reshape(-1) @ self.pair_seen
        new[1:] += ends[:, 3 * width :] + read[:, width:]
        return new, sent, parts[6 * width :].reshape(self.label_bias.shape) + self.label_bias

    def update_nodes(self, x: Array, seen: Array) -> Array:
        """The updated states of nodes. (n, width)"""
        return cast(Array, x @ self.node_weight + seen @ self.node_seen + self.bias[1])


def read_norm(norm: nn.Module) -> tuple[Array, Array, float] | None:
    if not isinstance(norm, nn.LayerNorm):
        return None
    return norm.weight.detach().cpu().numpy(), norm.bias.detach().cpu().numpy(), norm.eps


def stack_norms(*norms: tuple[Array, Array, float] | None) -> tuple[Array, Array, float] | None:
    """The norms of several rows as one."""
    found = [norm for norm in norms if norm is not None]
    return (np.stack([n[0] for n in found]), np.stack([n[1] for n in found]), found[0][2]) if found else None


def normalize(rows: Array, norm: tuple[Array, Array, float] | None) -> Array:
    if norm is None:
        return rows
    weight, bias, eps = norm
    width = rows.shape[-1]  # np.add.reduce costs half of what mean does
    centered = rows - np.add.reduce(rows, -1, keepdims=True) / width
    variance = np.add.reduce(centered * centered, -1, keepdims=True) / width
    centered /= np.sqrt(variance + eps)
    centered *= weight
    centered += bias
    return cast(Array, centered)


def activation_of(name: str) -> Any:
    if name == "relu":
        return lambda rows: np.maximum(rows, 0)
    return lambda rows: ACTIVATIONS[name](torch.from_numpy(rows)).numpy()
