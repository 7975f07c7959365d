"""Who hears how a training goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from censnet.errors import MissingDependencyError
from censnet.training.history import Row


class Callback(Protocol):
    """Who wants to hear how the training goes."""

    def begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        """A training of so many epochs, some of them done already, each of so many steps."""

    def step(self) -> None:
        """A step was taken."""

    def epoch(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        """An epoch is over: a row for each member, and the best value of the monitor so far."""

    def end(self) -> None:
        """No more epochs."""


class TensorBoardCallback:
    """Curves for TensorBoard, in the folder `tensorboard` of the run."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingDependencyError("tensorboard is not installed: pip install 'censnet[tensorboard]'") from None
        self.writer: Any = SummaryWriter(str(folder))
        self.first = self.after = 0  # the numbers of the networks that are trained now

    def begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        """The next network, or several side by side."""
        self.first = self.after

    def step(self) -> None:
        """Epochs are enough."""

    def epoch(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        self.after = self.first + len(rows)
        for row in rows:
            number = self.first + int(row.get("member", 0))
            suffix = f"/{number}" if number or "member" in row else ""
            for name, value in row.items():
                if name not in ("epoch", "member"):
                    self.writer.add_scalar(name + suffix, value, int(row["epoch"]))

    def end(self) -> None:
        self.writer.flush()
