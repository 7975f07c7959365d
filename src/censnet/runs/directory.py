"""The run directory: files under checksums, written atomically, none of them a pickle, and locked while training.

A training keeps its state in `checkpoint/`, and its run is moved to its place when it is complete. So a finished run
that `--overwrite` replaces stays as it is until then: `start.json` names it by the digest of its `config.json`. While
`config.json` has that digest, or is not there, the training is unfinished; as soon as it has another, the run in the
directory is the one that the training made, and the rest of `checkpoint/` is of no more use.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from censnet.errors import RunError, quote
from censnet.files import atomic_write, open_regular, read_regular
from censnet.levels import Level
from censnet.option_names import name_option, resume_option
from censnet.runs.config import FORMAT, RunConfig, TrainingStart
from censnet.runs.resume import check_epochs, check_same

CONFIG, MODEL, SCHEMA = "config.json", "model.safetensors", "schema.json"
SPLITS, HISTORY, METRICS, CALIBRATION = "splits.csv", "history.csv", "metrics.json", "calibration.json"
CHECKPOINT = "checkpoint"
START = "start.json"  # of an unfinished training, in CHECKPOINT
SAVING = ".saving"  # a complete run that is not yet moved to its place
FILES = re.compile(
    r"model\.safetensors|schema\.json|splits\.csv|history\.csv|metrics\.json|calibration\.json"
    rf"|predictions(_{'|_'.join(Level)})?\.csv"
)
STATES = re.compile(r"start\.json|history\.csv|(recipe-\d+-)?(round-\d+-)?(members|member-\d+)\.safetensors")
LEFTOVERS = re.compile(  # of a killed training, or of no program in particular
    r"\.lock|\.saving|checkpoint|tensorboard|\..*\.part|\.DS_Store|\.git(keep|ignore)|lost\+found"
)
PIECE = 2**20  # bytes of a file that are read, and checked, at a time
Check = Callable[[Path, bytes, bytearray], None]  # the file, the piece that was just read, all of it so far
CHECKSUM = re.compile(rb'"sha256": "([0-9a-f]{64})"\n}\n?\Z')

MAX_CONFIG = 64 * 2**20

Kind = TypeVar("Kind", bound=BaseModel)


def is_complete(path: Path) -> bool:
    """Whether the directory holds a finished run."""
    return (path / CONFIG).exists() or _is_saving(path)


def config_digest(path: Path) -> str:
    """The SHA-256 of the `config.json` of a finished run, which identifies it; empty if there is none."""
    if not is_complete(path):
        return ""
    return hashlib.sha256(read_regular(file_path(path, CONFIG), MAX_CONFIG)).hexdigest()


def check_own(path: Path, more: re.Pattern[str] | None = None) -> None:
    """Raise if a folder that holds no run has files of the user's, or if a link stands in the place of a file of a run.

    Files whose names match `more` are not the user's.
    """
    if not path.is_dir():
        return
    check_links(path)
    if is_complete(path) and _has_checksum(file_path(path, CONFIG)):
        return
    if _has_checksum(path / CHECKPOINT / START):
        return
    names = [place.name for place in path.iterdir() if LEFTOVERS.fullmatch(place.name) is None]
    foreign = [name for name in names if more is None or more.fullmatch(name) is None]
    for folder, known in ((CHECKPOINT, STATES), (SAVING, FILES)):
        inside = (path / folder).iterdir() if (path / folder).is_dir() else ()
        foreign += [
            f"{folder}/{place.name}"
            for place in inside
            if place.name == START or not (known.fullmatch(place.name) or LEFTOVERS.fullmatch(place.name))
        ]
    if foreign:
        shown = ", ".join(quote(name) for name in sorted(foreign)[:3])
        shown += f" and {len(foreign) - 3:,} more" if len(foreign) > 3 else ""
        raise RunError(
            f"{path} holds {shown}, which no training wrote: choose another {name_option('--out')}, or an empty folder"
        )


def _has_checksum(path: Path) -> bool:
    """Whether a file ends in a checksum; it may still be damaged."""
    try:
        return path.is_file() and CHECKSUM.search(read_regular(path, MAX_CONFIG)) is not None
    except RunError:
        return False


def check_links(path: Path) -> None:
    """Raise if a symlink stands in the place of a file or a folder of a run: it would lead elsewhere."""
    for place in (path, path / CHECKPOINT, path / SAVING):
        for inside in place.iterdir() if place.is_dir() else ():
            name = inside.name
            ours = name == CONFIG or any(known.fullmatch(name) for known in (FILES, STATES, LEFTOVERS))
            if ours and inside.is_symlink():
                raise RunError(
                    f"{inside} is a link, expected a file or a folder that a training wrote: remove the link"
                )


def _is_saving(path: Path) -> bool:
    """Whether a run was written completely, but not all of its files were moved to their place."""
    return (path / SAVING / CONFIG).exists() and not (path / SAVING).is_symlink()


def has_checkpoint(folder: Path) -> bool:
    """Whether the directory holds an unfinished training, which may be going to replace a finished run."""
    if not (folder / CHECKPOINT / START).is_file():
        return False
    return not is_complete(folder) or read_start(folder).replaces == config_digest(folder)


def is_finished(folder: Path) -> bool:
    """Whether the directory holds a finished run, and no unfinished training to replace it."""
    return is_complete(folder) and not has_checkpoint(folder)


def history_path(folder: Path) -> Path:
    """The file that epochs are written to as they end: in the directory, unless a finished run is there."""
    return folder / CHECKPOINT / HISTORY if is_complete(folder) else folder / HISTORY


def open_directory(folder: Path, start: TrainingStart, resume: bool, overwrite: bool) -> None:
    """Prepare the run directory, and store the start of the training.

    Args:
        folder: the run directory.
        start: the inputs of the training.
        resume: whether to resume an unfinished training that is there; where there is none, one is started.
        overwrite: whether to replace what is there, when the new run is complete.
    """
    check_own(folder)
    commit(folder)
    begun = (resume or not overwrite) and has_checkpoint(folder)
    if resume and begun:
        before = read_start(folder)
        check_same(folder, before, start)
        check_epochs(folder / CHECKPOINT, before, start, ended_by_budget(folder))
        replaced = before.replaces
    else:
        if not overwrite and (is_complete(folder) or begun):
            unfinished = f"an unfinished training, which {name_option('--resume')} goes on with"
            states = ["a finished run"] * is_complete(folder) + [unfinished] * begun
            how = f"choose another {name_option('--out')}, or {name_option('--overwrite')} to replace it"
            raise RunError(f"{folder} holds {' and '.join(states)}: {how}")
        clear_training(folder)
        replaced = config_digest(folder)
    start = start.model_copy(update={"replaces": replaced})
    atomic_write(folder / CHECKPOINT / START, dump_with_checksum(start.model_dump(mode="json")))


def close_directory(folder: Path) -> None:
    """Remove the checkpoints of a training that has ended."""
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def keep_training(folder: Path) -> None:
    """Keep the checkpoints of a training that its time budget has ended: going on with it replaces the run it made."""
    start = read_start(folder).model_copy(update={"replaces": config_digest(folder)})
    atomic_write(folder / CHECKPOINT / START, dump_with_checksum(start.model_dump(mode="json")))


def ended_by_budget(folder: Path) -> bool:
    """Whether the directory holds a run whose training its time budget has ended, and which can go on."""
    if not (is_complete(folder) and has_checkpoint(folder)):
        return False
    record = read_config(folder).time_budget
    return record is not None and record.ended


def read_start(folder: Path) -> TrainingStart:
    """Read the start of an unfinished training."""
    place = folder / CHECKPOINT / START
    if not place.is_file():
        raise RunError(
            f"{folder} has no training to go on with: a training with {name_option('--out')} {folder} starts one"
        )
    return read_checked(TrainingStart, place, "what a training was started with")


def write_directory(path: Path, config: RunConfig, files: Mapping[str, bytes]) -> None:
    """Write a run, replacing the one that is there. A crash at any moment leaves the old run or the new one."""
    place = path / SAVING
    check_own(path)
    commit(path)
    shutil.rmtree(place, ignore_errors=True)
    for name, content in files.items():
        atomic_write(place / name, content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    atomic_write(place / CONFIG, dump_with_checksum(config.model_copy(update={"files": sums}).model_dump(mode="json")))
    commit(path, sums)


def commit(path: Path, files: Collection[str] | None = None) -> None:
    """Move the files of a completely written run to their place, `config.json` last.

    Args:
        path: the run directory.
        files: the names of the files beside it; those that it names if None.
    """
    place = path / SAVING
    if not _is_saving(path):
        return
    files = _read_config(path).files if files is None else files
    for old in path.iterdir():
        if FILES.fullmatch(old.name) and old.name not in files:  # of the run before
            old.unlink()
    for name in [name for name in files if (place / name).exists()]:
        os.replace(place / name, path / name)
    os.replace(place / CONFIG, path / CONFIG)
    shutil.rmtree(place, ignore_errors=True)


def clear_training(path: Path) -> None:
    """Remove an unfinished training; a finished run beside it, and everything else, stays."""
    if (path / CHECKPOINT / START).exists() and not is_complete(path):
        (path / HISTORY).unlink(missing_ok=True)
    shutil.rmtree(path / CHECKPOINT, ignore_errors=True)


def read_config(path: str | os.PathLike[str]) -> RunConfig:
    """Read `config.json`; a run that is damaged, unfinished or of another format is refused."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"{path} is not a directory, expected a run" if path.exists() else f"there is no run {path}")
    if not is_complete(path):
        if (path / CHECKPOINT).is_dir():
            goes_on, closes = resume_option(path), resume_option(path, finish=True)
            raise RunError(f"{path} is not finished: {goes_on} goes on with it, {closes} closes it")
        first = next((seed for seed in sorted(path.glob("seed-*")) if (seed / CONFIG).is_file()), None)
        hint = "" if first is None else f": it holds replicates, of which {first.name} is one"
        raise RunError(f"{path} has no {CONFIG}, expected a run directory that censnet train wrote{hint}")
    return _read_config(path)


def file_path(path: Path, name: str) -> Path:
    """The path of a file of a run, which may not have been moved to its place yet."""
    place = path / SAVING / name if _is_saving(path) else path / name
    return place if place.exists() else path / name


def read_file(path: Path, config: RunConfig, name: str, check: Check | None = None) -> bytes:
    """Read a file of a run and compare its SHA-256 with the one in `config.json`.

    Args:
        path: the run directory.
        config: of the run.
        name: the file.
        check: raises as soon as the bytes read so far show that the file is invalid.
    """
    found, content = hashlib.sha256(), bytearray()
    with open_regular(file_path(path, name)) as file:
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
    place = file_path(path, CONFIG)
    config = read_checked(RunConfig, place, "that of a run")
    for name in config.files:
        if FILES.fullmatch(name) is None:
            raise RunError(f"{place} names the file {quote(name)}, which is none of a run: it is not read")
    for name in (MODEL, SCHEMA, SPLITS, HISTORY, METRICS):
        if name not in config.files:
            raise RunError(f"{place} does not name {name}, expected it in every run")
    return config


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
