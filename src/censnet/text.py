"""Words of messages: counts with their noun, and sizes."""

from __future__ import annotations

import re

PLURALS = {
    "batch": "batches",
    "class": "classes",
    "process": "processes",
    "try": "tries",
    "is": "are",
    "has": "have",
    "was": "were",
    "does": "do",
    "stands": "stand",
    "gets": "get",
}
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}  # of each unit
LONGEST = 10**9  # seconds


def plural(number: int, one: str, many: str | None = None) -> str:
    """The noun, or the verb, that goes with a number.

    >>> plural(1, "row"), plural(0, "row"), plural(2, "class"), plural(3, "has")
    ('row', 'rows', 'classes', 'have')
    """
    return one if number == 1 else many or PLURALS.get(one, one + "s")


def count(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> count(1, "molecule"), count(1200, "molecule"), count(2, "class")
    ('1 molecule', '1,200 molecules', '2 classes')
    """
    return f"{number:,} {plural(number, one, many)}"


def format_bytes(number: float) -> str:
    """A size in decimal units.

    >>> format_bytes(512), format_bytes(1_900), format_bytes(50e9)
    ('512 bytes', '1.9 kB', '50 GB')
    """
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.1f} {units[0]}" if number < 10 and units[0] != "bytes" else f"{number:,.0f} {units[0]}"


def read_seconds(text: str | float) -> float | None:
    """A time as it is typed, in seconds; None if it is not one above 0.

    >>> read_seconds("10m"), read_seconds("1.5 h"), read_seconds(90), read_seconds("soon"), read_seconds("0s")
    (600.0, 5400.0, 90.0, None, None)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smhd]?)\s*", str(text).lower())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    return seconds if 0 < seconds <= LONGEST else None


def show_seconds(seconds: float) -> str:
    """A time for the user.

    >>> show_seconds(45), show_seconds(600), show_seconds(5400)
    ('45 s', '10 min', '1.5 h')
    """
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"
