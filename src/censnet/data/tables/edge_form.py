"""The form of a table of edges: each edge once, or twice, once in each direction with the same attributes.

The form is found when a schema is fitted, from features alone, and stored in it. Later data are read in that form. The
reverse of a row has the same two ends in the opposite order, and the same attributes. Whether edges have a direction is
decided in `assemble.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censnet.data.tables.columns import as_arrow, as_text
from censnet.data.tables.id_index import IdIndex
from censnet.data.tables.notes import Note, RowError
from censnet.data.tables.oriented import check_negated_features, check_negated_labels, codes_of_oriented, end_signs
from censnet.data.tables.row_errors import RowErrors
from censnet.data.tables.schema import EdgeForm, TableSchema
from censnet.data.tables.typed_table import TypedTable
from censnet.errors import DataError, quote
from censnet.ops.arrays import Array, FloatArray, IntArray, unique_inverse

logger = logging.getLogger(__name__)
NEARLY = 0.9  # share of rows with a reverse from which the rest is worth a note
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SAMPLE = 256


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """The rows of a table of edges that can be used.

    Args:
        frame: the whole table.
        file: its name.
        keys: role -> column, of the two ends.
        table: the table with typed columns.
        given: the schema of the training data, if there is one.
        all_ends: the two nodes of each row of the table, or -1.
        rows: for each usable row, its row in the table.
        ends: the two nodes of each usable row.
        num_nodes: N.
        oriented: the columns of labels that change sign with the order of the ends.
        times: of each row of the table, if edges have times: two rows of different times are two edges.
    """

    frame: pd.DataFrame
    file: str
    keys: Mapping[str, str]
    table: TypedTable
    given: TableSchema | None
    all_ends: IntArray
    rows: IntArray
    ends: IntArray
    num_nodes: int
    oriented: Collection[str] = ()
    times: Array | None = None

    @cached_property
    def schema(self) -> TableSchema:
        """The schema by whose features rows are compared: as given, or with the statistics of all rows."""
        return self.given or self.table.fit()

    @cached_property
    def features(self) -> FloatArray:
        """The features of each usable row. They are needed only where most rows have a reverse.

        Odd ones are those of the edge from its lower to its higher node, so that they are equal in both of its rows.
        """
        features: FloatArray = self.table.encode(self.schema).numpy()
        features = features if len(self.rows) == len(features) else features[self.rows]
        if self.schema.odd_width:
            features[:, -self.schema.odd_width :] *= end_signs(self.ends)[:, None]
        if self.times is not None:
            moment = unique_inverse(self.times[self.rows])[1].astype(np.float32)
            features = np.column_stack([features, moment])
        return features

    @property
    def num_proper(self) -> int:
        """The number of rows that are no loops."""
        return int(np.count_nonzero(self.ends[0] != self.ends[1]))


@dataclass(frozen=True, eq=False)
class Pairing:
    """The form of the edges, and the rows that make one edge.

    Args:
        form: once or twice.
        first: if twice, for each usable row the first of the two that are its edge, or -1 for a row without reverse.
        frame: the table, without the labels that contradict each other.
    """

    form: EdgeForm
    first: IntArray | None
    frame: pd.DataFrame


def pair_edges(form: EdgeForm | None, edges: EdgeRows, problems: RowErrors, notes: list[Note]) -> Pairing:
    """Find the rows that make one edge, in this form, or in that which the data have."""
    return _find_form(edges, problems, notes) if form is None else _apply_form(form, edges, problems, notes)


def _find_form(edges: EdgeRows, problems: RowErrors, notes: list[Note]) -> Pairing:
    """The form of the edges of training data.

    The form is twice if each row but a loop has its reverse with the same features. Only the reverse of a row that
    cannot be used may be missing. Labels do not decide, unless most of them differ between the two directions: then
    they are labels of directions, and each row is an edge of its own.
    """
    once = Pairing("once", None, edges.frame)
    if edges.num_proper == 0 or share_with_reverse(edges.ends, edges.num_nodes) < NEARLY:
        return once
    codes = {column: _codes(edges, column) for column in edges.schema.targets if column in edges.frame.columns}
    reverse = match_reverses(edges.ends, edges.num_nodes, edges.features, _combine(codes))
    alone = int(np.count_nonzero(reverse < 0))
    num_bad = len(edges.frame) - len(edges.rows)
    if alone > min(num_bad, (1 - NEARLY) * edges.num_proper):
        if edges.schema.odd_width:
            written = edges.features.copy()
            written[:, -edges.schema.odd_width :] *= end_signs(edges.ends)[:, None]
            back = match_reverses(edges.ends, edges.num_nodes, written)
            names = [column.name for column in edges.schema.feature_columns]
            check_negated_features(written, back, edges.schema.odd_width, names, edges.rows, edges.file)
        notes.extend(_single_row_notes(edges, reverse))
        return once
    contradictions = {column: _contradictions(values, reverse) for column, values in codes.items()}
    for column, (apart, labeled) in contradictions.items():
        if 2 * len(apart) > labeled:
            if column in edges.oriented:
                check_negated_labels(edges.frame[column], column, edges.rows, apart, reverse, edges.file)
            differing = f"{len(apart):,} of {labeled:,} pairs have two labels in {column}"
            what = f"each row has its reverse with the same data, but {differing}"
            own = "the labels are those of directions, so each row is an edge of its own"
            notes.append(Note("edge", f"{edges.file}: {what}: {own}"))
            return once
    frame = edges.frame
    for column, (apart, _) in contradictions.items():
        frame = _without_labels(frame, edges, column, apart, reverse, problems)
    return _merge_pairs(Pairing("twice", reverse, frame), edges, problems, notes)


def _apply_form(form: EdgeForm, edges: EdgeRows, problems: RowErrors, notes: list[Note]) -> Pairing:
    """Read later data in the form of the training data. Labels are not looked at."""
    doubled = edges.num_proper and share_with_reverse(edges.ends, edges.num_nodes) >= NEARLY
    if form == "twice":
        reverse = match_reverses(edges.ends, edges.num_nodes, edges.features)
        return _merge_pairs(Pairing("twice", reverse, edges.frame), edges, problems, notes)
    if doubled and match_reverses(edges.ends, edges.num_nodes, edges.features).min() >= 0:
        what = "each edge is there twice, once in each direction with the same data"
        own = f"as in training, each row is an edge of its own: {len(edges.rows):,} edges"
        notes.append(Note("edge", f"{edges.file}: {what}; {own}"))
        logger.info("%s", notes[-1])
    return Pairing("once", None, edges.frame)


def _merge_pairs(pairing: Pairing, edges: EdgeRows, problems: RowErrors, notes: list[Note]) -> Pairing:
    """The pairing with the first row of each edge; a row without reverse is a problem."""
    reverse = pairing.first
    assert reverse is not None
    alone = np.flatnonzero(reverse < 0)
    if len(alone) and len(alone) == edges.num_proper:
        raise DataError(
            f"no row has its reverse with the same data, expected each edge twice, once in each direction, as in "
            f"training: add the reverse of each of the {len(alone):,} rows",
            edges.file,
        )
    if len(alone):
        problems.add("edges", edges.keys["target"], _explain(edges, alone))
    first = np.where(reverse < 0, -1, np.minimum(reverse, np.arange(len(reverse))))
    num_edges = int(np.count_nonzero(first == np.arange(len(first))))
    if len(first):
        merged = f"{len(first) - len(alone):,} rows are {num_edges:,} edges"
        notes.append(Note("edge", f"{edges.file}: each edge is there twice, once in each direction: {merged}"))
    return Pairing("twice", first, pairing.frame)


def _explain(edges: EdgeRows, alone: IntArray) -> dict[int, RowError]:
    """Row of the table -> why it has no reverse."""
    wanted = edges.ends[1][alone] * edges.num_nodes + edges.ends[0][alone]
    key = np.where(edges.all_ends.min(axis=0) < 0, -1, edges.all_ends[0] * edges.num_nodes + edges.all_ends[1])
    back = np.flatnonzero(np.isin(key, wanted))
    back = back[np.argsort(key[back], kind="stable")]
    position = np.searchsorted(key[back], wanted)
    usable = np.full(len(edges.frame), -1)
    usable[edges.rows] = np.arange(len(edges.rows))
    names = [edges.frame[edges.keys[role]].iloc[edges.rows[alone]].tolist() for role in ("source", "target")]
    found = {}
    for number, row in enumerate(alone.tolist()):
        one, other, at = quote(names[0][number]), quote(names[1][number]), int(position[number])
        how = "expected each edge twice, once in each direction, as in training"
        what, remedy = f"no row goes back from {other} to {one}", "add that row"
        if at < len(back) and key[back[at]] == wanted[number]:
            there = int(back[at])
            what = f"row {there + 1} goes back from {other} to {one}, but "
            what += "cannot be used" if usable[there] < 0 else _differences(edges, row, int(usable[there]))
            remedy = "give both rows the same data"
        found[int(edges.rows[row])] = RowError("no reverse edge with the same data", f"{what}, {how}: {remedy}")
    return found


def _differences(edges: EdgeRows, row: int, other: int) -> str:
    apart = np.flatnonzero(edges.features[row] != edges.features[other])
    if len(apart) == 0:
        return "is the reverse of another row"
    column = edges.schema.feature_columns[int(apart[0])]
    what = "no negative" if column.kind == "oriented" else "another value"
    return f"has {what} in {column.name}"


def _codes(edges: EdgeRows, column: str) -> IntArray:
    """A number for each usable row, equal where its labels are; -1 where there is none."""
    if column in edges.oriented:
        return codes_of_oriented(edges.frame[column], edges.rows, edges.ends)
    return np.asarray(IdIndex(as_text(as_arrow(edges.frame[column]))).codes, np.int64)[edges.rows]


def _combine(codes: Mapping[str, IntArray]) -> NDArray[np.uint64] | None:
    total: NDArray[np.uint64] | None = None
    for part in codes.values():
        total = part.view(np.uint64) if total is None else total * np.uint64(1_000_003) + part.view(np.uint64)
    return total


def _contradictions(codes: IntArray, reverse: IntArray) -> tuple[IntArray, int]:
    """The first rows of pairs whose labels differ, and the number of pairs that have two labels."""
    other = codes[reverse]
    both = (codes >= 0) & (other >= 0) & (reverse > np.arange(len(codes)))
    return np.flatnonzero(both & (codes != other)), int(np.count_nonzero(both))


def _without_labels(
    frame: pd.DataFrame, edges: EdgeRows, column: str, apart: IntArray, reverse: IntArray, problems: RowErrors
) -> pd.DataFrame:
    """The table without labels that contradict each other, of which each row has an error."""
    if len(apart) == 0:
        return frame
    labels = frame[column]
    messages = {}
    for here, there in [(here, int(reverse[here])) for here in apart.tolist()]:
        for one, other in ((here, there), (there, here)):
            row, back = int(edges.rows[one]), int(edges.rows[other])
            what = f"{quote(labels.iloc[row])} here, but {quote(labels.iloc[back])} in row {back + 1}, its reverse"
            how = "the same label, with its sign in one of them" if column in edges.oriented else "the same label"
            text = f"{what}: give both rows of an edge {how}"
            messages[row] = RowError("another label than its reverse", text)
    problems.add("edges", column, dict(sorted(messages.items())))
    values = as_arrow(labels)
    hidden = np.zeros(len(frame), bool)
    hidden[list(messages)] = True
    kept = pc.if_else(pa.chunked_array([hidden]), pa.scalar(None, values.type), values)
    return frame.assign(**{column: pd.Series(pd.arrays.ArrowExtensionArray(kept), index=frame.index)})


def _single_row_notes(edges: EdgeRows, reverse: IntArray) -> list[Note]:
    """A note on rows that nearly all have a reverse, of which none is merged for the others' sake."""
    alone = np.flatnonzero(reverse < 0)
    proper, first = edges.num_proper, int(edges.rows[alone[0]]) + 1
    own = "each row is an edge of its own"
    if len(alone) <= (1 - NEARLY) * proper:
        what = f"{proper - len(alone):,} of {proper:,} rows have their reverse with the same data, the others have not"
        remedy = "add what is missing if edges are undirected"
        return [Note("edge", f"{edges.file}: {what} (the first: row {first}), so {own}: {remedy}")]
    bare = match_reverses(edges.ends, edges.num_nodes, edges.features[:, :0])
    if bare.min() < 0:
        return []
    what = f"each row has its reverse, but {len(alone):,} of {proper:,} with other data"
    return [Note("edge", f"{edges.file}: {what}, so {own}")]


def share_with_reverse(ends: IntArray, num_nodes: int) -> float:
    """The share of a few hundred rows, loops not among them, whose reverse is somewhere in the table.

    One look at each row: edges that are not doubled are known as such before anything is sorted.
    """
    source, target = ends
    proper = np.flatnonzero(source != target) if len(source) <= 4 * _SAMPLE else _spread(len(source))
    proper = proper[source[proper] != target[proper]]
    if len(proper) == 0:
        return 0.0
    wanted = np.zeros(num_nodes, bool)
    wanted[target[proper]] = True
    near = np.flatnonzero(wanted[source])
    there = np.isin(_key(target[proper], source[proper], num_nodes), _key(source[near], target[near], num_nodes))
    return float(there.mean())


def match_reverses(
    ends: IntArray, num_nodes: int, features: FloatArray, labels: NDArray[np.uint64] | None = None
) -> IntArray:
    """For each edge, the row of its reverse with the same features: itself for a loop, -1 where there is none.

    Each row is the reverse of one other at most. Of parallel edges with the same features, the first of one direction
    goes with the first of the other, and those with the same labels go together where labels are given.

    Args:
        ends: the two nodes of each edge.
        num_nodes: N.
        features: of each edge.
        labels: a number for each edge; it decides among rows that are equal otherwise, and nothing else.

    Example:
        >>> match_reverses(np.array([[0, 1, 2, 1, 1], [1, 0, 2, 2, 0]]), 3, np.zeros((5, 0), np.float32))
        array([ 1,  0,  2, -1, -1])
    """
    source, target = ends
    every = np.arange(len(source))
    reverse = np.where(source == target, every, -1)
    up, down = np.flatnonzero(source < target), np.flatnonzero(source > target)
    if len(up) == 0 or len(down) == 0:
        return reverse
    hashed = _hash_rows(features, _scramble(_key(np.minimum(source, target), np.maximum(source, target), num_nodes)))
    up, down = (_sorted_by(rows, hashed, labels) for rows in (up, down))
    first, second = hashed[up], hashed[down]
    if np.array_equal(first, second):
        found = np.arange(len(up))
    else:
        start = np.searchsorted(second, first, "left")
        position = start + _rank_of_equals(first)
        found = np.where(position < np.searchsorted(second, first, "right"), position, -1)
    up, down = up[found >= 0], down[found[found >= 0]]
    same = (source[up] == target[down]) & (target[up] == source[down])  # a hash is no proof
    for column in range(features.shape[1]):
        same &= features[up, column] == features[down, column]
    up, down = up[same], down[same]
    reverse[up], reverse[down] = down, up
    return reverse


def _spread(count: int) -> IntArray:
    return np.linspace(0, count - 1, _SAMPLE).astype(np.int64)


def _sorted_by(rows: IntArray, hashed: NDArray[np.uint64], labels: NDArray[np.uint64] | None) -> IntArray:
    keys = (hashed[rows],) if labels is None else (labels[rows], hashed[rows])
    return rows[np.lexsort(keys)]


def _rank_of_equals(values: NDArray[np.uint64]) -> IntArray:
    """In sorted values, how many equal ones stand before each."""
    every = np.arange(len(values))
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    return every - np.maximum.accumulate(np.where(new, every, 0))


def _key(low: IntArray, high: IntArray, num_nodes: int) -> IntArray:
    return low * num_nodes + high


def _scramble(key: IntArray) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        mixed = key.view(np.uint64) * _MIX
        return (mixed ^ (mixed >> np.uint64(32))) * _MIX


def _hash_rows(features: FloatArray, start: NDArray[np.uint64]) -> NDArray[np.uint64]:
    total = start
    for number in range(features.shape[1]):
        bits = np.ascontiguousarray(features[:, number] + np.float32(0)).view(np.uint32)  # -0 is 0
        with np.errstate(over="ignore"):
            total = (total ^ bits) * _MIX
            total ^= total >> np.uint64(29)
    return total
