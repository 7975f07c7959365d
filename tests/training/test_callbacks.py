"""Callbacks: they see every epoch, may stop a training, and write TensorBoard files."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from samples import RecordWeights, payments, quick, untrained_model

from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run
from censnet.training.callbacks import Callback
from censnet.training.trainer import fit


def test_a_callback_can_stop_a_training_which_keeps_its_best_epoch():
    class Stop(Callback):
        def on_epoch_end(self, rows, best):
            return rows[0]["epoch"] == 3

    prepared = prepare(payments(), "node:wealth", "strong", quick(), 0)
    model = untrained_model(prepared)
    weights = RecordWeights(model)
    result = fit(model, prepared.task_data, prepared.settings.training, callbacks=[weights, Stop()])
    assert [row["epoch"] for row in result.history] == [1, 2, 3]
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, weights.seen[result.best_epoch[0] - 1][name], rtol=0, atol=0)


@pytest.mark.slow
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


@pytest.mark.slow
def test_every_candidate_has_curves_of_its_own_in_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(payments(), "node:vip", tmp_path / "run", settings=quick(), tensorboard=True)
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert len(run.config.selection.candidates) == 8
    for number in range(8):
        assert [point.step for point in events.Scalars(f"loss/{number}")] == [1, 2, 3, 4, 5, 6]
