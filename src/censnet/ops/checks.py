"""Checks of tensors, with errors in one line: `what has this, expected that: what to do`."""

from __future__ import annotations

import torch
from torch import Tensor


def check_shape(name: str, tensor: Tensor, expected: tuple[int | None, ...], meaning: str) -> None:
    """Raise unless `tensor` has the expected shape; None stands for any size.

    >>> check_shape("edges", torch.ones(5, 2), (5, 4), "(E, edge_width)")
    Traceback (most recent call last):
    ValueError: edges has shape (5, 2), expected (5, 4): (E, edge_width)
    """
    shape = tuple(tensor.shape)
    if len(shape) != len(expected) or any(e is not None and s != e for s, e in zip(shape, expected, strict=True)):
        wanted = ", ".join("*" if size is None else str(size) for size in expected) + "," * (len(expected) == 1)
        raise ValueError(f"{name} has shape {shape}, expected ({wanted}): {meaning}")


def check_floating(name: str, tensor: Tensor) -> None:
    """Raise unless `tensor` holds real floating-point numbers."""
    if not tensor.is_floating_point():
        raise ValueError(f"{name} has dtype {tensor.dtype}, expected a floating-point one: call {name}.float()")


def check_same_dtype(name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Raise unless both tensors have one dtype."""
    if tensor.dtype != other.dtype:
        raise ValueError(
            f"{name} has dtype {tensor.dtype}, expected {other.dtype} as {other_name}: convert one with .to(dtype)"
        )


def check_same_device(name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Raise unless both tensors are on one device."""
    if tensor.device != other.device:
        raise ValueError(
            f"{name} is on {tensor.device}, expected {other.device} as {other_name}: move one with .to(device)"
        )


def check_numbering(name: str, index: Tensor, count: int, what: str) -> None:
    """Raise unless `index` holds whole numbers from 0 to count - 1, naming the first that is not.

    >>> check_numbering("ends", torch.tensor([[0, 7], [1, 2]]), 3, "node")
    Traceback (most recent call last):
    ValueError: ends[0, 1] is 7, expected a node from 0 to 2: there are 3 nodes
    """
    if index.is_floating_point() or index.is_complex():
        bad = torch.isnan(index).nonzero()
        found = f" and holds NaN at {tuple(bad[0].tolist())}" if len(bad) else ""
        raise ValueError(f"{name} has dtype {index.dtype}{found}, expected whole numbers: number each {what} from 0")
    if index.dtype == torch.bool:
        raise ValueError(f"{name} has dtype torch.bool, expected whole numbers: number each {what} from 0")
    if index.numel() == 0 or (int(index.min()) >= 0 and int(index.max()) < count):
        return
    position = tuple(((index < 0) | (index >= count)).nonzero()[0].tolist())
    where = ", ".join(map(str, position))
    raise ValueError(
        f"{name}[{where}] is {int(index[position])}, expected a {what} from 0 to {count - 1}: there are {count} {what}s"
    )
