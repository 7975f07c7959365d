from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import censnet
from censnet.cli.app import app


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Payments with parallel edges and, in two rows, mistakes."""
    rng = np.random.default_rng(0)
    target = [f"acct-{n}" for n in rng.integers(0, 60, 400)]
    amount = [f"{value:.2f}" for value in rng.lognormal(3, 1, 400)]
    pd.DataFrame({"id": [f"acct-{n}" for n in range(60)], "age": rng.integers(18, 90, 60)}).to_csv(
        tmp_path / "nodes.csv", index=False
    )
    target[90], amount[17] = "acct-4000", "lots"
    pd.DataFrame(
        {
            "source": [f"acct-{n}" for n in rng.integers(0, 60, 400)],
            "target": target,
            "amount": amount,
            "currency": rng.choice(["EUR", "NOK"], 400),
            "time": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**6, 400), unit="s"),
            "is_fraud": rng.integers(0, 2, 400),
        }
    ).to_csv(tmp_path / "edges.csv", index=False)
    return tmp_path


@pytest.mark.slow
def test_inspect_shows_a_healthy_set_on_one_screen():
    result = run("inspect", "karate")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("karate  34 nodes")
    assert len(lines) <= 45
    assert "nothing wrong was found" in result.stdout


@pytest.mark.slow
def test_inspect_shows_problems_and_fails_only_when_strict(folder):
    result = run("inspect", str(folder), "--target", "edge:is_fraud")
    assert result.exit_code == 0
    assert "2 of 400 rows of edges.csv cannot be used" in " ".join(result.stdout.split())
    assert "row 18, column amount" in " ".join(result.stdout.split())
    assert run("inspect", str(folder), "--target", "edge:is_fraud", "--strict").exit_code == 1
    assert run("inspect", "karate", "--strict").exit_code == 0


@pytest.mark.slow
def test_inspect_json_is_json_alone(folder):
    result = run("inspect", str(folder), "--target", "edge:is_fraud", "--json")
    report = json.loads(result.stdout)
    assert report["structure"]["edges"] == 398
    assert report["structure"]["parallel"] > 0
    assert report["labels"][0]["target"] == "edge:is_fraud"
    problem, warning = report["findings"]
    assert (problem["level"], warning["level"]) == ("problem", "warning")
    assert "2 of 400 rows" in problem["what"]
    assert "time" in warning["what"]


@pytest.mark.slow
def test_inspect_audits_a_splits_file(folder):
    rows = "".join(f"edges,{row},{'train' if row < 300 else 'test'}\n" for row in range(1, 401))
    (folder / "splits.csv").write_text("table,row,split\n" + rows)
    result = run("inspect", str(folder), "--target", "edge:is_fraud", "--splits", str(folder / "splits.csv"), "--json")
    report = json.loads(result.stdout)
    assert report["splits"]["edges"] == {"train": 299, "validation": 0, "test": 101}
    whats = [finding["what"] for finding in report["findings"]]
    assert any("test rows have their reverse in training" in what for what in whats)
    assert any("no row of the validation part has a label" in what for what in whats)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "{}/nowhere"], "there is no such file, folder or data set"),
        (["inspect", "{}/empty"], "holds no nodes, edges or graphs table"),
        (["inspect", "{}", "--target", "edge:fraud"], "column fraud"),
        (["inspect", "{}", "--target", "fraud"], "expected node:COLUMN"),
        (["inspect", "{}", "--splits", "{}/none.csv"], "none.csv: there is no such file"),
        (["datasets", "coar"], "there is no data set 'coar'"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_two(folder, arguments, message):
    (folder / "empty").mkdir()
    result = run(*(argument.format(folder) for argument in arguments))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_name_with_brackets_is_not_taken_for_markup():
    result = run("inspect", "no[bold]where")
    assert "no[bold]where" in result.stderr


def test_datasets_lists_every_set_with_size_licence_and_place():
    result = run("datasets")
    assert result.exit_code == 0
    for word in ("cora", "citeseer", "pubmed", "tox21", "lipophilicity", "karate", "CC0", "2,708 nodes", "found"):
        assert word in result.stdout


def test_datasets_tells_more_about_one_and_speaks_json():
    result = run("datasets", "karate")
    assert "node:faction" in result.stdout
    (found,) = json.loads(run("datasets", "karate", "--json").stdout)
    assert found["counts"]["nodes"] == 34
    assert len(json.loads(run("datasets", "--json").stdout)) >= 6


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    for command in [
        "train",
        "predict",
        "embed",
        "evaluate",
        "compare",
        "explain",
        "report",
        "settings",
        "inspect",
        "datasets",
    ]:
        assert f"{command} " in result.output


@pytest.mark.slow
def test_help_waits_for_nothing_heavy():
    code = """
import sys
from typer.testing import CliRunner
import censnet
from censnet.cli.app import app
for command in ([], ["train"], ["predict"], ["report"], ["settings"]):
    assert CliRunner().invoke(app, [*command, "--help"]).exit_code == 0
print(*sorted({"torch", "pandas", "numpy", "sklearn", "matplotlib"} & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "\n"


@pytest.mark.parametrize(
    "command", [None, "train", "predict", "embed", "evaluate", "compare", "explain", "settings", "inspect", "datasets"]
)
def test_help_shows_no_value_after_a_flag_and_no_type_of_python(command):
    result = run(*([] if command is None else [command]), "--help")
    assert result.exit_code == 0
    options = result.stdout[result.stdout.index("Options") :]
    assert not {"<bool>", "<str>", "<int", "<list", "<path>"} & {word for word in options.split() if word[:1] == "<"}
    assert "<bool>" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["train", "--resum"], "no such option: --resum"),
        (["train", "karate", "--seed", "x"], "'--seed': expected a whole number"),
        (["train", "karate", "--seed", "-1"], "'--seed': expected at least 0"),
        (["train", "karate", "--resume=yes"], "'--resume' does not take a value"),
        (["train", "karate", "--vary", "x"], "'x' is not one of 'both', 'split', 'init'"),
        (["predict"], "missing argument 'RUN'"),
        (["bogus"], "no such command 'bogus'"),
    ],
)
def test_a_mistake_in_what_is_typed_is_one_line_that_names_the_help(arguments, text):
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert text in line
    assert line.endswith("--help lists what can be given")


@pytest.mark.slow
def test_one_of_something_is_singular_on_every_screen(tmp_path):
    nouns = "rows|nodes|edges|graphs|molecules|channels|features|components|loops|links|batches|columns|trainings"
    one = re.compile(rf"(?<![\d.,-])1 ({nouns}|parallel edges)\b")
    pd.DataFrame({"smiles": ["CC"]}).to_csv(tmp_path / "one.csv", index=False)
    pd.DataFrame({"smiles": ["CC", "CO", "C1C", "CN"] * 3, "y": [1.5, 2.5, 3.5, 0.5] * 3}).to_csv(
        tmp_path / "some.csv", index=False
    )
    small = ["--set", "training.epochs=1", "--set", "model.hidden=8", "--out", str(tmp_path / "run")]
    said = []
    for arguments in (
        ["inspect", str(tmp_path / "one.csv")],
        ["train", str(tmp_path / "some.csv"), "--target", "graph:y", *small],
        ["predict", str(tmp_path / "run"), str(tmp_path / "one.csv"), "--to", str(tmp_path / "answers.csv")],
        ["embed", str(tmp_path / "run"), str(tmp_path / "one.csv"), "--to", str(tmp_path / "embedded")],
    ):
        result = run(*arguments)
        assert result.exit_code == 0, result.stderr
        said.append(result.stdout + result.stderr)
    text = " ".join("\n".join(said).split())
    assert "answers.csv: 1 row" in text
    assert "edges.parquet: 1 row, 8 channels" in text
    assert one.findall(text) == []


def test_the_version_is_printed():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"censnet {censnet.__version__}\n"


@pytest.fixture
def accounts(folder: Path) -> Path:
    """The same payments in one file, whose ends have names of their own."""
    names = {"source": "payer_account", "target": "payee_account"}
    pd.read_csv(folder / "edges.csv").rename(columns=names).to_csv(folder / "payments.csv", index=False)
    return folder / "payments.csv"


def test_a_table_without_source_and_target_says_which_option_would_do(accounts):
    result = run("inspect", str(accounts))
    assert result.exit_code == 2
    assert "has the columns payer_account, payee_account, amount" in result.stderr
    assert "--column payer_account=source --column payee_account=target" in result.stderr
    result = run("inspect", str(accounts), "--column", "payer_account=source")
    assert "--column payee_account=target" in result.stderr


def test_inspect_takes_columns_as_train_does(accounts):
    ends = ["--column", "payer_account=source", "--column", "payee_account=target", "--column", "currency=drop"]
    result = run("inspect", str(accounts), "--target", "edge:is_fraud", *ends, "--json")
    report = json.loads(result.stdout)
    assert report["structure"]["edges"] == 399
    assert {column["name"]: column["kind"] for column in report["columns"]}["currency"] == "drop"
    result = run("inspect", str(accounts), "--column", "payer_acount=source", *ends)
    assert "no table has this column: did you mean payer_account?" in result.stderr
