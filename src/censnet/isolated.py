"""Python subprocesses that import nothing from the working directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def isolated_python(code: str, *arguments: str) -> list[str]:
    """The command of a Python subprocess with the import path of this process, without the working directory.

    Started with `-c` or `-m`, Python imports from the working directory first, so that a file there called `torch.py`
    would be executed in place of torch. Isolated mode prevents that, and ignores PYTHONPATH and the user's
    packages too; so the import path of this process is passed on.

    >>> isolated_python("pass")[1:3]
    ['-I', '-c']
    """
    return [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {_import_path()!r}; {code}", *arguments]


def _import_path() -> list[str]:
    """The import path of this process: absolute folders and archives, without the working directory."""
    try:
        working = Path.cwd().resolve()
    except OSError:  # it was removed
        working = None
    return [entry for entry in sys.path if entry and os.path.isabs(entry) and Path(entry).resolve() != working]


def this_python() -> str:
    """The Python of this process, for another program that starts it."""
    return sys.executable


@contextmanager
def safe_path() -> Iterator[None]:
    """Meanwhile a Python that is started, where there is no fork, imports nothing from the working directory."""
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
