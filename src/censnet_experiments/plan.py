"""Plans: the training of a method as dataclasses that can be written to JSON, without the text of its spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from censnet.data.tables.target_spec import parse_targets
from censnet.pipeline.prepare import section_of
from censnet.settings.presets import has_high_label_recipe, make_settings, of_causal
from censnet_experiments.cells import TABLES, find_cell

SECTIONS = {
    "nodes": "node",
    "molecules": "graph",
    "links": "link",
}  # table -> section of the preset, of the tables trained by the library's loop

Varies = Literal["split", "initialization"]


class FromSpec:
    """A part of a spec, in which an unknown name is an error."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True)
class Recipe(FromSpec):
    """Training by the trainers of the paper's tables.

    Args:
        model: its name in `models.MODELS`.
        options: of its constructor.
        learning_rates: of Adam. The best on the validation set is selected, separately for each seed.
        epochs: of training. In Tables 1 and 2 the best epoch on the validation set is selected.
        patience: of early stopping in Table 1, in epochs; None is without.
        weight_decay: of the weights, added to the gradient.
        decay_first: whether only the first layer is decayed, as in the code of GCN.
        batch_size: number of graphs, or of nodes of one graph as in Algorithm 2 of the paper. None is all of them.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    learning_rates: tuple[float, ...] = (0.01, 0.005, 0.001, 0.0005)
    epochs: int = 1000
    patience: int | None = None
    weight_decay: float = 0.0
    decay_first: bool = False
    batch_size: int | None = None


@dataclass(frozen=True)
class Preset(FromSpec):
    """Training by the library's own loop, as `censnet train` does it.

    Args:
        preset: its name.
        changes: settings that differ from the preset, such as {"model.layers": "NN"}.
        encoder: "censnet", or a baseline that replaces it with all else the same: "gcn", "appnp", "gat".
        edge_features: whether edges have their features; otherwise all edges have the same.
        node_features: whether nodes have their features; otherwise those of a table of edges alone.
        ensemble: number of networks whose predictions are averaged.
    """

    preset: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    encoder: Literal["censnet", "gcn", "appnp", "gat"] = "censnet"
    edge_features: bool = True
    node_features: bool = True
    ensemble: int = 1


@dataclass(frozen=True)
class External(FromSpec):
    """Training by a program with an environment of its own, whose `command` adds the records."""

    command: str


@dataclass(frozen=True)
class Pipeline(FromSpec):
    """Training by `censnet.train` on the tables of a cell, as a user calls it.

    Args:
        train: the preset.
        changes: settings that differ from the preset.
        edge_columns: whether edges have their columns.
        edge_stream: whether edges are updated; otherwise every edge layer of the preset is a node layer.
        time: whether the times of edges are given (`--time`), in cells that are split by them.
    """

    train: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    edge_columns: bool = True
    edge_stream: bool = True
    time: bool = True

    def changes_for(self, section: str) -> dict[str, Any]:
        """The changes of the settings of a section of the preset."""
        if self.edge_stream:
            return dict(self.changes)
        layers = make_settings(self.train, section, self.changes).model.layers
        return {**self.changes, "model.layers": layers.replace("E", "N")}


@dataclass(frozen=True)
class Trees(FromSpec):
    """Boosted trees on hand-made features, by `censnet.comparison`.

    Args:
        trees: "raw": columns of the row and of its ends; "graph": also counts, neighbors, triads and known labels.
        columns: whether columns of edges are used.
        gaps: whether time gaps are features.
        ensemble: number of models that are averaged.
    """

    trees: Literal["raw", "graph"]
    columns: bool = True
    gaps: bool = False
    ensemble: int = 3


@dataclass(frozen=True)
class EdgePeer(FromSpec):
    """A network of PyTorch Geometric whose layers read edge features, by `baselines.edge_peers`.

    Args:
        convolution: "gine" or "transformer".
        hidden: channels.
        layers: number of layers.
        dropout: rate.
        learning_rates: of Adam. The best on the validation set is selected, separately for each seed.
        weight_decay: of Adam.
        epochs: at most, of one step each.
        patience: epochs without a better validation score.
    """

    convolution: Literal["gine", "transformer"]
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.1
    learning_rates: tuple[float, ...] = (0.01, 0.003, 0.001)
    weight_decay: float = 1e-4
    epochs: int = 300
    patience: int = 50


@dataclass(frozen=True)
class Column(FromSpec):
    """Answers of a simpler model that the data have as a column, such as DC power flow.

    Args:
        answers: name of the column.
    """

    answers: str


How = TypeVar("How", Recipe, Preset, External, Pipeline, Trees, EdgePeer, Column)
KINDS = {
    "preset": Preset,
    "command": External,
    "train": Pipeline,
    "trees": Trees,
    "convolution": EdgePeer,
    "answers": Column,
}  # required field of a recipe -> its class, which otherwise is `Recipe`


@dataclass(frozen=True)
class Plan(Generic[How]):
    """One column of a table: a method, its recipe, and its replicates.

    Args:
        table, method: their names, as in the paths of records.
        recipe: of its training.
        varies: "split": a seed has its own split and initial weights; "initialization": all have the split of seed 0.
        runs: number of seeds of the table.
        first: the first seed.

    Example:
        >>> plan = Plan("table1", "gcn", Recipe("gcn", {"hidden": 32}))
        >>> Plan.from_json(plan.to_json()) == plan
        True
    """

    table: str
    method: str
    recipe: How
    varies: Varies = "split"
    runs: int = 20
    first: int = 0

    def seeds(self, count: int | None = None, first: int | None = None) -> range:
        """The seeds of the table, or a number of them from another first one."""
        start = self.first if first is None else first
        return range(start, start + (count or self.runs))

    def split_seed(self, seed: int, cell: str = "") -> int:
        """The seed of the split that a replicate is trained on; 0 where all seeds of a cell share one split."""
        shared = cell in TABLES[self.table] and TABLES[self.table][cell].one_split
        return seed if self.varies == "split" and not shared else 0

    def settings(self, cell: str = "") -> dict[str, Any]:
        """Settings that all records of a file must share, as read from JSON; of a preset, its resolved settings.

        Args:
            cell: its name, in tables whose cells differ in the section of the preset.
        """
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self.recipe) | {"varies": self.varies}))
        if isinstance(self.recipe, Preset):
            settings["resolved"] = _resolved(self.recipe.preset, SECTIONS[self.table], self.recipe.changes)
        if isinstance(self.recipe, Pipeline):
            about = find_cell(self.table, cell)
            section = section_of(parse_targets(list(about.targets))[0])
            changes = self.recipe.changes_for(section)
            settings["resolved"] = _resolved(self.recipe.train, section, changes)
            if about.split == "stream" and self.recipe.time:
                settings["resolved_causal"] = of_causal(self.recipe.train)
            if section == "node" and has_high_label_recipe(self.recipe.train):
                many = {**changes, "training.recipe": "high_label"}
                settings["resolved_high_label"] = _resolved(self.recipe.train, section, many)
        return settings

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Plan[Any]:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        recipe = fields.pop("recipe")
        if "learning_rates" in recipe:
            recipe["learning_rates"] = tuple(recipe["learning_rates"])
        kind = next((kind for name, kind in KINDS.items() if name in recipe), Recipe)
        return Plan(recipe=kind(**recipe), **fields)


def _resolved(preset: str, section: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    made = make_settings(preset, section, changes)
    return made.model_dump(mode="json", exclude_defaults=True, exclude={"preset", "seed"})
