"""Files of predictions and embeddings, each written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from censnet.data.datasets.download import is_built_in
from censnet.data.tables.files import MOLECULES, SUFFIXES, describe_file, is_there, read_table, write_table
from censnet.data.tables.keys import TABLES
from censnet.errors import RunError, shorten
from censnet.runs.directory import FILES
from censnet.runs.links import check_exclusive
from censnet.runs.run import Keep, Run

WRITTEN = tuple(suffix for suffix in SUFFIXES if not suffix.endswith(".gz"))


def prediction_files(run: Run, to: Path | None, level: str | None, links: bool = False) -> dict[str, Path | None]:
    """Level -> the file of its predictions: the one named, or for several levels one each in a folder; None is stdout.

    Args:
        run: the run that predicts.
        to: a file, or a folder.
        level: the level to predict; all of the run if None.
        links: whether an option was given that makes sense for links alone.
    """
    named = run.level_of(level)
    levels = [named] if named is not None else ["link"] if links else run.levels
    if len(levels) == 1:
        if to is not None and not to.name.lower().endswith(WRITTEN):
            raise RunError(f"{to} is not the name of a table, expected one that ends in {', '.join(WRITTEN)}")
        return {levels[0]: to}
    if to is None or to.name.lower().endswith(WRITTEN):
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
    keep: Keep = "all",
    pairs: str | os.PathLike[str] | None = None,
    top: int | None = None,
    strict: bool = False,
    device: str | None = None,
    progress: bool = False,
) -> dict[str, pd.DataFrame]:
    """Level -> predictions; the data are read once.

    Args:
        run: the run that predicts.
        levels: of the predictions.
        data, keep, top, strict, device, progress: as in `Run.predict`.
        pairs: a table of pairs to score.
    """
    check_exclusive(pairs, top)
    scored = None if pairs is None else read_table(pairs, list(run.schema.edges.keys.values()))
    dataset = run.read(data, strict=strict)
    return {
        level: run.predict(dataset, level, keep=keep, pairs=scored, top=top, device=device, progress=progress)
        for level in levels
    }


def write_embeddings(
    run: Run,
    data: object,
    to: Path,
    form: Literal["parquet", "csv"] = "parquet",
    *,
    strict: bool = False,
    device: str | None = None,
    progress: bool = False,
) -> dict[Path, pd.DataFrame]:
    """Write the tables `nodes`, `edges` and, for many graphs, `graphs` to a folder."""
    if is_there(to) and not to.is_dir():
        raise RunError(f"{to} is a file, expected a folder for nodes.{form}, edges.{form} and the like")
    check_outputs([to / f"{table}.{form}" for table in TABLES], run, data)
    found = run.embed(data, strict=strict, device=device, progress=progress)
    files = {to / f"{table}.{form}": frame for table, frame in found._asdict().items() if frame is not None}
    write_tables(files)
    return files


def write_tables(files: dict[Path, pd.DataFrame]) -> None:
    """Write tables, and the folders they are to be in."""
    for path, frame in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{path.parent} cannot be made: {error.strerror}: give another folder") from None
        write_table(frame, path)
