"""A drawn sample of the wrong requests; `make hostile ONLY=bodies` sends all of them."""

from __future__ import annotations

import random

import pytest
from hostile.bodies import checks
from hostile.corpus import Case, cases, run_case


@pytest.mark.slow
@pytest.mark.parametrize("case", random.Random(22).sample(cases("bodies"), 60), ids=lambda case: case.name)
def test_a_wrong_request_is_refused_in_one_line(case: Case) -> None:
    outcome = run_case(case)
    assert not outcome.wrong, f"{case.name}: {outcome.wrong}"


def test_there_are_more_than_a_thousand() -> None:
    assert len(list(checks())) > 1_000
