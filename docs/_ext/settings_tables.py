"""The directive `settings-table`: every setting of a group, read from the schema and the presets when the site is built."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from censnet.cli.settings import Entry, entries
from censnet.settings import make_settings

LEVELS = ("node", "edge", "graph", "link")
PRESETS = ("strong", "paper", "released")


def setting_lines(group: str) -> list[str]:
    """The settings of a group, `model`, `training` or `data`, as a definition list in reStructuredText."""
    columns = {(preset, level): _values(preset, level) for preset in PRESETS for level in LEVELS}
    lines: list[str] = []
    for entry in entries(make_settings("paper", "node")):
        if not entry.name.startswith(f"{group}."):
            continue
        lines += [f".. _setting-{entry.name}:", "", f"``{entry.name}``", f"    {_escape(entry.meaning)}", ""]
        for preset in PRESETS:
            values = {level: columns[preset, level][entry.name] for level in LEVELS}
            lines.append(f"    :{preset}: {_spread(values)}")
        lines.append("")
    return lines


def _values(preset: str, level: Any) -> dict[str, str]:
    return {entry.name: entry.value for entry in entries(make_settings(preset, level))}


def _spread(values: dict[str, str]) -> str:
    """One value where all levels agree, else a value for each."""
    if len(set(values.values())) == 1:
        return f"``{next(iter(values.values())) or 'none'}``"
    return ", ".join(f"{level} ``{value}``" for level, value in values.items())


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("`", "\\`").replace("|", "\\|").replace("_", "\\_")


class SettingsTable(SphinxDirective):
    """`.. settings-table:: model`"""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        lines = StringList(setting_lines(self.arguments[0]), source="censnet.settings")
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("settings-table", SettingsTable)
    return {"parallel_read_safe": True}
