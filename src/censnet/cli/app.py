"""The command `censnet`: its commands, and mistakes in what was typed as one line.

Modules of the commands import what is heavy inside their functions, so that `--help` needs no torch.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from censnet.cli.compare import compare
from censnet.cli.experiments import datasets, reproduce
from censnet.cli.explain import explain
from censnet.cli.inspect import inspect
from censnet.cli.messages import FAILED, INTERRUPTED, echo, failed, report_errors
from censnet.cli.predict import embed, evaluate, predict
from censnet.cli.report import report
from censnet.cli.serve import serve
from censnet.cli.settings import settings
from censnet.cli.stream import stream
from censnet.cli.train import train

NAMES = {"int": "N", "float": "X", "str": "TEXT", "path": "PATH"}  # Python's name of a type -> placeholder in the help
WORDS = {  # of pydantic, by which typer checks values -> ours
    ": Value error, ": ": ",
    ": Input should be ": ": expected ",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid integer, unable to parse string as an integer": "a whole number",
}


class Commands(TyperGroup):
    """The group of commands: placeholders in the help, `--debug` anywhere, errors in one line."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command whose help shows placeholders rather than Python types."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _set_placeholders(command.get_params(ctx), ctx)
        return command

    def get_params(self, ctx: Any) -> Any:
        found = super().get_params(ctx)
        _set_placeholders(found, ctx)
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what it raises is reported in one line."""
        with report_errors(debug=ctx.params["debug"]):
            return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, *rest: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Parse and run. A wrong option or argument is one line, too."""
        run: Any = super().main
        typed = _debug_first(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return run(typed, *rest, standalone_mode=False, **options)
        try:
            code = run(typed, *rest, standalone_mode=False, **options)
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
        code = code if isinstance(code, int) else 0
        if "torch.distributed" in sys.modules:
            _end_at_once(code)
        sys.exit(code)


def _end_at_once(code: int) -> None:
    """End one of several processes: at a usual end torch's threads may abort it, also after all work is done."""
    from censnet.training.processes import count

    if count() > 1:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _debug_first(args: Sequence[str]) -> list[str]:
    """The arguments with `--debug` in front, wherever it was typed.

    >>> _debug_first(["train", "karate", "--debug"])
    ['--debug', 'train', 'karate']
    """
    words = list(args)
    end = words.index("--") if "--" in words else len(words)
    if "--debug" not in words[:end]:
        return words
    return ["--debug", *(word for word in words[:end] if word != "--debug"), *words[end:]]


def _wrong_usage(error: Any) -> str:
    """The mistake in what was typed, and the command that lists what may be typed."""
    path = getattr(getattr(error, "ctx", None), "command_path", "") or "censnet"
    text = " ".join(error.format_message().split("\n")).rstrip(".")
    for theirs, ours in WORDS.items():
        text = text.replace(theirs, ours)
    return f"{text[:1].lower()}{text[1:]}: {path} --help lists what can be given"


def _set_placeholders(params: Sequence[Any], ctx: Any) -> None:
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


app = typer.Typer(
    cls=Commands,
    help="Co-embed the nodes and edges of graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        try:
            found = version("censnet")
        except PackageNotFoundError:
            found = "is not installed, but run from its source"
        echo(f"censnet {found}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Co-embed the nodes and edges of graphs."""


for command in (
    train,
    predict,
    stream,
    embed,
    evaluate,
    compare,
    explain,
    report,
    serve,
    settings,
    inspect,
    datasets,
    reproduce,
):
    app.command()(command)
