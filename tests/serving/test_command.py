"""`censnet serve`, as it is typed: it says where it listens, answers, and stops by Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest
from commands import run
from serving_client import serving

from censnet.cli.serve import named_runs
from censnet.errors import ArgumentError


@pytest.mark.slow
def test_it_answers_at_its_address_until_ctrl_c(home: Path) -> None:
    with serving(home / "molecules", "--name", f"rings={home / 'many'}", "--workers", 1) as (address, process):
        request = urllib.request.Request(
            f"{address}predict", json.dumps({"run": "molecules", "smiles": ["CCO"]}).encode(),
            {"content-type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["predictions"]["graph"][0]["smiles"] == "CCO"
            assert "server" not in answer.headers
        with urllib.request.urlopen(f"{address}health", timeout=30) as answer:
            assert json.load(answer)["runs"] == ["molecules", "rings"]
        raw = socket.create_connection(("127.0.0.1", int(re.findall(r":(\d+)/", address)[0])), timeout=10)
        with raw:
            raw.sendall(b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: nonsense\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400 ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, ""), err
        assert out.strip() == "stopped"


def test_names_of_runs_are_words_and_differ(tmp_path: Path) -> None:
    assert named_runs([tmp_path / "a"], ["b=runs/c"]) == {"a": tmp_path / "a", "b": Path("runs/c")}
    for runs, names, words in (
        ([tmp_path / "a", tmp_path / "b" / "a"], [], "two runs are called 'a'"),
        ([tmp_path / "../x/<b>"], [], "no name of a run"),
        ([], ["a"], "expected NAME=RUN"),
        ([], ["=runs/a"], "no name of a run"),
        ([], [], "there is no run"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(words)):
            named_runs(runs, names)


def test_what_cannot_be_served_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("serve", tmp_path / "none")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "there is no run" in result.stderr
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "censnet.serving.app", raising=False)
    result = run("serve", tmp_path / "none")
    assert "pip install 'censnet[serve]'" in result.stderr


@pytest.mark.slow
def test_a_port_that_is_taken_is_said(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", home / "molecules", "--port", taken.getsockname()[1])
    assert (result.exit_code, "cannot be listened on" in result.stderr) == (2, True), result.stderr
