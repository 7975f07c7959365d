"""Callbacks of the training loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from censnet.errors import MissingDependencyError
from censnet.training.history import Row


class Callback(Protocol):
    """Hooks of a training. A class may inherit them, and then overrides those it needs."""

    def on_train_begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        """Called at the start of a training of so many epochs, some of them done already, each of so many steps."""
        return

    def on_step_end(self) -> None:
        """Called after each step."""
        return

    def on_plan(self, epochs: int) -> None:
        """Called when a time budget leaves time for so many epochs."""
        return

    def on_epoch_end(self, rows: Sequence[Row], best: Sequence[float | None]) -> bool | None:
        """Called after each epoch. Return True to stop the training, which then keeps its best epoch so far.

        Args:
            rows: the row of the history of each member.
            best: the best value of the monitor so far, of each member.
        """
        return None

    def on_train_end(self) -> None:
        """Called when the training ends, also by an exception."""
        return


class TensorBoardCallback(Callback):
    """Write the history to TensorBoard.

    Args:
        folder: where its files go.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingDependencyError("tensorboard is not installed: pip install 'censnet[tensorboard]'") from None
        self.writer: Any = SummaryWriter(str(folder))
        self.first = self.after = 0  # numbers of the models that are trained now

    def on_train_begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        self.first = self.after

    def on_epoch_end(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        self.after = self.first + len(rows)
        for row in rows:
            number = self.first + int(row.get("member", 0))
            suffix = f"/{number}" if number or "member" in row else ""
            for name, value in row.items():
                if name not in ("epoch", "member"):
                    self.writer.add_scalar(name + suffix, value, int(row["epoch"]))

    def on_train_end(self) -> None:
        self.writer.flush()
