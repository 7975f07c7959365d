"""Drawings of molecules in few numbers: positions of atoms and kinds of bonds, which the page draws."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

from censnet.data.molecules.featurize import map_smiles
from censnet.data.molecules.smiles_to_mol import Parser, quiet_rdkit
from censnet.data.tables.schema import MoleculeReading

try:
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D
except ImportError:  # the extra `chem` is not installed; no molecule was read then
    Chem = None  # type: ignore[assignment]

MOST_ATOMS = 200  # of a molecule that is drawn
UNIT = 100  # numbers to one unit of length of rdkit's, which is about one Angstrom
ORDERS = {1: 1, 2: 2, 3: 3, 12: 4}  # of rdkit's BondType; 0 is any other
WEDGES = {1: 5, 6: 6}  # of rdkit's BondDir: begin a solid wedge, a dashed one


Drawing = dict[str, list[list[Any]]]


def draw_molecules(smiles: Sequence[str], reading: MoleculeReading) -> list[Drawing | None]:
    """The atoms and bonds of each molecule, numbered as those of its graph; None for one that is not drawn.

    Atoms are `[x, y]`, or `[x, y, symbol, hydrogens, charge]` where it is written; bonds `[begin, end, kind]`, where
    the kind is the order, 4 for aromatic, 5 and 6 for wedges from `begin` to the front and to the back, 0 for another.
    """
    return list(chain.from_iterable(map_smiles(partial(_draw_each, reading=reading), smiles, None)))


def _draw_each(smiles: Sequence[object], reading: MoleculeReading) -> list[Drawing | None]:
    with quiet_rdkit():
        parse = Parser(reading)
        molecules = (parse.molecule_or_none(text) for text in smiles)
        return [None if one is None else _draw(one, reading) for one in molecules]


def _draw(molecule: Any, reading: MoleculeReading) -> Drawing | None:
    if molecule.GetNumAtoms() > MOST_ATOMS:
        return None
    if reading.hydrogens == "explicit":
        molecule = Chem.AddHs(molecule)
    try:
        flat = rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=True, addChiralHs=False, forceCoords=True)
    except (RuntimeError, ValueError):  # of a ring that has no alternating double bonds
        try:
            flat = rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False, addChiralHs=False, forceCoords=True)
        except (RuntimeError, ValueError):
            return None
    positions = flat.GetConformer().GetPositions()
    atoms = list[list[Any]]()
    for atom, (x, y, _) in zip(flat.GetAtoms(), positions, strict=True):
        symbol, charge = atom.GetSymbol(), atom.GetFormalCharge()
        place: list[Any] = [round(float(x) * UNIT), round(-float(y) * UNIT)]
        if symbol != "C" or charge or atom.GetDegree() == 0 or atom.GetIsotope():
            written = f"{atom.GetIsotope()}{symbol}" if atom.GetIsotope() else symbol
            place += [written, atom.GetTotalNumHs(), charge]
        atoms.append(place)
    bonds = [
        [
            bond.GetBeginAtomIdx(),
            bond.GetEndAtomIdx(),
            WEDGES.get(int(bond.GetBondDir()), ORDERS.get(int(bond.GetBondType()), 0)),
        ]
        for bond in flat.GetBonds()
    ]
    return {"atoms": atoms, "bonds": bonds}
