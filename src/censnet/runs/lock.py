"""The lock of a run directory, so that one training at a time runs in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from censnet.errors import RunError, shorten
from censnet.option_names import name_option

LOCK = ".lock"  # held by the process that trains in the directory


def run_dir(out: str | os.PathLike[str]) -> Path:
    """The directory that a user names for a run: a folder, or nothing yet. A symlink is not written through.

    An empty name, as of a variable that is not set, is refused rather than taken for the working directory.
    """
    if not os.fspath(out).strip():
        raise RunError(f"out is {os.fspath(out)!r}, expected the name of a folder for the run")
    folder = Path(out)
    try:
        is_link, is_file = folder.is_symlink(), folder.exists() and not folder.is_dir()
    except (OSError, ValueError) as error:  # too long, or with a NUL
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{shorten(folder)} cannot be a folder: {why}: choose another {name_option('--out')}") from None
    if is_link:
        raise RunError(
            f"{folder} is a link to {os.readlink(folder)}, expected a folder: give that one as {name_option('--out')}"
        )
    if is_file:
        raise RunError(f"{folder} is a file, expected a directory for the run")
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one training at a time run in a directory. The operating system drops the lock of a process that dies."""
    run_dir(folder)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{folder} cannot be made: {why}: choose another {name_option('--out')}") from None
    path = folder.resolve() / LOCK  # only the folder is resolved: the file itself could be a link
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RunError(f"{path} is a link, a folder or a pipe, expected a file: remove it")
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(
            f"{folder} is being trained in by another process: wait for it, or choose another {name_option('--out')}"
        ) from None
    except OSError as error:
        raise RunError(f"{path} cannot be locked: {error.strerror}: choose another {name_option('--out')}") from None
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)  # while it is held: a process that has opened it sees that it is gone
        finally:
            lock.release()
        if made and not any(folder.iterdir()):
            folder.rmdir()
