"""Data of any form as tables: a path, a name, a frame, a graph of another library, or SMILES."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from censnet.data.datasets import download as sources
from censnet.data.datasets.builtin import read_builtin
from censnet.data.molecules.featurize import featurize
from censnet.data.molecules.label_sources import are_molecules, chemical_name
from censnet.data.molecules.structure_files import is_structure_file, read_structures
from censnet.data.tables.files import Tables, as_tables, is_there, read_tables
from censnet.data.tables.keys import ROLES, TABLES
from censnet.data.tables.schema import Schema
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import DataError, quote, shorten
from censnet.levels import COLUMN_LEVELS
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet


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
