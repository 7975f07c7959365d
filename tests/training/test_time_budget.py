"""Time budgets: shares of the time, and steps planned so that the learning rate has fallen when the time is over."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from samples import payments, quick, untrained_model

from censnet.pipeline.prepare import prepare
from censnet.settings.presets import make_settings
from censnet.settings.schema import TrainingSettings
from censnet.text import read_seconds
from censnet.training.callbacks import Callback
from censnet.training.devices import make_accelerator
from censnet.training.evaluator import Evaluator
from censnet.training.optim import lr_factor
from censnet.training.time_budget import FIXED_SECONDS, PASSES, Pace, TimeBudget, counted_from, now_or_before
from censnet.training.trainer import fit

CPU = make_accelerator(device="cpu")


class FakeClock(Callback):
    """A clock that each step of a training sets forward; a pace is the seconds of a step after so many steps."""

    def __init__(self, *pace: tuple[int, float]) -> None:
        self.now, self.steps, self.pace = 0.0, 0, pace
        self.plans: list[int] = []

    def __call__(self) -> float:
        return self.now

    def on_step_end(self) -> None:
        self.steps += 1
        self.now += next(seconds for after, seconds in reversed(self.pace) if self.steps > after)

    def on_plan(self, epochs: int) -> None:
        self.plans.append(epochs)


@pytest.fixture
def slow_validation(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeClock]]:
    """Clocks that each validation sets forward by two seconds."""
    clocks: list[FakeClock] = []
    plain = Evaluator.__call__

    def slow(self, model):
        for clock in clocks:
            clock.now += 2.0
        return plain(self, model)

    monkeypatch.setattr(Evaluator, "__call__", slow)
    return clocks


def fit_within(seconds: float, clock: FakeClock, **changes: object):
    """Train on payments within a time. -> the result and the settings"""
    prepared = prepare(payments(), "node:wealth", "strong", quick(), 0)
    stated = {"epochs": 500, "patience": None, "schedule": "warmup-cosine", "warmup": 0.1, **changes}
    settings = prepared.settings.training.model_copy(update=stated)
    budget = TimeBudget.of(seconds, 0.0, clock=clock)
    model = untrained_model(prepared)
    result = fit(model, prepared.task_data, settings, accelerator=CPU, callbacks=[clock], budget=budget)
    return result, settings


# -- durations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0", "-5m", "10x", "nan", "inf", "1e9999", "", "m", "5m3s", "10**3"])
def test_what_is_no_time_is_none(text):
    assert read_seconds(text) is None


@pytest.mark.parametrize("value", ["10x", 0, -3.0, [1], "0s"])
def test_a_bad_time_is_refused_in_one_line(value):
    with pytest.raises(ValueError, match=r"training.time_budget is .*expected none, or a time above 0 such as 90s"):
        make_settings("strong", "node", {"training.time_budget": value})


def test_a_time_is_in_seconds_and_may_have_a_unit():
    times = ["90", "90s", "1.5m", 90, "0.025 h"]
    assert {TrainingSettings(time_budget=time).budget_seconds for time in times} == {90.0}


# -- shares ---------------------------------------------------------------------------------------------------------


def test_what_a_model_leaves_of_its_share_goes_to_those_after_it():
    clock = FakeClock()
    budget = TimeBudget.of(100 + FIXED_SECONDS, 0.0, clock=clock)
    assert budget.share(4).end == 25
    clock.now = 10  # it stopped early
    assert budget.share(3).end == 40
    clock.now = 40
    assert [budget.share(2).end, budget.share(2).share(2).end, budget.share(1).end] == [70, 55, 100]


def test_scoring_and_saving_have_the_time_that_validation_says():
    clock = FakeClock()
    budget = TimeBudget.of(100 + FIXED_SECONDS, 0.0, outputs=2, clock=clock)
    share = budget.share(2)
    share.measured(5.0)
    assert [budget.end, share.end] == [100 - 2 * 5 * PASSES, 50 - 5 * PASSES]


def test_a_share_of_no_time_ends_when_it_begins():
    clock = FakeClock()
    clock.now = 1000.0
    assert TimeBudget.of(10, 0.0, clock=clock).share(3).end == 1000


def test_the_command_counts_from_its_start():
    with counted_from(12.5):
        assert now_or_before() == 12.5
    assert now_or_before() != 12.5


# -- plans ----------------------------------------------------------------------------------------------------------


def test_the_schedule_ends_with_the_time(slow_validation):
    clock = FakeClock((0, 1.0))
    slow_validation.append(clock)
    result, settings = fit_within(200, clock, validate_every=10)
    left = 200 - clock.now - FIXED_SECONDS - 2 * PASSES  # of which an end takes nothing here
    assert result.out_of_time
    assert result.planned_epochs == result.history[-1]["epoch"]
    assert 0 <= left < 0.1 * 200
    last = lr_factor("warmup-cosine", 0.1, clock.steps - 1, clock.steps) * settings.learning_rate
    assert result.history[-1]["learning_rate"] == pytest.approx(last)
    assert "validation_rmse" in result.history[-1]  # also the last epoch of a plan


def test_a_machine_that_becomes_slow_shortens_the_plan_and_one_that_becomes_fast_does_not_lengthen_it(slow_validation):
    found = {}
    for name, later in (("slower", 3.0), ("faster", 0.2)):
        clock = FakeClock((0, 1.0), (60, later))
        result, _ = fit_within(200, clock)
        rates = [row["learning_rate"] for row in result.history[20:]]
        assert rates == sorted(rates, reverse=True), name  # no rate rises after the warmup
        assert clock.now <= 200 - FIXED_SECONDS, name
        assert result.history[-1]["learning_rate"] < 0.01 * max(rates), name
        found[name] = clock.plans
    assert found["slower"][-1] < found["slower"][0]
    assert found["faster"][-1] == min(found["faster"])


def test_epochs_that_take_longer_than_the_time_are_cut_and_validated(slow_validation):
    clock = FakeClock((0, 1.0))
    slow_validation.append(clock)
    prepared = prepare(payments(), "edge:fee", "strong", quick(training__sampling="neighbors"), 0)
    changes = {"epochs": 4, "batch_size": 1, "fanout": 2, "schedule": "cosine", "patience": None}
    settings = prepared.settings.training.model_copy(update=changes)
    budget = TimeBudget.of(30, 0.0, clock=clock)
    model = untrained_model(prepared)
    result = fit(model, prepared.task_data, settings, accelerator=CPU, callbacks=[clock], budget=budget)
    labeled = int((prepared.task_data.parts["edge"] == 0).sum())
    assert 10 < clock.steps < labeled
    assert len(result.history) == 1
    assert result.planned_epochs == 1
    assert result.best_epoch == [1]
    assert math.isfinite(result.history[0]["validation_rmse"])
    assert clock.now <= 30


def test_a_budget_that_is_over_at_once_still_gives_a_model():
    clock = FakeClock((0, 100.0))
    result, _ = fit_within(1, clock)
    assert (clock.steps, result.best_epoch, result.out_of_time) == (1, [1], True)


def test_a_budget_that_suffices_changes_no_bit():
    prepared = prepare(payments(), "node:wealth", "strong", quick(), 0)
    settings = prepared.settings.training.model_copy(update={"epochs": 12, "schedule": "cosine"})
    found = []
    for budget in (None, TimeBudget.of(1e9, 0.0, clock=FakeClock())):
        model = untrained_model(prepared)
        result = fit(model, prepared.task_data, settings, accelerator=CPU, budget=budget)
        found.append((model.state_dict(), result))
    (weights, result), (others, other) = found
    torch.testing.assert_close(weights, others, rtol=0, atol=0)
    assert result == other
    assert not result.out_of_time
    assert result.planned_epochs is None


def test_early_stopping_ends_a_training_before_its_time_does():
    result, _ = fit_within(1000, FakeClock((0, 1.0)), patience=2, learning_rate=0.3)
    assert not result.out_of_time
    assert len(result.history) < 500


def test_a_plan_is_made_of_measured_steps_and_validations():
    clock = FakeClock()
    pace = Pace(TimeBudget.of(1000 + FIXED_SECONDS, 0.0, clock=clock), 100, 100, 1, 0)
    for done in range(1, 9):
        clock.now += 10.0 if done <= 3 else 2.0  # the first steps are slow
        if pace.is_due(done):
            if pace.lacks_validation:
                clock.now += 50
                pace.validated(50.0)
            pace.look(done)
    # 90 s are over; (910 - 3 % - 50) at 2 + 50 / 100 seconds a step
    assert pace.total == 8 + int((910 * 0.97 - 50) / 2.5)
    assert (pace.is_cut, pace.epochs) == (True, 4)
