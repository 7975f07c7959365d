"""Errors in one line, bugs with the advice to run again with --debug, tracebacks with it, notes once."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from censnet.cli.app import app
from censnet.cli.messages import ConsoleHandler
from censnet.errors import TrainingInterrupted


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})


def _break(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `censnet inspect` raise."""
    import censnet.pipeline

    def inspect_data(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(censnet.pipeline, "inspect_data", inspect_data)


@pytest.mark.parametrize("error", [KeyError("weight"), ValueError("bad\nshapes"), AssertionError(), TypeError("x")])
def test_an_unexpected_exception_is_one_line_that_says_it_is_a_bug(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    _break(monkeypatch, error)
    result = run("inspect", "karate")
    (line,) = result.stderr.splitlines()
    assert result.exit_code == 2
    assert line.startswith(f"error: {type(error).__name__}: ")
    assert line.endswith("(this is a bug: run again with --debug to see where, and report it)")


@pytest.mark.parametrize("arguments", [["--debug", "inspect", "karate"], ["inspect", "--debug", "karate"]])
def test_debug_shows_the_traceback_before_the_line(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    _break(monkeypatch, KeyError("\x1b[5mweight"))
    result = run(*arguments)
    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert lines[0] == "Traceback (most recent call last):"
    assert any("in inspect_data" in line for line in lines)
    assert lines[-1].startswith("error: KeyError: ")
    assert "\x1b" not in result.stderr


def test_debug_shows_where_an_error_of_the_data_was_found() -> None:
    result = run("inspect", "no/such/folder", "--debug")
    assert "DataError" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: no/such/folder: there is no such file")


def test_memory_that_runs_out_and_ctrl_c_are_no_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 512 bytes."))
    result = run("inspect", "karate")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: out of memory (512 bytes were asked for): give fewer rows")
    _break(monkeypatch, KeyboardInterrupt())
    result = run("inspect", "karate")
    assert (result.exit_code, result.stderr) == (130, "stopped\n")


@pytest.mark.parametrize("run_dir", [None, Path("runs/a")])
def test_an_interrupted_training_knows_whether_it_was_saved(run_dir: Path | None) -> None:
    error = TrainingInterrupted("stopped after epoch 2", run_dir)
    assert (error.reached, error.saved) == ("stopped after epoch 2", run_dir is not None)


def test_a_training_interrupted_before_its_first_checkpoint_saved_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TrainingInterrupted("stopped after epoch 0")

    monkeypatch.setattr(sys.modules["censnet.pipeline"], "train", fail)
    result = run("train", "karate", "--out", str(tmp_path / "run"))
    assert (result.exit_code, result.stderr) == (130, "stopped after epoch 0: nothing was saved\n")


def test_a_note_is_shown_once_with_its_mark_and_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    handler = ConsoleHandler()
    logger = logging.getLogger("censnet.test_messages")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    long = "word " * 50
    try:
        for _ in range(2):
            logger.info("a [bold]note[/bold] of %d", 3)
            logger.warning("beware of %s", "\x1b[5m")
            logger.info(long)
    finally:
        logger.removeHandler(handler)
    assert capsys.readouterr().err == f"· a [bold]note[/bold] of 3\n! beware of \\x1b[5m\n· {long.strip()} \n"
