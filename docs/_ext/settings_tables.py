"""The directive `settings-table GROUP`: all settings of a group, read from the schema and the presets at build time."""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from censnet.settings import make_settings

LEVELS = ("node", "edge", "graph", "link")
PRESETS = ("strong", "paper", "released")


class SettingsTable(SphinxDirective):
    """A definition list: the name of each setting, its description, its choices, and its value in each preset."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        group = self.arguments[0]
        groups = {
            (preset, level): getattr(make_settings(preset, level), group) for preset in PRESETS for level in LEVELS
        }
        schema = groups["strong", "node"].model_json_schema()["properties"]
        items = []
        for key, field in schema.items():
            values = {
                preset: {level: _format_value(getattr(groups[preset, level], key)) for level in LEVELS}
                for preset in PRESETS
            }
            items.append(_definition(f"{group}.{key}", field, values))
        return [nodes.definition_list("", *items, classes=["settings"])]


def _definition(name: str, field: dict[str, Any], values: dict[str, dict[str, str]]) -> nodes.definition_list_item:
    term = nodes.term("", "", nodes.literal(text=name), ids=[f"setting-{name.replace('_', '-').replace('.', '-')}"])
    about = nodes.paragraph("", field["description"][0].upper() + field["description"][1:] + ".")
    for number, choice in enumerate(_choices(field)):
        about += [nodes.Text(", " if number else " One of "), nodes.literal(text=choice)]
    lines = nodes.line_block(classes=["setting-values"])
    for preset, by_level in values.items():
        line = nodes.line("", "", nodes.emphasis(text=preset), nodes.Text(": "))
        if len(set(by_level.values())) == 1:
            line += nodes.literal(text=by_level["node"])
        else:
            for number, (level, value) in enumerate(by_level.items()):
                line += [nodes.Text(f"{', ' if number else ''}{level} "), nodes.literal(text=value)]
        lines += line
    return nodes.definition_list_item("", term, nodes.definition("", about, lines))


def _choices(field: dict[str, Any]) -> list[str]:
    forms = [field, field.get("items", {}), *field.get("anyOf", ())]
    return [str(word) for form in forms for word in form.get("enum", ())]


def _format_value(value: object) -> str:
    """A value as one types it after `--set NAME=`."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("settings-table", SettingsTable)
    return {"parallel_read_safe": True}
