"""Rows of a long table to the atoms or bonds that they are about, by joins of whole columns."""

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
from censnet.data.tables.packing import invert_rows
from censnet.data.tables.row_errors import locate
from censnet.errors import quote
from censnet.levels import Level
from censnet.ops.arrays import BoolArray, IntArray
from censnet.text import count

_WIDE = 2**32  # more than any number of an atom: molecule * _WIDE + number is one number for each atom


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


@dataclass(frozen=True, eq=False)
class Matches:
    """The rows of a long table that are about an atom or a bond; a row of a molecule that stands twice matches twice.

    Args:
        rows: of the long table.
        places: the atom or bond, counted over all molecules.
        errors: row -> why it is about none, with its location.
        molecule_rows: for each row of the long table, a row of the molecules, or -1.
    """

    rows: IntArray
    places: IntArray
    errors: dict[int, RowError]
    molecule_rows: IntArray


class _Errors:
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


def match_rows(table: LongTable, level: Level, molecules: MoleculeTable) -> Matches:
    """Find the atom or bond of each row of a long table."""
    errors = _Errors(table.file, len(table.frame))
    rows, molecule_rows = _match_molecules(table, molecules, errors)
    first_of = np.full(len(table.frame), -1, np.int64)
    first_of[rows[::-1]] = molecule_rows[::-1]
    graph = molecules.graph_of_row[molecule_rows] if len(molecules.smiles) else molecule_rows
    _refuse_rows_of_no_molecule(rows[graph < 0], molecule_rows[graph < 0], table, molecules, errors)
    rows, graph = rows[graph >= 0], graph[graph >= 0]
    if level is Level.NODE:
        places = _atoms_at("atom_index", rows, graph, table, molecules, errors)
    else:
        places = _bonds_at(rows, graph, table, molecules, errors)
    good = errors.good[rows] & (places >= 0)
    return Matches(rows[good], places[good], errors.found, first_of)


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


def _match_molecules(table: LongTable, molecules: MoleculeTable, errors: _Errors) -> tuple[IntArray, IntArray]:
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
        errors.add(bad, column, "is not a whole number", _not_whole(table, "row", bad))
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
    errors: _Errors,
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


def _refuse_rows_of_no_molecule(
    rows: IntArray, molecule_rows: IntArray, table: LongTable, molecules: MoleculeTable, errors: _Errors
) -> None:
    column = table.keys.get("molecule") or table.keys["row"]
    for row, molecule in zip(rows.tolist(), molecule_rows.tolist(), strict=True):
        why = molecules.problems.get(molecule, "not a molecule")
        errors.add(np.array([row]), column, "cannot be read as a molecule", [f"the molecule cannot be read: {why}"])


def _atoms_at(
    role: str, rows: IntArray, graph: IntArray, table: LongTable, molecules: MoleculeTable, errors: _Errors
) -> IntArray:
    """The atom of each pair of a row and a molecule by its number in it, -1 for none."""
    column = table.keys[role]
    number, bad, missing = read_whole(table, role)
    errors.add(bad, column, "is not a whole number", _not_whole(table, role, bad))
    empty = np.flatnonzero(missing)
    errors.add(empty, column, "is missing", ["the number of the atom is missing"] * len(empty))
    mine = number[rows]
    length = molecules.read.num_atoms
    key = np.repeat(np.arange(len(length)), length) * _WIDE + molecules.atom_numbers
    places = _find(key, np.where(mine >= 0, graph * _WIDE + mine, -1))
    lost = np.flatnonzero((places < 0) & errors.good[rows])
    mapped = {int(molecules.graph_of_row[row]) for row in molecules.read.numbers}
    messages = []
    for place in lost:
        inside = f"{count(int(length[graph[place]]), 'atom')}"
        how = "called by their map numbers" if int(graph[place]) in mapped else "counted from 0"
        hint = "" if molecules.explicit else "; data.hydrogens=explicit makes hydrogens atoms"
        what = quote(molecules.smiles[int(molecules.read.rows[graph[place]])])
        messages.append(f"{what} has no atom {mine[place]:,} (it has {inside}, {how}{hint})")
    errors.add(rows[lost], column, "no such atom", messages)
    return places


def _bonds_at(rows: IntArray, graph: IntArray, table: LongTable, molecules: MoleculeTable, errors: _Errors) -> IntArray:
    """The bond of each pair of a row and a molecule, by its index or by its two atoms, -1 for none."""
    first, length = molecules.first(Level.EDGE), molecules.read.num_bonds
    places = np.full(len(rows), -1, np.int64)
    by_pair = np.ones(len(rows), bool)
    has_pair = {"atom_1", "atom_2"} <= table.keys.keys()
    if "bond_index" in table.keys:
        column = table.keys["bond_index"]
        number, bad, missing = read_whole(table, "bond_index")
        errors.add(bad, column, "is not a whole number", _not_whole(table, "bond_index", bad))
        if not has_pair:
            empty = np.flatnonzero(missing)
            errors.add(empty, column, "is missing", ["the number of the bond is missing"] * len(empty))
        mine = number[rows]
        inside = (mine >= 0) & (mine < length[graph])
        by_pair = missing[rows]
        lost = np.flatnonzero(~inside & ~by_pair & errors.good[rows])
        hint = "" if molecules.explicit else "; data.hydrogens=explicit adds those of hydrogens"
        messages = [
            f"{quote(molecules.smiles[int(molecules.read.rows[graph[place]])])} has no bond {mine[place]:,} (it has "
            f"{count(int(length[graph[place]]), 'bond')}, counted from 0{hint})"
            for place in lost
        ]
        errors.add(rows[lost], column, "no such bond", messages)
        places = np.where(inside, first[graph] + np.where(inside, mine, 0), -1) if len(rows) else places
    if has_pair:
        pairs = _pairs_at(rows, graph, by_pair, table, molecules, errors)
        if "bond_index" in table.keys:
            other = np.flatnonzero((places >= 0) & (pairs >= 0) & (pairs != places))
            what = "atom_1 and atom_2 are another bond"
            messages = [f"bond {places[place] - first[graph[place]]:,} is not that of these atoms" for place in other]
            errors.add(rows[other], table.keys["bond_index"], what, messages)
        places = np.where(by_pair, pairs, places)
    return places


def _pairs_at(
    rows: IntArray,
    graph: IntArray,
    needed: BoolArray,
    table: LongTable,
    molecules: MoleculeTable,
    errors: _Errors,
) -> IntArray:
    """The bond between two atoms, -1 for none; an error where it is `needed`, since nothing else names the bond."""
    own = _Errors(table.file, len(table.frame))
    own.good = errors.good.copy()
    one = _atoms_at("atom_1", rows, graph, table, molecules, own)
    two = _atoms_at("atom_2", rows, graph, table, molecules, own)
    length = molecules.read.num_bonds
    ends = molecules.read.ends + np.repeat(molecules.first(Level.NODE), length)
    num_atoms = max(len(molecules.read.atoms), 1)
    key = np.minimum(*ends) * num_atoms + np.maximum(*ends)
    both = (one >= 0) & (two >= 0)
    places = _find(key, np.where(both, np.minimum(one, two) * num_atoms + np.maximum(one, two), -1))
    lost = np.flatnonzero(both & (places < 0))
    numbers = molecules.atom_numbers
    messages = [
        f"atoms {numbers[one[place]]:,} and {numbers[two[place]]:,} of "
        f"{quote(molecules.smiles[int(molecules.read.rows[graph[place]])])} have no bond"
        for place in lost
    ]
    own.add(rows[lost], table.keys["atom_2"], "no bond between these atoms", messages)
    wanted = set(rows[needed].tolist())
    for row, error in own.found.items():
        if errors.good[row] and row in wanted:
            errors.found[row], errors.good[row] = error, False
    return places


def _find(keys: IntArray, wanted: IntArray) -> IntArray:
    """The position of each wanted key among distinct keys, -1 where it is not there."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    return np.where(keys[order[place]] == wanted, order[place], -1)


def _not_whole(table: LongTable, role: str, rows: IntArray) -> list[str]:
    values = table.frame[table.keys[role]]
    return [f"{quote(values.iloc[row])} is not a whole number" for row in rows.tolist()]


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
