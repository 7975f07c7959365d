"""Explanations of rows of a user's data: which rows, and the parts of their neighborhoods by the user's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.molecules.atoms import RICH_ATOM, RICH_BOND, names_of
from censnet.data.molecules.smiles_to_mol import Parser
from censnet.errors import DataError, first_few, quote
from censnet.explanation.parts import Columns, Fidelity, Part
from censnet.explanation.probe import Neighborhood
from censnet.levels import Level
from censnet.ops.graph_set import GraphSet
from censnet.tasks.inputs import ModelInputs

COLUMNS = ["row", "id", "target", "class", "answer", "kind", "part", "where", "part_row",
           "change", "gate", "gradients", "fidelity", "random", "beats"]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Explained:
    """One row and its parts, as they are drawn.

    Args:
        row: of the user's table, from 0.
        name: its ids.
        target: the column that is predicted.
        chosen: the class whose log odds are explained; empty for numbers.
        answer: the number that is explained.
        place: the neighborhood.
        level: of the row.
        parts: the largest first, within each kind.
        fidelity: edge or node -> how far the answer moves.
    """

    row: int
    name: str
    target: str
    chosen: str
    answer: float
    place: Neighborhood
    level: str
    parts: Sequence[Part]
    fidelity: dict[str, Fidelity]


class PartNames:
    """Names of the parts of neighborhoods, by the user's ids.

    Args:
        dataset: the data.
        inputs: what the model reads beside the columns.
    """

    def __init__(self, dataset: Dataset, inputs: ModelInputs) -> None:
        self.dataset, self.columns = dataset, _columns(dataset, inputs)
        self._ids = {level: _ids(dataset, level) for level in (Level.NODE, Level.EDGE)}
        self._last: tuple[int, list[str]] = -1, []

    def name(self, part: Part, place: Neighborhood) -> tuple[str, float]:
        """The name of a part, and its row in its own table from 1; NaN where it has none."""
        if part.kind == "column":
            return self.columns[part.index].name, np.nan
        level = Level(part.kind)
        index = int((place.nodes if part.kind == "node" else place.edges)[part.index])
        known = self._ids[level]
        if known is not None:
            names, first = known
            return names[first[index]] if first[index] >= 0 else f"{level} {index}", float(first[index] + 1)
        numbers = [part.index] if part.kind == "node" else place.graph.ends[:, part.index].tolist()
        own = "-".join(map(str, numbers))
        if self.dataset.schema.smiles is None:
            return f"{part.kind} {own}", np.nan
        symbols = self._elements(int(place.nodes[0]))
        elements = "-".join(symbols[number] for number in numbers)
        return f"{'atom' if part.kind == 'node' else 'bond'} {own} ({elements})", np.nan

    def _elements(self, node: int) -> list[str]:
        """The elements of the molecule that a node is in; it is read once for all of its parts."""
        if self._last[0] != node:
            self._last = node, [atom.GetSymbol() for atom in molecule_of(self.dataset, node).GetAtoms()]
        return self._last[1]


def molecule_of(dataset: Dataset, node: int) -> Any:
    """The molecule that a node of the data is in, with its atoms in the order of the nodes."""
    from rdkit import Chem

    graph, reading = dataset.graph, dataset.schema.reading
    assert isinstance(graph, GraphSet)
    number = int(torch.searchsorted(graph.node_offset, node, right=True)) - 1
    row = int((dataset.rows("graph") == number).nonzero()[0])
    molecule = Parser(reading).molecule_or_none(dataset.tables.frames()["graphs"][dataset.schema.smiles].iloc[row])
    return Chem.AddHs(molecule) if reading.hydrogens == "explicit" else molecule


def explanation_table(found: Sequence[Explained], names: PartNames) -> pd.DataFrame:
    """One row for each part of each explained row."""
    rows = []
    for one in found:
        for part in one.parts:
            name, number = names.name(part, one.place)
            fidelity = one.fidelity.get(part.kind)
            measured = (np.nan,) * 3 if fidelity is None else (fidelity.change, fidelity.random, fidelity.beats)
            rows.append([one.row + 1, one.name, one.target, one.chosen, one.answer, part.kind, name, part.where,
                         number, part.change, part.gate, part.gradients, *measured])  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def row_names(dataset: Dataset, level: str) -> list[str]:
    """The ids of each row of a table, joined by commas; of atoms and bonds their numbers."""
    frame = dataset.tables.frames().get(Level(level).table)
    if frame is None:
        return [str(number + 1) for number in range(len(dataset.rows(level)))]
    ids = dataset.id_columns(level)
    return list(map(",".join, zip(*(frame[column].astype(str) for column in ids), strict=True)))


def find_rows(dataset: Dataset, level: str, asked: Sequence[str | int]) -> list[int]:
    """The rows that a user names, by their ids joined by commas, or as `#3`, or 3, for the third row.

    Of nodes and graphs with several ids, such as a name and a SMILES, each alone names a row. Where several rows have
    the same ids, such as parallel edges, all of them are meant.
    """
    names = pd.Series(row_names(dataset, level))
    found = list[int]()
    for one in asked:
        text = str(one).strip()
        number = text.removeprefix("#")
        if isinstance(one, int) or text.startswith("#"):
            matches = [int(number) - 1] if number.isdigit() and 1 <= int(number) <= len(names) else []
        else:
            matches = np.flatnonzero(names == text).tolist() or _with_one_id(dataset, level, text)
        if not matches:
            like = first_few(map(quote, names[:3]), 3)
            raise DataError(
                f"no row has the id {quote(text)}, expected one such as {like}, or #N for row N of {len(names):,}",
                dataset.tables.name(Level(level).table),
            )
        found += matches
    for row in found:
        if int(dataset.rows(level)[row]) < 0:
            why = dataset.problems.get(Level(level).table, {}).get(row, "it is not in the graph")
            raise DataError(f"it cannot be explained: {why}", dataset.tables.name(Level(level).table), row)
    return list(dict.fromkeys(found))


def _with_one_id(dataset: Dataset, level: str, text: str) -> list[int]:
    """The row of which one of several ids is this, if no other has it; an end of an edge does not name it."""
    frame = dataset.tables.frames().get(Level(level).table)
    if frame is None or level == Level.EDGE:
        return []
    found = np.flatnonzero((frame[dataset.id_columns(level)].astype(str) == text).any(axis=1)).tolist()
    return found if len(found) == 1 else []


def _ids(dataset: Dataset, level: Level) -> tuple[list[str], Tensor] | None:
    """Names of the rows of a table, and for each node or edge its first row; None where there is no table."""
    if level.table not in dataset.tables.frames():
        return None
    rows = dataset.rows(level)
    first = torch.full((dataset.count(level),), -1)
    good = (rows >= 0).nonzero().squeeze(1).flip(0)
    first[rows[good]] = good
    return row_names(dataset, level), first


def _columns(dataset: Dataset, inputs: ModelInputs) -> list[Columns]:
    """The user's columns of nodes and edges as features, then what the model reads beside them."""
    found, graph = list[Columns](), dataset.graph
    sides = (("node", graph.node_width, inputs.node_width), ("edge", graph.edge_width, inputs.edge_width))
    for side, width, added in sides:
        schema = dataset.schema.table(Level(side).table)
        names = [column.name for column in schema.feature_columns] if schema.structure == "none" else schema.names
        if dataset.schema.smiles is not None:
            rich = [name.partition("=")[0] for name in names_of(RICH_ATOM if side == "node" else RICH_BOND)]
            names = rich if len(rich) == width else names
        if len(names) != width:
            names = ["features"] * width
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            groups.setdefault(name, []).append(place)
        labels = inputs.label_width(side)
        groups |= {"(structure)": list(range(width, width + added - labels))} if added > labels else {}
        groups |= {"(known labels)": list(range(width + added - labels, width + added))} if labels else {}
        word = side
        if dataset.schema.smiles is not None:
            word = {"node": "atom", "edge": "bond"}[side]
        found += [Columns(f"{word}: {name}", side, places) for name, places in groups.items()]  # type: ignore[arg-type]
    return found
