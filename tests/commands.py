"""The commands as a person types them, run in this process."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from censnet.cli.app import app

SMALL = ["--set", "model.hidden=8", "--set", "model.dropout=0.2", "--set", "training.patience=none", "--device", "cpu"]
SMILES = ["CO", "CCO", "CCCO", "CC(C)O", "OCC=C", "OC1CCCC1", "OCCO", "CCCCO", "OCC#C", "CC(O)CC"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "100"})


def succeed(*arguments: str | Path) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def epochs(count: int) -> list[str]:
    return [*SMALL, "--set", f"training.epochs={count}"]
