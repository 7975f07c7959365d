"""Self-training: soft labels in the loss, frozen gates, rounds of pseudo-labels, and resuming in any of them."""

from __future__ import annotations

import copy
import importlib
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from crashes import CrashError, stop_at
from rich.console import Console
from samples import content, fit_result, payments, quick, replicate_both_ways, shapes, unscaled

from censnet.cli.render_run import run_screen
from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.nn.ensemble import split_members
from censnet.nn.model import Outputs
from censnet.pipeline import replicate, train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run
from censnet.selection.candidates import Candidate, candidate_grid
from censnet.selection.self_training import (
    best_per_gate_mode,
    expand_members,
    initial_pseudo_labels,
    predict_pseudo_labels,
)
from censnet.settings.presets import make_settings
from censnet.tasks.uncertainty import probabilities
from censnet.training import ensemble
from censnet.training.ensemble import split_result
from censnet.training.evaluator import infer
from censnet.training.full_batches import FullBatch
from censnet.training.objective import Objective
from censnet.training.task_data import TaskData, build_model

module = importlib.import_module("censnet.selection.self_training")
ONCE = {"training__gates": "learned", "training__self_training_rounds": 1}
BOTH = {"training__pseudo_label_weights": [0.0, 1.0], **ONCE}


def task_data_of(target: str, weights: list[float], members: int = 1) -> tuple[TaskData, torch.Tensor]:
    """A lesson with guesses, and outputs as a network might give them."""
    prepared = prepare(payments(), target, changes=quick())
    task_data = prepared.task_data
    task_data = replace(task_data, parts={"node": task_data.parts["node"].expand(-1, members)})
    candidates = [Candidate(round=1, gates="learned", pseudo_label_weight=weight) for weight in weights]
    task_data = expand_members(
        task_data, candidates, initial_pseudo_labels(task_data, "cpu") if any(weights) else None, members
    )
    generator = torch.Generator().manual_seed(0)
    width = task_data.members * task_data.targets[0].width
    return task_data, torch.randn(task_data.graph.num_nodes, width, generator=generator)


def loss_of(task_data: TaskData, outputs: torch.Tensor) -> torch.Tensor:
    settings = make_settings("strong", "node", quick())
    objective = Objective(task_data, settings.training, build_model(task_data, settings))
    found: torch.Tensor = objective(Outputs({"node": outputs}, None), FullBatch(task_data, False).batch)
    return found


@pytest.mark.parametrize("target", ["node:tier", "node:vip"])
def test_the_gradient_of_soft_labels_is_their_weight_times_p_minus_q(target):
    task_data, outputs = task_data_of(target, [0.0, 0.5, 2.0])
    outputs.requires_grad_()
    silent = replace(task_data, soft_labels=None, soft_label_weight=None)
    (all_of_it,) = torch.autograd.grad(loss_of(task_data, outputs).sum(), outputs)
    (labels,) = torch.autograd.grad(loss_of(silent, outputs).sum(), outputs)
    extra = (all_of_it - labels).view(len(outputs), 3, -1)
    x, q = outputs.detach().view(len(outputs), 3, -1), task_data.soft_labels
    unlabeled = task_data.parts["node"][:, 0] != 0
    sure = q[:, 0].amax(1) * unlabeled
    share = (sure / sure.sum())[:, None]
    for member, soft_label_weight in enumerate((0.0, 0.5, 2.0)):
        if target == "node:tier":
            expected = soft_label_weight * share * (x[:, member].softmax(1) - q[:, member])
        else:
            expected = soft_label_weight * share * (x[:, member].sigmoid() - q[:, member, 1:])
        torch.testing.assert_close(extra[:, member], expected, atol=1e-6, rtol=1e-4)
    assert bool((extra[~unlabeled] == 0).all())


@pytest.mark.parametrize("target", ["node:tier", "node:vip"])
def test_soft_labels_add_the_cross_entropy_of_samples_without_a_training_label(target):
    task_data, outputs = task_data_of(target, [1.5])
    x, q = outputs.double().numpy(), task_data.soft_labels[:, 0].double().numpy()
    x = np.concatenate([np.zeros_like(x), x], axis=1) if target == "node:vip" else x
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    rows = (task_data.parts["node"][:, 0] != 0).nonzero().squeeze(1).tolist()
    each = [-sum(q[i, k] * log_p[i, k] for k in range(q.shape[1])) for i in rows]
    sure = [q[i].max() for i in rows]
    expected = 1.5 * sum(c * e for c, e in zip(sure, each, strict=True)) / sum(sure)
    extra = loss_of(task_data, outputs) - loss_of(replace(task_data, soft_labels=None, soft_label_weight=None), outputs)
    assert extra.item() == pytest.approx(expected, rel=1e-4)


def test_a_training_sample_whose_label_is_missing_gets_a_soft_label():
    task_data, outputs = task_data_of("node:tier", [1.0])
    row = int((task_data.parts["node"][:, 0] == 0).nonzero()[0])
    labels = task_data.labels["node"].clone()
    labels[row] = torch.nan
    outputs.requires_grad_()
    (gradient,) = torch.autograd.grad(loss_of(replace(task_data, labels={"node": labels}), outputs).sum(), outputs)
    assert float(gradient[row].abs().sum()) > 0


def test_a_soft_label_weight_of_zero_changes_no_bit():
    task_data, outputs = task_data_of("node:tier", [0.0, 0.0], members=2)
    assert task_data.soft_labels is None
    with_soft_labels, _ = task_data_of("node:tier", [1.0, 1.0], members=2)
    silent = replace(with_soft_labels, soft_label_weight=torch.zeros(4))
    assert loss_of(silent, outputs).equal(loss_of(task_data, outputs))
    assert Objective(silent, make_settings().training, build_model(silent, make_settings("strong"))).soft_labels is None


def one_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("censnet.training.ensemble.BATCHED_ON_CPU", 0)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [(0.0, 1.0), (1.0, 0.0)])
def test_one_by_one_the_first_candidate_is_the_training_with_its_weight_alone(weights, monkeypatch):
    """So a try of weight 0 is, to the bit, the training without guesses."""
    one_by_one(monkeypatch)
    selection = []
    whole = module.select_best
    monkeypatch.setattr(module, "select_best", lambda *args: selection.append(args[0]) or whole(*args))
    settings = quick(model__dropout=0.5, **ONCE)
    both = train(
        payments(), "node:tier", settings=settings | {"training.pseudo_label_weights": list(weights)}, ensemble=2
    )
    monkeypatch.setattr(module, "select_best", whole)
    alone = train(
        payments(), "node:tier", settings=settings | {"training.pseudo_label_weights": weights[0]}, ensemble=2
    )
    for member in range(2):
        found = selection[member][0][0].state_dict()
        assert all(found[name].equal(tensor) for name, tensor in alone.models[member].state_dict().items())
        assert both.config.selection.best[member][0] == pytest.approx(
            alone.history.query("member == @member")["validation_accuracy"].max()
        )


@pytest.mark.slow
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize(("target", "ensemble"), [("node:tier", 1), ("node:vip", 1), ("node:vip", 3)])
def test_the_selected_candidate_is_best_on_validation(batched, target, ensemble, monkeypatch, tmp_path):
    if not batched:
        one_by_one(monkeypatch)
    metric = "accuracy" if target == "node:tier" else "auc"
    weights = [0.0, 1.0, 5.0]
    settings = quick(training__pseudo_label_weights=weights, data__fractions=(0.3, 0.4, 0.3), **ONCE)
    run = train(payments(60), target, tmp_path / "run", settings=settings, ensemble=ensemble, seed=2)
    selection = run.config.selection
    assert [one.pseudo_label_weight for one in selection.candidates] == weights
    assert len(selection.best) == len(selection.selected) == ensemble
    for best, kept in zip(selection.best, selection.selected, strict=True):
        assert best[kept] == max(best)
    groups = [frame for _, frame in run.history.groupby("member")] if ensemble > 1 else [run.history]
    assert ("member" in run.history) == (ensemble > 1)
    assert len(groups) == len(run.models) == ensemble
    for best, kept, frame in zip(selection.best, selection.selected, groups, strict=True):
        assert frame[f"validation_{metric}"].max() == best[kept]
    if ensemble == 1:
        assert run.metrics["validation"]["node"][metric] == pytest.approx(max(selection.best[0]))
    back = load_run(tmp_path / "run")
    assert back.config == run.config.model_copy(update={"files": back.config.files})
    pd.testing.assert_frame_equal(back.history, run.history, check_exact=True)


@pytest.mark.slow
def test_batched_or_one_by_one_the_same_candidate_is_selected(monkeypatch):
    """Without dropout, tries from one start take the same steps but for rounding."""
    settings = quick(**BOTH, model__dropout=0.0, training__epochs=12, training__monitor="loss")
    settings |= {"data.fractions": (0.2, 0.4, 0.4)}
    together = train(unscaled(), "node:side", settings=settings)
    one_by_one(monkeypatch)
    alone = train(unscaled(), "node:side", settings=settings)
    assert together.config.selection.selected == alone.config.selection.selected
    np.testing.assert_allclose(together.config.selection.best, alone.config.selection.best, rtol=1e-3)
    assert together.metrics["test"]["node"]["loss"] == pytest.approx(alone.metrics["test"]["node"]["loss"], rel=1e-2)
    np.testing.assert_allclose(together.history["loss"], alone.history["loss"], rtol=1e-2)


@pytest.mark.slow
def test_replicates_batched_or_one_by_one_reach_the_same_on_average(monkeypatch):
    settings = quick(
        **BOTH, training__epochs=25, training__learning_rate=0.04, model__dropout=0.0, training__monitor="loss",
        data__fractions=(0.2, 0.4, 0.4), model__self_weight="learned",
    )  # fmt: skip
    found = replicate_both_ways(monkeypatch, settings)
    for one in (*found[True].runs, *found[False].runs):
        best, (kept,) = one.config.selection.best[0], one.config.selection.selected
        assert best[kept] == min(best)
        assert one.history["validation_loss"].min() == min(best)
        assert one.metrics["validation"]["node"]["loss"] == pytest.approx(min(best), abs=1e-5)
    means = [found[yes].summary["validation"]["node"]["loss"]["mean"] for yes in (True, False)]
    assert means[0] == pytest.approx(means[1], abs=0.1)


@pytest.mark.slow
def test_pseudo_labels_help_where_labels_are_few():
    """Many nodes of three communities, one label of each: the guesses know what the labels alone do not say."""
    rng = np.random.default_rng(0)
    label = np.arange(150) % 3
    x = rng.normal(0, 1, (150, 8))
    x[np.arange(150), label] += 0.8
    first = rng.integers(0, 150, 500)
    same = rng.random(500) < 0.75
    second = np.where(same, (first + 3 * rng.integers(1, 50, 500)) % 150, rng.integers(0, 150, 500))
    nodes = pd.DataFrame({"id": range(150), "x": x.tolist(), "town": np.array(["a", "b", "c"])[label]})
    data = Tables(nodes, pd.DataFrame({"source": first, "target": second}))
    settings = {"data.split": "label-rate", "data.label_rate": 0.02, "training.epochs": 20, "model.hidden": 16}
    score = {}
    for weight in (0.0, 1.0):
        candidates = {
            "training.pseudo_label_weights": [weight],
            "training.gates": "learned",
            "training.self_training_rounds": 1,
        }
        found = replicate(data, "node:town", replicates=3, settings=settings | candidates)
        score[weight] = found.summary["test"]["node"]["accuracy"]["mean"]
    assert score[1.0] > score[0.0] + 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "target", "more", "why"),
    [
        (payments, "node:wealth", {}, "node:wealth is regression"),
        (payments, "edge:fraud", {}, "edge:fraud is binary of edges"),
        (payments, ["node:vip", "node:tier"], {}, "there are 2 targets"),
        (payments, ["node:vip", "link"], {}, "links are predicted"),
        (shapes, "graph:ring", {}, "there are many graphs"),
        (shapes, "node:warm", {}, "there are many graphs"),
        (
            payments,
            "node:vip",
            {"training__sampling": "neighbors"},
            "training.sampling is neighbors, and pseudo-labels",
        ),
        (payments, "node:vip", {"data__fractions": (0.8, 0.0, 0.2)}, "no validation row has a label"),
    ],
)
def test_pseudo_labels_that_cannot_be_made_are_refused_when_asked_for_and_left_out_of_a_preset(
    data, target, more, why, caplog
):
    settings = quick(training__epochs=1, **more)
    with pytest.raises(
        SettingsError, match=r"training\.pseudo_label_weights is \[0\.0, 1\.0\], expected \[0\.0\]: .* as " + why
    ):
        train(data(), target, settings=settings | {"training.pseudo_label_weights": [0.0, 1.0]})
    with caplog.at_level("INFO", "censnet"):
        one = {"training.recipe": "low_label"} if target == "node:warm" else {}
        run = train(data(), target, settings=settings | {"training.gates": "learned"} | one)
    assert run.config.selection is None
    assert run.config.settings.training.pseudo_label_weights == [0.0]
    assert run.config.settings.training.self_training_rounds == 1
    assert "pseudo-labels" not in caplog.text


@pytest.mark.slow
def test_a_graph_too_large_for_full_batch_training_has_no_pseudo_labels(monkeypatch):
    monkeypatch.setattr(module, "total_memory", lambda device: 0)
    monkeypatch.setattr("censnet.training.trainer.total_memory", lambda device: 0)
    monkeypatch.setattr("censnet.pipeline.resolve_candidates.MOST", 0)
    run = train(payments(), "node:vip", settings=quick(training__epochs=1))
    assert run.config.selection is None
    both = train(payments(), "node:vip", settings=quick(training__epochs=1, training__gates=["learned", "frozen"]))
    assert [(one.gates, one.pseudo_label_weight) for one in both.config.selection.candidates] == [
        ("learned", 0.0),
        ("frozen", 0.0),
    ]
    with pytest.raises(SettingsError, match=r"training\.self_training_rounds is 4, expected 1: the graph is too large"):
        train(payments(), "node:vip", settings=quick(training__self_training_rounds=4))
    monkeypatch.setattr(
        "censnet.pipeline.resolve_candidates.MOST", 2**24
    )  # a small graph, and still too big for this memory
    small = train(payments(), "node:vip", settings=quick(training__epochs=1))
    assert {(one.round, one.pseudo_label_weight) for one in small.config.selection.candidates} == {(1, 0.0)}
    with pytest.raises(
        SettingsError, match=r"training\.pseudo_label_weights is \[2\.0\], expected \[0\.0\]: the graph is too large"
    ):
        train(payments(), "node:vip", settings=quick(training__pseudo_label_weights=2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "batched"), [(2, False), (13, False), (18, False), (22, False), (30, False), (3, True), (10, True)]
)
def test_a_kill_in_any_candidate_resumes_to_the_same_bits(step, batched, monkeypatch, tmp_path):
    """Four tries of four steps and then twice two, or three rounds of four steps for all."""
    if not batched:
        one_by_one(monkeypatch)
    settings = quick(
        training__pseudo_label_weights=[0.0, 1.0], training__gates=["learned", "frozen"],
        training__self_training_rounds=3,
        model__dropout=0.4, training__epochs=4, model__self_weight="one_plus_learned",
    )  # fmt: skip

    def go(name: str) -> None:
        train(payments(), "node:tier", tmp_path / name, settings=settings, seed=1, if_exists="resume")

    go("whole")
    with monkeypatch.context() as patch:
        stop_at(patch, step, "exception")
        with pytest.raises(CrashError):
            go("run")
    go("run")
    assert content(tmp_path / "run") == content(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("begun_batched", [True, False])
def test_a_batched_training_is_resumed_batched_on_any_device(begun_batched, monkeypatch, tmp_path):
    """A GPU has room for all tries at once where a CPU has none; whoever resumes on the other must not start over."""
    settings = quick(
        training__pseudo_label_weights=[0.0, 1.0],
        training__gates="learned",
        training__self_training_rounds=2,
        training__epochs=4,
    )

    def go(name: str, batched: bool) -> None:
        with monkeypatch.context() as patch:
            if not batched:
                one_by_one(patch)
            train(payments(), "node:tier", tmp_path / name, settings=settings, seed=1, if_exists="resume")

    go("whole", begun_batched)
    with monkeypatch.context() as patch:
        stop_at(patch, 6, "exception")
        with pytest.raises(CrashError):
            go("run", begun_batched)
    go("run", not begun_batched)
    assert content(tmp_path / "run") == content(tmp_path / "whole")


@pytest.mark.slow
def test_the_screen_shows_the_candidates_and_the_selected_one(caplog):
    with caplog.at_level("INFO", "censnet"):
        run = train(payments(), "node:tier", settings=quick())
    assert "unlabeled nodes get pseudo-labels, weighted 0 and 1 in the loss" in caplog.text
    console = Console(file=io.StringIO(), width=200)
    console.print(run_screen(run))
    line = next(line for line in console.file.getvalue().splitlines() if line.startswith("candidates"))
    kept = run.config.selection.candidates[run.config.selection.selected[0]]
    assert "8 trainings; selected on validation: " in line
    assert ("pseudo-labels of self-training" in line) == (kept.round > 1)
    assert ("learned gates" if kept.gates == "learned" else "frozen gates") in line
    silent = Console(file=io.StringIO(), width=200)
    silent.print(
        run_screen(train(payments(), "node:tier", settings=quick(training__pseudo_label_weights=[0.0], **ONCE)))
    )
    assert "candidates" not in silent.file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("batched", [True, False])
def test_frozen_gates_stay_at_one_and_root_weights_at_zero(batched, monkeypatch):
    if not batched:
        one_by_one(monkeypatch)
    selection = []
    whole = module.select_best
    monkeypatch.setattr(module, "select_best", lambda *args: selection.append(args[0]) or whole(*args))
    settings = quick(
        model__self_weight="one_plus_learned", training__pseudo_label_weights=0.0, training__gates=["learned", "frozen"]
    )
    train(payments(), "node:tier", settings=settings, ensemble=2)
    for results in selection[:2]:
        (learned, _), (frozen, _) = results.values()
        for names in (".gate_weight", ".root_weight"):
            moved = {
                kind: sum(float(p.detach().abs().sum()) for name, p in model.named_parameters() if name.endswith(names))
                for kind, model in (("learned", learned), ("frozen", frozen))
            }
            assert moved["frozen"] == 0.0
            assert moved["learned"] > 0.0


def test_teachers_are_the_best_with_learned_and_with_frozen_gates_of_the_previous_round():
    candidates = candidate_grid(make_settings("strong", "node").training)
    values = [0.7, 0.8, 0.9, 0.6, 0.5, 0.4]  # learned, learned, frozen, frozen; then learned, frozen
    results = dict(enumerate(enumerate(split_result(fit_result(values, [1.0] * 6)))))
    first = {number: results[number] for number in range(4)}
    assert best_per_gate_mode(first, candidates[0]) == [1, 2]
    assert best_per_gate_mode(results, candidates[0] + candidates[1]) == [4, 5]


@pytest.mark.slow
def test_predicted_pseudo_labels_are_averaged_and_calibrated():
    run = train(
        payments(60), "node:tier", settings=quick(training__pseudo_label_weights=0.0, **ONCE), ensemble=2, seed=3
    )
    task_data = prepare(payments(60), "node:tier", changes=quick(), seed=3).task_data
    (target,) = task_data.targets
    both = torch.stack(
        [probabilities(target, infer(one, task_data.graph).by_level["node"]) for one in run.models]
    ).mean(0)
    said = predict_pseudo_labels([run.models], task_data, "cpu")[:, 0]
    assert torch.equal(said.argmax(1), both.argmax(1))
    rows = (task_data.parts["node"][:, 0] == 1).nonzero().squeeze(1)
    right = float((said[rows].argmax(1) == task_data.labels["node"][rows, 0]).double().mean())
    assert 0.4 < right < 0.99
    assert float(said[rows].amax(1).mean()) == pytest.approx(right, abs=1e-3)


@pytest.mark.slow
def test_a_second_round_trains_on_predictions_of_the_best_models(monkeypatch):
    seen = []
    whole = module.expand_members
    monkeypatch.setattr(module, "expand_members", lambda *args: seen.append(args) or whole(*args))
    asked = []
    ask = module.predict_pseudo_labels
    monkeypatch.setattr(module, "predict_pseudo_labels", lambda *args: asked.append(args[0]) or ask(*args))
    settings = quick(
        training__self_training_rounds=2, training__pseudo_label_weights=[0.0, 1.0], training__gates="learned"
    )
    run = train(payments(60), "node:tier", settings=settings, ensemble=2, seed=3)
    (_, first, soft_labels, _), (task_data, second, outputs, _) = seen
    assert [one.round for one in (*first, *second)] == [1, 1, 2]
    assert not torch.equal(soft_labels, outputs)
    torch.testing.assert_close(outputs.sum(2), torch.ones(60, 2))
    for member, (best, (model,)) in enumerate(zip(run.config.selection.best, asked[0], strict=True)):
        mine = replace(task_data, parts={"node": task_data.parts["node"][:, [member]]})
        assert torch.equal(predict_pseudo_labels([[model]], mine, "cpu")[:, 0], outputs[:, member])
        codes = task_data.parts["node"][:, member] == 1
        right = outputs[codes, member].argmax(1) == task_data.labels["node"][codes, 0]
        assert float(right.double().mean()) == pytest.approx(max(best[:2]))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["node:tier", "node:vip"])
def test_a_second_round_is_selected_only_where_it_is_better(target):
    """Whatever the second round reaches, what is kept is never worse on validation than without it."""
    settings = quick(
        training__pseudo_label_weights=1.0,
        training__gates="learned",
        training__epochs=10,
        data__fractions=(0.2, 0.4, 0.4),
    )
    one, two = (
        train(payments(80), target, settings=settings | {"training.self_training_rounds": rounds}) for rounds in (1, 2)
    )
    ((first,),), ((again, second),) = one.config.selection.best, two.config.selection.best
    assert again == first, "the first round is the same"
    assert two.config.selection.selected == [int(second > first)] or second == first
    metric = "accuracy" if target == "node:tier" else "auc"
    assert two.metrics["validation"]["node"][metric] == pytest.approx(max(first, second))


def test_a_large_graph_is_not_trained_eight_times_unless_asked(monkeypatch):
    monkeypatch.setattr("censnet.pipeline.resolve_candidates.MOST", (30 + 90) * 8 - 1)
    training = prepare(payments(), "node:tier", changes=quick()).settings.training
    assert (training.gates, training.self_training_rounds, training.pseudo_label_weights) == (
        ["learned"],
        1,
        [0.0, 1.0],
    )
    asked = quick(training__gates=["learned", "frozen"], training__self_training_rounds=2)
    training = prepare(payments(), "node:tier", changes=asked).settings.training
    assert (training.gates, training.self_training_rounds) == (["learned", "frozen"], 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model__gate": "linear"}, "with model.gate linear"),
        ({"model__self_weight": "learned"}, "and model.self_weight learned"),
        ({"data__fractions": (0.8, 0.0, 0.2)}, "expected one: no validation row has a label"),
    ],
)
def test_gates_that_cannot_be_frozen_are_refused_when_asked_for_and_left_out_of_a_preset(changes, why):
    settings = quick(training__epochs=1, training__pseudo_label_weights=0.0, **changes)
    run = train(payments(), "node:tier", settings=settings)
    assert run.config.settings.training.gates == ["learned"]
    with pytest.raises(SettingsError, match=why):
        train(payments(), "node:tier", settings=settings | {"training.gates": ["learned", "frozen"]})


@pytest.mark.parametrize(
    ("target", "changes", "why"),
    [
        ("node:wealth", {}, "as node:wealth is regression"),
        ("edge:fraud", {"training__pseudo_label_weights": 0.0}, "training.pseudo_label_weights is 0"),
        ("node:vip", {"training__pseudo_label_weights": 0.0}, "training.pseudo_label_weights is 0"),
    ],
)
def test_rounds_without_pseudo_labels_are_refused_when_asked_for(target, changes, why):
    with pytest.raises(
        SettingsError,
        match=r"training\.self_training_rounds is 3, expected 1: further rounds learn from pseudo-labels.*" + why,
    ):
        prepare(payments(), target, changes=quick(training__self_training_rounds=3, **changes))
    assert prepare(payments(), target, changes=quick(**changes)).settings.training.self_training_rounds == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "more"),
    [("link", {}), (["node:vip", "link"], {}), (["node:vip", "link"], {"model__decoder": "cosine"})],
)
def test_gates_are_candidates_where_links_are_predicted(target, more):
    settings = quick(training__gates=["learned", "frozen"], training__epochs=2, model__layers="EN", **more)
    run = train(payments(), target, settings=settings, ensemble=2)
    assert [one.gates for one in run.config.selection.candidates] == ["learned", "frozen"]
    assert len(run.config.selection.best) == len(run.models) == 2


@pytest.mark.slow
@pytest.mark.parametrize("batched", [True, False])
def test_every_training_has_a_number_in_the_history_while_it_runs(batched, monkeypatch, tmp_path):
    if not batched:
        one_by_one(monkeypatch)
    settings = quick(training__epochs=3, training__gates="learned", training__self_training_rounds=2)
    with monkeypatch.context() as patch:
        stop_at(patch, 5 if batched else 8, "exception")
        with pytest.raises(CrashError):
            train(payments(), "node:tier", tmp_path / "run", settings=settings)
    frame = pd.read_csv(tmp_path / "run" / "history.csv")
    assert not frame.duplicated(["member", "epoch"]).any()
    assert set(frame["member"]) == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.parametrize("batched", [True, False])
def test_candidates_start_alike_and_members_do_not_and_each_round_has_two_teachers(batched, monkeypatch):
    if not batched:
        one_by_one(monkeypatch)
    starts, teachers = [], []
    fit, ask = ensemble.fit, module.predict_pseudo_labels

    def spy(model, *args, **more):
        starts.extend(copy.deepcopy(one).state_dict() for one in split_members(model))
        return fit(model, *args, **more)

    monkeypatch.setattr(ensemble, "fit", spy)
    monkeypatch.setattr(module, "predict_pseudo_labels", lambda *args: teachers.append(args[0]) or ask(*args))
    train(payments(), "node:tier", settings=quick(training__epochs=2), ensemble=2)
    assert [[len(each) for each in found] for found in teachers] == [[2, 2], [2, 2]]
    rounds = [starts[:8], starts[8:12], starts[12:]]
    first = [rounds[0][0], rounds[0][4]]
    assert not all(first[0][name].equal(tensor) for name, tensor in first[1].items())
    for networks in rounds:
        for number, network in enumerate(networks):
            start = first[number // (len(networks) // 2)]
            assert all(start[name].equal(tensor) for name, tensor in network.items())


@pytest.mark.slow
def test_candidates_of_a_replicate_have_other_seeds_than_the_next_replicate(monkeypatch):
    one_by_one(monkeypatch)
    seeds = []
    whole = ensemble.fit
    monkeypatch.setattr(ensemble, "fit", lambda *args, **kw: seeds.append(args[3]) or whole(*args, **kw))
    for seed in (0, 1):
        train(payments(), "node:tier", settings=quick(training__epochs=1, training__gates="learned"), seed=seed)
    assert len(seeds) == len(set(seeds)) == 2 * 4, "each training of each draws apart"


@pytest.mark.slow
@pytest.mark.parametrize("gates", ["frozen", "learned"])
def test_edge_embeddings_of_frozen_gates_come_with_a_warning(gates: str, caplog: pytest.LogCaptureFixture) -> None:
    run = train(
        unscaled(),
        "node:side",
        settings=quick(training__gates=gates, training__self_training_rounds=1, training__epochs=2),
    )
    with caplog.at_level("WARNING", "censnet"):
        run.embed(unscaled())
    assert run.config.gates_frozen == (gates == "frozen")
    assert ("frozen gates" in caplog.text) == (gates == "frozen")
