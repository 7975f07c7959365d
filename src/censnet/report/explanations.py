"""What moves the answers for the worst errors: their explanations, for as many rows as there is time for."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from censnet.errors import CensNetError
from censnet.explanation.parts import Effort, Part
from censnet.levels import Level
from censnet.markup import visible
from censnet.ops.arrays import Array
from censnet.ops.graph_set import GraphSet
from censnet.report.content import Content
from censnet.runs.explain import Explained, PartNames

logger = logging.getLogger(__name__)
ROWS = 5  # of each target, unless more are asked for
SECONDS = 6.0  # for all of them, unless more are asked for
EFFORT = Effort(most=24, steps=8, gates=False)  # gradients choose what is left out, and are not shown
SHOWN = 3  # parts of each kind
LEAST = 1e-5  # of the largest change, below which a part moves nothing
KINDS = ("edge", "node", "column")
Entry = dict[str, Any]
Found = dict[tuple[str, int], dict[int, Entry]]  # level and number of a target -> row -> explanation


def explain_worst(
    content: Content, chosen: Mapping[tuple[str, int], Array], rows: int | None
) -> tuple[Found, dict[str, str]]:
    """Explain the worst rows of each target, and say of a level why there are no explanations.

    Args:
        content: of the page.
        chosen: level and number of a target -> its worst rows, in order.
        rows: how many of each; None is `ROWS`, and as many as `SECONDS` are enough for.
    """
    found, why, dataset, run = Found(), dict[str, str](), content.dataset, content.run
    if dataset is None or rows == 0:
        return found, why
    end = time.monotonic() + SECONDS
    names: PartNames | None = None
    for (level, number), worst in chosen.items():
        if level == Level.LINK:
            why[level] = "the scores are without the held-out links, which explanations read (censnet explain)"
            continue
        if content.is_other and run.known_labels(dataset) is not None:
            why[level] = "the scores are without known labels, which explanations would read"
            continue
        names = names or PartNames(dataset, run.inputs)
        left = None if rows is not None else max(end - time.monotonic(), 0.0)
        try:
            explained = run.explain_rows(
                dataset, [int(row) + 1 for row in worst[: rows or ROWS]], effort=EFFORT, seconds=left,
                target=content.rows[level][number].target.column, level=level,
            )  # fmt: skip
        except CensNetError as error:  # a kind of model, or a missing dependency
            logger.info("no explanations on the page: %s", error)
            why[level] = str(error)
            continue
        if not explained and len(worst):
            why[level] = "they would take more than some seconds (--explain 3)"
        found[level, number] = {one.row: _describe(one, names) for one in explained}
    return found, why


def _describe(one: Explained, names: PartNames) -> Entry:
    """An explanation for the page: the first parts of each kind, its fidelity, and the colors of a molecule."""
    parts = {kind: _first(one, names, kind) for kind in KINDS}
    entry: Entry = {
        "class": visible(one.chosen, 60),
        "answer": one.answer,
        "parts": {kind: few for kind, few in parts.items() if few},
        "fidelity": {
            kind: {"count": each.count, "change": each.change, "random": each.random, "beats": each.beats}
            for kind, each in one.fidelity.items()
        },
    }
    graph = names.dataset.graph
    if one.level == Level.GRAPH and names.dataset.schema.smiles is not None and isinstance(graph, GraphSet):
        entry["colors"] = {"atoms": _of_each(one.parts, "node"), "bonds": _of_each(one.parts, "edge")}
    return entry


def _first(one: Explained, names: PartNames, kind: str) -> list[list[Any]]:
    """Name, where and change of the parts that move the answer most; rounding errors are none."""
    largest = max((abs(part.change) for part in one.parts if np.isfinite(part.change)), default=0.0)
    mine = [p for p in one.parts if p.kind == kind and np.isfinite(p.change) and abs(p.change) > LEAST * largest]
    return [[visible(names.name(part, one.place)[0], 60), part.where, part.change] for part in mine[:SHOWN]]


def _of_each(parts: Sequence[Part], kind: str) -> list[list[float]]:
    """Atom, or bond, and its change."""
    return [[part.index, part.change] for part in parts if part.kind == kind and np.isfinite(part.change)]
