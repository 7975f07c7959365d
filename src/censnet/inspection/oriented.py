"""Signed numbers of edges whose sign follows the order of the two ends: candidates for `=oriented`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from censnet.data.dataset import Dataset
from censnet.data.tables.edge_form import share_with_reverse
from censnet.data.tables.notes import Note
from censnet.data.tables.target_spec import quote_name
from censnet.inspection.leakage import as_numbers
from censnet.ops.arrays import Array
from censnet.option_names import column_option, target_option
from censnet.text import count

EACH_SIGN = 0.02  # share of the values that each sign has at least
FEWEST_PAIRS = 10  # of rows with exchanged ends
OPPOSITE = 0.95  # share of these with opposite signs
FEWEST_NODES = 30  # with two edges or more
FOR_EACH_COLUMN = 10  # nodes for each column that may explain sums at nodes
BALANCED = 0.1  # share of the squared flow at nodes that neither cancels nor is explained
MOST_REVERSED = 0.1  # share of the rows with a row in the opposite order
HALF = 0.5  # of what remains of sums without signs
FEWEST = 20  # values


def oriented_notes(dataset: Dataset, targets: Collection[str] = ()) -> list[Note]:
    """Notes on signed numbers of edges whose sign follows the order of the ends, with the evidence.

    Either rows with exchanged ends have opposite signs; or the signed sums at nodes, in minus out, nearly vanish or are
    a linear function of columns of the nodes, as those of a flow that is conserved. Whether the order is arbitrary is
    not known: the user has to say so.

    Args:
        dataset: the data.
        targets: the columns of edges that are predicted.
    """
    frame = dataset.tables.frames().get("edges")
    if frame is None or dataset.schema.edge_form == "twice" or dataset.schema.smiles is not None or not len(frame):
        return []
    rows = dataset.rows("edge").numpy()
    usable = np.flatnonzero(rows >= 0)
    ends = dataset.graph.global_ends.numpy()[:, rows[usable]]
    source, target = (dataset.schema.edges.keys.get(role, role) for role in ("source", "target"))
    notes = []
    numbers = [column.name for column in dataset.schema.edges.columns if column.kind == "number"]
    for name in [*numbers, *targets]:
        if name not in frame:
            continue
        values = as_numbers(frame[name])[usable]
        if not _is_signed(values):
            continue
        why = _opposite_signs(values, ends) or _balance(values, ends, dataset)
        if why:
            asked = target_option(f"edge:{quote_name(name)}=oriented")
            option = asked if name in targets else column_option((name, "oriented"))
            what = f"the sign of {name} seems to follow the order of {source} and {target} ({why})"
            notes.append(
                Note("oriented", f"{dataset.tables.name('edges')}: {what}: if that order is arbitrary, say {option}")
            )
    return notes


def _is_signed(values: Array) -> bool:
    there = values[~np.isnan(values)]
    if len(there) < FEWEST:
        return False
    return bool(min((there > 0).mean(), (there < 0).mean()) >= EACH_SIGN)


def _opposite_signs(values: Array, ends: Array) -> str:
    """The number of pairs of rows with exchanged ends that have opposite signs, if nearly all have."""
    known = ~np.isnan(values) & (values != 0) & (ends[0] != ends[1])
    up, down = (np.flatnonzero(known & (ends[0] < ends[1] if first else ends[0] > ends[1])) for first in (True, False))
    if len(up) == 0 or len(down) == 0:
        return ""
    size = int(ends.max()) + 1
    key, back = ends[0][up] * size + ends[1][up], ends[1][down] * size + ends[0][down]
    key, at = np.unique(key, return_index=True)
    place = np.searchsorted(key, back).clip(max=len(key) - 1)
    met = key[place] == back
    one, other = values[up[at[place[met]]]], values[down[met]]
    if len(one) < FEWEST_PAIRS or (one * other < 0).mean() < OPPOSITE:
        return ""
    return f"opposite in {(one * other < 0).mean():.0%} of {count(len(one), 'pair')} of rows with exchanged ends"


def _balance(values: Array, ends: Array, dataset: Dataset) -> str:
    """The share of the signed sums at nodes that cancels or follows from the columns of nodes, if it is nearly all."""
    known = ~np.isnan(values) & (ends[0] != ends[1])
    ends, flow = ends[:, known], values[known]
    if share_with_reverse(ends, dataset.graph.num_nodes) > MOST_REVERSED:  # then sums may cancel in pairs of rows
        return ""
    flow = flow / (np.abs(flow).max() or 1.0)
    num_nodes = dataset.graph.num_nodes
    degree, size = (sum(np.bincount(end, each, num_nodes) for end in ends) for each in (None, flow**2))
    chosen = np.flatnonzero(np.asarray(degree) > 1)
    total = float(np.asarray(size)[chosen].sum())
    if len(chosen) < FEWEST_NODES or total == 0:
        return ""
    out, into = (np.bincount(end, flow, num_nodes)[chosen] for end in ends)
    if float(((into - out) ** 2).sum()) <= min(BALANCED, HALF * float(((into + out) ** 2).sum()) / total) * total:
        return "what comes in at a node and what goes out nearly cancel"
    columns = [column[chosen] for column in _node_columns(dataset)][: len(chosen) // FOR_EACH_COLUMN]
    if not columns:
        return ""
    matrix = np.stack([*columns, np.ones(len(chosen))], axis=1)
    left = [
        float(((sums - matrix @ np.linalg.lstsq(matrix, sums, rcond=None)[0]) ** 2).sum()) / total
        for sums in (into - out, into + out)
    ]
    if left[0] > min(BALANCED, HALF * left[1]):
        return ""
    return "what comes in at a node less what goes out is nearly a sum of columns of the nodes"


def _node_columns(dataset: Dataset) -> Iterator[Array]:
    """The numbers of each node, 0 where one is missing."""
    frame, rows = dataset.tables.frames().get("nodes"), dataset.rows("node").numpy()
    for column in dataset.schema.nodes.columns:
        if frame is not None and column.kind == "number" and column.name in frame:
            found = np.zeros(dataset.graph.num_nodes)
            found[rows[rows >= 0]] = np.nan_to_num(as_numbers(frame[column.name])[rows >= 0])
            yield found
