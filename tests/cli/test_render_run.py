"""What the screen says of scores that are of one column, or the mean of several."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.console import Console, RenderableType

from censnet.cli.render_run import confusion_table, score_tables


def lines(scores: dict[str, float]) -> list[str]:
    return printed(score_tables({"test": {"edge": scores}}, "auc", lambda value: f"{value:.2f}"), 100)


def printed(tables: Iterable[RenderableType], width: int) -> list[str]:
    with open(os.devnull, "w", encoding="utf-8") as file:
        console = Console(width=width, file=file, record=True, highlight=False)
        for table in tables:
            console.print(table)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_confusion_table_of_many_classes_numbers_them():
    names = ["Reinforcement_Learning", "Probabilistic_Methods", "[red]Theory", "Neural_Networks"]
    counts = [[40.0, 1, 2, 3], [4, 50, 6, 7], [8, 9, 60, 10], [11, 12, 13, 70]]
    head, *rows = printed([confusion_table("label, test rows", names, counts)], 80)
    assert head.split() == ["label,", "test", "rows", "as", "0", "as", "1", "as", "2", "as", "3"]
    assert [row.split() for row in rows] == [
        [str(code), name, *(f"{value:.0f}" for value in row)]
        for code, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    head, *_ = printed([confusion_table("fraud, test rows", ["no", "yes"], [[8, 1], [2, 9]])], 80)
    assert head.split() == ["fraud,", "test", "rows", "predicted", "no", "predicted", "yes"]


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
