"""Who hears how a training goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
