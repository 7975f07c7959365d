"""Errors of the disk that tables are on, whichever engine or library reports them."""

from __future__ import annotations

import errno
from pathlib import Path

from censnet.errors import RunError
from censnet.option_names import name_option


def explain_disk(error: Exception, folder: Path) -> Exception:
    """An error as ours, where it is of the disk; else the error itself."""
    text = str(error)
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in text or "max_temp_directory_size" in text:
        remedy = f"free some, or name another folder by {name_option('--spill')}"
        return RunError(f"there is no space left in {folder.parent.parent}: {remedy}")
    return error
