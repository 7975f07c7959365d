"""Tables of all atoms and all bonds of molecules, with their labels, from lists and long tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from censnet.data.molecules.atoms_and_bonds import element_symbols
from censnet.data.molecules.label_lists import read_lists
from censnet.data.molecules.label_sources import IDENTITY, LEVELS, LabelSources, LongTable
from censnet.data.molecules.long_tables import Matches, match_rows
from censnet.data.molecules.match_molecules import MoleculeTable, read_whole
from censnet.data.tables.columns import DECIMAL_COMMA, as_arrow, as_text
from censnet.data.tables.notes import RowError
from censnet.data.tables.number_notation import Notation
from censnet.data.tables.row_errors import RowErrors, locate
from censnet.data.tables.schema import TableSchema
from censnet.errors import DataError, quote
from censnet.levels import Level
from censnet.ops.arrays import Array, BoolArray, IntArray, sorted_unique
from censnet.text import count

BOND_TYPES = ("single", "double", "triple", "aromatic", "other")


@dataclass(frozen=True, eq=False)
class LabeledParts:
    """The atoms or the bonds of all molecules as a table.

    Behind them stand rows that are no atom or bond: those of a long table that cannot be used, those of lists of the
    wrong length, and molecules that cannot be read.

    Args:
        frame: which atom or bond each row is, its labels, and the other columns of the long table.
        rows: for each row of the frame its row in the tensors, or -1.
        schema: its keys and targets.
        file: its name in messages.
    """

    frame: pd.DataFrame
    rows: Tensor
    schema: TableSchema
    file: str


@dataclass(frozen=True, eq=False)
class _Refused:
    """A row that is no atom or bond: where it came from, and why."""

    molecule_row: int
    error: RowError
    long_row: int = -1


def label_parts(
    sources: LabelSources,
    level: Level,
    molecules: MoleculeTable,
    graphs: pd.DataFrame,
    id_column: str | None,
    decided: Mapping[str, str],
    problems: RowErrors,
    fitted: TableSchema | None,
) -> LabeledParts:
    """The table of all atoms, or of all bonds, with their labels.

    Args:
        sources: where labels are.
        level: nodes for atoms, edges for bonds.
        molecules: the molecules.
        graphs: their table.
        id_column: its column of ids, if it has one.
        decided: column -> kind, as the user says.
        problems: where rows that cannot be used are noted.
        fitted: the schema of this table in a run; None in training, where some label must be usable.
    """
    table, targets = sources.tables.get(level), list(sources.targets.get(level, ()))
    columns = _identity(level, molecules)
    if id_column is not None and id_column not in columns:
        owner_rows = columns["row"] - 1
        columns = _after(columns, "molecule", id_column, as_arrow(graphs[id_column]).combine_chunks().take(owner_rows))
    refused: list[_Refused] = []
    named = set[int]()
    if table is not None:
        clash = next((name for name in table.others if name in columns and name in targets), None)
        if clash is not None:
            raise DataError(f"says which {LEVELS[level]} it is, expected labels", table.file, column=clash)
        matches = match_rows(table, level, molecules)
        if fitted is None and len(table.frame) and not len(matches.rows):
            first = matches.errors[min(matches.errors)]
            raise DataError(f"no row is of {_a(level)} of {molecules.file}; the first: {first}", table.file)
        labels, conflicts = _join(table, matches, targets, len(columns["row"]), level)
        columns |= {(f"{name}_" if name in columns else name): values for name, values in labels.items()}
        errors = {**matches.errors, **conflicts}
        where = matches.molecule_rows
        refused += [_Refused(int(where[row]), errors[row], row) for row in sorted(errors)]
        named = set(where.tolist())
    for name in sources.lists.get(level, ()):
        values, bad = _spread(graphs[name], level, molecules)
        if fitted is None and bad and values.null_count == len(values):
            raise DataError(f"no list is of the {LEVELS[level]}s of its molecule; the first: {bad[min(bad)]}")
        columns[name] = values
        refused += [_Refused(row, error) for row, error in bad.items()]
    refused += [_Refused(row, error) for row, error in molecules.problems.items() if row not in named]
    file = _file_name(table, level, molecules)
    num_parts = len(columns["row"])
    frame = pd.DataFrame({name: _series(values) for name, values in columns.items()})
    if refused:
        frame = pd.concat([frame, _refused_rows(refused, frame, table, level, molecules, id_column)], ignore_index=True)
    located = {num_parts + number: one.error for number, one in enumerate(refused)}
    problems.add_located(level.table, located)
    problems.num_rows[level.table] = len(molecules.smiles if table is None else table.frame)
    rows = torch.cat([torch.arange(num_parts), torch.full((len(refused),), -1)])
    keys = {name: name for name in IDENTITY[level]}
    keys |= {} if id_column is None or id_column in keys else {"graph": id_column}
    said: dict[str, Notation] = {DECIMAL_COMMA: "comma", "number": "point"}
    schema = fitted or TableSchema(
        keys=keys,
        targets=targets,
        notations={name: said[decided[name]] for name in targets if decided.get(name) in said},
    )
    return LabeledParts(frame, rows, schema, file)


def _identity(level: Level, molecules: MoleculeTable) -> dict[str, Array | pa.Array]:
    """The columns that say which atom or bond each is."""
    read, length = molecules.read, molecules.counts(level)
    rows = np.repeat(read.rows, length)
    elements, which = np.unique(read.atoms[:, 0], return_inverse=True)
    symbols = pa.array(element_symbols(elements.tolist()), pa.string()).take(pa.array(which))
    found: dict[str, Array | pa.Array] = {
        "row": rows + 1,
        "molecule": pa.array(list(molecules.smiles), pa.string()).take(pa.array(rows)),
    }
    if level is Level.NODE:
        return found | {"atom_index": molecules.atom_numbers, "element": symbols}
    inside = np.arange(len(rows)) - np.repeat(molecules.first(level), length)
    begin, end = read.ends + np.repeat(molecules.first(Level.NODE), length)
    numbers = molecules.atom_numbers
    return found | {
        "bond_index": inside,
        "atom_1": numbers[begin],
        "atom_2": numbers[end],
        "begin_atom": symbols.take(pa.array(begin)),
        "end_atom": symbols.take(pa.array(end)),
        "bond_type": pa.array(BOND_TYPES).take(pa.array(read.bonds[:, 0].astype(np.int64))),
    }


def _join(
    table: LongTable, matches: Matches, targets: Sequence[str], num_parts: int, level: Level
) -> tuple[dict[str, pa.Array], dict[int, RowError]]:
    """The columns of a long table on the atoms or bonds, and errors of rows that contradict each other.

    Several rows of one bond give their first value each, unless they have different labels: then none counts.
    """
    found: dict[str, pa.Array] = {}
    errors: dict[int, RowError] = {}
    for name in table.others:
        values = as_arrow(table.frame[name]).combine_chunks()
        there = ~np.asarray(pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False), dtype=bool)
        rows, places = matches.rows[there[matches.rows]], matches.places[there[matches.rows]]
        source = np.full(num_parts, -1, np.int64)
        source[places[::-1]] = rows[::-1]
        if name in targets and len(sorted_unique(places)) < len(places):
            codes = as_text(pa.chunked_array([values])).combine_chunks().dictionary_encode().indices
            code = np.asarray(pc.fill_null(codes, -1).to_numpy(zero_copy_only=False))
            differs = code[rows] != code[source[places]]
            lost = np.zeros(num_parts, bool)
            lost[places[differs]] = True
            errors |= _contradictions(table, name, values, rows[lost[places]], places[lost[places]], level, errors)
            source[lost] = -1
        found[name] = values.take(pa.array(source, mask=source < 0))
    return found, errors


def _contradictions(
    table: LongTable,
    name: str,
    values: pa.Array,
    rows: IntArray,
    places: IntArray,
    level: Level,
    known: Mapping[int, RowError],
) -> dict[int, RowError]:
    """An error for each of several rows that give one atom or bond different labels."""
    of_place: dict[int, list[int]] = {}
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        of_place.setdefault(place, []).append(row)
    errors = {}
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        mine = values[row].as_py()
        other = next((each for each in of_place[place] if values[each].as_py() != mine), None)
        if other is not None and row not in known:
            text = (
                f"{quote(mine)}, but row {other + 1:,} has {quote(values[other].as_py())} for the same {LEVELS[level]}"
            )
            errors[row] = locate(RowError(f"another label for the same {LEVELS[level]}", text), table.file, row, name)
    return errors


def _spread(column: pd.Series[Any], level: Level, molecules: MoleculeTable) -> tuple[pa.Array, dict[int, RowError]]:
    """The entries of lists on the atoms or bonds, and the rows whose lists cannot be used."""
    lists, length, rows = read_lists(column, molecules.file), molecules.counts(level), molecules.read.rows
    mine = lists.lengths[rows]
    fits = mine == length
    source = np.full(int(length.sum()), -1, np.int64)
    inside = np.arange(len(source)) - np.repeat(molecules.first(level), length)
    good: BoolArray = np.repeat(fits, length)
    source[good] = (np.repeat(lists.first[rows], length) + inside)[good]
    name, read = str(column.name), set(rows.tolist())
    errors = {row: locate(error, molecules.file, row, name) for row, error in lists.errors.items() if row in read}
    hint = "" if molecules.explicit else "; data.hydrogens=explicit makes hydrogens atoms"
    for graph in np.flatnonzero(~fits & (mine >= 0)).tolist():
        row, wanted = int(rows[graph]), count(int(length[graph]), LEVELS[level])
        found = count(int(mine[graph]), "entry", "entries")
        what = f"{quote(molecules.smiles[row])} has {wanted}{hint}"
        text = f"the list has {found}, expected {length[graph]:,}: {what}"
        errors[row] = locate(RowError("a list of the wrong length", text), molecules.file, row, name)
    return lists.values.take(pa.array(source, mask=source < 0)), errors


def _refused_rows(
    refused: Sequence[_Refused],
    frame: pd.DataFrame,
    table: LongTable | None,
    level: Level,
    molecules: MoleculeTable,
    id_column: str | None,
) -> pd.DataFrame:
    """Rows that are no atom or bond, with what they say of themselves."""
    found = np.array([one.molecule_row for one in refused])
    long = np.array([one.long_row for one in refused])
    columns: dict[str, pd.Series[Any]] = {}
    texts = [molecules.smiles[row] if row >= 0 else None for row in found.tolist()]
    if table is not None and "molecule" in table.keys:
        given = table.frame[table.keys["molecule"]]
        texts = [given.iloc[row] if text is None and row >= 0 else text for text, row in zip(texts, long, strict=True)]
    columns["row"] = pd.Series(pa.array(found + 1, mask=found < 0), dtype=pd.ArrowDtype(pa.int64()))
    columns["molecule"] = _series(as_text(as_arrow(pd.Series(texts, dtype=object))).combine_chunks().cast(pa.string()))
    of_table = long >= 0
    identity = {*IDENTITY[level], *([] if id_column is None else [id_column])}
    for role in () if table is None else IDENTITY[level]:
        if table is not None and role in table.keys and role not in columns:
            whole, bad, missing = read_whole(table, role)
            gone = missing.copy()
            gone[bad] = True
            columns[role] = _series(pa.array(whole, mask=gone).take(pa.array(long, mask=~of_table)))
    for name in () if table is None else table.others:
        if table is not None:
            values = as_arrow(table.frame[name]).combine_chunks()
            called = f"{name}_" if name in identity else name
            columns[called] = _series(values.take(pa.array(long, mask=~of_table)))
    made = pd.DataFrame(columns).reindex(columns=frame.columns)
    return made.astype(frame.dtypes.to_dict())


def _after(columns: dict[str, Array | pa.Array], name: str, new: str, values: pa.Array) -> dict[str, Array | pa.Array]:
    """The columns with a new one behind another."""
    found: dict[str, Array | pa.Array] = {}
    for key, value in columns.items():
        found[key] = value
        if key == name:
            found[new] = values
    return found


def _series(values: Array | pa.Array) -> pd.Series[Any]:
    arrow = pa.array(values) if isinstance(values, np.ndarray) else values
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow])))


def _file_name(table: LongTable | None, level: Level, molecules: MoleculeTable) -> str:
    return f"{LEVELS[level]}s of {molecules.file}" if table is None else table.file


def _a(level: Level) -> str:
    return "an atom" if level is Level.NODE else "a bond"
