"""Plans are read back from JSON."""

from __future__ import annotations

import pytest

from censnet_experiments.cells import TABLES
from censnet_experiments.plan import Plan
from censnet_experiments.spec import Spec, load_specs

SPECS = [spec for table in TABLES for spec in load_specs(table).values()]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.table}-{spec.method}")
def test_a_plan_is_read_back_from_json(spec: Spec) -> None:
    cell = "karate" if spec.table == "edges" else ""
    assert Plan.from_json(spec.plan().to_json()).settings(cell) == spec.plan().settings(cell)
