"""Specs: the recipe, the caveats and the published scores of each method of a table, in one TOML file.

A file is one method over all cells of its table. Its `variants` are further methods that differ in a few settings and
inherit everything else, the published scores too.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from censnet.errors import ArgumentError
from censnet.settings.presets import make_settings
from censnet_experiments.cells import TABLES, find_cell
from censnet_experiments.models import MODELS
from censnet_experiments.plan import (
    KINDS,
    SECTIONS,
    Column,
    EdgePeer,
    External,
    Pipeline,
    Plan,
    Preset,
    Recipe,
    Trees,
    Varies,
)

Number = tuple[float, Annotated[float, Field(ge=0)]]
TAGS = ("Recipe", *(kind.__name__ for kind in KINDS.values()))  # left out of messages


def _kind(recipe: Any) -> str:
    """The name of the class of a recipe."""
    if not isinstance(recipe, Mapping):
        return type(recipe).__name__
    return next((kind.__name__ for name, kind in KINDS.items() if name in recipe), Recipe.__name__)


AnyRecipe = Annotated[
    Annotated[Recipe, Tag("Recipe")]
    | Annotated[Preset, Tag("Preset")]
    | Annotated[External, Tag("External")]
    | Annotated[Pipeline, Tag("Pipeline")]
    | Annotated[Trees, Tag("Trees")]
    | Annotated[EdgePeer, Tag("EdgePeer")]
    | Annotated[Column, Tag("Column")],
    Discriminator(_kind),
]


class Spec(BaseModel):
    """One method of a table.

    Args:
        table, method: names, as in the paths of records.
        title: in the head of the table.
        section: the table of the page. "table" is the paper's table; "additional" are variants of ours, "kernels" those
            that the paper names without numbers, "baselines" and "depth" have tables of their own. "fresh" repeats a
            method on splits that were not used while its recipe was developed.
        runs: number of seeds of the table.
        first: the first seed.
        varies: see `Plan`.
        cells: those that the method is for, by name or by the data; all if there are none.
        source: of the published scores.
        caveats: details that the source does not report, and the choices made here.
        reason: likely reason where it does not reach the published scores.
        recipe: of its training.
        published: cell -> metric -> mean and spread, in the table's unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    method: str
    title: str
    section: str = Field("table", pattern="^(table|additional|kernels|baselines|depth|fresh)$")
    runs: int = Field(ge=1)
    first: int = Field(0, ge=0)
    varies: Varies = "split"
    cells: list[str] = Field(default_factory=list)
    source: str
    caveats: list[str] = Field(default_factory=list)
    reason: str = ""
    recipe: AnyRecipe
    published: dict[str, dict[str, Number]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_are_known(self) -> Spec:
        for cell, numbers in self.published.items():
            unknown = set(numbers) - set(find_cell(self.table, cell).metrics)
            if unknown:
                raise ArgumentError(f"{cell} has no metric {unknown.pop()!r}")
        for name in self.cells:
            if not any(name in (cell, about.data) for cell, about in TABLES[self.table].items()):
                raise ArgumentError(f"{self.table} has no cell and no data {name!r}")
        if isinstance(self.recipe, External | Trees | EdgePeer | Column):
            return self
        if isinstance(self.recipe, Pipeline):
            for section in ("edge", "node"):
                make_settings(self.recipe.train, section, self.recipe.changes_for(section))
            return self
        if isinstance(self.recipe, Preset):
            make_settings(self.recipe.preset, SECTIONS[self.table], self.recipe.changes)
            return self
        if self.recipe.model not in MODELS[self.table]:
            raise ArgumentError(
                f"there is no model {self.recipe.model!r}, expected one of {', '.join(MODELS[self.table])}"
            )
        known = known_options(self.table, self.recipe.model)
        for name in self.recipe.options:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(sorted(known))}"
                raise ArgumentError(f"unknown setting recipe.options.{name}: {hint}")
        return self

    def is_for(self, cell: str) -> bool:
        """Whether the method is trained on a cell."""
        return not self.cells or cell in self.cells or find_cell(self.table, cell).data in self.cells

    def plan(self) -> Plan[Any]:
        """The plan of the training."""
        return Plan(self.table, self.method, self.recipe, self.varies, self.runs, self.first)


def known_options(table: str, model: str) -> set[str]:
    """The names of the options of a model."""
    make = MODELS[table][model]
    parameters = dict(inspect.signature(make).parameters)
    if hasattr(make, "options_of"):  # receives its further options
        parameters.pop("options")
        parameters |= inspect.signature(make.options_of).parameters
    return set(parameters) - {"graph", "out_width", "node_width", "edge_width", "members"}


def read_spec(text: str, file: str = "the spec") -> Iterator[Spec]:
    """Read the method of a file, and then its variants.

    Example:
        >>> text = '''
        ... table = "table3"
        ... method = "vgae"
        ... title = "VGAE"
        ... runs = 10
        ... source = "Table 3"
        ... recipe = { model = "vgae", epochs = 400, learning_rates = [0.01] }
        ... published = { cora = { auc = [91.4, 0.01], ap = [92.6, 0.01] } }
        ... [variants.wide]
        ... title = "VGAE, 64"
        ... recipe.options = { hidden = 64 }
        ... '''
        >>> [(spec.method, dict(spec.recipe.options)) for spec in read_spec(text)]
        [('vgae', {}), ('vgae-wide', {'hidden': 64})]
    """
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ArgumentError(f"{file}: {problem}") from None
    variants = fields.pop("variants", {})
    yield _validate(fields, file)
    for name, changes in variants.items():
        more = {
            "method": f"{fields['method']}-{name}",
            "caveats": fields.get("caveats", []) + changes.pop("caveats", []),
        }
        yield _validate(_merge(fields, changes) | more, f"{file}, variants.{name}")


@cache
def load_specs(table: str) -> dict[str, Spec]:
    """Read every method of a table by its name, in the order of the paper's columns and then ours."""
    if table not in TABLES:
        raise ArgumentError(f"there is no table {table!r}, expected one of {', '.join(TABLES)}")
    folder = resources.files("censnet_experiments").joinpath("specs", table)
    specs: dict[str, Spec] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        for spec in read_spec(file.read_text("utf-8"), f"specs/{table}/{file.name}"):
            if spec.table != table or spec.method in specs:
                raise ArgumentError(
                    f"specs/{table}/{file.name}: {spec.table} {spec.method} is in the wrong folder or twice"
                )
            specs[spec.method] = spec
    return specs


def find_spec(table: str, method: str) -> Spec:
    """Find one method of a table."""
    specs = load_specs(table)
    if method not in specs:
        near = get_close_matches(method, specs, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(specs)}"
        raise ArgumentError(f"{table} has no method {method!r}: {hint}")
    return specs[method]


def _validate(fields: Mapping[str, Any], file: str) -> Spec:
    try:
        return Spec.model_validate(fields)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in TAGS)
        message = f"unknown setting {where}" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        message = f"unknown setting {where}" if first["type"] == "extra_forbidden" else message
        raise ArgumentError(f"{file}: {message.removeprefix('Value error, ')} ({where or 'the whole'})") from None


def _merge(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into fields, nested tables by their entries."""
    merged = dict(fields)
    for name, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merge(merged[name], value) if both else value
    return merged
