"""Rows of a table in three parts, and the file such a split is kept in."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import torch
from torch import Tensor

from censnet.data.tables.files import check_file
from censnet.errors import DataError
from censnet.ops.arrays import Array
from censnet.text import count

PARTS = ("train", "validation", "test")
SPELLINGS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
COLUMNS = ("table", "row", "split")
DIGEST = "digest"  # of what a row is, in the splits.csv of a run
RESERVED = (*COLUMNS, DIGEST)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one table in three parts, each in rising order. A row may be in none, never in two.

    Args:
        train, validation, test: the rows of each part.
        source: where the split came from, for the user: a column, a file, masks, or chance.
        by_fractions: whether rows were shared out in fractions, rather than all of them being stated.

    Shape:
        train, validation, test (n,), of any sizes.

    Example:
        >>> Split.of([2, 0, 0, 1, -1])
        Split(2 train, 1 validation, 1 test)
        >>> Split.of([2, 0, 0, 1, -1]).train
        tensor([1, 2])
    """

    train: Tensor
    validation: Tensor
    test: Tensor
    source: str = field(default="", kw_only=True)
    by_fractions: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in PARTS:
            rows: Tensor = getattr(self, name)
            if rows.dim() != 1 or rows.is_floating_point() or rows.dtype == torch.bool:
                raise DataError(f"{name} has shape {tuple(rows.shape)} and dtype {rows.dtype}, expected a list of rows")
            rows = rows.long()
            rising = bool((rows[1:] > rows[:-1]).all())
            object.__setattr__(self, name, rows if rising else rows.sort().values)
        every = torch.cat([self.train, self.validation, self.test])
        if len(every) and int(every.min()) < 0:
            raise DataError(f"a split has the row {int(every.min())}, expected rows from 0")
        if _has_twice(every):
            every = every.sort().values
            twice = every[1:][every[1:] == every[:-1]]
            raise DataError(f"row {int(twice[0])} is in a split twice, expected once at most")

    def __repr__(self) -> str:
        return f"Split({', '.join(f'{len(rows)} {name}' for name, rows in self.parts.items())})"

    @property
    def parts(self) -> dict[str, Tensor]:
        """The rows of each part, by its name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    @staticmethod
    def of(part: Sequence[int] | Array) -> Split:
        """The split in which row r is in part[r]: 0 train, 1 validation, 2 test, anything else none."""
        numbers = np.asarray(part)
        return Split(*(torch.from_numpy(np.flatnonzero(numbers == number)) for number in range(3)))

    def codes(self, num_rows: int) -> Array:
        """For each row of the table, its part as in `of`; -1 for none."""
        part = np.full(num_rows, -1, dtype=np.int8)
        for number, (name, rows) in enumerate(self.parts.items()):
            if len(rows) and int(rows[-1]) >= num_rows:
                raise DataError(
                    f"the {name} part has row {int(rows[-1]) + 1}, but the table has {count(num_rows, 'row')}"
                )
            part[rows.numpy()] = number
        return part

    def to_input(self, rows: Tensor) -> Split:
        """The split of an input table whose row r became the row rows[r] here; -1 is a bad row, which is in no part."""
        size = max((int(part[-1]) + 1 for part in self.parts.values() if len(part)), default=0)
        codes = np.append(self.codes(max(size, int(rows.max()) + 1 if len(rows) else 0)), -1)
        return Split.of(codes[rows.numpy()])

    def to_graph(self, rows: Tensor) -> Split:
        """The split of a graph's rows, given the split of an input table whose row r became the row rows[r].

        Input rows that became one row must be in one part, or the same edge would be learned from and judged on.
        """
        part, row = self.codes(len(rows)), rows.numpy()
        good = np.flatnonzero((row >= 0) & (part >= 0))
        codes = np.full(int(row.max()) + 1 if len(row) else 0, -1, dtype=np.int8)
        codes[row[good]] = part[good]
        astray = good[codes[row[good]] != part[good]]
        if len(astray):
            one, found = int(astray[0]), part[astray[0]]
            other = int(good[(row[good] == row[one]) & (part[good] == codes[row[one]])][0])
            raise DataError(
                f"row {one + 1} is in {PARTS[found]} and row {other + 1}, the same edge, in {PARTS[codes[row[one]]]}: "
                "give both the same part"
            )
        return Split.of(codes)


def part_rows(table: str, split: Split) -> pd.DataFrame:
    """The rows of one table as they stand in a split file, in rising order; those in no part are left out."""
    rows = np.concatenate([part.numpy() for part in split.parts.values()])
    names = np.repeat(np.array(PARTS, dtype=object), [len(part) for part in split.parts.values()])
    order = np.argsort(rows, kind="stable")
    return pd.DataFrame({"table": table, "row": rows[order] + 1, "split": names[order]})


def read_splits(
    source: str | os.PathLike[str] | pd.DataFrame, ids: Mapping[str, pd.DataFrame] | None = None
) -> dict[str, Split]:
    """Read the splits.csv of a run, or a user's own file of that form.

    Args:
        source: the file, or its content.
        ids: for some of the tables, the columns that name its rows now; a row that has another name in the
            file is an error, for then the table was reordered or changed since.
    """
    frame, splits = read_split_rows(source), {}
    for table, part in frame.groupby("table", sort=False):
        if ids is not None and table in ids:
            _check_ids(part, ids[str(table)], file_name(source), str(table))
        rows = torch.from_numpy(part["row"].to_numpy() - 1)
        codes = torch.from_numpy(np.array(part["split"]))
        splits[str(table)] = Split(*(rows[codes == number] for number in range(3)))
    return splits


def read_split_rows(source: str | os.PathLike[str] | pd.DataFrame) -> pd.DataFrame:
    """The rows of a split file: table, row as a number, split as 0, 1 or 2, and the other columns as text."""
    frame = source.astype("string") if isinstance(source, pd.DataFrame) else _read_texts(Path(source))
    file = file_name(source)
    for name in COLUMNS:
        if name not in frame:
            raise DataError(f"no column {name}, expected {', '.join(COLUMNS)}", file=file)
    blank = np.flatnonzero(frame["table"].isna())
    if len(blank):
        raise DataError("no name of a table", file=file, row=int(blank[0]), column="table")
    text = frame["row"]
    good = text.str.fullmatch(r"[0-9]{1,15}", na=False)
    frame["row"] = text.where(good, "0").astype(np.int64)
    _raise_at(frame["row"] < 1, text, "expected the number of a row, from 1", file, "row")
    text = frame["split"]
    frame["split"] = text.str.strip().str.lower().map(SPELLINGS).fillna(-1).astype(np.int64)
    _raise_at(frame["split"] < 0, text, "expected train, validation or test", file, "split")
    twice = frame.duplicated(["table", "row"])
    _raise_at(twice, frame["row"], "this row of the table is in the file already", file, "row")
    return frame


def file_name(source: str | os.PathLike[str] | pd.DataFrame) -> str:
    """The name of a split file in messages; that of a run if its content is given."""
    return "splits.csv" if isinstance(source, pd.DataFrame) else Path(source).name


def _read_texts(path: Path) -> pd.DataFrame:
    """All columns of a CSV file as text."""
    if not path.exists():
        raise DataError("there is no such file, expected a table of splits, such as splits.csv of a run", str(path))
    check_file(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            names = next(csv.reader(file), [])
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
        )  # a node may be called NA
        options = {
            "read_options": pa.csv.ReadOptions(use_threads=False),  # one thread can name the row that is wrong
            "parse_options": pa.csv.ParseOptions(newlines_in_values=True),
        }
        frame: pd.DataFrame = pa.csv.read_csv(path, convert_options=convert, **options).to_pandas()
    except (pa.ArrowInvalid, csv.Error, UnicodeError, OSError) as problem:
        raise DataError(f"not a table of splits: {str(problem).splitlines()[0]}", file=path.name) from None
    return frame


def _has_twice(rows: Tensor) -> bool:
    if len(rows) == 0 or int(rows.max()) > 10 * len(rows) + 1_000_000:
        ordered = rows.sort().values
        return bool((ordered[1:] == ordered[:-1]).any())
    seen = torch.zeros(int(rows.max()) + 1, dtype=torch.bool)
    seen[rows] = True
    return int(seen.sum()) < len(rows)


def _raise_at(bad: pd.Series[bool], found: pd.Series[Any], what: str, file: str, column: str) -> None:
    rows = np.flatnonzero(bad.to_numpy())
    if len(rows):
        value = found.iloc[rows[0]]
        shown = "nothing" if pd.isna(value) else repr(str(value)[:40])
        raise DataError(f"found {shown}, {what}", file=file, row=int(rows[0]), column=column)


def _check_ids(part: pd.DataFrame, ids: pd.DataFrame, file: str, table: str) -> None:
    """Raise unless each row of the file has the name that this row of the table has."""
    beyond = np.flatnonzero(part["row"] > len(ids))
    if len(beyond):
        found = int(part["row"].iloc[beyond[0]])
        raise DataError(
            f"row {found} of {table}, which has {count(len(ids), 'row')}",
            file=file,
            row=int(part.index[beyond[0]]),
            column="row",
        )
    for name in ids.columns:
        column = f"{name}_" if name in RESERVED else str(name)
        if column not in part:
            continue
        now = ids[name].iloc[part["row"].to_numpy() - 1].astype("string").reset_index(drop=True)
        then = part[column].astype("string").reset_index(drop=True)
        other = np.flatnonzero((now.fillna("") != then.fillna("")).to_numpy())
        if len(other):
            raise DataError(
                f"{then.iloc[other[0]]!r} in the file, but row {part['row'].iloc[other[0]]} of {table} is now "
                f"{now.iloc[other[0]]!r}: the table was changed or reordered",
                file=file,
                row=int(part.index[other[0]]),
                column=column,
            )
