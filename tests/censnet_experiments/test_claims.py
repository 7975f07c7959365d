"""Claims of the paper: each is confirmed by records that agree with it, and by no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from record_samples import make_records, tested

from censnet_experiments.cells import TABLES
from censnet_experiments.claims import (
    CLAIMS,
    EARLY,
    UNKNOWN,
    Check,
    best_cells,
    edge_layers,
    flat_curves,
    less_data,
    mini_batches,
    slower,
)
from censnet_experiments.records import Record
from censnet_experiments.spec import load_specs
from censnet_experiments.summary import summarize

METHODS = [spec.method for spec in load_specs("table1").values() if spec.section == "table"]


def check(claim: Check, records: list[Record]) -> str:
    return claim(records, summarize(records))


def table1(best: str) -> list[Record]:
    """One seed of every cell and method; one method is the best everywhere."""
    scores = {method: 0.7 + 0.1 * (method == best) for method in METHODS}
    return [r for cell in TABLES["table1"] for m in METHODS for r in make_records("table1", cell, m, tested(scores[m]))]


def timed(gcn: float, censnet: float) -> list[Record]:
    times = {"gcn": gcn, "censnet": censnet}
    return [r for m, t in times.items() for r in make_records("speed", "cora-cpu", m, [{"milliseconds": t}])]


def batches(half: float) -> list[Record]:
    full = make_records("table1", "cora-3", "censnet", tested(0.75, 0.76, 0.77))
    return full + make_records("table1", "cora-3", "censnet-half", tested(half, half + 0.011, half + 0.02))


def rates(censnet: float) -> list[Record]:
    scores = {"gcn": 0.8, "censnet": censnet}
    cells = [cell for cell, about in TABLES["table2"].items() if about.data == "tox21"]
    return [
        record
        for cell in cells
        for method, score in scores.items()
        for record in make_records("table2", cell, method, [{"validation": score, "test": score}])
    ]


def curves(gcn: float, censnet: float) -> list[Record]:
    """Curves that rise to 0.7 early, and then to these."""
    found = []
    for method, end in (("gcn", gcn), ("censnet", censnet)):
        curve = [0.5] + [0.7] * (EARLY - 1) + [end] * 10
        (record,) = make_records("table2", "tox21-60", method, [{"validation": end, "test": end}])
        found.append(replace(record, curves={"validation": curve}))
    return found


def layers(one: float, two: float) -> list[Record]:
    scores = {"censnet-vae": 0.93, "censnet-vae-one-edge-layer": one, "censnet-vae-two-edge-layers": two}
    return [
        record
        for cell in TABLES["table3"]
        for method, score in scores.items()
        for record in make_records("table3", cell, method, [{"auc": score, "ap": score}])
    ]


@pytest.mark.parametrize(
    ("claim", "confirmed", "refuted", "finding"),
    [
        (best_cells, table1("censnet"), table1("gcn"), "CensNet in 9"),
        (slower, timed(10.0, 14.0), timed(10.0, 20.0), "(+40 %)"),
        (mini_batches, batches(0.75), batches(0.70), "half of the nodes in a batch: +0.0 points"),
        (less_data, rates(0.9), rates(0.7), "12 of 12 comparisons"),
        (flat_curves, curves(0.7, 0.8), curves(0.8, 0.7), "0 % of the total improvement of GCN, and 33 % for CensNet"),
        (edge_layers, layers(0.92, 0.91), layers(0.91, 0.92), "none 93.0, one 92.0, two 91.0"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_claim_is_confirmed_or_not_by_its_records(
    claim: Check, confirmed: list[Record], refuted: list[Record], finding: str
) -> None:
    found = check(claim, confirmed)
    assert found.startswith("**Confirmed.**")
    assert finding in found
    assert check(claim, refuted).startswith("**Not confirmed.**")
    assert check(claim, []) == UNKNOWN


def test_every_claim_of_the_page_is_tested() -> None:
    assert set(CLAIMS.values()) == {best_cells, slower, mini_batches, less_data, flat_curves, edge_layers}
