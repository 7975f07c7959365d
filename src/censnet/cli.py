"""The command line: parse, call one function, print."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from censnet.data import sources
from censnet.data.errors import DataError, quote
from censnet.data.report import inspect_data
from censnet.data.screen import Screen, dataset_card, datasets_table

app = typer.Typer(
    help="Co-embed the nodes and edges of graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

WRONG, FAILED = 1, 2  # exit codes: the data have problems; the command could not be done


@app.callback()
def main() -> None:
    """Co-embed the nodes and edges of graphs."""


@contextmanager
def one_line() -> Iterator[None]:
    """What is wrong with the user's data is said in one line, without a traceback; the report has the warnings."""
    logger = logging.getLogger("censnet")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse")  # torch: sparse tensors are in beta
            yield
    except (ValueError, ImportError, OSError) as error:
        text = " ".join(str(error).split())
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {_escape(text)}")
        raise typer.Exit(FAILED) from None
    finally:
        logger.setLevel(level)


@app.command()
def inspect(
    data: Annotated[str, typer.Argument(help="A built-in set, a CSV or Parquet file, or a folder of tables.")],
    target: Annotated[
        list[str] | None, typer.Option(help="node:COLUMN, edge:COLUMN, graph:COLUMN[,COLUMN] or link; may be repeated.")
    ] = None,
    splits: Annotated[Path | None, typer.Option(help="A file of splits to audit, as splits.csv of a run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 1 if there is a problem.")] = False,
) -> None:
    """Say what is in a data set, what each column became, what training will cost, and what is wrong."""
    with one_line():
        report = inspect_data(data, target, splits)
    if as_json:
        typer.echo(report.model_dump_json(indent=1))
    else:
        Console(highlight=False).print(Screen(report))
    if strict and report.problems:
        raise typer.Exit(WRONG)


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="One set, for more about it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """List the built-in data sets: their size, licence, numbers, and where each was found."""
    with one_line():
        if name is not None and name not in sources.DATASETS:
            raise DataError(f"there is no data set {quote(name)} (there are {', '.join(sources.DATASETS)})")
        rows = [(info, sources.where(info.name)) for info in sources.DATASETS.values() if name in (None, info.name)]
    if as_json:
        typer.echo(json.dumps([{**asdict(info), "found": place} for info, place in rows], indent=1, default=str))
    elif name is None:
        Console(highlight=False).print(datasets_table(rows))
    else:
        Console(highlight=False).print(dataset_card(*rows[0]))


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


if __name__ == "__main__":
    sys.exit(app())
