"""Columns of times that are found, and the warning where a random split ignores them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from censnet.data.load import load_data
from censnet.data.tables.files import Tables
from censnet.errors import DataError
from censnet.inspection.times import find_time_columns
from censnet.pipeline import inspect as inspect_module
from censnet.pipeline import inspect_data

SEEMS = "seems to be the time of each edge; if so, a random split trains on edges that are later"


def payments(rows: int = 60, **columns: object) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"source": draw.integers(0, 9, rows), "target": draw.integers(0, 9, rows)})
    return frame.assign(amount=draw.random(rows), late=draw.choice(["yes", "no"], rows), **columns)


def names(frame: pd.DataFrame) -> list[str]:
    return [column.name for column in find_time_columns(load_data(frame), ["late"])]


DAYS = pd.date_range("2024-01-01", periods=60, freq="D")


@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("paid", DAYS, True),
        ("paid", DAYS.strftime("%Y-%m-%d"), True),
        ("paid", DAYS.strftime("%d/%m/%Y"), True),
        ("paid", 1.5e9 + np.arange(60), True),
        ("time", np.arange(60) * 7 % 60, True),
        ("created_at", np.arange(60), True),
        ("runtime", np.arange(60), True),
        ("estimate", np.arange(60) * 0.5, False),
        ("number", np.arange(60) * 0.5, False),
        ("date", DAYS[np.arange(60) % 3], False),
        ("city", np.array(["Oslo", "Rome", "Bern"])[np.arange(60) % 3], False),
    ],
)
def test_columns_of_times_are_found(column: str, values: object, found: bool) -> None:
    assert names(payments(**{column: values})) == ([column] if found else [])


def test_a_random_split_beside_a_column_of_times_is_a_warning() -> None:
    tables = Tables(edges=payments(paid=DAYS))

    def warns(**options: object) -> list[str]:
        report = inspect_data(tables, "edge:late", **options)  # type: ignore[arg-type]
        return [finding.what for finding in report.findings if "the time of each edge" in finding.what]

    (warning,) = warns()
    assert SEEMS in warning
    assert "time='paid' splits by time" in warning
    assert warns(time="paid") == []
    remark = [one for one in inspect_data(tables).findings if "paid" in one.what]
    assert [one.level for one in remark] == ["note"]
    assert "column paid: seems to be the time of each edge: time='paid' predicts edges and links" in remark[0].what
    assert not [one for one in inspect_data(tables, time="paid").findings if "when each edge" in one.what]
    assert "the split is not by it and trains on edges that are later" in inspect_split("random")
    assert inspect_split("by time") == ""


def inspect_split(way: str) -> str:
    parts = np.array(["train", "validation", "test"])
    split = parts[np.arange(60) % 3] if way == "random" else parts[np.arange(60) // 20]
    report = inspect_data(Tables(edges=payments(paid=DAYS, split=split)), "edge:late")
    return "".join(finding.what for finding in report.findings if "the time of each edge" in finding.what)


@pytest.mark.slow
def test_a_deep_inspection_compares_a_random_split_with_one_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_module, "QUICK", {"training.epochs": 2, "model.hidden": 4})
    tables = Tables(edges=payments(paid=DAYS))
    report = inspect_data(tables, "edge:late", deep=True)
    (found,) = [finding.what for finding in report.findings if "a quick model" in finding.what]
    assert "on test rows of a random split" in found
    assert "of a split by column paid" in found
    of_links = inspect_data(tables, "link", deep=True)
    (found,) = [finding.what for finding in of_links.findings if "link: a quick model has auc" in finding.what]
    assert "on test links of a random split" in found
    with pytest.raises(DataError, match="no column of edges seems to be a time, expected one: name it"):
        inspect_data(Tables(edges=payments()), "edge:late", deep=True)
    with pytest.raises(DataError, match="no column of edges is predicted, nor links"):
        inspect_data(tables, deep=True)
