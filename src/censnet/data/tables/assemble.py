"""Tables to the structure of a graph: resolve ids, type columns, merge edges that are there twice, order the rows.

Nothing is encoded here: `TableEncoder.encode` takes the statistics of the training rows, once the split is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from censnet.data.tables.columns import CHOICES
from censnet.data.tables.direction import decide_direction, direction_note, oriented_columns
from censnet.data.tables.edge_form import EdgeRows, pair_edges
from censnet.data.tables.files import Tables, check_names
from censnet.data.tables.ids import Keys, resolve_ids
from censnet.data.tables.keys import check_keys, find_keys, table_overrides
from censnet.data.tables.notes import Note, RowError
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.row_order import lay_out
from censnet.data.tables.schema import EdgeForm, Features, Schema, TableSchema, find_graph_columns
from censnet.data.tables.suggest_keys import ends_hint
from censnet.data.tables.table_graph import Assembled, add_default_features
from censnet.data.tables.times import TimeColumn
from censnet.data.tables.typed_table import TypedTable
from censnet.errors import DataError, name_columns
from censnet.levels import Level
from censnet.ops.arrays import Array


def assemble(
    tables: Tables,
    schema: Schema | None,
    targets: Mapping[str, Sequence[str]],
    overrides: Mapping[str, str] | None,
    problems: RowErrors,
    notes: list[Note],
    features: Features = "rich",
    directed: bool | None = None,
    oriented: Sequence[str] = (),
    time: str | None = None,
) -> Assembled:
    """The structure of a graph, or of many, from tables of nodes and edges; without a schema, columns are typed.

    Edges are directed as the user or the source of the tables says. Else they are, unless each is there twice, once in
    each direction, or `oriented` names a target or the user a column that changes sign with the order of the ends.
    `time` is the column of edges that says when each one happened, a feature only if the user said of what kind; a
    given schema says so itself.
    """
    decided = table_overrides(overrides, {t: list(frame.columns) for t, frame in tables.frames().items()}, CHOICES)
    if time is not None and schema is None:
        if time in targets.get("edges", ()):
            raise DataError("is said to be a target and the time of edges, expected one of them", "edges", column=time)
        # later than all of training, a time tells nothing that was learned, and gaps and windows tell the rest
        decided["edges"] = {time: "drop", **decided.get("edges", {})}
    keys = find_table_keys(tables, schema, decided)
    ids = resolve_ids(tables, keys, problems, notes)
    tables = ids.tables
    if tables.edges is None:
        tables = tables.with_frames({"edges": pd.DataFrame({role: [] for role in Level.EDGE.made_keys})})
    typed = _type_tables(tables, keys, targets, decided, features) if schema is None else _read_tables(tables, schema)
    if schema is None and time is not None:
        typed["edges"] = _name_times(typed["edges"], time)
    edge_errors, node_errors = typed["edges"].errors, typed["nodes"].errors
    problems.add_located("edges", edge_errors)
    good = np.asarray((ids.ends[0] >= 0) & (ids.ends[1] >= 0))
    good[list(edge_errors)] = False
    when, times, time_errors = _read_times(tables, schema, time, notes)
    problems.add("edges", "" if when is None else when.name, time_errors)
    good[list(time_errors)] = False
    usable = np.flatnonzero(good)
    form: EdgeForm | None = None
    if schema is not None:
        form, directed = schema.edge_form, schema.directed
    else:
        odd = oriented_columns(decided.get("edges", {}), targets.get("edges", ()), oriented, tables.name("edges"))
        directed = decide_direction(directed, tables, odd)
        form = "once" if directed else None
    pairing = pair_edges(
        form,
        EdgeRows(
            tables.frames()["edges"],
            tables.name("edges"),
            Level.EDGE.made_keys | dict(keys.get("edges", {})),
            typed["edges"],
            None if schema is None else schema.edges,
            ids.ends,
            usable,
            ids.ends[:, usable],
            len(ids.rows),
            oriented,
            times,
        ),
        problems,
        notes,
    )
    problems.add_located("nodes", node_errors)
    if schema is None:
        tables = tables.with_frames({"edges": pairing.frame})
        many = ids.graph is not None
        graphs = typed["graphs"].schema if "graphs" in typed else TableSchema()
        schema = add_default_features(
            Schema(
                many=many,
                edge_form=pairing.form,
                directed=pairing.form == "once" if directed is None else directed,
                tables={Level.of_table(table): found.schema for table, found in typed.items()},
                features=features,
                graph_columns=find_graph_columns(graphs, decided.get("graphs", {})) if many else [],
                time=when,
            )
        )
        notes.extend(direction_note(schema, tables, directed, odd))
    return lay_out(tables, schema, typed, ids, usable, pairing.first, list(node_errors), problems, times)


def _read_times(
    tables: Tables, schema: Schema | None, name: str | None, notes: list[Note]
) -> tuple[TimeColumn | None, Array | None, dict[int, RowError]]:
    """The column of times, the time of each row of edges, and what is wrong with rows that have none."""
    given = None if schema is None else schema.time
    name = name if given is None else given.name
    frame, file = tables.frames()["edges"], tables.name("edges")
    if name is None:
        return None, None, {}
    if name not in frame.columns:
        if given is not None and len(frame) == 0:
            return given, np.zeros(0), {}
        expected = f"expected the time of each edge, one of {name_columns(frame.columns)}"
        raise DataError(f"is missing, {expected}", file, column=name)
    found, remarks = (given, []) if given is not None else TimeColumn.find(name, frame[name], file)
    times, errors = found.read_rows(frame[name])
    if given is None:
        good = times[~np.isnan(times)]
        notes += [Note("time", f"{file}: times of column {name} are {found.describe(good)}")]
        notes += [Note("time", f"{file}: column {name}: {remark}") for remark in remarks]
    return found, times, errors


def _name_times(typed: TypedTable, time: str) -> TypedTable:
    """The table of edges, in whose schema the column of times says what it is where it is no feature."""
    columns = [
        column.model_copy(update={"reason": "the time of each edge"})
        if column.name == time and column.kind == "drop"
        else column
        for column in typed.schema.columns
    ]
    return replace(typed, schema=typed.schema.model_copy(update={"columns": columns}))


def find_table_keys(tables: Tables, schema: Schema | None, decided: Mapping[str, Mapping[str, str]]) -> Keys:
    """Role -> column of every table: as in the schema, or else by name."""
    keys: dict[str, dict[str, str]] = {}
    for table, frame in tables.frames().items():
        check_names(frame.columns, tables.name(table))
        fitted = None if schema is None else schema.table(table)
        if fitted is not None and fitted.keys:
            named = find_keys(table, frame.columns, decided.get(table, {}))
            same = not set(fitted.keys.values()) <= set(frame.columns) and named.keys() >= fitted.keys.keys()
            keys[table] = named if same else dict(fitted.keys)
            check_keys(table, keys[table], list(frame.columns), tables.name(table))
        else:
            keys[table] = find_keys(table, frame.columns, decided.get(table, {}))
        if table == "edges" and not {"source", "target"} <= keys[table].keys():
            columns = name_columns(frame.columns)
            ids = None if tables.nodes is None or "id" not in keys["nodes"] else tables.nodes[keys["nodes"]["id"]]
            hint = ends_hint(frame, keys[table], ids)
            raise DataError(f"has the columns {columns}, expected source and target {hint}", tables.name(table))
    return keys


def _type_tables(
    tables: Tables,
    keys: Keys,
    targets: Mapping[str, Sequence[str]],
    decided: Mapping[str, Mapping[str, str]],
    features: Features,
) -> dict[str, TypedTable]:
    """The columns of every table by all of their rows."""
    typed = {}
    for table, frame in tables.frames().items():
        table_keys = dict(keys.get(table) or Level.of_table(table).made_keys)
        if table not in keys and table == "nodes" and "graph" in frame.columns:
            table_keys["graph"] = "graph"
        row_normalized = features != "rich" and table == "nodes"
        named, file = targets.get(table, ()), tables.name(table)
        typed[table] = TypedTable.find(frame, table_keys, named, decided.get(table), row_normalized, file)
    return typed


def _read_tables(tables: Tables, schema: Schema) -> dict[str, TypedTable]:
    """The columns of every table as in the schema. A table without edges needs no columns."""
    typed = {}
    for table, frame in tables.frames().items():
        fitted = schema.features_of(table)
        no_edges = table == "edges" and len(frame) == 0 and "source" in frame.columns and len(frame.columns) == 2
        if no_edges:
            typed[table] = TypedTable(fitted, [], 0, tables.name(table))
        elif fitted.columns or Level.of_table(table).takes_columns:
            typed[table] = TypedTable.read(fitted, frame, tables.name(table))
    return typed
