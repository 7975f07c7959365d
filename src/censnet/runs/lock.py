"""One training at a time in a run directory."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from censnet.errors import RunError, shorten

LOCK = ".lock"
_ATTEMPTS, _WAIT = 100, 0.02
_SAME_START = 2.0  # seconds that two readings of when a process started may differ by

_held: set[Path] = set()  # by this process, which a thread of its own may ask for again


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others from training in a directory. The lock of a process that is gone, as after a kill, is taken over.

    The file says which process on which machine holds it. Whether one of another machine is alive cannot be known here,
    so its lock stays until somebody removes it.
    """
    check_folder(folder)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{folder} cannot be made: {why}: choose another --out") from None
    path = folder.resolve() / LOCK  # of which only the folder is resolved: the file could be a link
    _take(path, folder)
    _held.add(path)
    try:
        yield
    finally:
        _held.discard(path)
        path.unlink(missing_ok=True)
        if made and not any(folder.iterdir()):
            folder.rmdir()


def named_folder(out: str | os.PathLike[str]) -> Path:
    """The folder that a user names; an empty name, as of a variable that is not set, is not the working directory."""
    if not os.fspath(out).strip():
        raise RunError(f"out is {os.fspath(out)!r}, expected the name of a folder for the run")
    return Path(out)


def check_folder(folder: Path) -> None:
    """Raise unless this can be a run directory: a folder, or nothing yet. A link is not written through."""
    try:
        is_link, is_file = folder.is_symlink(), folder.exists() and not folder.is_dir()
    except (OSError, ValueError) as error:  # too long, or with a NUL
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{shorten(folder)} cannot be a folder: {why}: choose another --out") from None
    if is_link:
        raise RunError(f"{folder} is a link to {os.readlink(folder)}, expected a folder: give that one as --out")
    if is_file:
        raise RunError(f"{folder} is a file, expected a directory for the run")


def _take(path: Path, folder: Path) -> None:
    mine = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": psutil.Process().create_time()})
    for attempt in range(_ATTEMPTS):  # others may take it over, or let it go, at the same moment
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            if _is_empty(path) and attempt < _ATTEMPTS // 2:
                time.sleep(_WAIT)  # it is being written, or its process was killed at that moment
            else:
                _remove_stale(path, folder)
            continue
        with os.fdopen(file, "w") as lock:
            lock.write(mine)
        return
    raise RunError(f"{path} cannot be taken: others take it over and over")


def _remove_stale(path: Path, folder: Path) -> None:
    """Put a lock that nobody holds out of the way; raise if somebody does."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise RunError(f"{path} is a link, a folder or a pipe, expected a file: remove it")
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return
    holder = _read(text)
    if path in _held or _is_alive(holder):
        who = f"process {holder['pid']} on {holder['host']}" if holder else "a process that does not say its name"
        raise RunError(
            f"{folder} is being trained in by {who}: wait for it, choose another --out, or remove {path} if it is gone"
        )
    aside = path.with_name(f"{LOCK}.{os.getpid()}")
    try:
        os.rename(path, aside)
        if aside.read_text() != text:  # another took the stale one over just before, and this is its own
            os.link(aside, path)
        aside.unlink()
    except (FileNotFoundError, FileExistsError):
        aside.unlink(missing_ok=True)


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return False


def _read(text: str) -> dict[str, Any]:
    """What a lock says; nothing if its process was killed while writing it."""
    try:
        found = json.loads(text)
        return {"pid": int(found["pid"]), "host": str(found["host"])[:200], "started": float(found["started"])}
    except (ValueError, KeyError, TypeError):
        return {}


def _is_alive(holder: dict[str, Any]) -> bool:
    """Whether the process that holds a lock may be running: a number is given again, but not with the same start."""
    if not holder:
        return False
    if holder["host"] != socket.gethostname():
        return True
    if holder["pid"] == os.getpid():
        return False  # it could not be removed, or it would be in `_held`
    try:
        return bool(abs(psutil.Process(holder["pid"]).create_time() - holder["started"]) < _SAME_START)
    except (psutil.Error, ValueError, OverflowError):
        return False
