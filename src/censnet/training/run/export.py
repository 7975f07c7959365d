"""Predictions and embeddings as files, each of them whole or not there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from censnet.data.tables.files import SUFFIXES, read_table, write_table
from censnet.data.tables.targets import table_of
from censnet.training.run.checkpoint import RunError
from censnet.training.run.links import check_one
from censnet.training.run.run import Keep, Run

WRITTEN = tuple(suffix for suffix in SUFFIXES if not suffix.endswith(".gz"))


def prediction_places(run: Run, to: Path | None, level: str | None, links: bool = False) -> dict[str, Path | None]:
    """Level -> the file of its answers: the one named, or for several levels one each in a folder; None is no file.

    Args:
        run: who answers.
        to: a file, or a folder.
        level: the level that is asked for; all if None.
        links: whether what is asked for makes sense for links alone.
    """
    levels = [level] if level is not None else ["link"] if links else run.levels
    if len(levels) == 1:
        if to is not None and not to.name.lower().endswith(WRITTEN):
            raise RunError(f"{to} is not the name of a table, expected one that ends in {', '.join(WRITTEN)}")
        return {levels[0]: to}
    if to is None or to.name.lower().endswith(WRITTEN):
        found = "there is no --to" if to is None else f"{to} is one file"
        raise RunError(f"{found}, expected a folder, or a --level: this run answers for {', '.join(levels)}")
    return {name: to / f"predictions_{name}.csv" for name in levels}


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
    """Level -> answers; the data are read once.

    Args:
        run: who answers.
        levels: what for.
        data, keep, top, strict, device, progress: as in `Run.predict`.
        pairs: a table of pairs to judge.
    """
    check_one(pairs, top)
    judged = None if pairs is None else read_table(pairs, list(run.schema.edges.keys.values()))
    dataset = run.read(data, strict=strict)
    return {
        level: run.predict(dataset, level, keep=keep, pairs=judged, top=top, device=device, progress=progress)
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
    if to.exists() and not to.is_dir():
        raise RunError(f"{to} is a file, expected a folder for nodes.{form}, edges.{form} and the like")
    found = run.embed(data, strict=strict, device=device, progress=progress)
    tables = {"node": found.nodes, "edge": found.edges, "graph": found.graphs}
    files = {to / f"{table_of(level)}.{form}": table for level, table in tables.items() if table is not None}
    write_tables(files)
    return files


def write_tables(files: dict[Path, pd.DataFrame]) -> None:
    """Write tables, and the folders they are to be in."""
    for path, frame in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(frame, path)
