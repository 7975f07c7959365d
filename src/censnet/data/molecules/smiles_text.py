"""The text of a SMILES before rdkit reads it: what stands behind it, isotope labels, and notations of other things."""

from __future__ import annotations

import re
from typing import NamedTuple

from censnet.errors import quote

LONGEST = 20_000  # characters of one SMILES
MAX_PARTS = 100  # separate ones, as the ions of a salt; taking them apart takes the cube of their number

_UNUSUAL = re.compile(r"[\s~>,;&!*]|\[#|\[\d|\$\(")  # what an ordinary SMILES has nothing of
_ISOTOPE = re.compile(r"\[\d{1,3}(?=[A-Za-z])")
_ANY_ATOM = re.compile(r"\[#|\[[^\]]*[,;&!]|\$\(")
# what an extension says of the molecule itself: radicals, labels of atoms, polymers, links of variable length, queries
_CHANGES_MOLECULE = re.compile(r"\^\d|\$|Sg|LN:|RG:|LO:|[|,](?:m|rb|s|u|lp|H|C|D):")
_INCHI_KEY = re.compile(r"[A-Z]{14}-[A-Z]{10}-[A-Z]")
_CAS_NUMBER = re.compile(r"\d{2,7}-\d\d-\d")


class MoleculeError(ValueError):
    """A text that is no molecule; its cause is the same for texts with the same mistake."""

    def __init__(self, message: str, cause: str | None = None) -> None:
        super().__init__(message)
        self.cause = message if cause is None else cause


class Spelling(NamedTuple):
    """A SMILES as rdkit shall read it.

    Args:
        smiles: the text, without what stands behind it and, unless they are kept, without isotope labels.
        has_isotopes: whether atoms had such labels.
        behind: `"name"` or `"extension"` (CXSMILES) for what stood behind the SMILES; `""` for nothing.
    """

    smiles: str
    has_isotopes: bool = False
    behind: str = ""


def read_spelling(text: object, isotopes: bool) -> Spelling:
    """Take a cell of a SMILES column apart; raise for what is a reaction, a query or too long.

    Args:
        text: the cell. What is not text counts as missing.
        isotopes: whether isotope labels stay.

    >>> read_spelling("[2H]O[2H] heavy water", isotopes=False)
    Spelling(smiles='[H]O[H]', has_isotopes=True, behind='name')
    """
    if not isinstance(text, str) or not text.strip():
        raise MoleculeError("no SMILES given")
    text = text.strip()
    if "\n" in text or "\r" in text:
        raise refusal(text, "more than one line, expected one SMILES")
    if _UNUSUAL.search(text) is None:
        _check_text(text)
        return Spelling(text)
    smiles, *rest = text.split(maxsplit=1)
    _check_text(smiles)
    _check_kind(smiles)
    behind = _check_behind(text, rest[0]) if rest else ""
    has_isotopes = _ISOTOPE.search(smiles) is not None
    return Spelling(smiles if isotopes else _ISOTOPE.sub("[", smiles), has_isotopes, behind)


def refusal(text: str, why: str, what: str = "not a molecule") -> MoleculeError:
    """The error of a text: what it is, the text, and why or what to do."""
    return MoleculeError(f"{what}: {quote(text)} ({why})", what)


def other_notation(text: str) -> str | None:
    """A hint on a text that is no SMILES: it is another name of a molecule.

    >>> other_notation("64-17-5")
    'a CAS number, expected the SMILES of the molecule'
    """
    if text.startswith("InChI="):
        return "an InChI, expected SMILES, which rdkit or Open Babel make of it"
    if _INCHI_KEY.fullmatch(text):
        return "an InChIKey, expected the SMILES of the molecule"
    if _CAS_NUMBER.fullmatch(text):
        return "a CAS number, expected the SMILES of the molecule"
    if re.search(r"\[[DT][+-]?\]", text):
        return "deuterium is written [2H] and tritium [3H]"
    return None


def _check_text(smiles: str) -> None:
    if len(smiles) > LONGEST:
        raise refusal(smiles, f"{len(smiles):,} characters, at most {LONGEST:,}")
    if smiles.count(".") >= MAX_PARTS:
        raise refusal(smiles, f"more than {MAX_PARTS} parts")
    if not smiles.isascii() or not smiles.isprintable():
        raise refusal(smiles, "a character that SMILES does not have")


def _check_kind(smiles: str) -> None:
    if ">" in smiles.replace("->", ""):
        raise refusal(smiles, "give one molecule, a reactant or a product", "a reaction, not a molecule")
    if "~" in smiles or _ANY_ATOM.search(smiles):
        raise query(smiles)


def query(text: str) -> MoleculeError:
    """The error of a SMARTS, which stands for many molecules."""
    return refusal(text, "SMARTS; write each atom as its element, each bond as - = # or :", "a query, not a molecule")


def _check_behind(text: str, rest: str) -> str:
    if not rest.startswith("|"):
        return "name"
    if _CHANGES_MOLECULE.search(rest[: rest.rfind("|") + 1]):
        why = f"the extension {quote(rest)} changes the molecule and is not read; give it as SMILES alone"
        raise refusal(text, why, "an extended SMILES, not a molecule")
    return "extension"
