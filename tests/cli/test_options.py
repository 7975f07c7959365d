"""Keeping freed memory, asked of a C library that only writes down what it is asked."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from censnet.cli.options import keep_heap


def test_the_c_library_is_told_to_keep_its_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda name, value: asked.append((name, value)) or 1)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(sys, "platform", "linux")
    assert keep_heap() is True
    assert asked == [(-4, 0), (-1, -1)]  # M_MMAP_MAX, M_TRIM_THRESHOLD


def test_elsewhere_nothing_is_done_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    monkeypatch.setattr(sys, "platform", "linux")
    assert keep_heap() is False
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_heap() is False


PROGRAM = """
import ctypes, json, sys
asked = []
class Library:
    def __init__(self, name=None, *rest, **options): pass
    def mallopt(self, name, value):
        asked.append((name, value))
        return 1
import censnet, censnet.nn, censnet.ops, censnet.pipeline, censnet.runs, censnet.cli.app
before = ctypes.CDLL
ctypes.CDLL = lambda name, *rest, **options: Library() if name is None else before(name, *rest, **options)
counts = []
for words in json.loads(sys.argv[1]):
    asked.clear()
    if words == ["library"]:
        censnet.train("karate", "node:faction", settings={"training.epochs": 1}).predict("karate")
    else:
        try:
            censnet.cli.app.app(words)
        except SystemExit:
            pass
    counts.append(len(asked))
sys.stdout.flush()
print("asked", counts)
"""


@pytest.mark.slow
def test_commands_that_compute_keep_their_heap_and_the_library_does_not(tmp_path: Path) -> None:
    times = {
        "library": 0,
        "settings node --json": 0,
        "train karate --out run --set training.epochs=1 --quiet": 2,
        "predict nowhere karate": 2,
    }
    command = [sys.executable, "-c", PROGRAM, json.dumps([words.split() for words in times])]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert found.stdout.splitlines()[-1] == f"asked {list(times.values())}", found.stderr
