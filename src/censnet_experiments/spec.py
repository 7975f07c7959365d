"""Specs: for each method of a table its recipe, its doubts and what was published, in one TOML file.

A file is one method over all cells of its table. Its `variants` are further methods that differ in a few settings: they
take everything else from it, the published numbers too.
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

from censnet.settings.presets import make_settings
from censnet_experiments.cells import TABLES, find_cell
from censnet_experiments.models import MODELS
from censnet_experiments.plan import SECTIONS, External, Plan, Preset, Recipe, Varies

Number = tuple[float, Annotated[float, Field(ge=0)]]
TAGS = ("Recipe", "Preset", "External")  # which stand in no message
KINDS = {"preset": Preset, "command": External}  # what a recipe must say -> how it is trained


def _kind(recipe: Any) -> str:
    """Which way of training a recipe is of, by the name of the class."""
    if not isinstance(recipe, Mapping):
        return type(recipe).__name__
    return next((kind.__name__ for name, kind in KINDS.items() if name in recipe), Recipe.__name__)


HowTrained = Annotated[
    Annotated[Recipe, Tag("Recipe")] | Annotated[Preset, Tag("Preset")] | Annotated[External, Tag("External")],
    Discriminator(_kind),
]


class Spec(BaseModel):
    """One method of a table.

    Args:
        table, method: their names, as in the paths of records.
        title: as the table's head shows it.
        section: the table of the page. "table" is the paper's table; "additional" are variants of ours, "kernels" those
            that the paper names without numbers, "baselines" and "depth" have tables of their own. "fresh" repeats a
            method on splits that were not used while its recipe was developed.
        runs: how many seeds the table asks for.
        first: the first of them.
        varies: what a seed draws anew.
        source: where the published numbers are from.
        caveats: what the source does not say, and what was done about it.
        reason: why it falls short of what was published where it does, as far as one can tell.
        recipe: how it is trained.
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
    source: str
    caveats: list[str] = Field(default_factory=list)
    reason: str = ""
    recipe: HowTrained
    published: dict[str, dict[str, Number]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_are_known(self) -> Spec:
        for cell, numbers in self.published.items():
            unknown = set(numbers) - set(find_cell(self.table, cell).metrics)
            if unknown:
                raise ValueError(f"{cell} has no metric {unknown.pop()!r}")
        if isinstance(self.recipe, External):
            return self
        if isinstance(self.recipe, Preset):
            make_settings(self.recipe.preset, SECTIONS[self.table], self.recipe.changes)
            return self
        if self.recipe.model not in MODELS[self.table]:
            raise ValueError(
                f"there is no model {self.recipe.model!r}, expected one of {', '.join(MODELS[self.table])}"
            )
        known = known_options(self.table, self.recipe.model)
        for name in self.recipe.options:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(sorted(known))}"
                raise ValueError(f"unknown setting recipe.options.{name}: {hint}")
        return self

    def plan(self) -> Plan[Any]:
        """What a machine that trains has to know."""
        return Plan(self.table, self.method, self.recipe, self.varies, self.runs, self.first)


def known_options(table: str, model: str) -> set[str]:
    """The names that a model's options can have."""
    make = MODELS[table][model]
    parameters = dict(inspect.signature(make).parameters)
    if hasattr(make, "options_of"):  # what it hands its further options to
        parameters.pop("options")
        parameters |= inspect.signature(make.options_of).parameters
    return set(parameters) - {"graph", "out_width", "node_width", "edge_width", "members"}


def read_spec(text: str, file: str = "the spec") -> Iterator[Spec]:
    """The method of a file, and then its variants.

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
        raise ValueError(f"{file}: {problem}") from None
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
    """Every method of a table by its name, in the order of the paper's columns and then ours."""
    if table not in TABLES:
        raise ValueError(f"there is no table {table!r}, expected one of {', '.join(TABLES)}")
    folder = resources.files("censnet_experiments").joinpath("specs", table)
    specs: dict[str, Spec] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        for spec in read_spec(file.read_text("utf-8"), f"specs/{table}/{file.name}"):
            if spec.table != table or spec.method in specs:
                raise ValueError(
                    f"specs/{table}/{file.name}: {spec.table} {spec.method} is in the wrong place or twice"
                )
            specs[spec.method] = spec
    return specs


def find_spec(table: str, method: str) -> Spec:
    """One method of a table."""
    specs = load_specs(table)
    if method not in specs:
        near = get_close_matches(method, specs, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(specs)}"
        raise ValueError(f"{table} has no method {method!r}: {hint}")
    return specs[method]


def _validate(fields: Mapping[str, Any], file: str) -> Spec:
    try:
        return Spec.model_validate(fields)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in TAGS)
        message = f"unknown setting {where}" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        message = f"unknown setting {where}" if first["type"] == "extra_forbidden" else message
        raise ValueError(f"{file}: {message.removeprefix('Value error, ')} ({where or 'the whole'})") from None


def _merge(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with some of them changed, tables by what is in them."""
    merged = dict(fields)
    for name, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merge(merged[name], value) if both else value
    return merged
