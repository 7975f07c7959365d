"""Rows of a long table to the atoms or bonds that they are about, by joins of whole columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censnet.data.molecules.label_sources import LongTable
from censnet.data.molecules.match_molecules import (
    LongTableErrors,
    MoleculeTable,
    describe_not_whole,
    match_molecules,
    read_whole,
    refuse_rows_of_no_molecule,
)
from censnet.data.tables.notes import RowError
from censnet.errors import quote
from censnet.levels import Level
from censnet.ops.arrays import BoolArray, IntArray
from censnet.text import count

_WIDE = 2**32  # more than any number of an atom: molecule * _WIDE + number is one number for each atom


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


def match_rows(table: LongTable, level: Level, molecules: MoleculeTable) -> Matches:
    """Find the atom or bond of each row of a long table."""
    errors = LongTableErrors(table.file, len(table.frame))
    rows, molecule_rows = match_molecules(table, molecules, errors)
    first_of = np.full(len(table.frame), -1, np.int64)
    first_of[rows[::-1]] = molecule_rows[::-1]
    graph = molecules.graph_of_row[molecule_rows] if len(molecules.smiles) else molecule_rows
    refuse_rows_of_no_molecule(rows[graph < 0], molecule_rows[graph < 0], table, molecules, errors)
    rows, graph = rows[graph >= 0], graph[graph >= 0]
    if level is Level.NODE:
        places = _atoms_at("atom_index", rows, graph, table, molecules, errors)
    else:
        places = _bonds_at(rows, graph, table, molecules, errors)
    good = errors.good[rows] & (places >= 0)
    return Matches(rows[good], places[good], errors.found, first_of)


def _atoms_at(
    role: str, rows: IntArray, graph: IntArray, table: LongTable, molecules: MoleculeTable, errors: LongTableErrors
) -> IntArray:
    """The atom of each pair of a row and a molecule by its number in it, -1 for none."""
    column = table.keys[role]
    number, bad, missing = read_whole(table, role)
    errors.add(bad, column, "is not a whole number", describe_not_whole(table, role, bad))
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


def _bonds_at(
    rows: IntArray, graph: IntArray, table: LongTable, molecules: MoleculeTable, errors: LongTableErrors
) -> IntArray:
    """The bond of each pair of a row and a molecule, by its index or by its two atoms, -1 for none."""
    first, length = molecules.first(Level.EDGE), molecules.read.num_bonds
    places = np.full(len(rows), -1, np.int64)
    by_pair = np.ones(len(rows), bool)
    has_pair = {"atom_1", "atom_2"} <= table.keys.keys()
    if "bond_index" in table.keys:
        column = table.keys["bond_index"]
        number, bad, missing = read_whole(table, "bond_index")
        errors.add(bad, column, "is not a whole number", describe_not_whole(table, "bond_index", bad))
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
    errors: LongTableErrors,
) -> IntArray:
    """The bond between two atoms, -1 for none; an error where it is `needed`, since nothing else names the bond."""
    own = LongTableErrors(table.file, len(table.frame))
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
