"""Labels and predictions are read back whatever columns are called, and give the metrics of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from censnet.report.content import gather
from censnet.report.rows import PARTS, read_rows
from censnet.runs.run import Run, load_run
from censnet.tasks.metrics import score
from censnet.tasks.targets import Target
from censnet.training.devices import find_device


def test_names_that_were_taken_and_further_columns_are_told_apart() -> None:
    sick = Target(level="node", column="sick", kind="binary", classes=["no", "yes"])
    age = Target(level="node", column="age", kind="regression", mean=40, scale=10)
    frame = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "sick_predicted": ["x", "y", "z"],  # of the user's
            "split": ["train", "test", None],
            "sick": ["yes", "no", None],
            "sick_predicted_2": ["yes", "yes", None],
            "sick_set": ["yes", "no, yes", None],
            "sick_p_no": [0.25, 0.5, np.nan],
            "sick_p_yes": [0.75, 0.5, np.nan],
            "age": [30.0, 50.0, 70.0],
            "age_predicted": [31.0, 52.0, np.nan],
            "age_std": [1.0, 2.0, np.nan],
            "unlike_training": [None, "far off", None],
        }
    )
    first, second = read_rows(frame.drop(columns="sick_predicted"), [sick, age])
    assert first.part.tolist() == [0, 2, -1]
    np.testing.assert_array_equal(first.labels, [1, 0, np.nan])
    np.testing.assert_allclose(first.loss, [-np.log(0.75), -np.log(0.5), np.nan])
    np.testing.assert_allclose(second.labels, [30, 50, 70])
    np.testing.assert_allclose(second.loss, [1, 2, np.nan])
    assert first.parts == second.parts == ["train", "test"]
    assert second.spread is not None


@pytest.mark.parametrize("kind", ["fraud", "molecules", "many"])
def test_metrics_from_the_table_are_those_of_the_run(kind: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(kind)
    run: Run = found if kind == "many" else found[0]
    content = gather(run, None, False, find_device("cpu"), False)
    for level, rows in content.rows.items():
        for each in rows:
            for part in each.parts:
                chosen, target = each.of_part(part), each.target
                assert each.outputs is not None
                labels = each.labels[chosen, None]
                labels = (labels - target.mean) / target.scale if target.is_number else labels
                for name, value in score([target], each.outputs[chosen], labels).items():
                    if "/" in name:
                        assert value == pytest.approx(run.metrics[part][level][name], rel=1e-4, abs=1e-6), (name, part)


def test_intervals_are_those_of_predict(molecules: tuple[Run, Path]) -> None:
    run = load_run(molecules[1] / "run")
    rows = gather(run, None, False, find_device("cpu"), False).rows["graph"][0]
    assert rows.interval is not None
    low, high = rows.interval
    frame = pd.read_csv(molecules[1] / "molecules.csv")
    found = run.predict(frame, coverage=0.9)
    good = found["error"].isna().to_numpy()
    np.testing.assert_allclose(low[good], found["size_low"][good].astype(float), rtol=1e-5)
    np.testing.assert_allclose(high[good], found["size_high"][good].astype(float), rtol=1e-5)
    inside = (low <= rows.labels) & (rows.labels <= high)
    test = rows.part == PARTS.index("test")
    assert inside[test].mean() == pytest.approx(run.metrics["test"]["graph"]["size/coverage"])
