"""How a training looks while it goes: a bar in a terminal, plain lines elsewhere, curves in TensorBoard."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from censnet.training.loop import Listener, Row

logger = logging.getLogger("censnet")
SECONDS_BETWEEN_LINES = 5.0


class Bar:
    """A bar with the epoch, the loss, the metric that decides, its best, and the time left."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        columns = (
            TextColumn("[bold]epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=self.console, refresh_per_second=8)
        self.task = self.progress.add_task("", total=epochs, completed=done)
        self.monitor, self.steps = monitor, steps
        self.progress.start()

    def step(self) -> None:
        if self.steps > 1:
            self.progress.advance(self.task, 1 / self.steps)

    def epoch(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        done = int(rows[0]["epoch"])
        self.progress.update(self.task, completed=done, description=describe(rows, best, self.monitor))

    def end(self) -> None:
        self.progress.stop()


class Lines:
    """A line now and then."""

    def __init__(self, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self.seconds = seconds

    def begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        self.epochs, self.monitor, self.first = epochs, monitor, done
        self.started = self.spoken = time.monotonic()

    def step(self) -> None:
        """Epochs are enough."""

    def epoch(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        now, done = time.monotonic(), int(rows[0]["epoch"])
        if now - self.spoken >= self.seconds or done == self.epochs:
            self.spoken = now
            left = (now - self.started) / max(done - self.first, 1) * (self.epochs - done)
            logger.info("epoch %d/%d  %s  %.0f s left", done, self.epochs, describe(rows, best, self.monitor), left)

    def end(self) -> None:
        """Nothing is open."""


class Board:
    """Curves for TensorBoard, in the folder `tensorboard` of the run."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ImportError("tensorboard is not installed: pip install 'censnet[tensorboard]'") from None
        self.writer: Any = SummaryWriter(str(folder))

    def begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        """The writer is open."""

    def step(self) -> None:
        """Epochs are enough."""

    def epoch(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        for row in rows:
            suffix = f"/{int(row['member'])}" if "member" in row else ""
            for name, value in row.items():
                if name not in ("epoch", "member"):
                    self.writer.add_scalar(name + suffix, value, int(row["epoch"]))

    def end(self) -> None:
        self.writer.flush()


def describe(rows: Sequence[Row], best: Sequence[float | None], monitor: str) -> str:
    """The mean over members of the loss and of the metric that decides, and its best.

    >>> describe([{"epoch": 1, "loss": 0.5, "validation_auc": 0.7}], [0.75], "auc")
    'loss 0.5000  auc 0.7000 (best 0.7500)'
    """
    text = f"loss {_mean([row['loss'] for row in rows]):.4f}"
    values = [row[f"validation_{monitor}"] for row in rows if f"validation_{monitor}" in row]
    if values:
        text += f"  {monitor} {_mean(values):.4f}"
    known = [value for value in best if value is not None]
    return text + (f" (best {_mean(known):.4f})" if known else "")


def show(console: Console | None = None) -> Listener:
    """A bar in a terminal, lines elsewhere."""
    console = console or Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines()


@contextmanager
def counting(what: str, total: int, shown: bool) -> Iterator[Any]:
    """A bar for work of a known size; gives a function that says how much more was done."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    with Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
