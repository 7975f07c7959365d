"""The monitor: the validation metric that selects the best epoch."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from samples import payments, quick

from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.pipeline import train


@pytest.mark.slow
def test_validation_samples_of_one_class_are_monitored_by_the_loss(caplog):
    data = payments()
    parts = np.resize(["train", "test"], len(data.nodes)).astype(object)
    parts[np.flatnonzero(data.nodes["vip"] == "yes")[:5]] = "validation"
    data = Tables(data.nodes.assign(split=parts), data.edges)
    with caplog.at_level(logging.WARNING, "censnet"):
        run = train(data, "node:vip", settings=quick(training__epochs=12, training__learning_rate=0.05))
    assert (
        "auc is not defined on the validation samples (one class only): the loss selects the best epoch" in caplog.text
    )
    best = run.history["validation_loss"].min()
    assert run.metrics["validation"]["node"]["loss"] == pytest.approx(best, rel=1e-6)
    assert "validation_auc" not in run.history


@pytest.mark.slow
def test_links_can_be_monitored_by_their_loss():
    settings = quick(training__monitor="loss", training__epochs=8, training__validate_every=1)
    run = train(payments(), "link", settings=settings)
    assert run.history["validation_loss"].notna().all()
    assert "validation_auc" not in run.history


def test_an_unknown_monitor_is_refused():
    with pytest.raises(SettingsError, match=r"training\.monitor is 'rmse', expected auto or one of accuracy, ap, auc"):
        train(payments(), "node:vip", settings=quick(training__monitor="rmse"))
