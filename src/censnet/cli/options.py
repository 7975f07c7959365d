"""Arguments and options that several commands share, with their help, and the memory that these commands keep."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from censnet.errors import ArgumentError

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # names and numbers of malloc.h


def named_path(text: str | Path) -> Path:
    """A path as it was typed; an empty one, as of a variable that is not set, is not the working directory."""
    if not str(text).strip() or text == "":
        raise typer.BadParameter("it is empty, expected the name of a file or a folder")
    return Path(text)


def path_option(help_text: str, metavar: str = "PATH") -> Any:
    """An option that is a path to write to, or to a folder of results."""
    return typer.Option(parser=named_path, metavar=metavar, help=help_text)


Data = Annotated[str, typer.Argument(help="A built-in set, a CSV, Parquet, .smi or .sdf file, or a folder of tables.")]
DataOrSmiles = Annotated[
    list[str],
    typer.Argument(metavar="DATA...", help="A built-in set, a file or a folder; of molecules also one SMILES or more."),
]
RunDir = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, made by `censnet train`.")]
Target = Annotated[
    list[str] | None,
    typer.Option(
        help="node:COLUMN, edge:COLUMN, graph:COLUMN[,COLUMN] or link; repeatable. Of molecules also atom:COLUMN and "
        "bond:COLUMN. COLUMN=KIND forces the task type (binary, binary:POSITIVE_CLASS, multiclass, regression, "
        'oriented), graph:* is all columns left, graph:"a, b" one name.'
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=KIND", help="Type or role of a column: number, category, drop, id...; repeatable."),
]
Preset = Annotated[str, typer.Option(help="strong, paper or released.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; the best there is if not given.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Such as model.hidden=64; `censnet settings` lists all."),
]
Directed = Annotated[
    bool | None,
    typer.Option("--directed/--undirected", help="Whether edges go from source to target, whatever was found."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print warnings and errors alone.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail at the first row that cannot be used.")]
Coverage = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Of labels in the interval of a number, or the set of classes; such as 0.9."),
]
Cost = Annotated[
    str | None,
    typer.Option(
        metavar="fp=X,fn=Y",
        help="Of two classes: costs of a false positive and a false negative, by which a threshold is chosen on "
        "validation rows, and stored.",
    ),
]
Recall = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Of two classes: choose the highest threshold that finds this share, instead."),
]
History = Annotated[
    str | None, typer.Option(metavar="DATA", help="Of a causal model: the edges before those of DATA, as context.")
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def given_options(context: typer.Context) -> dict[str, str]:
    """Parameters that were typed, rather than left at their default: name -> spelling, such as out -> --out."""
    spelled = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    return {
        name: spelled[name]
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }


def parse_overrides(texts: Sequence[str] | None) -> dict[str, str]:
    """The values of `--column`: column -> type or role.

    >>> parse_overrides(["amount=number", "edges.memo=drop"])
    {'amount': 'number', 'edges.memo': 'drop'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        column, kind = (part.strip() for part in text.rpartition("=")[::2])
        if not column or not kind:
            raise ArgumentError(f"--column has {text!r}, expected COLUMN=KIND, such as amount=number or memo=drop")
        if column in found:
            raise ArgumentError(f"--column has {column}={found[column]} and {column}={kind}, expected each column once")
        found[column] = kind
    return found


def parse_cost(text: str | None) -> dict[str, float] | None:
    """The value of `--cost`.

    >>> parse_cost("fp=1,fn=20")
    {'fp': 1.0, 'fn': 20.0}
    """
    if text is None:
        return None
    try:
        pairs = [part.split("=") for part in text.split(",")]
        found = {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        found = {}
    if set(found) != {"fp", "fn"} or not all(0 < value < float("inf") for value in found.values()):
        raise ArgumentError(f"--cost is {text!r}, expected fp=X,fn=Y with numbers above 0, such as fp=1,fn=20")
    return found


def keep_heap() -> bool:
    """Let this process keep the memory that it has freed, and say whether that could be arranged.

    The C library gives tensors of more than 32 MB back to the system as soon as they are freed, and the system hands
    out zeroed pages one by one when the next is made: at a million edges that takes longer than the arithmetic.
    Afterwards freed memory is used again, and the process keeps its largest size. Only for glibc, and for the whole
    process, so a program calls it and the library never does.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, -1))
