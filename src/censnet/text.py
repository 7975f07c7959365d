"""Words of messages: counts with their noun, and sizes."""

from __future__ import annotations

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
