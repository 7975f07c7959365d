"""The back end of Spark: each table is a folder of Parquet files, which the executors of a cluster read and write.

A step of a plan ends with a table on a disk that all machines see, so that an executor that is lost costs the work of
its step alone.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from censnet.engines.columns import Group
from censnet.engines.disk import explain_disk
from censnet.engines.engine import BATCH_ROWS, MAPPED, ROW, Work, sum_query
from censnet.engines.files import TableFile, open_parquet
from censnet.engines.writing import rename_kept, write_results
from censnet.errors import CensNetError, MissingDependencyError, RunError, quote
from censnet.isolated import safe_path, this_python


class SparkEngine:
    """Tables of a cluster.

    Args:
        folder: of the tables, which all machines of the cluster see.
        master: such as local[2] or spark://host:7077; that of the session which is there already if None.
    """

    dense = False

    def __init__(self, folder: Path, master: str | None) -> None:
        if shutil.which("java") is None and not Path(os.environ.get("JAVA_HOME", ""), "bin", "java").is_file():
            raise RunError(
                "engine spark needs Java, which is not there: install Java 17, or set JAVA_HOME to its folder"
            )
        try:
            import pyspark
            from pyspark.sql import SparkSession
        except ImportError:
            raise MissingDependencyError(
                "engine spark needs PySpark, which is not installed: pip install censnet[spark]"
            ) from None
        self.folder, self._sources = folder, dict[str, str]()
        self._mine = SparkSession.getActiveSession() is None
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        os.environ.setdefault("PYSPARK_PYTHON", this_python())
        builder = SparkSession.builder.appName("censnet")
        for name, value in _settings(master).items():
            builder = builder.config(name, value)
        if master is not None:
            builder = builder.master(master)
        try:
            with safe_path():  # processes that apply functions import nothing from the working directory
                self._session = builder.getOrCreate()
        except Exception as error:
            raise RunError(
                f"Spark at {quote(master or 'the default master')} does not start: {_first_line(error)}"
            ) from None
        self._session.sparkContext.setLogLevel("ERROR")
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")

    def close(self) -> None:
        """Stop the session, unless it was there before."""
        if self._mine:
            self._session.stop()

    def read(self, name: str, file: TableFile, work: Work, schema: pa.Schema) -> None:
        with self._explained():
            rows = self._session.read.parquet(str(file.path))
            columns = [f"{_row_number(file.path)} AS {ROW}", *map(_quote, file.schema.names)]
            source = f"{name}_source"
            rows.selectExpr(*columns).createOrReplaceTempView(source)
            self._sources[file.name] = source
            self._write(name, self._apply(self._session.table(source), work, schema, in_order=True))

    def query(self, name: str, sql: str) -> None:
        with self._explained():
            self._write(name, self._session.sql(sql))

    def map(self, name: str, sql: str, work: Work, schema: pa.Schema) -> None:
        with self._explained():
            self._write(name, self._apply(self._session.sql(sql), work, schema))

    def sum(self, name: str, sql: str, work: Work, schema: pa.Schema, group: Group) -> None:
        with self._explained():
            self._apply(self._session.sql(sql), work, schema).createOrReplaceTempView(MAPPED)
            self._write(name, self._session.sql(sum_query(schema, group)))

    def fetch(self, sql: str) -> Iterator[pa.RecordBatch]:
        self.query("fetched", sql)
        for path in sorted(self._path("fetched").glob("*.parquet")):  # a sorted query has sorted files
            with open_parquet(path) as file:
                yield from file.iter_batches(BATCH_ROWS)
        self.drop("fetched")

    def drop(self, *names: str) -> None:
        for name in names:
            self._session.catalog.dropTempView(name)
            shutil.rmtree(self._path(name), ignore_errors=True)

    def write(self, to: Path, source: TableFile | str, kept: Sequence[str], results: str, names: Sequence[str]) -> int:
        """Write the user's rows and results behind them: a Parquet file is a folder of some, which executors write."""
        if isinstance(source, str) or to.suffix.lower() not in (".parquet", ".pq"):
            rows = self.fetch_table(source) if isinstance(source, str) else source
            return write_results(to, rows, kept, self.fetch(results), names)
        renamed = rename_kept(kept, names)
        self.query("results", results)
        kinds = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.null(): "STRING"}
        casts = {name: kinds[kind] for name, kind in source.casts.items()}
        columns = [
            f"{f'try_cast(s.{_quote(name)} AS {casts[name]})' if name in casts else f's.{_quote(name)}'} "
            f"AS {_quote(renamed[name])}"
            for name in kept
        ]
        found = [name for name in self._session.table("results").columns if name != ROW]
        columns += [f"p.{one} AS {_quote(name)}" for one, name in zip(found, names, strict=True)]
        partial = to.with_name(f".{to.name}.part")
        with self._explained():
            sql = f"SELECT {', '.join(columns)} FROM {self._sources[source.name]} s JOIN results p ON p.{ROW} = s.{ROW}"
            try:
                self._session.sql(f"{sql} ORDER BY s.{ROW}").write.mode("overwrite").parquet(str(partial))
                shutil.rmtree(to) if to.is_dir() else to.unlink(missing_ok=True)
                partial.rename(to)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return int(self._session.table("results").count())

    def fetch_table(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query, all at once: while they are read, another query is fetched."""
        return iter(self._session.sql(sql).toArrow().to_batches(BATCH_ROWS))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _write(self, name: str, rows: Any) -> None:
        rows.write.mode("overwrite").parquet(str(self._path(name)))
        self._session.read.parquet(str(self._path(name))).createOrReplaceTempView(name)

    def _apply(self, rows: Any, work: Work, schema: pa.Schema, in_order: bool = False) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return rows.mapInArrow(_each_batch(work, in_order), from_arrow_schema(schema))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of Spark as ours."""
        try:
            yield
        except CensNetError:
            raise
        except Exception as error:
            raise explain_spark(error, self.folder) from None


def _each_batch(work: Work, in_order: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function of batches as Spark has it: of their iterator. Where rows are numbered, a batch has rows in a row."""

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in _runs(batch) if in_order else [batch]:
                if part.num_rows:
                    yield work(part)

    return apply


def _runs(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The parts of a batch whose rows follow each other in the file."""
    numbers = batch.column(0).to_numpy()
    bounds = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
    for start, stop in itertools.pairwise(bounds):
        yield batch.slice(start, stop - start)


def _row_number(path: Path) -> str:
    """The number of each row of a file, or of the files of a folder one after the other, in SQL."""
    if not path.is_dir():
        return "_metadata.row_index"
    start, cases = 0, list[str]()
    for part in sorted(path.glob("*.parquet")):
        cases.append(f"WHEN '{part.name}' THEN {start}")
        start += pa.parquet.read_metadata(part).num_rows
    return f"CAST(_metadata.row_index + CASE _metadata.file_name {' '.join(cases)} END AS BIGINT)"


def _settings(master: str | None) -> dict[str, str]:
    """Settings of a session; on one machine a shuffle has no more parts than its cores can use."""
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    }
    cores = re.fullmatch(r"local(?:-cluster)?\[(\d+|\*)(?:,\s*(\d+),\s*\d+)?\]", master or "local[*]")
    if cores is not None:
        number = (os.cpu_count() or 1) if cores[1] == "*" else int(cores[1]) * int(cores[2] or 1)
        found["spark.sql.shuffle.partitions"] = str(2 * number)
    found["spark.executorEnv.PYTHONSAFEPATH"] = "1"
    if "PYTHONPATH" in os.environ:
        found["spark.executorEnv.PYTHONPATH"] = os.environ["PYTHONPATH"]
    return found


def explain_spark(error: Exception, folder: Path) -> Exception:
    """An error of Spark as ours, in one line: the disk, an error of ours in an executor, or what Spark says."""
    text, disk = str(error), explain_disk(error, folder)
    if disk is not error:
        return disk
    for line in text.splitlines():
        name, _, message = line.strip().partition(": ")
        if name.startswith("censnet.errors.") and message:
            return RunError(message)
    return RunError(f"Spark failed: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return quote(lines[0], 200)[1:-1] if lines else type(error).__name__


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
