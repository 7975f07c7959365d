"""Candidates: the grid of each round, and the best of them on validation."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from samples import fit_result

from censnet.errors import SettingsError
from censnet.selection.candidates import Candidate, SelectionRecord, candidate_grid, select_best
from censnet.settings.presets import make_settings
from censnet.training.early_stopping import ValidationScore
from censnet.training.ensemble import split_result


@pytest.mark.parametrize(
    ("values", "losses", "monitor", "kept"),
    [
        ([0.5, 0.7, 0.6], [1.0, 1.0, 1.0], "accuracy", 1),
        ([0.5, 0.7, 0.6], [1.0, 1.0, 1.0], "log_loss", 0),
        ([0.5, 0.5, 0.5], [1.0, 0.9, 0.9], "accuracy", 1),
    ],
)
def test_ties_go_to_less_loss_and_then_to_the_first(values, losses, monitor, kept):
    candidates = [Candidate(round=1, gates="learned", pseudo_label_weight=weight) for weight in (0.0, 1.0, 2.0)]
    batched = split_result(fit_result(values, losses, monitor))
    separate = [fit_result([value], [loss], monitor) for value, loss in zip(values, losses, strict=True)]
    for results in (batched, separate):
        found = select_best(dict(enumerate(zip("abc", results, strict=True))), candidates)
        assert found.model == "abc"[kept]
        assert found.fit_result.best == [ValidationScore(values[kept], losses[kept])]
        assert found.best == values
        assert found.selected == kept
        assert [row["epoch"] for row in found.fit_result.history] == [1, 2]
    assert all("member" not in row for one in batched for row in one.history)


def test_the_setting_is_a_list_of_weights():
    assert make_settings("strong", "node").training.pseudo_label_weights == [0.0, 1.0]
    for preset, section in (("paper", "node"), ("released", "node"), ("strong", "edge"), ("strong", "graph")):
        assert make_settings(preset, section).training.pseudo_label_weights == [0.0]
    for text, value in (("0.5", [0.5]), ("0,1", [0.0, 1.0]), ("[0, 2]", [0.0, 2.0])):
        assert (
            make_settings("paper", "node", {"training.pseudo_label_weights": text}).training.pseudo_label_weights
            == value
        )
    for bad in ([], [-1.0], [float("nan")], "much"):
        with pytest.raises(SettingsError, match=r"training\.pseudo_label_weights"):
            make_settings("strong", "node", {"training.pseudo_label_weights": bad})


def test_later_rounds_have_candidates_with_pseudo_labels_alone():
    training = make_settings("strong", "node").training
    assert [len(candidates) for candidates in candidate_grid(training)] == [4, 2, 2]
    assert {one.pseudo_label_weight for one in candidate_grid(training)[1]} == {1.0}
    alone = training.model_copy(update={"pseudo_label_weights": [0.0], "self_training_rounds": 3})
    assert [len(candidates) for candidates in candidate_grid(alone)] == [2]
    assert len(candidate_grid(make_settings("paper", "node").training)) == 1


def test_a_selected_candidate_is_one_of_the_candidates() -> None:
    candidates = [Candidate(round=1, gates="frozen", pseudo_label_weight=0.0)]
    for selected in ([1], [-1], [0, 7]):
        with pytest.raises(ValidationError, match="expected numbers of 1 candidate"):
            SelectionRecord(candidates=candidates, inverse_temperature=[], best=[[0.5]], selected=selected)
