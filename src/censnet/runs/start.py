"""A training's start: its settings and its data, stored so that it can go on, or be trained again with more epochs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Self

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from censnet.data.tables.columns import as_arrow
from censnet.errors import quote
from censnet.settings.presets import setting_names
from censnet.settings.schema import Settings

MOST_SHOWN = 3  # changes of data that a message names


class TableContent(BaseModel):
    """A table as it was when a training began.

    Args:
        file: its name in messages.
        rows: how many.
        columns: column -> digest of its values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    rows: int = Field(ge=0)
    columns: dict[str, str]


class Start(BaseModel):
    """What a training was started with: `checkpoint/start.json`, and part of `config.json`.

    Args:
        asked: the target, as the user wrote it.
        settings: of the first network; `others` of those that are trained beside it.
        changed: the settings that the user, rather than a preset, asked for.
        ensemble: networks whose answers are averaged.
        overrides: column -> kind or role.
        data: the name or path by which the data can be read again; empty if they were in memory.
        fingerprint: of the graph, the labels and the parts of rows.
        tables: nodes, edges, graphs -> what was in them.
        parts: level -> digest of the part of each row.
        replaces: SHA-256 of the `config.json` of the finished run that this training replaces when it ends, or empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked: list[str] = Field(min_length=1)
    settings: Settings
    changed: list[str]
    others: list[Settings]
    ensemble: int = Field(ge=1, le=10_000)
    overrides: dict[str, str]
    data: str
    fingerprint: str
    tables: dict[str, TableContent] = Field(default_factory=dict)
    parts: dict[str, str] = Field(default_factory=dict)
    replaces: str = ""

    @model_validator(mode="after")
    def _changed_are_settings(self) -> Self:
        known = set(setting_names())
        unknown = next((name for name in self.changed if name not in known), None)
        if unknown is not None:
            raise ValueError(f"changed has {quote(unknown)}, expected names of settings")
        return self


def table_content(frame: pd.DataFrame, file: str) -> TableContent:
    """The rows and columns of a table, each with a digest of its values."""
    return TableContent(file=file, rows=len(frame), columns={str(name): _digest(frame[name]) for name in frame})


def data_changes(before: Start, now: Start) -> str:
    """What differs in the data of two starts, as far as can be told."""
    if not before.tables:  # a finished run does not keep what was in them
        return "the graph, the labels or the split are others"
    found = []
    for table in {**before.tables, **now.tables}:
        old, new = before.tables.get(table), now.tables.get(table)
        if old is None or new is None:
            found.append(f"there was {'no' if old is None else 'a'} table of {table}")
        else:
            found += _table_changes(old, new)
    if not found:
        levels = [level for level, digest in now.parts.items() if before.parts.get(level) != digest]
        found = [f"the split of {level} rows is another" for level in levels]
    if not found:
        found = ["the tables are the same, but features or labels made of them are not, as by another version"]
    more = f" and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return ", ".join(found[:MOST_SHOWN]) + more


def _table_changes(old: TableContent, new: TableContent) -> list[str]:
    found = []
    if old.rows != new.rows:
        found.append(f"{new.file} had {old.rows:,} rows and now has {new.rows:,}")
    found += [f"{new.file} has no column {quote(name)} any more" for name in old.columns if name not in new.columns]
    found += [f"{new.file} has a new column {quote(name)}" for name in new.columns if name not in old.columns]
    if old.rows == new.rows:
        other = [name for name, digest in old.columns.items() if new.columns.get(name, digest) != digest]
        found += [f"values of column {quote(name)} of {new.file} are others" for name in other]
    return found


def digest_of(parts: Mapping[str, bytes]) -> dict[str, str]:
    """Name -> a short digest of its bytes."""
    return {name: hashlib.blake2b(content, digest_size=8).hexdigest() for name, content in parts.items()}


def _digest(column: pd.Series) -> str:
    """A digest of the values of a column; empty where they are of a type that cannot be compared."""
    found = hashlib.blake2b(digest_size=8)
    try:
        for array in as_arrow(column).chunks:
            _add_values(found, array)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
        return ""
    return found.hexdigest()


def _add_values(found: hashlib.blake2b, array: pa.Array) -> None:
    """Add the type and the values of an array, of which nulls count as nulls, whatever stands in their memory."""
    kind = array.type
    found.update(str(kind).encode() + array.is_valid().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found.update(pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).tobytes())
        found.update("".join(filter(None, array.to_pylist())).encode("utf-8", "surrogatepass"))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        found.update(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).tobytes())
        _add_values(found, array.flatten())
    else:
        plain = array if pa.types.is_floating(kind) or pa.types.is_boolean(kind) else array.cast(pa.int64())
        found.update(
            plain.fill_null(False if pa.types.is_boolean(kind) else 0).to_numpy(zero_copy_only=False).tobytes()
        )
