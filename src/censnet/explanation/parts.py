"""The parts of a neighborhood, what each adds to an answer, and how faithful that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from censnet.explanation.gradients import STEPS, integrated_gradients
from censnet.explanation.probe import Probe

Kind = Literal["edge", "node", "column"]
MOST = 200
TOP, DRAWS = 5, 20  # parts that are left out together for the fidelity; random draws of as many


@dataclass(frozen=True)
class Effort:
    """How much is computed for one explanation.

    Args:
        most: edges, and nodes, that are left out one by one.
        steps: points of the path of integrated gradients.
        gates: whether the gates of each of these edges are closed as well.
    """

    most: int = MOST
    steps: int = STEPS
    gates: bool = True


WHOLE = Effort()


@dataclass(frozen=True)
class Columns:
    """A column of nodes or edges as some of its features.

    Args:
        name: for the user.
        side: node or edge.
        features: their positions.
    """

    name: str
    side: Literal["node", "edge"]
    features: list[int]


@dataclass(frozen=True)
class Part:
    """One part and what it adds to the answer.

    Args:
        kind: edge, node or column.
        index: the edge or node, as a position in the neighborhood; of a column its position in the list of columns.
        where: of a column `own`, in the row that is explained, of a link in its two nodes, or `around`, in all others;
            else empty.
        change: the answer minus the answer without the part; NaN if it was not left out.
        gate: of an edge, the answer minus the answer with its gates closed; NaN where there is none.
        gradients: integrated gradients of its columns, which over all columns of all rows add up to the answer minus
            the answer where all columns are at the baseline.
    """

    kind: Kind
    index: int
    where: str
    change: float
    gate: float
    gradients: float


@dataclass(frozen=True)
class Fidelity:
    """How far the answer moves without the parts that an explanation names first, and without random ones.

    Args:
        kind: edge or node.
        count: how many are left out together: those of the largest changes in one direction.
        change: the size of the change.
        random: the mean size of the change without as many parts drawn at random.
        beats: the share of random draws that change the answer less.
    """

    kind: Kind
    count: int
    change: float
    random: float
    beats: float


def explain_parts(probe: Probe, columns: Sequence[Columns], effort: Effort = WHOLE) -> list[Part]:
    """What edges, nodes and each column of a neighborhood add, the largest first within its kind."""
    answer, gradients = probe.whole(), integrated_gradients(probe, effort.steps)
    edges = _chosen(probe, "edge", gradients["edge"].sum(1), effort.most)
    nodes = _chosen(probe, "node", gradients["node"].sum(1), effort.most)
    keep, hidden = _masks(probe, "edge", edges[:, None])
    without = probe.without(keep, hidden)
    closed = effort.gates and probe.has_gates
    gates = probe.with_gates_closed(edges) if closed else torch.full((len(edges),), torch.nan)
    found = [
        Part("edge", edge, "", answer - float(one), answer - float(gate), float(gradients["edge"][edge].sum()))
        for edge, one, gate in zip(edges.tolist(), without, gates, strict=True)
    ]
    keep, hidden = _masks(probe, "node", nodes[:, None])
    found += [
        Part("node", node, "", answer - float(one), float("nan"), float(gradients["node"][node].sum()))
        for node, one in zip(nodes.tolist(), probe.without(keep, hidden), strict=True)
    ]
    found += _column_parts(probe, columns, answer, gradients)
    return sorted(found, key=lambda part: (("edge", "node", "column").index(part.kind), -abs(part.change)))


def count_copies(probe: Probe, columns: Sequence[Columns], effort: Effort) -> int:
    """About how many copies of its neighborhood an explanation of a row takes."""
    edges, nodes = (min(effort.most, count) for count in (probe.place.graph.num_edges, probe.place.graph.num_nodes))
    gradients = 3 * effort.steps  # forward and backward, on features that need gradients
    return (1 + (effort.gates and probe.has_gates)) * edges + nodes + 2 * len(columns) + 2 * (2 + DRAWS) + gradients


def fidelity(probe: Probe, parts: Sequence[Part], kind: Kind, seed: int = 0) -> Fidelity | None:
    """Leave out the first parts of an explanation together, and as many at random; None if there are too few.

    The first parts are those of the largest changes in one direction, since the others would cancel them: raising or
    lowering, whichever moves the answer more.
    """
    mine = [part for part in parts if part.kind == kind]
    named, count = [part.index for part in mine], min(TOP, len(mine) // 2)
    if count == 0:
        return None
    draw = np.random.default_rng(seed)
    first = [[part.index for part in sorted(mine, key=lambda part: sign * part.change)[:count]] for sign in (1, -1)]
    others = [draw.choice(named, count, replace=False) for _ in range(DRAWS)]
    answers = probe.without(*_masks(probe, kind, torch.from_numpy(np.array([*first, *others]))))
    changes = (probe.whole() - answers).abs().numpy()
    best, random = float(changes[:2].max()), changes[2:]
    return Fidelity(kind, count, best, float(random.mean()), float((random < best).mean()))


def _masks(probe: Probe, kind: Kind, left_out: Tensor) -> tuple[Tensor, Tensor | None]:
    """For each copy the edges that stay, and the nodes at the baseline. left_out: (B, k)"""
    graph, copies = probe.place.graph, len(left_out)
    keep = torch.ones(copies, graph.num_edges, dtype=torch.bool)
    if kind == "edge":
        return keep.scatter(1, left_out, False), None
    hidden = torch.zeros(copies, graph.num_nodes, dtype=torch.bool).scatter(1, left_out, True)
    keep &= ~(hidden[:, graph.ends[0]] | hidden[:, graph.ends[1]])
    if probe.level == "edge":
        keep[:, probe.place.seed] = True
    return keep, hidden


def _chosen(probe: Probe, kind: Kind, gradients: Tensor, most: int) -> Tensor:
    """The edges, or nodes, that are left out one by one: those at the row first, then by the size of gradients.

    The row that is explained is not among them.
    """
    graph, seed = probe.place.graph, probe.place.seed
    count = graph.num_edges if kind == "edge" else graph.num_nodes
    score = gradients.abs().double()
    if probe.level != "graph":
        at = graph.ends[:, seed] if probe.level == "edge" else torch.tensor(probe.place.centers)
        near = torch.isin(graph.ends[0], at) | torch.isin(graph.ends[1], at)
        if kind == "node":
            mask = torch.zeros(count, dtype=torch.bool)
            mask[graph.ends[:, near].flatten()] = True
            near = mask
        score = score + near * (1 + score.max() if len(score) else 0)
        if probe.level == kind or (probe.level == "link" and kind == "node"):
            score[probe.place.centers] = -1
    order = torch.argsort(score, descending=True, stable=True)
    return order[score[order] >= 0][:most]


def _column_parts(probe: Probe, columns: Sequence[Columns], answer: float, gradients: dict[str, Tensor]) -> list[Part]:
    """Each column in the row that is explained, and in all others."""
    graph, changes, named = probe.place.graph, [], []
    for index, column in enumerate(columns):
        count = graph.num_nodes if column.side == "node" else graph.num_edges
        every, features = torch.arange(count), torch.tensor(column.features)
        own = torch.zeros(count, dtype=torch.bool)
        if probe.level == column.side or (probe.level == "link" and column.side == "node"):
            own[probe.place.centers] = True
        for where, rows in (("own", every[own]), ("around" if probe.level != "graph" else "all", every[~own])):
            if len(rows):
                changes.append((column.side, rows, features))
                named.append((index, where))
    without = probe.without_columns(changes)
    found = []
    for (index, where), (side, rows, features), one in zip(named, changes, without, strict=True):
        share = float(gradients[side][rows[:, None], features].sum())
        if side == "edge" and int(features.min()) >= graph.edge_width - probe.place.label_width:
            share = float("nan")  # they are known or not
        found.append(Part("column", index, where, answer - float(one), float("nan"), share))
    return found
