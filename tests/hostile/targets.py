"""What can be typed for a target: levels, kinds, quotes, commas, stars, and columns that are hard to name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hostile.place import Place, Refusal, says
from hostile.runs import IDS
from hostile.tables import world, write_all

FINE: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "node": ("node:label", [("node", "label")]), "number": ("node:score", [("node", "score")]),
    "edge": ("edge:fraud", [("edge", "fraud")]),
    "list": (["node:label"], [("node", "label")]),
    "tuple": (("node:label", "edge:fee"), [("node", "label"), ("edge", "fee")]),
    "two": ("edge:fraud,fee", [("edge", "fraud"), ("edge", "fee")]),
    "two-spaces": ("edge:fraud, fee", [("edge", "fraud"), ("edge", "fee")]),
    "forced-classes": ("edge:fraud=classes", [("edge", "fraud")]),
    "forced-number": ("edge:fraud=number", [("edge", "fraud")]),
    "forced-binary": ("node:label=binary", [("node", "label")]),
    "joint": (["node:label", "edge:fee"], [("node", "label"), ("edge", "fee")]), "link": ("link", []),
    "node-and-link": (["node:label", "link"], [("node", "label")]),
    "quoted": ('node:"label"', [("node", "label")]),
}  # fmt: skip
REFUSED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "empty": ("", ("target",)), "space": (" ", ("target",)), "colon": (":", ("target",)),
    "no-column": ("node:", ("target",)), "no-level": (":label", ("target",)), "bare": ("label", ("node:label",)),
    "capital": ("Node:label", ("node",)), "plural": ("nodes:label", ("node",)),
    "unknown-level": ("atomx:label", ("node",)), "unknown-column": ("node:lable", ("nodes.csv", "lable")),
    "case": ("node:Label", ("nodes.csv", "Label")),
    "other-table": ("edge:label", ("edges.csv", "label")), "no-table": ("graph:toxic", ("graph",)),
    "id": ("node:id", ("id",)), "source": ("edge:source", ("source",)),
    "twice": (["node:label", "node:label"], ("label",)),
    "twice-in-one": ("node:label,label", ("label",)), "link-twice": (["link", "link"], ("link",)),
    "link-column": ("link:x", ("link",)), "unknown-kind": ("node:label=banana", ("banana",)),
    "empty-kind": ("node:label=", ("label",)),
    "number-of-words": ("node:label=number", ("label",)), "comma-last": ("edge:fraud,", ("target",)),
    "comma-first": ("edge:,fraud", ("target",)), "two-commas": ("edge:fraud,,fee", ("target",)),
    "none": (None, ("target",)), "int": (3, ("target",)),
    "float": (1.5, ("target",)), "bytes": (b"node:label", ("target",)), "empty-list": ([], ("target",)),
    "list-of-int": ([3], ("target",)), "list-of-none": ([None], ("target",)), "nested": ([["node:label"]], ("target",)),
    "dict": ({"node": "label"}, ("target",)), "set": ({"node:label"}, ()), "true": (True, ("target",)),
    "object": (object(), ("target",)), "semicolon": ("node:label;edge:fee", ("label;edge",)),
    "newline": ("node:label\n", ()),
    "long": ("node:" + "x" * 10_000, ()), "many": (["node:label"] * 1000, ("label",)),
    "quote-open": ('node:"label', ()), "star-nothing": ("graph:*", ("graph",)), "equals-alone": ("=", ("target",)),
    "kind-of-link": ("link=number", ("link",)),
    "spaces": ("node: label ", ()), "space-before": (" node:label", ()),
    "unicode-colon": ("node\uff1alabel", ("target",)), "path": ("node:../label", ("label",)),
    "split": ("node:split", ("split",)),
}  # fmt: skip
COLUMNS = {
    "comma": "a, b", "comma-alone": ",", "quote": 'say "x"', "equals": "a=b", "equals-kind": "a=number", "colon": "a:b",
    "star": "*", "space": "two words", "percent": "100%", "braces": "{x}", "brackets": "[x]", "dot": "nodes.x",
    "slash": "a/b", "backslash": "a\\b", "unicode": "\u00e9t\u00e9", "emoji": "\U0001f600", "number": "2020",
    "dash": "-x", "plus": "+", "apostrophe": "it's", "tab": "a\tb", "semicolon": "a;b", "link": "link", "none": "None",
    "long": "x" * 300,
    "pipe": "a|b", "hash": "#", "less": "<x>", "at": "@x", "tilde": "~", "caret": "^", "predicted": "label_predicted",
    "error": "error", "value": "value",
}  # fmt: skip


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Targets that are fine, targets that are not, and columns with hard names."""
    for name, (target, expected) in FINE.items():
        yield f"fine-{name}", partial(_fine, target, expected)
    for name, (target, words) in REFUSED.items():
        yield f"refused-{name}", partial(_refused, target, words)
    for name, column in COLUMNS.items():
        yield f"quoted-{name}", partial(_named, column, True)
        if not set(column) & set(',"=*'):
            yield f"plain-{name}", partial(_named, column, False)
    for name, column in COLUMNS.items():
        yield f"one-of-two-{name}", partial(_two, column)
    for level in ("node", "edge", "graph"):
        yield f"star-{level}", partial(_star, level)


def _fine(target: Any, expected: list[tuple[str, str]], place: Place) -> None:
    write_all(place.data, world(IDS))
    made = place.prepare(target)
    assert not isinstance(made, Refusal), f"a valid target was refused: {made}"
    assert [(one.level, one.column) for one in made.targets] == expected


def _refused(target: Any, words: tuple[str, ...], place: Place) -> None:
    """Refused with what is expected; a space around it may be forgiven, since nothing else can be meant."""
    write_all(place.data, world(IDS))
    made = place.prepare(target)
    if not isinstance(made, Refusal):
        plain = "".join(target if isinstance(target, str) else list(target)).replace(" ", "").strip()
        assert not words, f"{target!r} was taken"
        assert plain == "node:label", f"{target!r} was taken"
        return
    says(made, *words)


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _named(column: str, quoted: bool, place: Place) -> None:
    """Every column can be named."""
    written = world(IDS)
    written["nodes"][column] = written["nodes"].pop("label")
    write_all(place.data, written)
    made = place.prepare(f"node:{_quoted(column) if quoted else column}")
    assert not isinstance(made, Refusal), f"the column {column!r} cannot be named: {made}"
    assert [(one.level, one.column) for one in made.targets] == [("node", column)]


def _two(column: str, place: Place) -> None:
    """Beside another one, and with a kind behind it."""
    written = world(IDS)
    written["edges"][column] = written["edges"].pop("fraud")
    write_all(place.data, written)
    made = place.prepare(f"edge:fee,{_quoted(column)}=binary")
    assert not isinstance(made, Refusal), f"the column {column!r} cannot be named: {made}"
    assert [one.column for one in made.targets] == ["fee", column]
    assert made.targets[1].kind == "binary", f"{column!r} is {made.targets[1].kind}"


def _star(level: str, place: Place) -> None:
    """`graph:*` is every column left."""
    written = world([str(number) for number in range(5)], many=True)
    written["graphs"] |= {"a, b": ["0", "1"] * 4, "c": ["1", "0"] * 4}
    write_all(place.data, written)
    made = place.prepare(f"{level}:*")
    if isinstance(made, Refusal):
        assert level != "graph", f"graph:* was refused: {made}"
        return
    expected = {"graph": ["toxic", "a, b", "c"]}.get(level)
    assert expected is None or [one.column for one in made.targets] == expected, [one.column for one in made.targets]
