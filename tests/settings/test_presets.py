"""Presets and changes of them; `paper` and `released` are the models and the data of Table 1."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick

from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.ops.graph import Graph
from censnet.pipeline import train
from censnet.settings.build import TaskShape, build_model
from censnet.settings.presets import RENAMED, make_settings, setting_names
from censnet.settings.schema import DataSettings, ModelSettings, Settings, TrainingSettings
from censnet.tasks.targets import Target
from censnet_experiments.models import build_node_model
from censnet_experiments.spec import find_spec


@pytest.mark.parametrize(
    "changes",
    [
        {"model.hidden": 64, "training.weight_decay_by_name": {"encoder": 0.1}},
        {"model": {"hidden": 64}, "training": {"weight_decay_by_name": {"encoder": 0.1}}},
        {"model": {"hidden": "64"}, "training.weight_decay_by_name": {"encoder": 0.1}},
        Settings(
            preset="paper",
            model=ModelSettings(hidden=64),
            training=TrainingSettings(weight_decay_by_name={"encoder": 0.1}),
        ),
    ],
)
def test_changes_are_dotted_or_nested_names_or_an_object(changes):
    settings = make_settings("paper", "node", changes)
    assert settings.model.hidden == 64
    assert settings.training.weight_decay_by_name == {"encoder": 0.1}
    usual = make_settings("paper", "node")
    assert settings.model == usual.model.model_copy(update={"hidden": 64})
    assert make_settings(section="node", changes=settings) == settings, "an object brings its preset"


def test_numbers_of_atoms_and_bonds_are_fitted_by_absolute_errors_and_others_by_squared_ones():
    losses = {section: make_settings("strong", section).training.regression_loss for section in ("molecule", "graph")}
    assert losses == {"molecule": "absolute", "graph": "squared"}
    assert make_settings("strong", "molecule").training.monitor == "auto", "the mean absolute error, by the loss"


def test_a_setting_that_is_changed_twice_is_refused():
    with pytest.raises(SettingsError, match=r"settings has model\.hidden twice, expected it once"):
        make_settings(changes={"model": {"hidden": 64}, "model.hidden": 32})


def test_an_old_name_is_refused_with_the_new_one():
    for old, new in RENAMED.items():
        with pytest.raises(SettingsError, match=f"unknown setting {re.escape(old)}: it is now {re.escape(new)}"):
            make_settings(changes={old: 1})
    assert set(RENAMED.values()) <= set(setting_names())
    assert not set(RENAMED) & set(setting_names())


def test_every_setting_is_described_in_a_line():
    for section in (ModelSettings, TrainingSettings, DataSettings):
        for name, field in section.model_fields.items():
            assert field.description, name
            assert 5 < len(field.description) < 220, name


@pytest.fixture
def papers() -> Tables:
    """Papers whose words are counted, and links between them."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 5, (40, 6))
    nodes = pd.DataFrame({"id": range(40), "words": words.tolist(), "about": np.where(words[:, 0] > 2, "a", "b")})
    ends = rng.integers(0, 40, (2, 90))
    return Tables(nodes, pd.DataFrame({"source": ends[0], "target": ends[1], "cosine": rng.random(90)}))


@pytest.mark.parametrize(("preset", "method"), [("paper", "censnet"), ("released", "censnet-released")])
def test_the_model_of_a_preset_is_that_of_table_1_to_the_bit(preset, method):
    spec, settings = find_spec("table1", method), make_settings(preset, "node")
    graph = Graph(torch.rand(5, 7), torch.rand(6, 3), torch.tensor([[0, 0, 1, 2, 3, 1], [1, 2, 3, 3, 4, 2]]))
    labels = pd.Series(["a", "b", "c", "a", "b"])
    target = Target.fit(labels, "node", "about", torch.arange(5), "multiclass")
    torch.manual_seed(3)
    model = build_model(TaskShape(7, 3, [target]), settings.model)
    options = {name: value for name, value in spec.recipe.options.items() if name != "released_edges"}
    classifier = build_node_model("censnet", graph, 3, options, seed=3)
    answer = model.eval()(graph).by_level["node"]
    assert answer.equal(classifier.eval()(graph.nodes, graph.edges, graph.incidence))
    assert settings.model.dropout == spec.recipe.options["dropout"]
    assert settings.training.weight_decay == spec.recipe.weight_decay
    assert settings.training.learning_rate in spec.recipe.learning_rates
    assert settings.data.features == preset


def test_the_paper_preset_is_trained_as_long_as_in_table_1_with_early_stopping():
    recipe, settings = find_spec("table1", "censnet").recipe, make_settings("paper", "node").training
    assert settings.epochs == recipe.epochs
    assert settings.patience is not None
    assert settings.patience >= 300


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "divided"), [("paper", True), ("released", True), ("strong", False)])
def test_word_counts_are_divided_by_their_sum_in_training_and_prediction(papers, preset, divided):
    run = train(papers, "node:about", preset=preset, settings=quick(training__epochs=1, model__layers="NEN"))
    new = Tables(papers.nodes.head(3), papers.edges[(papers.edges[["source", "target"]] < 3).all(axis=1)])
    counts = np.array(papers.nodes["words"].head(3).tolist(), float)
    found = run.read(new).graph.nodes.numpy()
    if divided:
        np.testing.assert_allclose(found, counts / counts.sum(1, keepdims=True), rtol=1e-6)
    else:
        scale = run.read(papers).graph.nodes.numpy()[:3]
        np.testing.assert_array_equal(found, scale)
        assert not np.allclose(found, counts / counts.sum(1, keepdims=True))


@pytest.mark.slow
def test_the_default_for_nodes_learns_a_small_dense_table():
    """What a row says of itself counts, though its neighbours say nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 4))
    nodes = pd.DataFrame(x, columns=list("abcd")).assign(id=range(150), y=np.where(x[:, 0] + x[:, 1] > 0, "up", "down"))
    ends = rng.integers(0, 150, (2, 400))
    edges = pd.DataFrame({"source": ends[0], "target": ends[1], "w": rng.random(400)})
    run = train(Tables(nodes, edges), "node:y", settings={"training.epochs": 60, "data.fractions": (0.5, 0.2, 0.3)})
    assert run.metrics["test"]["node"]["auc"] > 0.97


@pytest.mark.slow
def test_a_head_above_a_last_layer_that_is_the_head_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"model\.head is \[4\], expected none.*: set model\.last_layer_is_head=false"
    ):
        train(payments(), "node:vip", settings={"model.head": [4], "training.epochs": 1})
    train(payments(), "node:vip", settings={"model.head": [4], "model.last_layer_is_head": False, "training.epochs": 1})
