"""Replicates: what varies does, what does not stays, and the summary has the mean and the std of the runs."""

from __future__ import annotations

import json
from statistics import fmean, stdev

import pandas as pd
import pytest
from samples import content, payments, quick, replicate_both_ways, shapes, smiles, unscaled

from censnet.pipeline import replicate, train
from censnet.pipeline import replicates as replicates_module
from censnet.pipeline.replicates import summarize
from censnet.runs import load_run


@pytest.mark.slow
def test_the_summary_is_the_mean_and_the_standard_deviation_of_the_runs(tmp_path):
    found = replicate(payments(), "node:tier", tmp_path / "out", replicates=3, settings=quick(training__epochs=3))
    for part in ("train", "validation", "test"):
        values = [run.metrics[part]["node"]["accuracy"] for run in found.runs]
        cell = found.summary[part]["node"]["accuracy"]
        assert cell["values"] == values
        assert cell["mean"] == pytest.approx(fmean(values))
        assert cell["std"] == pytest.approx(stdev(values))
    stored = json.loads((tmp_path / "out" / "replicates.json").read_text())
    assert stored == {"vary": "both", "parts": found.summary}
    for number, run in enumerate(found.runs):
        assert load_run(tmp_path / "out" / f"seed-{number}").metrics == run.metrics


def test_a_metric_that_one_run_lacks_is_left_out():
    found = summarize([{"test": {"node": {"auc": 0.5, "f1": 0.1}}}, {"test": {"node": {"f1": 0.3}}}])
    assert list(found["test"]["node"]) == ["f1"]
    assert found["test"]["node"]["f1"]["std"] == pytest.approx(0.2 / 2**0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("vary", "splits", "starts"), [("both", 3, 3), ("split", 3, 1), ("init", 1, 3)])
def test_what_is_asked_to_vary_varies(vary, splits, starts):
    found = replicate(payments(), "edge:fraud", replicates=3, vary=vary, settings=quick(training__epochs=1), seed=4)
    assert len({run.splits.to_csv() for run in found.runs}) == splits
    assert len({run.config.settings.seed for run in found.runs}) == starts
    assert len({run.config.settings.data.split_seed for run in found.runs}) == splits
    assert found.runs[0].config.settings.seed == 4


@pytest.mark.slow
@pytest.mark.parametrize(("data", "target"), [(shapes, "graph:ring"), (smiles, "graph:acid")])
def test_one_by_one_each_is_the_training_of_its_seed(data, target):
    settings = quick(training__epochs=2, model__pool=["mean", "sum"])
    found = replicate(data(30), target, replicates=2, settings=settings, seed=3)
    alone = train(data(30), target, settings=settings | {"data.split_seed": 4}, seed=4)
    assert found.runs[1].metrics == alone.metrics
    pd.testing.assert_frame_equal(found.runs[1].history, alone.history)


@pytest.mark.slow
def test_batched_or_one_by_one_the_scores_are_alike_and_the_splits_the_same(monkeypatch):
    """The same splits, other starting weights: means over runs that learn the task agree loosely."""
    settings = quick(
        training__epochs=25, training__learning_rate=0.04, model__dropout=0.0, training__monitor="loss",
        data__fractions=(0.5, 0.2, 0.3), model__self_weight="learned",
    )  # fmt: skip
    found = replicate_both_ways(monkeypatch, settings)
    for one, other in zip(found[True].runs, found[False].runs, strict=True):
        pd.testing.assert_frame_equal(one.splits, other.splits)
        assert one.config.settings == other.config.settings
        assert one.config.targets == other.config.targets
    losses = [found[yes].summary["train"]["node"]["loss"] for yes in (True, False)]
    assert losses[0]["values"] != losses[1]["values"]
    assert losses[0]["mean"] == pytest.approx(losses[1]["mean"], abs=0.1)
    assert all(found[yes].summary["test"]["node"]["accuracy"]["mean"] > 0.8 for yes in (True, False))


@pytest.mark.slow
def test_batched_runs_are_complete_runs(tmp_path, monkeypatch):
    calls = []
    whole = replicates_module._fit_batched
    monkeypatch.setattr(replicates_module, "_fit_batched", lambda *args: calls.append(1) or whole(*args))
    found = replicate(unscaled(), "node:side", tmp_path / "out", replicates=3, settings=quick(training__epochs=4))
    assert calls, "these data can be shared"
    for number, run in enumerate(found.runs):
        back = load_run(tmp_path / "out" / f"seed-{number}")
        assert back.evaluate(unscaled()) == run.metrics == back.metrics
        assert back.config.members == 1
        assert "member" not in back.history
        best = back.history["validation_auc"].max()
        assert back.metrics["validation"]["node"]["auc"] == pytest.approx(best, abs=1e-6)


def test_class_weights_are_not_shared_among_splits(monkeypatch):
    monkeypatch.setattr(replicates_module, "_fit_batched", None)
    found = replicate(
        unscaled(), "node:side", replicates=2, settings=quick(training__epochs=1, training__imbalance="weights")
    )
    assert len(found.runs) == 2


class CrashError(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_replicates_that_were_stopped_go_on_to_the_same_bits(shared, tmp_path, monkeypatch):
    data, target = (unscaled(), "node:side") if shared else (payments(), "node:tier")
    settings = quick(training__epochs=3, training__checkpoint_seconds=0)

    def go(out, **more):
        return replicate(data, target, tmp_path / out, replicates=3, settings=settings, **more)

    go("whole")
    finish, done = replicates_module.make_run if shared else replicates_module.train, []

    def crash(*args, **kwargs):
        done.append(1)
        if len(done) == 2:
            raise CrashError
        return finish(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(replicates_module, "make_run" if shared else "train", crash)
        with pytest.raises(CrashError):
            go("run")
    found = go("run", if_exists="resume")
    for number in range(3):
        name = f"seed-{number}"
        assert content(tmp_path / "run" / name) == content(tmp_path / "whole" / name)
    assert (tmp_path / "run" / "replicates.json").read_text() == (tmp_path / "whole" / "replicates.json").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(replicates_module, "fit_recipes", None)
        assert go("run", if_exists="resume").summary == found.summary, "what is finished is only read"


@pytest.mark.slow
def test_replicates_are_replaced_only_if_asked(tmp_path):
    settings = quick(training__epochs=1)
    replicate(unscaled(), "node:side", tmp_path / "out", replicates=2, settings=settings)
    with pytest.raises(
        ValueError, match="seed-0 is there already: choose another out, if_exists='resume' to go on, or"
    ):
        replicate(unscaled(), "node:side", tmp_path / "out", replicates=2, settings=settings)
    found = replicate(
        unscaled(), "node:side", tmp_path / "out", replicates=2, settings=settings, seed=9, if_exists="overwrite"
    )
    assert load_run(tmp_path / "out" / "seed-1").metrics == found.runs[1].metrics
    with pytest.raises(ValueError, match="replicates is 1, expected at least 2"):
        replicate(unscaled(), "node:side", replicates=1)
