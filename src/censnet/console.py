"""Safe output to the terminal: rich's console and text without markup, emoji codes or control characters.

Every other module takes `Console` and `Text` from here and not from rich. Text in brackets and `:smile:` are printed as
they are, and characters that a terminal would act on are escaped by `printable`: when a text is made, so that columns
are as wide as what is shown, and once more on the way out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
import rich.progress
import rich.text
from rich.segment import Segment
from rich.style import Style

from censnet.text import printable


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
