"""What rdkit says of a SMILES. It is imported in this file alone."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censnet.data.errors import quote
from censnet.data.molecules.atoms import Codes

try:
    from rdkit import Chem, rdBase
    from rdkit.Chem.Scaffolds import MurckoScaffold
except ImportError:  # the extra `chem` is not installed; whoever reads a SMILES is told so
    Chem = None  # type: ignore[assignment]

LONGEST = 20_000  # characters of one SMILES
LONG = 2_000  # characters from which the size is looked at before rdkit's slower steps
MOST_ATOMS = 3_000
WITH_DESCRIPTORS = 300  # atoms; rdkit takes the fourth power of their number, so what is larger has no descriptors
WITH_SCAFFOLD = 500  # atoms; rdkit takes the cube of their number, so what is larger is a scaffold of its own
MOST_PARTS = 100  # separate ones, as the ions of a salt; taking them apart takes the cube of their number
MOST_RINGS = 500  # finding rings takes the cube of their number


@dataclass(frozen=True)
class Read:
    """The codes of many molecules, one after the other; ends are numbered within each molecule."""

    atoms: Codes  # (N, ATOM_CODES)
    bonds: Codes  # (E, BOND_CODES)
    ends: NDArray[np.int64]  # (2, E)
    num_atoms: NDArray[np.int64]  # (G,)
    num_bonds: NDArray[np.int64]  # (G,)
    rows: NDArray[np.int64]  # (G,) positions in the input
    problems: dict[int, str]  # position in the input -> why it is no molecule
    length: int  # of the input


class MoleculeError(ValueError):
    """Why a text became no molecule."""


def check_installed() -> None:
    """Raise unless rdkit is there."""
    if Chem is None:
        raise ValueError("reading SMILES needs rdkit, which is not installed: pip install 'censnet[chem]'")


def read_codes(smiles: Sequence[object]) -> Read:
    """The codes of each molecule's atoms and bonds (`atoms.py`).

    rdkit answers one question on one atom at a time, and each answer costs. So the degree and aromaticity of atoms are
    counted from the bonds, and stereochemistry is asked for only where the text has some.
    """
    rows: list[int] = []
    problems: dict[int, str] = {}
    num_atoms: list[int] = []
    num_bonds: list[int] = []
    element, hydrogens, charge, hybrid, radicals, chirality, ring, rings = (list[int]() for _ in range(8))
    kind, conjugated, in_rings, stereo, begin, end = (list[int]() for _ in range(6))
    with _rdkit():
        for row, text in enumerate(smiles):
            try:
                molecule = _parse(text)
            except MoleculeError as problem:
                problems[row] = str(problem)
                continue
            size, count, found = molecule.GetNumAtoms(), molecule.GetNumBonds(), molecule.GetRingInfo()
            atoms = list(map(molecule.GetAtomWithIdx, range(size)))
            bonds = list(map(molecule.GetBondWithIdx, range(count)))
            element += map(Chem.Atom.GetAtomicNum, atoms)
            hydrogens += map(Chem.Atom.GetTotalNumHs, atoms)
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
        length=len(smiles),
    )


def read_canonical(smiles: Sequence[object]) -> list[str | None]:
    """rdkit's own spelling of each molecule."""
    with _rdkit():
        return [None if molecule is None else Chem.MolToSmiles(molecule) for molecule in map(_parse_or_none, smiles)]


def read_scaffolds(smiles: Sequence[object]) -> list[str]:
    """The Bemis-Murcko scaffold of each molecule."""
    with _rdkit():
        return ["" if molecule is None else _scaffold(molecule) for molecule in map(_parse_or_none, smiles)]


def descriptor_names(names: Sequence[str] | None = None) -> list[str]:
    """All descriptors that rdkit has, in its order; or those named, if it has them."""
    check_installed()
    known = _descriptors()
    for name in names or ():
        if name not in known:
            raise ValueError(f"rdkit {rdBase.rdkitVersion} has no descriptor {quote(name)}, expected it as in training")
    return list(known if names is None else names)


def read_descriptors(smiles: Sequence[object], names: Sequence[str]) -> NDArray[np.float64]:
    """These descriptors of each molecule; NaN where one has no finite value, is not defined, or takes too long."""
    known = _descriptors()
    functions = [known[name] for name in names]
    found = np.full((len(smiles), len(functions)), np.nan)
    with _rdkit(), np.errstate(all="ignore"):
        for row, molecule in enumerate(map(_parse_or_none, smiles)):
            if molecule is None or molecule.GetNumAtoms() > WITH_DESCRIPTORS:
                continue
            for column, function in enumerate(functions):
                with suppress(Exception):  # rdkit raises what it likes for an atom that a descriptor does not know
                    found[row, column] = function(molecule)
    found[~np.isfinite(found)] = np.nan
    return found


def _descriptors() -> dict[str, Callable[[Any], float]]:
    from rdkit.Chem import Descriptors  # a moment, which only those who ask for descriptors shall wait

    return dict(Descriptors.descList)


def _scaffold(molecule: Any) -> str:
    if molecule.GetRingInfo().NumRings() == 0:
        return ""
    if molecule.GetNumAtoms() > WITH_SCAFFOLD:
        return str(Chem.MolToSmiles(molecule))
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule))  # type: ignore[no-untyped-call]


@contextmanager
def _rdkit() -> Iterator[None]:
    """rdkit writes nothing on the screen, and names stereo centres in one way whatever its default becomes.

    Python looks for no cycles meanwhile: the many short-lived objects of rdkit would have it do so again and again.
    """
    legacy, collecting = Chem.GetUseLegacyStereoPerception(), gc.isenabled()
    Chem.SetUseLegacyStereoPerception(True)
    gc.disable()
    try:
        with rdBase.BlockLogs():
            yield
    finally:
        if collecting:
            gc.enable()
        Chem.SetUseLegacyStereoPerception(legacy)


def _parse(text: object) -> Any:
    if not isinstance(text, str) or not text.strip():
        raise MoleculeError("no SMILES given")
    text = text.strip()
    if len(text) > LONGEST:
        raise MoleculeError(f"not a molecule: {quote(text)} ({len(text):,} characters, at most {LONGEST:,})")
    if text.count(".") >= MOST_PARTS:
        raise MoleculeError(f"not a molecule: {quote(text)} (more than {MOST_PARTS} parts)")
    if not text.isascii() or not text.isprintable():
        raise MoleculeError(f"not a molecule: {quote(text)} (a character that SMILES does not have)")
    if len(text) > LONG:
        _check_size(text)
    molecule = Chem.MolFromSmiles(text)
    if molecule is None:
        raise MoleculeError(f"not a molecule: {quote(text)} ({_reason(text)})")
    if molecule.GetNumAtoms() == 0:
        raise MoleculeError(f"not a molecule: {quote(text)} (no atom)")
    return molecule


def _parse_or_none(text: object) -> Any:
    try:
        return _parse(text)
    except MoleculeError:
        return None


def _check_size(text: str) -> None:
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None:
        return
    atoms, rings = molecule.GetNumAtoms(), molecule.GetNumBonds() - molecule.GetNumAtoms() + text.count(".") + 1
    if atoms > MOST_ATOMS or rings > MOST_RINGS:
        found = f"{atoms:,} atoms, at most {MOST_ATOMS:,}" if atoms > MOST_ATOMS else f"more than {MOST_RINGS} rings"
        raise MoleculeError(f"not a molecule: {quote(text)} ({found})")


def _reason(text: str) -> str:
    """Why rdkit refuses a text: it writes that to a log only, so the text is looked at here."""
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is not None:
        try:
            problems = Chem.DetectChemistryProblems(molecule)
        except RuntimeError:
            return "an atom that no element has"
        return " ".join(problems[0].Message().split()) if problems else "chemistry that rdkit refuses"
    outside = re.sub(r"\[[^\[\]]*\]", "*", text.split()[0])
    if "[" in outside or "]" in outside:
        return "unclosed bracket"
    depth = np.cumsum([(sign == "(") - (sign == ")") for sign in outside])
    if depth.min() < 0 or depth[-1] > 0:
        return "unclosed parenthesis" if depth[-1] > 0 else "closing parenthesis without an opening one"
    closures = [number.strip("%()").lstrip("0") for number in re.findall(r"%\(\d+\)|%\d\d|\d", outside)]
    if any(closures.count(number) % 2 for number in set(closures)):
        return "unclosed ring"
    return "not the syntax of SMILES"


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
