"""Atom-map numbers of a SMILES, as in ``[CH3:1][OH:2]``: where every atom has one, atoms are called by them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from censnet.data.molecules.smiles_to_mol import parse_with_hydrogens

_MAP = re.compile(r":\d+\]")
_MAPPED_HYDROGEN = re.compile(r"\[\d*H[+-]?:\d+\]")


def number_atoms(text: str, molecule: Any, num_written: int) -> tuple[list[int] | None, str]:
    """The map number of each atom, and a remark if some are given that cannot be used.

    Every atom but the hydrogens that rdkit has added needs a number, and no two the same. Hydrogens that were written
    with a number keep it, although rdkit removes them and adds others: those at one atom are alike. Other hydrogens
    have the numbers behind the greatest, in rdkit's order.

    Args:
        text: the SMILES.
        molecule: with its hydrogens, if they are atoms.
        num_written: the number of its atoms without those that were added, which stand behind.

    >>> number_atoms("[CH2:7]([H])[OH:2]", parse_with_hydrogens("[CH2:7]([OH:2])[H]"), 2)
    ([7, 2, 8], '')
    >>> number_atoms("[CH3:1]O", parse_with_hydrogens("[CH3:1]O"), 2)
    (None, 'map numbers')
    """
    if _MAP.search(text) is None:
        return None, ""
    atoms = list(molecule.GetAtoms())
    known = [atom.GetAtomMapNum() for atom in atoms]
    if _MAPPED_HYDROGEN.search(text) and num_written < len(atoms):
        written = _numbers_of_hydrogens(text.split()[0])
        for place in range(num_written, len(atoms)):
            of_atom = written[atoms[place].GetNeighbors()[0].GetAtomMapNum()]
            known[place] = of_atom.pop(0) if of_atom else 0
    given = [number for number in known if number]
    if 0 in known[:num_written] or len(set(given)) < len(given):
        return None, "map numbers"
    free = iter(range(max(given) + 1, max(given) + 1 + len(known)))
    return [number or next(free) for number in known], ""


def _numbers_of_hydrogens(smiles: str) -> dict[int, list[int]]:
    """Map number of a heavy atom -> those of the hydrogens that are written at it."""
    found: dict[int, list[int]] = defaultdict(list)
    for atom in parse_with_hydrogens(smiles).GetAtoms():
        if atom.GetAtomicNum() == 1 and atom.GetAtomMapNum() and atom.GetDegree() == 1:
            found[atom.GetNeighbors()[0].GetAtomMapNum()].append(atom.GetAtomMapNum())
    return found
