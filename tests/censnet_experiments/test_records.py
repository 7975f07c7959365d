"""Records are added and never lost: an incomplete line, a stopped run, another recipe."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from censnet_experiments.cells import TABLES
from censnet_experiments.plan import External, Plan, Recipe
from censnet_experiments.records import Record, append, missing_seeds, read, read_all, record_path
from censnet_experiments.spec import load_specs

PLAN = Plan("table1", "gcn", Recipe("gcn", {"hidden": 32}))


def record(seed: int, test: float = 0.75, **changes: object) -> Record:
    made = Record(
        table="table1",
        cell="cora-3",
        method="gcn",
        seed=seed,
        split_seed=seed,
        settings=PLAN.settings(),
        chosen={"learning_rate": 0.01, "epoch": 88},
        num_candidates=4,
        metrics={"validation": 0.76, "test": test},
        seconds=1.25,
        device="cpu, 1 threads",
        versions={"torch": "2"},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = record_path(tmp_path, "table1", "cora-3", "gcn")
    assert path == tmp_path / "table1" / "cora-3" / "gcn.jsonl"
    written = [record(0), record(1, curves={"validation": [0.5, 0.6]}), record(2, chosen={})]
    append(path, written[:1])
    append(path, written[1:])
    assert read(path) == written
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 1, 2]
    assert list(read_all(tmp_path)) == written


def test_an_incomplete_last_line_is_ignored_and_then_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "gcn.jsonl"
    append(path, [record(0), record(1)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with caplog.at_level(logging.WARNING):
        assert read(path) == [record(0)]
    assert "row 2: the line is incomplete" in caplog.text
    assert missing_seeds(path, PLAN, range(3)) == [1, 2]
    append(path, [record(1), record(2)])
    assert read(path) == [record(0), record(1), record(2)]


def test_an_incomplete_line_that_happens_to_be_json_is_still_incomplete(tmp_path: Path) -> None:
    """Without its line break nobody knows whether a line is whole."""
    path = tmp_path / "gcn.jsonl"
    append(path, [record(0), record(1)])
    path.write_bytes(path.read_bytes()[:-1])
    assert [found.seed for found in read(path)] == [0]


def test_a_damaged_line_inside_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "gcn.jsonl"
    append(path, [record(0), record(1)])
    path.write_bytes(path.read_bytes().replace(b'"seed":0', b'"seed":', 1))
    with pytest.raises(ValueError, match=r"gcn\.jsonl, row 1: not a record"):
        read(path)


def test_a_stopped_run_goes_on_with_the_seeds_that_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "gcn.jsonl"
    assert missing_seeds(path, PLAN, range(3)) == [0, 1, 2]
    append(path, [record(0), record(2)])
    assert missing_seeds(path, PLAN, range(4)) == [1, 3]


def test_records_of_another_recipe_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "gcn.jsonl"
    append(path, [record(0)])
    wider = replace(PLAN, recipe=Recipe("gcn", {"hidden": 64}))
    with pytest.raises(ValueError, match="has records with another options, expected those of the spec"):
        missing_seeds(path, wider, range(3))


def test_what_is_not_a_number_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        append(tmp_path / "gcn.jsonl", [record(0, test=float("nan"))])


def test_records_are_small_enough_for_all_tables() -> None:
    """72 files of 20 seeds, and 64 of 3 with curves of 200 epochs, stay under 5 MB."""
    plain, curved = (len(record(0, curves=c).to_line()) for c in ({}, {"validation": [0.1234] * 200}))
    assert 12 * 9 * 20 * 2 * plain + 64 * 5 * curved < 5_000_000


def test_a_record_in_the_file_of_another_is_named(tmp_path: Path) -> None:
    append(record_path(tmp_path, "table1", "cora-1", "gcn"), [record(0, cell="cora-1"), record(1)])
    with pytest.raises(
        ValueError, match=r"gcn\.jsonl, row 2: a record of table1 cora-3 gcn, expected one of table1 cora-1"
    ):
        list(read_all(tmp_path))


RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("table", TABLES)
def test_every_published_record_has_the_settings_of_its_spec(table: str) -> None:
    """Records of `results/` are neither refused nor trained again."""
    specs, found = load_specs(table), 0
    for path in sorted(RESULTS.glob(f"{table}/*/*.jsonl")):
        spec = specs[path.stem]
        assert path.parent.name in TABLES[table]
        if isinstance(spec.recipe, External):  # whose settings are those of another program
            assert read(path)
            continue
        plan = spec.plan()
        assert missing_seeds(path, plan, [record.seed for record in read(path)]) == []
        seeds = [(record.split_seed, plan.split_seed(record.seed, record.cell)) for record in read(path)]
        assert all(split == expected for split, expected in seeds if table != "speed")
        found += 1
    assert found > 0
