"""Reference scores of the paper and published since."""

from __future__ import annotations

import pytest

from censnet_experiments.cells import TABLES
from censnet_experiments.reference_scores import best_published, paper_best


def test_the_reference_is_the_best_of_the_papers_own_table() -> None:
    assert (paper_best("nodes", "cora-1", "test").value, paper_best("nodes", "cora-1", "test").by) == (67.5, "AdaLNet")
    assert paper_best("nodes", "cora-3", "test").value == 79.4
    assert paper_best("links", "pubmed", "ap").value == 95.9
    assert paper_best("molecules", "tox21-random", "test").value == 0.829


@pytest.mark.parametrize("table", ["nodes", "molecules", "links"])
def test_every_cell_has_a_number_that_was_published_since(table: str) -> None:
    for cell, about in TABLES[table].items():
        for metric in set(about.metrics) - {"validation"}:
            since, least = best_published(table, cell, metric), paper_best(table, cell, metric)
            assert since.value < least.value if about.lower else since.value > least.value
            assert since.by
