"""The training loop: best epoch, precision, divergence and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from samples import RecordWeights, payments, quick, shapes, untrained_model

from censnet.data.tables.files import Tables
from censnet.errors import TrainingStopped
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run
from censnet.settings.presets import make_settings
from censnet.training.checkpoint import load_tensors
from censnet.training.devices import make_accelerator
from censnet.training.evaluator import Evaluator, mean_over_levels
from censnet.training.trainer import fit

CPU = make_accelerator(device="cpu")


@pytest.fixture
def without_mkldnn():
    with torch.backends.mkldnn.flags(enabled=False):  # it has no bf16 product on some virtual machines
        yield


# -- the epoch that is kept -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("target", ["node:tier", "edge:fee", "graph:ring"])
def test_the_saved_model_has_the_best_validation_metric_of_its_history(target, tmp_path):
    data = shapes(30) if target.startswith("graph") else payments()
    run = train(data, target, tmp_path / "run", settings=quick(training__epochs=15, training__learning_rate=0.05))
    level, metric = target.split(":")[0], {"node:tier": "accuracy", "edge:fee": "rmse", "graph:ring": "auc"}[target]
    values = run.history[f"validation_{metric}"]
    best = values.min() if metric == "rmse" else values.max()
    assert load_run(tmp_path / "run").evaluate(data)["validation"][level][metric] == pytest.approx(best, rel=1e-6)


def test_early_stopping_ends_the_training_and_restores_the_best_weights():
    prepared = prepare(payments(), "node:wealth", "strong", quick(training__learning_rate=0.1), 0)
    settings = prepared.settings.training.model_copy(update={"epochs": 200, "patience": 4})
    model = untrained_model(prepared)
    weights = RecordWeights(model)
    fit_result = fit(model, prepared.task_data, settings, callbacks=[weights])
    values = [row["validation_rmse"] for row in fit_result.history]
    best = int(np.argmin(values))
    assert [score.value for score in fit_result.best] == [min(values)]
    assert fit_result.best_epoch == [best + 1]
    assert len(values) == best + 1 + 4 < 200
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, weights.seen[best][name], rtol=0, atol=0)
    assert weights.begun == (200, 0, 1, "rmse")
    assert weights.steps == len(values)
    assert weights.ended


@pytest.mark.slow
def test_the_saved_weights_are_their_exponential_moving_average():
    """m := a m + (1 - a) w after each step, w as it is without; a is (1 + step) / (10 + step) while that is less."""
    changes = quick(model__dropout=0.0, model__norm="batch", data__fractions=(0.8, 0.0, 0.2))  # the last epoch is saved
    prepared = prepare(payments(), "node:wealth", "strong", changes, 0)
    settings = prepared.settings.training.model_copy(update={"epochs": 8, "patience": None})
    plain = untrained_model(prepared)
    current = RecordWeights(plain)
    expected = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    fit(plain, prepared.task_data, settings, callbacks=[current])
    for step in range(8):
        share = min(0.3, (1 + step) / (10 + step))
        for name, tensor in expected.items():
            if tensor.is_floating_point():
                tensor.mul_(share).add_((1 - share) * current.seen[step][name])
            else:
                tensor.copy_(current.seen[step][name])  # the number of batches
        averaged = untrained_model(prepared)  # from the same initial weights
        fit(averaged, prepared.task_data, settings.model_copy(update={"ema_decay": 0.3, "epochs": step + 1}))
        for name, tensor in averaged.state_dict().items():
            torch.testing.assert_close(tensor, expected[name])


def test_of_epochs_of_equal_metric_the_one_of_least_loss_is_the_best():
    prepared = prepare(payments(), "edge:fraud", "strong", quick(training__learning_rate=0.02, data__directed=False), 0)
    settings = prepared.settings.training.model_copy(update={"epochs": 12, "monitor": "auc"})
    fit_result = fit(untrained_model(prepared), prepared.task_data, settings)
    equal = {
        row["validation_loss"]: row["epoch"]
        for row in fit_result.history
        if row["validation_auc"] == fit_result.best[0].value
    }
    assert len(equal) > 2
    assert fit_result.best_epoch == [equal[min(equal)]]
    assert fit_result.best_epoch != [min(equal.values())]


def test_each_member_has_its_own_best_epoch():
    prepared = prepare(payments(), "node:wealth", "strong", quick(training__learning_rate=0.1), 0)
    task_data = replace(prepared.task_data, parts={"node": prepared.task_data.parts["node"].expand(-1, 3)})
    settings = prepared.settings.training.model_copy(update={"epochs": 60, "patience": 3})
    model = untrained_model(prepared, members=3)
    fit_result = fit(model, task_data, settings)
    scores = Evaluator(task_data, "validation", {"rmse"})(model)
    for member in range(3):
        mine = [row["validation_rmse"] for row in fit_result.history if row["member"] == member]
        counted = mine[: fit_result.best_epoch[member] + 3]  # after that it had waited long enough
        assert fit_result.best[member].value == min(counted)
        assert mean_over_levels(scores[member], "rmse") == pytest.approx(min(counted), rel=1e-6)
    assert len(set(fit_result.best_epoch)) > 1


def test_validation_can_be_rare_and_patience_counts_from_the_last_one():
    prepared = prepare(payments(), "node:wealth", "strong", quick(training__learning_rate=0.3), 0)
    change = {"epochs": 30, "patience": 2, "validate_every": 5}
    fit_result = fit(
        untrained_model(prepared), prepared.task_data, prepared.settings.training.model_copy(update=change)
    )
    judged = [row["epoch"] for row in fit_result.history if "validation_rmse" in row]
    assert judged == [epoch for epoch in range(1, len(fit_result.history) + 1) if epoch % 5 == 0]
    assert fit_result.best_epoch[0] in judged, "an epoch that was never judged is never the best"
    assert len(fit_result.history) == min(fit_result.best_epoch[0] + 5, 30)


def test_the_last_epoch_is_always_validated():
    prepared = prepare(payments(), "node:vip", "strong", quick(training__epochs=7), 0)
    settings = prepared.settings.training.model_copy(update={"validate_every": 5})
    fit_result = fit(untrained_model(prepared), prepared.task_data, settings)
    assert [row["epoch"] for row in fit_result.history if "validation_auc" in row] == [5, 7]


def test_without_validation_samples_the_last_epoch_is_the_best():
    settings = quick(data__fractions=(0.8, 0.0, 0.2))
    prepared = prepare(payments(), "node:vip", "strong", settings, 0)
    model = untrained_model(prepared)
    weights = RecordWeights(model)
    fit_result = fit(model, prepared.task_data, prepared.settings.training, callbacks=[weights])
    assert fit_result.best_epoch == [6]
    assert not any(name.startswith("validation") for row in fit_result.history for name in row)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, weights.seen[-1][name], rtol=0, atol=0)


# -- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_loss_falls_with_full_graphs_batches_and_subgraphs():
    for data, target, change in (
        (payments(), "edge:fraud", {}),
        (shapes(30), "graph:ring", {"training__batch_size": 8}),
        (payments(), "edge:fraud", {"training__sampling": "neighbors", "training__batch_size": 16}),
        (payments(), "node:vip", {"training__sampling": "proportional", "training__batch_size": 10}),
    ):
        settings = quick(training__epochs=12, training__learning_rate=0.02, model__dropout=0.0, **change)
        run = train(data, target, settings=settings)
        assert run.history["loss"].iloc[-1] < run.history["loss"].iloc[0], target


@pytest.mark.slow
@pytest.mark.usefixtures("without_mkldnn")
def test_bf16_trains_a_model_of_float32_weights(tmp_path):
    data = payments()
    settings = quick(training__precision="bf16", training__epochs=12, training__learning_rate=0.05)
    for ensemble in (1, 2):
        folder = tmp_path / f"run-{ensemble}"
        run = train(data, "edge:fraud", folder, settings=settings, ensemble=ensemble)
        assert run.history["loss"].iloc[-1] < run.history["loss"].iloc[0]
        loaded = load_run(folder)
        pd.testing.assert_frame_equal(loaded.predict(data), run.predict(data))
        assert loaded.evaluate(data) == run.metrics
    exact = train(data, "edge:fraud", settings=settings | {"training.precision": "float32"}, ensemble=2)
    assert list(exact.history["loss"]) != list(run.history["loss"]), "the flag does something"


# -- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    data, folder = payments(), tmp_path / "run"
    good = quick(training__checkpoint_seconds=0, training__epochs=40, model__dropout=0.0, training__patience=None)
    good |= {"training.gates": "learned"}  # one network
    bad = good | {"training.learning_rate": 1e30}
    with pytest.raises(
        TrainingStopped, match=r"in epoch \d+, step \d+: lower training.learning_rate or set"
    ) as stopped:
        train(data, "node:wealth", folder, settings=bad)
    assert f"the last good checkpoint is kept in {folder / 'checkpoint'}" in str(stopped.value)
    tensors, facts = load_tensors(folder / "checkpoint" / "member-0.safetensors")
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
    lower = good | {"training.learning_rate": 0.001}
    run = train(data, "node:wealth", folder, settings=lower, if_exists="resume")
    assert len(run.history) == 40
    assert list(run.history["learning_rate"]) == [1e30] * facts["epoch"] + [0.001] * (40 - facts["epoch"])
    assert run.config.settings.training.learning_rate == 0.001


def test_other_settings_may_not_change_when_a_training_is_resumed(tmp_path):
    data, folder = payments(), tmp_path / "run"
    with pytest.raises(TrainingStopped):
        train(data, "node:wealth", folder, settings=quick(training__learning_rate=1e30, training__patience=None))
    with pytest.raises(ValueError, match=r"another settings model\.hidden: it was 8, now it is 9: give the same"):
        train(data, "node:wealth", folder, settings=quick(model__hidden=9), if_exists="resume")
    other = Tables(data.nodes.assign(age=1 + data.nodes["age"].round()), data.edges)
    with pytest.raises(ValueError, match="was started on other data: values of column"):
        train(other, "node:wealth", folder, settings=quick(training__patience=None), if_exists="resume")


@pytest.mark.slow
def test_ctrl_c_saves_a_checkpoint_and_names_the_command_that_resumes(tmp_path):
    payments().edges.to_csv(tmp_path / "payments.csv", index=False)
    code = (
        "import sys; from censnet.pipeline import train\n"
        "train('payments.csv', 'edge:fraud', 'run', settings={'training.epochs': 100000, 'training.patience': None,"
        " 'model.hidden': 8, 'model.heads': 1})"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    history = tmp_path / "run" / "history.csv"
    deadline = time.monotonic() + 120
    while not (history.exists() and history.read_text().count("\n") > 3):
        assert time.monotonic() < deadline
        assert child.poll() is None, child.stderr.read() if child.stderr else ""
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "TrainingInterrupted: stopped after epoch" in said
    assert "censnet.pipeline.resume_run('run') goes on with it" in said
    _, facts = load_tensors(tmp_path / "run" / "checkpoint" / "member-0.safetensors")
    assert len(facts["history"]) == facts["epoch"] >= 3
    assert len(history.read_text().splitlines()) == facts["epoch"] + 1
    with pytest.raises(ValueError, match=r"is not finished: censnet\.pipeline\.resume_run\(.*run'\) goes on with it"):
        load_run(tmp_path / "run")


def test_without_a_directory_ctrl_c_says_that_nothing_was_saved():
    class Impatient(RecordWeights):
        def on_epoch_end(self, rows, best):
            if rows[0]["epoch"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

    prepared = prepare(payments(), "node:vip", "strong", quick(), 0)
    model = untrained_model(prepared)
    with pytest.raises(TrainingStopped, match="stopped after epoch 2: nothing was saved"):
        fit(model, prepared.task_data, prepared.settings.training, callbacks=[Impatient(model)])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the user's own handler is back"


# -- what is written ------------------------------------------------------------------------------------------------


def test_arguments_that_need_a_run_directory_are_refused_without_one():
    with pytest.raises(ValueError, match="finish and tensorboard need a run directory: give out"):
        train(payments(), "node:vip", settings=quick(), tensorboard=True)
    with pytest.raises(ValueError, match="ensemble is 0, expected 1 to 10,000"):
        train(payments(), "node:vip", settings=quick(), ensemble=0)


def test_the_settings_of_a_run_are_those_of_the_preset_with_the_changes():
    run = train(payments(), "node:vip", settings=quick(training__max_grad_norm=0.5), preset="paper", seed=3)
    expected = make_settings("paper", "node", quick(training__max_grad_norm=0.5), 3)
    assert run.config.settings == expected
