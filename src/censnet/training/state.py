"""Where a training is: epoch and step, what it has reached, the weights now and at their best. All of it is saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from censnet.errors import RunError
from censnet.nn.model import Model
from censnet.training.checkpoint import load_tensors, optimizer_tensors, restore_optimizer, save_tensors
from censnet.training.evaluator import ValidationScore
from censnet.training.history import Row

MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")  # of the gradient of each parameter, which Adam keeps


@dataclass
class Progress:
    """What a checkpoint says beside its tensors."""

    epoch: int = 0
    step: int = 0  # in the epoch
    loss: list[float] = field(default_factory=list)  # sum over the steps of the epoch, for each member
    best: list[ValidationScore | None] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    history: list[Row] = field(default_factory=list)
    finished: bool = False


class Weights:
    """The weights of a learner now, in the mean over the steps so far and, for each member, at their best.

    Args:
        learner: what is trained, where it is trained.
        optimizer: its state is saved with the weights.
        averaging: what a step leaves of the mean; with 0 there is none.
    """

    def __init__(self, model: Model, optimizer: Optimizer, ema_decay: float = 0.0) -> None:
        self.model, self.optimizer, self.ema_decay = model, optimizer, ema_decay
        now = model.state_dict()
        self.best = {name: tensor.detach().clone() for name, tensor in now.items()}
        self.live = {name: tensor for name, tensor in now.items() if ema_decay and tensor.is_floating_point()}
        self.mean = {name: tensor.detach().clone() for name, tensor in self.live.items()}

    def average(self, step: int) -> None:
        """Add the weights after a step to their mean: m := a m + (1 - a) w.

        `a` grows to its value as (1 + step) / (10 + step), so that where a training starts is soon forgotten.
        """
        if self.mean:
            share = 1 - min(self.ema_decay, (1 + step) / (10 + step))
            torch._foreach_lerp_(list(self.mean.values()), list(self.live.values()), share)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Meanwhile the learner has the mean of its weights."""
        now = {name: tensor.clone() for name, tensor in self.live.items()}
        self._put(self.mean)
        try:
            yield
        finally:
            self._put(now)

    def _put(self, weights: Mapping[str, Tensor]) -> None:
        for name, tensor in weights.items():
            self.live[name].copy_(tensor)

    def keep(self, members: Sequence[int]) -> None:
        """Remember the weights of these members as their best."""
        if not members:
            return
        count = self.model.members
        for name, tensor in self.model.state_dict().items():
            if count == 1 or tensor.dim() == 0:
                self.best[name].copy_(tensor)
            else:
                self.best[name].view(count, -1)[members] = tensor.reshape(count, -1)[members]

    def take_best(self) -> None:
        """Go back to the best."""
        self.model.load_state_dict(self.best)

    def not_finite(self) -> str | None:
        """The name of a tensor that is spoilt, if one is."""
        if bool(torch.stack(torch._foreach_norm(list(self.model.parameters()))).isfinite().all()):
            return None  # one look instead of many; numbers that are merely huge are looked at one by one
        found = self.model.state_dict().items()
        return next((name for name, tensor in found if not bool(tensor.isfinite().all())), None)

    def save(self, path: Path, progress: Progress) -> None:
        """Write a checkpoint."""
        parts = {
            "model": self.model.state_dict(),
            "best": self.best,
            "mean": self.mean,
            "optimizer": optimizer_tensors(self.model, self.optimizer),
        }
        tensors = {f"{part}/{name}": tensor for part, found in parts.items() for name, tensor in found.items()}
        save_tensors(path, tensors, vars(progress))

    def restore(self, path: Path) -> Progress:
        """Go back to where a checkpoint was written. What it holds is compared with the network before it is read."""
        shapes = self.model.state_dict()
        sizes: dict[str, Tensor] = dict(self.model.named_parameters())
        known = {f"{part}/{name}": tensor for part in ("model", "best") for name, tensor in shapes.items()}
        known |= {f"mean/{name}": tensor for name, tensor in self.mean.items()}
        moments = {f"optimizer/{name}|{key}": tensor for name, tensor in sizes.items() for key in MOMENTS}
        moments |= {f"optimizer/{name}|step": torch.tensor(0.0) for name in sizes}
        tensors, facts = load_tensors(path, lambda name: known.get(name, moments.get(name)))
        missing = next((name for name in known if name not in tensors), None)
        if missing is not None:
            raise RunError(f"{path} has no {missing}, expected what the settings describe: it is damaged")
        progress = _read_progress(facts, self.model.members, path)
        for name, tensor in shapes.items():
            tensor.copy_(tensors[f"model/{name}"])
            self.best[name].copy_(tensors[f"best/{name}"])
        for name, tensor in self.mean.items():
            tensor.copy_(tensors[f"mean/{name}"])
        of_optimizer = {name.partition("/")[2]: tensor for name, tensor in tensors.items() if name in moments}
        restore_optimizer(self.model, self.optimizer, of_optimizer)
        return progress


def _read_progress(facts: Mapping[str, Any], members: int, path: Path) -> Progress:
    """What a checkpoint says beside its tensors, if it is of the right form."""
    try:
        marks = [None if mark is None else ValidationScore(*map(float, mark)) for mark in facts["best"]]
        found = Progress(**{**facts, "best": marks})
        whole = (found.epoch, found.step, *found.best_epoch)
        rows = [value for row in found.history for value in (row["epoch"], row["loss"], *row.values())]
        numbers = all(isinstance(value, int | float) for value in [*found.loss, *rows])
        lengths = {len(found.loss), len(found.best), len(found.best_epoch)} == {members}
        if all(type(value) is int for value in whole) and numbers and lengths and min(found.epoch, found.step) >= 0:
            return found
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise RunError(f"{path} does not say where the training was: it is damaged")
