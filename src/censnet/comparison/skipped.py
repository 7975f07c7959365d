"""Why a method is not in a comparison."""

from __future__ import annotations


class Skipped(Exception):  # noqa: N818 - what happened, as KeyboardInterrupt says it
    """A method that cannot be fitted to some data, with the reason for the user."""


NO_MOLECULES = "no column of molecules is predicted"  # a method for molecules alone is then not mentioned
