"""The order of the packages: imports go to the left only, at every depth, and no two packages import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
ORDER = (
    ("text", "errors", "console", "arguments", "isolated", "levels", "files", "option_names", "markup"),
    ("ops",),
    ("nn", "data"),
    ("tasks",),
    ("settings",),
    ("training",),
    ("selection",),
    ("explanation",),
    ("runs",),
    ("inspection",),
    ("pipeline",),
    ("comparison",),
    ("report",),
    ("serving",),
    ("engines",),
    ("estimators", "pyg"),
    ("censnet_experiments",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, group in enumerate(ORDER) for name in group}
FILES = sorted(SOURCE.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def module_of(path: Path) -> tuple[str, ...]:
    """("censnet", "ops", "graph"); a package's `__init__` is the package with `__init__` as its last name."""
    return path.relative_to(SOURCE).with_suffix("").parts


def imports(tree: ast.Module, module: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Each module of ours that a source imports, wherever in it the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = module[: len(module) - node.level] if node.level else ()
            origin = start + tuple(node.module.split(".") if node.module else ())
            names = [(*origin, alias.name) for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] in ("censnet", "censnet_experiments"):
                yield resolve(name)


def resolve(name: tuple[str, ...]) -> tuple[str, ...]:
    """The module that a dotted name is of: without the class or function at its end."""
    while len(name) > 1 and not (SOURCE.joinpath(*name).is_dir() or SOURCE.joinpath(*name).with_suffix(".py").exists()):
        name = name[:-1]
    return name


def part_of(module: tuple[str, ...]) -> str:
    """The name in `ORDER` that a module belongs to; "" is censnet itself."""
    if module[0] != "censnet":
        return module[0]
    return module[1] if len(module) > 1 else ""


@cache
def imports_of(path: Path) -> tuple[tuple[str, ...], ...]:
    return tuple(imports(tree_of(path), module_of(path)))


def breaches(imported: Iterable[tuple[str, ...]], module: tuple[str, ...]) -> set[str]:
    """The parts that a module may not import and does."""
    mine = part_of(module)
    if mine == "__init__":
        return set()
    found = {part_of(name) for name in imported} - {mine}
    return {part for part in found if RANK.get(part, len(ORDER)) >= RANK[mine] and not _is_sibling(part, mine)}


def _is_sibling(part: str, mine: str) -> bool:
    """Whether both are modules of the first group, which has an order of its own: no cycles, see below."""
    return part in ORDER[0] and mine in ORDER[0]


def units(depth: tuple[str, ...]) -> dict[str, set[str]]:
    """Of a package the modules and packages directly inside it -> those of its siblings that each imports."""
    graph: dict[str, set[str]] = {}
    for path in FILES:
        module = module_of(path)
        if module[: len(depth)] != depth or (module[-1] == "__init__" and len(module) == len(depth) + 1):
            continue
        mine = module[len(depth)]
        found = {name for name in imports_of(path) if name[: len(depth)] == depth}
        siblings = {name[len(depth)] for name in found if len(name) > len(depth)}
        graph.setdefault(mine, set()).update(siblings - {mine})
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Names that import each other in a circle, or nothing."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            found = visit(other, [*path, name])
            if found:
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := visit(name, []))), [])


def test_every_module_has_a_place_in_the_order() -> None:
    assert {part_of(module_of(path)) for path in FILES} - {"__init__"} <= RANK.keys()


def test_imports_go_to_the_left_only() -> None:
    found = {name_of(path): breaches(imports_of(path), module_of(path)) for path in FILES}
    assert {name: parts for name, parts in found.items() if parts} == {}


@pytest.mark.slow
def test_nothing_in_a_package_imports_in_a_circle() -> None:
    found = {package: cycle(units(package)) for package in sorted({module_of(path)[:-1] for path in FILES})}
    assert {".".join(package): circle for package, circle in found.items() if circle} == {}


def test_a_module_says_what_it_is() -> None:
    assert [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))] == [], "without a docstring"


def test_a_file_has_a_name_of_its_own() -> None:
    assert [name_of(path) for path in FILES if path.stem in {"utils", "helpers", "common", "base"}] == []


def test_only_cached_properties_reach_into_an_object() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        if name_of(path) != "censnet/ops/caching.py"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr == "__dict__"
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("from censnet.ops.graph import Graph", ("censnet", "nn", "layers"), set()),
        ("import censnet.ops", ("censnet", "nn", "layers"), set()),
        ("from censnet import nn", ("censnet", "ops", "graph"), {"nn"}),
        ("from censnet.nn.layers import NodeLayer", ("censnet", "data", "dataset"), {"nn"}),
        ("from ..data import tables", ("censnet", "nn", "layers"), {"data"}),
        ("from . import graph", ("censnet", "ops", "incidence"), set()),
        ("from censnet import Graph", ("censnet", "nn", "layers"), {""}),
        ("def late():\n    import censnet.training.trainer", ("censnet", "tasks", "metrics"), {"training"}),
        ("from censnet.runs import Run", ("censnet", "training", "trainer"), {"runs"}),
        ("from censnet.pipeline import train", ("censnet", "inspection", "cost"), {"pipeline"}),
        ("from censnet.cli.app import app", ("censnet_experiments", "table1"), {"cli"}),
        ("from censnet_experiments import records", ("censnet", "pipeline", "train"), {"censnet_experiments"}),
        ("from censnet_experiments import records", ("censnet", "cli", "experiments"), set()),
        ("from censnet.nn import CensNet", ("censnet", "__init__"), set()),
        ("from censnet.text import count", ("censnet", "errors"), set()),
        ("import torch", ("censnet", "ops", "graph"), set()),
    ],
)
def test_the_check_sees_what_is_imported(source: str, module: tuple[str, ...], expected: set[str]) -> None:
    assert breaches(imports(ast.parse(source), module), module) == expected


def test_the_check_sees_circles() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
