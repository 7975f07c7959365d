"""The built-in data sets on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table

from censnet.console import Text
from censnet.data.datasets.download import DatasetInfo
from censnet.text import count, format_bytes


def datasets_table(rows: Sequence[tuple[DatasetInfo, str]]) -> RenderableType:
    """The built-in sets, one line each: their counts, size, license and location."""
    grid = Table.grid(padding=(0, 2))
    for name in ("name", "holds", "size", "license", "found"):
        grid.add_column(header=name, overflow="fold", no_wrap=name in ("name", "size"))
    grid.add_row(*(Text(name, "bold") for name in ("name", "holds", "size", "license", "found")))
    for info, path in rows:
        grid.add_row(
            Text(info.name, "cyan"),
            _counts(info),
            format_bytes(info.size) if info.size else "",
            info.licence,
            _home(path),
        )
    return grid


def dataset_card(info: DatasetInfo, path: str) -> RenderableType:
    """One built-in set."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    targets = ", ".join(info.targets)
    for name, value in (
        ("holds", _counts(info)),
        ("targets", targets),
        ("size", format_bytes(info.size)),
        ("license", info.licence),
        ("source", info.source),
        ("found", path),
    ):
        grid.add_row(name, value)
    return Group(Text.assemble((info.name, "bold"), "  ", info.title), grid)


def _counts(info: DatasetInfo) -> str:
    """The counts of a set with their nouns."""
    return ", ".join(count(size, name.removesuffix("s"), name) for name, size in info.counts.items() if size)


def _home(path: str) -> str:
    """A path, with ~ for the user's home."""
    home = str(Path.home())
    return "~" + path.removeprefix(home) if len(home) > 1 and path.startswith(home) else path
