"""A user's data as a graph or many, with every result back on the row it belongs to."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, cast

import pandas as pd
import torch
from torch import Tensor

from censnet.arguments import check_arguments
from censnet.data.datasets import download as sources
from censnet.data.datasets.builtin import from_tensors, read_builtin
from censnet.data.graph_features import add_graph_features
from censnet.data.molecules.assemble import assemble_molecules, find_molecule_keys, smiles_of
from censnet.data.molecules.structure_files import is_structure_file, read_structures
from censnet.data.refit import refit
from censnet.data.results import join_results
from censnet.data.splits.links import LinkSplit
from censnet.data.tables.ambiguous_numbers import tell_notations
from censnet.data.tables.assemble import assemble, column_notes
from censnet.data.tables.columns import CHOICES
from censnet.data.tables.default_features import count_degree, encode_degree
from censnet.data.tables.files import Tables, as_tables, is_there, read_tables
from censnet.data.tables.keys import LEVELS, says_split, table_overrides
from censnet.data.tables.list_targets import spread_list_targets, with_siblings
from censnet.data.tables.packing import Assembled, Fitted
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.saturated import tell_saturated
from censnet.data.tables.schema import Features, Schema, Standardize, find_roles
from censnet.data.tables.target_spec import Level, Targets, TargetSpec, as_items, parse_targets
from censnet.data.tables.targets import Rows, expand_targets, find_targets, find_training_rows, table_of
from censnet.data.tables.unseen import warn_unseen_categories
from censnet.errors import DataError, name_columns, shorten
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.text import count

logger = logging.getLogger("censnet")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A graph, or many, and the way back to the rows it came from.

    Args:
        name: what the user called it.
        graph: the tensors.
        tables: what was read.
        schema: what each column became; `schema.to_json()` is all that a later table needs.
        node_rows: for each row of `tables.nodes`, its row in the tensors; -1 for a row that cannot be used.
        edge_rows: the same for edges, which are sorted by their lower end; rows that were merged share one.
        graph_rows: the same for graphs.
        problems: table -> row, counted from 0 -> what is wrong with it.
        notes: what the user should know: columns left out, edges merged, features made, rows that cannot be used.
        fitted: what `refit` needs; None where no statistics were taken from these rows.

    Example:
        >>> people = {"source": ["ann", "ann", "bob"], "target": ["bob", "eve", "eve"]}
        >>> payments = pd.DataFrame({**people, "eur": [5, 70, 9]})
        >>> data = load_data(payments)
        >>> data.graph
        Graph(3 nodes x 2, 3 edges x 1)
        >>> data.results("edge", pd.DataFrame({"fraud": [0.1, 0.9, 0.2]}))
          source target  eur  fraud
        0    ann    bob    5    0.1
        1    ann    eve   70    0.9
        2    bob    eve    9    0.2
    """

    name: str
    graph: Graph | GraphSet
    tables: Tables
    schema: Schema
    node_rows: Tensor
    edge_rows: Tensor
    graph_rows: Tensor
    problems: dict[str, dict[int, str]]
    notes: list[str]
    fitted: Fitted | None = None

    def rows(self, level: str) -> Tensor:
        """For each input row of a level, its row in the tensors, or -1."""
        return {"nodes": self.node_rows, "edges": self.edge_rows, "graphs": self.graph_rows}[table_of(level)]

    def refit(self, rows: Mapping[str, Rows], links: LinkSplit | None = None) -> Dataset:
        """The same data with the statistics of its columns from training rows alone. Nothing is read again.

        The kinds of columns, bad rows and merged edges stay as they are, so splits that were made before still fit.
        Where nothing was fitted (built-in citations, tensors, a given schema) the data stay as they are.

        Args:
            rows: `node`, `edge` or `graph` -> the input rows to learn from. A level that is not there takes its rows
                from the training graphs, or else all of its rows.
            links: how links are split, if they are predicted: degrees are counted on training links alone, and these
                are the training rows of the edges, unless `rows` says otherwise.

        Example:
            >>> people = {"source": ["ann", "ann", "bob"], "target": ["bob", "eve", "eve"]}
            >>> data = load_data(pd.DataFrame({**people, "eur": [10, 20, 900]}))
            >>> data.refit({"edge": torch.tensor([0, 1])}).graph.edges.tolist()
            [[-1.0], [1.0], [177.0]]
        """
        if self.fitted is None:
            return self
        chosen = dict(find_training_rows(rows, {}, self.tables))
        if links is not None and "edges" not in chosen and len(self.edge_rows):
            chosen["edges"] = links.rows.to_input(self.edge_rows).train.numpy()
        kept = Assembled(**{field.name: getattr(self, field.name) for field in fields(Assembled)})
        new = refit(kept, chosen, None if links is None else links.rows.train.numpy())
        old = column_notes(self.tables, self.schema) + tell_saturated(self.graph, self.tables, self.schema)
        others = [note for note in self.notes if note not in old]
        others += tell_saturated(new.graph, new.tables, new.schema)
        return replace(self, **vars(new), notes=column_notes(new.tables, new.schema) + others)

    def seen(self, links: LinkSplit) -> Graph:
        """The graph that message passing may see when links are predicted: every node, and the training links alone.

        Where the degree of a node is its feature, it is counted on these links. Many graphs become their union.
        """
        graph = self.graph
        if isinstance(graph, GraphSet):
            graph = graph.batch(torch.arange(len(graph), device=graph.nodes.device))
        graph = links.seen(graph)
        if self.schema.nodes.structure != "degree":
            return graph
        degree = count_degree(graph.ends.cpu().numpy(), graph.num_nodes)
        return graph.with_features(encode_degree(self.schema, degree).to(graph.nodes), graph.edges)

    def labels(self, level: str, column: str) -> pd.Series:
        """A column of the user's table, one value for each input row."""
        table = table_of(level)
        frame = self.tables.frames().get(table)
        if frame is None or column not in frame.columns:
            there = "no such table" if frame is None else f"it has {name_columns(frame.columns)}"
            raise DataError(f"is missing: {there}", self.tables.name(table), column=column)
        return frame[column].reset_index(drop=True)

    def results(self, level: str, values: pd.DataFrame, keep: Literal["all", "ids"] = "all") -> pd.DataFrame:
        """One result for each input row, in input order, behind the user's ids and columns.

        Args:
            level: `node`, `edge` or `graph`.
            values: one row for each node, edge or graph of the tensors.
            keep: the columns of the user's table to repeat: all, or those that say who a row is.

        Returns:
            a frame with the user's columns, those of `values`, and, if some rows cannot be used, `error`. A column of
            the user's that has the name of another one here gets a `_` behind it.
        """
        check_arguments(Dataset.results, locals())
        table = table_of(level)
        frame, rows = self.tables.frames().get(table), self.rows(level).numpy()
        if frame is None:
            raise DataError(f"the data have no table of {table}, so there are no rows to give results for")
        if len(values) != self.count(level):
            raise DataError(
                f"values has {count(len(values), 'row')}, expected {self.count(level):,}: one for each {level}"
            )
        messages = self.problems.get(table, {})
        return join_results(values, frame, rows, self.id_columns(level), keep, messages)

    def id_columns(self, level: str) -> list[str]:
        """The columns that say who a row is: its keys, and what the schema took for ids."""
        table = table_of(level)
        schema, frame = self.schema.table(table), self.tables.frames()[table]
        ids = (column.name for column in schema.columns if column.kind == "id" and not says_split(column.name))
        named = {*schema.keys.values(), *ids}
        return [column for column in frame.columns if column in named] or list(frame.columns[:1])

    def count(self, level: str) -> int:
        """How many nodes, edges or graphs the tensors hold."""
        if table_of(level) == "graphs":
            return len(self.graph) if isinstance(self.graph, GraphSet) else self.graph.num_graphs
        return int(self.graph.nodes.shape[0] if table_of(level) == "nodes" else self.graph.edges.shape[0])


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
) -> Dataset:
    """Read data of any form into a graph or many.

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
    """
    check_arguments(load_data, locals())
    name = str(data) if isinstance(data, str | os.PathLike) else type(data).__name__.lower()
    notes = list[str]()
    if isinstance(data, os.PathLike) and sources.is_built_in(name):
        name = os.path.join(os.curdir, name)  # a path, also where it is read again by its name
    built_in_set = sources.is_built_in(data)
    if sources.is_built_in(data):
        if Path(data).exists():
            notes.append(f"{data} is the built-in set; what is here by that name is {os.path.join(os.curdir, data)}")
            logger.warning("%s", notes[0])
        built_in = read_builtin(data, features if schema is None else schema.features)
        if not isinstance(built_in, Tables):
            _check_options(descriptors, standardize)
            if schema is not None and schema != built_in.schema:
                raise DataError(f"{data} comes with features of its own, which the given schema does not describe")
            return Dataset(data, **vars(built_in), problems={}, notes=notes)
        data = built_in
    if isinstance(data, Graph | GraphSet):
        _check_options(descriptors, standardize)
        return Dataset("graph", **vars(from_tensors(data)), problems={}, notes=[])
    tables = _as_tables(data, find_roles(overrides, schema))
    specs = parse_targets(target)[0] if as_items(target) else []
    asked = find_targets(specs, tables, required=False) if schema is None else schema.targets
    tables = spread_list_targets(tables, asked)
    if schema is None:
        specs, said = expand_targets(specs, tables, overrides)
        notes += said
    targets = with_siblings(find_targets(specs, tables, required=False), tables)
    rows = find_training_rows(train_rows, targets, tables)
    problems, smiles = RowErrors(tables, strict), None
    if tables.nodes is None and tables.edges is None:
        decided = table_overrides(overrides, {t: list(f.columns) for t, f in tables.frames().items()}, CHOICES)
        keys = find_molecule_keys(tables, schema, decided)
        made = assemble_molecules(
            tables, keys, schema, targets, rows, features, decided, problems, notes, standardize, built_in_set
        )
        smiles = smiles_of(tables.frames()["graphs"], keys["smiles"])
    else:
        _check_options(descriptors, standardize)
        made = assemble(tables, schema, targets, rows, overrides, problems, notes, features)
    made = add_graph_features(made, smiles, descriptors, rows.get("graphs"), problems)
    clipped = tell_saturated(made.graph, made.tables, made.schema)
    if schema is not None:
        for note in clipped:
            logger.warning("%s", note)
        notes += warn_unseen_categories(made.tables, schema)
    else:
        notes += tell_notations(made.tables, made.schema)
    notes += clipped
    return Dataset(name, **vars(made), problems=problems.found, notes=notes + problems.notes(made.tables))


def suggest_targets(data: object, column: str) -> list[str]:
    """What a column without a level may mean: `edge:amount` for `amount`, if the table of edges has it.

    >>> suggest_targets("karate", "faction"), suggest_targets("karate", "age")
    (['node:faction'], [])
    """
    if isinstance(data, Graph | GraphSet):
        return []
    found = read_builtin(data) if sources.is_built_in(data) else _as_tables(data, {})
    frames = (found if isinstance(found, Tables) else found.tables).frames()
    holders = [level for level, table in LEVELS.items() if table in frames and column in frames[table]]
    return [TargetSpec(cast(Level, level), column).name for level in holders]


def _check_options(descriptors: bool, standardize: Standardize) -> None:
    """Raise for what is asked of molecules where there are none."""
    if descriptors:
        raise DataError("descriptors are asked for (data.descriptors), expected molecules: there is no table of SMILES")
    if standardize != "none":
        raise DataError(f"data.standardize is {standardize}, expected molecules: there is no table of SMILES")


def _as_tables(data: object, roles: Mapping[str, str]) -> Tables:
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
