"""`censnet reproduce` and its pages, on a small graph in place of Cora."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from censnet.cli.app import app
from censnet_experiments import runner
from censnet_experiments.data import NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.spec import Spec

ONE = ["reproduce", "table1", "--cell", "cora-3", "--method", "gcn"]


@pytest.fixture
def small(citations: NodeData, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder to be in; every data set is the small graph, and nothing is trained for more than 5 epochs."""
    original = Spec.plan

    def short(spec: Spec) -> Plan:
        plan = original(spec)
        recipe = Recipe(plan.recipe.model, plan.recipe.options, plan.recipe.learning_rates, epochs=5)
        return Plan(plan.table, plan.method, recipe, plan.varies, plan.runs)

    monkeypatch.setattr(Spec, "plan", short)
    monkeypatch.setattr(runner, "prepare_data", lambda table, name, seeds: citations)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_cell_is_trained_recorded_and_compared_with_the_published(small: Path) -> None:
    found = CliRunner().invoke(app, [*ONE, "--seeds", "2"], env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output
    assert "74.0 ± 2.8" in found.stdout
    records = read(small / "results/table1/cora-3/gcn.jsonl")
    assert [record.seed for record in records] == [0, 1]
    assert all(record.num_candidates == 4 for record in records)
    mean = 50 * sum(record.metrics["test"] for record in records)
    assert f"{mean:.1f}" in found.stdout


def test_recorded_seeds_are_not_trained_again_and_new_ones_are_added(small: Path) -> None:
    run = CliRunner().invoke
    run(app, [*ONE, "--seeds", "2"])
    again = run(app, [*ONE, "--seeds", "2"])
    assert "results had all of this already" in again.stdout
    more = run(app, [*ONE, "--seeds", "1", "--first", "3"])
    assert more.exit_code == 0, more.output
    assert [record.seed for record in read(small / "results/table1/cora-3/gcn.jsonl")] == [0, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["reproduce", "table4"],
            "there is no table 'table4', expected one of table1, table2, table3, nodes, molecules, links, edges, speed",
        ),
        (["reproduce", "table1", "--cell", "cora-5"], "table1 has no cell 'cora-5', expected one of cora-3, cora-1"),
        (["reproduce", "table1", "--method", "gnc"], "table1 has no method 'gnc': did you mean gcn?"),
        ([*ONE, "--seeds", "0"], "there are 0 seeds from 0, expected at least one"),
        (["reproduce", "pages"], "results has no records, expected some"),
    ],
)
def test_errors_are_one_line(small: Path, arguments: list[str], message: str) -> None:
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 2
    assert message in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


def test_methods_are_listed_with_their_caveats(small: Path) -> None:
    found = CliRunner().invoke(app, ["reproduce", "table1", "--list-methods"], env={"COLUMNS": "200"})
    assert "censnet-released" in found.stdout
    assert "All neighbors are averaged" in found.stdout


def test_report_writes_the_page(small: Path) -> None:
    run = CliRunner().invoke
    run(app, [*ONE, "--seeds", "2"])
    found = run(app, ["reproduce", "pages"])
    assert found.stdout.splitlines() == ["docs/reproduction.md", "docs/tables/table1.tex"]
    assert "2 records of 1 cells" in (small / "docs/reproduction.md").read_text()
