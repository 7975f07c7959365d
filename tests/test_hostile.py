"""A drawn sample of the corpus of hostile input; `make hostile` runs all of it."""

from __future__ import annotations

import pytest
from hostile.corpus import Case, cases, run_case, sample


@pytest.mark.slow
@pytest.mark.parametrize("case", sample(60), ids=lambda case: case.name)
def test_hostile_input_is_answered_or_refused_as_it_must_be(case: Case) -> None:
    outcome = run_case(case)
    assert not outcome.wrong, f"{case.name}: {outcome.wrong}"


def test_the_corpus_is_large_and_its_names_are_its_own() -> None:
    from hostile.corpus import KINDS

    names = [case.name for kind in KINDS for case in cases(kind)]
    assert len(names) == len(set(names)) >= 1500
