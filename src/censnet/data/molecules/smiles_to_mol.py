"""One text as a molecule of rdkit's, or the reason why it is none."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from censnet.data.molecules.smiles_text import MoleculeError, other_notation, query, read_spelling, refusal
from censnet.data.tables.schema import MoleculeReading, Standardize

try:
    from rdkit import Chem, rdBase
except ImportError:  # the extra `chem` is not installed; `check_installed` says so
    Chem = None  # type: ignore[assignment]

LONG = 2_000  # characters from which the size is looked at before rdkit's slower steps
MAX_ATOMS = 3_000
MAX_RINGS = 500  # finding rings takes the cube of their number
DUMMY = "an R-group or dummy atom, not a molecule"
WITH_TAUTOMERS = 150  # atoms; what is larger keeps the tautomer that was given
MAX_TAUTOMERS = 200  # that are looked at
POSITION = "censnet_position"  # of an atom in its text, as a property of rdkit's atom


@contextmanager
def quiet_rdkit() -> Iterator[None]:
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


class Standardizer:
    """Bring a molecule to a standard form.

    Args:
        how: ``"fragment"`` keeps the largest fragment, an organic one if there is one; ``"parent"`` removes its charges
            too, by adding and removing protons; ``"tautomer"`` takes rdkit's canonical tautomer of that.
    """

    def __init__(self, how: Standardize) -> None:
        from rdkit.Chem.MolStandardize import rdMolStandardize  # a moment, for those who ask for it

        self._fragments = rdMolStandardize.LargestFragmentChooser(preferOrganic=True)
        self._charges = rdMolStandardize.Uncharger() if how in ("parent", "tautomer") else None
        self._tautomers = None
        if how == "tautomer":
            self._tautomers = rdMolStandardize.TautomerEnumerator()
            self._tautomers.SetMaxTautomers(MAX_TAUTOMERS)

    def apply(self, molecule: Any) -> Any:
        """The standard form of a molecule, as a new molecule."""
        found = self._fragments.choose(molecule)
        if self._charges is not None:
            found = self._charges.uncharge(found)
        if self._tautomers is not None and found.GetNumAtoms() <= WITH_TAUTOMERS:
            found = self._tautomers.Canonicalize(found)
        return found


class Parser:
    """Texts to molecules, in one way for everything that is read of them."""

    def __init__(self, reading: MoleculeReading) -> None:
        self._reading = reading
        self._standard = None if reading.standardize == "none" else Standardizer(reading.standardize)

    def __call__(self, text: object) -> tuple[Any, list[str]]:
        """A molecule, and what is worth saying of it: see `assemble.REMARKS`."""
        spelling = read_spelling(text, self._reading.isotopes)
        molecule = _parse(spelling.smiles)
        has_dummies = "*" in spelling.smiles
        if has_dummies and not self._reading.dummies:
            raise refusal(str(text).strip(), "put an atom, such as H, in the place of each *", DUMMY)
        remarks = [spelling.behind] if spelling.behind else []
        remarks += ["isotopes"] if spelling.has_isotopes else []
        remarks += ["dummies"] if has_dummies else []
        if self._standard is not None:
            molecule, remark = self._standardized(molecule)
            remarks += [remark] if remark else []
        elif "." in spelling.smiles and len(Chem.GetMolFrags(molecule)) > 1:
            remarks.append("fragments")
        return molecule, remarks

    def molecule_or_none(self, text: object) -> Any:
        try:
            return self(text)[0]
        except MoleculeError:
            return None

    def positions(self, text: object) -> list[int]:
        molecule = self.molecule_or_none(text)
        if molecule is None:
            return []
        if self._reading.hydrogens == "explicit":
            return list(range(Chem.AddHs(molecule).GetNumAtoms()))
        spelling = read_spelling(text, self._reading.isotopes)
        if "H" not in spelling.smiles and self._standard is None:
            return list(range(molecule.GetNumAtoms()))
        whole = parse_with_hydrogens(spelling.smiles)
        for atom in whole.GetAtoms():
            atom.SetIntProp(POSITION, atom.GetIdx())
        whole = Chem.RemoveHs(whole)
        if self._standard is not None:
            whole, _ = self._standardized(whole)
        return [atom.GetIntProp(POSITION) for atom in whole.GetAtoms()]

    def _standardized(self, molecule: Any) -> tuple[Any, str]:
        """The standard form, read anew from its SMILES, and a remark; the same object where it is the same molecule."""
        assert self._standard is not None
        try:
            standard = self._standard.apply(molecule)
            text = Chem.MolToSmiles(standard)
        except (RuntimeError, ValueError):  # whatever rdkit raises for chemistry that it does not know
            return molecule, "not standardized"
        if text == Chem.MolToSmiles(molecule):
            return molecule, ""
        order = list(standard.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
        again = Chem.MolFromSmiles(text)
        if again is None or again.GetNumAtoms() != len(order):  # as half a metallocene
            return molecule, "not standardized"
        for new, old in zip(again.GetAtoms(), map(standard.GetAtomWithIdx, order), strict=True):
            if old.HasProp(POSITION):
                new.SetIntProp(POSITION, old.GetIntProp(POSITION))
        return again, "standardized"


def _parse(text: str) -> Any:
    if len(text) > LONG:
        _check_size(text)
    molecule = Chem.MolFromSmiles(text)
    if molecule is None:
        raise _refuse(text)
    if molecule.GetNumAtoms() == 0:
        raise refusal(text, "no atom")
    return molecule


def parse_with_hydrogens(text: str) -> Any:
    """The molecule with each atom that is written, in the order of the text."""
    options = Chem.SmilesParserParams()
    options.removeHs = False  # type: ignore[assignment]
    return Chem.MolFromSmiles(text, options)


def _check_size(text: str) -> None:
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None:
        return
    atoms, rings = molecule.GetNumAtoms(), molecule.GetNumBonds() - molecule.GetNumAtoms() + text.count(".") + 1
    if atoms > MAX_ATOMS or rings > MAX_RINGS:
        found = f"{atoms:,} atoms, at most {MAX_ATOMS:,}" if atoms > MAX_ATOMS else f"more than {MAX_RINGS} rings"
        raise refusal(text, found)


def _refuse(text: str) -> MoleculeError:
    """The reason why rdkit refuses a text: it writes that to a log only, so the text is looked at here."""
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is not None:
        return refusal(text, describe_refusal(molecule))
    outside = re.sub(r"\[[^\[\]]*\]", "*", text)
    if "[" in outside or "]" in outside:
        return refusal(text, "unclosed bracket")
    depth = np.cumsum([(sign == "(") - (sign == ")") for sign in outside])
    if depth.min() < 0 or depth[-1] > 0:
        why = "unclosed parenthesis" if depth[-1] > 0 else "closing parenthesis without an opening one"
        return refusal(text, why)
    other = other_notation(text)
    if other is not None:
        return refusal(text, other)
    if re.search(r"\[R\d*\]", text):
        return refusal(text, "put an atom, such as H, in the place of each R-group", DUMMY)
    closures = [number.strip("%()").lstrip("0") for number in re.findall(r"%\(\d+\)|%\d\d|\d", outside)]
    if any(closures.count(number) % 2 for number in set(closures)):
        return refusal(text, "unclosed ring")
    if len(text) <= LONG and Chem.MolFromSmarts(text) is not None:
        return query(text)
    return refusal(text, "not the syntax of SMILES")


def describe_refusal(molecule: Any) -> str:
    """rdkit's objection to a molecule whose text it can read."""
    try:
        problems = Chem.DetectChemistryProblems(molecule)
    except RuntimeError:
        return "an atom that no element has"
    if not problems:
        return "chemistry that rdkit refuses"
    found = " ".join(problems[0].Message().split())
    if "kekulize" in found:
        return f"{found}; a ring nitrogen that has a hydrogen is written [nH]"
    return found
