"""The stored configuration of a run: settings, targets, training start and provenance, as `config.json` holds them."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Final, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator

from censnet.errors import quote
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.selection.candidates import SelectionRecord
from censnet.settings.build import TaskShape
from censnet.settings.presets import setting_names, values_of
from censnet.settings.schema import Settings
from censnet.tasks.targets import Target
from censnet.text import count

FORMAT: Final = 2  # of the run directory
DESCRIPTORS = "data.descriptors"
MAX_MEMBERS = 10_000
DEGREE_RATIO = 2.0  # between mean degrees, from which a graph is unlike the training graph


class Provenance(BaseModel):
    """When, where and with which versions a run was trained; predictions do not depend on it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    seconds: float
    device: str
    python: str
    torch: str
    censnet: str

    @classmethod
    def now(cls, seconds: float, device: str) -> Provenance:
        """The provenance of a run whose training ends now."""
        try:
            own = version("censnet")
        except PackageNotFoundError:
            own = "not installed"  # run from its source
        return cls(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=round(seconds, 3),
            device=device,
            python=platform.python_version(),
            torch=torch.__version__,
            censnet=own,
        )


class GraphSize(BaseModel):
    """The number of nodes, edges and graphs.

    Example:
        >>> GraphSize(nodes=60, edges=500)
        GraphSize(nodes=60, edges=500, graphs=1)
        >>> print(GraphSize(nodes=60, edges=500))
        60 nodes, 500 edges, mean degree 16.7
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: int = Field(ge=0)
    edges: int = Field(ge=0)
    graphs: int = Field(1, ge=0)

    @classmethod
    def of(cls, graph: Graph | GraphSet) -> GraphSize:
        """The size of a graph, or of all graphs of a set together."""
        return cls(nodes=graph.num_nodes, edges=graph.num_edges, graphs=graph.num_graphs)

    @property
    def mean_degree(self) -> float:
        """Mean number of edge ends at a node."""
        return 2 * self.edges / max(self.nodes, 1)

    def __str__(self) -> str:
        if self.graphs == 1:
            nodes, edges = count(self.nodes, "node"), count(self.edges, "edge")
            return f"{nodes}, {edges}, mean degree {self.mean_degree:.1f}"
        each = [total / max(self.graphs, 1) for total in (self.nodes, self.edges)]
        size = f"{each[0]:.1f} nodes and {each[1]:.1f} edges"
        return f"{count(self.graphs, 'graph')} of {size}, mean degree {self.mean_degree:.1f}"

    def compare(self, trained: GraphSize) -> tuple[str, bool]:
        """A sentence that compares this graph with the training graph, and whether their mean degrees differ much.

        >>> GraphSize(nodes=60, edges=500).compare(GraphSize(nodes=60, edges=500))
        ('the graph has 60 nodes, 500 edges, mean degree 16.7, as in training', False)
        >>> print(GraphSize(nodes=60, edges=100).compare(GraphSize(nodes=60, edges=500))[0])
        the graph has 60 nodes, 100 edges, mean degree 3.3; trained on 60 nodes, 500 edges, mean degree 16.7: predict...
        """
        subject = "the graph has" if self.graphs == 1 else "there are"
        if self == trained:
            return f"{subject} {self}, as in training", False
        line = f"{subject} {self}; trained on {trained}"
        low, high = sorted((self.mean_degree, trained.mean_degree))
        if high <= DEGREE_RATIO * low:
            return line, False
        return (
            f"{line}: predictions depend on the edges around a row, so give new rows with the history before them",
            True,
        )


class TableContent(BaseModel):
    """A table of the data when a training started.

    Args:
        file: its name in messages.
        rows: their number.
        columns: column -> digest of its values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    rows: int = Field(ge=0)
    columns: dict[str, str]


class TimeBudgetRecord(BaseModel):
    """The time that a training was given, and what it was enough for.

    Args:
        seconds: from its start until its run was saved.
        planned_epochs: member -> the epochs that were planned; None where all that the settings ask for fitted.
        ended: whether the time ended a training, of a member or of a candidate, before its epochs or early stopping.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float = Field(gt=0, allow_inf_nan=False)
    planned_epochs: list[int | None]
    ended: bool


class TrainingStart(BaseModel):
    """The inputs of a training: `checkpoint/start.json` while it is unfinished, later part of `config.json`.

    Args:
        format: of the directory.
        target_specs: the targets, as the user wrote them.
        settings: of the first recipe.
        other_recipes: the settings of the recipes that are trained beside it.
        changed: the settings that the user, rather than the preset, chose.
        ensemble: members whose predictions are averaged.
        overrides: column -> kind or role.
        data: the name or path by which the data can be read again; empty if they were in memory.
        fingerprint: of the graph, the labels and the split.
        tables: nodes, edges, graphs -> their content.
        parts: level -> digest of the part (train, validation, test) of each row.
        processes: that train together.
        replaces: SHA-256 of the `config.json` of the finished run that this training replaces when it ends, or empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = FORMAT
    target_specs: list[str] = Field(min_length=1)
    settings: Settings
    other_recipes: list[Settings]
    changed: list[str]
    ensemble: int = Field(ge=1, le=MAX_MEMBERS)
    overrides: dict[str, str]
    data: str
    fingerprint: str
    tables: dict[str, TableContent] = Field(default_factory=dict)
    parts: dict[str, str] = Field(default_factory=dict)
    processes: int = Field(1, ge=1)
    replaces: str = ""

    @property
    def recipes(self) -> list[Settings]:
        """The settings of all recipes."""
        return [self.settings, *self.other_recipes]

    @property
    def changes(self) -> dict[str, object]:
        """The settings that the user chose, as they were given: what validation selects has no value yet."""
        found = values_of(self.settings, self.changed)
        compared = len({one.data.descriptors for one in self.recipes}) > 1
        return found | ({DESCRIPTORS: "compare"} if compared and DESCRIPTORS in found else {})

    @model_validator(mode="after")
    def _changed_are_settings(self) -> Self:
        known = set(setting_names())
        unknown = next((name for name in self.changed if name not in known), None)
        if unknown is not None:
            raise ValueError(f"changed has {quote(unknown)}, expected names of settings")
        return self


class RunConfig(BaseModel):
    """The content of `config.json`.

    Args:
        format: of the directory.
        settings: of the selected model.
        target_specs: the targets, as the user wrote them.
        data: the name or the path of the data.
        fingerprint: of the training graph.
        graph_size: of the data.
        targets: what is predicted.
        link: whether links are predicted.
        split: level -> the source of its split, and how many rows are in each part.
        node_width, edge_width, graph_width: channels of the features.
        odd_width: of those of edges, the last ones, that change sign with the order of the ends.
        node_features: whether the nodes have features of their own, rather than default ones.
        widths: of the windows in time that edges have features of; none if they have no times.
        label_delay: time after an edge from which on its label is known, in the unit of the times.
        members: models whose predictions are averaged.
        monitor: the validation metric of early stopping; None if there was nothing to validate on.
        best_epoch: member -> the epoch whose weights were kept, the best by `monitor`, or else the last.
        selection: the candidates and the selected one of each member, if there were several.
        shows_labels: whether predictions are shown the known labels of other rows; None if the models read none.
        start: the inputs of the training, where known.
        finished_early: whether `--finish` closed the training before its end.
        time_budget: the time that it was given, if it was limited.
        findings: leakage that may make the scores look too good, such as a feature that determines the target.
        provenance: when, where and with which versions it was trained.
        files: name -> SHA-256 of every other file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = FORMAT
    settings: Settings
    target_specs: list[str]
    data: str
    fingerprint: str
    graph_size: GraphSize | None = None
    targets: list[Target]
    link: bool
    split: dict[str, str] = Field(default_factory=dict)
    node_width: int = Field(ge=0, lt=2**31)
    edge_width: int = Field(ge=0, lt=2**31)
    graph_width: int = Field(0, ge=0, lt=2**31)
    odd_width: int = Field(0, ge=0, lt=2**31)
    node_features: bool
    widths: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=list, max_length=100)
    label_delay: float = Field(0.0, ge=0, allow_inf_nan=False)
    members: int = Field(ge=1, le=MAX_MEMBERS)
    monitor: str | None
    best_epoch: list[int]
    selection: SelectionRecord | None = None
    shows_labels: bool | None = None
    start: TrainingStart | None = None
    finished_early: bool = False
    time_budget: TimeBudgetRecord | None = None
    findings: list[str] = Field(default_factory=list, max_length=100)
    provenance: Provenance
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def shape(self) -> TaskShape:
        """The task that the models of the run are built for."""
        return TaskShape(
            self.node_width, self.edge_width, self.targets, self.link, self.node_features, self.widths,
            self.label_delay, self.graph_width, self.odd_width,
        )  # fmt: skip

    @property
    def gates_frozen(self) -> bool:
        """Whether the gates of some member were frozen: its predictions then never depended on edge features."""
        if self.selection is None:
            return self.settings.training.gates == ["frozen"]
        return any(self.selection.candidates[number].gates == "frozen" for number in self.selection.selected)

    @model_validator(mode="after")
    def _best_epochs_are_epochs(self) -> Self:
        epochs = self.settings.training.epochs
        if len(self.best_epoch) != self.members or not all(1 <= epoch <= epochs for epoch in self.best_epoch):
            raise ValueError(f"best_epoch is {self.best_epoch[:20]}, expected {self.members} of 1 to {epochs}")
        return self
