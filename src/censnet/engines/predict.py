"""Predictions of a run by an engine: from files to a file, with no table whole in memory."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from censnet.data.datasets import download as sources
from censnet.data.load import find_roles
from censnet.data.tables.keys import says_split
from censnet.data.tables.schema import TableSchema
from censnet.engines.decoding import NUMBER, Decode
from censnet.engines.duckdb_engine import DuckDBEngine
from censnet.engines.engine import ROW, Engine
from censnet.engines.files import open_tables
from censnet.engines.graph_tables import PART, GraphReader, ReadGraph, UserTable
from censnet.engines.network import Outputs, Prepare, model_steps, run_model, run_outputs
from censnet.engines.pooling import pool_graphs
from censnet.engines.spark_engine import SparkEngine
from censnet.engines.support import check_support
from censnet.engines.triangles import add_products, add_triangles
from censnet.engines.unusual import first_unusual
from censnet.errors import ArgumentError, DataError, quote
from censnet.levels import Level
from censnet.nn.encoder import CensNet
from censnet.nn.heads import GraphHead
from censnet.option_names import name_option
from censnet.runs.config import GraphSize
from censnet.runs.known_labels_in_prediction import FOLDS
from censnet.runs.predictor import Keep, Predictor
from censnet.runs.uncertainty import Uncertainty, check_coverage
from censnet.text import count, plural

logger = logging.getLogger(__name__)

ENGINES = ("duckdb", "spark")
MEMORY_LIMIT = "4GiB"


class Written(NamedTuple):
    """A file of predictions.

    Args:
        path: of the file.
        rows: in it.
        errors: of these, rows that cannot be used.
    """

    path: Path
    rows: int
    errors: int


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
    check_support(run, level, engine)
    if coverage is not None:
        check_coverage(coverage, run.uncertainty, level, run.targets[level])
    with _folder(target, spill) as folder:
        tables = folder / "tables"
        computed: Engine = DuckDBEngine(tables, memory_limit) if engine == "duckdb" else SparkEngine(tables, master)
        try:
            plan = _Plan(run, Level(level), computed, known_labels, coverage)
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


@dataclass
class _Plan:
    """The predictions of one level."""

    run: Predictor
    level: Level
    engine: Engine
    known_labels: bool
    coverage: float | None

    def write(self, source: Path, to: Path, folder: Path, keep: Keep, strict: bool) -> Written:
        """Read the tables, compute the model, and write the file."""
        run, level = self.run, self.level
        files = open_tables(source, find_roles(None, run.schema), folder)
        read = self._reader(files)()
        if run.inputs.triangles:
            read = replace(read, graph=add_triangles(self.engine, read.graph, run.inputs.directed))
        self._report(read, strict)
        if level not in read.levels:
            raise DataError("the data are one graph, expected many: this run predicts whole graphs")
        table = read.levels[level]
        shown = self._shows(read)
        total = sum(read.levels[Level(each)].count for each in run.inputs.levels)
        share = sum(read.levels[Level(each)].num_known for each in run.inputs.levels) / max(1, total)
        sure = run.uncertainty.where_known(share if shown else 0.0)
        hidden = self._hidden_folds(read) if shown else [None]
        file = files.get(level.table)
        columns = ["graph" if level is Level.GRAPH else "id"] if file is None else file.schema.names
        decode = Decode(
            run.targets[level],
            [model.heads[level] for model in run.models],  # type: ignore[misc]
            sure.of(level, run.targets[level]),
            self.coverage,
            sure.novelty.get(level),
            {*columns, "error", "split"},
        )
        parts = [
            self._member(read, member, hidden, sure if decode.measures and member == 0 else None)
            for member in range(len(run.models))
        ]
        self._decode(read, decode, parts)
        kept = _kept_columns(run.schema.table(level.table), columns, read.ids.get(level.table, {}), keep)
        names = [*decode.names, *(["error"] if table.num_bad else [])]
        rows = self.engine.write(
            to, self._made_rows if file is None else file, kept, self._results(table, len(decode.names)), names
        )
        return Written(to, rows, table.num_bad)

    def _reader(self, files: Any) -> GraphReader:
        run = self.run
        encoder = run.models[0].encoder
        assert isinstance(encoder, CensNet)
        novelty = run.uncertainty.novelty.get(self.level)
        known = (
            {each: run.targets[each] for each in run.inputs.levels}
            if self.known_labels and run.config.shows_labels
            else {}
        )
        letters = encoder.layer_order + "".join(
            getattr(head, "layer_order", "") for head in run.models[0].heads.values()
        )
        undirected = run.config.settings.model.directed is not True
        return GraphReader(
            self.engine,
            files,
            run.schema,
            known,
            shares="E" in letters and undirected,
            least="E" in letters and encoder.variant == "released",
            ranges={} if novelty is None else novelty.ranges,
        )

    def _report(self, read: ReadGraph, strict: bool) -> None:
        """Say how large the graph is, and which rows cannot be used."""
        for level, table in read.levels.items():
            if not table.num_bad or level.table not in read.files:
                continue
            query = f"SELECT error FROM {table.errors} ORDER BY {ROW} LIMIT 1"
            first = next(row["error"] for batch in self.engine.fetch(query) for row in batch.to_pylist())
            if strict:
                raise DataError(first)
            of = f"{table.num_bad:,} of {count(table.num_rows, 'row')}"
            lost = f"{of} cannot be used and {plural(table.num_bad, 'gets')} no result"
            logger.warning("%s: %s; the first: %s", read.files[level.table].name, lost, first)
        if self.run.config.graph_size is not None:
            nodes, edges = (read.levels[level].count for level in (Level.NODE, Level.EDGE))
            graphs = read.levels[Level.GRAPH].count if Level.GRAPH in read.levels else 1
            line, much = GraphSize(nodes=nodes, edges=edges, graphs=graphs).compare(self.run.config.graph_size)
            logger.log(logging.WARNING if much else logging.INFO, "%s", line)

    def _shows(self, read: ReadGraph) -> bool:
        """Whether known labels are shown."""
        run = self.run
        if not (self.known_labels and run.config.shows_labels and run.inputs.levels):
            return False
        total = sum(read.levels[Level(level)].num_known for level in run.inputs.levels)
        if not total:
            logger.info("the data carry no labels; predictions of this model improve with those that are known")
            return False
        logger.info("%s in the data %s context of the predictions for other rows (%s ignores them)",
                    count(total, "known label"), plural(total, "is"), name_option("--no-known-labels"))  # fmt: skip
        return True

    def _hidden_folds(self, read: ReadGraph) -> list[int | None]:
        """The folds to hide, one in each pass: those with rows of the level, where its labels are inputs."""
        if self.level not in self.run.inputs.levels:
            return [FOLDS]
        base = read.graph.nodes if self.level is Level.NODE else read.graph.edges
        query = f"SELECT DISTINCT {PART.name} FROM {base} ORDER BY {PART.name}"
        return [row[PART.name] for batch in self.engine.fetch(query) for row in batch.to_pylist()]

    def _member(self, read: ReadGraph, member: int, hidden: Sequence[int | None], watch: Uncertainty | None) -> str:
        """The query for the outputs of a member, of each row from the pass that predicts it."""
        run, model = self.run, self.run.models[member]
        assert isinstance(model.encoder, CensNet)
        head, found = model.heads[self.level], []
        outputs = Outputs(self.level, head, run.config.settings.model.directed is True, watch)  # type: ignore[arg-type]
        for fold in hidden:
            steps, name = (
                model_steps(model, Prepare(model.encoder, run.inputs, run.schema, fold)),
                f"m{member}_{fold or 0}",
            )
            graph = read.graph
            if run.inputs.triangles and fold is not None and run.inputs.balanced:
                graph = add_products(self.engine, graph, run.inputs, fold, f"{name}_products")
            if isinstance(head, GraphHead):
                embedded = run_model(self.engine, graph, steps, name)
                table = pool_graphs(self.engine, embedded, read.graph_groups, head, watch, f"{name}_out")
                self.engine.drop(*({embedded.nodes, embedded.edges} - {graph.nodes, graph.edges}))
            else:
                table = run_outputs(self.engine, graph, steps, outputs, name)
            mine = f" WHERE {PART.name} = {fold}" if len(hidden) > 1 else ""
            found.append(f"SELECT * FROM {table}{mine}")
        return " UNION ALL ".join(found)

    def _decode(self, read: ReadGraph, decode: Decode, members: Sequence[str]) -> None:
        """The table of predictions, by the number of a node, an edge or a graph."""
        key = str(self.level)
        columns, joins = [f"m0.{key} AS {NUMBER}"], ""
        for member, query in enumerate(members):
            columns += [f"m{member}.out_{place} AS {name}" for place, name in enumerate(decode.outputs(member).columns)]
            joins += f"({query}) m0" if member == 0 else f" JOIN ({query}) m{member} ON m{member}.{key} = m0.{key}"
        if decode.measures:
            columns.append("m0.far_0 AS far_0")
        if decode.novelty is not None:
            columns.append("u.unusual AS unusual")
            joins += f" LEFT JOIN {self.level.table}_unusual u ON u.number = m0.{key}"
            for end, node in (("a", "s"), ("b", "t")) if self.level is Level.EDGE else ():
                columns.append(f"{end}.unusual AS {end}_unusual")
                joins += f" LEFT JOIN nodes_unusual {end} ON {end}.number = m0.{node}"
            if self.level is Level.GRAPH:
                columns += ["m0.nodes AS nodes", "m0.edges AS edges"]
                for level, base in ((Level.NODE, read.graph.nodes), (Level.EDGE, read.graph.edges)):
                    ranges = len(decode.novelty.ranges.get(level.table, []))
                    if ranges:
                        first = first_unusual(self.engine, level.table, base, level, ranges)
                        columns += [f"{first}.u{number} AS {level.table}_u{number}" for number in range(ranges)]
                        joins += f" LEFT JOIN {first} ON {first}.graph = m0.graph"
        self.engine.map("predictions", f"SELECT {', '.join(columns)} FROM {joins}", decode, decode.schema)

    def _results(self, table: UserTable, width: int) -> str:
        """The query for a row for each row of the user's table: predictions, and an error if any row has one."""
        values = [f"r.{ROW}", *(f"p.v{place}" for place in range(width)), *(["e.error"] if table.num_bad else [])]
        errors = f" LEFT JOIN {table.errors} e ON e.{ROW} = r.{ROW}" if table.num_bad else ""
        joined = f"{table.rows} r LEFT JOIN predictions p ON p.{NUMBER} = r.number{errors}"
        return f"SELECT {', '.join(values)} FROM {joined} ORDER BY r.{ROW}"

    @property
    def _made_rows(self) -> str:
        """The query for the nodes that edges name, or the graphs that nodes or edges name, as rows of a table."""
        if self.level is Level.GRAPH:
            return "SELECT id AS graph FROM graph_ids ORDER BY graph_ids.graph"
        return "SELECT id FROM ids ORDER BY node"


def _kept_columns(fitted: TableSchema, columns: Sequence[str], keys: Any, keep: Keep) -> list[str]:
    """The user's columns that are repeated: all, or those that say which row it is."""
    if keep == "all":
        return list(columns)
    named: Collection[str] = {
        *fitted.keys.values(), *(c.name for c in fitted.columns if c.kind == "id" and not says_split(c.name))
    }  # fmt: skip
    return [column for column in columns if column in named] or list(columns[:1])
