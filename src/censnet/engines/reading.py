"""Rows of the user's tables as a plan reads them: ids as one type, features as numbers, labels, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from censnet.data.digests import hash_ids
from censnet.data.tables.columns import as_text
from censnet.data.tables.files import to_frame
from censnet.data.tables.id_index import read_ids
from censnet.data.tables.row_errors import locate
from censnet.data.tables.schema import Schema
from censnet.data.tables.typed_table import TypedTable
from censnet.engines.columns import Group, schema_of, write_batch
from censnet.engines.engine import ROW
from censnet.engines.files import TableFile
from censnet.engines.unusual import find_unusual
from censnet.levels import Level
from censnet.ops.colors import hash_rows
from censnet.runs.known_labels_in_prediction import FOLDS
from censnet.runs.novelty import FeatureRange
from censnet.tasks.targets import Target

TEXTS = ("error", "unusual")  # of each row: why it cannot be used, and what no training row has, as `find_unusual` says
Keys = Mapping[str, Mapping[str, str]]  # table -> role -> column


@dataclass(frozen=True)
class ReadRows:
    """The rows of a table of the user's, as a function of Arrow batches that begin with the number of each row.

    Args:
        level: whose table it is.
        file: the table.
        schema: of the training data.
        keys: role -> column.
        key_types: role -> the type of the ids.
        targets: those whose known labels are inputs.
        ranges: of the features in training rows, if rows are compared with them.
    """

    level: Level
    file: TableFile
    schema: Schema
    keys: Mapping[str, str]
    key_types: Mapping[str, pa.DataType]
    targets: Sequence[Target]
    ranges: Sequence[FeatureRange] = ()

    @property
    def groups(self) -> list[Group]:
        """The tensors of each row: features, labels, and the fold in which a row with a label is predicted."""
        fitted = self.schema.features_of(self.level.table)
        features = [Group("x", fitted.width)] if fitted.structure == "none" else []
        labels = [Group("label", len(self.targets)), Group("fold", 1, torch.int64)] if self.targets else []
        return features + labels

    @property
    def arrow_schema(self) -> pa.Schema:
        """Of the rows."""
        ids = {role: self.key_types[role] for role in self.keys if role in self.key_types}
        return schema_of({ROW: pa.int64(), **ids, **dict.fromkeys(TEXTS, pa.string())}, self.groups)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch.column(ROW)
        table = self.file.cast(batch.select([name for name in batch.schema.names if name != ROW]))
        frame = to_frame(pa.Table.from_batches([table]), self.file.name)
        first = rows[0].as_py() if len(rows) else 0
        fitted = self.schema.features_of(self.level.table)
        typed = TypedTable.read(fitted, frame, self.file.name, first)
        keys = [rows]
        for role, column in self.keys.items():
            if role in self.key_types:
                keys.append(read_key(frame, column, self.file.name, self.key_types[role]))
        tensors = dict[str, Tensor]()
        if fitted.structure == "none":
            tensors["x"] = typed.encode(fitted) if typed.columns else torch.zeros(len(frame), 0)
        errors = self._errors(typed, frame, first)
        unusual = find_unusual(self.ranges, tensors["x"]) if "x" in tensors else [None] * len(frame)
        keys += [pa.array(texts, pa.string()) for texts in (errors, unusual)]
        if self.targets:
            tensors["label"] = torch.stack([_labels(target, frame) for target in self.targets], dim=1)
            tensors["label"][[row for row, error in enumerate(errors) if error is not None]] = torch.nan
            hashes = hash_rows(tensors["x"]) if "x" in tensors else torch.zeros(len(frame), dtype=torch.int64)
            digests = hash_ids(hashes, self.level, self.schema.table(self.level.table), frame)
            tensors["fold"] = find_folds(digests).unsqueeze(1)
        return write_batch(self.arrow_schema, keys, [(group, tensors[group.name]) for group in self.groups])

    def _errors(self, typed: TypedTable, frame: pd.DataFrame, first: int) -> list[str | None]:
        """What is wrong with the values of each row."""
        found: dict[int, str] = dict(typed.errors)
        when = self.schema.time if self.level is Level.EDGE else None
        if when is not None and when.name in frame.columns:
            for row, error in when.read_rows(frame[when.name])[1].items():
                found.setdefault(row, locate(error, self.file.name, first + row, when.name))
        return [found.get(row) for row in range(len(frame))] if found else [None] * len(frame)


def read_key(frame: pd.DataFrame, column: str, file: str, kind: pa.DataType) -> pa.Array:
    """The ids of a column, as whole numbers or as text."""
    ids = read_ids(frame, column, file)
    found = pc.cast(ids, kind) if pa.types.is_integer(kind) else as_text(ids)
    return found.combine_chunks()


def find_folds(digests: Tensor) -> Tensor:
    """The fold of each row by its digest. (n,)"""
    return torch.from_numpy((np.asarray(digests.numpy()).view(np.uint64) % FOLDS).astype(np.int64))


def _labels(target: Target, frame: pd.DataFrame) -> Tensor:
    if target.column not in frame.columns:
        return torch.full((len(frame),), torch.nan)
    return target.encode(frame[target.column].reset_index(drop=True)).float()


def find_key_types(files: Mapping[str, TableFile], keys: Keys) -> dict[str, dict[str, pa.DataType]]:
    """Table -> role -> the type of ids: whole numbers where all tables have them, else text."""
    found = dict[str, dict[str, pa.DataType]]()
    for roles in (("id", "source", "target"), ("graph",)):
        used = [(table, role) for table in files for role in roles if role in keys.get(table, {})]
        types = [files[table].schema.field(keys[table][role]).type for table, role in used]
        if "id" in roles and "nodes" in files and "id" not in keys["nodes"]:
            types.append(pa.int64())  # nodes are called by their row
        kind = pa.int64() if all(map(_is_whole, types)) else pa.string()
        for table, role in used:
            found.setdefault(table, {})[role] = kind
    return found


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind)) or (pa.types.is_unsigned_integer(kind) and kind.bit_width < 64)
