"""The worst errors are explained as `explain` does; thresholds and comparisons of the run are found by its page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_content import content_of

from censnet.comparison.records import Start, Stored, write_stored
from censnet.report import explanations, report_page
from censnet.report.page import find_comparison
from censnet.runs.run import Run, load_run


def worst(page: str, target: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = content_of(page)["targets"][target]["worst"]["rows"]
    return found


def test_the_worst_rows_have_the_parts_and_the_fidelity_of_explain(fraud: tuple[Run, Path], fraud_page: str) -> None:
    run, rows = fraud[0], worst(fraud_page)
    assert [("why" in row) for row in rows] == [True, True] + [False] * (len(rows) - 2)
    dataset = run.read(run.config.data)
    expected = run.explain_rows(dataset, [row["row"] + 1 for row in rows[:2]], effort=explanations.EFFORT)
    for row, one in zip(rows[:2], expected, strict=True):
        why = row["why"]
        assert why["answer"] == pytest.approx(one.answer)
        assert why["fidelity"]["edge"]["change"] == pytest.approx(one.fidelity["edge"].change)
        changes = {kind: [part.change for part in one.parts if part.kind == kind] for kind in why["parts"]}
        for kind, parts in why["parts"].items():
            assert [change for *_, change in parts] == pytest.approx(changes[kind][: len(parts)])
            assert all(abs(change) >= abs(other) for (*_, change), other in zip(parts, changes[kind][1:], strict=False))


def test_atoms_and_bonds_are_colored_by_their_changes(molecules: tuple[Run, Path], molecule_page: str) -> None:
    run = molecules[0]
    for target, column in enumerate(("size", "acid")):
        row = worst(molecule_page, target)[0]
        (one,) = run.explain_rows(run.read(run.config.data), [row["row"] + 1], target=column)
        graphs = next(panel for panel in content_of(molecule_page)["map"]["panels"] if panel["level"] == "graph")
        drawn = graphs["molecules"][graphs["names"].index(row["ids"][0])]
        colors = row["why"]["colors"]
        assert sorted(at for at, _ in colors["atoms"]) == list(
            range(min(len(drawn["atoms"]), explanations.EFFORT.most))
        )
        assert len(colors["bonds"]) == min(len(drawn["bonds"]), explanations.EFFORT.most)
        change = {part.index: part.change for part in one.parts if part.kind == "node"}
        for at, value in colors["atoms"]:
            assert value == pytest.approx(change[at], abs=1e-5)
    size = worst(molecule_page)[0]
    raw = run.predict(run.config.data).iloc[size["row"]]
    assert size["why"]["answer"] == pytest.approx(raw.get("size_raw", raw["size_predicted"]), rel=1e-4)


def test_what_is_not_explained_says_why(links: Run, fraud: tuple[Run, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert content_of(report_page(links))["targets"][0]["worst"]["unexplained"].startswith("the scores are without")
    assert not any("why" in row for row in worst(report_page(fraud[0], explain=0)))
    monkeypatch.setattr(explanations, "SECONDS", 0.0)
    page = report_page(fraud[0])
    assert not any("why" in row for row in worst(page))
    assert "--explain" in content_of(page)["targets"][0]["worst"]["unexplained"]


def test_the_page_decides_by_the_threshold_that_the_run_has(fraud: tuple[Run, Path]) -> None:
    run = load_run(fraud[1] / "fraud")
    run.decide(recall=0.9)
    (target,) = content_of(report_page(run, explain=0))["targets"]
    decision = run.uncertainty.of("edge", run.targets["edge"])[0].decision
    assert decision is not None
    assert target["threshold"] == decision.threshold != 0.5
    assert target["rule"] == "recall 0.9"
    frame = pd.read_csv(fraud[1] / "fraud" / "predictions.csv")
    mine = frame[frame["split"] == "validation"]
    flagged = mine["fraud_p_1"].to_numpy(np.float32) >= np.float32(decision.threshold)
    table = pd.crosstab(mine["fraud"], flagged.astype(int)).reindex(index=[0, 1], columns=[0, 1], fill_value=0)
    assert target["confusion"]["validation"]["counts"] == table.to_numpy().tolist()
    assert table.loc[1, 1] / table.loc[1].sum() >= 0.9


def test_a_comparison_of_the_same_targets_beside_the_run_is_found(fraud: tuple[Run, Path], tmp_path: Path) -> None:
    shutil.copytree(fraud[1] / "fraud", tmp_path / "run")
    run, folder = load_run(tmp_path / "run"), tmp_path / "run-comparison"
    assert find_comparison(run) is None
    folder.mkdir()
    start = Start(
        data=run.config.data, target_specs=["edge:fraud"], preset="strong", changes={}, overrides={}, strict=False
    )
    write_stored(folder, Stored(start=start))
    assert find_comparison(run) is not None
    write_stored(folder, Stored(start=start.model_copy(update={"target_specs": ["edge:other"]})))
    assert find_comparison(run) is None
    write_stored(folder, Stored(start=start.model_copy(update={"data": "elsewhere"})))
    assert find_comparison(run) is None
