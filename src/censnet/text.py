"""Formatting of text: characters that are safe on a terminal, counts with their noun, sizes."""

from __future__ import annotations

LONGEST = 5_000  # characters of one line or cell; a path has at most 4,096
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


def printable(text: str, *, lines: bool = False, longest: int = LONGEST) -> str:
    r"""Text with every character that a terminal would act on, or not show, written as `repr` writes it.

    These are control characters (escape sequences, carriage return, bell), directional overrides, characters without
    width, line separators, and bytes of a file name that are no text.

    Args:
        text: from a user's file, name or setting, or from a library.
        lines: whether a line feed stays one.
        longest: characters that are shown at most.

    Example:
        >>> print(printable("\x1b[31mred\r\u202eevil"))
        \x1b[31mred\r\u202eevil
        >>> printable("Zürich, 東京 [red]")
        'Zürich, 東京 [red]'
    """
    if len(text) > longest:
        text = f"{text[:longest]}... ({len(text):,} characters)"
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or (lines and letter == "\n") else ascii(letter)[1:-1] for letter in text
    )


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
