"""Names with every control character and with markup, on the screens of every command: nothing of it acts there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hostile.place import Place
from hostile.runs import IDS, trained
from hostile.tables import world, write_all

CONTROLS = {f"U+{number:04X}": chr(number) for number in [*range(1, 0x20), 0x7F, *range(0x80, 0xA0)]}
_NUMBERS = [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xFFF9, 0xE0001]
FORMATS = {f"U+{number:04X}": chr(number) for number in (0xAD, 0x61C, 0x180E, *_NUMBERS)}
MARKUP = {
    "close": "[/x]", "close-all": "[/]", "red": "[red]", "bold": "[bold]x[/bold]", "link": "[link=file:///etc/passwd]x",
    "open": "[", "shut": "]", "backslash": "\\[red]",
    "emoji": ":smile:", "percent": "%s%d%n", "percent-alone": "100%", "braces": "{}", "brace-name": "{0.__class__}",
    "dollar": "${HOME}", "backquote": "`id`", "escape-text": "\\x1b[31m",
    "csi": "\x1b[2J\x1b[H", "title": "\x1b]0;owned\x07", "hyperlink": "\x1b]8;;http://x\x1b\\x",
    "eight-bit-csi": "\x9b31m", "carriage": "fine\rerror: gone", "backspaces": "abc\b\b\bxyz",
    "bell": "\x07\x07", "bidi": "\u202egnp.exe", "isolate": "\u2067abc\u2069", "zalgo": "a" + "\u0301" * 50,
    "html": "<script>alert(1)</script>", "at-repr": "@repr", "hash": "#ff0000", "tilde": "~", "star": "*",
    "quote": '"', "apostrophe": "'", "wide": "\uff21" * 60, "long": "x" * 3000, "markdown": "**x**",
    "null-word": "None", "comma": "a, b", "equals": "a=b", "colon": "a:b",
}  # fmt: skip


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Each character and each markup in names of columns, classes, ids, categories and files."""
    roles = ("column", "class", "id", "category", "file", "target", "folder")
    for number, (name, sign) in enumerate((CONTROLS | FORMATS).items()):
        role = roles[number % len(roles)]
        yield f"{name}-{role}", partial(_name, role, f"a{sign}b")
        yield f"{name}-unknown-target", partial(_argument, f"node:a{sign}b")
    for number, (name, text) in enumerate(MARKUP.items()):
        for step in range(3):
            role = roles[(number + step * 2) % len(roles)]
            yield f"{name}-{role}", partial(_name, role, text)
        yield f"{name}-unknown-target", partial(_argument, f"node:{text}" + "?")
    for number, (name, text) in enumerate(MARKUP.items()):
        flag = ("--set", "--column", "--preset", "--device", "--level")[number % 5]
        yield f"{name}-as-{flag.strip('-')}", partial(_flag, flag, text)


def _name(role: str, text: str, place: Place) -> None:
    """`inspect` shows the data with such a name, and nothing of it acts on the screen."""
    written, target, folder = world(IDS), "node:label", place.data
    nodes = written["nodes"]
    if role == "column":
        nodes[text] = nodes.pop("age")
    elif role == "target":
        nodes[text] = nodes.pop("label")
        target = f"node:{text}" if not set(text) & set(',"=:*') else 'node:"' + text.replace('"', '""') + '"'
    elif role == "class":
        nodes["label"] = [text if label == "a" else label for label in nodes["label"]]
    elif role == "id":
        nodes["id"][0] = text  # no edge knows it by that name
        written["edges"]["source"][3] = text + "?"
    elif role == "category":
        nodes["city"] = [text if city == "Oslo" else city for city in nodes["city"]]
    else:
        name = text.replace("/", "_")[:100]
        folder = place.data / name if role == "folder" else place.data
        try:
            folder.mkdir(exist_ok=True)
        except OSError:
            return
    write_all(folder, written)
    data: Path = folder
    if role == "file":
        data = place.data / f"{text.replace('/', '_')[:100]}.csv"
        (place.data / "edges.csv").rename(data)
        target = "edge:fraud"
    screen = place.command("inspect", data, "--target", target)
    assert screen.code == 0, f"it cannot be inspected: {screen.text[:300]}"
    markers = {"red": "[red]", "close": "[/x]", "bold": "[bold]x[/bold]"}
    if role in ("column", "class") and text in markers.values():
        assert text in screen.text, f"{text} is not shown as it is written"


def _argument(target: str, place: Place) -> None:
    """A line that repeats what was typed is one line, and harmless."""
    write_all(place.data, world(IDS))
    place.refusal(place.command("inspect", place.data, "--target", target))


def _flag(flag: str, text: str, place: Place) -> None:
    write_all(place.data, world(IDS))
    if flag == "--level":
        screen = place.command("predict", trained("node").path, place.data, flag, text, "--to", place.folder / "x.csv")
    else:
        screen = place.command("train", place.data, "--target", "node:label", "--out", place.out, flag, text)
    assert screen.code == 2, f"{flag} {text!r} was taken"
