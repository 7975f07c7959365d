"""What is to be passed: the best rows of the paper's own tables, public baselines, and the best known since."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from censnet_experiments.cells import TABLES
from censnet_experiments.spec import load_specs

PAPER = {"nodes": "table1", "links": "table3"}  # whose best row is to be passed


@dataclass(frozen=True)
class Bar:
    """A number, whose it is, and whether it was published."""

    value: float
    by: str
    published: bool = True


@cache
def _published() -> dict[str, Any]:
    return tomllib.loads(resources.files("censnet_experiments").joinpath("published.toml").read_text("utf-8"))


def best_published(table: str, cell: str, metric: str) -> Bar:
    """The best known since the paper; where nothing was published, an aim that says whose it is."""
    found = _published()[table][cell]
    return Bar(found[metric], found["by"], found.get("published", True))


def paper_best(table: str, cell: str, metric: str) -> Bar:
    """The best row of the paper's own table; where it has none to speak of, a public baseline."""
    if table not in PAPER:
        found = _published()[table]["least"][cell]
        return Bar(found[metric], found["by"])
    shown = [spec for spec in load_specs(PAPER[table]).values() if spec.section == "table"]
    best = max(shown, key=lambda spec: spec.published[cell][metric][0])
    return Bar(best.published[cell][metric][0], best.title)


def sources(table: str) -> str:
    """Whose the best known since are, how their protocols differ, and what the paper's own table has."""
    return f"Since: {'; '.join(_since(table))}. {_published()[table]['protocol']}{_own_best(table)}"


def _own_best(table: str) -> str:
    """The best of the paper's own table, where it is not the bar."""
    if table != "molecules":
        return ""
    found = []
    for cell in ("tox21-80", "lipophilicity-80"):
        about = TABLES["table2"][cell]
        values = [spec.published[cell]["test"][0] for spec in load_specs("table2").values() if spec.section == "table"]
        found.append(f"{min(values) if about.lower else max(values):.2f} on {cell}")
    return f" The paper's own table has {' and '.join(found)}, at random."


def _since(table: str) -> Iterator[str]:
    said: dict[str, list[str]] = {}
    for cell in TABLES[table]:
        said.setdefault(_published()[table][cell]["by"], []).append(cell)
    for by, cells in said.items():
        yield f"{', '.join(cells)}: {by}"
