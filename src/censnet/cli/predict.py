"""`censnet predict`, `censnet embed` and `censnet evaluate`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from censnet.cli.heap import keep_heap
from censnet.cli.messages import echo, echo_json, echo_table, show_notes
from censnet.cli.options import Data, DataOrSmiles, Device, Json, RunDir, Strict, named_path
from censnet.errors import ArgumentError
from censnet.text import count

if TYPE_CHECKING:
    from censnet.runs import Run


class Keep(Enum):
    """The columns of the data that stand beside a prediction."""

    all = "all"
    ids = "ids"


class Format(Enum):
    """The file format of embeddings."""

    parquet = "parquet"
    csv = "csv"


def predict(
    run: RunDir,
    data: DataOrSmiles,
    to: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="PATH", help="A .csv or .parquet file; a folder, if there are several levels."
        ),
    ] = None,
    level: Annotated[
        str | None, typer.Option(help="node (atom), edge (bond), graph or link, where the run has several.")
    ] = None,
    pairs: Annotated[Path | None, typer.Option(help="A table of source and target: score these pairs.")] = None,
    top: Annotated[int | None, typer.Option(min=1, help="The N most probable missing links.")] = None,
    keep: Annotated[Keep, typer.Option(help="Columns of the data to repeat beside the predictions.")] = Keep.all,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Predict classes with their probabilities, numbers or links, for each row. CSV on stdout unless --to is given."""
    trained, source = _open_run(run), _one_or_smiles(data)
    from censnet.cli.outputs import check_outputs, predict_levels, prediction_files, write_tables
    from censnet.data.tables.files import to_csv

    paths = prediction_files(trained, to, level, links=pairs is not None or top is not None)
    check_outputs([path for path in paths.values() if path is not None], trained, source, pairs)
    found = predict_levels(
        trained, source, list(paths), keep=keep.value, pairs=pairs, top=top, strict=strict, device=device, progress=True
    )
    if to is None:
        echo_table(to_csv(next(iter(found.values())), "predictions"))
        return
    files = {path: found[name] for name, path in paths.items() if path is not None}
    write_tables(files)
    for path, frame in files.items():
        bad = int(frame["error"].notna().sum()) if "error" in frame else 0
        echo(f"{path}: {count(len(frame), 'row')}" + (f", {bad:,} of them with an error" if bad else ""))


def embed(
    run: RunDir,
    data: DataOrSmiles,
    to: Annotated[
        Path,
        typer.Option(
            parser=named_path, metavar="PATH", help="The folder for nodes, edges and, for many graphs, graphs."
        ),
    ],
    form: Annotated[Format, typer.Option("--format", help="File format.")] = Format.parquet,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Write the embeddings of nodes, edges and, for many graphs, graphs, beside their ids."""
    source = _one_or_smiles(data)
    trained = _open_run(run)
    from censnet.cli.outputs import write_embeddings

    files = write_embeddings(trained, source, to, form.value, strict=strict, device=device, progress=True)
    for path, frame in files.items():
        channels = sum(str(name)[1:].isdigit() for name in frame)
        echo(f"{path}: {count(len(frame), 'row')}, {count(channels, 'channel')}")


def evaluate(
    run: RunDir,
    data: Data,
    as_json: Json = False,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Score a run on the labels of the data; on the data it was trained on, split by split."""
    trained = _open_run(run)
    from censnet.cli.render_run import scores_screen

    scores = trained.evaluate(data, strict=strict, device=device, progress=True)
    if as_json:
        echo_json(scores)
    else:
        echo(scores_screen(trained, scores))


def _open_run(run: Path) -> Run:
    """The run to compute with, in a process that keeps its memory and shows the notes of the data."""
    show_notes()
    keep_heap()
    from censnet.runs import load_run

    return load_run(run)


def _one_or_smiles(data: list[str]) -> str | list[str]:
    """DATA: one name, or several SMILES."""
    if len(data) == 1:
        return data[0]
    found = next((name for name in data if Path(name).exists()), None)
    if found is not None:
        raise ArgumentError(
            f"DATA are {len(data)}, of which {found} is there: give one file or folder, or SMILES alone"
        )
    return data
