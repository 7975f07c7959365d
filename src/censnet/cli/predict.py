"""`censnet predict`, `censnet embed` and `censnet evaluate`; each file is written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from censnet.cli.messages import echo, echo_json, echo_table, show_notes
from censnet.cli.options import (
    Cost,
    Coverage,
    Data,
    DataOrSmiles,
    Device,
    History,
    Json,
    Recall,
    RunDir,
    Strict,
    keep_heap,
    parse_cost,
    path_option,
)
from censnet.errors import ArgumentError, RunError, shorten
from censnet.text import count

if TYPE_CHECKING:
    import pandas as pd

    from censnet.runs import Run


class Keep(Enum):
    """The columns of the data that stand beside a prediction."""

    all = "all"
    ids = "ids"


class Engine(Enum):
    """The engine that computes predictions, in the place of torch in memory."""

    duckdb = "duckdb"
    spark = "spark"


class Format(Enum):
    """The file format of embeddings."""

    parquet = "parquet"
    csv = "csv"


def predict(
    run: RunDir,
    data: DataOrSmiles,
    to: Annotated[Path | None, path_option("A .csv or .parquet file; a folder, if there are several levels.")] = None,
    level: Annotated[
        str | None, typer.Option(help="node (atom), edge (bond), graph or link, where the run has several.")
    ] = None,
    pairs: Annotated[Path | None, typer.Option(help="A table of source and target: score these pairs.")] = None,
    top: Annotated[int | None, typer.Option(min=1, help="The N most probable missing links.")] = None,
    keep: Annotated[Keep, typer.Option(help="Columns of the data to repeat beside the predictions.")] = Keep.all,
    known_labels: Annotated[
        bool,
        typer.Option(
            "--known-labels/--no-known-labels", help="Whether labels in the data help to predict the other rows."
        ),
    ] = True,
    coverage: Coverage = None,
    history: History = None,
    engine: Annotated[
        Engine | None,
        typer.Option(help="Compute on tables on a disk: for graphs past memory (duckdb), or many machines."),
    ] = None,
    memory_limit: Annotated[str, typer.Option(metavar="SIZE", help="Of the engine duckdb.")] = "4GiB",
    master: Annotated[
        str | None, typer.Option(help="Of the engine spark: local[2], spark://host:7077; local[*] if not given.")
    ] = None,
    spill: Annotated[
        Path | None, path_option("A folder with room for the tables of the engine; that of --to if not given.")
    ] = None,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Predict classes with their probabilities, numbers or links, for each row. CSV on stdout unless --to is given."""
    trained = open_run(run, keeps_heap=engine is None)  # an engine has a limit of memory
    source = one_or_smiles(data)
    if engine is not None:
        unused = {"--pairs": pairs, "--top": top, "--history": history, "--device": device}
        options = {"keep": keep.value, "known_labels": known_labels, "coverage": coverage, "strict": strict}
        predict_by_engine(
            trained, source, to, level, unused, engine=engine.value, memory_limit=memory_limit,
            master=master, spill=spill, **options,
        )  # fmt: skip
        return
    from censnet.data.tables.files import to_csv
    from censnet.runs.links import check_link_options

    check_link_options(trained.levels if level is None else [level], pairs, top)
    paths = prediction_files(trained, to, level, links=pairs is not None or top is not None)
    check_outputs([path for path in paths.values() if path is not None], trained, source, pairs)
    found = predict_levels(
        trained, source, list(paths), keep=keep.value, pairs=pairs, top=top, strict=strict, device=device,
        progress=True, known_labels=known_labels, coverage=coverage, history=history,
    )  # fmt: skip
    if to is None:
        echo_table(to_csv(next(iter(found.values())), "predictions"))
        return
    files = {path: found[name] for name, path in paths.items() if path is not None}
    write_tables(files)
    for path, frame in files.items():
        bad = int(frame["error"].notna().sum()) if "error" in frame else 0
        echo(f"{path}: {count(len(frame), 'row')}" + (f", {bad:,} of them with an error" if bad else ""))


def predict_by_engine(
    run: Run, data: str | list[str], to: Path | None, level: str | None, unused: Mapping[str, object], **options: Any
) -> None:
    """Write the predictions that an engine computes; `options` as in `censnet.engines.predict_files`."""
    from censnet.engines import predict_files

    given = next((flag for flag, value in unused.items() if value is not None), None)
    if given is not None:
        raise ArgumentError(f"{given} is given, expected none beside --engine, which does not read it: leave out one")
    if to is None or isinstance(data, list):
        raise ArgumentError(
            "--engine is given without --to or with SMILES, expected tables to read and a file to write"
        )
    paths = prediction_files(run, to, level)
    check_outputs([path for path in paths.values() if path is not None], run, data)
    for name, path in paths.items():
        if path is not None:
            written = predict_files(run, data, path, name, **options)
            bad = f", {written.errors:,} of them with an error" if written.errors else ""
            echo(f"{path}: {count(written.rows, 'row')}{bad}")


def embed(
    run: RunDir,
    data: DataOrSmiles,
    to: Annotated[Path, path_option("The folder for nodes, edges and, for many graphs, graphs.")],
    form: Annotated[Format, typer.Option("--format", help="File format.")] = Format.parquet,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Write the embeddings of nodes, edges and, for many graphs, graphs, beside their ids."""
    source = one_or_smiles(data)
    trained = open_run(run)
    files = write_embeddings(trained, source, to, form.value, strict=strict, device=device, progress=True)
    for path, frame in files.items():
        channels = sum(str(name)[1:].isdigit() for name in frame)
        echo(f"{path}: {count(len(frame), 'row')}, {count(channels, 'channel')}")


def evaluate(
    run: RunDir,
    data: Data,
    coverage: Coverage = None,
    cost: Cost = None,
    recall: Recall = None,
    history: History = None,
    as_json: Json = False,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Score a run on the labels of the data; on the data it was trained on, split by split."""
    costs = parse_cost(cost)
    trained = open_run(run)
    from censnet.cli.render_run import scores_screen

    asked: dict[str, Any] = {} if coverage is None else {"coverage": coverage}
    if costs or recall is not None:
        trained.decide(costs, recall)
    scores = trained.evaluate(data, strict=strict, device=device, progress=True, history=history, **asked)
    if costs or recall is not None:
        trained.save(run)
    if as_json:
        echo_json(scores)
    else:
        echo(scores_screen(trained, scores))


def open_run(run: Path, keeps_heap: bool = True) -> Run:
    """The run to compute with, in a process that shows the notes of the data, and keeps its memory if it is to."""
    show_notes()
    if keeps_heap:
        keep_heap()
    from censnet.runs import load_run

    return load_run(run)


def one_or_smiles(data: list[str]) -> str | list[str]:
    """DATA: one name, or several SMILES."""
    if len(data) == 1:
        return data[0]
    from censnet.data.tables.files import is_there

    found = next((name for name in data if is_there(Path(name))), None)
    if found is not None:
        raise ArgumentError(
            f"DATA are {len(data)}, of which {found} is there: give one file or folder, or SMILES alone"
        )
    return data


def prediction_files(run: Run, to: Path | None, level: str | None, links: bool = False) -> dict[str, Path | None]:
    """Level -> the file of its predictions: the one named, or for several levels one each in a folder; None is stdout.

    Args:
        run: the run that predicts.
        to: a file, or a folder.
        level: the level to predict; all of the run if None.
        links: whether an option was given that makes sense for links alone.
    """
    from censnet.data.tables.files import SUFFIXES

    written = tuple(suffix for suffix in SUFFIXES if not suffix.endswith(".gz"))
    named = run.level_of(level)
    levels = [named] if named is not None else ["link"] if links else run.levels
    if len(levels) == 1:
        if to is not None and not to.name.lower().endswith(written):
            raise RunError(f"{to} is not the name of a table, expected one that ends in {', '.join(written)}")
        return {levels[0]: to}
    if to is None or to.name.lower().endswith(written):
        found = "there is no --to" if to is None else f"{to} is one file"
        raise RunError(f"{found}, expected a folder, or a --level: this run predicts {', '.join(levels)}")
    return {name: to / f"predictions_{name}.csv" for name in levels}


def check_outputs(paths: Iterable[Path], run: Run, data: object, *others: Path | None) -> None:
    """Raise, before anything is computed, where a file to be written is one that is read, or no plain file.

    Args:
        paths: the files to be written.
        run: the run that predicts; its own files are not written over.
        data: as in `Run.predict`.
        others: further files that are read.
    """
    from censnet.data.datasets.download import is_built_in
    from censnet.data.tables.files import MOLECULES, describe_file
    from censnet.data.tables.keys import TABLES
    from censnet.runs.directory import FILES

    named = [each for each in (data, run.config.data) if isinstance(each, str | os.PathLike) and not is_built_in(each)]
    sources = {Path(each).resolve() for each in named if os.fspath(each)}  # to predict, and those of the training
    read = sources | {path.resolve() for path in others if path is not None}
    for path in paths:
        try:
            is_link, there = path.is_symlink(), path.exists()
        except OSError as error:
            raise RunError(f"{shorten(path)} cannot be written: {error.strerror}: give another name") from None
        if is_link:
            raise RunError(f"{path} is a link to {os.readlink(path)}, expected a file of its own: give another name")
        if there and not path.is_file():
            raise RunError(f"{path} is {describe_file(path)}, expected a file, or none yet: give another name")
        place = path.resolve()
        if place in read:
            raise RunError(f"{path} is what is read, and would be written over: give another name")
        if run.path is not None and place.parent == run.path.resolve() and FILES.fullmatch(place.name):
            raise RunError(f"{path} is a file of the run, and would be written over: give another name")
        table = place.name.split(".")[0].lower()
        known = (*TABLES, *MOLECULES)
        if place.parent in sources and (table in known or f"{table}s" in known):
            raise RunError(f"{path} would be read as a table of the data in {place.parent}: give another folder")


def predict_levels(
    run: Run,
    data: object,
    levels: Sequence[str],
    *,
    pairs: str | os.PathLike[str] | None = None,
    strict: bool = False,
    **options: Any,
) -> dict[str, pd.DataFrame]:
    """Level -> predictions; the data are read once.

    Args:
        run: the run that predicts.
        data, strict, options: as in `Run.predict`.
        levels: of the predictions.
        pairs: a table of pairs to score.
    """
    from censnet.data.tables.files import read_table

    scored = None if pairs is None else read_table(pairs, list(run.schema.edges.keys.values()))
    dataset = run.read(data, strict=strict) if options.get("history") is None else data
    if options.get("history") is not None:
        options["strict"] = strict
    return {level: run.predict(dataset, level, pairs=scored, **options) for level in levels}


def write_embeddings(
    run: Run,
    data: object,
    to: Path,
    form: Literal["parquet", "csv"] = "parquet",
    **options: Any,
) -> dict[Path, pd.DataFrame]:
    """Write the tables `nodes`, `edges` and, for many graphs, `graphs` to a folder; `options` as in `Run.embed`."""
    from censnet.data.tables.files import is_there
    from censnet.data.tables.keys import TABLES

    if is_there(to) and not to.is_dir():
        raise RunError(f"{to} is a file, expected a folder for nodes.{form}, edges.{form} and the like")
    check_outputs([to / f"{table}.{form}" for table in TABLES], run, data)
    found = run.embed(data, **options)
    files = {to / f"{table}.{form}": frame for table, frame in found._asdict().items() if frame is not None}
    write_tables(files)
    return files


def write_tables(files: dict[Path, pd.DataFrame]) -> None:
    """Write tables, and the folders they are to be in."""
    from censnet.data.tables.files import write_table

    for path, frame in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{path.parent} cannot be made: {error.strerror}: give another folder") from None
        write_table(frame, path)
