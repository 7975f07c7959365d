"""The molecule that each row of a long table is about: by its SMILES, its id or its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.molecules.atoms_and_bonds import Read
from censnet.data.molecules.label_sources import LongTable
from censnet.data.tables.columns import as_arrow, as_text, read_numbers
from censnet.data.tables.notes import RowError
from censnet.data.tables.row_errors import locate
from censnet.data.tables.row_order import invert_rows
from censnet.errors import quote
from censnet.levels import Level
from censnet.ops.arrays import BoolArray, IntArray
from censnet.text import count


@dataclass(frozen=True, eq=False)
class MoleculeTable:
    """The table of molecules as long tables refer to it.

    Args:
        smiles: the text of each row.
        ids: the id of each row, if there is a column of ids.
        file: its name.
        read: the molecules.
        explicit: whether hydrogens are atoms.
        problems: row -> why it is no molecule, with its location.
    """

    smiles: Sequence[str]
    ids: pd.Series[Any] | None
    file: str
    read: Read
    explicit: bool
    problems: Mapping[int, RowError]

    @property
    def graph_of_row(self) -> IntArray:
        """The molecule of each row, -1 for none."""
        return invert_rows(self.read.rows, len(self.smiles))

    def counts(self, level: Level) -> IntArray:
        """The number of atoms or bonds of each molecule."""
        return self.read.num_atoms if level is Level.NODE else self.read.num_bonds

    def first(self, level: Level) -> IntArray:
        """The first atom or bond of each molecule."""
        length = self.counts(level)
        return np.cumsum(length) - length

    @property
    def atom_numbers(self) -> IntArray:
        """The number of each atom in its molecule: rdkit's index, or the map number where all atoms have one."""
        length = self.read.num_atoms
        found = np.arange(int(length.sum())) - np.repeat(self.first(Level.NODE), length)
        first, graph_of_row = self.first(Level.NODE), self.graph_of_row
        for row, numbers in self.read.numbers.items():
            start = first[graph_of_row[row]]
            found[start : start + len(numbers)] = numbers
        return found


class LongTableErrors:
    """Errors of rows of one file, and which rows have none so far."""

    def __init__(self, file: str, length: int) -> None:
        self.found: dict[int, RowError] = {}
        self.good: BoolArray = np.ones(length, bool)
        self._file = file

    def add(self, rows: IntArray, column: str, cause: str, texts: Sequence[str]) -> None:
        """Note errors; the first error of a row stays."""
        for row, text in zip(rows.tolist(), texts, strict=True):
            if self.good[row]:
                self.found[row] = locate(RowError(cause, text), self._file, row, column)
                self.good[row] = False


def match_molecules(table: LongTable, molecules: MoleculeTable, errors: LongTableErrors) -> tuple[IntArray, IntArray]:
    """Pairs of a row of the long table and a row of the molecules."""
    length, known = len(table.frame), len(molecules.smiles)
    none = np.zeros(0, np.int64)
    rows, found = none, none
    texts = None
    if "molecule" in table.keys:
        texts = _trimmed(table.frame[table.keys["molecule"]]).to_pylist()
    by_row = np.zeros(length, bool)
    if "row" in table.keys:
        column = table.keys["row"]
        number, bad, missing = read_whole(table, "row")
        errors.add(bad, column, "is not a whole number", describe_not_whole(table, "row", bad))
        outside = np.flatnonzero(~missing & errors.good & ((number < 1) | (number > known)))
        what = f"{molecules.file} has {count(known, 'row')}, counted from 1"
        errors.add(outside, column, "no such row", [f"there is no row {number[row]:,} ({what})" for row in outside])
        by_row = ~missing
        rows = np.flatnonzero(by_row & errors.good)
        found = number[rows] - 1
        if texts is not None:
            rows, found = _check_texts(rows, found, texts, table, molecules, errors)
        elif missing.any():
            empty = np.flatnonzero(missing)
            errors.add(empty, column, "is missing", ["the row is missing"] * len(empty))
    if texts is None:
        return rows, found
    some, others = _look_up(texts, np.flatnonzero(~by_row & errors.good), molecules)
    column = table.keys["molecule"]
    unknown = np.setdiff1d(np.flatnonzero(~by_row & errors.good), some)
    missing_text = np.array([texts[row] is None for row in unknown], dtype=bool)
    errors.add(unknown[missing_text], column, "is missing", ["the molecule is missing"] * int(missing_text.sum()))
    unknown = unknown[~missing_text]
    what = f"{molecules.file} has {count(known, 'row')}"
    messages = [f"no row of the molecules is {quote(texts[row])} ({what})" for row in unknown]
    errors.add(unknown, column, "no such molecule", messages)
    rows, found = np.concatenate([rows, some]), np.concatenate([found, others])
    order = np.argsort(rows, kind="stable")
    return rows[order], found[order]


def refuse_rows_of_no_molecule(
    rows: IntArray, molecule_rows: IntArray, table: LongTable, molecules: MoleculeTable, errors: LongTableErrors
) -> None:
    column = table.keys.get("molecule") or table.keys["row"]
    for row, molecule in zip(rows.tolist(), molecule_rows.tolist(), strict=True):
        why = molecules.problems.get(molecule, "not a molecule")
        errors.add(np.array([row]), column, "cannot be read as a molecule", [f"the molecule cannot be read: {why}"])


def read_whole(table: LongTable, role: str) -> tuple[IntArray, IntArray, BoolArray]:
    """The whole numbers of a key column: the numbers, the rows that hold something else, and those that hold none."""
    values = as_arrow(table.frame[table.keys[role]])
    parsed = read_numbers(values)
    numbers = parsed.numbers.astype(np.float64)
    missing = np.isnan(numbers)
    missing[parsed.bad] = False
    odd = ~missing & ~np.isnan(numbers) & ((numbers != np.floor(numbers)) | (np.abs(numbers) >= 2**31))
    bad = np.union1d(parsed.bad, np.flatnonzero(odd)).astype(np.int64)
    whole = np.where(np.isnan(numbers) | odd, -1, numbers).astype(np.int64)
    return whole, bad, missing


def describe_not_whole(table: LongTable, role: str, rows: IntArray) -> list[str]:
    values = table.frame[table.keys[role]]
    return [f"{quote(values.iloc[row])} is not a whole number" for row in rows.tolist()]


def _look_up(texts: Sequence[str | None], rows: IntArray, molecules: MoleculeTable) -> tuple[IntArray, IntArray]:
    """Pairs of some rows and the rows of the molecules of that SMILES; or of that id, if more rows are found by it."""
    given = pd.Series([texts[row] for row in rows], dtype=object)
    best = np.zeros(0, np.int64), np.zeros(0, np.int64)
    reached = -1
    candidates = [(_first_words(given), _first_words(molecules.smiles))]
    candidates += [] if molecules.ids is None else [(_trimmed(given), _trimmed(molecules.ids))]
    for wanted, known in candidates:
        codes, distinct = pd.factorize(np.array(known.to_pylist(), dtype=object))
        code = np.full(len(rows), -1)
        if len(distinct):
            code = pd.Index(distinct).get_indexer(pd.Index(np.array(wanted.to_pylist(), dtype=object)))
        code[pc.is_null(wanted).to_numpy()] = -1
        hit = int((code >= 0).sum())
        if hit > reached:
            order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
            length = np.bincount(codes[codes >= 0], minlength=len(distinct))
            first = np.cumsum(length) - length
            mine = np.flatnonzero(code >= 0)
            times = length[code[mine]]
            inside = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
            best = np.repeat(rows[mine], times), order[np.repeat(first[code[mine]], times) + inside]
            reached = hit
    return best


def _check_texts(
    rows: IntArray,
    found: IntArray,
    texts: Sequence[str | None],
    table: LongTable,
    molecules: MoleculeTable,
    errors: LongTableErrors,
) -> tuple[IntArray, IntArray]:
    """The same pairs without those whose molecule is another than that of the row."""
    given = np.array([texts[row] for row in rows], dtype=object)
    smiles = np.array(_first_words(molecules.smiles).to_pylist(), dtype=object)
    words = np.array(_first_words(given.tolist()).to_pylist(), dtype=object)
    same = np.array([text is None for text in given], dtype=bool) | (words == smiles[found])
    if molecules.ids is not None:
        same |= given == np.array(_trimmed(molecules.ids).to_pylist(), dtype=object)[found]
    other = np.flatnonzero(~same)
    messages = [
        f"{quote(given[place])} is not row {found[place] + 1:,} of {molecules.file}, which is "
        f"{quote(molecules.smiles[found[place]])}"
        for place in other
    ]
    errors.add(rows[other], table.keys["molecule"], "is another molecule than that of the row", messages)
    return rows[same], found[same]


def _trimmed(values: Sequence[object] | pd.Series[Any]) -> pa.ChunkedArray:
    """Texts without white space around them, None where there is none."""
    series = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    text = pc.utf8_trim_whitespace(as_text(as_arrow(series)))
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _first_words(values: Sequence[object] | pd.Series[Any]) -> pa.ChunkedArray:
    """SMILES without what stands behind them, None where there is none."""
    text = _trimmed(values)
    if pc.any(pc.match_substring_regex(text, r"\s")).as_py():
        return pc.list_element(pc.utf8_split_whitespace(text), 0)
    return text
