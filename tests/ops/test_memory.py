"""Keeping freed memory, asked of a C library that only writes down what it is asked."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest

from censnet.cli.heap import keep_heap


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
