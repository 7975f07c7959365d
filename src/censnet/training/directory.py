"""The run directory: all it takes to predict later on another machine, under checksums, nothing a pickle."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from censnet.tasks.targets import Target
from censnet.training.checkpoint import RunError, write_whole
from censnet.training.config import Settings

CONFIG, MODEL, SCHEMA = "config.json", "model.safetensors", "schema.json"
SPLITS, HISTORY, METRICS = "splits.csv", "history.csv", "metrics.json"
CHECKPOINT = "checkpoint"
FILES = re.compile(r"model\.safetensors|schema\.json|splits\.csv|history\.csv|metrics\.json|predictions(_[a-z]+)?\.csv")
_SEAL = re.compile(rb'"sha256": "([0-9a-f]{64})"\n}\n?\Z')
MOST_CONFIG = 64 * 2**20


class Made(BaseModel):
    """How a run came about; nothing here decides what it predicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    seconds: float
    device: str
    python: str
    torch: str
    censnet: str


class RunConfig(BaseModel):
    """What `config.json` says.

    Args:
        format: of the directory.
        settings: of the training.
        asked: the target, as the user wrote it.
        data: the name or the path of the data, and the fingerprint of what was learnt from.
        targets: what is predicted.
        link: whether links are.
        node_width, edge_width: channels of the features.
        members: networks whose answers are averaged.
        made: how it came about.
        files: name -> SHA-256 of every other file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    settings: Settings
    asked: list[str]
    data: str
    fingerprint: str
    targets: list[Target]
    link: bool
    node_width: int = Field(ge=0)
    edge_width: int = Field(ge=0)
    members: int = Field(ge=1, le=10_000)
    made: Made
    files: dict[str, str] = Field(default_factory=dict)


def made_now(seconds: float, device: str) -> Made:
    """How a run that ends now came about."""
    return Made(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        device=device,
        python=platform.python_version(),
        torch=torch.__version__,
        censnet=version("censnet"),
    )


def write_directory(path: Path, config: RunConfig, files: Mapping[str, bytes]) -> None:
    """Write a run. `config.json` comes last: a directory that has it is whole."""
    (path / CONFIG).unlink(missing_ok=True)
    for name, content in files.items():
        write_whole(path / name, content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    write_whole(path / CONFIG, seal(config.model_copy(update={"files": sums}).model_dump(mode="json")))


def read_directory(path: str | os.PathLike[str]) -> tuple[RunConfig, dict[str, bytes]]:
    """Read a run and check every byte of it; one that is damaged, unfinished or something else is refused."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"{path} is not a directory, expected a run" if path.exists() else f"there is no run {path}")
    if not (path / CONFIG).is_file():
        if (path / CHECKPOINT).is_dir():
            raise RunError(f"{path} is not finished: censnet train --resume --out {path} goes on with it")
        raise RunError(f"{path} has no {CONFIG}, expected a run directory that censnet train wrote")
    raw = unseal(_bytes(path / CONFIG), path / CONFIG)
    try:
        config = RunConfig.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RunError(f"{path / CONFIG} is not that of a run: {where}: {first['msg']}") from None
    for name in (MODEL, SCHEMA):
        if name not in config.files:
            raise RunError(f"{path / CONFIG} does not name {name}, expected it in every run")
    files = {}
    for name, expected in config.files.items():
        if FILES.fullmatch(name) is None:
            raise RunError(f"{path / CONFIG} names the file {name!r}, which is none of a run: it is not read")
        if not (path / name).is_file() or (path / name).is_symlink():
            raise RunError(f"{path / name} is missing or is a link, expected the file that was written")
        files[name] = _bytes(path / name)
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise RunError(f"{path / name} is not what was written (its SHA-256 differs): it is damaged or was changed")
    return config, files


def seal(content: Mapping[str, Any]) -> bytes:
    """JSON whose last line is the SHA-256 of the whole, itself taken as zeros."""
    text = json.dumps({**content, "sha256": "0" * 64}, indent=1).encode() + b"\n"
    digest = hashlib.sha256(text).hexdigest().encode()
    return text.replace(b'"sha256": "' + b"0" * 64 + b'"\n}\n', b'"sha256": "' + digest + b'"\n}\n')


def unseal(text: bytes, path: Path) -> dict[str, Any]:
    """Read what `seal` wrote."""
    found = _SEAL.search(text)
    if found is None:
        raise RunError(f"{path} does not end in its checksum: it is damaged, cut short, or not ours")
    blank = text[: found.start(1)] + b"0" * 64 + text[found.end(1) :]
    if hashlib.sha256(blank).hexdigest().encode() != found[1]:
        raise RunError(f"{path} is not what was written (its SHA-256 differs): it is damaged or was changed")
    try:
        content: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not JSON: {error}") from None
    content.pop("sha256")
    return content


def _bytes(path: Path) -> bytes:
    try:
        if path.name == CONFIG and path.stat().st_size > MOST_CONFIG:
            raise RunError(f"{path} has {path.stat().st_size:,} bytes, expected less than {MOST_CONFIG:,}")
        return path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
