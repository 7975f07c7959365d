"""Bodies and heads of requests to a server: what is wrong gets a 4xx and one line, and nothing gets a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hostile.body_texts import csv, heads, sizes, texts
from hostile.body_values import ODD_CELLS, WRONG, cells, columns, fields, smiles, tables
from hostile.place import Place
from hostile.served import send_body, send_bytes, valid


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """All of them, and valid bodies that are spoilt."""
    for group in (texts, fields, tables, cells, columns, smiles, csv, heads, sizes, spoilt):
        yield from group()


def spoilt() -> Iterator[tuple[str, Callable[[Place], None]]]:
    for seed in range(120):
        yield f"bytes-{seed}", partial(_spoil_bytes, seed)
    for seed in range(120):
        yield f"values-{seed}", partial(_spoil_values, seed)


def _spoil_bytes(seed: int, place: Place) -> None:
    """A valid body with some bytes changed, dropped or doubled."""
    draw = random.Random(seed)
    content = bytearray(json.dumps(valid(draw.choice(["smiles", "joint", "link"]))).encode())
    for _ in range(1 + seed % 8):
        at = draw.randrange(len(content))
        change = draw.randrange(3)
        if change == 0:
            content[at] = draw.randrange(256)
        elif change == 1:
            del content[at : at + draw.randrange(1, 9)]
        else:
            content[at:at] = content[at : at + draw.randrange(1, 9)]
    send_bytes(bytes(content), None, place)


def _spoil_values(seed: int, place: Place) -> None:
    """A valid body with odd values at some places."""
    draw = random.Random(seed)
    body = valid(draw.choice(["smiles", "joint", "link"]))
    odd = [*ODD_CELLS.values(), *WRONG.values()]
    for _ in range(1 + seed % 6):
        inside: Any = body
        while True:
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            if not keys:
                break
            key = draw.choice(keys)
            if isinstance(inside[key], dict | list) and draw.random() < 0.85:
                inside = inside[key]
                continue
            inside[key] = copy.deepcopy(draw.choice(odd))
            break
    send_body("/predict", body, None, place)
