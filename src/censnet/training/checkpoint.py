"""The state of a training in one file, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from censnet.errors import RunError
from censnet.files import atomic_write, tensor_digest

Facts = dict[str, Any]


def read_plain(path: Path, most: int) -> bytes:
    """The bytes of a plain file of at most so many. A link may lead out of the run, and a device may have no end."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise RunError(f"{path} has {size:,} bytes, expected at most {most:,}")
        try:
            return file.read(most + 1)
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None


def open_plain(path: Path) -> BinaryIO:
    """A plain file, opened to be read; neither a link nor a pipe nor a device is opened."""
    try:
        if path.is_symlink() or not path.is_file():
            raise RunError(f"{path} is missing or is a link, expected the file that was written")
        return path.open("rb")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """Write tensors and what is known about them; the SHA-256 of the file."""
    dense = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    content = save(dense, metadata={"facts": json.dumps(facts), "digest": tensor_digest(dense)})
    atomic_write(path, content)
    return hashlib.sha256(content).hexdigest()


def load_tensors(path: Path, expected: Callable[[str], Tensor | None] | None = None) -> tuple[dict[str, Tensor], Facts]:
    """Read what `save_tensors` wrote; a file that was damaged since is an error.

    Args:
        path: the file.
        expected: name of a tensor -> one of its shape, or None where there should be none of that name; asked about
            all of them before any is read.
    """
    if path.is_symlink() or not path.is_file():
        raise RunError(f"{path} is missing or is a link, expected the file that was written")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            names = list(file.keys())
            for name in names:
                found = file.get_slice(name).get_shape()
                like = None if expected is None else expected(name)
                if expected is not None and (like is None or list(like.shape) != list(found)):
                    raise ValueError(f"{name[:100]} has shape {tuple(found)}, expected what the settings describe")
            tensors = {name: file.get_tensor(name) for name in names}
        facts = json.loads(metadata["facts"])
    except (SafetensorError, OSError, KeyError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}): it is damaged") from None
    if metadata.get("digest") != tensor_digest(tensors):
        raise RunError(f"{path} does not have the content that was written: it is damaged")
    return tensors, facts


def read_facts(path: Path) -> Facts:
    """What is known about the tensors of a file, of which none is read."""
    try:
        with safe_open(path, "pt") as file:
            facts: Facts = json.loads((file.metadata() or {})["facts"])
            int(facts["epoch"])
            return facts
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}): it is damaged") from None


def optimizer_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """The state of the optimiser by the names of the parameters."""
    found = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            found[f"{name}|{key}"] = value if isinstance(value, Tensor) else torch.tensor(value)
    return found


def restore_optimizer(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the state back."""
    parameters = dict(model.named_parameters())
    for name, value in tensors.items():
        parameter, _, key = name.rpartition("|")
        where = parameters[parameter]
        optimizer.state[where][key] = value.to(where.device).clone()
