"""Tasks of the table `edges`: the tables of each cell, their split by a seed, and what is predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd

from censnet.data.datasets.builtin import read_builtin
from censnet.data.splits.split_file import PARTS, Split
from censnet.data.splits.splitters import by_column, by_time, ratio, stratified
from censnet.data.tables.files import Tables
from censnet.data.tables.target_spec import TargetSpec, parse_targets
from censnet.errors import ArgumentError
from censnet.levels import Level
from censnet_experiments.cells import Cell, find_cell
from censnet_experiments.edges.bde import BondData, read_bde
from censnet_experiments.edges.grids import POWER_CASES, GridData, join_grids, read_generated, read_grid
from censnet_experiments.edges.otc import read_otc, split_at_random, split_by_time
from censnet_experiments.edges.patterns import LABELS, sample_patterns
from censnet_experiments.edges.payments import simulate_payments

KEYS = ("graph", "id", "source", "target", "split")  # columns that are no features
OTC_LABELS = ("sign", "rating")  # each gives the other away
KARATE_9 = (9 / 34, 5 / 34, 20 / 34)


@dataclass(frozen=True, eq=False)
class EdgeTask:
    """Data of one cell and seed, for any method.

    Args:
        tables: with inputs and answers alone: no column that gives an answer away.
        targets: as `censnet.train` takes them.
        split: of the rows of the table `split_table`; in sets of many graphs the rows of a graph go with it.
        split_table: `edges`, `nodes` or `graphs`.
        settings: of the data, which every method needs.
        time: the column of `edges` by which the split is ordered, if it is.
        is_stream: whether each edge is predicted with all labels before it, those of test rows too; otherwise, where
            the split is by time, with those up to the end of validation.
        directed: whether the order of the two ends of an edge means something.
        peers: column of a target -> the answers of a simpler model, one for each row of its table; no method sees them.
    """

    tables: Tables
    targets: tuple[str, ...]
    split: Split
    split_table: str
    settings: Mapping[str, object] = field(default_factory=dict)
    time: str | None = None
    is_stream: bool = False
    directed: bool = True
    peers: Mapping[str, pd.Series[float]] = field(default_factory=dict)

    @property
    def specs(self) -> list[TargetSpec]:
        """The targets, parsed."""
        return parse_targets(list(self.targets))[0]

    @property
    def has_molecules(self) -> bool:
        """Whether graphs are molecules, whose atoms and bonds have no table of inputs."""
        return self.tables.graphs is not None and "smiles" in self.tables.graphs

    def columns(self, table: str) -> list[str]:
        """The input columns of `nodes` or `edges`."""
        frame = self.tables.frames().get(table)
        answers = {spec.column for spec in self.specs}
        return [] if frame is None else [str(name) for name in frame if name not in (*KEYS, *answers)]

    def stated(self, edge_columns: bool = True) -> Tables:
        """The tables with a column `split`, with or without the input columns of edges."""
        frames = self.tables.frames()
        parts = np.array([*PARTS, None], dtype=object)[self.split.codes(len(frames[self.split_table]))]
        frames[self.split_table] = frames[self.split_table].assign(split=parts)
        if not edge_columns and not self.has_molecules:
            frames["edges"] = frames["edges"].drop(columns=self.columns("edges"))
        return self.tables.with_frames(frames)

    def rows(self, level: Level) -> Split:
        """The split of the rows of nodes or edges."""
        if self.split_table == level.table:
            return self.split
        frames = self.tables.frames()
        of_graph = pd.Series(self.split.codes(len(frames["graphs"])), index=frames["graphs"]["graph"])
        return Split.of(of_graph.reindex(frames[level.table]["graph"]).to_numpy())


@dataclass(frozen=True, eq=False)
class EdgeTasks:
    """The tasks of the cells of one data set, made when they are asked for."""

    name: str

    def task(self, cell: str, seed: int) -> EdgeTask:
        """The task of a cell with the split of a seed."""
        if find_cell("edges", cell).data != self.name:
            raise ArgumentError(f"{cell} is no cell of {self.name}")
        return make_task(cell, seed)


def make_task(cell: str, seed: int) -> EdgeTask:
    """Read or draw the data of a cell, and split them by a seed."""
    about = find_cell("edges", cell)
    if about.data == "otc":
        return otc_task(read_otc(), about, seed)
    if about.data == "direction":
        return direction_task(about, seed)
    if about.data == "payments":
        return payments_task(_payments(), about, seed)
    if about.data == "karate":
        return karate_task(about, seed)
    if about.data == "patterns":
        return patterns_task(about, seed)
    if about.data == "case118":
        return unseen_grid_task(about, seed) if about.split == "grids" else grid_task(read_grid("case118"), about, seed)
    return bond_task(read_bde(), about, seed)


@cache
def _payments() -> Tables:
    return simulate_payments()


def otc_task(tables: Tables, about: Cell, seed: int) -> EdgeTask:
    """Bitcoin OTC, at random by the seed or by time; of sign and rating only the target stays.

    With labels up to the end of validation, but all edges in the graph, layers need not be causal.
    """
    edges = _edges(tables)
    (spec,), _ = parse_targets(list(about.targets))
    edges = edges.drop(columns=[name for name in OTC_LABELS if name != spec.column])
    tables = tables.with_frames({"edges": edges})
    if about.split == "stream":
        return EdgeTask(tables, about.targets, split_by_time(edges), "edges", time="time", is_stream=True)
    if about.split == "time":
        settings = {"model.causal": False}
        return EdgeTask(tables, about.targets, split_by_time(edges), "edges", settings, time="time")
    return EdgeTask(tables, about.targets, split_at_random(edges, seed), "edges")


def direction_task(about: Cell, seed: int, num_nodes: int = 600, num_edges: int = 6000) -> EdgeTask:
    """A label that follows from direction alone: whether x is less at the source than at the target."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=num_nodes)
    source = draw.integers(0, num_nodes, num_edges)
    target = (source + draw.integers(1, num_nodes, num_edges)) % num_nodes
    nodes = pd.DataFrame({"id": np.arange(num_nodes), "x": x})
    edges = pd.DataFrame({"source": source, "target": target, "label": (x[source] < x[target]).astype(int)})
    return EdgeTask(Tables(nodes, edges), about.targets, ratio(num_edges, seed=seed), "edges")


def payments_task(tables: Tables, about: Cell, seed: int) -> EdgeTask:
    """Simulated payments, at random by the seed or by time."""
    edges = _edges(tables)
    if about.split == "stream":
        return EdgeTask(tables, about.targets, by_time(edges["time"]), "edges", time="time", is_stream=True)
    return EdgeTask(tables, about.targets, ratio(len(edges), seed=seed), "edges")


def karate_task(about: Cell, seed: int) -> EdgeTask:
    """The karate club, split as `censnet train karate --seed` splits it, or with 9 training labels."""
    tables = read_builtin("karate")
    if not isinstance(tables, Tables) or tables.nodes is None:
        raise ArgumentError("karate has no table of nodes")
    fractions = (0.8, 0.1, 0.1) if about.rate == 0.8 else KARATE_9
    split = stratified(tables.nodes[["faction"]], fractions, seed)
    return EdgeTask(tables, about.targets, split, "nodes", directed=False)


def patterns_task(about: Cell, seed: int, num_nodes: int = 8192) -> EdgeTask:
    """Three independent graphs, for training, validation and testing; other labels than the target are left out."""
    (spec,), _ = parse_targets(list(about.targets))
    drawn = [sample_patterns(len(PARTS) * seed + number, num_nodes) for number in range(len(PARTS))]
    others = [label for label in LABELS if label != spec.column]
    frames = {
        table: pd.concat(
            [one.frames()[table].assign(graph=number) for number, one in enumerate(drawn)], ignore_index=True
        )
        for table in ("nodes", "edges")
    }
    graphs = pd.DataFrame({"graph": np.arange(len(PARTS))})
    tables = Tables(frames["nodes"].drop(columns=others), frames["edges"], graphs)
    return EdgeTask(tables, about.targets, Split.of(np.arange(len(PARTS))), "graphs")


def grid_task(grid: GridData, about: Cell, seed: int, split: Split | None = None) -> EdgeTask:
    """Samples of a grid, at random by the seed; answers that are not asked for and `P_dc` are left out."""
    frames, asked = grid.tables.frames(), {spec.column for spec in parse_targets(list(about.targets))[0]}
    peers = {"P": frames["edges"]["P_dc"]} if "P_dc" in grid.peers else {}
    hidden = [name for name in (*grid.node_answers, *grid.edge_answers, *grid.peers) if name not in asked]
    for table in ("nodes", "edges"):
        frames[table] = frames[table].drop(columns=[name for name in hidden if name in frames[table]])
    split = ratio(len(frames["graphs"]), seed=seed) if split is None else split
    tables = grid.tables.with_frames(frames)
    return EdgeTask(tables, about.targets, split, "graphs", directed=False, peers=peers)


def unseen_grid_task(about: Cell, seed: int, samples: int = 200) -> EdgeTask:
    """A grid of which nothing is seen in training: generated samples of others train and validate, case118 tests."""
    others = [read_generated(case, samples, seed=0) for case in POWER_CASES]
    return unseen_task(others, read_grid("case118"), about, seed)


def unseen_task(others: Sequence[GridData], unseen: GridData, about: Cell, seed: int) -> EdgeTask:
    """Samples of some grids, a share of `about.rate` at random to train and the rest to validate; another tests."""
    known = sum(len(one.tables.frames()["graphs"]) for one in others)
    part = np.full(known + len(unseen.tables.frames()["graphs"]), PARTS.index("test"))
    part[:known] = ratio(known, (about.rate, 1 - about.rate, 0.0), seed).codes(known)
    return grid_task(join_grids([*others, unseen]), about, seed, Split.of(part))


def bond_task(data: BondData, about: Cell, seed: int) -> EdgeTask:
    """Bond dissociation enthalpies, split by the authors; with a rate of 0.1, a tenth of the training molecules."""
    share = about.rate if about.rate < 0.5 else 1.0
    if share < 1:
        data = data.keep_training(share, seed)
    graphs = data.molecules[["molecule", "smiles"]].rename(columns={"molecule": "id"})
    tables = Tables(graphs=graphs, edges=data.bonds.drop(columns="set"))
    split = by_column(data.molecules["set"], "molecules", "set")
    hydrogens = {"data.hydrogens": "explicit"}
    return EdgeTask(tables, about.targets, split, "graphs", settings=hydrogens)


def _edges(tables: Tables) -> pd.DataFrame:
    if tables.edges is None:
        raise ArgumentError("there is no table of edges")
    return tables.edges
