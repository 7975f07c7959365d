"""The house stands: imports go up the list only, every file has found its name and says what it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "censnet"
FLOORS = (
    ("text",),
    ("console",),
    ("ops",),
    ("nn", "data"),
    ("tasks",),
    ("training",),
    ("experiments",),
    ("figures", "telling"),
    ("commands",),
    ("cli", "demo", "estimators"),
)  # neighbours: siblings
BELOW = {
    part: {lower for floor in FLOORS[:level] for lower in floor} for level, floor in enumerate(FLOORS) for part in floor
}
BELOW["pyg"] = {"ops", "nn"}

FILES = sorted(SOURCE.rglob("*.py"))
NAMES = [path.relative_to(SOURCE).as_posix() for path in FILES]


def imported_parts(source: str, module: tuple[str, ...]) -> set[str]:
    """The parts of censnet that a module's source imports from, wherever the import stands; "" is censnet itself."""
    found: list[tuple[str, ...]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = module[: len(module) - node.level] if node.level else ()
            origin = start + tuple((node.module or "").split(".") if node.module else ())
            found += [(*origin, alias.name) if origin == ("censnet",) else origin for alias in node.names]
    parts = {name[1] if len(name) > 1 else "" for name in found if name[:1] == ("censnet",)}
    return {part if part in BELOW else "" for part in parts}


def module_of(path: Path) -> tuple[str, ...]:
    """("censnet", "ops", "graph"), with "__init__" as a name of its own, so that `.` is what it stands in."""
    return ("censnet", *path.relative_to(SOURCE).with_suffix("").parts)


def breaches(source: str, module: tuple[str, ...]) -> set[str]:
    part = module[1]
    if part == "__init__":
        return set()
    return imported_parts(source, module) - {part} - BELOW[part]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_go_up_the_list_only(path: Path) -> None:
    module = module_of(path)
    assert module[1] == "__init__" or module[1] in BELOW, f"{module[1]} has no place in the house"
    assert breaches(path.read_text(), module) == set()


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "has no docstring"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_file_has_found_its_name(path: Path) -> None:
    assert path.stem not in {"utils", "helpers", "common", "base"}


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("from censnet.ops.graph import Graph", ("censnet", "nn", "layers"), set()),
        ("import censnet.ops", ("censnet", "nn", "layers"), set()),
        ("from censnet import nn", ("censnet", "ops", "graph"), {"nn"}),
        ("from censnet.nn.layers import NodeLayer", ("censnet", "data", "tables"), {"nn"}),
        ("from ..data import tables", ("censnet", "nn", "layers"), {"data"}),
        ("from .. import data", ("censnet", "nn", "__init__"), {"data"}),
        ("from . import graph", ("censnet", "ops", "incidence"), set()),
        ("from censnet import Graph", ("censnet", "nn", "layers"), {""}),
        ("def late():\n    import censnet.training.trainer", ("censnet", "tasks", "nodes"), {"training"}),
        ("from censnet.nn import NodeLayer", ("censnet", "pyg"), set()),
        ("from censnet.training import train", ("censnet", "pyg"), {"training"}),
        ("from censnet.cli.app import app", ("censnet", "experiments", "table1"), {"cli"}),
        ("from censnet.estimators import CensNetClassifier", ("censnet", "training", "run"), {"estimators"}),
        ("from censnet.nn import CensNet", ("censnet", "__init__"), set()),
        ("import torch", ("censnet", "ops", "graph"), set()),
    ],
)
def test_the_check_sees_what_is_imported(source: str, module: tuple[str, ...], expected: set[str]) -> None:
    assert breaches(source, module) == expected
