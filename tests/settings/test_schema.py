"""Settings: values that a user may write, and that they survive being written and read."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.widht": 3}, r"unknown setting model\.widht"),
        ({"model.hiden": 3}, r"unknown setting model\.hiden: did you mean model\.hidden\?"),
        ({"hidden": 3}, r"unknown setting hidden: did you mean model\.hidden\?"),
        ({"model.hidden": 0}, r"model\.hidden is 0, expected at least 1"),
        ({"model.hidden": "many"}, r"model\.hidden is 'many'"),
        ({"model.kernel": "foo"}, "kernel is 'foo', expected one of hop"),
        ({"training.optimizer": "sgd"}, r"training\.optimizer is 'sgd'"),
        ({"data.split_seed": "-1"}, r"data\.split_seed is -1, expected at least 0"),
        ({"data.split_seed": "1.5"}, r"data\.split_seed is 1\.5, expected a whole number"),
        ({"data.fractions": "0.9,0.9,0.1"}, r"data\.fractions has 0\.9, 0\.9, 0\.1, which add up to 1\.9, expected 1"),
        ({"data.fractions": "0,0.5,0.5"}, r"data\.fractions has 0\.0, 0\.5, 0\.5, expected the first above 0"),
        ({"data.fractions": "0.8,-0.1,0.3"}, r"data\.fractions has .*, expected the first above 0 and none below"),
        ({"data.fractions": "0.8,0.2"}, r"data\.fractions is \[0\.8, 0\.2\], expected"),
        ({"data.fractions": "nan,0.1,0.1"}, r"data\.fractions is 'nan', expected a finite number"),
        ({"data.link_fractions": "0.9,0.1,0"}, r"data\.link_fractions has .*, expected each above 0"),
        ({"training.learning_rate": "inf"}, r"training\.learning_rate is 'inf', expected a finite number"),
        ({"training.weight_decay": float("nan")}, r"training\.weight_decay is nan, expected a finite number"),
        ({"model.positive_weight": "-1"}, r"model\.positive_weight is -1, expected more than 0, or 'balanced'"),
        ({"model.head": "[16, 0]"}, r"model\.head is 0, expected at least 1"),
        ({"model.hidden": "true"}, r"model\.hidden is true, expected a number"),
        ({"model.bias": "maybe"}, r"model\.bias is 'maybe', expected true or false"),
        ({"model.bias": "none"}, r"model\.bias is none, expected true or false"),
        ({"model.layers": "NXN"}, r"model\.layers is 'NXN', expected the letters N and E"),
    ],
)
def test_an_invalid_setting_is_refused_by_name(changes, message):
    with pytest.raises(SettingsError, match=message):
        make_settings("strong", "node", changes)


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
