"""SMILES to codes of atoms and bonds, descriptors and scaffolds, by rdkit: each SMILES is parsed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censnet.data.molecules.atom_maps import number_atoms
from censnet.data.molecules.atoms import Codes
from censnet.data.molecules.smiles_text import MoleculeError
from censnet.data.molecules.smiles_to_mol import MAX_ATOMS, Parser, describe_refusal, quiet_rdkit
from censnet.data.tables.notes import RowError
from censnet.data.tables.schema import MoleculeReading
from censnet.errors import DataError, MissingDependencyError, quote
from censnet.ops.arrays import IntArray

try:
    from rdkit import Chem, rdBase
    from rdkit.Chem.Scaffolds import MurckoScaffold
except ImportError:  # the extra `chem` is not installed; reading a SMILES raises an error
    Chem = None  # type: ignore[assignment]

WITH_DESCRIPTORS = 300  # atoms; rdkit takes the fourth power of their number, so what is larger has no descriptors
WITH_SCAFFOLD = 500  # atoms; rdkit takes the cube of their number, so what is larger is a scaffold of its own
PLAIN = MoleculeReading()


@dataclass(frozen=True)
class Read:
    """Many molecules: the codes of atoms and bonds one after the other; ends are numbered within each molecule."""

    atoms: Codes  # (N, ATOM_CODES)
    bonds: Codes  # (E, BOND_CODES)
    ends: IntArray  # (2, E)
    num_atoms: IntArray  # (G,)
    num_bonds: IntArray  # (G,)
    rows: IntArray  # (G,) positions in the input
    problems: dict[int, RowError]  # position in the input -> why it is no molecule
    remarks: dict[str, list[int]]  # what is worth saying of a molecule (`assemble.REMARKS`) -> positions in the input
    descriptors: NDArray[np.float64]  # (length, D), those asked for; NaN where there is no molecule or no value
    scaffolds: list[str | None]  # of each text, if asked for; '' where there is no ring, None where no molecule
    length: int  # of the input
    numbers: dict[int, list[int]] = field(default_factory=dict)  # position in the input -> its atoms' map numbers


def check_installed() -> None:
    """Raise unless rdkit is there."""
    if Chem is None:
        raise MissingDependencyError("reading SMILES needs rdkit, which is not installed: pip install 'censnet[chem]'")


def read_molecules(
    smiles: Sequence[object],
    reading: MoleculeReading = PLAIN,
    descriptors: Sequence[str] = (),
    scaffolds: bool = False,
    numbers: bool = False,
) -> Read:
    """Parse each SMILES once, and take all that is asked for from it.

    rdkit gives one property of one atom at a time, and each call costs. So the degree and aromaticity of atoms are
    counted from the bonds, and stereochemistry is asked for only where the text has some.

    Args:
        smiles: the texts.
        reading: how a text becomes a molecule.
        descriptors: names of descriptors; a value that is not finite, not defined, or takes too long is NaN.
        scaffolds: whether the Bemis-Murcko scaffolds are computed.
        numbers: whether map numbers are read; see `number_atoms`.
    """
    rows: list[int] = []
    problems: dict[int, RowError] = {}
    remarks: dict[str, list[int]] = defaultdict(list)
    num_atoms: list[int] = []
    num_bonds: list[int] = []
    element, hydrogens, charge, hybrid, radicals, chirality, ring, rings = (list[int]() for _ in range(8))
    kind, conjugated, in_rings, stereo, begin, end = (list[int]() for _ in range(6))
    functions = [_descriptors()[name] for name in descriptors] if descriptors else []
    described = np.full((len(smiles), len(functions)), np.nan)
    frames: list[str | None] = [None] * (len(smiles) if scaffolds else 0)
    mapped: dict[int, list[int]] = {}
    explicit = reading.hydrogens == "explicit"
    with quiet_rdkit(), np.errstate(all="ignore"):
        parse = Parser(reading)
        for row, text in enumerate(smiles):
            try:
                molecule, found_of = parse(text)
            except MoleculeError as problem:
                problems[row] = RowError(problem.cause, str(problem))
                continue
            written = molecule
            molecule = Chem.AddHs(written) if explicit else written
            if numbers and ":" in str(text):
                known, remark = number_atoms(str(text), molecule, written.GetNumAtoms())
                mapped |= {} if known is None else {row: known}
                found_of += [remark] if remark else []
            for remark in found_of:
                remarks[remark].append(row)
            size, count, found = molecule.GetNumAtoms(), molecule.GetNumBonds(), molecule.GetRingInfo()
            atoms = list(map(molecule.GetAtomWithIdx, range(size)))
            bonds = list(map(molecule.GetBondWithIdx, range(count)))
            element += map(Chem.Atom.GetAtomicNum, atoms)
            hydrogens += (
                [atom.GetTotalNumHs(True) for atom in atoms] if explicit else map(Chem.Atom.GetTotalNumHs, atoms)
            )
            charge += map(Chem.Atom.GetFormalCharge, atoms)
            hybrid += map(Chem.Atom.GetHybridization, atoms)
            radicals += map(Chem.Atom.GetNumRadicalElectrons, atoms)
            chirality += map(_chirality, atoms) if "@" in str(text) else [0] * size
            ring += map(found.MinAtomRingSize, range(size))
            rings += map(found.NumAtomRings, range(size))
            begin += map(Chem.Bond.GetBeginAtomIdx, bonds)
            end += map(Chem.Bond.GetEndAtomIdx, bonds)
            kind += map(Chem.Bond.GetBondType, bonds)
            conjugated += map(Chem.Bond.GetIsConjugated, bonds)
            in_rings += map(found.NumBondRings, range(count))
            stereo += map(Chem.Bond.GetStereo, bonds) if "/" in str(text) or "\\" in str(text) else [0] * count
            rows.append(row)
            num_atoms.append(size)
            num_bonds.append(count)
            for column, function in enumerate(functions if size <= WITH_DESCRIPTORS else ()):
                with suppress(Exception):  # rdkit raises what it likes for an atom that a descriptor does not know
                    described[row, column] = function(written)
            if scaffolds:
                frames[row] = _scaffold(written)
    described[~np.isfinite(described)] = np.nan
    ends = np.array([begin, end], dtype=np.int64)
    sizes = np.array(num_atoms, dtype=np.int64)
    touched = ends + np.repeat(np.cumsum(sizes) - sizes, num_bonds)
    types = _BOND_TYPES[np.fromiter(kind, dtype=np.int64, count=len(kind))]
    degree = np.bincount(touched.ravel(), minlength=len(element))
    aromatic = np.bincount(touched[:, types == 3].ravel(), minlength=len(element)) > 0
    stereos = _STEREO[np.fromiter(stereo, dtype=np.int64, count=len(stereo))]
    hybrids = np.fromiter(hybrid, dtype=np.int64, count=len(hybrid))
    return Read(
        atoms=_stack(element, hydrogens, charge, hybrids, radicals, chirality, degree, aromatic, ring, rings),
        bonds=_stack(types, conjugated, np.minimum(in_rings, 1), stereos),
        ends=ends,
        num_atoms=sizes,
        num_bonds=np.array(num_bonds, dtype=np.int64),
        rows=np.array(rows, dtype=np.int64),
        problems=problems,
        remarks=dict(remarks),
        descriptors=described,
        scaffolds=frames,
        length=len(smiles),
        numbers=mapped,
    )


def read_canonical(smiles: Sequence[object], reading: MoleculeReading = PLAIN) -> list[str | None]:
    """rdkit's own spelling of each molecule."""
    with quiet_rdkit():
        molecules = map(Parser(reading).molecule_or_none, smiles)
        return [None if molecule is None else Chem.MolToSmiles(molecule) for molecule in molecules]


@dataclass(frozen=True)
class Block:
    """A connection table that was read: its SMILES, or why it has none; and whether its coordinates are in 3-D."""

    smiles: str = ""
    problem: str = ""
    is_spatial: bool = False


def read_blocks(blocks: Sequence[object]) -> list[Block]:
    """The SMILES of connection tables, as .mol and .sdf files have them."""
    with quiet_rdkit():
        return [_read_block(str(block)) for block in blocks]


def read_positions(smiles: Sequence[object], reading: MoleculeReading = PLAIN) -> list[list[int]]:
    """For each atom of each molecule's graph, its position among the atoms of the text, from 0."""
    with quiet_rdkit():
        parse = Parser(reading)
        return [parse.positions(text) for text in smiles]


def descriptor_names(names: Sequence[str] | None = None) -> list[str]:
    """All descriptors that rdkit has, in its order; or those named, if it has them."""
    check_installed()
    known = _descriptors()
    for name in names or ():
        if name not in known:
            raise DataError(f"rdkit {rdBase.rdkitVersion} has no descriptor {quote(name)}, expected it as in training")
    return list(known if names is None else names)


def element_symbols(numbers: Sequence[int]) -> list[str]:
    """The symbols of elements by atomic number; that of a dummy atom, 0, is ``*``.

    >>> element_symbols([0, 6, 17])
    ['*', 'C', 'Cl']
    """
    known = Chem.GetPeriodicTable()
    return [known.GetElementSymbol(number) if number else "*" for number in numbers]


def _descriptors() -> dict[str, Callable[[Any], float]]:
    from rdkit.Chem import Descriptors  # a moment, which only those who ask for descriptors shall wait

    return dict(Descriptors.descList)


def _read_block(block: str) -> Block:
    raw = Chem.MolFromMolBlock(block, sanitize=False, removeHs=False)
    if raw is None:
        return Block(problem="not a connection table that rdkit can read (expected V2000 or V3000, up to M  END)")
    if raw.GetNumAtoms() == 0:
        return Block(problem="a connection table without an atom")
    is_spatial = raw.GetNumConformers() > 0 and raw.GetConformer().Is3D()
    if raw.GetNumAtoms() > 2 * MAX_ATOMS:
        return Block(problem=f"{raw.GetNumAtoms():,} atoms, too many for a molecule", is_spatial=is_spatial)
    parts: list[Any] = [*raw.GetAtoms(), *raw.GetBonds()]
    if any(part.HasQuery() for part in parts if not _is_dummy(part)):
        why = "a query, not a molecule: a list of elements, or a bond of any order (give one molecule)"
        return Block(problem=why, is_spatial=is_spatial)
    molecule = Chem.MolFromMolBlock(block)
    if molecule is None:
        return Block(problem=f"not a molecule: {describe_refusal(raw)}", is_spatial=is_spatial)
    return Block(str(Chem.MolToSmiles(molecule)), is_spatial=is_spatial)


def _is_dummy(part: Any) -> bool:
    """Whether an atom is an R-group, which is a dummy atom in SMILES and said as one."""
    return isinstance(part, Chem.Atom) and part.GetAtomicNum() == 0 and part.GetSymbol() in ("*", "R", "R#")


def _scaffold(molecule: Any) -> str:
    if molecule.GetRingInfo().NumRings() == 0:
        return ""
    if molecule.GetNumAtoms() > WITH_SCAFFOLD:
        return str(Chem.MolToSmiles(molecule))
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule))  # type: ignore[no-untyped-call]


def _chirality(atom: Any) -> int:
    if not atom.GetChiralTag():
        return 0
    return {"R": 1, "S": 2}.get(atom.GetProp("_CIPCode"), 3) if atom.HasProp("_CIPCode") else 3


def _stack(*codes: Any) -> Codes:
    return np.stack([np.clip(np.asarray(code, dtype=np.int64), -999, 9_999).astype(np.int16) for code in codes], axis=1)


def _table(values: dict[int, int], other: int) -> Codes:
    table = np.full(256, other, dtype=np.int16)
    table[list(values)] = list(values.values())
    return table


# rdkit's numbers of BondType (SINGLE, DOUBLE, TRIPLE, AROMATIC) and BondStereo (NONE, Z, E) as the codes of `atoms.py`.
_BOND_TYPES = _table({1: 0, 2: 1, 3: 2, 12: 3}, other=4)
_STEREO = _table({0: 0, 2: 1, 3: 2}, other=3)
