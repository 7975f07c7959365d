"""Outputs that are computed some rows at a time: the same as all at once, and never all of them in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import censnet
from censnet.nn import chunked
from censnet.pipeline.prepare import Prepared, prepare
from censnet.tasks.metrics import score
from censnet.tasks.targets import Target
from censnet.training.batches import make_batches
from censnet.training.evaluator import Evaluator
from censnet.training.objective import Objective
from censnet.training.task_data import build_model

CPU = torch.device("cpu")


def payments(rows: int, classes: int, nodes: int = 40) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    code = np.arange(rows) % classes
    ends = {"source": draw.integers(0, nodes, rows), "target": draw.integers(0, nodes, rows)}
    return pd.DataFrame({**ends, "x": code + draw.normal(size=rows), "shop": [f"shop {number}" for number in code]})


@pytest.fixture
def in_chunks(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(chunked, "MAX_AT_ONCE", 0)
    monkeypatch.setattr(chunked, "CHUNK", 2**11)
    return monkeypatch


def loss_and_scores(prepared: Prepared) -> tuple[Any, ...]:
    torch.manual_seed(0)
    settings = prepared.settings
    task_data = prepared.task_data.with_inputs(settings.model)
    model = build_model(task_data, settings)
    batches = make_batches(task_data, settings.training, model.receptive_field)
    (plan,) = batches.plan(torch.Generator())
    batch = batches.make(plan, torch.Generator())
    loss = Objective(task_data, settings.training, model)(model(batch.graph), batch)
    loss.sum().backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    judge = Evaluator(task_data, "validation")
    return loss.detach(), gradients, judge(model)[0]["edge"], judge.defines("accuracy"), judge.defines("auc")


@pytest.mark.slow
@pytest.mark.parametrize("imbalance", ["none", "weights"])
@pytest.mark.parametrize("classes", [6, 300])
def test_chunks_give_the_loss_the_gradients_and_the_scores_of_all_rows_at_once(
    in_chunks: pytest.MonkeyPatch, classes: int, imbalance: str
) -> None:
    settings = {"model.dropout": 0.0, "model.hidden": 8, "training.imbalance": imbalance}
    prepared = prepare(payments(900, classes), "edge:shop=classes", changes=settings)
    in_pieces = loss_and_scores(prepared)
    in_chunks.undo()
    at_once = loss_and_scores(prepared)
    torch.testing.assert_close(in_pieces, at_once, rtol=1e-4, atol=1e-6)
    assert ("auc" in at_once[2]) == (classes == 6)


@pytest.mark.slow
@pytest.mark.parametrize("ensemble", [1, 2])
def test_chunks_predict_and_evaluate_as_all_rows_at_once(in_chunks: pytest.MonkeyPatch, ensemble: int) -> None:
    settings = {"model.dropout": 0.3, "model.hidden": 8, "training.epochs": 3}
    data, later = payments(400, 210), payments(500, 210)
    run = censnet.train(data, "edge:shop=classes", settings=settings, ensemble=ensemble)
    assert isinstance(run.outputs(run.read(data).graph, CPU)[0].by_level["edge"], chunked.ChunkedOutputs)
    in_pieces = run.predict(later), run.evaluate(later), run.evaluate(data)
    in_chunks.undo()
    assert isinstance(run.outputs(run.read(data).graph, CPU)[0].by_level["edge"], torch.Tensor)
    at_once = run.predict(later), run.evaluate(later), run.evaluate(data)
    pd.testing.assert_frame_equal(in_pieces[0], at_once[0], rtol=1e-4)
    for ours, theirs in zip(in_pieces[1:], at_once[1:], strict=True):
        assert {part: scores["edge"] for part, scores in ours.items()} == {
            part: pytest.approx(scores["edge"], rel=1e-4) for part, scores in theirs.items()
        }
    assert {part: scores["edge"] for part, scores in run.metrics.items()} == {
        part: pytest.approx(scores["edge"], rel=1e-4) for part, scores in at_once[2].items()
    }


def test_very_many_classes_have_their_likeliest_in_the_answers_and_no_column_for_each() -> None:
    run = censnet.train(payments(800, 250), "edge:shop=classes", settings={"model.hidden": 8, "training.epochs": 1})
    frame = run.predict(payments(50, 250), keep="ids")
    assert list(frame.columns[2:8]) == ["shop_predicted", "shop_p", "shop_2nd", "shop_2nd_p", "shop_3rd", "shop_3rd_p"]
    shares = frame[["shop_p", "shop_2nd_p", "shop_3rd_p", "shop_4th_p", "shop_5th_p"]].to_numpy()
    assert (np.diff(shares, axis=1) <= 0).all()
    assert list(frame.columns[8:]) == ["shop_4th", "shop_4th_p", "shop_5th", "shop_5th_p", "unlike_training"]
    assert (frame["shop_predicted"] != frame["shop_2nd"]).all()


def test_metrics_of_very_many_classes_are_those_of_all_their_outputs() -> None:
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(500, 250)), draw.integers(0, 250, 500).astype(float)
    names = [str(number) for number in range(250)]
    wide = Target(level="edge", column="c", kind="multiclass", classes=names)
    x[np.arange(0, 500, 2), y[::2].astype(int)] += 5
    found = score([wide], x, y[:, None])
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert found["accuracy"] == pytest.approx((x.argmax(1) == y).mean())
    assert found["log_loss"] == pytest.approx(-np.log(p[np.arange(500), y.astype(int)]).mean())
    assert "auc" not in found


class _Largest(TorchDispatchMode):
    """The largest tensor that any operation gives."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.size = max([self.size, *sizes])
        return out


@pytest.mark.slow
def test_a_step_with_5000_classes_never_has_the_outputs_of_all_rows() -> None:
    prepared = prepare(payments(7000, 5000, nodes=700), "edge:shop=classes", changes={"model.hidden": 16})
    with _Largest() as largest:
        loss_and_scores(prepared)
    assert largest.size <= chunked.CHUNK < 7000 * 5000 / 8
