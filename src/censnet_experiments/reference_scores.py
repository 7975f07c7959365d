"""Reference scores: the best of the paper's tables, public baselines, and the best published since."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from censnet_experiments.cells import TABLES
from censnet_experiments.spec import load_specs

PAPER = {"nodes": "table1", "links": "table3"}  # our table -> the paper's table with its reference scores


@dataclass(frozen=True)
class ReferenceScore:
    """A score, its source, and whether it was published."""

    value: float
    by: str
    published: bool = True


@dataclass(frozen=True)
class EdgeReference:
    """Published scores of one method in the table `edges`: metric -> score, and how its protocol differs."""

    by: str
    scores: dict[str, float]
    note: str


@cache
def _published() -> dict[str, Any]:
    return tomllib.loads(resources.files("censnet_experiments").joinpath("published.toml").read_text("utf-8"))


def best_published(table: str, cell: str, metric: str) -> ReferenceScore:
    """The best published since the paper; where nothing was published, a goal with its origin."""
    found = _published()[table][cell]
    return ReferenceScore(found[metric], found["by"], found.get("published", True))


def paper_best(table: str, cell: str, metric: str) -> ReferenceScore:
    """The best of the paper's own table; where it has none, a public baseline."""
    if table not in PAPER:
        found = _published()[table]["least"][cell]
        return ReferenceScore(found[metric], found["by"])
    shown = [spec for spec in load_specs(PAPER[table]).values() if spec.section == "table"]
    best = max(shown, key=lambda spec: spec.published[cell][metric][0])
    return ReferenceScore(best.published[cell][metric][0], best.title)


def edge_references(cell: str) -> list[EdgeReference]:
    """Published scores of a cell of the table `edges`."""
    return [EdgeReference(**one) for one in _published()["edges"].get(cell, [])]


def sources(table: str) -> str:
    """Sources of the best published scores, differences in protocol, and the scores of the paper's own table."""
    return f"Best published: {'; '.join(_sources(table))}. {_published()[table]['protocol']}{_own_best(table)}"


def _own_best(table: str) -> str:
    """The best of the paper's own table, where it is not the reference."""
    if table != "molecules":
        return ""
    found = []
    for cell in ("tox21-80", "lipophilicity-80"):
        about = TABLES["table2"][cell]
        values = [spec.published[cell]["test"][0] for spec in load_specs("table2").values() if spec.section == "table"]
        found.append(f"{min(values) if about.lower else max(values):.2f} on {cell}")
    return f" The paper's own table has {' and '.join(found)}, on random splits."


def _sources(table: str) -> Iterator[str]:
    by_source: dict[str, list[str]] = {}
    for cell in TABLES[table]:
        by_source.setdefault(_published()[table][cell]["by"], []).append(cell)
    for by, cells in by_source.items():
        yield f"{', '.join(cells)}: {by}"
