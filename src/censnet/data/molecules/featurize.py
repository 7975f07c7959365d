"""SMILES to packed graphs.

Each atom and bond is read as a row of small integers (`atoms_and_bonds.py`), by as many processes as there are cores.
Features are computed from those codes in bulk (`atoms.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from censnet.data.molecules.atoms import (
    ATOM_CODES,
    BOND_CODES,
    PAPER_ATOM,
    RICH_ATOM,
    RICH_BOND,
    bond_kinds,
    encode,
    encode_kinds,
    learn_vocabulary,
    names_of,
)
from censnet.data.molecules.atoms_and_bonds import (
    PLAIN,
    Read,
    check_installed,
    read_canonical,
    read_molecules,
    read_positions,
)
from censnet.data.molecules.parallel import parallel_map
from censnet.data.tables.notes import RowError
from censnet.data.tables.schema import MoleculeReading
from censnet.errors import ArgumentError, quote
from censnet.ops.arrays import IntArray
from censnet.ops.graph_set import GraphSet

Result = TypeVar("Result")
FeatureSet = Literal["rich", "paper"]


@dataclass(frozen=True, eq=False)
class Molecules:
    """A column of SMILES as graphs.

    Args:
        graphs: the molecules, packed; None if none could be read.
        rows: for each graph, the position of its SMILES in the input.
        problems: for each position that became no graph, why.
        vocabulary: the bond types of the ``paper`` features, in the order of the edge columns; empty for ``rich``.
        node_names: what each column of the nodes says.
        edge_names: what each column of the edges says.
        remarks: what is worth saying of molecules (``"isotopes"``, ``"fragments"``...) -> positions in the input.
    """

    graphs: GraphSet | None
    rows: Tensor
    problems: dict[int, RowError]
    vocabulary: list[str]
    node_names: list[str]
    edge_names: list[str]
    remarks: dict[str, list[int]] = field(default_factory=dict)


def featurize(
    smiles: Sequence[str],
    features: FeatureSet = "rich",
    vocabulary: Sequence[str] | None = None,
    processes: int | None = None,
    progress: bool = False,
    reading: MoleculeReading = PLAIN,
) -> Molecules:
    """Read SMILES as graphs: atoms are nodes, bonds are edges, each once; hydrogens count as a feature of their atom.

    A salt is one graph of several components, a single atom a graph without edges. What is no molecule (a reaction, a
    query, an R-group), or too large for one, becomes a problem with its reason. A name behind a SMILES is not read.

    ``"rich"`` (81 columns for an atom, 11 for a bond) is what the strongest published models use: as
    chemprop 2, element, degree, charge, hydrogens, hybridization and aromaticity of an atom, and type, conjugation,
    ring and stereo of a bond; as AttentiveFP, radical electrons and R/S names; and the smallest ring of an atom and how
    many it is in. Chirality is the R/S name and not rdkit's tag, which depends on how the SMILES is written.

    ``"paper"`` (25 columns for an atom, one for each bond type) is a reading of "There are 55 bond features, and each
    atom has 25 features" (Tox21; 34 and 25 on Lipophilicity), which is all the paper says. The atom features are the
    same for both sets, so they are a fixed list; the bond features differ, so they are a vocabulary. Here a bond type
    is the two elements, in either order, and the order of the bond between them (``C-N``, ``C=O``, ``C:C``); elements
    other than C N O F S Cl Br I are one (``?``). Over all molecules that gives 55 on Tox21 and 35 on Lipophilicity.
    The doubt: other readings come as near, none that is simpler. With all elements apart it is 121 and 39, without bond
    orders 93 and 21, in the order written 157 and 35, and by bond type, conjugation, ring and stereo 15 and 16. The 25
    atom features are the same 9 elements, the degree (6), hydrogens (5), hybridization (4) and aromaticity (1).

    Args:
        smiles: the texts. What is not text counts as missing.
        features: ``"rich"`` or ``"paper"``.
        vocabulary: the bond types of a training set, for ``"paper"``: a type that is not among them gets zeros. None
            learns it from these molecules, so give training molecules first and theirs afterwards.
        processes: how many to use; None is one for a short list and one for each core for a long one.
        progress: whether to show a bar.
        reading: how a text becomes a molecule.

    Example:
        >>> read = featurize(["CCO", "C1CCC", "[Na+].[Cl-]"])
        >>> read.graphs, read.rows.tolist()
        (GraphSet(2 graphs, 5 nodes x 81, 2 edges x 11), [0, 2])
        >>> read.problems
        {1: "not a molecule: 'C1CCC' (unclosed ring)"}
        >>> featurize(["CCO", "c1ccncc1"], "paper").vocabulary
        ['C:C', 'C:N', 'C-C', 'C-O']
    """
    if features not in ("rich", "paper"):
        raise ArgumentError(f"features is {features!r}, expected 'rich' or 'paper'")
    read = read_smiles(smiles, reading, processes=processes, progress="molecules" if progress else None)
    kinds = None if features == "rich" else kinds_of_bonds(read)
    learned = [] if kinds is None else learn_vocabulary(kinds) if vocabulary is None else list(vocabulary)
    graphs = structure_of(read)
    if graphs is not None:
        graphs = graphs.with_features(*encode_molecules(read, kinds, learned))
    node_names = names_of(RICH_ATOM if kinds is None else PAPER_ATOM)
    edge_names = names_of(RICH_BOND) if kinds is None else [f"type={kind}" for kind in learned]
    rows = torch.from_numpy(read.rows)
    return Molecules(graphs, rows, read.problems, learned, node_names, edge_names, read.remarks)


def read_smiles(
    smiles: Sequence[str],
    reading: MoleculeReading = PLAIN,
    descriptors: Sequence[str] = (),
    scaffolds: bool = False,
    processes: int | None = None,
    progress: str | None = None,
    numbers: bool = False,
) -> Read:
    """Parse SMILES, in as many processes as there are cores; see `read_molecules`."""
    work = partial(read_molecules, reading=reading, descriptors=descriptors, scaffolds=scaffolds, numbers=numbers)
    return _join(map_smiles(work, smiles, processes, progress) or [work([])])


def structure_of(read: Read) -> GraphSet | None:
    """The graphs of molecules, without features; None if there is no molecule."""
    if len(read.rows) == 0:
        return None
    return GraphSet(
        nodes=torch.empty(len(read.atoms), 0),
        edges=torch.empty(len(read.bonds), 0),
        ends=torch.from_numpy(read.ends),
        node_offset=torch.from_numpy(np.append(0, np.cumsum(read.num_atoms))),
        edge_offset=torch.from_numpy(np.append(0, np.cumsum(read.num_bonds))),
    )


def kinds_of_bonds(read: Read) -> IntArray:
    """The kind of each bond by number (`atoms.kind_names`), from which the vocabulary of ``paper`` is learned."""
    first_atom = np.cumsum(read.num_atoms) - read.num_atoms
    return bond_kinds(read.atoms, read.bonds, read.ends + np.repeat(first_atom, read.num_bonds))


def encode_molecules(read: Read, kinds: IntArray | None, vocabulary: Sequence[str]) -> tuple[Tensor, Tensor]:
    """The features of atoms and bonds: ``rich``, or ``paper`` where the kinds of bonds are given."""
    if kinds is None:
        nodes, edges = encode(read.atoms, ATOM_CODES, RICH_ATOM), encode(read.bonds, BOND_CODES, RICH_BOND)
    else:
        nodes, edges = encode(read.atoms, ATOM_CODES, PAPER_ATOM), encode_kinds(kinds, vocabulary)
    return torch.from_numpy(nodes), torch.from_numpy(edges)


def canonical(
    smiles: Sequence[str], processes: int | None = None, reading: MoleculeReading = PLAIN
) -> list[str | None]:
    """One spelling for each molecule, None where the text is no molecule: equal strings are the same molecule.

    >>> canonical(["OCC", "CCO", "C1CCC"])
    ['CCO', 'CCO', None]
    """
    return list(chain.from_iterable(map_smiles(partial(read_canonical, reading=reading), smiles, processes)))


def atom_positions(smiles: Sequence[str], reading: MoleculeReading = PLAIN) -> list[list[int]]:
    """For each atom of each graph, its position in the SMILES, from 0; hydrogens that are written as atoms count.

    >>> atom_positions(["CCO", "[H]OC", "not one"])
    [[0, 1, 2], [1, 2], []]
    """
    return list(chain.from_iterable(map_smiles(partial(read_positions, reading=reading), smiles, None)))


def map_smiles(
    work: Callable[[Sequence[object]], Result],
    smiles: Sequence[object],
    processes: int | None,
    progress: str | None = None,
) -> list[Result]:
    """`work` of each chunk of the texts, in as many processes as there are cores."""
    check_installed()
    if isinstance(smiles, str):
        raise ArgumentError(f"smiles is the text {quote(smiles)}, expected a list of texts")
    return parallel_map(work, list(smiles), processes, progress)


def _join(parts: Sequence[Read]) -> Read:
    shift = np.cumsum([0, *(part.length for part in parts)])[:-1]
    return Read(
        atoms=np.concatenate([part.atoms for part in parts]),
        bonds=np.concatenate([part.bonds for part in parts]),
        ends=np.concatenate([part.ends for part in parts], axis=1),
        num_atoms=np.concatenate([part.num_atoms for part in parts]),
        num_bonds=np.concatenate([part.num_bonds for part in parts]),
        rows=np.concatenate([part.rows + first for part, first in zip(parts, shift, strict=True)]),
        problems={
            int(first) + row: reason
            for part, first in zip(parts, shift, strict=True)
            for row, reason in part.problems.items()
        },
        remarks={
            remark: [
                int(first) + row
                for part, first in zip(parts, shift, strict=True)
                for row in part.remarks.get(remark, ())
            ]
            for remark in dict.fromkeys(remark for part in parts for remark in part.remarks)
        },
        descriptors=np.concatenate([part.descriptors for part in parts]),
        scaffolds=[scaffold for part in parts for scaffold in part.scaffolds],
        length=sum(part.length for part in parts),
        numbers={
            int(first) + row: found
            for part, first in zip(parts, shift, strict=True)
            for row, found in part.numbers.items()
        },
    )
