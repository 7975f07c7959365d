"""`censnet datasets` and `censnet reproduce`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from censnet.cli.messages import echo, echo_json, show_notes
from censnet.cli.options import Device, Json, given_options, keep_heap, path_option
from censnet.errors import ArgumentError, DataError, quote

PAGES = {"table", "results", "to"}  # options of `reproduce pages`


def datasets(
    name: Annotated[str | None, typer.Argument(help="One set, for more about it.")] = None,
    as_json: Json = False,
) -> None:
    """List the built-in data sets with their size, license, counts and location."""
    from censnet.cli.render_datasets import dataset_card, datasets_table
    from censnet.data.datasets.download import DATASETS, where

    if name is not None and name not in DATASETS:
        raise DataError(f"there is no data set {quote(name)} (there are {', '.join(DATASETS)})")
    rows = [(info, where(info.name)) for info in DATASETS.values() if name in (None, info.name)]
    if as_json:
        echo_json([{**asdict(info), "found": path} for info, path in rows])
    else:
        echo(datasets_table(rows) if name is None else dataset_card(*rows[0]))


def reproduce(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(
            help="The paper's table1, table2, table3, figure2 or speed; ours: nodes, molecules, links or edges; or "
            "pages, which writes the pages of results from the records."
        ),
    ],
    cell: Annotated[list[str] | None, typer.Option(help="Such as cora-3; all of the table if not given.")] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Such as gcn; those of the paper's table by default.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; as in the spec of the method by default.")] = None,
    first: Annotated[int | None, typer.Option(help="The first seed; as in the spec by default.")] = None,
    results: Annotated[Path, typer.Option(help="The folder of records; recorded seeds are not trained again.")] = Path(
        "results"
    ),
    to: Annotated[Path, path_option("The folder that pages are written to.")] = Path("docs"),
    device: Device = None,
    list_methods: Annotated[
        bool, typer.Option("--list-methods", help="List the methods of the table, and stop.")
    ] = False,
) -> None:
    """Train the methods of a table, add a record for each seed, and compare with the published numbers."""
    given = given_options(context)
    if table == "pages":
        others = [option for name, option in given.items() if name not in PAGES]
        if others:
            raise ArgumentError(f"{', '.join(others)} cannot be given with pages, which trains nothing")
        from censnet_experiments.pages import write_pages

        for path in write_pages(results, to):
            echo(str(path))
        return
    if "to" in given:
        raise ArgumentError(f"--to cannot be given with {quote(table)}: it is the folder of `censnet reproduce pages`")
    show_notes()
    keep_heap()
    from censnet.cli.render_experiments import comparison, methods_table
    from censnet_experiments.records import read_all
    from censnet_experiments.runner import FIGURES, reproduce
    from censnet_experiments.spec import load_specs

    if list_methods:
        echo(methods_table(load_specs(FIGURES.get(table, (table,))[0]).values()))
        return
    before = sum(1 for _ in read_all(results))
    asked = reproduce(table, cell, method, seeds, first, results, device)
    records = list(read_all(results))
    echo(comparison(asked, records))
    if table in FIGURES:
        from censnet_experiments.plots import figure2, save_figure

        save_figure(figure2(records), results / "figure2.svg")
        echo(f"{results / 'figure2.svg'} has the figure")
    if len(records) == before:
        echo(f"{results} had all of this already: --results with another folder trains it again, --first adds seeds")
