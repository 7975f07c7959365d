"""The arguments of `train`: targets and settings in every form, and what to do with a directory that has a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import QUICK, payments, quick

import censnet
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import ArgumentError, CensNetError, RunError, SettingsError
from censnet.pipeline import replicate, train
from censnet.pipeline.prepare import read_settings
from censnet.settings.presets import make_settings
from censnet.settings.schema import ModelSettings, Settings, TrainingSettings

ONE = quick(training__epochs=1)


@pytest.mark.slow
def test_a_target_is_a_string_a_tuple_a_spec_or_that_of_another_run() -> None:
    text = train(payments(), "node:vip=binary:no", settings=ONE)
    for target in (
        ("node", "vip", "binary", "no"),
        TargetSpec("node", "vip", "binary", "no"),
        [TargetSpec("node", "vip", "binary", "no")],
        text.config.targets[0],
        text.config.targets,
        (text.config.targets[0],),
    ):
        found = train(payments(), target, settings=ONE)
        assert found.config.target_specs == ["node:vip=binary:no"]
        assert found.metrics == text.metrics
    both = train(payments(), ["edge:fee", *text.config.targets], settings=ONE)
    assert both.config.target_specs == ["edge:fee", "node:vip=binary:no"]
    several = replicate(payments(), text.config.targets[0], replicates=2, settings=ONE)
    assert several.runs[0].config.targets[0].classes == ["yes", "no"]


@pytest.mark.slow
def test_settings_are_dotted_nested_or_an_object() -> None:
    nested: dict[str, dict[str, object]] = {}
    for name, value in ONE.items():
        group, _, key = name.partition(".")
        nested.setdefault(group, {})[key] = value
    objects = [
        make_settings("strong", "edge", ONE),
        Settings(model=ModelSettings(**nested["model"]), training=TrainingSettings(**nested["training"])),
    ]
    expected = train(payments(), "edge:fraud", settings=ONE)
    for settings in (nested, {**nested, "data.split": "ratio"}, *objects):
        found = train(payments(), "edge:fraud", settings=settings)
        if "data.split" not in settings:
            assert found.config.settings == expected.config.settings
            assert found.metrics == expected.metrics
    several = replicate(payments(), "edge:fraud", replicates=2, settings=objects[0])
    assert several.runs[0].config.settings.model == expected.config.settings.model


def test_an_object_brings_its_preset_and_seed_and_no_other_is_given_beside_it() -> None:
    settings = make_settings("paper", "node", {"training.epochs": 1, "model.hidden": 5}, seed=7)
    assert read_settings(settings, "node:vip", "strong", 0) == (
        {"training.epochs": 1, "model.hidden": 5},
        "paper",
        7,
    )
    run = train(payments(), "node:vip", settings=settings)
    assert (run.config.settings.preset, run.config.settings.seed) == ("paper", 7)
    assert run.config.settings.model == settings.model
    with pytest.raises(ArgumentError, match="seed is 3, and that of settings is 7, expected one of them"):
        train(payments(), "node:vip", settings=settings, seed=3)
    with pytest.raises(ArgumentError, match="preset is 'released', and that of settings is 'paper', expected one"):
        train(payments(), "node:vip", settings=settings, preset="released")


def test_a_setting_twice_or_unknown_is_refused_in_either_form() -> None:
    with pytest.raises(SettingsError, match=r"settings has model\.hidden twice, expected it once"):
        train(payments(), "node:vip", settings={"model.hidden": 3, "model": {"hidden": 4}})
    with pytest.raises(SettingsError, match=r"unknown setting model\.hiden: did you mean model\.hidden"):
        train(payments(), "node:vip", settings={"model": {"hiden": 4}})
    assert quick(model__kernel_options={"steps": 3}, model__kernel="pagerank")["model.kernel_options"] == {"steps": 3}
    dotted = read_settings({"model.kernel_options": {"steps": 3}}, "node:vip", "strong", 0)[0]
    assert dotted == {"model.kernel_options": {"steps": 3}}


@pytest.mark.slow
def test_what_is_there_is_kept_resumed_or_replaced(tmp_path: Path) -> None:
    first = train(payments(), "node:vip", tmp_path / "run", settings=ONE)
    with pytest.raises(
        RunError, match="holds a finished run: choose another out, or if_exists='overwrite' to replace it"
    ):
        train(payments(), "node:vip", tmp_path / "run", settings=ONE)
    again = train(payments(), "node:vip", tmp_path / "run", settings=ONE, if_exists="resume")
    assert again.config == censnet.load_run(tmp_path / "run").config
    assert again.metrics == first.metrics
    other = train(payments(), "edge:fee", tmp_path / "run", settings=ONE, if_exists="overwrite")
    assert censnet.load_run(tmp_path / "run").config.targets == other.config.targets
    for wrong in ("replace", True, None):
        with pytest.raises(ArgumentError, match=r"if_exists is .*, expected 'error', 'resume' or 'overwrite'"):
            train(payments(), "node:vip", tmp_path / "run", settings=ONE, if_exists=wrong)  # type: ignore[arg-type]


def test_everything_that_a_user_can_get_wrong_is_an_error_of_ours() -> None:
    for wrong in ({"ensemble": 0}, {"preset": "best"}, {"settings": 3}, {"target": "vip"}, {"device": "moon"}):
        with pytest.raises(CensNetError):
            train(**{"data": payments(), "target": "node:vip", "settings": QUICK} | wrong)
    run = train(payments(), ["node:vip", "link"], settings=ONE)
    for call in ({"level": "graph"}, {}, {"level": "node", "top": 3}, {"level": "link", "top": 0}):
        with pytest.raises(CensNetError):
            run.predict(payments(), **call)
