"""JSON that says something else than it should: fields, tables, cells, names of columns, SMILES."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from serving_client import JSON

from hostile.place import Place
from hostile.served import LIMITS, Body, check_answer, rows, send_body, service, valid
from hostile.smiles import BAD, GOOD, QUERIES

WRONG: dict[str, Any] = {
    "null-in-list": [None],
    "number": 7,
    "float": 0.5,
    "negative": -1,
    "zero": 0,
    "huge": 10**30,
    "true": True,
    "text": "x",
    "empty": "",
    "list": [],
    "lists": [[]],
    "object": {},
    "object-in-list": [{}],
    "nul": "\0",
    "path": "../../etc/passwd",
    "escape": "\x1b[31mred",
    "template": "{{7*7}}",
    "long": "x" * 5_000,
    "bidi": "\u202egnp.exe",
    "proto": {"__proto__": {"run": "joint"}},
}
ALLOWED: dict[str, set[str]] = {  # by the name of the field: what is no mistake
    "known_labels": {"true"},
    "strict": {"true"},
    "coverage": {"float"},
    "drawing": {"true"},
    "by": set(),
    "keep": set(),
    "parts": {"number"},
    "target": set(),
    "run": set(),
    "level": set(),
    "smiles": set(),
    "nodes": set(),
    "edges": set(),
    "graphs": set(),
    "pairs": set(),
    "top": set(),
    "rows": set(),
}
OF_DATA = ("run", "smiles", "nodes", "edges", "graphs", "known_labels", "level", "top")
OF_PREDICT = (*OF_DATA, "coverage", "keep", "strict", "pairs")
OF_EXPLAIN = (*OF_DATA, "rows", "by", "target", "parts", "drawing")


def fields() -> Iterator[tuple[str, Callable[[Place], None]]]:
    for address, names in (("/predict", OF_PREDICT), ("/explain", OF_EXPLAIN)):
        for field in names:
            for what, value in WRONG.items():
                body = (
                    valid("smiles")
                    | ({"rows": [1]} if address == "/explain" and field != "top" else {})
                    | {field: value}
                )
                refused = None if what in ALLOWED[field] or (field, what) in EITHER else True
                yield f"field-{address[1:]}-{field}-{what}", partial(send_body, address, body, refused)
    for name in (
        "smile",
        "Run",
        "RUN",
        "run ",
        "model",
        "path",
        "__class__",
        "constructor",
        "coverages",
        "device",
        "",
        "\0",
        "self",
        "x" * 1_000,
    ):
        yield f"unknown-{name[:10]!r}", partial(send_body, "/predict", valid("smiles") | {name: 1}, True)
    for name in (
        "../smiles",
        "/etc",
        "run-smiles",
        "smiles/",
        "SMILES",
        "smiles\0",
        "smiles ",
        ".",
        "..",
        "%2e%2e",
        "file:///etc/passwd",
    ):
        yield f"run-{name!r}", partial(send_body, "/predict", valid("smiles") | {"run": name}, True)


EITHER = {("rows", "number"), ("top", "number")}


def tables() -> Iterator[tuple[str, Callable[[Place], None]]]:
    for table in ("nodes", "edges"):
        for what, value in WRONG.items():
            yield f"table-{table}-{what}", partial(send_body, "/predict", valid() | {table: value}, True)
            mixed = [dict(row) for row in rows(table)]
            yield (
                f"row-{table}-{what}",
                partial(send_body, "/predict", valid() | {table: [*mixed, value]}, None if what == "object" else True),
            )
    for run in ("joint", "graph", "link"):
        yield f"alone-nodes-{run}", partial(send_body, "/predict", {"run": run, "nodes": list(rows("nodes"))}, None)
        yield f"alone-edges-{run}", partial(send_body, "/predict", {"run": run, "edges": list(rows("edges"))}, None)
        yield f"alone-graphs-{run}", partial(send_body, "/predict", {"run": run, "graphs": [{"graph": 1}]}, None)
        yield f"nothing-{run}", partial(send_body, "/predict", {"run": run}, True)
        yield f"smiles-{run}", partial(send_body, "/predict", {"run": run, "smiles": ["CCO"]}, True)
    body = valid()
    for what, change in {
        "no-ids": lambda: body | {"nodes": [{k: v for k, v in row.items() if k != "id"} for row in rows("nodes")]},
        "other-ids": lambda: body | {"nodes": [row | {"id": f"x{n}"} for n, row in enumerate(rows("nodes"))]},
        "same-ids": lambda: body | {"nodes": [row | {"id": "n0"} for row in rows("nodes")]},
        "number-ids": lambda: body | {"nodes": [row | {"id": n} for n, row in enumerate(rows("nodes"))]},
        "mixed-ids": lambda: (
            body | {"nodes": [row | {"id": n if n % 2 else f"n{n}"} for n, row in enumerate(rows("nodes"))]}
        ),
        "loops": lambda: body | {"edges": [row | {"target": row["source"]} for row in rows("edges")]},
        "parallel": lambda: body | {"edges": [rows("edges")[0]] * 200},
        "no-columns": lambda: body | {"edges": [{"source": "n0", "target": "n1"}]},
        "empty-rows": lambda: body | {"edges": [{}, {}]},
    }.items():
        yield f"whole-table-{what}", partial(_later, "/predict", change)
    for what, value in WRONG.items():
        pairs = [{"source": "n0", "target": "n1"}]
        yield f"pairs-{what}", partial(send_body, "/predict", valid("link") | {"pairs": value}, True)
        yield f"pair-{what}", partial(send_body, "/predict", valid("link") | {"pairs": [*pairs, value]}, True)
        yield (
            f"pair-end-{what}",
            partial(send_body, "/predict", valid("link") | {"pairs": [{"source": value, "target": "n1"}]}, None),
        )
        yield f"explained-{what}", partial(send_body, "/explain", valid() | {"rows": [value], "target": "label"}, None)


def _later(address: str, make: Callable[[], Body], place: Place) -> None:
    send_body(address, make(), None, place)


ODD_CELLS: dict[str, Any] = {
    "null": None,
    "true": True,
    "number": 5,
    "huge": 1e308,
    "integer": 10**25,
    "negative": -1e308,
    "tiny": 5e-324,
    "text": "lots",
    "empty": "",
    "spaces": "   ",
    "nan": "NaN",
    "inf": "inf",
    "minus-inf": "-Infinity",
    "nul": "a\0b",
    "break": "a\nb",
    "return": "a\rb",
    "escape": "\x1b[31m",
    "bell": "\x07",
    "bidi": "\u202eabc",
    "zero-width": "\u200b",
    "emoji": "\U0001f9ea",
    "combining": "e\u0301" * 50,
    "long": "x" * 20_000,
    "formula": "=cmd|' /C calc'!A0",
    "html": "<img src=x onerror=alert(1)>",
    "sql": "'; DROP TABLE runs; --",
    "path": "/etc/passwd",
    "comma": "1,5",
    "hex": "0x10",
    "list": [1, 2],
    "empty-list": [],
    "list-of-text": ["a"],
    "list-of-lists": [[1]],
    "object": {"a": 1},
    "list-huge": [1e308] * 50,
    "list-null": [None],
    "date": "2024-02-30",
    "thousand": "1.000.000,5",
    "fullwidth": "\uff11\uff12",
    "separator": "a\u2028b",
    "tag": "\U000e0041",
    "private": "\ue000",
    "noncharacter": "\uffff",
}


def cells() -> Iterator[tuple[str, Callable[[Place], None]]]:
    for table, columns in (("nodes", rows("nodes")[0]), ("edges", rows("edges")[0])):
        for column in columns:
            for what, value in ODD_CELLS.items():
                if column in ("label", "score", "fraud", "fee") and what not in ("null", "text", "list", "object"):
                    continue
                yield f"cell-{table}-{column}-{what}", partial(_cell, table, column, value)
    for what, value in ODD_CELLS.items():
        body = {"run": "smiles", "graphs": [{"smiles": "CCO", "size": 1}, {"smiles": value}]}
        yield f"cell-graphs-smiles-{what}", partial(send_body, "/predict", body, None)


def _cell(table: str, column: str, value: Any, place: Place) -> None:
    """One odd cell; the other rows keep their places."""
    body = valid()
    body[table][3][column] = value
    answer = service().client.post("/predict", content=json.dumps(body).encode(), headers=JSON)
    check_answer(answer, None)
    if answer.status_code == 200:
        found = answer.json()["predictions"]
        assert {level: len(each) for level, each in found.items()} == {
            "node": len(rows("nodes")),
            "edge": len(rows("edges")),
        }


def columns() -> Iterator[tuple[str, Callable[[Place], None]]]:
    names = [
        "", " ", "\0", "\x1b[31m", "error", "split", "label_predicted", "unlike_training", "__proto__", "x" * 10_000,
        "\u202e", "id ", "ID", "graph", "train_mask", "smiles", "Unnamed: 0", "\n", "'", '"', "<script>", "index",
        "__index_level_0__", "\U0001f9ea",
    ]  # fmt: skip
    for table in ("nodes", "edges"):
        for number, name in enumerate(names):
            extra = [row | {name: "x"} for row in rows(table)]
            yield (
                f"column-{table}-{number}",
                partial(send_body, "/predict", valid() | {table: extra, "keep": "all"}, None),
            )
        for column in rows(table)[0]:
            less = [{k: v for k, v in row.items() if k != column} for row in rows(table)]
            yield f"without-{table}-{column}", partial(send_body, "/predict", valid() | {table: less}, None)
    for count in (41, 500, 3_000):
        wide = [dict(rows("edges")[0]) | {f"x{n}": n for n in range(count)}]
        yield f"wide-{count}", partial(send_body, "/predict", valid() | {"edges": wide}, True)


def smiles() -> Iterator[tuple[str, Callable[[Place], None]]]:
    for group, texts in (("good", GOOD), ("bad", BAD), ("query", QUERIES)):
        for name, text in texts.items():
            long = len(text) > LIMITS.smiles
            body = {"run": "smiles", "smiles": ["CCO", text]}
            yield f"smiles-{group}-{name}", partial(send_body, "/predict", body, True if long else None)
            if not long and group != "query":
                yield (
                    f"explain-{group}-{name}",
                    partial(
                        send_body,
                        "/explain",
                        {"run": "smiles", "smiles": [text], "rows": [1], "drawing": len(text) < 50},
                        None,
                    ),
                )
