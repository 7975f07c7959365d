from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from commands import run, succeed

SETTINGS = ["--set", "training.epochs=2", "--set", "model.hidden=8", "--device", "cpu"]


@pytest.mark.slow
def test_a_comparison_prints_a_table_and_a_sentence_and_goes_on(tmp_path: Path) -> None:
    out, table = tmp_path / "out", tmp_path / "table.csv"
    asked = ["compare", "karate", "--seeds", "1", "--out", out, *SETTINGS]
    printed = succeed(*asked, "--to", table).output
    assert "node:faction" in printed
    assert "CensNet, no edge layers" in printed
    assert "without trees on own columns: nodes have no columns" in printed
    assert "forest" not in printed
    assert "On one seed, which has no interval" in printed
    assert len(pd.read_csv(table)) == len(json.loads((out / "comparison.json").read_text())["table"])
    again = run(*asked)
    assert again.exit_code == 2
    assert f"{out} holds a comparison: choose another --out, --resume to go on, or --overwrite" in again.output
    found = json.loads(succeed(*asked, "--resume", "--json", "--quiet").output)
    assert found["table"][0]["mean"] is None


def test_wrong_options_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    refused = run("compare", tmp_path / "nowhere", "--target", "edge:x", "--to", "table.txt")
    assert "--to is table.txt, expected the name of a table" in refused.output
    both = run("compare", "karate", "--resume", "--overwrite")
    assert "--overwrite cannot be given with --resume" in both.output
    assert run("compare", tmp_path / "nowhere", "--target", "edge:x").exit_code == 2
