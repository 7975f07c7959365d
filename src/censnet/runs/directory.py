"""The run directory: all it takes to predict later on another machine, under checksums, nothing a pickle."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from censnet.errors import RunError, quote
from censnet.files import atomic_write
from censnet.runs.graph_size import GraphSize
from censnet.runs.start import Start
from censnet.settings.schema import Gates, Recipe, Settings
from censnet.tasks.targets import Target
from censnet.text import count
from censnet.training.checkpoint import open_plain, read_plain

CONFIG, MODEL, SCHEMA = "config.json", "model.safetensors", "schema.json"
SPLITS, HISTORY, METRICS = "splits.csv", "history.csv", "metrics.json"
CHECKPOINT = "checkpoint"
START = "start.json"  # of an unfinished training, in CHECKPOINT
SAVING = ".saving"  # a run that is whole but not yet in its place
FILES = re.compile(
    r"model\.safetensors|schema\.json|splits\.csv|history\.csv|metrics\.json|predictions(_node|_edge|_graph|_link)?\.csv"
)
STATES = re.compile(r"start\.json|history\.csv|(network-\d+-)?(round-\d+-)?(members|member-\d+)\.safetensors")
LEFT = re.compile(  # by a training that was killed, or by nobody in particular
    r"\.lock(\.\d+)?|\.saving|checkpoint|tensorboard|\..*\.part|\.DS_Store|\.git(keep|ignore)|lost\+found"
)
_SEAL = re.compile(rb'"sha256": "([0-9a-f]{64})"\n}\n?\Z')
MOST_MEMBERS = 10_000
MOST_CONFIG = 64 * 2**20
PIECE = 2**20  # bytes of a file that are read, and checked, at a time
Kind = TypeVar("Kind", bound=BaseModel)
Check = Callable[[Path, bytes, bytearray], None]  # the file, the piece that was just read, all of it so far


class Provenance(BaseModel):
    """How a run came about; nothing here decides what it predicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    seconds: float
    device: str
    python: str
    torch: str
    censnet: str


class Candidate(BaseModel):
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
    pseudo_label_weight: float
    recipe: Recipe = "low_label"


class SelectionRecord(BaseModel):
    """What was tried for each member, and what validation rows chose.

    Args:
        tries: in order.
        sharpness: of the first guesses, of which validation rows chose one before; see `pseudo_labels`.
        best: member -> the best validation value of the metric that decides, in each try.
        kept: member -> which try was kept, from 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    candidates: list[Candidate]
    inverse_temperature: list[float]
    best: list[list[float | None]]
    kept: list[int]

    @model_validator(mode="after")
    def _kept_are_tries(self) -> SelectionRecord:
        if not all(0 <= number < len(self.candidates) for number in self.kept):
            raise ValueError(f"kept is {self.kept[:20]}, expected numbers of {count(len(self.candidates), 'try')}")
        return self


class RunConfig(BaseModel):
    """What `config.json` says.

    Args:
        format: of the directory.
        settings: of the training.
        asked: the target, as the user wrote it.
        data: the name or the path of the data, and the fingerprint of what was learnt from.
        graph_size: of the data.
        targets: what is predicted.
        link: whether links are.
        split: level -> where its split came from, and how many rows are in each part.
        node_width, edge_width, graph_width: channels of the features.
        node_features: whether the nodes have features of their own, and none that stand in for them.
        members: networks whose answers are averaged.
        tried: what they were chosen from, if from several.
        start: what the training was started with, where that is known.
        closed: whether it was closed, by `--finish`, before it came to its end.
        findings: what may make its scores look better than they are, such as a feature that tells the target.
        made: how it came about.
        files: name -> SHA-256 of every other file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    settings: Settings
    asked: list[str]
    data: str
    fingerprint: str
    graph_size: GraphSize | None = None
    targets: list[Target]
    link: bool
    split: dict[str, str] = Field(default_factory=dict)
    node_width: int = Field(ge=0, lt=2**31)
    edge_width: int = Field(ge=0, lt=2**31)
    graph_width: int = Field(0, ge=0, lt=2**31)
    node_features: bool
    members: int = Field(ge=1, le=MOST_MEMBERS)
    selection: SelectionRecord | None = None
    start: Start | None = None
    closed: bool = False
    findings: list[str] = Field(default_factory=list, max_length=100)
    made: Provenance
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def at_rest(self) -> bool:
        """Whether gates of some member stayed where they start: then no answer ever depended on its edges."""
        if self.selection is None:
            return self.settings.training.gates == ["frozen"]
        return any(self.selection.candidates[number].gates == "frozen" for number in self.selection.kept)


def made_now(seconds: float, device: str) -> Provenance:
    """How a run that ends now came about."""
    return Provenance(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        device=device,
        python=platform.python_version(),
        torch=torch.__version__,
        censnet=_own_version(),
    )


def is_complete(path: Path) -> bool:
    """Whether there is a finished run."""
    return (path / CONFIG).exists() or _is_saving(path)


def config_digest(path: Path) -> str:
    """The SHA-256 of the `config.json` of a finished run, which tells it from every other; empty if there is none."""
    if not is_complete(path):
        return ""
    place = path / SAVING / CONFIG if _is_saving(path) else path / CONFIG
    return hashlib.sha256(read_plain(place, MOST_CONFIG)).hexdigest()


def check_own(path: Path, more: re.Pattern[str] | None = None) -> None:
    """Raise if a folder that holds no run has files of the user's, or if a link stands where a file of a run goes.

    Files that `more` fits are not the user's.
    """
    if not path.is_dir():
        return
    check_links(path)
    if is_complete(path) and _is_sealed(path / SAVING / CONFIG if _is_saving(path) else path / CONFIG):
        return
    if _is_sealed(path / CHECKPOINT / START):
        return
    names = [place.name for place in path.iterdir() if LEFT.fullmatch(place.name) is None]
    foreign = [name for name in names if more is None or more.fullmatch(name) is None]
    for folder, known in ((CHECKPOINT, STATES), (SAVING, FILES)):
        inside = (path / folder).iterdir() if (path / folder).is_dir() else ()
        foreign += [
            f"{folder}/{place.name}"
            for place in inside
            if place.name == START or not (known.fullmatch(place.name) or LEFT.fullmatch(place.name))
        ]
    if foreign:
        shown = ", ".join(quote(name) for name in sorted(foreign)[:3])
        shown += f" and {len(foreign) - 3:,} more" if len(foreign) > 3 else ""
        raise RunError(f"{path} holds {shown}, which no training wrote: choose another --out, or an empty folder")


def _is_sealed(path: Path) -> bool:
    """Whether a file ends as one of ours does; it may be damaged."""
    try:
        return path.is_file() and _SEAL.search(read_plain(path, MOST_CONFIG)) is not None
    except RunError:
        return False


def check_links(path: Path) -> None:
    """Raise if a link stands where a file or a folder of a run goes: it would lead elsewhere."""
    for place in (path, path / CHECKPOINT, path / SAVING):
        for inside in place.iterdir() if place.is_dir() else ():
            name = inside.name
            ours = name == CONFIG or any(known.fullmatch(name) for known in (FILES, STATES, LEFT))
            if ours and inside.is_symlink():
                raise RunError(
                    f"{inside} is a link, expected a file or a folder that a training wrote: remove the link"
                )


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
    check_own(path)
    commit(path)
    shutil.rmtree(place, ignore_errors=True)
    for name, content in files.items():
        atomic_write(place / name, content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    atomic_write(place / CONFIG, dump_with_checksum(config.model_copy(update={"files": sums}).model_dump(mode="json")))
    commit(path)


def commit(path: Path) -> None:
    """Bring the files of a run that was written whole to their place, `config.json` last."""
    place = path / SAVING
    if not _is_saving(path):
        return
    files = _read_config(path).files
    for old in path.iterdir():
        if FILES.fullmatch(old.name) and old.name not in files:  # of a run that was here before
            old.unlink()
    for name in [name for name in files if (place / name).exists()]:
        os.replace(place / name, path / name)
    os.replace(place / CONFIG, path / CONFIG)
    shutil.rmtree(place, ignore_errors=True)


def clear_training(path: Path) -> None:
    """Remove an unfinished training; a finished run beside it, and all else, stays."""
    if (path / CHECKPOINT / START).exists() and not is_complete(path):
        (path / HISTORY).unlink(missing_ok=True)
    shutil.rmtree(path / CHECKPOINT, ignore_errors=True)


def read_config(path: str | os.PathLike[str]) -> RunConfig:
    """What a run says of itself; one that is damaged, unfinished or something else is refused."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"{path} is not a directory, expected a run" if path.exists() else f"there is no run {path}")
    if not is_complete(path):
        if (path / CHECKPOINT).is_dir():
            raise RunError(
                f"{path} is not finished: censnet train --resume --out {path} goes on with it, --finish closes it"
            )
        raise RunError(f"{path} has no {CONFIG}, expected a run directory that censnet train wrote")
    return _read_config(path)


def place_of(path: Path, name: str) -> Path:
    """Where a file of a run is, which may not have been brought to its place yet."""
    place = path / SAVING / name if _is_saving(path) else path / name
    return place if place.exists() else path / name


def read_file(path: Path, config: RunConfig, name: str, check: Check | None = None) -> bytes:
    """Read a file of a run and check every byte of it.

    Args:
        path: the run directory.
        config: what it says of itself.
        name: the file.
        check: raises as soon as the bytes that have been read so far show that it is not what it should be.
    """
    found, content = hashlib.sha256(), bytearray()
    with open_plain(place_of(path, name)) as file:
        try:
            while part := file.read(PIECE):
                found.update(part)
                content += part
                if check is not None:
                    check(path / name, part, content)
        except OSError as error:
            raise RunError(f"{path / name} cannot be read: {error.strerror}") from None
    if found.hexdigest() != config.files[name]:
        raise RunError(f"{path / name} is not what was written (its SHA-256 differs): it is damaged or was changed")
    return bytes(content)


def _read_config(path: Path) -> RunConfig:
    place = path / SAVING / CONFIG if _is_saving(path) else path / CONFIG
    config = unseal_as(RunConfig, place, "that of a run")
    for name in config.files:
        if FILES.fullmatch(name) is None:
            raise RunError(f"{place} names the file {quote(name)}, which is none of a run: it is not read")
    for name in (MODEL, SCHEMA, SPLITS, HISTORY, METRICS):
        if name not in config.files:
            raise RunError(f"{place} does not name {name}, expected it in every run")
    return config


def unseal_as(kind: type[Kind], place: Path, what: str) -> Kind:
    """Read what `dump_with_checksum` wrote, as a model of pydantic's; what it is called in words is for the error."""
    raw = load_with_checksum(read_plain(place, MOST_CONFIG), place)
    try:
        return kind.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise RunError(f"{place} is not {what}: it is nested too deep") from None
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise RunError(f"{place} is not {what}: {where}: {first['msg'][:200]}") from None


def dump_with_checksum(content: Mapping[str, Any]) -> bytes:
    """JSON whose last line is the SHA-256 of the whole, itself taken as zeros."""
    text = json.dumps({**content, "sha256": "0" * 64}, indent=1).encode() + b"\n"
    digest = hashlib.sha256(text).hexdigest().encode()
    return text.replace(b'"sha256": "' + b"0" * 64 + b'"\n}\n', b'"sha256": "' + digest + b'"\n}\n')


def load_with_checksum(text: bytes, path: Path) -> dict[str, Any]:
    """Read what `dump_with_checksum` wrote."""
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
