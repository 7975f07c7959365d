"""The state of a training in one file, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer


class RunError(ValueError):
    """A run directory that cannot be used as asked."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or the next start after a crash, finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.part")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """Write tensors and what is known about them; the SHA-256 of the file."""
    dense = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    digest = _digest(dense)
    content = save(dense, metadata={"facts": json.dumps(facts), "digest": digest})
    write_whole(path, content)
    return hashlib.sha256(content).hexdigest()


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote; a file that was damaged since is an error."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        facts = json.loads(metadata["facts"])
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}): it is damaged") from None
    if metadata.get("digest") != _digest(tensors):
        raise RunError(f"{path} does not have the content that was written: it is damaged")
    return tensors, facts


def optimizer_tensors(learner: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """The state of the optimiser by the names of the parameters."""
    found = {}
    for name, parameter in learner.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            found[f"{name}|{key}"] = value if isinstance(value, Tensor) else torch.tensor(value)
    return found


def restore_optimizer(learner: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the state back."""
    parameters = dict(learner.named_parameters())
    for name, value in tensors.items():
        parameter, _, key = name.rpartition("|")
        where = parameters[parameter]
        optimizer.state[where][key] = value.to(where.device).clone()


def _digest(tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return found.hexdigest()
