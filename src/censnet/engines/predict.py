"""Predictions of a run by an engine: from files to a file, with no table whole in memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from censnet.data.datasets import download as sources
from censnet.data.tables.files import check_written_name
from censnet.engines.duckdb_engine import DuckDBEngine
from censnet.engines.engine import Engine
from censnet.engines.plan import LevelPlan, Written
from censnet.engines.spark_engine import SparkEngine
from censnet.engines.support import check_support
from censnet.errors import ArgumentError, DataError, quote
from censnet.levels import Level
from censnet.option_names import name_option
from censnet.runs.predictor import Keep, Predictor
from censnet.runs.uncertainty import check_coverage

ENGINES = ("duckdb", "spark")
MEMORY_LIMIT = "4GiB"


def predict_files(
    run: Predictor,
    data: str | os.PathLike[str],
    to: str | os.PathLike[str],
    level: str | None = None,
    *,
    engine: str = "duckdb",
    keep: Keep = "all",
    known_labels: bool = True,
    coverage: float | None = None,
    strict: bool = False,
    memory_limit: str = MEMORY_LIMIT,
    master: str | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> Written:
    """Predict each row of the user's table, as `Run.predict` does, on graphs that need not fit into memory.

    Args:
        run: a trained run.
        data: a CSV or Parquet file of edges, or a folder of tables.
        to: a .csv, .tsv or .parquet file.
        level: the level to predict, where the run has several: node or edge.
        engine: that computes it: duckdb, on one machine, or spark, on a cluster.
        keep, known_labels, coverage, strict: as in `Run.predict`.
        memory_limit: of the engine duckdb.
        master: of Spark, such as local[2] or spark://host:7077; that of the session which is there already if None.
        spill: a folder with room for the tables of the computation, which all machines see; that of `to` if None.
    """
    source, target = Path(data), Path(to)
    if engine not in ENGINES:
        raise ArgumentError(f"engine is {quote(engine)}, expected one of {', '.join(ENGINES)}")
    if sources.is_built_in(data) or not source.exists():
        raise DataError(f"there is no such file or folder, expected one: engine {engine} reads tables", str(data))
    if level is None and len(run.levels) > 1:
        raise ArgumentError(f"level is not given, expected one of {', '.join(run.levels)}: this run predicts each")
    level = level or run.levels[0]
    if level not in run.levels:
        raise ArgumentError(f"level is {quote(level)}, expected {' or '.join(run.levels)}: this run predicts no other")
    check_written_name(target)
    check_support(run, level, engine)
    if coverage is not None:
        check_coverage(coverage, run.uncertainty, level, run.targets[level])
    with _folder(target, spill) as folder:
        tables = folder / "tables"
        computed: Engine = DuckDBEngine(tables, memory_limit) if engine == "duckdb" else SparkEngine(tables, master)
        try:
            plan = LevelPlan(run, Level(level), computed, known_labels, coverage)
            return plan.write(source, target, folder, keep, strict)
        finally:
            computed.close()


@contextmanager
def _folder(to: Path, spill: str | os.PathLike[str] | None) -> Iterator[Path]:
    """A folder for the tables of a computation, which is removed at its end."""
    place = to.resolve().parent if spill is None else Path(spill)
    try:
        place.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".censnet-", dir=place))
        (folder / "tables").mkdir()
    except OSError as error:
        raise DataError(
            f"cannot be written to: {error.strerror}: name another by {name_option('--spill')}", str(place)
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
