"""The prediction for one row is that of a table of one row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from censnet.errors import RunError
from censnet.tasks.calibration import ClassCalibration
from censnet.tasks.conformal import Conformal
from censnet.tasks.decision import Decision, Rule
from censnet.tasks.predictions import prediction_rows
from censnet.tasks.row_answers import RowAnswers
from censnet.tasks.targets import Target, target_range
from censnet.tasks.uncertainty import TargetUncertainty

KNOTS = [(-2.0, -1.0), (0.0, 0.3), (2.0, 0.9)]
DECISION = Decision(threshold=0.2, rule=Rule(fp=1, fn=4))
SCORES = [0.1, 0.2, 0.5, 1.5, 2.0]
SICK = Target(level="edge", column="sick", kind="binary", classes=["no", "yes"])
STARS = Target(level="edge", column="stars", kind="multiclass", classes=["1", "2", "3"], form="integer")
FEE = Target(level="edge", column="fee", kind="regression", mean=5.0, scale=2.0, low=1.0, high=7.0)
MANY = Target(level="edge", column="shop", kind="multiclass", classes=[f"s{number}" for number in range(300)])
SURE = {
    "sick": TargetUncertainty(conformal=Conformal(scores=[SCORES, SCORES], rows=[5, 5])),
    "stars": TargetUncertainty(conformal=Conformal(scores=[SCORES], rows=[5])),
    "fee": TargetUncertainty(conformal=Conformal(scores=[SCORES], rows=[5])),
    "shop": TargetUncertainty(),
}


def calibration(method: str) -> ClassCalibration:
    more = {"temperature": 1.7} if method == "temperature" else {"knots": KNOTS} if method == "isotonic" else {}
    return ClassCalibration(method=method, **more)


@pytest.mark.parametrize("method", ["none", "temperature", "isotonic"])
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("coverage", [None, 0.8])
@pytest.mark.parametrize("targets", [[SICK], [STARS], [FEE], [SICK, FEE, STARS], [MANY]])
def test_answers_are_those_of_a_table(method: str, members: int, coverage: float | None, targets: list[Target]) -> None:
    generator = np.random.default_rng(0)
    width = sum(target.width for target in targets)
    wide = any(target.is_wide for target in targets)
    asked = None if wide else coverage
    uncertainty = []
    for target in targets:
        own = SURE[target.column]
        if not target.is_number:
            own = own.model_copy(update={"calibration": calibration(method)})
        if target.kind == "binary" and method != "none":
            own = own.model_copy(update={"decision": DECISION})
        uncertainty.append(own)
    for clip in (False, True):
        answers = RowAnswers(targets, uncertainty, {"fee_predicted"}, asked, clip)
        limits = target_range(targets) if clip else None
        for _ in range(20):
            outputs = generator.normal(0, 3, (members, width)).astype(np.float32)
            raw = torch.from_numpy(outputs)[:, None]
            clipped = raw if limits is None else raw.clamp(*limits)
            free = None if limits is None else raw
            frame = prediction_rows(targets, clipped, {"fee_predicted"}, free, uncertainty, asked)
            found = pd.DataFrame([answers(outputs)])
            pd.testing.assert_frame_equal(found, frame, check_dtype=False, rtol=1e-5, atol=1e-6)


def test_an_answer_is_plain_python_and_finite() -> None:
    found = RowAnswers([SICK, STARS, FEE])(np.zeros((2, 5), np.float32))
    assert {type(value) for value in found.values()} == {str, int, float}
    with pytest.raises(RunError, match="fee_predicted is nan, expected a finite number"):
        RowAnswers([FEE])(np.array([[np.nan]], np.float32))
