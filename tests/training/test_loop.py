"""The loop: what it keeps, when it stops, what it writes while it goes, and what it says when it cannot."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from training.samples import payments, quick, shapes

from censnet.data.tables.files import Tables
from censnet.errors import SettingsError, TrainingStopped
from censnet.nn.ensemble import split_members, stack_members
from censnet.nn.model import Model
from censnet.pipeline import train
from censnet.pipeline.prepare import Prepared, prepare
from censnet.runs import load_run
from censnet.selection.recipes import can_batch_members
from censnet.settings.presets import make_settings
from censnet.training.checkpoint import load_tensors
from censnet.training.evaluator import Evaluator, overall
from censnet.training.history import HistoryFile, history_csv, history_table
from censnet.training.task_data import build_model
from censnet.training.trainer import fit


def make(prepared: Prepared, members: int = 1, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    models = [build_model(prepared.task_data, prepared.settings) for _ in range(members)]
    return models[0] if members == 1 else stack_members(models)


class Weights:
    """A listener that remembers the weights after every epoch."""

    def __init__(self, model: Model) -> None:
        self.model, self.seen = model, []
        self.steps = 0

    def begin(self, epochs, done, steps, monitor):
        self.begun = (epochs, done, steps, monitor)

    def step(self):
        self.steps += 1

    def epoch(self, rows, best):
        self.seen.append({name: tensor.clone() for name, tensor in self.model.state_dict().items()})

    def end(self):
        self.ended = True


@pytest.fixture
def without_mkldnn():
    with torch.backends.mkldnn.flags(enabled=False):  # it has no bf16 product on some virtual machines
        yield


# -- the epoch that is kept -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["node:tier", "edge:fee", "graph:ring"])
def test_the_saved_network_has_the_best_validation_metric_of_its_history(target, tmp_path):
    data = shapes(30) if target.startswith("graph") else payments()
    run = train(data, target, tmp_path / "run", settings=quick(training__epochs=15, training__learning_rate=0.05))
    level, metric = target.split(":")[0], {"node:tier": "accuracy", "edge:fee": "rmse", "graph:ring": "auc"}[target]
    values = run.history[f"validation_{metric}"]
    best = values.min() if metric == "rmse" else values.max()
    assert load_run(tmp_path / "run").evaluate(data)["validation"][level][metric] == pytest.approx(best, rel=1e-6)


def test_the_best_weights_come_back_and_patience_ends_it():
    prepared = prepare(payments(), "node:wealth", "strong", quick(training__learning_rate=0.1), 0)
    settings = prepared.settings.training.model_copy(update={"epochs": 200, "patience": 4})
    model = make(prepared)
    weights = Weights(model)
    fit_result = fit(model, prepared.task_data, settings, callbacks=[weights])
    values = [row["validation_rmse"] for row in fit_result.history]
    best = int(np.argmin(values))
    assert fit_result.best == [min(values)]
    assert fit_result.best_epoch == [best + 1]
    assert len(values) == best + 1 + 4 < 200
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, weights.seen[best][name], rtol=0, atol=0)
    assert weights.begun == (200, 0, 1, "rmse")
    assert weights.steps == len(values)
    assert weights.ended


def test_what_is_validated_and_kept_is_the_running_mean_of_the_weights():
    """m := a m + (1 - a) w after each step, w as it is without; a is (1 + step) / (10 + step) while that is less."""
    prepared = prepare(payments(), "node:wealth", "strong", quick(model__dropout=0.0), 0)
    settings = prepared.settings.training.model_copy(update={"epochs": 8, "patience": None})
    plain, averaged = make(prepared), make(prepared)  # from one start
    alone, mean = Weights(plain), Weights(averaged)
    expected = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    fit(plain, prepared.task_data, settings, callbacks=[alone])
    fit(averaged, prepared.task_data, settings.model_copy(update={"ema_decay": 0.3}), callbacks=[mean])
    for step in range(8):
        share = min(0.3, (1 + step) / (10 + step))
        for name, tensor in expected.items():
            tensor.mul_(share).add_((1 - share) * alone.seen[step][name])
            torch.testing.assert_close(mean.seen[step][name], tensor)


def test_of_epochs_that_the_metric_finds_equal_the_one_of_least_loss_is_kept():
    prepared = prepare(payments(), "edge:fraud", "strong", quick(training__learning_rate=0.02), 0)
    settings = prepared.settings.training.model_copy(update={"epochs": 12, "monitor": "auc"})
    fit_result = fit(make(prepared), prepared.task_data, settings)
    equal = {
        row["validation_loss"]: row["epoch"]
        for row in fit_result.history
        if row["validation_auc"] == fit_result.best[0]
    }
    assert len(equal) > 2
    assert fit_result.best_epoch == [equal[min(equal)]]
    assert fit_result.best_epoch != [min(equal.values())]


def test_each_member_keeps_its_own_best_epoch():
    prepared = prepare(payments(), "node:wealth", "strong", quick(training__learning_rate=0.1), 0)
    task_data = replace(prepared.task_data, parts={"node": prepared.task_data.parts["node"].expand(-1, 3)})
    settings = prepared.settings.training.model_copy(update={"epochs": 60, "patience": 3})
    model = make(prepared, members=3)
    fit_result = fit(model, task_data, settings)
    scores = Evaluator(task_data, "validation", {"rmse"})(model)
    for member in range(3):
        mine = [row["validation_rmse"] for row in fit_result.history if row["member"] == member]
        counted = mine[: fit_result.best_epoch[member] + 3]  # after that it had waited long enough
        assert fit_result.best[member] == min(counted)
        assert overall(scores[member], "rmse") == pytest.approx(min(counted), rel=1e-6)
    assert len(set(fit_result.best_epoch)) > 1


def test_validation_can_be_rare_and_patience_counts_from_the_last_one():
    prepared = prepare(payments(), "node:wealth", "strong", quick(training__learning_rate=0.3), 0)
    change = {"epochs": 30, "patience": 2, "validate_every": 5}
    fit_result = fit(make(prepared), prepared.task_data, prepared.settings.training.model_copy(update=change))
    judged = [row["epoch"] for row in fit_result.history if "validation_rmse" in row]
    assert judged == [epoch for epoch in range(1, len(fit_result.history) + 1) if epoch % 5 == 0]
    assert fit_result.best_epoch[0] in judged, "an epoch that was never judged is never the best"
    assert len(fit_result.history) == min(fit_result.best_epoch[0] + 5, 30)


def test_the_last_epoch_is_judged_whatever_the_pace():
    prepared = prepare(payments(), "node:vip", "strong", quick(training__epochs=7), 0)
    settings = prepared.settings.training.model_copy(update={"validate_every": 5})
    fit_result = fit(make(prepared), prepared.task_data, settings)
    assert [row["epoch"] for row in fit_result.history if "validation_auc" in row] == [5, 7]


def test_without_validation_rows_the_last_epoch_is_kept():
    settings = quick(data__fractions=(0.8, 0.0, 0.2))
    prepared = prepare(payments(), "node:vip", "strong", settings, 0)
    model = make(prepared)
    weights = Weights(model)
    fit_result = fit(model, prepared.task_data, prepared.settings.training, callbacks=[weights])
    assert fit_result.best_epoch == [6]
    assert not any(name.startswith("validation") for row in fit_result.history for name in row)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, weights.seen[-1][name], rtol=0, atol=0)


def test_a_validation_part_of_one_class_is_judged_by_the_loss(caplog):
    data = payments()
    parts = np.resize(["train", "test"], len(data.nodes)).astype(object)
    parts[np.flatnonzero(data.nodes["vip"] == "yes")[:5]] = "validation"
    data = Tables(data.nodes.assign(split=parts), data.edges)
    with caplog.at_level(logging.WARNING, "censnet"):
        run = train(data, "node:vip", settings=quick(training__epochs=12, training__learning_rate=0.05))
    assert "the validation rows do not define auc (one class alone?): the loss decides" in caplog.text
    best = run.history["validation_loss"].min()
    assert run.metrics["validation"]["node"]["loss"] == pytest.approx(best, rel=1e-6)
    assert "validation_auc" not in run.history


def test_links_can_be_judged_by_their_loss():
    settings = quick(training__monitor="loss", training__epochs=8, training__validate_every=1)
    run = train(payments(), "link", settings=settings)
    assert run.history["validation_loss"].notna().all()
    assert "validation_auc" not in run.history


def test_an_unknown_monitor_is_refused():
    with pytest.raises(SettingsError, match=r"training\.monitor is 'rmse', expected auto or one of accuracy, ap, auc"):
        train(payments(), "node:vip", settings=quick(training__monitor="rmse"))


# -- batches --------------------------------------------------------------------------------------------------------


def test_the_loss_falls_for_a_whole_graph_for_many_and_for_parts():
    for data, target, change in (
        (payments(), "edge:fraud", {}),
        (shapes(30), "graph:ring", {"training__batch_size": 8}),
        (payments(), "edge:fraud", {"training__sampling": "neighbors", "training__batch_size": 16}),
        (payments(), "node:vip", {"training__sampling": "proportional", "training__batch_size": 10}),
    ):
        settings = quick(training__epochs=12, training__learning_rate=0.02, model__dropout=0.0, **change)
        run = train(data, target, settings=settings)
        assert run.history["loss"].iloc[-1] < run.history["loss"].iloc[0], target


@pytest.mark.usefixtures("without_mkldnn")
def test_bf16_trains_and_the_network_that_is_left_is_a_plain_one(tmp_path):
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


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(tmp_path):
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


def test_other_settings_may_not_change_on_the_way(tmp_path):
    data, folder = payments(), tmp_path / "run"
    with pytest.raises(TrainingStopped):
        train(data, "node:wealth", folder, settings=quick(training__learning_rate=1e30, training__patience=None))
    with pytest.raises(ValueError, match=r"another settings model\.hidden: it was 8, now it is 9: give the same"):
        train(data, "node:wealth", folder, settings=quick(model__hidden=9), if_exists="resume")
    other = Tables(data.nodes.assign(age=1 + data.nodes["age"].round()), data.edges)
    with pytest.raises(ValueError, match="was started on other data: values of column"):
        train(other, "node:wealth", folder, settings=quick(training__patience=None), if_exists="resume")


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
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
    assert "Error: stopped after epoch" in said
    assert "censnet train --resume --out run goes on with it" in said
    _, facts = load_tensors(tmp_path / "run" / "checkpoint" / "member-0.safetensors")
    assert len(facts["history"]) == facts["epoch"] >= 3
    assert len(history.read_text().splitlines()) == facts["epoch"] + 1
    with pytest.raises(ValueError, match=r"is not finished: censnet train --resume --out .*run goes on with it"):
        load_run(tmp_path / "run")


def test_without_a_directory_ctrl_c_says_that_nothing_was_saved():
    class Impatient(Weights):
        def epoch(self, rows, best):
            if rows[0]["epoch"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

    prepared = prepare(payments(), "node:vip", "strong", quick(), 0)
    model = make(prepared)
    with pytest.raises(TrainingStopped, match="stopped after epoch 2: nothing was saved"):
        fit(model, prepared.task_data, prepared.settings.training, callbacks=[Impatient(model)])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the user's own handler is back"


# -- what is written ------------------------------------------------------------------------------------------------


def test_history_grows_with_each_epoch(tmp_path):
    sizes = []

    class Reader(Weights):
        def epoch(self, rows, best):
            sizes.append(len((tmp_path / "history.csv").read_text().splitlines()))

    prepared = prepare(payments(), "node:vip", "strong", quick(), 0)
    model, record = make(prepared), HistoryFile(tmp_path / "history.csv")
    fit_result = fit(model, prepared.task_data, prepared.settings.training, callbacks=[Reader(model)], record=record)
    assert sizes == [2, 3, 4, 5, 6, 7]
    frame = history_table(fit_result.history, fit_result.monitor)
    assert (tmp_path / "history.csv").read_bytes() == history_csv(frame)
    back = pd.read_csv(tmp_path / "history.csv")
    pd.testing.assert_frame_equal(back, frame, check_exact=True)


def test_history_of_members_one_after_the_other_is_that_of_the_run(tmp_path):
    grown = []

    def train_two(folder: Path) -> None:
        settings = quick(training__validate_every=4, model__hidden=1024)  # too wide to be trained side by side
        run = train(shapes(20), "graph:ring", folder, settings=settings, ensemble=2)
        grown.append((folder / "history.csv").read_bytes())
        assert list(run.history.columns)[:2] == ["member", "epoch"]
        assert run.history.groupby("member").size().tolist() == [6, 6]
        assert run.history["validation_auc"].notna().tolist() == [False, False, False, True, False, True] * 2

    train_two(tmp_path / "a")
    train_two(tmp_path / "b")
    assert grown[0] == grown[1]


def test_tensorboard_files_hold_the_curves(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = quick(
        training__pseudo_label_weights=[0.0], training__gates="learned"
    )  # one network, whose curves need no number
    run = train(payments(), "node:vip", tmp_path / "run", settings=settings, tensorboard=True)
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    curve = events.Scalars("loss")
    assert [point.step for point in curve] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([point.value for point in curve], run.history["loss"], rtol=1e-6)
    assert "validation_auc" in events.Tags()["scalars"]
    assert load_run(tmp_path / "run").metrics == run.metrics


def test_every_network_has_curves_of_its_own_in_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(payments(), "node:vip", tmp_path / "run", settings=quick(), tensorboard=True)
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert len(run.config.selection.candidates) == 8
    for number in range(8):
        assert [point.step for point in events.Scalars(f"loss/{number}")] == [1, 2, 3, 4, 5, 6]


def test_settings_without_a_directory_to_write_to_are_refused():
    with pytest.raises(ValueError, match="finish and tensorboard need a run directory: give out"):
        train(payments(), "node:vip", settings=quick(), tensorboard=True)
    with pytest.raises(ValueError, match="ensemble is 0, expected 1 to 10,000"):
        train(payments(), "node:vip", settings=quick(), ensemble=0)


def test_the_settings_of_a_run_are_those_of_the_preset_with_the_changes():
    run = train(payments(), "node:vip", settings=quick(training__max_grad_norm=0.5), preset="paper", seed=3)
    expected = make_settings("paper", "node", quick(training__max_grad_norm=0.5), 3)
    assert run.config.settings == expected


# -- members on many graphs -------------------------------------------------------------------------------------------


def test_members_on_the_same_batches_of_graphs_are_those_alone():
    changes = quick(model__dropout=0.0, model__pool=["mean", "attention"], training__monitor="loss")
    asked = prepare(shapes(40), "graph:ring", "strong", changes, 0)
    task_data, settings = asked.task_data, asked.settings
    assert task_data.members == 1
    twice = replace(task_data, parts={level: part.expand(-1, 2) for level, part in task_data.parts.items()})
    assert can_batch_members(twice, settings, 2, "cpu")
    alone = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        alone.append(build_model(task_data, settings))
    many, graph = stack_members(alone), task_data.graph.batch(torch.arange(40))
    fit_result = fit(many, twice, settings.training, 5, device="cpu")
    for number, (model, member) in enumerate(zip(alone, split_members(many), strict=True)):
        found = fit(model, task_data, settings.training, 5, device="cpu")
        assert found.best_epoch == [fit_result.best_epoch[number]]
        theirs = [row for row in fit_result.history if row["member"] == number]
        for name, share in (("loss", 1e-5), ("validation_loss", 5e-3)):
            assert [row[name] for row in theirs] == pytest.approx([row[name] for row in found.history], rel=share)
        assert torch.allclose(member(graph).by_level["graph"], model(graph).by_level["graph"], rtol=1e-2, atol=1e-3)


def test_members_with_splits_of_their_own_have_batches_of_their_own():
    asked = prepare(shapes(40), "graph:ring", "strong", quick(), 0)
    (part,) = asked.task_data.parts.values()
    other = replace(asked.task_data, parts={"graph": torch.cat([part, part.flip(0)], dim=1)})
    assert not can_batch_members(other, asked.settings, 2, "cpu")


def test_sums_are_in_units_of_the_average_training_graph(tmp_path):
    asked = prepare(shapes(40), "graph:ring", "strong", quick(model__pool=["sum"], model__pool_from="both"), 0)
    graph, (part,) = asked.task_data.graph, asked.task_data.parts.values()
    first = torch.full_like(part, 2)
    first[:3] = 0
    for codes, chosen in ((part, part[:, 0] == 0), (first, slice(3)), (torch.full_like(part, 2), None)):
        model = build_model(replace(asked.task_data, parts={"graph": codes}), asked.settings)
        expected = [
            1.0 if chosen is None else float(offset.diff()[chosen].double().mean())  # without a graph, the sum itself
            for offset in (graph.node_offset, graph.edge_offset)
        ]
        assert [float(readout.reference_size) for readout in model.heads["graph"].readouts] == pytest.approx(expected)
    run = train(shapes(40), "graph:ring", tmp_path / "run", settings=quick(model__pool=["sum"]))
    (usual,), (again,) = (
        [readout.reference_size for readout in model.heads["graph"].readouts]
        for model in (run.models[0], load_run(tmp_path / "run").models[0])
    )
    assert torch.equal(usual, again)
    assert float(usual) > 1
