"""Checkpoints: the state of a training (progress, optimizer, current, averaged and best weights), in one file.

A checkpoint is written whole or not at all. Nothing in it is a pickle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from censnet.errors import RunError
from censnet.files import atomic_write, tensor_digest
from censnet.nn.model import Model
from censnet.training.early_stopping import ValidationScore
from censnet.training.ema import EMA
from censnet.training.history import Row
from censnet.training.processes import on_first

Facts = dict[str, Any]
MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")  # Adam's state of each parameter


@dataclass
class Progress:
    """Progress of a training: what a checkpoint holds beside its tensors. Lists have an entry for each member."""

    epoch: int = 0
    step: int = 0  # within the epoch
    loss: list[float] = field(default_factory=list)  # sum over the steps of the epoch
    best: list[ValidationScore | None] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)  # -1: none yet
    history: list[Row] = field(default_factory=list)
    finished: bool = False
    planned_epochs: int | None = None  # that a time budget allowed, if fewer than there are
    out_of_time: bool = False  # whether these are over


class Weights:
    """Weights of a model during training: the current ones, their EMA and, for each member, the best.

    Args:
        model: the model that is trained, on its device.
        optimizer: its state is saved with the weights.
        ema_decay: decay of the exponential moving average; 0 is none.
    """

    def __init__(self, model: Model, optimizer: Optimizer, ema_decay: float = 0.0) -> None:
        self.model, self.optimizer = model, optimizer
        self.ema = EMA(model, ema_decay) if ema_decay else None
        self.best = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @property
    def validated(self) -> Model:
        """The model that is validated and saved: the averaged one, if there is an EMA."""
        return self.model if self.ema is None else cast(Model, self.ema.module)

    def update_ema(self) -> None:
        """Add the weights after a step to their moving average."""
        if self.ema is not None:
            self.ema.update_parameters(self.model)

    def keep_best(self, members: Sequence[int]) -> None:
        """Store the validated weights of these members as their best."""
        if not members:
            return
        count = self.model.members
        for name, tensor in self.validated.state_dict().items():
            if count == 1 or tensor.dim() == 0:
                self.best[name].copy_(tensor)
            else:
                self.best[name].view(count, -1)[members] = tensor.reshape(count, -1)[members]

    def load_best(self) -> None:
        """Give the model its best weights."""
        self.model.load_state_dict(self.best)

    def find_not_finite(self) -> str | None:
        """The name of a tensor with a value that is not finite, if there is one."""
        for model in dict.fromkeys((self.model, self.validated)):
            if bool(get_total_norm(list(model.parameters())).isfinite()):
                continue  # one look instead of many; large finite weights are looked at one by one
            for name, tensor in model.state_dict().items():
                if not bool(tensor.isfinite().all()):
                    return name
        return None

    def save(self, path: Path, progress: Progress) -> None:
        """Write a checkpoint."""
        groups = {
            "model": self.model.state_dict(),
            "best": self.best,
            "ema": {} if self.ema is None else self.ema.state_dict(),
            "optimizer": optimizer_tensors(self.model, self.optimizer),
        }
        tensors = {f"{group}/{name}": tensor for group, found in groups.items() for name, tensor in found.items()}
        save_tensors(path, tensors, vars(progress))

    def restore(self, path: Path) -> Progress:
        """Load a checkpoint. Its names and shapes are compared with those of the model before any tensor is read.

        Of several processes the first reads the file, which the others need not see.
        """
        parameters: dict[str, Tensor] = dict(self.model.named_parameters())
        expected = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        expected |= {f"best/{name}": tensor for name, tensor in self.best.items()}
        expected |= (
            {} if self.ema is None else {f"ema/{name}": tensor for name, tensor in self.ema.state_dict().items()}
        )
        moments = {f"optimizer/{name}|{key}": tensor for name, tensor in parameters.items() for key in MOMENTS}
        moments |= {f"optimizer/{name}|step": torch.tensor(0.0) for name in parameters}
        tensors, facts = on_first(lambda: load_tensors(path, lambda name: expected.get(name, moments.get(name))))
        missing = next((name for name in expected if name not in tensors), None)
        if missing is not None:
            raise RunError(f"{path} has no {missing}, expected what the settings describe: it is damaged")
        progress = _read_progress(facts, self.model.members, path)
        for name, tensor in expected.items():
            tensor.copy_(tensors[name])
        of_optimizer = {name.partition("/")[2]: tensor for name, tensor in tensors.items() if name in moments}
        restore_optimizer(self.model, self.optimizer, of_optimizer)
        return progress


def _read_progress(facts: Mapping[str, Any], members: int, path: Path) -> Progress:
    """The progress that a checkpoint states, if it is well-formed."""
    try:
        scores = [None if score is None else ValidationScore(*map(float, score)) for score in facts["best"]]
        found = Progress(**{**facts, "best": scores})
        whole = (found.epoch, found.step, *found.best_epoch, found.planned_epochs or 0)
        rows = [value for row in found.history for value in (row["epoch"], row["loss"], *row.values())]
        numbers = all(isinstance(value, int | float) for value in [*found.loss, *rows])
        lengths = {len(found.loss), len(found.best), len(found.best_epoch)} == {members}
        if all(type(value) is int for value in whole) and numbers and lengths and min(found.epoch, found.step) >= 0:
            return found
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise RunError(f"{path} does not say where the training was: it is damaged")


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """Write tensors with some facts as JSON. -> the SHA-256 of the file"""
    dense = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    content = save(dense, metadata={"facts": json.dumps(facts), "digest": tensor_digest(dense)})
    atomic_write(path, content)
    return hashlib.sha256(content).hexdigest()


def load_tensors(path: Path, expected: Callable[[str], Tensor | None] | None = None) -> tuple[dict[str, Tensor], Facts]:
    """Read a file of `save_tensors`; one that was damaged since is an error.

    Args:
        path: the file.
        expected: name of a tensor -> a tensor of its shape, or None if it is not expected; all names are checked
            before any tensor is read.
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
    """Read the facts of a checkpoint, and none of its tensors."""
    try:
        with safe_open(path, "pt") as file:
            facts: Facts = json.loads((file.metadata() or {})["facts"])
            int(facts["epoch"])
            return facts
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}): it is damaged") from None


def optimizer_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """State of the optimizer, by the names of the parameters."""
    found = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            found[f"{name}|{key}"] = value if isinstance(value, Tensor) else torch.tensor(value)
    return found


def restore_optimizer(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore the state of the optimizer."""
    parameters = dict(model.named_parameters())
    for name, value in tensors.items():
        parameter, _, key = name.rpartition("|")
        where = parameters[parameter]
        optimizer.state[where][key] = value.to(where.device).clone()
