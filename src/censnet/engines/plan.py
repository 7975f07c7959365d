"""The plan of the predictions of one level: read the tables, compute each model, decode its outputs, write them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from censnet.data.load import find_roles
from censnet.data.tables.keys import says_split
from censnet.data.tables.schema import TableSchema
from censnet.engines.decoding import NUMBER, Decode
from censnet.engines.engine import ROW, Engine
from censnet.engines.files import TableFile, open_tables
from censnet.engines.graph_tables import PART, GraphReader, ReadGraph, UserTable
from censnet.engines.network import Outputs, Prepare, model_steps, run_model, run_outputs
from censnet.engines.pooling import pool_graphs
from censnet.engines.triangles import add_products, add_triangles
from censnet.engines.unusual import first_unusual
from censnet.errors import DataError
from censnet.levels import Level
from censnet.nn.encoder import CensNet
from censnet.nn.heads import GraphHead
from censnet.option_names import name_option
from censnet.runs.config import GraphSize
from censnet.runs.known_labels_in_prediction import FOLDS
from censnet.runs.predictor import Keep, Predictor
from censnet.runs.uncertainty import Uncertainty
from censnet.text import count, plural

logger = logging.getLogger(__name__)


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


@dataclass
class LevelPlan:
    """The predictions of one level, as steps of an engine.

    Args:
        run: a trained run.
        level: node, edge or graph.
        engine: that computes them.
        known_labels, coverage: as in `Run.predict`.
    """

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
        # many graphs are shown no labels: their rows have no edge to each other
        hidden = self._hidden_folds(read) if shown and Level.GRAPH not in read.levels else [None]
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
        kept = _kept_columns(run.schema.table(level.table), columns, keep)
        names = [*decode.names, *(["error"] if table.num_bad else [])]
        rows = self.engine.write(
            to, self._made_rows if file is None else file, kept, self._results(table, len(decode.names)), names
        )
        return Written(to, rows, table.num_bad)

    def _reader(self, files: Mapping[str, TableFile]) -> GraphReader:
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

    def _labeled(self, read: ReadGraph) -> list[str]:
        """The levels whose tables have labels."""
        keys = {Level.NODE: read.graph.node_keys, Level.EDGE: read.graph.edge_keys}
        return [level for level, names in keys.items() if PART.name in names]

    def _hidden_folds(self, read: ReadGraph) -> list[int | None]:
        """The folds to hide, one in each pass: those with rows of the level, where its labels are inputs."""
        if self.level not in self.run.inputs.levels:
            return [FOLDS]
        if self.level not in self._labeled(read):
            return [0]
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
            prepare = Prepare(model.encoder, run.inputs, run.schema, fold, self._labeled(read))
            steps, name = model_steps(model, prepare), f"m{member}_{fold or 0}"
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


def _kept_columns(fitted: TableSchema, columns: Sequence[str], keep: Keep) -> list[str]:
    """The user's columns that are repeated: all, or those that say which row it is."""
    if keep == "all":
        return list(columns)
    named: Collection[str] = {
        *fitted.keys.values(), *(c.name for c in fitted.columns if c.kind == "id" and not says_split(c.name))
    }  # fmt: skip
    return [column for column in columns if column in named] or list(columns[:1])
