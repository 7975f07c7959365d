"""The state of a stream on disk: `stream.json` under a checksum, and the arrays that it names.

The arrays are written first, under a name of their own; `stream.json` is replaced when they are complete. So whenever
the process is killed, the directory holds the state before or the one after, and the number of its last event.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from censnet.errors import RunError, WriteError, quote, shorten
from censnet.files import atomic_write, open_regular, tensor_digest
from censnet.ops.arrays import Array
from censnet.option_names import name_option
from censnet.runs.directory import PIECE, dump_with_checksum, read_checked
from censnet.runs.predictor import Predictor

RECORD, LOCK = "stream.json", ".lock"
ARRAYS = re.compile(r"state-\d{1,18}\.safetensors")
OWN = re.compile(rf"stream\.json|{ARRAYS.pattern}|\.(stream\.json|{ARRAYS.pattern})\.part|\.lock")
DTYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "U8": np.uint8}
MAX_HEADER = 2**22


class StreamRecord(BaseModel):
    """The content of `stream.json`.

    Args:
        format: of the directory.
        kind: so that it is not taken for anything else.
        run: which run it is a state of.
        number: the field with the number of an event.
        counted: ranges of the numbers of events that were counted.
        events: how many were counted.
        history: the table that was fed before the first event; empty if there was none.
        answers: the latest, with their numbers.
        saved: how often the state was saved.
        file: with the arrays.
        sha256_of_file, bytes: of that file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = 2
    kind: Literal["stream"] = "stream"
    run: str
    number: str
    counted: list[tuple[int, int]]
    events: int = Field(ge=0)
    history: str = ""
    answers: list[tuple[int, dict[str, Any]]] = Field(default_factory=list)
    saved: int = Field(0, ge=0, lt=10**18)
    file: str = ""
    sha256_of_file: str = ""
    bytes: int = Field(0, ge=0)


def run_digest(run: Predictor) -> str:
    """A digest of what a state depends on: weights, schema, targets and label delay. Thresholds may be chosen anew."""
    found = hashlib.sha256(run.schema.to_json().encode())
    about = [run.config.label_delay, run.config.widths, run.config.shows_labels, run.config.node_features]
    found.update(json.dumps([*about, [target.model_dump(mode="json") for target in run.config.targets]]).encode())
    for model in run.models:
        found.update(tensor_digest(model.state_dict()).encode())
    return found.hexdigest()


def has_state(folder: Path) -> bool:
    """Whether a directory holds the state of a stream."""
    return (folder / RECORD).exists()


def write_state(folder: Path, record: StreamRecord, arrays: Mapping[str, Array]) -> StreamRecord:
    """Replace the state in a directory, and make that if need be. -> the record with its file"""
    _check_folder(folder)
    name = f"state-{record.saved + 1}.safetensors"
    place, partial = folder / name, folder / f".{name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        save_file({key: np.ascontiguousarray(values) for key, values in arrays.items()}, partial)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.replace(partial, place)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise WriteError(place, error, "the state before is kept" if has_state(folder) else "") from None
    update = {"saved": record.saved + 1, "file": name, "sha256_of_file": digest, "bytes": size}
    record = record.model_copy(update=update)
    atomic_write(folder / RECORD, dump_with_checksum(record.model_dump(mode="json")))
    for other in folder.iterdir():
        if ARRAYS.fullmatch(other.name) and other.name != name:
            with suppress(OSError):
                other.unlink()
    return record


def read_state(folder: Path, run: Predictor) -> tuple[StreamRecord, dict[str, Array]]:
    """The state in a directory, if it is one of a run; nothing in it is executed."""
    _check_folder(folder)
    record = read_checked(StreamRecord, folder / RECORD, "the state of a stream")
    if record.run != run_digest(run):
        raise RunError(
            f"{folder} holds the state of another run: give its run, or choose another {name_option('--state')}"
        )
    if ARRAYS.fullmatch(record.file) is None:
        raise RunError(f"{folder / RECORD} names the file {quote(record.file)}, expected state-N.safetensors")
    place = folder / record.file
    with open_regular(place) as file:
        size = os.fstat(file.fileno()).st_size
        if size != record.bytes:
            raise RunError(f"{place} has {size:,} bytes, expected {record.bytes:,}: it is damaged or was changed")
        _check_header(place, file.read(8), size)
        file.seek(0)
        digest = hashlib.sha256()
        while part := file.read(PIECE):
            digest.update(part)
    if digest.hexdigest() != record.sha256_of_file:
        raise RunError(f"{place} is not what was written (its SHA-256 differs): it is damaged or was changed")
    try:
        return record, load_file(place)
    except (SafetensorError, ValueError, OSError) as error:
        raise RunError(f"{place} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _check_header(place: Path, start: bytes, size: int) -> None:
    """Raise unless a file is as long as its header says, in types that are known."""
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(MAX_HEADER, size - 8):
        raise RunError(f"{place} cannot be read: its header is said to have {length:,} bytes, which is too much")
    with open_regular(place) as file:
        file.seek(8)
        text = file.read(length)
    total = 0
    try:
        for each in json.loads(text).values():
            total += math.prod(int(n) for n in each["shape"]) * np.dtype(DTYPES[each["dtype"]]).itemsize
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, OverflowError):
        raise RunError(f"{place} cannot be read: its header is no table of arrays") from None
    if size != 8 + length + total:
        raise RunError(f"{place} has {size:,} bytes, expected {8 + length + total:,}, as its header says")


def _check_folder(folder: Path) -> None:
    """Raise where a link, a file or files of others stand where the state is to be."""
    option = name_option("--state")
    if not str(folder).strip() or str(folder) == ".":
        raise RunError(f"{option} is {str(folder)!r}, expected a folder for the state")
    try:
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise RunError(
                f"{shorten(folder)} is a link or a file, expected a folder for the state: choose another {option}"
            )
        names = [place.name for place in folder.iterdir()] if folder.is_dir() else []
        links = [name for name in names if (folder / name).is_symlink() and OWN.fullmatch(name)]
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{shorten(folder)} cannot be read: {why}: choose another {option}") from None
    if links:
        raise RunError(f"{folder / links[0]} is a link, expected a file that a stream wrote: remove the link")
    foreign = sorted(name for name in names if OWN.fullmatch(name) is None)
    if foreign and RECORD not in names:
        raise RunError(
            f"{folder} holds {quote(foreign[0])}, which no stream wrote: choose another {option}, or an empty folder"
        )


@contextmanager
def lock_state(folder: Path) -> Iterator[None]:
    """Let one stream at a time have a state. The operating system drops the lock of a process that dies."""
    _check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=0)
        lock.acquire()
    except Timeout:
        raise RunError(
            f"{folder} is the state of a stream that runs: stop that, or choose another {name_option('--state')}"
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{shorten(folder)} cannot be locked: {why}: choose another {name_option('--state')}") from None
    try:
        yield
    finally:
        lock.release()
