"""Plans: the training of a method as dataclasses that can be written to JSON, without the text of its spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from censnet.settings.presets import make_settings

SECTIONS = {
    "nodes": "node",
    "molecules": "graph",
    "links": "link",
}  # table -> section of the preset, of the tables trained by the library's loop

Varies = Literal["split", "initialization"]


@dataclass(frozen=True)
class Recipe:
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

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # an unknown name in a spec is an error

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    learning_rates: tuple[float, ...] = (0.01, 0.005, 0.001, 0.0005)
    epochs: int = 1000
    patience: int | None = None
    weight_decay: float = 0.0
    decay_first: bool = False
    batch_size: int | None = None


@dataclass(frozen=True)
class Preset:
    """Training by the library's own loop, as `censnet train` does it.

    Args:
        preset: its name.
        changes: settings that differ from the preset, such as {"model.layers": "NN"}.
        encoder: "censnet", or a baseline that replaces it with all else the same: "gcn", "appnp", "gat".
        edge_features: whether edges have their features; otherwise all edges have the same.
        node_features: whether nodes have their features; otherwise those of a table of edges alone.
        ensemble: number of networks whose predictions are averaged.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    preset: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    encoder: Literal["censnet", "gcn", "appnp", "gat"] = "censnet"
    edge_features: bool = True
    node_features: bool = True
    ensemble: int = 1


@dataclass(frozen=True)
class External:
    """Training by a program with an environment of its own.

    Args:
        command: adds its records.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    command: str


How = TypeVar("How", Recipe, Preset, External)


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

    def split_seed(self, seed: int) -> int:
        """The seed of the split that a replicate is trained on."""
        return seed if self.varies == "split" else 0

    def settings(self) -> dict[str, Any]:
        """Settings that all records of a file must share, as read from JSON; of a preset, its resolved settings."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self.recipe) | {"varies": self.varies}))
        if isinstance(self.recipe, Preset):
            made = make_settings(self.recipe.preset, SECTIONS[self.table], self.recipe.changes)
            settings["resolved"] = made.model_dump(mode="json", exclude_defaults=True, exclude={"preset", "seed"})
        return settings

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Plan[Any]:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        recipe = fields.pop("recipe")
        for kind, name in ((Preset, "preset"), (External, "command")):
            if name in recipe:
                return Plan(recipe=kind(**recipe), **fields)
        return Plan(recipe=Recipe(**recipe | {"learning_rates": tuple(recipe["learning_rates"])}), **fields)
