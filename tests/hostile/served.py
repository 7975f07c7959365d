"""A server to send wrong requests to, requests that are answered, and the look at what comes back."""

from __future__ import annotations

import atexit
import json
from contextlib import ExitStack
from functools import cache
from typing import Any

from serving_client import JSON, Service, started

from censnet.serving.limits import Limits
from hostile.place import Place, check_line, check_screen
from hostile.runs import home, trained
from hostile.tables import world

RUNS = ("joint", "smiles", "graph", "link")
LIMITS = Limits(body=400_000, rows=300, columns=40, size=4_000, seconds=15.0)
NAMES = [f"n{number}" for number in range(8)]
Body = dict[str, Any]


@cache
def service() -> Service:
    """A server of some runs, which lives as long as the process."""
    for name in RUNS:
        trained(name)
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(started({name: home() / f"run-{name}" for name in RUNS}, LIMITS))


@cache
def rows(table: str) -> tuple[dict[str, str], ...]:
    """Rows that the run `joint` answers."""
    columns = world(NAMES)[table]
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def valid(run: str = "joint") -> Body:
    """A request that is answered."""
    if run == "smiles":
        return {"run": run, "smiles": ["CCO", "CCN"]}
    return {"run": run, "nodes": [dict(row) for row in rows("nodes")], "edges": [dict(row) for row in rows("edges")]}


def check_answer(answer: Any, refused: bool | None) -> None:
    """A refusal of one line, or a sound answer.

    Args:
        answer: of the server.
        refused: whether it must be refused; None where either is right.
    """
    state = answer.status_code
    assert state < 500, f"state {state}: {answer.text[:300]}"
    assert refused is None or refused == (state >= 400), f"state {state}: {answer.text[:300]}"
    service().check(answer)
    assert str(home()) not in answer.text, "it shows where the runs are"
    if state >= 400:
        line = answer.json()["error"]
        check_line(line)
        check_screen(line)
    else:
        json.loads(answer.content, parse_constant=_no_number)
    assert service().client.get("/health").json()["status"] == "ok"
    assert service().workers.restarts == 0, "a process ended"


def _no_number(text: str) -> None:
    raise AssertionError(f"the answer holds {text}")


def send_body(address: str, body: object, refused: bool | None, place: Place) -> None:
    check_answer(service().client.post(address, content=json.dumps(body).encode(), headers=JSON), refused)


def send_bytes(content: bytes, refused: bool | None, place: Place) -> None:
    check_answer(service().client.post("/predict", content=content, headers=JSON), refused)
