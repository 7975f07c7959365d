"""`censnet settings`: every setting, its value in a preset, and its meaning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import RenderableType
from rich.table import Table

from censnet.cli.messages import echo, echo_json
from censnet.cli.options import Json, Preset
from censnet.console import Text

if TYPE_CHECKING:
    from censnet.settings.schema import Settings


def settings(
    task: Annotated[str, typer.Argument(help="node, edge, graph, link or oriented.")] = "node",
    preset: Preset = "strong",
    as_json: Json = False,
) -> None:
    """List every setting, its value in a preset for one kind of task, and its meaning."""
    from censnet.settings.presets import make_settings

    found = setting_rows(make_settings(preset, task))
    if as_json:
        echo_json([row._asdict() for row in found])
    else:
        echo(_table(found))


class SettingRow(NamedTuple):
    """One setting: its name and value as `--set` takes them, and its meaning."""

    name: str
    value: str
    meaning: str


def setting_rows(settings: Settings) -> list[SettingRow]:
    """All settings, in their order.

    >>> from censnet.settings.schema import Settings
    >>> setting_rows(Settings())[0]
    SettingRow(name='model.layers', value='NEN', meaning='node (N) and edge (E) layers, in order...')
    """
    from censnet.settings.presets import setting_names

    found = []
    schemas = {group: getattr(settings, group).model_json_schema() for group in ("model", "training", "data")}
    for name in setting_names():
        group, _, key = name.partition(".")
        schema = schemas[group]["properties"][key]
        choices = _choices(schema)
        meaning = schema["description"] + (f": {', '.join(choices)}" if choices else "")
        found.append(SettingRow(name, format_value(getattr(getattr(settings, group), key)), meaning))
    return found


def format_value(value: object) -> str:
    """A value as it is typed after `--set NAME=`.

    >>> format_value(None), format_value(True), format_value("cosine"), format_value(["mean", "sum"])
    ('none', 'true', 'cosine', '["mean", "sum"]')
    """
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _table(rows: list[SettingRow]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold", max_width=30)
    grid.add_column(style="dim", overflow="fold")
    for name, value, meaning in rows:
        grid.add_row(name, Text(value), Text(meaning))
    return grid


def _choices(schema: dict[str, Any]) -> list[str]:
    """The values that a setting may have, from its JSON schema."""
    forms = [schema, schema.get("items", {}), *schema.get("anyOf", ())]
    return [str(choice) for form in forms for choice in form.get("enum", ())]
