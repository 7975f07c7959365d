"""Members: M networks of one shape side by side on one graph, each with parameters of its own, in one pass.

A replicate or an ensemble of small networks spends its time on starting operations, not in them; here each operation is
started once for all. Activations are (n, M d), one member after the other: member m has the channels m d to (m + 1) d.
So a propagation of M networks is one of M heads, and batch norm needs no change. Features that come in are shared, and
have d channels. Of every parameter and floating buffer p, ``p.view(M, -1)[m]`` is member m's: a matrix (i, o) becomes
(M, i, o), a vector (k,) becomes (M k,). With one member, shapes and operations are those of a plain network.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet.ops.checks import check_shape
from censnet.ops.sparse import matmul

Model = TypeVar("Model", bound=nn.Module)


def mix(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """H W + b, of each member its own. Rows that the members share, dense or CSR, are multiplied once for all.

    Shape:
        rows (n, i), weight (i, o) -> (n, o); rows (n, i) or (n, M i), weight (M, i, o), bias (M o,) -> (n, M o).
    """
    if weight.dim() == 2:
        return matmul(rows, weight) if bias is None else F.linear(rows, weight.t(), bias)
    members, width, _ = weight.shape
    if rows.shape[1] == width:
        out = matmul(rows, weight.transpose(0, 1).flatten(1))
    else:
        own = rows.reshape(rows.shape[0], members, width).transpose(0, 1)
        out = torch.bmm(own, weight).transpose(0, 1).flatten(1)
    return out if bias is None else out + bias


def matrices(members: int, rows: int, columns: int) -> Tensor:
    """Room for a matrix, or for one of each member."""
    if members < 1:
        raise ValueError(f"members is {members}, expected at least 1")
    return torch.empty(rows, columns) if members == 1 else torch.empty(members, rows, columns)


def init_members(weight: Tensor, fill: Callable[[Tensor], object]) -> None:
    """Fill the matrix of each member by itself: what is drawn may depend on its shape."""
    for matrix in weight.data.view(-1, *weight.shape[-2:]):
        fill(matrix)


def check_rows(name: str, rows: Tensor, count: int | None, width: int, members: int, meaning: str) -> None:
    """Raise unless there are `width` channels, which the members share, or that many for each member."""
    wide = members * width
    check_shape(name, rows, (count, wide if rows.shape[1:] == (wide,) else width), meaning)


def stack_members(models: Sequence[Model]) -> Model:
    """One network whose members are these: of one shape, each of one member.

    Example:
        >>> from censnet.nn.heads import RowHead
        >>> heads = [RowHead(3, 2), RowHead(3, 2)]
        >>> rows = torch.randn(5, 3)
        >>> torch.allclose(stack_members(heads)(rows), torch.cat([head(rows) for head in heads], dim=1), atol=1e-6)
        True
    """
    if not models:
        raise ValueError("models is empty, expected at least one network")
    for number, model in enumerate(models):
        if count_members(model) != 1:
            raise ValueError(f"model {number} has {count_members(model)} members, expected 1: split it first")
        if _shapes(model) != _shapes(models[0]):
            raise ValueError(f"model {number} differs from model 0, expected parameters of one shape: stack equals")
    each = [dict(_tensors(model)) for model in models]
    return _remake(models[0], len(models), lambda name: _join([tensors[name] for tensors in each]))


def split_members(model: Model) -> list[Model]:
    """The members of a network, each as a plain one."""
    members, tensors = count_members(model), dict(_tensors(model))
    shares = [{name: _share(tensor, members, m) for name, tensor in tensors.items()} for m in range(members)]
    return [_remake(model, 1, share.__getitem__) for share in shares]


def count_members(model: nn.Module) -> int:
    """How many members a network has: every part of it with parameters has to say so, and the same number."""
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


def _remake(model: Model, members: int, tensor: Callable[[str], Tensor]) -> Model:
    """A copy of the model with another number of members, and the tensors that go with it."""
    memo: dict[int, Any] = {}  # what deepcopy takes to be copied already
    for name, old in _tensors(model):
        new = tensor(name).detach().clone()
        memo[id(old)] = nn.Parameter(new, old.requires_grad) if isinstance(old, nn.Parameter) else new
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        if hasattr(module, "members"):
            setattr(module, "members", members)  # noqa: B010 - a type checker knows no such attribute of modules
    return twin


def _join(parts: Sequence[Tensor]) -> Tensor:
    """The members' tensors as one; a number, such as how many batches there were, is theirs together."""
    if len(parts) == 1 or parts[0].dim() == 0:
        return parts[0]
    return torch.cat(list(parts)) if parts[0].dim() == 1 else torch.stack(list(parts))


def _share(tensor: Tensor, members: int, m: int) -> Tensor:
    """Member m's share of a tensor."""
    if members == 1 or tensor.dim() == 0:
        return tensor
    return tensor.view(members, -1)[m].view(tensor.shape[1:] if tensor.dim() == 3 else -1)
