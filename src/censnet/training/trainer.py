"""The training loop: the same for one big graph, for batches of small ones, and for parts of a big one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, broadcast_object_list, extract_model_from_parallel
from torch import Tensor, nn
from torch.optim import Optimizer

from censnet.errors import SettingsError
from censnet.nn.model import Model
from censnet.runs.config import Candidate
from censnet.settings.schema import TrainingSettings
from censnet.training.batches import choose_sampling, make_batches
from censnet.training.callbacks import Callback
from censnet.training.devices import check_processes, make_accelerator, total_memory
from censnet.training.evaluator import Evaluator, Scores, ValidationScore, choose_monitor, overall
from censnet.training.history import HistoryFile, Row, history_columns
from censnet.training.interrupt import diverged, interruptible, left
from censnet.training.objective import Objective
from censnet.training.optim import (
    clip_gradients,
    freeze_gates,
    lr_factor,
    make_optimizer,
    seed_generators,
    step_seed,
)
from censnet.training.state import Progress, Weights
from censnet.training.task_data import TaskData

logger = logging.getLogger("censnet")

__all__ = ["Callback", "FitResult", "Row", "Selection", "fit"]


@dataclass(frozen=True)
class Selection:
    """Several tries of one network: the best value of the metric that decides in each, and which was kept."""

    candidates: list[Candidate]
    best: list[float | None]
    kept: int


@dataclass(frozen=True)
class FitResult:
    """What a training reached. The learner has the weights of the best epoch of each member."""

    history: list[Row]
    monitor: str
    best: list[float | None]
    best_epoch: list[int]
    choice: Selection | None = None  # of one network, where there was something to try


def fit(
    model: Model,
    task_data: TaskData,
    settings: TrainingSettings,
    seed: int = 0,
    *,
    device: str | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    record: HistoryFile | None = None,
) -> FitResult:
    """Train, and leave the best weights in the learner.

    Every step draws its dropout and its batch from a seed of its own, (seed, epoch, step), so that a training that goes
    on from a checkpoint takes the steps that it would have taken.

    Args:
        learner: what is trained; on return its weights are those of the epoch that was best on validation.
        lesson: what it is trained on.
        settings: how.
        seed: of dropout and of the order of batches.
        device: where; the best there is if None.
        checkpoint: the file that the state is kept in; without one, nothing is written.
        resume: whether to go on from that file, if it is there.
        listeners: hear of every step and epoch.
        record: the file that every epoch is written to.
    """
    trainer = _make_trainer(model, task_data, settings, seed, device, checkpoint, callbacks, record)
    still = trainer.task_data.frozen
    hooks = [] if still is None else freeze_gates(model, still)
    if resume and checkpoint is not None and checkpoint.exists():
        trainer.restore(checkpoint)
    try:
        return trainer.run()
    finally:
        for hook in hooks:
            hook.remove()


def close(
    model: Model, task_data: TaskData, settings: TrainingSettings, *, device: str | None, checkpoint: Path
) -> FitResult | None:
    """Leave the best weights so far in the learner, as the checkpoint of an unfinished training has them.

    The best epoch of a member that has none yet is -1. Without a checkpoint there is nothing.
    """
    if not checkpoint.exists():
        return None
    trainer = _make_trainer(model, task_data, settings, 0, device, checkpoint, (), None)
    trainer.restore(checkpoint)
    return trainer.end()


def _make_trainer(
    model: Model,
    task_data: TaskData,
    settings: TrainingSettings,
    seed: int,
    device: str | None,
    checkpoint: Path | None,
    callbacks: Sequence[Callback],
    record: HistoryFile | None,
) -> _Trainer:
    accelerator = make_accelerator(settings.precision, device)
    settings = choose_sampling(task_data, settings, model, total_memory(accelerator.device))
    check_processes(accelerator, task_data, settings)
    task_data = task_data.to(accelerator.device)
    network = accelerator.prepare_model(model)  # on its device, and in several processes with gradients in common
    extract_model_from_parallel(network, keep_fp32_wrapper=False)  # steps say themselves what is of lower precision
    optimizer = make_optimizer(model, settings)
    return _Trainer(accelerator, model, network, optimizer, task_data, settings, seed, checkpoint, callbacks, record)


class _Trainer:
    def __init__(
        self,
        accelerator: Accelerator,
        model: Model,
        network: nn.Module,
        optimizer: Optimizer,
        task_data: TaskData,
        settings: TrainingSettings,
        seed: int,
        checkpoint: Path | None,
        callbacks: Sequence[Callback],
        record: HistoryFile | None,
    ) -> None:
        self.accelerator, self.model, self.network, self.optimizer = accelerator, model, network, optimizer
        self.task_data, self.settings, self.seed = task_data, settings, seed
        self.checkpoint = checkpoint if accelerator.is_main_process else None
        self.source = checkpoint
        self.callbacks = callbacks if accelerator.is_main_process else ()
        self.record = record if accelerator.is_main_process else None
        self.members = task_data.members
        self.batches = make_batches(task_data, settings, model.receptive_field, model.samples_pairs)
        self.steps = len(self._plan(0))
        self.judge = Evaluator(task_data, "validation") if task_data.has("validation") else None
        self.monitor = choose_monitor(settings.monitor, task_data, self.judge)
        if self.judge is not None:
            self.judge.quick = {self.monitor}
        self.objective = Objective(task_data, settings, model)
        self.state = Progress(loss=[0.0] * self.members, best=[None] * self.members, best_epoch=[-1] * self.members)
        self.weights = Weights(model, optimizer, settings.ema_decay)
        self.saved_at = time.monotonic()

    def run(self) -> FitResult:
        state, settings = self.state, self.settings
        for callback in self.callbacks:
            callback.begin(settings.epochs, state.epoch, self.steps, self.monitor)
        if self.record is not None:
            judged = None if self.judge is None else self.monitor
            self.record.begin(state.history, history_columns(judged), self.members)
        try:
            if self.checkpoint is not None and not self.checkpoint.exists():
                self.save()
            with interruptible() as interrupted:
                while not state.finished:
                    self._epoch(interrupted)
        finally:
            for callback in self.callbacks:
                callback.end()
        return self.end()

    def restore(self, checkpoint: Path) -> None:
        """Go back to a checkpoint, with which more epochs may be asked for now than when it was written."""
        self.state = self.weights.restore(checkpoint)
        self.state.finished = self._is_finished()

    def end(self) -> FitResult:
        """Leave the weights of the best epoch of each member in the learner."""
        self.weights.take_best()
        return FitResult(self.state.history, self.monitor, self._best_values(), self.state.best_epoch)

    def _is_finished(self) -> bool:
        over = all(self._is_over(member) for member in range(self.members))
        return self.state.epoch >= self.settings.epochs or over

    def _epoch(self, interrupted: threading.Event) -> None:
        state = self.state
        if not self.network.training:
            self.network.train()
        plan = self._plan(state.epoch)
        totals = torch.tensor(state.loss, dtype=torch.float64, device=self.accelerator.device)
        while state.step < len(plan):
            loss = self._step(plan[state.step])
            totals += loss.detach()
            state.step += 1
            last = state.step == len(plan)
            seen = self.accelerator.device.type == "cpu" or last or state.step % 32 == 0  # a look at a GPU waits for it
            if seen:
                self._check(totals)
            for callback in self.callbacks:
                callback.step()
            leave = not last and self._is_asked(interrupted, seen)
            if not last and (leave or self._due()):
                state.loss = totals.tolist()
                self._check(totals)
                self.save()
            if leave:
                raise left(state.epoch, state.step, self.source)
        state.loss = totals.tolist()
        with self.weights.averaged():
            self._close_epoch(len(plan))
        leave = self._is_asked(interrupted, True)
        if state.finished or leave or self._due():
            self.save()
        if leave and not (state.finished and self.source is None):
            raise left(state.epoch, state.step, self.source)

    def _step(self, chosen: Tensor) -> Tensor:
        """One step. -> the loss of each member."""
        state, settings = self.state, self.settings
        number = state.epoch * self.steps + state.step
        seed = step_seed(self.seed, number)
        seed_generators(seed, self.accelerator.device)
        generator = torch.Generator().manual_seed(seed)
        batch = self.batches.make(chosen, generator)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * lr_factor(settings, number, settings.epochs * self.steps)
        with self.accelerator.autocast() if settings.precision == "bf16" else nullcontext():
            loss: Tensor = self.objective(self.network(batch.graph), batch)
        self.optimizer.zero_grad()
        loss.sum().backward()  # type: ignore[no-untyped-call]
        if settings.max_grad_norm is not None:
            clip_gradients(list(self.model.parameters()), settings.max_grad_norm, self.members)
        self.optimizer.step()
        self.weights.average(number)
        return loss

    def _close_epoch(self, steps: int) -> None:
        state = self.state
        validated = self.judge is not None and (
            (state.epoch + 1) % self.settings.validate_every == 0 or state.epoch + 1 == self.settings.epochs
        )
        scores = self._validate() if validated else None
        rows, better = [], []
        for member in range(self.members):
            row: Row = {"epoch": state.epoch + 1, "loss": state.loss[member] / steps}
            if self.members > 1:
                row = {"member": member, **row}
            row["learning_rate"] = float(self.optimizer.param_groups[0]["lr"])
            if scores is not None:
                value, loss = overall(scores[member], self.monitor), overall(scores[member], "loss")
                row |= {} if loss is None else {"validation_loss": loss}
                row |= {} if value is None else {f"validation_{self.monitor}": value}
                mark = None if value is None or loss is None else ValidationScore(value, loss)
                if mark is not None and not self._is_over(member) and mark.is_better(self.monitor, state.best[member]):
                    state.best[member], state.best_epoch[member] = mark, state.epoch + 1
                    better.append(member)
            rows.append(row)
        if self.judge is None:
            better, state.best_epoch = list(range(self.members)), [state.epoch + 1] * self.members
        self.weights.keep(better)
        state.history += rows
        if self.record is not None:
            self.record.add(rows)
        for callback in self.callbacks:
            callback.epoch(rows, self._best_values())
        state.epoch, state.step, state.loss = state.epoch + 1, 0, [0.0] * self.members
        state.finished = self._is_finished()
        if state.finished:
            self._check_weights()

    def _best_values(self) -> list[float | None]:
        """The best of the metric that decides, of each member."""
        return [None if mark is None else mark.value for mark in self.state.best]

    def _is_over(self, member: int) -> bool:
        """Whether a member had waited for a better epoch long enough when it was last validated."""
        patience, best = self.settings.patience, self.state.best_epoch[member]
        validated = self.state.epoch - self.state.epoch % self.settings.validate_every
        return self.judge is not None and patience is not None and validated - max(best, 0) >= patience

    def _validate(self) -> list[Scores]:
        """The scores of each member, in every process those of the first."""
        assert self.judge is not None
        several, scores = self.accelerator.num_processes > 1, list[Scores]()
        if several:
            broadcast(list(self.model.buffers()))  # each process has taken statistics of its own batches
        if self.accelerator.is_main_process:
            try:
                scores = self.judge(self.model)
            except FloatingPointError as error:
                self._check_weights()  # which names what is to blame
                self._diverged(str(error))
        found: list[Scores] = broadcast_object_list([scores])[0] if several else scores
        return found

    def _plan(self, epoch: int) -> Sequence[Tensor]:
        """The steps of an epoch that are this process's."""
        plan = self.batches.plan(torch.Generator().manual_seed(step_seed(self.seed, -1 - epoch)))
        count = self.accelerator.num_processes
        if count > 1:
            if len(plan) < count:
                raise SettingsError(f"an epoch has {len(plan)} steps for {count} processes: lower training.batch_size")
            plan = plan[self.accelerator.process_index : len(plan) - len(plan) % count : count]
        return plan

    def _check(self, totals: Tensor) -> None:
        if not bool(totals.isfinite().all()):
            self._diverged(f"the loss is {float(totals[~totals.isfinite()][0])}")

    def _check_weights(self) -> None:
        """A last step can spoil the weights though its loss was a number."""
        spoilt = self.weights.not_finite()
        if spoilt is not None:
            self._diverged(f"{spoilt} is not finite")

    def _diverged(self, what: str) -> NoReturn:
        state = self.state
        epoch, step = (state.epoch + 1, state.step) if state.step else (state.epoch, self.steps)
        raise diverged(what, epoch, step, self.source)

    def _due(self) -> bool:
        wait = self.settings.checkpoint_seconds
        return self.checkpoint is not None and time.monotonic() - self.saved_at >= wait

    def _is_asked(self, interrupted: threading.Event, seen: bool) -> bool:
        """Whether to stop. Several processes stop at the same step, or they would wait for each other."""
        if self.accelerator.num_processes == 1:
            return interrupted.is_set()
        if not seen:
            return False
        asked = torch.tensor(float(interrupted.is_set()), device=self.accelerator.device)
        return bool(self.accelerator.reduce(asked) > 0)

    def save(self) -> None:
        """Write the checkpoint."""
        if self.checkpoint is not None:
            self._check_weights()
            self.weights.save(self.checkpoint, self.state)
            self.saved_at = time.monotonic()
