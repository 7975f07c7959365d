"""The interface of link decoders: scores of pairs of nodes, from embedded nodes and edges."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from censnet.ops.graph import Graph


class LinkInputs(Protocol):
    """Per-node tensors that a decoder scores pairs from; computed once for all pairs."""

    @property
    def embedding(self) -> Tensor:
        """The embedding of each node, (N, latent)."""

    def to(self, device: torch.device | str) -> LinkInputs:
        """The same on another device."""


class LinkDecoder(nn.Module):
    """A head for links: ``forward(nodes, edges, graph)`` gives `LinkInputs`, from which pairs of nodes are scored.

    Shape:
        nodes (N, node_width), edges (E, edge_width) -> `LinkInputs`.
    """

    samples_pairs = False  # whether the loss needs positive and negative pairs, drawn by each step
    is_ordered = False  # whether i, j and j, i are scored apart

    def reset_parameters(self) -> None:
        """Initialize all parameters."""
        raise NotImplementedError

    def loss(
        self, inputs: Any, graph: Graph, positives: Tensor | None = None, negatives: Tensor | None = None
    ) -> Tensor:
        """The loss of the links of `graph`, or of positive and negative pairs. (2, P), (2, Q) -> ()"""
        raise NotImplementedError

    def score(self, inputs: Any, pairs: Tensor) -> Tensor:
        """The logit of a link for each pair. (2, P) -> (P,)"""
        raise NotImplementedError

    def score_all_pairs(self, inputs: Any, nodes: Tensor, start: int = 0) -> Tensor:
        """The logits of links from some nodes to every node from `start` on. (k,) -> (k, N - start)"""
        raise NotImplementedError

    def embed_nodes(self, nodes: Tensor) -> Tensor:
        """The embedding to export: the one that pairs are scored by, if it is a function of the node alone."""
        return nodes
