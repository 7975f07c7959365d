"""A limit of wall time for a training: its shares for each model, and steps planned so that schedules end in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic

Clock = Callable[[], float]

WARM_STEPS = 3  # of each model, slower than later ones: memory is asked for, and operations are chosen
MEASURED_STEPS = 5  # behind these, before the first plan
FIRM = 0.05  # share of a model's time, from which on its plan can only become shorter
SLACK = 0.03  # share of the time left that a plan leaves free
PASSES = 3.0  # forward passes that the scores, calibration and tables of one forward pass over all rows take, with it
FIXED_SECONDS = 1.5  # of the end of a run, whatever its size
SHARE_OF_BEGINNING = 0.15  # of the time until the training begins: the end is slow where imports and reading were
SECONDS_PER_ROW = 3e-5  # of its predictions and its split, in tables

_began = ContextVar[float | None]("_began", default=None)


@contextmanager
def counted_from(moment: float) -> Iterator[None]:
    """Count the time budget of a training from a moment before its call, as when the command was entered."""
    token = _began.set(moment)
    try:
        yield
    finally:
        _began.reset(token)


def now() -> float:
    """The time by the clock of all budgets."""
    return monotonic()


def now_or_before() -> float:
    """The moment that the time of a training is counted from: that of `counted_from`, else now."""
    began = _began.get()
    return now() if began is None else began


@dataclass
class _Whole:
    """The budget that all shares are of."""

    seconds: float
    started: float
    clock: Clock
    fixed: float  # seconds of the end of the run, beside its forward passes
    passes: float
    pass_seconds: float = 0.0  # one forward pass over all rows, the slowest so far

    @property
    def end(self) -> float:
        """The moment at which the last training has to end, so that scoring and saving fit into the time."""
        return self.started + max(self.seconds - self.fixed - self.passes * self.pass_seconds, 0.0)


@dataclass(frozen=True, eq=False)
class TimeBudget:
    """Wall time for a training, or the share of it that one of several models has.

    The time that scoring and saving take is kept free: it is estimated from the number of rows and from how long
    validation takes, as soon as that is measured.

    Args:
        whole: what all shares are of.
        begun: when this share began.
        parent: the budget that it is a share of; None is the whole.
        among: the number of models that the rest of the parent was divided among.

    Example:
        >>> budget = TimeBudget.of(600, started=0.0, clock=lambda: 0.0)
        >>> budget.share(4).end, budget.share(2).share(2).end
        (149.625, 149.625)
    """

    whole: _Whole
    begun: float
    parent: TimeBudget | None = field(default=None, repr=False)
    among: int = 1

    @classmethod
    def of(
        cls, seconds: float, started: float, *, num_rows: int = 0, outputs: int = 1, clock: Clock | None = None
    ) -> TimeBudget:
        """The budget of a whole training.

        Args:
            seconds: from the start to the end, when everything is saved.
            started: when it started, by the clock.
            num_rows: rows whose predictions are written.
            outputs: how often every row is predicted at the end.
            clock: a number of seconds that rises; that of the system if None.
        """
        clock = clock or now
        fixed = FIXED_SECONDS + SHARE_OF_BEGINNING * (clock() - started) + SECONDS_PER_ROW * num_rows
        return cls(_Whole(seconds, started, clock, fixed, PASSES * outputs), started)

    def share(self, among: int) -> TimeBudget:
        """The share of the next of so many models that are left: what none of them needs goes to those after it."""
        return TimeBudget(self.whole, self.now(), self, among)

    def now(self) -> float:
        """The time by the clock of the budget."""
        return self.whole.clock()

    @property
    def end(self) -> float:
        """The moment at which training has to end."""
        if self.parent is None:
            return self.whole.end
        return self.begun + max(self.parent.end - self.begun, 0.0) / self.among

    def measured(self, pass_seconds: float) -> None:
        """Say how long a forward pass over all rows takes."""
        self.whole.pass_seconds = max(self.whole.pass_seconds, pass_seconds)


class Pace:
    """The number of steps of one training: all that its epochs have, or as many as its time allows.

    After some first steps the rest is planned from the mean time of a step and that of a validation. The plan is made
    again until a twentieth of the time has passed; from then on it can only become shorter, so that the learning rate,
    which follows from it, never rises again.

    Args:
        budget: the time; None takes all steps.
        epochs: at most.
        steps: of an epoch.
        validate_every: epochs between validations.
        done: the steps of the training that were taken before.
    """

    def __init__(self, budget: TimeBudget | None, epochs: int, steps: int, validate_every: int, done: int) -> None:
        self.budget, self.steps, self.validate_every = budget, steps, validate_every
        self.most = self.total = epochs * steps
        self.next, self._warm = done + 1, done + WARM_STEPS
        self.validation_seconds: float | None = None
        self._validating = 0.0  # in all, since steps are measured
        self._measured_from: tuple[int, float] | None = None  # steps, and the time
        self._begun = 0.0 if budget is None else budget.now()

    @property
    def is_cut(self) -> bool:
        """Whether the time allows fewer steps than there are."""
        return self.total < self.most

    @property
    def epochs(self) -> int:
        """The epochs of the plan; the last may have fewer steps."""
        return -(-self.total // self.steps)

    @property
    def is_firm(self) -> bool:
        """Whether the plan can only become shorter."""
        return self.budget is None or self.budget.now() - self._begun >= FIRM * (self.budget.end - self._begun)

    @property
    def lacks_validation(self) -> bool:
        """Whether steps are measured, and no validation."""
        return self._measured_from is not None and self.validation_seconds is None

    def can_plan(self, done: int) -> bool:
        """Whether steps and validation were measured, after so many steps."""
        measured = self._measured_from is not None and done > self._measured_from[0]
        return self.budget is not None and measured and not self.lacks_validation

    def is_due(self, done: int) -> bool:
        """Whether to look at the clock after so many steps."""
        return self.budget is not None and done >= self.next

    def validated(self, seconds: float) -> None:
        """Say how long a validation took."""
        self.validation_seconds = max(seconds, self.validation_seconds or 0.0)
        self._validating += seconds

    def look(self, done: int) -> None:
        """Plan the rest after so many steps."""
        assert self.budget is not None
        now, end = self.budget.now(), self.budget.end
        if now >= end:
            self.total = min(self.total, done)
        if self._measured_from is None:
            if done >= self._warm:
                self._measured_from, self._validating = (done, now), 0.0
            self.next = done + (1 if self._measured_from is None else MEASURED_STEPS)
            return
        first, since = self._measured_from
        step_seconds = max(now - since - self._validating, 1e-9) / (done - first)
        validation = self.validation_seconds or 0.0
        each = step_seconds + validation / (self.steps * self.validate_every)

        def affordable(seconds: float) -> int:
            return done + max(math.floor((seconds - validation) / each), 0)

        if not self.is_firm:
            self.total = min(max(affordable((end - now) * (1 - SLACK)), done), self.most)
        elif affordable(end - now) < self.total:
            self.total = max(affordable((end - now) * (1 - SLACK)), done)
        self.next = done + max(1, min((self.total - done) // 20, int(0.02 * (end - self._begun) / step_seconds)))
