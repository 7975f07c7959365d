"""The frame of the command line: options as `--help` shows them, and mistakes in them told in one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from censnet.cli.messages import FAILED, INTERRUPTED, failed

NAMES = {"int": "N", "float": "X", "str": "TEXT", "path": "PATH"}  # Python's name of a type -> what help calls a value

WORDS = {  # of pydantic, by which typer checks values -> ours
    ": Value error, ": ": ",
    ": Input should be ": ": expected ",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid integer, unable to parse string as an integer": "a whole number",
}


class Commands(TyperGroup):
    """The commands of `censnet`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, whose help says what to write rather than which Python type that is."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _name_values(command.get_params(ctx), ctx)
        return command

    def get_params(self, ctx: Any) -> Any:
        found = super().get_params(ctx)
        _name_values(found, ctx)
        return found

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run a command. A wrong option or argument is one line, as all that goes wrong is."""
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **options)
        try:
            code = run(*args, standalone_mode=False, **options)
        except typer.Abort:
            code = failed("stopped", INTERRUPTED).exit_code
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()  # type: ignore[attr-defined]
                code = FAILED
            else:
                code = failed(_wrong_usage(error), FAILED).exit_code
        sys.exit(code if isinstance(code, int) else 0)


def _wrong_usage(error: Any) -> str:
    """What is wrong with what was typed, and the command that says what may be typed."""
    path = getattr(getattr(error, "ctx", None), "command_path", "") or "censnet"
    text = " ".join(error.format_message().split("\n")).rstrip(".")
    for theirs, ours in WORDS.items():
        text = text.replace(theirs, ours)
    return f"{text[:1].lower()}{text[1:]}: {path} --help lists what can be given"


def _name_values(params: Sequence[Any], ctx: Any) -> None:
    for param in params:
        if param.metavar is not None:
            continue
        if param.param_type_name == "argument":
            param.metavar = param.name.upper()
        elif param.is_flag:
            param.metavar = ""  # nothing is written after it
        else:
            kind = param.type.name if hasattr(param, "type") else param.display_type(ctx)
            plain = kind.strip("<>").removeprefix("list[").rstrip("]").removesuffix(" range")
            param.metavar = NAMES.get(plain)
