"""`censnet explain`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from censnet.cli.messages import echo
from censnet.cli.options import DataOrSmiles, RunDir, Strict, path_option
from censnet.cli.predict import one_or_smiles, open_run, write_tables
from censnet.errors import ArgumentError, RunError
from censnet.text import count


class Order(Enum):
    """The quantity by which the rows of --top are ranked."""

    score = "score"
    loss = "loss"


def explain(
    run: RunDir,
    data: DataOrSmiles,
    row: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="A row by its id, such as a7, or a7,a12 for an edge or link; #3 is row 3; repeatable."
        ),
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="The N rows of the highest score, or loss.")] = None,
    by: Annotated[Order, typer.Option(help="Order of --top: the score, or the loss.")] = Order.score,
    target: Annotated[str | None, typer.Option(help="The column, where the run predicts several.")] = None,
    level: Annotated[
        str | None, typer.Option(help="node (atom), edge (bond), graph or link, where the run has several.")
    ] = None,
    to: Annotated[
        Path | None, path_option("The folder for explanations.csv and drawings (SVG, PNG).", metavar="DIR")
    ] = None,
    strict: Strict = False,
) -> None:
    """Explain predictions: what each edge, node and column adds, and how faithful that is."""
    trained, source = open_run(run), one_or_smiles(data)
    from censnet.cli.render_explanation import explanation_screen
    from censnet.runs.draw import draw_explanation
    from censnet.runs.explain import PartNames

    if row is not None and top is not None:
        raise ArgumentError("--row and --top are both given, expected one of them")
    if to is not None and to.exists() and not to.is_dir():
        raise RunError(f"{to} is a file, expected a folder for explanations.csv and drawings")
    dataset = trained.read(source, strict=strict)
    table = trained.explain(dataset, row, top=top, by=by.value, target=target, level=level, progress=True)
    found, names = table.explained, PartNames(dataset, trained.inputs)
    echo(explanation_screen(found, table, molecules=trained.schema.smiles is not None))
    if to is None:
        return
    write_tables({to / "explanations.csv": table})
    for one in found:
        draw_explanation(one, names, to / f"row-{one.row + 1}")
    echo(f"{to}: explanations.csv, and {count(2 * len(found), 'drawing')}")
