"""Safe output to the terminal: rich's console, text without markup or control characters, and progress bars.

Every other module takes `Console` and `Text` from here and not from rich. Text in brackets and `:smile:` are printed as
they are, and characters that a terminal would act on are escaped by `printable`: when a text is made, so that columns
are as wide as what is shown, and once more on the way out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import rich.console
import rich.progress
import rich.text
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.style import Style

LONGEST = 5_000  # characters of one line or cell; a path has at most 4,096


def printable(text: str, *, lines: bool = False, longest: int = LONGEST) -> str:
    r"""Text with every character that a terminal would act on, or not show, written as `repr` writes it.

    These are control characters (escape sequences, carriage return, bell), directional overrides, characters without
    width, line separators, and bytes of a file name that are no text.

    Args:
        text: from a user's file, name or setting, or from a library.
        lines: whether a line feed stays one.
        longest: characters that are shown at most.

    Example:
        >>> print(printable("\x1b[31mred\r\u202eevil"))
        \x1b[31mred\r\u202eevil
        >>> printable("Zürich, 東京 [red]")
        'Zürich, 東京 [red]'
    """
    if len(text) > longest:
        text = f"{text[:longest]}... ({len(text):,} characters)"
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or (lines and letter == "\n") else ascii(letter)[1:-1] for letter in text
    )


class Text(rich.text.Text):
    """Styled text on one line, with control characters escaped."""

    def __init__(self, text: str = "", style: str | Style = "", **options: Any) -> None:
        super().__init__(printable(text), style, **options)

    def append(self, text: rich.text.Text | str, style: str | Style | None = None) -> Text:
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self


class Console(rich.console.Console):
    """A terminal or a stream that escapes the control characters of every text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, **options, "markup": False, "emoji": False})

    def render_str(self, text: str, **options: Any) -> rich.text.Text:
        """A cell of a table, or a line, that came as a string."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments as rich makes them, with control characters, and what the stream cannot encode, escaped."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
                continue
            text = printable(segment.text, lines=True)
            if not text.isascii():
                text = text.encode(self.encoding, "backslashreplace").decode(self.encoding)
            yield segment if text == segment.text else Segment(text, segment.style)


def text_column(text: str, style: str = "none") -> rich.progress.TextColumn:
    """A column of a progress bar, without markup; `{task.description}` is replaced."""
    return rich.progress.TextColumn(text, style=style, markup=False)


SECONDS_BETWEEN_LINES = 5.0

Row = Mapping[str, float]  # of the history, one epoch of one member: column -> value


class Bar:
    """A progress bar with the epoch, the loss, the monitored metric, its best, and the time left."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def on_train_begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        columns = (
            text_column("epoch", "bold"),
            MofNCompleteColumn(),
            BarColumn(bar_width=12),
            text_column("{task.description}"),
            TimeRemainingColumn(compact=True),
            text_column("left"),
        )
        self.progress = Progress(*columns, console=self.console, refresh_per_second=8)
        self.task = self.progress.add_task("", total=epochs, completed=done)
        self.monitor, self.steps = monitor, steps
        self.progress.start()

    def on_step_end(self) -> None:
        if self.steps > 1:
            self.progress.advance(self.task, 1 / self.steps)

    def on_plan(self, epochs: int) -> None:
        self.progress.update(self.task, total=epochs)

    def on_epoch_end(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        done = int(rows[0]["epoch"])
        self.progress.update(self.task, completed=done, description=describe(rows, best, self.monitor))

    def on_train_end(self) -> None:
        """Leave the bar on the screen, with the elapsed time."""
        self.progress.columns = (*self.progress.columns[:-2], TimeElapsedColumn())
        self.progress.stop()


class LineProgress:
    """A line every few seconds, and one at the end."""

    def __init__(self, console: Console, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self.console, self.seconds = console, seconds

    def on_train_begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        self.epochs, self.monitor, self.first, self.line = epochs, monitor, done, ""
        self.started = self.spoken = time.monotonic()

    def on_step_end(self) -> None:
        """Nothing: a line is for epochs."""

    def on_plan(self, epochs: int) -> None:
        self.epochs = epochs

    def on_epoch_end(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        now, done = time.monotonic(), int(rows[0]["epoch"])
        self.line = f"epoch {done}/{self.epochs}  {describe(rows, best, self.monitor)}"
        if now - self.spoken >= self.seconds and done < self.epochs:
            left = (now - self.started) / max(done - self.first, 1) * (self.epochs - done)
            self._say(f"{self.line}  {left:.0f} s left")
            self.spoken, self.line = now, ""

    def on_train_end(self) -> None:
        if self.line:
            self._say(self.line)

    def _say(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)


def describe(rows: Sequence[Row], best: Sequence[float | None], monitor: str) -> str:
    """The loss and the monitored metric, averaged over members, and the best of the latter.

    >>> describe([{"epoch": 1, "loss": 0.5, "validation_auc": 0.7}], [0.75], "auc")
    'loss 0.5000  auc 0.7000 (best 0.7500)'
    """
    text = f"loss {_mean([row['loss'] for row in rows]):.4f}"
    values = [row[f"validation_{monitor}"] for row in rows if f"validation_{monitor}" in row]
    if values:
        text += f"  {'validation' if monitor == 'loss' else monitor} {_mean(values):.4f}"
    known = [value for value in best if value is not None]
    return text + (f" (best {_mean(known):.4f})" if known else "")


def show(console: Console | None = None) -> Bar | LineProgress:
    """The callback that shows the progress of a training: a bar in a terminal or a notebook, lines elsewhere."""
    console = console or Console(stderr=True)
    return Bar(console) if console.is_terminal or console.is_jupyter else LineProgress(console)


@contextmanager
def counting(what: str, total: int, shown: bool) -> Iterator[Any]:
    """A transient bar for work of a known size; gives the function that advances it."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (text_column("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
