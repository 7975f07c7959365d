"""Batched ensembles: M models of one shape as one module, trained in one pass (as `torch.func.stack_module_state`).

An ensemble of small models spends its time on launching operations, not in them; here each operation is launched once
for all members. Every module is built plain, with `members` 1; `stack_members` makes one module of M, `split_members`
takes it apart. Activations are (n, M d), one member after the other: member m has the channels m d to (m + 1) d. So a
propagation of M models is one of M heads, and batch norm needs no change. Input features are shared, and have d
channels. Of every parameter and floating buffer p, ``p.view(M, -1)[m]`` is member m's: a matrix (i, o) becomes
(M, i, o), a vector (k,) becomes (M k,).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from censnet.ops.checks import check_shape
from censnet.ops.dense import affine
from censnet.ops.sparse import matmul

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def batched_linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None, more: Tensor | None = None) -> Tensor:
    """H W + b + Y, of each member its own. Features that the members share, dense or CSR, are multiplied once for all.

    Shape:
        rows (n, i), weight (i, o), more (n, o) -> (n, o); rows (n, i) or (n, M i), weight (M, i, o), bias (M o,),
        more (n, M o) -> (n, M o).
    """
    if weight.dim() == 2 and rows.layout == torch.strided:
        return affine(rows, weight, bias, more)
    out = _times(rows, weight)
    out = out if more is None else more + out
    return out if bias is None else out + bias


def _times(rows: Tensor, weight: Tensor) -> Tensor:
    if weight.dim() == 2:
        return matmul(rows, weight)
    members, width, _ = weight.shape
    if rows.shape[1] == width:
        return matmul(rows, weight.transpose(0, 1).flatten(1))
    own = rows.reshape(rows.shape[0], members, width).transpose(0, 1)
    return torch.bmm(own, weight).transpose(0, 1).flatten(1)


def init_members(weight: Tensor, fill: Callable[[Tensor], object]) -> None:
    """Initialize the matrix of each member by itself: the draw may depend on its shape."""
    for matrix in weight.data.view(-1, *weight.shape[-2:]) if weight.numel() else ():
        fill(matrix)


def check_rows(name: str, rows: Tensor, count: int | None, width: int, members: int, meaning: str) -> None:
    """Raise unless there are `width` channels, shared by the members, or `width` for each member."""
    wide = members * width
    check_shape(name, rows, (count, wide if rows.shape[1:] == (wide,) else width), meaning)


def stack_members(models: Sequence[AnyModule]) -> AnyModule:
    """One module whose members are these, all of one shape.

    Example:
        >>> from censnet.nn.layers import NodeLayer
        >>> from censnet.ops import Incidence
        >>> layers = [NodeLayer(3, 1, 2), NodeLayer(3, 1, 2)]
        >>> graph = torch.randn(2, 3), torch.randn(1, 1), Incidence(torch.tensor([[0], [1]]), num_nodes=2)
        >>> alone = torch.cat([layer(*graph) for layer in layers], dim=1)
        >>> torch.allclose(stack_members(layers)(*graph), alone, atol=1e-6)
        True
    """
    if not models:
        raise ValueError("models is empty, expected at least one")
    for number, model in enumerate(models):
        if count_members(model) != 1:
            raise ValueError(f"model {number} has {count_members(model)} members, expected 1: split it first")
        if _shapes(model) != _shapes(models[0]):
            raise ValueError(f"model {number} differs from model 0, expected parameters of one shape: stack equals")
    each = [dict(_tensors(model)) for model in models]
    return _remake(models[0], len(models), lambda name: _join([tensors[name] for tensors in each]))


def split_members(model: AnyModule) -> list[AnyModule]:
    """The members of a stack, each as a plain module."""
    members, tensors = count_members(model), dict(_tensors(model))
    shares = [{name: _share(tensor, members, m) for name, tensor in tensors.items()} for m in range(members)]
    return [_remake(model, 1, share.__getitem__) for share in shares]


def count_members(model: nn.Module) -> int:
    """The number of members: every submodule with parameters must have a `members` attribute, of the same value."""
    counts = set()
    for name, module in model.named_modules():
        if hasattr(module, "members"):
            counts.add(int(module.members))
        elif any(True for _ in module.parameters(recurse=False)):
            raise ValueError(f"{name or 'the model'} is a {type(module).__name__}, which cannot have members")
    if len(counts) > 1:
        raise ValueError(f"the parts of the model have {sorted(counts)} members, expected one number")
    return counts.pop() if counts else 1


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _shapes(model: nn.Module) -> list[tuple[str, torch.Size]]:
    return [(name, tensor.shape) for name, tensor in _tensors(model)]


def _remake(model: AnyModule, members: int, tensor: Callable[[str], Tensor]) -> AnyModule:
    """A copy of the model with another number of members, and the tensors that go with it."""
    memo: dict[int, Any] = {}  # tensors that deepcopy takes as copied already
    for name, old in _tensors(model):
        new = tensor(name).detach().clone()
        memo[id(old)] = nn.Parameter(new, old.requires_grad) if isinstance(old, nn.Parameter) else new
    copied = copy.deepcopy(model, memo)
    for module in copied.modules():
        if hasattr(module, "members"):
            setattr(module, "members", members)  # noqa: B010 - a type checker knows no such attribute of modules
    return copied


def _join(parts: Sequence[Tensor]) -> Tensor:
    """The members' tensors as one; a scalar, such as a count of batches, is shared."""
    if len(parts) == 1 or parts[0].dim() == 0:
        return parts[0]
    return torch.cat(list(parts)) if parts[0].dim() == 1 else torch.stack(list(parts))


def _share(tensor: Tensor, members: int, m: int) -> Tensor:
    """Member m's share of a tensor."""
    if members == 1 or tensor.dim() == 0:
        return tensor
    if tensor.numel() == 0:
        return tensor[m]
    return tensor.view(members, -1)[m].view(tensor.shape[1:] if tensor.dim() == 3 else -1)
