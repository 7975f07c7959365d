"""Recipes: with many node labels two are trained, and validation selects the better one."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from crashes import CrashError, stop_at
from rich.console import Console
from samples import content, payments

from censnet.cli.render_run import run_screen
from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.pipeline import replicate, resolve_candidates, train
from censnet.pipeline.prepare import prepare
from censnet.pipeline.train import resume_run
from censnet.runs import load_run
from censnet.settings.presets import make_settings

PAIR = ["node:vip", "edge:fraud"]
SHORT = {"training.epochs": 3, "model.hidden": 8, "model.heads": 1, "model.label_counts": False}


def opposites(nodes: int = 240, like: float = 0.0) -> Tables:
    """Of three classes, none is joined to itself, but for a share of such edges that stay. Own features say little."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, nodes)
    x = rng.normal(0, 1, (nodes, 3)) + 0.9 * np.eye(3)[label]
    source = rng.integers(0, nodes, 8 * nodes)
    target = rng.integers(0, nodes, 8 * nodes)
    unlike = (label[source] != label[target]) ^ (rng.random(8 * nodes) < like)
    people = pd.DataFrame({"id": range(nodes), "x": x.tolist(), "side": np.array(["red", "green", "blue"])[label]})
    return Tables(people, pd.DataFrame({"source": source[unlike], "target": target[unlike]}))


def mixed(nodes: int = 240) -> Tables:
    """Most neighbors are alike."""
    return opposites(nodes, like=0.8)


@pytest.mark.slow
def test_heterophilous_neighbors_are_learned_from():
    asked = {"data.fractions": (0.5, 0.25, 0.25), "training.epochs": 60, "model.label_counts": False}
    run = train(opposites(), "node:side", settings=asked)
    few = train(
        opposites(), "node:side",
        settings={"data.fractions": (0.5, 0.25, 0.25), "training.epochs": 60, "training.recipe": "low_label"},
    )  # fmt: skip
    assert run.metrics["test"]["node"]["accuracy"] > few.metrics["test"]["node"]["accuracy"] + 0.1
    assert run.config.settings.training.recipe == "high_label"
    expected = make_settings("strong", "node", {"training.recipe": "high_label"}).model
    assert (run.config.settings.model.layers, run.config.settings.model.heads) == (expected.layers, expected.heads)
    assert run.config.selection is None, "neighbors are unlike: the other recipe is not tried"


@pytest.mark.slow
def test_validation_selects_among_the_recipes():
    run = train(mixed(), "node:side", settings={"training.epochs": 20, "model.label_counts": False})
    selection = run.config.selection
    assert [one.recipe for one in selection.candidates] == ["low_label"] * 2 + ["high_label"]
    assert selection.best[0][selection.selected[0]] == max(selection.best[0])
    console = Console(file=io.StringIO(), width=200)
    console.print(run_screen(run))
    chosen = selection.candidates[selection.selected[0]].recipe.replace("_", "-")
    assert f"3 trainings; selected on validation: the {chosen} recipe" in console.file.getvalue()


def test_with_few_labels_or_a_recipe_that_is_set_there_is_one_recipe(monkeypatch):
    def layers(nodes: int = 240, preset: str = "strong", **more: object) -> list[str]:
        changes = SHORT | {name.replace("__", "."): value for name, value in more.items()}
        return [one.model.layers for one in prepare(mixed(nodes), "node:side", preset, changes).recipes]

    assert layers() == ["EN", "ENEN"]
    assert [one.model.layers for one in prepare(opposites(), "node:side", "strong", SHORT).recipes] == ["ENEN"]
    assert layers(100) == ["EN"], "80 labels"
    assert layers(data__fractions=(0.8, 0, 0.2)) == ["EN"], "nothing to choose by"
    assert layers(preset="paper") == ["NEN"]
    assert layers(training__recipe="low_label") == ["EN"]
    assert layers(100, training__recipe="high_label") == ["ENEN"]
    monkeypatch.setattr(resolve_candidates, "MOST", 100)
    assert layers() == ["ENEN"], "too big for both"
    assert layers(100) == ["EN"]


def test_pseudo_labels_are_for_nodes_without_labels():
    few = prepare(mixed(800), "node:side", "strong", SHORT | {"data.fractions": (0.15, 0.15, 0.7)}).recipes
    many = prepare(mixed(800), "node:side", "strong", SHORT).recipes
    assert [one.training.self_training_rounds for one in few] == [3, 1]
    assert [one.training.pseudo_label_weights for one in few] == [[0.0, 1.0], [0.0]]
    assert [one.training.self_training_rounds for one in many] == [1, 1]


def test_numbers_of_neighbors_are_alike_or_not():
    tables = mixed()
    codes = tables.nodes["side"].map({"red": 0.0, "green": 1.0, "blue": 5.0})
    alike = tables.with_frames({"nodes": tables.nodes.assign(side=codes), "edges": tables.edges})
    unlike = alike.with_frames({"nodes": alike.nodes.sample(frac=1, random_state=0).assign(id=range(240))})
    for found, recipes in ((alike, ["EN", "ENEN"]), (unlike, ["ENEN"])):
        assert [one.model.layers for one in prepare(found, "node:side=regression", "strong", SHORT).recipes] == recipes


def test_changes_hold_for_both_recipes():
    asked = SHORT | {"training.learning_rate": 0.5, "model.layers": "NN"}
    one, other = prepare(mixed(), "node:side", "strong", asked).recipes
    for settings in (one, other):
        assert (settings.model.hidden, settings.model.layers, settings.training.learning_rate) == (8, "NN", 0.5)
    assert (one.model.kernel, other.model.kernel) == ("pagerank", "hop")
    candidates = {
        "training.self_training_rounds": 2,
        "training.pseudo_label_weights": [0.5],
        "training.gates": ["frozen"],
    }
    one, other = prepare(mixed(), "node:side", "strong", SHORT | candidates).recipes
    assert (one.training.self_training_rounds, one.training.pseudo_label_weights, one.training.gates) == (
        2,
        [0.5],
        ["frozen"],
    )
    assert (other.training.self_training_rounds, other.training.pseudo_label_weights, other.training.gates) == (
        1,
        [0.0],
        ["learned"],
    )


@pytest.mark.parametrize(
    ("target", "preset", "why"),
    [
        ("edge:fraud", "strong", "it is of nodes, and edges are predicted"),
        (PAIR, "strong", "it is of nodes, and edges are predicted"),
        ("link", "strong", "it is of nodes, and the first target is of another level"),
        ("node:vip", "paper", "preset paper has one recipe for nodes"),
    ],
)
def test_a_recipe_that_a_preset_lacks_is_refused(target, preset, why):
    with pytest.raises(SettingsError, match=f"training.recipe is high_label, expected auto, .* since {why}"):
        prepare(payments(), target, preset, {"training.recipe": "high_label"})


@pytest.mark.parametrize("preset", ["strong", "paper"])
def test_nodes_and_edges_together_have_the_settings_for_edges_in_any_order(preset):
    one, other = (prepare(payments(), targets, preset) for targets in (PAIR, PAIR[::-1]))
    assert one.recipes == other.recipes
    assert one.settings.model.layers == make_settings(preset, "edge").model.layers


@pytest.mark.slow
@pytest.mark.parametrize("step", [2, 5])  # of three for each network
@pytest.mark.parametrize("ensemble", [1, 2])
def test_a_training_stopped_in_either_recipe_resumes_to_the_same_bits(step, ensemble, tmp_path, monkeypatch):
    settings = SHORT | {"training.checkpoint_seconds": 0, "training.self_training_rounds": 1, "model.layers": "EN"}
    data = tmp_path / "data"
    data.mkdir()
    tables = mixed()
    tables.nodes.drop(columns="x").to_csv(data / "nodes.csv", index=False)
    tables.edges.to_csv(data / "edges.csv", index=False)
    whole = train(data, "node:side", tmp_path / "whole", settings=settings, ensemble=ensemble)
    assert len(whole.config.selection.candidates) == 5
    with monkeypatch.context() as patch:
        stop_at(patch, step, "exception")
        with pytest.raises(CrashError):
            train(data, "node:side", tmp_path / "run", settings=settings, ensemble=ensemble)
    resume_run(tmp_path / "run", settings={"training.checkpoint_seconds": 0})
    assert content(tmp_path / "run") == content(tmp_path / "whole")
    loaded = load_run(tmp_path / "run")
    assert loaded.predict(tables).equals(whole.predict(tables))
    assert len(loaded.models) == ensemble


@pytest.mark.slow
def test_each_replicate_selects_its_own_recipe():
    found = replicate(mixed(), "node:side", replicates=3, settings=SHORT | {"training.self_training_rounds": 1})
    for run in found.runs:
        selection = run.config.selection
        assert len(selection.candidates) == 5
        assert selection.best[0][selection.selected[0]] == max(selection.best[0])
        assert run.config.settings.training.recipe == selection.candidates[selection.selected[0]].recipe
