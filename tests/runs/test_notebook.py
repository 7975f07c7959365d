"""A run and a data set show themselves in a notebook, small and escaped."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from samples import payments

from censnet import load_data, load_run


def test_a_run_shows_its_targets_and_scores(home: Path) -> None:
    run = load_run(home / "a")
    shown = run._repr_html_()
    assert "node:vip" in shown
    for part in ("train", "validation", "test"):
        assert f">{run.metrics[part]['node']['auc']:.4f}<" in shown
    assert len(shown) < 5_000


def test_data_show_their_columns_and_what_was_found() -> None:
    shown = load_data(payments(), target="node:vip")._repr_html_()
    for name in ("age", "country", "amount"):
        assert f"<bdi>{name}</bdi>" in shown
    assert "<bdi>target</bdi>" in shown
    assert len(shown) < 10_000


def test_a_column_of_molecules_that_is_not_read_is_no_feature() -> None:
    shown = load_data(pd.DataFrame({"smiles": ["CCO", "CCN", "CCC"], "weight": [1.5, 2.5, 3.5]}))._repr_html_()
    assert "number, not used" in shown
    assert "a feature" not in shown


def test_names_of_a_user_s_make_no_element() -> None:
    frame = pd.DataFrame({"source": [1, 2], "target": [2, 3], "<img src=x onerror=alert(1)>": [0.5, 1.0]})
    shown = load_data(frame)._repr_html_()
    assert "onerror" in shown
    assert not re.search("<img|<script", shown)


def test_many_columns_stay_small() -> None:
    frame = pd.DataFrame({"source": [1, 2], "target": [2, 3]} | {f"c{number}": [0.5, 1.0] for number in range(400)})
    shown = load_data(frame)._repr_html_()
    assert "the first 30 of 402 columns" in shown
    assert len(shown) < 20_000
