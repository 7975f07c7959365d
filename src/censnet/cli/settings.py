"""Every setting: its name as `--set` takes it, its value in a preset, and what it means."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.table import Table

from censnet.console import Text
from censnet.settings.presets import setting_names
from censnet.settings.schema import Settings


class Entry(NamedTuple):
    """One setting."""

    name: str
    value: str
    meaning: str


def entries(settings: Settings) -> list[Entry]:
    """All settings, in their order.

    >>> entries(Settings())[0]
    Entry(name='model.layers', value='NEN', meaning='node (N) and edge (E) layers, in order')
    """
    found = []
    schemas = {group: getattr(settings, group).model_json_schema() for group in ("model", "training", "data")}
    for name in setting_names():
        group, _, key = name.partition(".")
        stated = schemas[group]["properties"][key]
        words = _choices(stated)
        meaning = stated["description"] + (f": {', '.join(words)}" if words else "")
        found.append(Entry(name, spell(getattr(getattr(settings, group), key)), meaning))
    return found


def spell(value: object) -> str:
    """A value as one types it after `--set NAME=`.

    >>> spell(None), spell(True), spell("cosine"), spell(["mean", "sum"])
    ('none', 'true', 'cosine', '["mean", "sum"]')
    """
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def settings_table(settings: Settings) -> RenderableType:
    """All settings as rich shows them."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold", max_width=30)
    grid.add_column(style="dim", overflow="fold")
    for name, value, meaning in entries(settings):
        grid.add_row(name, Text(value), Text(meaning))
    return grid


def _choices(stated: dict[str, Any]) -> list[str]:
    """The words that a setting may be, from its JSON schema."""
    forms = [stated, stated.get("items", {}), *stated.get("anyOf", ())]
    return [str(word) for form in forms for word in form.get("enum", ())]
