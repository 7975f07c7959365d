"""`censnet inspect`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from censnet.cli.messages import WRONG, echo, echo_json
from censnet.cli.options import Column, Data, Json, Target, keep_heap, parse_overrides


class Hydrogens(Enum):
    """Whether hydrogens are atoms of the graph, or counted at their heavy atom."""

    implicit = "implicit"
    explicit = "explicit"


def inspect(
    data: Data,
    target: Target = None,
    splits: Annotated[Path | None, typer.Option(help="A file of splits to audit, such as splits.csv of a run.")] = None,
    column: Column = None,
    hydrogens: Annotated[
        Hydrogens, typer.Option(help="Hydrogens of molecules, as data.hydrogens.")
    ] = Hydrogens.implicit,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="When each edge happened, as for `censnet train`.")
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Train a quick model on a random split and on one by time; show both scores.")
    ] = False,
    as_json: Json = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there is a problem.")] = False,
) -> None:
    """Report on a data set: structure, column types, labels, the cost of training, and an audit for leakage."""
    kept = keep_heap()
    from censnet.cli.render_report import ReportScreen
    from censnet.inspection.cost import assume_heap_kept
    from censnet.pipeline import inspect_data

    if kept:
        assume_heap_kept()  # by `censnet train`
    report = inspect_data(
        data,
        target,
        splits,
        overrides=parse_overrides(column),
        estimate=True,
        hydrogens=hydrogens.value,
        time=time,
        deep=deep,
    )
    if as_json:
        echo_json(report.model_dump())
    else:
        echo(ReportScreen(report))
    if strict and report.problems:
        raise typer.Exit(WRONG)
