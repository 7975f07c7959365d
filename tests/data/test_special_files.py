"""Pipes, devices, sockets and folders where a file is expected: one line that says what to do, at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from censnet.data import DataError, load_data
from censnet.data.splits.split_file import read_splits
from censnet.data.tables.files import read_table


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    os.chdir(path.parent)  # a name may be longer than an address may
    server.bind(path.name)
    server.close()


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = {"a pipe": make_pipe, "a socket": make_socket, "a device": make_device}


@pytest.fixture(autouse=True)
def back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "make"), KINDS.items())
def test_what_is_no_file_is_named_and_not_opened(kind: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    make(path)
    message = f"edges.csv: is {kind}, expected a file.*: write what comes out of it to a file first"
    with pytest.raises(DataError, match=message):
        load_data(path)
    with pytest.raises(DataError, match=message):
        load_data(tmp_path)  # a folder whose table it is
    with pytest.raises(DataError, match=message):
        read_table(path)
    with pytest.raises(DataError, match=message):
        read_splits(path)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero", "/dev/stdin"])
def test_devices_are_no_data(name: str) -> None:
    with pytest.raises(
        DataError, match=f"{name}: is a (device|pipe), expected a file or a folder: write what comes out"
    ):
        load_data(name)


def test_a_folder_where_a_file_is_expected(tmp_path: Path) -> None:
    (tmp_path / "splits.csv").mkdir()
    with pytest.raises(DataError, match=r"splits\.csv: is a folder, expected a file"):
        read_splits(tmp_path / "splits.csv")


def test_a_link_that_leads_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    pd.DataFrame({"source": [1], "target": [2]}).to_csv(tmp_path / "edges.csv", index=False)
    (tmp_path / "nodes.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(DataError, match=r"nodes\.csv: there is no such file"):
        load_data(tmp_path)


def test_a_file_that_may_not_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n1,2\n")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("censnet.data.tables.files.read_csv", refuse)
    with pytest.raises(DataError, match=r"^edges\.csv: cannot be read: Permission denied$"):
        load_data(path)
