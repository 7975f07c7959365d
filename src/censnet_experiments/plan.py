"""How a method is trained, in plain dataclasses: a machine that only trains needs no reader of specs."""

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
}  # of tables by the library's loop

Varies = Literal["split", "initialization"]


@dataclass(frozen=True)
class Recipe:
    """What a spec says of training.

    Args:
        model: its name, among those of the table.
        options: what its constructor is given.
        learning_rates: of Adam. The one that does best on validation rows is taken, for each seed by itself.
        epochs: how long each is trained. In Tables 1 and 2 the epoch that does best on validation rows is taken.
        patience: in Table 1, after how many epochs without a better one the rest is left; None is never.
        weight_decay: of the weights, added to the gradient.
        decay_first: whether it is for the first layer alone, as in the code of GCN.
        batch_size: graphs in a step, where there are many; on one graph, the nodes of a part, as in Algorithm 2 of the
            paper. None is all of them.
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
        changes: settings that differ from it, such as {"model.layers": "NN"}.
        encoder: "censnet", or what stands in its place with all else the same: "gcn", "appnp", "gat".
        edge_features: whether edges have their features; otherwise all edges are alike.
        node_features: whether nodes have theirs; otherwise there is a table of edges alone.
        ensemble: networks whose answers are averaged.
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
    """Training by a program that has an environment of its own.

    Args:
        command: what adds its records.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    command: str


How = TypeVar("How", Recipe, Preset, External)


@dataclass(frozen=True)
class Plan(Generic[How]):
    """One column of a table: a method, its recipe, and what its replicates vary.

    Args:
        table, method: their names, as in the paths of records.
        recipe: how it is trained.
        varies: "split" draws rows and weights anew for each seed; "initialization" keeps the split of seed 0.
        runs: how many seeds the table asks for.
        first: the first of them.

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
        """Those that the table asks for, or so many from another first one."""
        start = self.first if first is None else first
        return range(start, start + (count or self.runs))

    def split_seed(self, seed: int) -> int:
        """The seed of the split that a replicate is trained on."""
        return seed if self.varies == "split" else 0

    def settings(self) -> dict[str, Any]:
        """What has to be the same in every record of a file, as JSON gives it back; of a preset, what it says today."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self.recipe) | {"varies": self.varies}))
        if isinstance(self.recipe, Preset):
            made = make_settings(self.recipe.preset, SECTIONS[self.table], self.recipe.changes)
            settings["resolved"] = made.model_dump(mode="json", exclude_defaults=True, exclude={"preset", "seed"})
        return settings

    def to_json(self) -> str:
        """As text, for a file that travels."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Plan[Any]:
        """What `to_json` wrote."""
        fields = json.loads(text)
        recipe = fields.pop("recipe")
        for kind, name in ((Preset, "preset"), (External, "command")):
            if name in recipe:
                return Plan(recipe=kind(**recipe), **fields)
        return Plan(recipe=Recipe(**recipe | {"learning_rates": tuple(recipe["learning_rates"])}), **fields)
