"""JSON files that end in their own checksum."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from censnet.errors import RunError
from censnet.files import read_regular
from censnet.runs.config import FORMAT

CHECKSUM = re.compile(rb'"sha256": "([0-9a-f]{64})"\n}\n?\Z')

MAX_CONFIG = 64 * 2**20

Kind = TypeVar("Kind", bound=BaseModel)


def read_checked(kind: type[Kind], place: Path, what: str) -> Kind:
    """Read what `dump_with_checksum` wrote as a pydantic model; `what` names it in errors."""
    raw = load_with_checksum(read_regular(place, MAX_CONFIG), place)
    if raw.get("format", 1) == 1:  # runs of the first format, and start.json beside them, which had no number
        raise RunError(f"{place} has format 1, expected {FORMAT}: an earlier version wrote it: train again")
    try:
        return kind.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise RunError(f"{place} is not {what}: it is nested too deep") from None
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise RunError(f"{place} is not {what}: {where}: {first['msg'][:200]}") from None


def dump_with_checksum(content: Mapping[str, Any]) -> bytes:
    """JSON whose last entry is the SHA-256 of the whole text, with zeros in its own place."""
    text = json.dumps({**content, "sha256": "0" * 64}, indent=1).encode() + b"\n"
    digest = hashlib.sha256(text).hexdigest().encode()
    return text.replace(b'"sha256": "' + b"0" * 64 + b'"\n}\n', b'"sha256": "' + digest + b'"\n}\n')


def load_with_checksum(text: bytes, path: Path) -> dict[str, Any]:
    """Read what `dump_with_checksum` wrote."""
    found = CHECKSUM.search(text)
    if found is None:
        raise RunError(f"{path} does not end in its checksum: it is damaged, cut short, or not ours")
    blank = text[: found.start(1)] + b"0" * 64 + text[found.end(1) :]
    if hashlib.sha256(blank).hexdigest().encode() != found[1]:
        raise RunError(f"{path} is not what was written (its SHA-256 differs): it is damaged or was changed")
    try:
        content: dict[str, Any] = json.loads(text, object_pairs_hook=_once, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not JSON: {str(error)[:200]}") from None
    content.pop("sha256")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _finite(text: str) -> float:
    raise ValueError(f"it has {text}, expected numbers")
