"""Nothing of a user's text reaches the terminal as markup or as a control code: every command, in and out of one."""

from __future__ import annotations

import ast
import contextlib
import csv
import io
import os
import pty
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Group
from rich.table import Table
from typer.testing import CliRunner

import censnet
from censnet.cli.app import app
from censnet.console import LONGEST, Console, Text, printable
from censnet.text import count, plural

BLINK = "\x1b[5m"  # which nothing of ours ever writes
EVIL = f"[/x][red]{BLINK}\x1b]0;t\x07:smile:\x08\r\t\u202e\u2066\u200b\u2028\x9b5m%s%(x)d{{0}}{{task}}\\[b]"
NAME = f"[/x][red]{BLINK}:smile:\r\u202e%s{{0}}".replace("/", "")  # of a file
CODES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
SMALL = [
    "--set",
    "training.epochs=2",
    "--set",
    "model.hidden=8",
    "--set",
    "model.head=[]",
    "--set",
    "training.self_training_rounds=1",
]


def own(text: bytes) -> bytes:
    """What is left without rich's own codes and newlines."""
    assert BLINK.encode() not in text
    return CODES.sub(b"", text).replace(b"\r\n", b"\n")


def check(text: bytes, terminal: bool = False) -> None:
    """No control character but newline; in a terminal, rich's own colors and the carriage return of its bar."""
    if terminal:
        text = own(text).replace(b"\r", b"")
    shown = text.decode("utf-8").replace("\n", "")
    assert [letter for letter in shown if not letter.isprintable()] == []


@contextlib.contextmanager
def terminal() -> Iterator[Any]:
    """stdout and stderr are a terminal of this process; gives a function that returns what it was sent."""
    master, slave = pty.openpty()
    found: list[bytes] = []

    def drain() -> None:
        with contextlib.suppress(OSError):
            while more := os.read(master, 65536):
                found.append(more)

    gate_weight = threading.Thread(target=drain)
    gate_weight.start()
    stream = os.fdopen(slave, "w", encoding="utf-8")
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = stream
    try:
        yield lambda: b"".join(found)
    finally:
        sys.stdout, sys.stderr = before
        stream.close()
        gate_weight.join(10)
        os.close(master)


def run_in_terminal(*arguments: str | Path) -> bytes:
    with terminal() as sent, contextlib.suppress(SystemExit):
        app([str(argument) for argument in arguments])
    return sent()


def run(*arguments: str | Path) -> tuple[int, bytes]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "100"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout_bytes + result.stderr_bytes


def write(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an evil name, whose tables have evil names, ids, values and labels in every position."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("evil") / NAME
    folder.mkdir()
    ids = [f"{EVIL}{number}" for number in range(40)]
    nodes = {
        "id": ids,
        EVIL: rng.normal(size=40),
        EVIL + "job": rng.choice([EVIL + "a", EVIL + "b"], 40),
        EVIL + "once": 1,
        EVIL + "text": [f"{EVIL} {number}" for number in rng.permutation(40)],
        EVIL + "leak": [EVIL + "p", EVIL + "q"] * 20,
        EVIL + "y": [EVIL + "no", EVIL + "yes"] * 20,
    }
    write(pd.DataFrame(nodes), folder / "nodes.csv")
    start = rng.integers(0, 40, 120)
    edges = pd.DataFrame(
        {"source": [ids[n] for n in start], "target": [ids[(n + 1 + k % 38) % 40] for k, n in enumerate(start)]}
    )
    edges[EVIL + "amount"] = rng.normal(size=120).round(3).astype(str)
    edges[EVIL + "z"] = rng.choice([EVIL + "r", EVIL + "s", EVIL + "t"], 120)
    edges.loc[3, "target"], edges.loc[5, EVIL + "amount"] = "nobody" + EVIL, "x" + EVIL
    write(edges, folder / "edges.csv")
    return folder


@pytest.fixture(scope="module")
def trained(place: Path) -> Path:
    out = place.parent / (NAME + "run")
    code, text = run("train", place, "--target", f"node:{EVIL}y", "--target", f"edge:{EVIL}z", "--out", out, *SMALL)
    assert code == 0, text
    check(text)
    assert b"[red]" in text  # words are not markup
    assert b"\\x1b[5m" in text
    assert b":smile:" in text
    return out


@pytest.mark.slow
def test_every_command_shows_names_as_they_are_written_and_no_control_character(place: Path, trained: Path) -> None:
    target = ["--target", f"node:{EVIL}y"]
    for arguments in (
        ["inspect", place, *target],
        ["inspect", place, *target, "--json"],
        ["predict", trained, place, "--to", place.parent / (NAME + "answers")],
        ["embed", trained, place, "--to", place.parent / (NAME + "embedded")],
        ["evaluate", trained, place],
        ["evaluate", trained, place, "--json"],
    ):
        code, text = run(*arguments)
        assert code == 0, text
        check(text)


@pytest.mark.slow
def test_every_mistake_is_told_in_one_line_without_a_control_character(place: Path, trained: Path) -> None:
    for arguments in (
        ["train", place, "--target", "node:" + EVIL, "--set", EVIL + "=1"],
        ["train", place, "--target", f"node:{EVIL}y", "--set", f"model.layers={EVIL}"],
        ["train", place, "--target", f"node:{EVIL}y", "--set", f"model.kernel={EVIL}"],
        ["train", place, "--target", f"node:{EVIL}nowhere"],
        ["train", place, "--target", EVIL],
        ["train", place, "--target", f"node:{EVIL}y", "--column", EVIL],
        ["train", place, "--target", f"node:{EVIL}y", "--column", f"{EVIL}={EVIL}"],
        ["train", place, "--target", f"node:{EVIL}y", "--preset", EVIL],
        ["train", place, "--target", f"node:{EVIL}y", "--device", EVIL],
        ["train", place, "--target", f"node:{EVIL}y", "--out", trained],
        ["train", place, "--target", f"node:{EVIL}y", "--strict", "--out", place.parent / "strict"],
        ["train", place / EVIL],
        ["train", place, "--" + EVIL],
        ["train", place, "--vary", EVIL],
        ["inspect", place, "--target", f"node:{EVIL}y", "--splits", EVIL],
        ["inspect", EVIL],
        ["predict", EVIL, place],
        ["predict", trained, EVIL],
        ["predict", trained, place, "--level", EVIL],
        ["predict", place, place],
        ["evaluate", trained, EVIL],
        ["embed", trained, EVIL, "--to", "x"],
        ["settings", EVIL],
        ["datasets", EVIL],
        ["reproduce", EVIL],
        [EVIL],
    ):
        code, text = run(*arguments)
        assert code == 2, text
        check(text)
        line = text.decode().splitlines()[-1]
        assert line.startswith("error: "), text
        assert len([each for each in text.decode().splitlines() if each.startswith("error: ")]) == 1
        assert len(line) < 6000


@pytest.mark.slow
def test_a_terminal_is_sent_rich_s_own_codes_and_no_others(place: Path, trained: Path) -> None:
    out = place.parent / (NAME + "again")
    for arguments in (
        ["inspect", place, "--target", f"node:{EVIL}y"],
        ["train", place, "--target", f"node:{EVIL}y", "--out", out, *SMALL],
        ["predict", trained, place, "--level", "node"],  # the table itself, as CSV
        ["evaluate", trained, place],
        ["train", place, "--target", EVIL],
        ["train", "--" + EVIL],
    ):
        text = run_in_terminal(*arguments)
        assert text
        check(text, terminal=True)


def test_a_file_whose_name_is_no_text_is_refused_in_one_line(place: Path) -> None:
    path = place.parent / "\udc80.csv"
    path.write_bytes(b"smiles,y\nC,1\n")
    code, text = run("inspect", path)
    assert code == 2
    check(text)
    assert b"\\udc80.csv: has bytes in its name or path that are no text, expected UTF-8: rename it" in text
    for arguments in (["predict", path, path], ["train", path / "x"], ["train", place, "--target", "\udc80"]):
        check(run(*arguments)[1])


def test_a_table_in_a_pipe_is_the_user_s_own_to_the_byte(place: Path, trained: Path) -> None:
    result = CliRunner().invoke(app, ["predict", str(trained), str(place), "--level", "node"])
    frame = pd.read_csv(io.BytesIO(result.stdout_bytes), lineterminator="\n")
    assert frame["id"].iloc[0] == f"{EVIL}0"


def test_a_stream_that_knows_ascii_alone_is_sent_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    Console(file=stream).print(Text("Zürich"))
    assert raw.getvalue() == b"Z\\xfcrich\n"


def test_cells_are_measured_as_they_are_shown() -> None:
    out = io.StringIO()
    table = Table.grid(padding=(0, 1))
    table.add_row("a\x1bb\nc", Text("end"))
    table.add_row(Text.assemble(("\x07", "bold"), "[b]"), "end")
    Console(file=out, width=40).print(Group(table))
    assert [line.rstrip() for line in out.getvalue().splitlines()] == [r"a\x1bb\nc end", r"\x07[b]   end"]


@pytest.mark.slow
def test_only_one_module_makes_consoles_and_texts() -> None:
    source, found = Path(censnet.__file__).parent, []
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in ("rich", "rich.text", "rich.panel", "rich.markup"):
                found.append(path.name)
            elif isinstance(node, ast.ImportFrom) and node.module in ("rich.console", "rich.progress"):
                bad = {"Console", "TextColumn"} & {alias.name for alias in node.names}
                found += [path.name] if bad else []
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                found.append(path.name)
    assert found == []


def test_printable_escapes_what_repr_escapes_and_nothing_else() -> None:
    every = [chr(code) for code in range(0x3000)] + ["\udc80", "\U000e0001", "\ufeff", "東", "[", "%", "{", "🙂"]
    for letter in every:
        expected = repr(letter)[1:-1] if letter not in "\\'\"" else letter
        assert printable(letter) == expected
    assert printable("a\nb", lines=True) == "a\nb"
    assert len(printable("x" * 10**6)) < LONGEST + 50


@pytest.mark.parametrize(
    ("number", "one", "expected"), [(0, "row", "0 rows"), (1, "row", "1 row"), (1000, "class", "1,000 classes")]
)
def test_a_count_has_its_noun(number: int, one: str, expected: str) -> None:
    assert count(number, one) == expected
    assert plural(number, "has") == ("has" if number == 1 else "have")
