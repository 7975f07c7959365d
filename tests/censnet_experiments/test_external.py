"""External programs have the splits and metrics of our trainings, and their results become records."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from censnet.data.load import read_data
from censnet.pipeline.prepare import prepare
from censnet.tasks.metrics import score
from censnet.tasks.targets import Target
from censnet_experiments import external
from censnet_experiments.external import SPLITS, TASKS, add_results, describe_cell, write_cells
from censnet_experiments.records import read, record_path

RINGS = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCNCC1", "c1ccoc1", "c1ccsc1", "C1CC1"]
SMILES = ["C" * length + ring for ring in RINGS for length in range(6)]


@pytest.fixture
def table() -> pd.DataFrame:
    """42 molecules, of which one has no label, and a row that is none."""
    exp = [float(number) for number in range(len(SMILES))]
    frame = pd.DataFrame({"smiles": [*SMILES, "C1CC"], "exp": [*exp, 1.0]})
    frame.loc[5, "exp"] = np.nan
    return frame


@pytest.fixture(scope="module")
def chemprop() -> ModuleType:
    """The script of chemprop, which imports chemprop only to train."""
    path = Path(__file__).parents[2] / "benchmarks" / "peers" / "chemprop_splits.py"
    if not path.exists():
        pytest.skip("the benchmarks are not here")
    spec = importlib.util.spec_from_file_location("chemprop_splits", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(seed: int, **changes: Any) -> dict[str, Any]:
    metrics = {"validation": 0.61 + seed / 100, "test": 0.6}
    curves = {"validation_loss": [0.123456, 0.1], "validation_rmse": [0.7, 0.61], "seconds": [1.0, 2.0]}
    return {
        "cell": "lipophilicity-random", "seed": seed, "settings": {"depth": "[3]"}, "epochs": 2, "chosen": {"epoch": 2},
        "metrics": metrics, "seconds": 2.5, "device": "cpu, 2 threads", "versions": {"chemprop": "2.3.1"},
        "curves": curves,
    } | changes  # fmt: skip


def parts_of_a_training(data: object, word: str, seed: int, smiles: list[str]) -> dict[str, list[str]]:
    split = prepare(data, "graph:exp", changes={"data.split": SPLITS[word]}, seed=seed).splits["graph"]
    return {part: sorted(smiles[row] for row in rows.tolist()) for part, rows in split.parts.items()}


def parts_of_a_cell(cell: dict[str, Any], seed: int) -> dict[str, list[str]]:
    pairs = list(zip(cell["smiles"], cell["parts"][str(seed)], strict=True))
    return {
        part: sorted(smiles for smiles, found in pairs if found == code)
        for code, part in enumerate(("train", "validation", "test"))
    }


@pytest.mark.parametrize("word", SPLITS)
def test_cells_have_the_splits_of_our_own_training(table: pd.DataFrame, word: str) -> None:
    cell = describe_cell(read_data(table, target="graph:exp", scaffolds=True), "lipophilicity", word, [0, 3])
    assert list(cell["parts"]) == ["0", "3"]
    for seed in (0, 3):
        found = parts_of_a_cell(cell, seed)
        assert found == parts_of_a_training(table, word, seed, table["smiles"].tolist())
        assert min(map(len, found.values())) > 0
    assert cell["parts"]["0"] != cell["parts"]["3"]


def test_samples_that_do_not_parse_or_have_no_label_are_left_out(table: pd.DataFrame) -> None:
    cell = describe_cell(read_data(table, target="graph:exp", scaffolds=True), "lipophilicity", "random", [0])
    assert cell["smiles"] == [smiles for row, smiles in enumerate(SMILES) if row != 5]
    assert cell["labels"] == [[float(row)] for row in range(len(SMILES)) if row != 5]


def test_a_missing_label_among_others_is_null(table: pd.DataFrame) -> None:
    for number, name in enumerate(TASKS["tox21"]):
        table[name] = pd.Series([(row + number) % 2 for row in range(len(table))], dtype="Int64")
    table.loc[2, "NR-AR"] = pd.NA
    data = read_data(table.drop(columns="exp"), target=f"graph:{','.join(TASKS['tox21'])}")
    cell = json.loads(json.dumps(describe_cell(data, "tox21", "random", [0])))
    assert cell["kind"] == "classification"
    assert cell["labels"][2] == [None, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    assert cell["labels"][1] == [1, 0] * 6


def test_a_file_for_each_cell_the_same_each_time(table: pd.DataFrame, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(external, "read_data", lambda name, **options: read_data(table, **options))
    paths = write_cells(tmp_path, range(2), ["lipophilicity"])
    assert [path.name for path in paths] == ["lipophilicity-random.json.gz", "lipophilicity-scaffold.json.gz"]
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in write_cells(tmp_path, range(2), ["lipophilicity"])] == before
    cell = json.loads(gzip.decompress(before[1]))
    assert (cell["cell"], cell["kind"], list(cell["parts"])) == ("lipophilicity-scaffold", "regression", ["0", "1"])


def test_external_classifiers_are_scored_by_our_auc(chemprop: ModuleType) -> None:
    draw = np.random.default_rng(0)
    logits, labels = draw.normal(size=(60, 4)), draw.integers(0, 2, size=(60, 4)).astype(float)
    labels[draw.random((60, 4)) < 0.3] = np.nan
    labels[:, 3] = np.where(np.isnan(labels[:, 3]), np.nan, 1.0)  # of one class alone: it has no area
    targets = [Target(level="graph", column=str(task), kind="binary", classes=["0", "1"]) for task in range(4)]
    ours = score(targets, logits, labels, {"auc"})
    assert chemprop.score("classification", 1 / (1 + np.exp(-logits)), labels) == pytest.approx(ours["auc"], abs=1e-12)
    assert "3/auc" not in ours


def test_external_regressors_are_scored_by_our_rmse(chemprop: ModuleType) -> None:
    draw = np.random.default_rng(0)
    answers, labels = draw.normal(size=(50, 1)), draw.normal(2, 3, size=(50, 1))
    target = Target(level="graph", column="exp", kind="number", mean=2.0, scale=3.0)
    ours = score([target], (answers - 2) / 3, (labels - 2) / 3, {"rmse"})
    assert chemprop.score("regression", answers, labels) == pytest.approx(ours["rmse"], abs=1e-12)


def test_external_programs_are_trained_on_the_training_set_only(chemprop: ModuleType, tmp_path: Path) -> None:
    cell = {"smiles": ["C", "CC", "CCC", "O", "N"], "targets": ["a", "b"], "parts": {"7": [2, 0, 1, 0, 2]},
            "labels": [[1, 0], [0, None], [1, 1], [None, 1], [0, 0]]}  # fmt: skip
    assert chemprop.write_parts(cell, 7, tmp_path) == [2, 0, 4]
    assert (tmp_path / "train.csv").read_text().split() == ["smiles,a,b", "CC,0,", "O,,1"]
    assert (tmp_path / "validation.csv").read_text().split() == ["smiles,a,b", "CCC,1,1"]
    assert (tmp_path / "scored.csv").read_text().split() == ["smiles,a,b", "CCC,1,1", "C,1,0", "N,0,0"]


def test_a_stopped_run_leaves_no_incomplete_line_behind(chemprop: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "cell.jsonl"
    assert chemprop.recorded(path) == set()
    chemprop.add(path, line(0))
    path.write_bytes(path.read_bytes() + b'{"seed":1')
    assert chemprop.recorded(path) == {0}
    chemprop.add(path, line(1))
    assert [json.loads(text)["seed"] for text in path.read_text().splitlines()] == [0, 1]


def test_results_become_records_once(chemprop: ModuleType, tmp_path: Path) -> None:
    lines, results = tmp_path / "cell.jsonl", tmp_path / "results"
    for seed in (1, 0):
        chemprop.add(lines, line(seed))
    assert [record.seed for record in add_results(results, "chemprop", lines)] == [0, 1]
    chemprop.add(lines, line(2))
    lines.write_bytes(lines.read_bytes() + b'{"cell"')  # a run that goes on
    assert [record.seed for record in add_results(results, "chemprop", lines)] == [2]
    records = read(record_path(results, "molecules", "lipophilicity-random", "chemprop"))
    assert [(record.seed, record.split_seed, record.metrics["validation"]) for record in records] == [
        (0, 0, 0.61), (1, 1, 0.62), (2, 2, 0.63),
    ]  # fmt: skip
    assert records[0].curves == {"validation_loss": [0.1235, 0.1]}
    assert records[0].settings == {"depth": "[3]"}


def test_results_of_other_settings_are_refused(chemprop: ModuleType, tmp_path: Path) -> None:
    lines, others = tmp_path / "cell.jsonl", tmp_path / "others.jsonl"
    chemprop.add(lines, line(0))
    chemprop.add(others, line(1, settings={"depth": "[4]"}))
    add_results(tmp_path, "chemprop", lines)
    with pytest.raises(ValueError, match=r"has other settings than .*, expected the same"):
        add_results(tmp_path, "chemprop", others)
