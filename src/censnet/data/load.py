"""Read data of any form: names of built-in sets, files, folders, frames, PyG and networkx objects, tensors, SMILES."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from censnet.arguments import check_arguments
from censnet.data.dataset import Dataset, Rows, TypedData
from censnet.data.datasets import download as sources
from censnet.data.datasets.builtin import from_tensors, read_builtin
from censnet.data.graph_features import GraphFeatures
from censnet.data.molecules.assemble import assemble_molecules, find_molecule_keys
from censnet.data.molecules.featurize import featurize
from censnet.data.molecules.label_sources import (
    are_molecules,
    chemical_name,
    find_long_tables,
    refuse_chemical_words,
    rename_table,
    take_labels,
    without_lists,
)
from censnet.data.molecules.structure_files import is_structure_file, read_structures
from censnet.data.tables.assemble import assemble
from censnet.data.tables.column_notes import notation_notes, warn_unseen_categories
from censnet.data.tables.columns import CHOICES
from censnet.data.tables.expand_targets import (
    expand_targets,
    resolve_targets,
    spread_list_targets,
    target_columns,
    with_siblings,
)
from censnet.data.tables.files import Tables, as_tables, is_there, read_tables
from censnet.data.tables.keys import ROLES, TABLES, table_overrides
from censnet.data.tables.notes import Note, RowError
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.schema import Descriptors, Features, Hydrogens, Schema, Standardize
from censnet.data.tables.table_graph import Assembled
from censnet.data.tables.target_spec import Targets, TargetSpec, parse_targets
from censnet.errors import DataError, quote, shorten
from censnet.levels import COLUMN_LEVELS, Level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

logger = logging.getLogger(__name__)


def load_data(
    data: object,
    *,
    schema: Schema | None = None,
    target: Targets | None = None,
    strict: bool = False,
    train_rows: Rows | Mapping[str, Rows] | None = None,
    features: Features = "rich",
    overrides: Mapping[str, str] | None = None,
    descriptors: bool = False,
    standardize: Standardize = "none",
    hydrogens: Hydrogens = "implicit",
    directed: bool | None = None,
    time: str | None = None,
) -> Dataset:
    """Read data of any form into a graph or many, with statistics from some rows or from all.

    Args:
        data: the name of a built-in set (a file or a folder of that name is written `./karate`); a CSV or Parquet file
            of edges or with a SMILES column; a .smi, .sdf or .mol file; a folder with `nodes`, `edges` and `graphs`;
            `Tables` or a frame; a PyG or networkx object; a `Graph` or `GraphSet`.
        schema: how to read it, from an earlier `Dataset`; without one it is found from the data.
        target: `node:COLUMN`, `edge:COLUMN`, `graph:COLUMN,COLUMN` or `link`, or several, as `parse_targets` reads
            them. They are no features.
        strict: whether a row that cannot be used is an error rather than a row without result.
        train_rows: the input rows that statistics are taken from, by level, or for the level of the target.
        features: `rich` describes atoms and bonds at length and scales vectors as columns; `paper` has the paper's few
            features of molecules, and divides vectors of counts, such as words, by their sum in each node; `released`
            has the links of citation sets, too, as in the authors' code.
        overrides: column, or `TABLE.COLUMN` -> kind of column, `decimal-comma` for numbers such as 3,14, `drop`, or its
            role (`id`, `source`, `smiles`...). It is an error if no value is of that kind. A column of `graphs` is a
            feature of each graph if it is given a kind here, and not otherwise.
        descriptors: whether molecules have rdkit's descriptors as features, too; a given schema says so itself.
        standardize: what rdkit's MolStandardize does to molecules: `none`, `fragment` (the largest), `parent` (that
            without charges) or `tautomer` (the canonical one of that); a given schema says so itself.
        hydrogens: whether the hydrogens of molecules are atoms (`explicit`) or counted at their heavy atom
            (`implicit`); a given schema says so itself.
        directed: whether edges go from `source` to `target`. If None, networkx graphs are what they are, and tables and
            PyG data are directed unless each edge is there twice, once in each direction with the same data; a given
            schema says so itself.
        time: the column of edges that says when each one happened: numbers, dates or timestamps, with or without zones.
            A row without a time cannot be used. A given schema says so itself.
    """
    check_arguments(load_data, locals())
    typed = read_data(
        data,
        schema=schema,
        target=target,
        strict=strict,
        features=features,
        overrides=overrides,
        descriptors=descriptors,
        standardize=standardize,
        hydrogens=hydrogens,
        directed=directed,
        time=time,
    )
    return typed.encode(train_rows)


def read_data(
    data: object,
    *,
    schema: Schema | None = None,
    target: Targets | None = None,
    strict: bool = False,
    features: Features = "rich",
    overrides: Mapping[str, str] | None = None,
    descriptors: Descriptors = False,
    standardize: Standardize = "none",
    scaffolds: bool = False,
    hydrogens: Hydrogens = "implicit",
    directed: bool | None = None,
    time: str | None = None,
) -> TypedData:
    """Read data of any form, resolve ids and find the kinds of columns; nothing is encoded yet.

    Args:
        data, schema, target, strict, features, overrides, descriptors, standardize, hydrogens, directed, time: as in
            `load_data`.
        scaffolds: whether the scaffolds of molecules are computed, too.
    """
    check_arguments(read_data, locals())
    name = str(data) if isinstance(data, str | os.PathLike) else type(data).__name__.lower()
    notes = list[Note]()
    specs = parse_targets(target, required=False)[0]
    if isinstance(data, os.PathLike) and sources.is_built_in(name):
        name = os.path.join(os.curdir, name)  # a path, also where it is read again by its name
    built_in_set = sources.is_built_in(data)
    if sources.is_built_in(data):
        if Path(data).exists():
            here = f"what is here by that name is {os.path.join(os.curdir, data)}"
            notes.append(Note("source", f"{data} is the built-in set; {here}"))
            logger.warning("%s", notes[0])
        built_in = read_builtin(data, features if schema is None else schema.features)
        if not isinstance(built_in, Tables):
            _refuse_time(time)
            _check_options(specs, descriptors, standardize, hydrogens)
            if schema is not None and schema != built_in.schema:
                raise DataError(f"{data} comes with features of its own, which the given schema does not describe")
            _check_direction(directed, built_in)
            return _from_assembled(data, built_in, {}, notes, expand_targets(specs, built_in.tables, overrides)[0])
        data = built_in
    if isinstance(data, Graph | GraphSet):
        _refuse_time(time)
        _check_options(specs, descriptors, standardize, hydrogens)
        made = from_tensors(data)
        _check_direction(directed, made)
        return _from_assembled("graph", made, {}, [], expand_targets(specs, made.tables, overrides)[0])
    roles = find_roles(overrides, schema)
    tables = read_as_tables(data, roles)
    if are_molecules(tables, roles, specs):
        _refuse_time(time)
        return _read_molecules(
            name, tables, specs, schema, overrides, notes, strict, directed, features=features,
            standardize=standardize, isotopes=built_in_set, descriptors=descriptors, scaffolds=scaffolds,
            hydrogens=hydrogens,
        )  # fmt: skip
    _check_options(specs, descriptors, standardize, hydrogens)
    tables, specs, targets, said = resolve_targets(specs, tables, overrides, None if schema is None else schema.targets)
    notes += said
    problems = RowErrors(tables, strict)
    oriented = [spec.column for spec in specs if spec.kind == "oriented"]
    made = assemble(tables, schema, targets, overrides, problems, notes, features, directed, oriented, time)
    return _finish(name, made, problems, notes, specs, schema)


def _read_molecules(
    name: str,
    tables: Tables,
    specs: list[TargetSpec],
    schema: Schema | None,
    overrides: Mapping[str, str] | None,
    notes: list[Note],
    strict: bool,
    directed: bool | None,
    **options: Any,
) -> TypedData:
    """Molecules, and tables of their atoms and bonds where these have labels; `options` as in `assemble_molecules`."""
    for spec in specs:
        if spec.kind == "oriented":
            raise DataError(
                f"target {spec.text} is of molecules, expected one of edges: a bond has no order of its ends"
            )
    overrides = {rename_table(column): kind for column, kind in (overrides or {}).items()}
    tables = find_long_tables(tables, specs, schema)
    long = {table: list(frame.columns) for table, frame in tables.frames().items() if table != "graphs"}
    taken = take_labels(tables, specs, schema, overrides)
    tables, of_parts = taken.tables, [spec for spec in taken.specs if spec.level is not Level.GRAPH]
    notes += taken.notes
    asked = target_columns(specs) if schema is None else schema.targets
    tables = spread_list_targets(tables, {"graphs": asked.get("graphs", [])})
    columns = {table: list(frame.columns) for table, frame in tables.frames().items()}
    decided = table_overrides(overrides, long | columns, CHOICES)
    if schema is None:
        of_graphs = [spec for spec in taken.specs if spec.level is Level.GRAPH]
        of_graphs, said = expand_targets(of_graphs, without_lists(tables, taken.labels), decided["graphs"])
        notes += said
        order = list(dict.fromkeys(spec.level for spec in taken.specs))
        specs = sorted([*of_parts, *of_graphs], key=lambda spec: order.index(spec.level))
    targets = with_siblings(target_columns(spec for spec in specs if spec.level is Level.GRAPH), tables)
    problems = RowErrors(tables, strict)
    keys = find_molecule_keys(tables, schema, decided)
    made = assemble_molecules(
        tables, keys, schema, targets, decided=decided, problems=problems, notes=notes, labels=taken.labels, **options
    )
    _check_direction(directed, made)
    return _finish(name, made, problems, notes, specs, schema)


def _finish(
    name: str,
    made: Assembled,
    problems: RowErrors,
    notes: list[Note],
    specs: Sequence[TargetSpec],
    schema: Schema | None,
) -> TypedData:
    made = _check_graph_table(made, problems)
    notes += notation_notes(made.tables, made.schema) if schema is None else warn_unseen_categories(made.tables, schema)
    notes += problems.notes(made.tables)
    return _from_assembled(name, made, problems.found, notes, specs, fitted=schema is not None)


def _check_graph_table(made: Assembled, problems: RowErrors) -> Assembled:
    """The same, with graphs whose features cannot be read left without a row."""
    bad = {} if made.graph_table is None else made.graph_table.errors
    problems.add_located("graphs", bad)
    graph_rows = made.rows("graph").clone()
    graph_rows[list(bad)] = -1
    return replace(made, rows_by_level={**made.rows_by_level, Level.GRAPH: graph_rows})


def _from_assembled(
    name: str,
    made: Assembled,
    problems: dict[str, dict[int, RowError]],
    notes: list[Note],
    specs: Sequence[TargetSpec],
    fitted: bool = False,
) -> TypedData:
    whole = None
    if made.graph_table is not None or made.descriptors is not None:
        whole = GraphFeatures(made.graph_table, made.descriptors, made.graph_source)
    read = made.graph, made.tables, made.schema, made.rows_by_level, name, problems, notes
    return TypedData(*read, made.encoder, whole, specs, made.scaffolds, fitted)


def _check_options(
    specs: Sequence[TargetSpec], descriptors: Descriptors, standardize: Standardize, hydrogens: Hydrogens
) -> None:
    """Raise for what is asked of molecules where there are none."""
    refuse_chemical_words(specs)
    if hydrogens != "implicit":
        raise DataError(f"data.hydrogens is {hydrogens}, expected molecules: there is no table of SMILES")
    if descriptors not in (False, "auto"):
        raise DataError("descriptors are asked for (data.descriptors), expected molecules: there is no table of SMILES")
    if standardize != "none":
        raise DataError(f"data.standardize is {standardize}, expected molecules: there is no table of SMILES")


def _refuse_time(time: str | None) -> None:
    """Raise where times are asked for of data without a table of edges."""
    if time is not None:
        raise DataError(f"the time is column {quote(time)}, expected a table of edges that has it, or no time")


def _check_direction(directed: bool | None, made: Assembled) -> None:
    """Raise where a direction is asked for that the data cannot have."""
    if directed not in (None, made.schema.directed):
        what = "directed" if made.schema.directed else "undirected"
        raise DataError(
            f"data.directed is {str(directed).lower()}, but these data say themselves that edges are {what}"
        )


def find_roles(overrides: Mapping[str, str] | None, schema: Schema | None) -> dict[str, str]:
    """Column -> its role, where the user or a schema says so: such columns are read as they are written.

    >>> find_roles({"payer.no": "source", "edges.payee": "target", "amount": "number"}, None)
    {'payer.no': 'source', 'edges.payee': 'target', 'payee': 'target'}
    """
    found: dict[str, str] = {}
    for fitted in () if schema is None else schema.tables.values():
        found |= {column: role for role, column in fitted.keys.items()}
    for column, role in (overrides or {}).items():
        if role in ROLES:
            found[column] = role
            table, _, rest = column.partition(".")
            if table in (*COLUMN_LEVELS, *TABLES) and rest:
                found[rest] = role
    return found


def tables_of(data: object, schema: Schema) -> Tables:
    """The tables of data, as `load_data` takes them to read them by a schema."""
    return read_as_tables(data, find_roles(None, schema))


def suggest_targets(data: object, column: str) -> list[str]:
    """Targets that a column without a level may mean: `edge:amount` for `amount`, if the table of edges has it.

    >>> suggest_targets("karate", "faction"), suggest_targets("karate", "age")
    (['node:faction'], [])
    """
    if isinstance(data, Graph | GraphSet):
        return []
    found = read_builtin(data) if sources.is_built_in(data) else read_as_tables(data, {})
    frames = (found if isinstance(found, Tables) else found.tables).frames()
    holders = [level for level in COLUMN_LEVELS if column in frames.get(level.table, ())]
    names = [TargetSpec(level, column).name for level in holders]
    return list(map(chemical_name, names)) if isinstance(found, Tables) and are_molecules(found, {}) else names


def read_as_tables(data: object, roles: Mapping[str, str]) -> Tables:
    if isinstance(data, Tables):
        tables = data
    elif isinstance(data, pd.DataFrame):
        tables = as_tables(data, "the table", roles)
    elif isinstance(data, str | os.PathLike):
        path = Path(data)
        if not is_there(path):
            raise DataError(
                f"there is no such file, folder or data set (sets: {', '.join(sources.DATASETS)})", shorten(data)
            )
        is_file_of_molecules = path.is_file() and is_structure_file(path)
        tables = read_structures(path) if is_file_of_molecules else read_tables(path, roles)
    else:
        from censnet.data.interop import (
            convert,  # PyTorch Geometric: seconds, and whoever has such a graph has spent them
        )

        found = convert.to_tables(data)
        if found is None:
            raise DataError(
                f"data is a {type(data).__name__}, expected a path, a name, a table, or a PyG or networkx graph"
            )
        tables = found
    if not tables.frames():
        raise DataError("there is no table, expected nodes, edges or graphs")
    for table, frame in tables.frames().items():
        if not isinstance(frame, pd.DataFrame):
            raise DataError(f"is a {type(frame).__name__}, expected a frame", table)
    return tables


def given_smiles(data: object, schema: Schema) -> list[object] | None:
    """The texts where data are a SMILES or several; None where they are something else, as a file that is there.

    Args:
        data: what the user gave. One text is a file, a folder or a built-in set if there is one of that name.
        schema: of the run that is to read it.
    """
    if isinstance(data, str):
        if sources.is_built_in(data) or schema.smiles is None or (data != "" and is_there(Path(data))):
            return None
        (problem,) = featurize([data], reading=schema.reading).problems.values() or ("",)
        if problem:
            what = "there is no such file, folder or data set, and it is no SMILES either"
            raise DataError(f"{quote(data)}: {what}: {problem}")
        return [data]
    if isinstance(data, pd.Series | np.ndarray) and data.ndim == 1 and data.dtype.kind in "OTU":
        data = data.tolist()
    if not isinstance(data, list | tuple) or not data or not all(isinstance(item, str) for item in data):
        return None
    if schema.smiles is None:
        raise DataError("data is a list of texts, expected tables: this run was not trained on SMILES")
    return list(data)
