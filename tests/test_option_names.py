"""Messages name options as the caller gives them: arguments in Python, flags on the command line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from commands import run

from censnet import load_data
from censnet.cli.messages import report_errors
from censnet.errors import DataError, RunError
from censnet.option_names import ARGUMENTS, FLAGS, column_option, name_option, resume_option
from censnet.pipeline import resume_run, train
from censnet.runs import load_run


def test_the_same_mistake_names_an_argument_in_python_and_a_flag_on_the_command_line(tmp_path: Path) -> None:
    edges = pd.DataFrame({"payer id": ["a", "b"], "payee id": ["b", "c"]})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    with pytest.raises(DataError, match=r"overrides={'payer id': 'source', 'payee id': 'target'}") as caught:
        load_data(tmp_path / "edges.csv")
    assert "--" not in str(caught.value)
    typed = run("inspect", str(tmp_path / "edges.csv")).output
    assert "--column 'payer id=source' --column 'payee id=target'" in typed
    assert "overrides" not in typed


def test_what_is_in_the_run_directory_is_named_either_way(tmp_path: Path) -> None:
    train("karate", "node:faction", tmp_path / "run", settings={"training.epochs": 1, "model.hidden": 4})
    with pytest.raises(RunError, match="choose another out, or if_exists='overwrite' to replace it"):
        train("karate", "node:faction", tmp_path / "run")
    typed = run("train", "karate", "--target", "node:faction", "--out", str(tmp_path / "run"))
    assert "choose another --out, or --overwrite to replace it" in typed.output


def test_the_call_that_a_message_gives_is_there(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(RunError, match="is not finished") as caught:
        load_run(tmp_path)
    package = resume_run.__module__.rpartition(".")[0]
    assert f"{package}.{resume_run.__name__}({str(tmp_path)!r})" in str(caught.value)


def test_flags_end_with_the_command() -> None:
    with report_errors():
        assert resume_option("a b") == "censnet train --resume --out 'a b'"
    assert run("inspect", "nowhere").exit_code == 2
    assert not FLAGS.get()
    assert [name_option(flag) for flag in ARGUMENTS] == list(ARGUMENTS.values())
    assert column_option(("a", "drop")) == "overrides={'a': 'drop'}"
