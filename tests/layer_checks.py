"""Checks of a layer, with the gradients of its inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable

import torch
from strategies import assert_near
from torch import Tensor, nn

from censnet.ops.incidence import Incidence


def layer_gradients(function: Callable[..., Tensor], layer: nn.Module, *inputs: Tensor) -> list[Tensor]:
    """The value, and for a fixed gradient of it those of the inputs (if dense) and of each parameter."""
    leaves = [x.detach().clone().requires_grad_() if x.layout == torch.strided else x for x in inputs]
    out = function(*leaves)
    grad = torch.randn(out.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(out.dtype)
    of = [leaf for leaf in leaves if leaf.requires_grad] + list(layer.parameters())
    return [out.detach(), *torch.autograd.grad(out, of, grad, materialize_grads=True, allow_unused=True)]


def check_layer(
    layer: nn.Module,
    dense: Callable[..., Tensor],
    nodes: Tensor,
    edges: Tensor,
    incidence: Incidence,
    relative: float = 1e-10,
) -> None:
    """Values and all gradients of a layer are those of its dense rule, of (layer, nodes, edges, incidence)."""
    found = layer_gradients(lambda x, z: layer(x, z, incidence), layer, nodes, edges)
    expected = layer_gradients(lambda x, z: dense(layer, x, z, incidence), layer, nodes, edges)
    for mine, theirs in zip(found, expected, strict=True):
        assert_near(mine, theirs, relative)


def check_sparse_nodes(layer: nn.Module, nodes: Tensor, edges: Tensor, incidence: Incidence) -> None:
    """Values and gradients of a layer are the same for sparse nodes, which have no gradient, as for dense ones."""
    nodes = nodes * (nodes > 0.3)
    nodes[1] = 0
    found = layer_gradients(lambda x, z: layer(x, z, incidence), layer, nodes.to_sparse_csr(), edges)
    expected = layer_gradients(lambda x, z: layer(x, z, incidence), layer, nodes, edges)
    del expected[1]  # the gradient of the nodes
    for mine, theirs in zip(found, expected, strict=True):
        assert_near(mine, theirs, 1e-12)


def check_autocast(
    layer: nn.Module, dense: Callable[..., Tensor], nodes: Tensor, edges: Tensor, incidence: Incidence
) -> None:
    """Under autocast to bfloat16 a layer is close to its dense rule, and gradients of its parameters are float32."""
    expected = dense(layer, nodes, edges, incidence).detach()
    layer.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(nodes.float(), edges.float(), incidence)
    out.sum().backward()
    assert_near(out.detach(), expected, 5e-2)
    assert all(parameter.grad is not None and parameter.grad.dtype == torch.float32 for parameter in layer.parameters())
