"""`censnet settings`."""

from __future__ import annotations

import json

import pytest
from commands import run, succeed

from censnet.cli.settings import setting_rows
from censnet.settings.presets import make_settings, setting_names
from censnet.settings.schema import PRESETS


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("task", ["node", "edge", "graph", "link"])
def test_every_setting_is_listed_as_it_can_be_typed(preset: str, task: str) -> None:
    listed = json.loads(succeed("settings", task, "--preset", preset, "--json").stdout)
    assert [entry["name"] for entry in listed] == setting_names()
    assert all(len(entry["meaning"]) > 10 for entry in listed)
    typed = {entry["name"]: entry["value"] for entry in listed}
    other = next(name for name in PRESETS if name != preset)
    assert make_settings(other, task, typed).model_copy(update={"preset": preset}) == make_settings(preset, task)


def test_settings_are_shown_with_their_choices() -> None:
    shown = " ".join(succeed("settings", "graph").stdout.split())
    assert "training.schedule warmup-cosine learning-rate schedule: constant, cosine, warmup-cosine" in shown
    assert [entry.value for entry in setting_rows(make_settings("paper", "node")) if entry.name == "model.hidden"] == [
        "32"
    ]
    assert "the task is 'nodes', expected one of node, edge, graph, link" in run("settings", "nodes").stderr
