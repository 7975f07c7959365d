r"""Windows in time: for each edge, the other edges of its nodes and of its pair shortly before and after it.

For an edge e = (s, t) at time :math:`\tau_e` and a width w, the two windows of a group of edges, such as those that
start at s, are

.. math::
    \{f \ne e : \tau_e - w \le \tau_f \le \tau_e\}, \qquad \{f \ne e : \tau_e \le \tau_f \le \tau_e + w\},

with edges of the same time in both. In a directed graph the groups are the edges that start at s, end at s, start at t
and end at t, those from s to t and those from t to s; in another the edges at s, those at t and those between the two.
The edges of a group stand in order, so a window is a range of them and a sum over it is a difference of two prefix
sums: O(E log E) for all edges, exact, whatever the number of edges in a window. A prefix sum begins anew with each
group, in float64, so that its error does not grow with the graph. No order among edges of one time is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from censnet.ops.caching import cached
from censnet.ops.graph import Graph
from censnet.ops.scan import ScanPlan

GROUPS = {True: 6, False: 3}  # of a directed graph and of another
SIDES = 2  # before and after
MAX_KEPT = 1 << 23  # bounds of windows, up to which they are kept
_CHUNK = 1 << 16  # edges whose windows are looked up together


class Bounds(NamedTuple):
    """The windows of some edges as ranges of padded prefix sums, and the groups in which an edge meets itself.

    Shape:
        low and high (n, GROUPS, 2, W), itself (n, GROUPS).
    """

    low: Tensor
    high: Tensor
    itself: Tensor


class Runs:
    """Events of groups one after the other, each group in the order of time.

    Args:
        group: of each event.
        edge: of each event.
        moment: of each edge, its time as a number counted from 0.
        num_moments: how many different times there are.
    """

    def __init__(self, group: Tensor, edge: Tensor, moment: Tensor, num_moments: int) -> None:
        key, order = (group * num_moments + moment[edge]).sort()
        self.key, self.edge, self.num_moments = key, edge[order], num_moments
        self.group = group[order]
        first = torch.ones_like(self.group, dtype=torch.bool)
        first[1:] = self.group[1:] != self.group[:-1]
        self.number = first.long().cumsum(0) - 1  # of the run

    @cached
    def plan(self) -> ScanPlan:
        """The order in which the values of each run are added up."""
        return ScanPlan(torch.bincount(self.number))

    def find(self, group: Tensor, moment: Tensor, right: bool = False) -> Tensor:
        """The first event of a group that is not before a moment, or that is after it."""
        return torch.searchsorted(self.key, group * self.num_moments + moment, right=right)

    def pad(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Ranges of events of one run as those of `prefix_sums`."""
        last = (high - 1).clamp(min=0)
        shift, some = self.number[last], high > low
        return torch.where(some, low + shift, 0), torch.where(some, high + shift, 0)

    def prefix_sums(self, values: Tensor) -> Tensor:
        """Of each run 0 and its prefix sums, so that P[high] - P[low] is the sum over a padded range.

        Shape:
            values (E, c) -> (events + runs, c).
        """
        return pad_prefix_sums(self.plan.scan(values[self.edge].double()), self.number)


def pad_prefix_sums(prefix: Tensor, number: Tensor) -> Tensor:
    """Prefix sums of runs with a 0 before each run; `number` is the run of each row."""
    runs = int(number[-1]) + 1 if len(number) else 1
    padded = prefix.new_zeros(len(prefix) + runs, prefix.shape[1])
    return padded.index_copy(0, torch.arange(len(prefix), device=prefix.device) + number + 1, prefix)


@dataclass(frozen=True, eq=False)
class TimeWindows:
    """The edges of each group in the order of time.

    Args:
        times: of each edge. (E,)
        moments: the different times, in order.
        moment: of each edge, the number of its time among these.
        runs: the events by group: of directed edges by start, by end and by pair, of others by node and by pair.
        groups: of each edge, for each of its groups, the runs and the group in them. (E, GROUPS)
        members: of each edge, whether it is in each of these groups itself. (E, GROUPS)
    """

    times: Tensor
    moments: Tensor
    moment: Tensor
    runs: Sequence[Runs]
    run_of: Sequence[int]
    groups: Tensor
    members: Tensor
    _kept: dict[tuple[float, ...], Bounds] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, directed: bool) -> TimeWindows:
        """The windows of a graph whose edges have times; cached with its incidence.

        Example:
            >>> times = torch.tensor([0.0, 5.0, 7.0], dtype=torch.float64)
            >>> fan = Graph(torch.ones(4, 1), torch.ones(3, 1), torch.tensor([[0, 0, 0], [1, 2, 3]]), times=times)
            >>> windows = TimeWindows.of(fan, directed=True)
            >>> windows.gaps()[:, 0].tolist()
            [[inf, 5.0], [5.0, 2.0], [2.0, inf]]
            >>> windows.counts([2.0])[:, 0, :, 0].tolist()
            [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
            >>> windows.sums(torch.tensor([[1.0], [10.0], [100.0]]), [6.0])[:, 0, :, 0, 0].tolist()
            [[0.0, 10.0], [1.0, 100.0], [10.0, 0.0]]
        """
        if graph.times is None:
            raise ValueError("the edges of the graph have no times, expected a time for each")
        cached: object = graph.incidence.cache(("time windows", directed), lambda: cls._make(graph, directed))
        assert isinstance(cached, TimeWindows)
        return cached if cached.times is graph.times else cls._make(graph, directed)

    @classmethod
    def _make(cls, graph: Graph, directed: bool) -> TimeWindows:
        times, (source, target), count = graph.times, graph.ends.long(), graph.num_nodes
        assert times is not None
        moments, moment = torch.unique(times, return_inverse=True)
        edge, loop = torch.arange(graph.num_edges, device=times.device), source == target
        if directed:
            forward, back = source * count + target, target * count + source
            _, pair = torch.unique(torch.cat([forward, back]), return_inverse=True)
            pair, reverse = pair[: len(edge)], pair[len(edge) :]
            runs = [Runs(group, edge, moment, len(moments)) for group in (source, target, pair)]
            groups = torch.stack([source, source, target, target, pair, reverse], dim=1)
            always = torch.ones_like(loop)
            members = torch.stack([always, loop, loop, always, always, loop], dim=1)
            return cls(times, moments, moment, runs, (0, 1, 0, 1, 2, 2), groups, members)
        low, high = torch.minimum(source, target), torch.maximum(source, target)
        _, pair = torch.unique(low * count + high, return_inverse=True)
        proper = (~loop).nonzero().squeeze(1)
        nodes, both = torch.cat([source, target[proper]]), torch.cat([edge, proper])
        runs = [Runs(nodes, both, moment, len(moments)), Runs(pair, edge, moment, len(moments))]
        groups = torch.stack([source, target, pair], dim=1)
        return cls(times, moments, moment, runs, (0, 0, 1), groups, torch.ones_like(groups, dtype=torch.bool))

    def gaps(self, rows: Tensor | None = None) -> Tensor:
        """The time since the last and until the next other edge of each group; infinite where there is none.

        Args:
            rows: the edges that are asked; all if None.

        Shape:
            rows (n,) -> (n, GROUPS, 2).
        """
        rows = self._rows(rows)
        time, moment, found = self.times[rows], self.moment[rows], []
        for number, of in enumerate(self.run_of):
            run, group = self.runs[of], self.groups[rows, number]
            low, high = run.find(group, moment), run.find(group, moment, right=True)
            tied = high - low > self.members[rows, number].long()
            for near, at in ((low - 1, low - 1), (high, high)):
                inside = (at >= 0) & (at < len(run.key))
                near = near.clamp(0, max(len(run.key) - 1, 0))
                inside &= run.group[near] == group
                gap = (time - self.times[run.edge[near]]).abs()
                found.append(torch.where(tied, 0.0, torch.where(inside, gap, torch.inf)))
        return torch.stack(found, dim=1).view(len(rows), len(self.run_of), SIDES)

    def counts(self, widths: Sequence[float], rows: Tensor | None = None) -> Tensor:
        """The number of other edges in each window. (n,) -> (n, GROUPS, 2, W)"""
        found = []
        for _, (low, high, itself) in self.all_bounds(rows, widths):
            found.append(high - low - itself[:, :, None, None].long())
        return torch.cat(found).double() if found else self.times.new_zeros(0, len(self.run_of), SIDES, len(widths))

    def sums(
        self, values: Tensor, widths: Sequence[float], rows: Tensor | None = None, without: Tensor | None = None
    ) -> Tensor:
        """The sum of the values of the other edges in each window. No gradient.

        Args:
            values: of each edge.
            widths: of the windows.
            rows: the edges that are asked; all if None.
            without: edges whose values do not count; where they are few, this takes no pass over all edges.

        Shape:
            values (E, c), rows (n,) -> (n, GROUPS, 2, W, c).
        """
        return WindowSums(self, values)(widths, rows, without)

    def _rows(self, rows: Tensor | None) -> Tensor:
        return torch.arange(len(self.times), device=self.times.device) if rows is None else rows

    def all_bounds(self, rows: Tensor | None, widths: Sequence[float]) -> Iterator[tuple[Tensor, Bounds]]:
        """Some edges after others, and their windows; those of all edges of a small graph are kept."""
        every = self._rows(rows)
        kept = rows is None and len(every) * len(self.run_of) * SIDES * len(widths) <= MAX_KEPT
        if kept:
            if self._kept.get(key := tuple(widths)) is None:
                self._kept[key] = self.bounds(every, widths)
            yield every, self._kept[key]
            return
        for some in torch.split(every, _CHUNK):
            yield some, self.bounds(some, widths)

    def bounds(self, rows: Tensor, widths: Sequence[float]) -> Bounds:
        """The windows of these widths of some edges."""
        time, moment = self.times[rows], self.moment[rows]
        lows, highs = [], []
        earliest = [torch.searchsorted(self.moments, time - width) for width in widths]
        latest = [torch.searchsorted(self.moments, time + width, right=True) - 1 for width in widths]
        for number, of in enumerate(self.run_of):
            run, group = self.runs[of], self.groups[rows, number]
            begin, end = run.find(group, moment), run.find(group, moment, right=True)
            before = [run.pad(run.find(group, each), end) for each in earliest]
            after = [run.pad(begin, run.find(group, each, right=True)) for each in latest]
            lows += [low for low, _ in before + after]
            highs += [high for _, high in before + after]
        shape = len(rows), len(self.run_of), SIDES, len(widths)
        low, high = (torch.stack(each, dim=1).view(shape) for each in (lows, highs))
        return Bounds(low, high, self.members[rows])


class WindowSums:
    """Sums of the values of edges over windows, from prefix sums that are computed once.

    Args:
        windows: of the edges.
        values: of each edge. (E, c)
    """

    def __init__(self, windows: TimeWindows, values: Tensor) -> None:
        self.windows, self.values = windows, values.double()
        self.prefix = [run.prefix_sums(self.values) for run in windows.runs]

    def __call__(self, widths: Sequence[float], rows: Tensor | None = None, without: Tensor | None = None) -> Tensor:
        """As `TimeWindows.sums`."""
        found = list(self.chunks(widths, rows, without))
        shape = 0, len(self.windows.run_of), SIDES, len(widths), self.values.shape[1]
        return torch.cat(found) if found else self.values.new_zeros(shape)

    def chunks(
        self, widths: Sequence[float], rows: Tensor | None = None, without: Tensor | None = None
    ) -> Iterator[Tensor]:
        """The same for some rows after others."""
        windows, own, taken = self.windows, self.values, None
        if without is not None:
            own = self.values.index_fill(0, without, 0)
            taken = [_FewEvents(run, without, self.values) for run in windows.runs]
        for some, bounds in windows.all_bounds(rows, widths):
            sums = []
            for number, of in enumerate(windows.run_of):
                low, high = bounds.low[:, number], bounds.high[:, number]
                total = _between(self.prefix[of], low, high)
                sums.append(total if taken is None else total - taken[of](low, high))
            alone = own[some][:, None] * bounds.itself.unsqueeze(2)
            yield torch.stack(sums, dim=1) - alone[:, :, None, None]


class _FewEvents:
    """The events of some edges alone, and the prefix sums of their values."""

    def __init__(self, run: Runs, edges: Tensor, values: Tensor) -> None:
        chosen = torch.zeros(len(values), dtype=torch.bool, device=values.device).index_fill(0, edges, True)
        place = chosen[run.edge].nonzero().squeeze(1)
        number = torch.unique_consecutive(run.number[place], return_inverse=True)[1]
        sums = ScanPlan(torch.bincount(number)).scan(values[run.edge[place]])
        self.prefix = pad_prefix_sums(sums, number)
        self.place, self.number = place + run.number[place], number  # padded, as the ranges are

    def __call__(self, low: Tensor, high: Tensor) -> Tensor:
        """The sums over padded ranges of all events."""
        first, last = (torch.searchsorted(self.place, bound.contiguous()) for bound in (low, high))
        shift = self.number[(last - 1).clamp(min=0)] if len(self.number) else torch.zeros_like(last)
        some = last > first
        return _between(self.prefix, torch.where(some, first + shift, 0), torch.where(some, last + shift, 0))


def _between(prefix: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """P[high] - P[low]. (n...) -> (n..., c)"""
    upper, lower = (prefix.index_select(0, bound.reshape(-1)) for bound in (high, low))
    return (upper - lower).view(*low.shape, prefix.shape[1])
