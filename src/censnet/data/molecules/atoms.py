"""Features of atoms and bonds: integer codes, looked up in bulk as columns of numbers.

A reader writes one row of small integers for each atom (`ATOM_CODES`) and each bond (`BOND_CODES`); here a whole set's
rows become features at once. There are few distinct atoms (76 in all of Lipophilicity), so no list is built per atom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censnet.errors import ArgumentError
from censnet.ops.arrays import FloatArray, IntArray

Codes = NDArray[np.int16]

ATOM_CODES = (
    "element",  # atomic number, 0 for a dummy atom
    "hydrogens",  # attached, explicit or not
    "charge",
    "hybridization",  # as rdkit numbers it
    "radicals",  # unpaired electrons
    "chirality",  # 0 none, 1 R, 2 S, 3 a centre without such a name
    "degree",  # bonds in the graph
    "aromatic",
    "ring",  # size of the smallest ring, 0 for none
    "rings",  # how many
)
BOND_CODES = ("type", "conjugated", "ring", "stereo")  # the type as in BOND_SIGNS; stereo 0 none, 1 Z, 2 E, 3 other

BOND_SIGNS = ("-", "=", "#", ":", "~")  # single, double, triple, aromatic, any other (dative, quadruple, ...)
SYMBOLS = "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr"
COMMON = {6: "C", 7: "N", 8: "O", 9: "F", 16: "S", 17: "Cl", 35: "Br", 53: "I"}  # the elements of the paper set
OTHER = "?"


@dataclass(frozen=True)
class OneOf:
    """A column for each value, and one for every other value."""

    code: str
    values: dict[int, str]
    other: bool = True

    @property
    def names(self) -> list[str]:
        return [f"{self.code}={value}" for value in (*self.values.values(), *((OTHER,) if self.other else ()))]

    def fill(self, out: FloatArray, codes: Codes) -> None:
        low, high = min(self.values), max(self.values)
        table = np.full(high - low + 3, len(self.values), dtype=np.int64)  # both ends of the table are other values
        for column, value in enumerate(self.values):
            table[value - low + 1] = column
        column_of = table[np.clip(codes.astype(np.int64) - low + 1, 0, len(table) - 1)]
        row = np.flatnonzero(column_of < out.shape[1])
        out[row, column_of[row]] = 1


@dataclass(frozen=True)
class Number:
    """One column: the code times a scale, at most `most`."""

    code: str
    scale: float = 1.0
    most: int = 8

    @property
    def names(self) -> list[str]:
        return [self.code]

    def fill(self, out: FloatArray, codes: Codes) -> None:
        out[:, 0] = np.minimum(codes, self.most) * self.scale


Block = OneOf | Number


def _counts(low: int, high: int) -> dict[int, str]:
    return {value: str(value) for value in range(low, high + 1)}


HYBRIDIZATIONS = {1: "s", 2: "sp", 3: "sp2", 4: "sp3", 5: "sp2d", 6: "sp3d", 7: "sp3d2"}

RICH_ATOM: tuple[Block, ...] = (
    OneOf("element", dict(enumerate(SYMBOLS.split(), 1)) | {53: "I"}),
    Number("element", 0.01, most=200),
    OneOf("degree", _counts(0, 5)),
    OneOf("hydrogens", _counts(0, 4)),
    OneOf("charge", _counts(-2, 2)),
    OneOf("hybridization", HYBRIDIZATIONS),
    Number("aromatic"),
    Number("radicals"),
    OneOf("chirality", {0: "none", 1: "R", 2: "S"}),
    OneOf("ring", {0: "none"} | _counts(3, 8)),
    Number("rings"),
)
RICH_BOND: tuple[Block, ...] = (
    OneOf("type", {0: "single", 1: "double", 2: "triple", 3: "aromatic"}),
    Number("conjugated"),
    Number("ring"),
    OneOf("stereo", {0: "none", 1: "Z", 2: "E"}),
)
PAPER_ATOM: tuple[Block, ...] = (  # 9 + 6 + 5 + 4 + 1 = 25
    OneOf("element", COMMON),
    OneOf("degree", _counts(0, 4)),
    OneOf("hydrogens", _counts(0, 3)),
    OneOf("hybridization", {2: "sp", 3: "sp2", 4: "sp3"}),
    Number("aromatic"),
)


def names_of(blocks: Sequence[Block]) -> list[str]:
    """The name of each column."""
    return [name for block in blocks for name in block.names]


def encode(codes: Codes, order: Sequence[str], blocks: Sequence[Block]) -> FloatArray:
    """Rows of codes as rows of numbers: (n, codes) -> (n, columns).

    >>> codes = np.array([[1, 1, 0, 0], [3, 0, 1, 2]], dtype=np.int16)
    >>> dict(zip(names_of(RICH_BOND), encode(codes, BOND_CODES, RICH_BOND)[0].tolist()))
    {'type=single': 0.0, 'type=double': 1.0, 'type=triple': 0.0, 'type=aromatic': 0.0, 'type=?': 0.0, 'conjugated': 1.0,
     'ring': 0.0, 'stereo=none': 1.0, 'stereo=Z': 0.0, 'stereo=E': 0.0, 'stereo=?': 0.0}
    """
    first, which = _distinct(codes)
    return _encode(codes[first], order, blocks)[which]


def _distinct(codes: Codes) -> tuple[IntArray, IntArray]:
    """A row of each kind, and which kind each row is. A row is one number, with a digit for each code."""
    every = np.arange(len(codes))
    if len(codes) == 0:
        return every, every
    low = codes.min(axis=0).astype(np.int64)
    digits = codes.max(axis=0) - low + 1
    if math.prod(digits.tolist()) >= 2**63:
        return every, every
    number = np.zeros(len(codes), dtype=np.int64)
    for column, base in enumerate(digits):
        number = number * base + (codes[:, column] - low[column])
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return first, which


def _encode(codes: Codes, order: Sequence[str], blocks: Sequence[Block]) -> FloatArray:
    widths = [len(block.names) for block in blocks]
    out = np.zeros((len(codes), sum(widths)), dtype=np.float32)
    first = 0
    for block, width in zip(blocks, widths, strict=True):
        block.fill(out[:, first : first + width], codes[:, order.index(block.code)])
        first += width
    return out


_SYMBOL = np.array([*COMMON.values(), OTHER])
_TYPES = len(BOND_SIGNS)
_PAIRS = len(_SYMBOL)


def bond_kinds(atoms: Codes, bonds: Codes, ends: IntArray) -> IntArray:
    """The kind of each bond in the paper set, as one number: its two elements, in either order, and its type."""
    place = np.full(256, len(COMMON), dtype=np.int64)
    place[list(COMMON)] = np.arange(len(COMMON))
    pair = place[np.clip(atoms[:, ATOM_CODES.index("element")], 0, 255)][ends]
    pair.sort(axis=0)
    kinds: IntArray = (pair[0] * _PAIRS + pair[1]) * _TYPES + bonds[:, BOND_CODES.index("type")]
    return kinds


def kind_names() -> list[str]:
    """The name of each kind, by number: 'C-C', 'C=O', 'C:N', '?-O' and so on."""
    return [f"{a}{sign}{b}" for a in _SYMBOL for b in _SYMBOL for sign in BOND_SIGNS]


def learn_vocabulary(kinds: IntArray) -> list[str]:
    """The kinds that occur, the commonest first."""
    names = kind_names()
    count = np.bincount(kinds, minlength=len(names))
    order = np.argsort(-count, kind="stable")[: int((count > 0).sum())]
    return [names[kind] for kind in order]


def encode_kinds(kinds: IntArray, vocabulary: Sequence[str]) -> FloatArray:
    """A column for each kind of the vocabulary; a kind that is not in it is a row of zeros."""
    names = kind_names()
    unknown = sorted(set(vocabulary) - set(names))
    if unknown or len(set(vocabulary)) < len(vocabulary):
        found = f"{unknown[0]!r}" if unknown else "one bond type twice"
        raise ArgumentError(f"vocabulary has {found}, expected distinct bond types such as 'C-C', 'C=O', 'C:N', '?-O'")
    place = np.full(len(names), len(vocabulary), dtype=np.int64)
    place[[names.index(name) for name in vocabulary]] = np.arange(len(vocabulary))
    out = np.zeros((len(kinds), len(vocabulary) + 1), dtype=np.float32)
    out[np.arange(len(kinds)), place[kinds]] = 1
    return np.ascontiguousarray(out[:, :-1])
