"""`censnet train` as a person types it."""

from __future__ import annotations

import io
import json
import logging
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from commands import SMALL, SMILES, epochs, run, succeed
from typer.testing import CliRunner

from censnet.cli.app import app
from censnet.pipeline import train
from censnet.runs import load_run
from censnet.training.callbacks import Callback


@pytest.mark.slow
def test_train_takes_a_sets_own_target_and_shows_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = succeed("train", "karate", *epochs(3))
    folder = tmp_path / "runs" / "karate-faction"
    lines = result.stdout.splitlines()
    assert lines[0] == "runs/karate-faction  node:faction on karate (strong)"
    text = " ".join(result.stdout.split())
    assert (
        "node:faction is binary: one of two words; positive: Officer (the last of the two, 50 % of the labels)" in text
    )
    assert "34 nodes: 27 train, 4 validation, 3 test" in text
    assert "split drawn at random, stratified, seed 0 (27 train, 4 validation, 3 test)" in text
    found = load_run(folder)
    assert f"best epoch {found.config.best_epoch[0]} of 3, by auc on validation" in text
    head = next(number for number, line in enumerate(lines) if line.startswith("scores of nodes"))
    assert lines[head].split()[-3:] == ["train", "validation", "test"]
    shown = [f"{found.metrics[part]['node']['auc']:.4f}" for part in ("train", "validation", "test")]
    assert lines[head + 1].split() == ["auc", *shown]
    assert result.stderr.splitlines()[-1].startswith("epoch 3/3  loss ")
    commands = [shlex.split(line) for line in lines if line.startswith("  censnet ")]
    assert [words[1] for words in commands] == ["predict", "embed", "evaluate"]
    for words in commands:
        succeed(*("karate" if word == "NEW_DATA" else word for word in words[1:]))
    assert len(pd.read_csv("predictions.csv")) == 34
    again = run("train", "karate", *epochs(3))
    assert again.exit_code == 2
    assert "runs/karate-faction holds a finished run" in again.stderr


@pytest.mark.slow
def test_the_screen_counts_bad_rows_and_rows_without_a_label(place: Path) -> None:
    target = ["--target", "edge:is_fraud"]
    result = succeed("train", place / "payments", *target, "--out", place / "one", *epochs(1))
    text = " ".join(result.stdout.split())
    assert re.search(r"120 edges: \d+ train, \d+ validation, \d+ test; 1 without a label; 2 cannot be used", text)
    said = result.stderr.splitlines()
    assert sum("2 of 120 rows cannot be used" in line for line in said) == 1
    assert said[0].startswith("! edges.csv: 2 of 120 rows")
    assert said[1].startswith("· edges.csv: edges are directed, from source to target; --undirected overrules")
    assert said[2].startswith("· edge:is_fraud is binary")
    assert "WARNING" not in result.stderr
    strict = run("train", place / "payments", *target, "--out", place / "none", "--strict")
    assert strict.exit_code == 2
    assert "edges.csv, row 91, column target: no node has the id 'acct-4000'" in strict.stderr
    dropped = [*target, "--out", place / "three", "--column", "amount=drop", *epochs(1)]
    assert "1 of 120 rows cannot be used" in succeed("train", place / "payments", *dropped).stderr


@pytest.mark.slow
def test_json_is_the_metrics_and_quiet_is_quiet(place: Path) -> None:
    result = succeed("train", "karate", "--out", place / "json", "--json", "--tensorboard", *epochs(1))
    assert list((place / "json" / "tensorboard").iterdir())
    assert json.loads(result.stdout) == json.loads((place / "json" / "metrics.json").read_text())
    result = succeed("train", "karate", "--out", place / "json", "--overwrite", "--quiet", *epochs(1))
    assert result.output == ""


@pytest.mark.slow
def test_an_ensemble_and_bf16(place: Path) -> None:
    with torch.backends.mkldnn.flags(enabled=False):  # it has no bf16 product on some virtual machines
        succeed("train", "karate", "--out", place / "two", "--ensemble", "2", "--bf16", *epochs(1))
    found = load_run(place / "two")
    assert found.config.members == 2
    assert found.config.settings.training.precision == "bf16"
    frame = pd.read_csv(io.StringIO(succeed("predict", place / "two", "karate").stdout))
    assert {"faction_p_Officer", "faction_std_Officer"} <= set(frame)


@pytest.mark.slow
def test_replicates_say_mean_and_spread(place: Path) -> None:
    options = ["--replicates", "2", "--vary", "split", "--out", place / "many", *epochs(2)]
    result = succeed("train", "karate", *options)
    values = [load_run(place / "many" / f"seed-{seed}").metrics["test"]["node"]["accuracy"] for seed in range(2)]
    cell = f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
    assert cell in next(line for line in result.stdout.splitlines() if line.startswith("  accuracy"))
    assert "2, each with its own split" in " ".join(result.stdout.split())
    summary = json.loads(succeed("train", "karate", *options, "--resume", "--json").stdout)
    assert summary["test"]["node"]["accuracy"]["values"] == values


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{}/payments"], "there is no --target, expected node:COLUMN"),
        (
            ["{}/payments", "--target", "edge:amount", "--column", "amount"],
            "--column has 'amount', expected COLUMN=KIND",
        ),
        (
            ["{}/payments", "--target", "edge:is_fraud", "--column", "amount=drop", "--column", "amount=number"],
            "--column has amount=drop and amount=number, expected each column once",
        ),
        (
            ["{}/payments", "--target", "edge:is_fraud", "--column", "amount=source", "--column", "target=source"],
            "target and amount are both said to be the source, expected one",
        ),
        (
            ["{}/payments", "--target", "edge:is_fraud", "--column", "amount=drop", "--column", "edges.amount=number"],
            "edges, column amount: is said to be drop and number, expected one of them",
        ),
        (
            ["karate", "--set", "model.hidden=8", "--set", "model.hidden=16"],
            "--set has model.hidden=8 and model.hidden=16, expected one of them",
        ),
        (["karate", "--set", "data.split_file=splits.csv"], "data.split_file is splits.csv, expected None, as it is"),
        (
            ["{}/payments", "--target", "is_fraud"],
            "target is 'is_fraud', expected node:COLUMN, edge:COLUMN, graph:COLUMN,COLUMN or link: did you mean "
            "edge:is_fraud?",
        ),
        (["{}/molecules.csv", "--target", "wet=binary", "--replicates", "2"], "did you mean graph:wet?"),
        (["karate", "--target", "faction"], "did you mean node:faction?"),
        (["karate", "--set", "model.hiden=3"], "unknown setting model.hiden: did you mean model.hidden?"),
        (
            ["karate", "--set", "model.heads=3", "--set", "model.hidden=8"],
            "expected per_channel, or a divisor of hidden",
        ),
        (["karate", "--preset", "weak"], "preset is 'weak', expected one of strong, paper, released"),
        (["karate", "--device", "tpu-9"], "device is 'tpu-9', expected cpu, cuda"),
        (["karate", "--out", "{}/links"], "holds a finished run"),
        (["karate", "--vary", "split"], "--vary cannot be given without --replicates"),
        (["karate", "--replicates", "2", "--ensemble", "2"], "--ensemble cannot be given with --replicates"),
        ([], "there are no DATA, expected some, or --resume and --out"),
        (["--resume"], "there are no DATA, expected some, or --resume and --out"),
        (["--resume", "--out", "{}/links", "--seed", "3"], "--seed cannot be given without DATA"),
        (["--resume", "--out", "{}/nowhere"], "nowhere has no training to go on with"),
    ],
)
def test_what_cannot_be_trained_is_one_line_and_exit_code_two(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("train", *(argument.format(place) for argument in arguments))
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("! ")]  # of bad rows
    assert line.startswith("error: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_built_in_name_wins_over_a_folder_unless_it_is_written_as_a_path(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(place / "payments", tmp_path / "karate")
    trained = succeed("train", "karate", "--out", "cora", *epochs(1))
    note = "karate is the built-in set; what is here by that name is ./karate"
    assert note in trained.stderr
    assert "34 nodes" in trained.stdout
    assert note in succeed("predict", "cora", "karate", "--to", "p.csv").stderr
    assert note in " ".join(succeed("inspect", "karate").output.split())
    assert len(pd.read_csv("p.csv")) == 34
    mine = succeed("train", "./karate", "--target", "node:age", "--out", "mine", *epochs(1))
    assert "30 nodes" in mine.stdout
    assert "built-in" not in mine.stderr
    train(Path("karate"), "node:age", "here", settings={"training.epochs": 1})
    assert load_run("here").config.data == "./karate"


class _Impatient(Callback):
    """Presses Ctrl-C after an epoch."""

    def __init__(self, epoch: int) -> None:
        self.last = epoch

    def on_epoch_end(self, rows: Sequence[dict[str, float]], best: Sequence[float | None]) -> None:
        if rows[0]["epoch"] == self.last:
            signal.raise_signal(signal.SIGINT)


def _interrupt(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    callback = _Impatient(epoch)
    for module in ("train", "replicates"):
        monkeypatch.setattr(sys.modules[f"censnet.pipeline.{module}"], "show", lambda: callback)


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on_and_that_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    succeed("train", "karate", "--out", "runs/whole", *epochs(4))
    with monkeypatch.context() as patch:
        _interrupt(patch, 2)
        result = run("train", "karate", "--out", "runs/a b", *epochs(4))
    assert result.exit_code == 130
    assert result.stdout == ""
    said = re.fullmatch("stopped after epoch 2: censnet (.*) goes on with it", result.stderr.splitlines()[-1])
    assert said is not None
    assert said[1] == "train --resume --out 'runs/a b'"
    assert run("predict", "runs/a b", "karate").exit_code == 2
    succeed(*shlex.split(said[1]))
    for name in ("model.safetensors", "metrics.json", "history.csv", "predictions.csv"):
        assert (tmp_path / "runs" / "a b" / name).read_bytes() == (tmp_path / "runs" / "whole" / name).read_bytes()


def test_ctrl_c_among_replicates_names_the_whole_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "karate", "--replicates", "2", "--out", "runs/r", *epochs(3)]
    monkeypatch.setattr(sys, "argv", ["censnet", *arguments])
    _interrupt(monkeypatch, 1)
    result = run(*arguments)
    assert result.exit_code == 130
    line = result.stderr.splitlines()[-1]
    assert line == f"stopped after epoch 1: {shlex.join(['censnet', *arguments, '--resume'])} goes on with it"


def test_a_training_that_diverges_fails_in_one_line(place: Path) -> None:
    result = run("train", "karate", "--out", place / "wild", *epochs(9), "--set", "training.learning_rate=1e30")
    assert result.exit_code == 2
    assert re.search(r"^error: .* in epoch 1, step 1: lower training.learning_rate", result.stderr, re.MULTILINE)


@pytest.mark.slow
def test_one_real_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "censnet", "train", "karate", "--json", *epochs(2)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(found.stdout).keys() == {"train", "validation", "test"}
    assert "Sparse" not in found.stderr
    assert all(line.startswith(("·", "!", "epoch")) for line in found.stderr.splitlines())


@pytest.mark.parametrize("name", ["RANK", "OMPI_COMM_WORLD_RANK"])
def test_of_several_processes_the_first_alone_speaks(place: Path, name: str) -> None:
    command = ["evaluate", str(place / "joint"), str(place / "payments")]
    first, second = (CliRunner().invoke(app, command, env={name: rank}) for rank in "01")
    assert "scores of nodes" in first.stdout
    assert "rows cannot be used" in first.stderr
    assert (second.exit_code, second.output) == (0, "")
    wrong = CliRunner().invoke(app, ["evaluate", "nowhere", "karate"], env={name: "1"})
    assert wrong.exit_code == 2
    assert "there is no run nowhere" in wrong.stderr, "what went wrong in any of them is said"


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Payments whose label is a column of their source and, in another word, a column of their own."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("leaky")
    flag, source = rng.random(40) < 0.3, rng.integers(0, 40, 200)
    pd.DataFrame({"id": range(40), "closed": flag.astype(int), "age": rng.normal(size=40)}).to_csv(
        folder / "nodes.csv", index=False
    )
    edges = {"source": source, "target": (source + rng.integers(1, 40, 200)) % 40, "amount": rng.normal(size=200)}
    status = np.where(flag[source], "chargeback", "settled")
    pd.DataFrame({**edges, "status": status, "is_fraud": flag[source].astype(int)}).to_csv(
        folder / "edges.csv", index=False
    )
    return folder


def test_train_warns_of_the_leaks_that_inspect_finds_and_goes_on(leaky: Path, tmp_path: Path) -> None:
    arguments = [leaky, "--target", "edge:is_fraud"]
    result = run("train", *arguments, "--out", tmp_path / "run", "--set", "training.epochs=2", *SMALL)
    assert result.exit_code == 0
    warned = [line for line in result.stderr.splitlines() if line.startswith("!")]
    shown = " ".join(run("inspect", *arguments).stdout.split())
    assert len(warned) == 2
    assert "edges.csv, column status leaks is_fraud" in warned[0]
    assert "nodes.csv, column closed leaks is_fraud of edges.csv" in warned[1]
    assert warned[1].endswith("it is a feature, which --column closed=drop leaves out)")
    stored = load_run(tmp_path / "run").config.findings
    assert [f"! {finding}" for finding in stored] == warned
    assert all(finding in shown for finding in stored)
    assert "leak?" in result.stdout


def test_a_column_that_was_left_out_is_no_leak(leaky: Path) -> None:
    dropped = {"closed": "drop", "status": "drop"}
    assert train(leaky, "edge:is_fraud", settings={"training.epochs": 2}, overrides=dropped).config.findings == []


def test_a_row_in_two_parts_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"smiles": SMILES * 2, "y": np.arange(20) % 2, "split": ["train"] * 10 + ["test"] * 10})
    with caplog.at_level(logging.WARNING, "censnet"):
        trained = train(frame, "graph:y", settings={"training.epochs": 2, "model.hidden": 8})
    assert trained.config.findings == ["the table: 9 of 10 test rows have the same molecule in training"]
    assert trained.config.findings[0] in caplog.messages


@pytest.mark.parametrize("data", ["karate"])
def test_sets_without_a_leak_are_trained_on_without_a_warning(data: str) -> None:
    assert train(data, "node:faction", settings={"training.epochs": 2}).config.findings == []
