"""What the screen says of scores that are of one column, or the mean of several."""

from __future__ import annotations

import os

from rich.console import Console

from censnet.cli.render_run import score_tables


def lines(scores: dict[str, float]) -> list[str]:
    with open(os.devnull, "w", encoding="utf-8") as file:
        console = Console(width=100, file=file, record=True, highlight=False)
        for table in score_tables({"test": {"edge": scores}}, "auc", lambda value: f"{value:.2f}"):
            console.print(table)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_metric_of_one_column_is_no_mean():
    mixed = {"fraud/auc": 0.9, "fee/rmse": 2.0, "auc": 0.9, "rmse": 2.0, "loss": 0.5}
    head, auc, rmse, loss = lines(mixed)
    assert head.split() == ["scores", "of", "edges", "test"]
    assert auc.split() == ["auc", "of", "fraud", "0.90"]
    assert rmse.startswith("  rmse of fee (less is better)")
    assert loss.startswith("  loss (less is better)")


def test_metrics_of_all_columns_are_means_and_shown_one_by_one():
    shown = lines({"fraud/auc": 0.9, "late/auc": 0.7, "auc": 0.8, "loss": 0.5})
    assert shown[0].startswith("scores of edges, mean of 2 columns")
    assert shown[1].split() == ["auc", "0.80"]
    assert [line.split()[0] for line in shown[3:]] == ["auc", "fraud", "late"]


def test_among_several_kinds_each_metric_says_of_how_many_columns_it_is():
    mixed = {"fraud/auc": 0.9, "late/auc": 0.7, "fee/rmse": 2.0, "auc": 0.8, "rmse": 2.0}
    shown = lines(mixed)
    assert shown[0].split() == ["scores", "of", "edges", "test"]
    assert shown[1].startswith("  auc, mean of 2 columns")
    assert shown[2].startswith("  rmse of fee (less is better)")
    assert [line.split()[:2] for line in shown[4:]] == [["fraud,", "auc"], ["late,", "auc"], ["fee,", "rmse"]]


def test_one_column_alone_needs_no_name():
    assert lines({"fraud/auc": 0.9, "auc": 0.9})[1].split() == ["auc", "0.90"]
