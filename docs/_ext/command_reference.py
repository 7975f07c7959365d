"""The directive `command-reference`: all commands with arguments and options, read from the program at build time."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from censnet.cli.app import app as program


class CommandReference(SphinxDirective):
    """A section for each command: what it does, and a definition list of what can be given."""

    def run(self) -> list[nodes.Node]:
        group: Any = typer.main.get_command(program)
        return [self._section(name, command) for name, command in group.commands.items() if not command.hidden]

    def _section(self, name: str, command: Any) -> nodes.section:
        section = nodes.section(ids=[f"censnet-{name}"], names=[f"censnet {name}"])
        section += nodes.title("", "", nodes.literal(text=f"censnet {name}"))
        section += nodes.paragraph("", command.help)
        section += nodes.definition_list("", *map(_definition, command.params), classes=["settings"])
        self.state.document.note_explicit_target(section)
        return section


def _definition(param: Any) -> nodes.definition_list_item:
    argument = param.param_type_name == "argument"
    term = nodes.term("", "", nodes.literal(text=param.name.upper() if argument else ", ".join(param.opts)))
    text = (param.help or "").strip()
    default = param.default.value if isinstance(param.default, Enum) else param.default
    if not argument and not param.is_flag and default is not None:
        text += f" Default: {default}."
    if argument and not param.required:
        text += " Optional."
    return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", "", *_with_code(text))))


def _with_code(text: str) -> list[nodes.Node]:
    """The text, with options and what is in backticks as code."""
    pieces = re.split(r"(`[^`]+`|--[a-z-]+)", text)
    return [
        nodes.literal(text=piece.strip("`")) if number % 2 else nodes.Text(piece) for number, piece in enumerate(pieces)
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
