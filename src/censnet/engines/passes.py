"""What a step asks for, found out on three edges: its sums, which of them depend on which, whether it reads nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from censnet.engines.batches import EDGE_COUNTS, NODE_COUNTS, CountMissing, Sums, edge_batch
from censnet.engines.columns import Group, groups_of
from censnet.engines.works import LEAST, GraphTables, Rows, Step, SumRequest, Tensors

EDGES = 3  # of the sample, the last of which is a loop
NUMBERS = ("x",)  # tensors whose NaN makes NaN of all that depends on them; a label that is NaN is one that is missing


class _Unread(dict[str, Tensor]):
    """Tensors of nodes that are not there: those that are asked for by name are needed."""

    def __missing__(self, name: str) -> Tensor:
        raise CountMissing


@dataclass(frozen=True)
class Passes:
    """What is computed for a step.

    Args:
        sums: that it asks for, in order.
        nodes, edges: the groups of its result; None for a side that it leaves as it was.
        reads_nodes: whether the result for an edge depends on its nodes.
    """

    sums: Sequence[SumRequest]
    nodes: Mapping[str, Group] | None
    edges: Mapping[str, Group] | None
    reads_nodes: bool


@torch.no_grad()
def plan_step(step: Step, tables: GraphTables) -> Passes:
    """Compute a step on a sample until all of its sums are known.

    A sum that is not known is NaN. So one that has no NaN depends on none of these, and is recorded in the next pass.
    """
    node, edge = _sample(tables.node_groups, 2 * EDGES), _sample(tables.edge_groups, EDGES)
    asked, known, level = dict[int, SumRequest](), dict[int, Tensor](), 0
    while True:
        sums = Sums(known)
        nodes, edges = step(_rows(node, edge, sums))
        new = {number: one for number, one in sums.recorded.items() if not bool(one.rows.isnan().any())}
        if not new:
            break
        at_edges = {number: rows for number, rows in known.items() if asked[number].kind == "pair"}
        alone = Sums(at_edges)
        with suppress(CountMissing):
            step(_rows(None, edge, alone, tables.node_groups))
        for number, one in new.items():
            found = alone.recorded.get(number)
            reads = found is None or bool(found.rows.isnan().any())
            asked[number] = SumRequest(number, one.kind, one.rows.shape[1], one.rows.dtype, level, reads)
            shape = (EDGES, 2 * one.rows.shape[1]) if one.kind == "pair" else one.rows.shape
            known[number] = torch.rand(shape, dtype=one.rows.dtype)
        level += 1
    if sums.recorded:
        raise RuntimeError(f"{len(sums.recorded)} sums of a step stay unknown")
    return Passes(
        [asked[number] for number in sorted(asked)],
        None if nodes is None else groups_of(nodes),
        None if edges is None else groups_of(edges),
        _reads_nodes(step, tables, edge, asked, known),
    )


def _reads_nodes(
    step: Step, tables: GraphTables, edge: Tensors, asked: Mapping[int, SumRequest], known: Mapping[int, Tensor]
) -> bool:
    """Whether the result for an edge depends on its nodes, or on sums at these."""
    if any(one.kind != "pair" for one in asked.values()):
        return True
    try:
        found = step(_rows(None, edge, Sums(known), tables.node_groups))[1] or {}
    except CountMissing:
        return True
    return any(bool(rows.isnan().any()) for rows in found.values())


def _sample(groups: Mapping[str, Group], count: int) -> dict[str, Tensor]:
    """Rows of tensors, whose numbers are between 0 and 1."""
    random = torch.Generator().manual_seed(0)
    return {name: torch.rand(count, one.width, generator=random).to(one.dtype) for name, one in groups.items()}


def _rows(node: Tensors | None, edge: Tensors, sums: Sums, unread: Mapping[str, Group] | None = None) -> Rows:
    """The sample; without nodes, their tensors are NaN, and their counts are missing."""
    one = torch.ones(EDGES, dtype=torch.int64)
    counts = dict.fromkeys(EDGE_COUNTS, one) | {LEAST.name: torch.ones(EDGES, 2, dtype=torch.float64)}
    loop = torch.arange(EDGES) == EDGES - 1
    if node is None:
        groups = (unread or {}).items()
        nan = {name: torch.full((2 * EDGES, group.width), torch.nan) for name, group in groups if name in NUMBERS}
        return Rows(_Unread(nan), edge, edge_batch(loop, counts, {}, {}, sums))
    ends = dict.fromkeys(NODE_COUNTS, one)
    return Rows(node, edge, edge_batch(loop, counts, ends, ends, sums))
