"""The run directory: all it takes to predict later on another machine, under checksums, nothing a pickle."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from censnet.data.errors import quote
from censnet.tasks.targets import Target
from censnet.training.config import Gates, Labels, Settings
from censnet.training.run.checkpoint import RunError, write_whole

CONFIG, MODEL, SCHEMA = "config.json", "model.safetensors", "schema.json"
SPLITS, HISTORY, METRICS = "splits.csv", "history.csv", "metrics.json"
CHECKPOINT = "checkpoint"
SAVING = ".saving"  # a run that is whole but not yet in its place
FILES = re.compile(
    r"model\.safetensors|schema\.json|splits\.csv|history\.csv|metrics\.json|predictions(_node|_edge|_graph|_link)?\.csv"
)
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


class Try(BaseModel):
    """One training of a network, of several that validation rows choose from.

    Args:
        round: from 1; in later rounds the guesses are what the networks of the round before say together.
        gates: whether gates and self maps are learnt, or stay where they start.
        unlabelled: how much guessed classes count beside the labels.
        labels: which network of the preset.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    round: int
    gates: Gates
    unlabelled: float
    labels: Labels = "few"


class Tried(BaseModel):
    """What was tried for each member, and what validation rows chose.

    Args:
        tries: in order.
        sharpness: of the first guesses, of which validation rows chose one before; see `guess_classes`.
        best: member -> the best validation value of the metric that decides, in each try.
        kept: member -> which try was kept, from 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tries: list[Try]
    sharpness: list[float]
    best: list[list[float | None]]
    kept: list[int]

    @model_validator(mode="after")
    def _kept_are_tries(self) -> Tried:
        if not all(0 <= number < len(self.tries) for number in self.kept):
            raise ValueError(f"kept is {self.kept[:20]}, expected numbers of {len(self.tries)} tries")
        return self


class RunConfig(BaseModel):
    """What `config.json` says.

    Args:
        format: of the directory.
        settings: of the training.
        asked: the target, as the user wrote it.
        data: the name or the path of the data, and the fingerprint of what was learnt from.
        targets: what is predicted.
        link: whether links are.
        split: level -> where its split came from, and how many rows are in each part.
        node_width, edge_width, graph_width: channels of the features.
        node_features: whether the nodes have features of their own, and none that stand in for them.
        members: networks whose answers are averaged.
        tried: what they were chosen from, if from several.
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
    split: dict[str, str] = Field(default_factory=dict)
    node_width: int = Field(ge=0, lt=2**31)
    edge_width: int = Field(ge=0, lt=2**31)
    graph_width: int = Field(0, ge=0, lt=2**31)
    node_features: bool
    members: int = Field(ge=1, le=10_000)
    tried: Tried | None = None
    made: Made
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def at_rest(self) -> bool:
        """Whether gates of some member stayed where they start: then no answer ever depended on its edges."""
        if self.tried is None:
            return self.settings.training.gates == ["plain"]
        return any(self.tried.tries[number].gates == "plain" for number in self.tried.kept)


def made_now(seconds: float, device: str) -> Made:
    """How a run that ends now came about."""
    return Made(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        device=device,
        python=platform.python_version(),
        torch=torch.__version__,
        censnet=_own_version(),
    )


def is_whole(path: Path) -> bool:
    """Whether there is a finished run."""
    return (path / CONFIG).exists() or _is_saving(path)


def _is_saving(path: Path) -> bool:
    """Whether a run was written whole, but not all of it was brought to its place."""
    return (path / SAVING / CONFIG).exists() and not (path / SAVING).is_symlink()


def _own_version() -> str:
    try:
        return version("censnet")
    except PackageNotFoundError:
        return "not installed"  # run from its source


def write_directory(path: Path, config: RunConfig, files: Mapping[str, bytes]) -> None:
    """Write a run in the place of what is there. A crash at any moment leaves the old run or the new one."""
    place = path / SAVING
    settle(path)
    shutil.rmtree(place, ignore_errors=True)
    for name, content in files.items():
        write_whole(place / name, content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    write_whole(place / CONFIG, seal(config.model_copy(update={"files": sums}).model_dump(mode="json")))
    settle(path)


def settle(path: Path) -> None:
    """Bring the files of a run that was written whole to their place, `config.json` last."""
    place = path / SAVING
    if not _is_saving(path):
        return
    _, files = _read_config(path)
    for old in path.iterdir():
        if FILES.fullmatch(old.name) and old.name not in files:  # of a run that was here before
            old.unlink()
    for name in [name for name in files if (place / name).exists()]:
        os.replace(place / name, path / name)
    os.replace(place / CONFIG, path / CONFIG)
    shutil.rmtree(place, ignore_errors=True)


def clear(path: Path) -> None:
    """Remove a run and an unfinished training, and nothing else."""
    ours = is_whole(path)
    for place in (path / SAVING, path):
        (place / CONFIG).unlink(missing_ok=True)
    for place in (path / SAVING, path / CHECKPOINT):
        shutil.rmtree(place, ignore_errors=True)
    for old in path.iterdir() if ours else ():
        if FILES.fullmatch(old.name):
            old.unlink()


def read_directory(path: str | os.PathLike[str]) -> tuple[RunConfig, dict[str, bytes]]:
    """Read a run and check every byte of it; one that is damaged, unfinished or something else is refused."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"{path} is not a directory, expected a run" if path.exists() else f"there is no run {path}")
    if not is_whole(path):
        if (path / CHECKPOINT).is_dir():
            raise RunError(f"{path} is not finished: censnet train --resume --out {path} goes on with it")
        raise RunError(f"{path} has no {CONFIG}, expected a run directory that censnet train wrote")
    config, sums = _read_config(path)
    files = {}
    for name, expected in sums.items():
        place = path / SAVING / name if _is_saving(path) else path / name
        files[name] = _read(place if place.exists() else path / name)
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise RunError(f"{path / name} is not what was written (its SHA-256 differs): it is damaged or was changed")
    return config, files


def _read_config(path: Path) -> tuple[RunConfig, dict[str, str]]:
    """What a run says of itself, and the SHA-256 of each of its files."""
    place = path / SAVING / CONFIG if _is_saving(path) else path / CONFIG
    raw = unseal(_read(place, MOST_CONFIG), place)
    try:
        config = RunConfig.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise RunError(f"{place} is not that of a run: {where}: {first['msg'][:200]}") from None
    for name in config.files:
        if FILES.fullmatch(name) is None:
            raise RunError(f"{place} names the file {quote(name)}, which is none of a run: it is not read")
    for name in (MODEL, SCHEMA):
        if name not in config.files:
            raise RunError(f"{place} does not name {name}, expected it in every run")
    return config, config.files


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


def _read(path: Path, most: int | None = None) -> bytes:
    """The bytes of a plain file. A link may lead out of the run, and a device may have no end."""
    try:
        if path.is_symlink() or not path.is_file():
            raise RunError(f"{path} is missing or is a link, expected the file that was written")
        size = path.stat().st_size
        if most is not None and size > most:
            raise RunError(f"{path} has {size:,} bytes, expected at most {most:,}")
        return path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
