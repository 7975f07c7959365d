"""networkx: all four classes, names of any type, attributes of any form."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from hostile.accepted import sound
from hostile.place import Place, Refusal

CLASSES = {"graph": nx.Graph, "digraph": nx.DiGraph, "multigraph": nx.MultiGraph, "multidigraph": nx.MultiDiGraph}
N = 12
NAMES: dict[str, list[Any]] = {
    "int": list(range(N)), "negative": [-k - 1 for k in range(N)], "text": [f"n{k}" for k in range(N)],
    "float": [k + 0.5 for k in range(N)],
    "whole-floats": [float(k) for k in range(N)], "tuple": [(k, k + 1) for k in range(N)],
    "mixed": [0, "0", 1, "1", 2, "2", "a", "b", "c", "d", "e", "f"],
    "int-and-float-text": [1, "1.0", 2, "2.0", "01", "02", "3", 4, 5, 6, 7, 8],
    "frozenset": [frozenset({k}) for k in range(N)],
    "bytes": [b"n%d" % k for k in range(N)], "dates": [dt.date(2024, 1, k + 1) for k in range(N)],
    "uuid": [uuid.UUID(int=k) for k in range(N)],
    "paths": [PurePosixPath(f"n{k}") for k in range(N)], "decimals": [decimal.Decimal(k) / 4 for k in range(N)],
    "truths": [True, False, "True", "False", 2, 3, 4, 5, 6, 7, 8, 9],
    "numpy": [np.int64(k) for k in range(N)], "huge": [2**70 + k for k in range(N)],
    "padded": [f"{k:03d}" if k % 2 else str(k) for k in range(N)],
    "spaces": ["x" + " " * k for k in range(N)], "empty-text": ["", *(f"n{k}" for k in range(N - 1))],
    "missing-words": ["NA", "nan", "None", "null", *(f"n{k}" for k in range(N - 4))],
    "line-breaks": ["a\nb", "a\rb", "a\tb", *(f"n{k}" for k in range(N - 3))],
    "controls": ["\x1b[31m", "\x07", "\x00", *(f"n{k}" for k in range(N - 3))],
    "unicode": ["caf\u00e9", "cafe\u0301", "\U0001f469", *(f"n{k}" for k in range(N - 3))],
    "objects": [object() for _ in range(N)],
    "types": [int, str, float, list, dict, set, bool, bytes, tuple, object, type, complex],
    "nan": [float("nan"), *range(N - 1)], "none-like": [pd.NA, *range(N - 1)],
    "complex": [complex(k, 1) for k in range(N)],
    "markup": ["[/x]", "[red]", "{0}", "%s", *(f"n{k}" for k in range(N - 4))],
    "long": [f"{'x' * 5000}{k}" for k in range(N)],
}  # fmt: skip
ATTRIBUTES: dict[str, Callable[[int], Any]] = {
    "int": lambda k: k, "float": lambda k: k / 3, "text": lambda k: "abc"[k % 3], "truth": lambda k: bool(k % 2),
    "none": lambda k: None, "some-none": lambda k: None if k % 3 else 1.0,
    "list": lambda k: [1.0, float(k)], "ragged": lambda k: [1.0] * (k % 3), "array": lambda k: np.array([1.0, k]),
    "dict": lambda k: {"a": k}, "set": lambda k: {k}, "object": lambda k: object(),
    "mixed": lambda k: k if k % 2 else "a", "date": lambda k: dt.date(2024, 1, 1 + k % 28),
    "nan": lambda k: float("nan"), "infinite": lambda k: float("inf") if k == 3 else 1.0,
    "decimal": decimal.Decimal, "huge": lambda k: 10**30 + k, "complex": lambda k: complex(k, 1),
    "bytes": lambda k: b"x", "function": lambda k: len, "graph": lambda k: nx.path_graph(2),
    "numpy": lambda k: np.float32(k),
}  # fmt: skip
KEYS: dict[str, Any] = {
    "id": "id", "source": "source", "target": "target", "key": "key", "graph": "graph", "split": "split", "number": 7,
    "none": None, "tuple": ("a", "b"),
    "empty": "", "space": " ", "line-break": "a\nb", "escape": "\x1b[31m", "markup": "[/x]", "twice": "w",
    "label": "label", "error": "error",
}  # fmt: skip


def build(kind: str, names: list[Any] | None = None) -> Any:
    """A ring with chords over these names, with a label and an attribute for each."""
    names = NAMES["int"] if names is None else names
    graph = CLASSES[kind]()
    for number, name in enumerate(names):
        graph.add_node(name, label="ab"[number % 2], age=number)
    for number, name in enumerate(names):
        graph.add_edge(name, names[(number + 1) % len(names)], amount=number / 2)
        graph.add_edge(name, names[(number + 3) % len(names)], amount=number / 3)
    return graph


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Names in each class, attributes on nodes and edges, odd keys, odd shapes."""
    for kind in CLASSES:
        for name in NAMES:
            yield f"names-{name}-{kind}", partial(_names, name, kind)
    for name in ATTRIBUTES:
        for side in ("nodes", "edges"):
            yield f"attribute-{name}-{side}", partial(_attribute, name, side, 1)
            yield f"some-{name}-{side}", partial(_attribute, name, side, 3)
        yield f"target-{name}", partial(_target, name)
    for name in KEYS:
        for side in ("nodes", "edges"):
            yield f"key-{name}-{side}", partial(_key, name, side)
    for kind in CLASSES:
        for shape in SHAPES:
            yield f"shape-{shape}-{kind}", partial(_shape, shape, kind)


def _read(place: Place, graph: Any, **options: Any) -> Any:
    found = place.load(graph, **options)
    assert not isinstance(found, Refusal), f"a valid graph was refused: {found}"
    sound(found)
    names, pairs = list(graph), list(graph.edges())
    assert len(found.rows("node")) == len(names), f"{len(found.rows('node'))} rows for {len(names)} nodes"
    assert len(found.rows("edge")) == len(pairs), f"{len(found.rows('edge'))} rows for {len(pairs)} edges"
    number = dict(zip(map(id, names), found.rows("node").tolist(), strict=True))
    good = [row for row in found.rows("node").tolist() if row >= 0]
    assert len(set(good)) == len(good), "two nodes became one"
    place_of = {name: number[id(name)] for name in names}
    for line, ((one, other), row) in enumerate(zip(pairs, found.rows("edge").tolist(), strict=True)):
        pair = {place_of[one], place_of[other]}
        if row >= 0 and -1 not in pair:
            assert set(found.graph.ends[:, row].tolist()) == pair, f"edge {line + 1} joins other nodes"
    return found


def _names(name: str, kind: str, place: Place) -> None:
    """Each node once, in order, under its name."""
    graph = build(kind, NAMES[name])
    found = _read(place, graph)
    back = found.results("node", pd.DataFrame({"value_": range(found.count("node"))}), "ids")["id"].tolist()
    names = list(graph)
    shown = [str(each) for each in back]
    fine = shown == [str(each) for each in names] or shown == [repr(each) for each in names]
    assert fine or name in ("nan", "none-like"), f"names came back as {shown[:4]}"
    usable = sum(row >= 0 for row in found.rows("node").tolist())
    assert usable == len(names) or name in ("nan", "none-like", "empty-text"), f"{usable} of {len(names)} nodes"


def _attribute(name: str, side: str, every: int, place: Place) -> None:
    graph = build("graph")
    value = ATTRIBUTES[name]
    things = list(graph.nodes.values()) if side == "nodes" else [data for _, _, data in graph.edges(data=True)]
    for number, data in enumerate(things):
        if number % every == 0:
            data["odd"] = value(number)
    found = _read(place, graph)
    schema = found.schema.table(side)
    assert "odd" in {one.name for one in [*schema.columns, *schema.left_out]}, "the attribute is not accounted for"


def _target(name: str, place: Place) -> None:
    graph = build("graph", [f"n{k}" for k in range(30)])
    for number, data in enumerate(graph.nodes.values()):
        data["odd"] = ATTRIBUTES[name](number)
    made = place.prepare("node:odd", graph)
    if isinstance(made, Refusal):
        assert "odd" in made, f"the target is not named: {made}"
        assert name not in ("float", "text", "truth"), f"refused: {made}"


def _key(name: str, side: str, place: Place) -> None:
    """An attribute of any name is a column of its own, or the line names it; no key is taken for it."""
    graph = build("graph")
    things = list(graph.nodes.values()) if side == "nodes" else [data for _, _, data in graph.edges(data=True)]
    for number, data in enumerate(things):
        data[KEYS[name]] = float(number % 5)
    found = place.load(graph)
    if isinstance(found, Refusal):
        assert not isinstance(KEYS[name], str) or name in ("empty", "space", "split"), f"refused: {found}"
        return
    _read(place, graph)


SHAPES = (
    "empty",
    "no-edges",
    "one-node",
    "one-loop",
    "loops",
    "two-parts",
    "star",
    "complete",
    "bipartite",
    "frozen",
    "view",
    "subgraph-view",
    "int-names-out-of-order",
)


def _shape(shape: str, kind: str, place: Place) -> None:
    graph = CLASSES[kind]()
    if shape == "no-edges":
        graph.add_nodes_from(range(5))
    elif shape == "one-node":
        graph.add_node("a")
    elif shape == "one-loop":
        graph.add_edge("a", "a")
    elif shape == "loops":
        graph = build(kind)
        graph.add_edges_from([(k, k) for k in range(5)])
    elif shape == "two-parts":
        graph.add_edges_from([("a", "b"), ("c", "d")])
    elif shape == "star":
        graph.add_edges_from([("hub", k) for k in range(200)])
    elif shape == "complete":
        graph.add_edges_from([(i, j) for i in range(20) for j in range(20) if i != j])
    elif shape == "bipartite":
        graph.add_edges_from([(f"u{i}", f"v{j}") for i in range(5) for j in range(5)])
    elif shape == "frozen":
        graph = nx.freeze(build(kind))
    elif shape == "view":
        graph = build(kind).reverse(copy=False) if "di" in kind else build(kind).copy(as_view=True)
    elif shape == "subgraph-view":
        graph = build(kind).subgraph(range(6))
    elif shape == "int-names-out-of-order":
        graph = build(kind, list(range(N))[::-1])
    if len(graph) == 0 or graph.number_of_edges() == 0:
        found = place.load(graph)
        if not isinstance(found, Refusal):
            sound(found)
        return
    _read(place, graph)
