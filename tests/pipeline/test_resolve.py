"""Settings that nothing reads are refused, and what a preset says is not held against the user."""

from __future__ import annotations

import pytest
from samples import payments, quick, shapes

from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.estimators import CensNetRegressor
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare

LINKS = "it is of links, and none are predicted"
COLUMN = "no column of graphs is predicted"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "target", "preset", "name", "value", "why"),
    [
        (payments, "node:vip", "strong", "training.negative_ratio", 5, LINKS),
        (payments, "node:vip", "paper", "model.decoder", "pairwise", LINKS),
        (payments, "node:vip", "strong", "model.latent", 8, LINKS),
        (shapes, "graph:ring", "strong", "data.link_fractions", (0.5, 0.25, 0.25), LINKS),
        (payments, "link", "strong", "model.positive_weight", 1000.0, "model.decoder pairwise trains on as many links"),
        (payments, "link", "paper", "training.negative_ratio", 50, "model.decoder inner_product samples no negatives"),
        (payments, "link", "paper", "training.edge_mask_ratio", 0.5, "model.decoder inner_product masks no edges"),
        (payments, "link", "paper", "model.diffusion_steps", 3, "model.decoder inner_product reads no diffusion"),
        (payments, "node:vip", "strong", "training.edge_mask_ratio", 0.5, LINKS),
        (payments, "node:vip", "strong", "model.diffusion_steps", 3, LINKS),
        (payments, "link", "strong", "model.head", [7, 7], "links alone are predicted"),
        (payments, "link", "strong", "model.last_layer_is_head", True, "links alone are predicted"),
        (payments, "node:vip", "strong", "model.edge_head_reads_nodes", True, "no column of edges is predicted"),
        (payments, "node:vip", "strong", "model.pool", ["sum"], COLUMN),
        (payments, "edge:fee", "strong", "model.pool_norm", "layer", COLUMN),
        (
            payments,
            "node:vip",
            "strong",
            "model.feature_dropout",
            0.9,
            "it drops sparse features of nodes, and these are",
        ),
    ],
)
def test_a_setting_that_nothing_reads_is_refused(data, target, preset, name, value, why):
    settings = {"model.layers": "EN" if target != "edge:fraud" else "ENE"}
    with pytest.raises(SettingsError, match=rf"{name} is .*, expected .*, as it is: nothing reads it, since {why}"):
        prepare(data(), target, preset, settings | {name: value})
    prepare(data(), target, preset, settings)


UNREAD = [
    (
        "node:vip",
        {"data.split_file": "splits.csv"},
        "data.split_file is splits.csv, .*data.split is auto, and file would",
    ),
    ("node:vip", {"data.split_column": "age"}, "data.split_column is age, .*, and time and column would read it"),
    (
        "node:vip",
        {"data.split": "ratio", "data.split_column": "age"},
        "data.split_column is age, .*data.split is ratio",
    ),
    (
        "node:vip",
        {"data.label_rate": 0.1},
        "data.label_rate is 0.1, .*data.split is auto, and label-rate would read it",
    ),
    (
        "node:vip",
        {"data.split_index": 1},
        "data.split_index is 1, .*the split does not come from masks that have several",
    ),
    (
        "node:vip",
        {"data.split": "label-rate", "data.fractions": (0.5, 0.2, 0.3)},
        "data.fractions is .*not by fractions",
    ),
    ("node:vip", {"data.features": "paper"}, "data.features is paper, .*neither molecules nor vectors"),
    ("link", {"data.split": "time"}, "data.split is time, .*links alone are predicted"),
    ("link", {"data.split": "ratio", "data.split_file": "splits.csv"}, "data.split_file is splits.csv"),
    ("link", {"data.fractions": (0.5, 0.2, 0.3)}, "data.fractions is .*links alone are predicted"),
]


@pytest.mark.parametrize(("target", "settings", "message"), UNREAD)
def test_a_setting_of_the_split_that_nothing_reads_is_refused(target, settings, message):
    with pytest.raises(SettingsError, match=message):
        prepare(payments(), target, "strong", settings)


def test_fractions_are_refused_where_every_row_is_stated_and_read_where_some_are_drawn(tmp_path):
    data = payments()
    stated = Tables(data.nodes.assign(split=["train", "val", "test"] * 10), data.edges)
    fractions = {"data.fractions": (0.5, 0.2, 0.3)}
    with pytest.raises(SettingsError, match=r"data\.fractions is .* not by fractions: column split of nodes"):
        prepare(stated, "node:vip", "strong", fractions)
    some = Tables(data.nodes.assign(split=["train", "train", "test"] * 10), data.edges)
    assert len(prepare(some, "node:vip", "strong", fractions).splits["node"].validation) == 6  # 2/7 of 20
    train(data, ["node:vip", "link"], tmp_path / "run", settings=quick(training__epochs=1))
    again = {"data.split": "file", "data.split_file": str(tmp_path / "run" / "splits.csv")}
    prepare(data, ["node:vip", "link"], "strong", again)
    with pytest.raises(SettingsError, match=r"data\.link_fractions is .* data\.split is file"):
        prepare(data, ["node:vip", "link"], "strong", again | {"data.link_fractions": (0.5, 0.2, 0.3)})


def test_what_is_read_is_not_refused():
    joint = {
        "training.edge_mask_ratio": 0.2,
        "training.negative_ratio": 2,
        "model.diffusion_steps": 2,
        "model.latent": 8,
        "model.head": [8],
    }
    settings = prepare(
        payments(), ["edge:fee", "link"], "strong", joint | {"model.edge_head_reads_nodes": True}
    ).settings
    assert (settings.training.edge_mask_ratio, settings.model.diffusion_steps, settings.model.head) == (0.2, 2, [8])
    prepare(shapes(), "graph:ring", "strong", {"model.pool": ["sum"], "model.pool_norm": None})
    prepare(payments(), "link", "paper", {"model.positive_weight": 3.0})


def test_an_estimator_refuses_it_too():
    with pytest.raises(SettingsError, match=r"training\.edge_mask_ratio is 0\.3"):
        CensNetRegressor(settings={"training.edge_mask_ratio": 0.3}).fit(
            ["CC", "CCO", "CCC", "CCCC"], [1.0, 2.0, 3.0, 4.0]
        )


def test_the_message_of_a_residual_names_what_it_can_be():
    with pytest.raises(SettingsError, match=r"model\.residual is 'riseing', expected true or false, or 'rezero'"):
        train(payments(), "node:vip", settings=quick(model__residual="riseing"))
