"""Settings: values that a user may write, and that they survive being written and read."""

from __future__ import annotations

import re

import pytest
import torch
from samples import payments, shapes

from censnet.errors import SettingsError
from censnet.pipeline.prepare import prepare
from censnet.settings.presets import make_settings, parse_changes, setting_names, values_of
from censnet.settings.schema import PRESETS, Settings
from censnet.training.batches import make_batches
from censnet.training.task_data import build_model

SECTIONS = ("node", "edge", "graph", "link")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("section", SECTIONS)
def test_settings_survive_being_written_and_read(preset, section):
    """As `resume_run` does; no word of theirs may be taken for a number, a list or nothing."""
    changes = {"data.split_column": "2020", "data.split_file": "a,b.csv", "training.imbalance": "none"}
    for settings in (make_settings(preset, section), make_settings(preset, section, changes, seed=5)):
        written = values_of(Settings.model_validate(settings.model_dump(mode="json")), setting_names())
        again = make_settings(settings.preset, section, written, settings.seed)
        assert again == settings


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("model.hidden", "64", 64),
        ("model.dropout", "0.25", 0.25),
        ("model.residual", "True", True),
        ("model.residual", "rezero", "rezero"),
        ("model.norm", "none", None),
        ("training.imbalance", "none", "none"),
        ("training.imbalance", None, "none"),
        ("training.patience", "none", None),
        ("model.layers", "NE", "NE"),
        ("model.head", "32,16", [32, 16]),
        ("model.head", "[32]", [32]),
        ("model.pool", "mean,sum", ["mean", "sum"]),
        ("data.fractions", "0.6,0.2,0.2", (0.6, 0.2, 0.2)),
        ("model.kernel_options", '{"steps": 3}', {"steps": 3}),
        ("data.split_column", "2020", "2020"),
    ],
)
def test_a_text_is_parsed_to_its_value(name, text, value):
    settings = make_settings("paper", "node", {name: text})
    group, key = name.split(".")
    assert getattr(getattr(settings, group), key) == value


INVALID = {  # setting -> each value that it cannot have, and what is said after its name
    "data.fractions": {
        "0.9,0.9,0.1": r"has 0\.9, 0\.9, 0\.1, which add up to 1\.9, expected 1",
        "0,0.5,0.5": r"has 0\.0, 0\.5, 0\.5, expected the first above 0",
        "0.8,-0.1,0.3": "has .*, expected the first above 0 and none below",
        "0.8,0.2": r"is \[0\.8, 0\.2\], expected",
        "nan,0.1,0.1": "is 'nan', expected a finite number",
    },
    "data.link_fractions": {"0.9,0.1,0": "has .*, expected each above 0"},
    "data.split_seed": {"-1": "is -1, expected at least 0", "1.5": r"is 1\.5, expected a whole number"},
    "model.bias": {"maybe": "is 'maybe', expected true or false", "none": "is none, expected true or false"},
    "model.head": {"[16, 0]": "is 0, expected at least 1"},
    "model.hidden": {0: "is 0, expected at least 1", "many": "is 'many'", "true": "is true, expected a number"},
    "model.kernel": {"foo": "is 'foo', expected one of hop"},
    "model.layers": {"NXN": "is 'NXN', expected the letters N and E"},
    "model.positive_weight": {"-1": "is -1, expected more than 0, or 'balanced'"},
    "training.learning_rate": {"inf": "is 'inf', expected a finite number"},
    "training.optimizer": {"sgd": "is 'sgd'"},
    "training.weight_decay": {float("nan"): "is nan, expected a finite number"},
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, value, message) for name, values in INVALID.items() for value, message in values.items()],
)
def test_an_invalid_setting_is_refused_by_name(name, value, message):
    with pytest.raises(SettingsError, match=rf"{re.escape(name)} {message}"):
        make_settings("strong", "node", {name: value})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.widht", r"unknown setting model\.widht"),
        ("model.hiden", r"unknown setting model\.hiden: did you mean model\.hidden\?"),
        ("hidden", r"unknown setting hidden: did you mean model\.hidden\?"),
    ],
)
def test_an_unknown_setting_is_refused_with_a_suggestion(name, message):
    with pytest.raises(SettingsError, match=message):
        make_settings("strong", "node", {name: 3})


def test_unknown_presets_and_odd_changes_are_refused():
    with pytest.raises(SettingsError, match="preset is 'best', expected one of strong, paper, released"):
        make_settings("best")
    with pytest.raises(SettingsError, match=r"--set has 'model\.hidden', expected NAME=VALUE"):
        parse_changes(["model.hidden"])
    assert parse_changes(["data.split_file=a=b.csv"]) == {"data.split_file": "a=b.csv"}


def test_every_setting_has_a_name_of_two_parts():
    assert {"model.layers", "training.epochs", "data.split"} <= set(setting_names())
    assert all(name.count(".") == 1 for name in setting_names())


@pytest.mark.parametrize(
    ("data", "target", "more", "expected"),
    [
        (shapes, "graph:ring", {}, 0.1),
        (shapes, "graph:weight", {}, 0.0),
        (shapes, ["graph:ring", "graph:weight"], {}, 0.1),
        (shapes, "graph:weight", {"model.dropout": 0.3}, 0.3),
        (payments, "link", {"model.dropout": "auto"}, 0.1),
    ],
)
def test_dropout_auto_is_for_classification(data, target, more, expected):
    prepared = prepare(data(), target, changes={"model.hidden": 8} | more)
    model = build_model(prepared.task_data, prepared.settings)
    assert {module.p for name, module in model.named_modules() if name == "encoder.dropout"} == {expected}


@pytest.mark.parametrize(("count", "steps"), [(30, 3), (500, 25), (1000, 25)])
def test_batch_size_auto_is_small_for_few_graphs(count, steps):
    """Of 24, 400 and 800 training graphs."""
    prepared = prepare(shapes(count), "graph:ring", changes={"model.hidden": 8})
    batches = make_batches(prepared.task_data, prepared.settings.training, 1)
    assert len(batches.plan(torch.Generator())) == steps


def test_an_unknown_setting_is_refused_in_a_short_line():
    for name in ("x", "y" * 5000):
        with pytest.raises(SettingsError, match=r"unknown setting .*censnet settings` lists all") as error:
            make_settings("strong", "node", {name: 1})
        assert len(str(error.value)) < 200
