"""Settings that nothing reads are refused, and what a preset says is not held against the user."""

from __future__ import annotations

import pytest
from training.samples import payments, quick, shapes

from censnet.estimators import CensNetRegressor
from censnet.training import train
from censnet.training.config import SettingsError
from censnet.training.prepare import prepare

LINKS = "it is of links, and none are predicted"
COLUMN = "no column of graphs is predicted"


@pytest.mark.parametrize(
    ("data", "target", "preset", "name", "value", "why"),
    [
        (payments, "node:vip", "strong", "training.negatives", 5, LINKS),
        (payments, "node:vip", "paper", "model.decoder", "pairs", LINKS),
        (payments, "node:vip", "strong", "model.latent", 8, LINKS),
        (shapes, "graph:ring", "strong", "data.link_fractions", (0.5, 0.25, 0.25), LINKS),
        (payments, "link", "strong", "model.positive_weight", 1000.0, "model.decoder pairs has as many links as other"),
        (payments, "link", "paper", "training.negatives", 50, "model.decoder inner draws no pairs"),
        (payments, "link", "paper", "training.mask", 0.5, "model.decoder inner hides no links"),
        (payments, "link", "paper", "model.walks", 3, "model.decoder inner reads none"),
        (payments, "node:vip", "strong", "training.mask", 0.5, LINKS),
        (payments, "node:vip", "strong", "model.walks", 3, LINKS),
        (payments, "link", "strong", "model.head", [7, 7], "links alone are predicted"),
        (payments, "link", "strong", "model.linear_end", True, "links alone are predicted"),
        (payments, "node:vip", "strong", "model.read_ends", True, "no column of edges is predicted"),
        (payments, "node:vip", "strong", "model.pool", ["sum"], COLUMN),
        (payments, "edge:fee", "strong", "model.pool_norm", "layer", COLUMN),
        (payments, "node:vip", "strong", "model.feature_dropout", 0.9, "it takes out words of nodes, and these have"),
    ],
)
def test_a_setting_that_nothing_reads_is_refused(data, target, preset, name, value, why):
    settings = {"model.layers": "EN" if target != "edge:fraud" else "ENE"}
    with pytest.raises(SettingsError, match=rf"{name} is .*, expected .*, as it is: nothing reads it, since {why}"):
        prepare(data(), target, preset, settings | {name: value})
    prepare(data(), target, preset, settings)


def test_what_is_read_is_not_refused():
    joint = {"training.mask": 0.2, "training.negatives": 2, "model.walks": 2, "model.latent": 8, "model.head": [8]}
    settings = prepare(payments(), ["edge:fee", "link"], "strong", joint | {"model.read_ends": True}).settings
    assert (settings.training.mask, settings.model.walks, settings.model.head) == (0.2, 2, [8])
    prepare(shapes(), "graph:ring", "strong", {"model.pool": ["sum"], "model.pool_norm": None})
    prepare(payments(), "link", "paper", {"model.positive_weight": 3.0})


def test_an_estimator_refuses_it_too():
    with pytest.raises(SettingsError, match=r"training\.mask is 0\.3"):
        CensNetRegressor(settings={"training.mask": 0.3}).fit(["CC", "CCO", "CCC", "CCCC"], [1.0, 2.0, 3.0, 4.0])


def test_the_message_of_a_residual_names_what_it_can_be():
    with pytest.raises(SettingsError, match=r"model\.residual is 'riseing', expected true or false, or 'rising'"):
        train(payments(), "node:vip", settings=quick(model__residual="riseing"))
