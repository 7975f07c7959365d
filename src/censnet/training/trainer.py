"""The training loop: one for full-batch training, for batches of graphs, and for sampled subgraphs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, broadcast_object_list
from torch import Tensor

from censnet.data.splits.split_file import PARTS
from censnet.nn.model import Model
from censnet.settings.schema import TrainingSettings
from censnet.training import processes
from censnet.training.batch import Batch
from censnet.training.batches import make_batches, share_of
from censnet.training.callbacks import Callback
from censnet.training.checkpoint import Progress, Weights
from censnet.training.choose_sampling import choose_recompute, choose_sampling
from censnet.training.devices import check_processes, make_accelerator, total_memory
from censnet.training.early_stopping import EarlyStopping, ValidationScore
from censnet.training.evaluator import Evaluator, Scores, choose_monitor, mean_over_levels
from censnet.training.history import HistoryFile, Row, history_columns
from censnet.training.interrupt import diverged, interrupted_after, interruptible
from censnet.training.objective import Objective
from censnet.training.optim import clip_gradients, freeze, lr_factor, make_optimizer, seed_generators, step_seed
from censnet.training.step_graphs import RecordedSteps, can_record, leaves_padding_out
from censnet.training.task_data import TaskData
from censnet.training.time_budget import Pace, TimeBudget


@dataclass(frozen=True)
class FitResult:
    """Result of a training; lists have an entry for each member. The model has the weights of the best epoch.

    Args:
        history: a row for each epoch and member.
        monitor: the validation metric that selects the best epoch.
        best: its best value with the loss of that epoch, or None where nothing was validated.
        best_epoch: from 1; the last epoch where nothing was validated; -1 where no epoch is complete.
        planned_epochs: those that a time budget allowed; None without one, or where all fitted into it.
        out_of_time: whether the training ended because these were over.
    """

    history: list[Row]
    monitor: str
    best: list[ValidationScore | None]
    best_epoch: list[int]
    planned_epochs: int | None = None
    out_of_time: bool = False


def fit(
    model: Model,
    task_data: TaskData,
    settings: TrainingSettings,
    seed: int = 0,
    *,
    accelerator: Accelerator | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    history_file: HistoryFile | None = None,
    budget: TimeBudget | None = None,
    extend: bool = False,
) -> FitResult:
    """Train a model with early stopping, and give it the weights of its best epoch.

    Every step draws its dropout and its batch from a seed of its own, (seed, epoch, step), so that a training resumed
    from a checkpoint takes the steps that it would have taken. Where several processes train together, all draw the
    same order of the samples, and each takes its share of those of a step.

    Args:
        model: the model; a batched ensemble has several members.
        task_data: graph, labels and split, with soft labels and frozen parameters if there are any.
        settings: optimizer, schedule, batches, early stopping.
        seed: seed of dropout and of the order of batches.
        accelerator: device and processes; the best device if None.
        checkpoint: the file that the state is saved to; without one, nothing is written.
        resume: whether to continue from that file, if it exists.
        callbacks: called after every step and epoch; one of them may stop the training.
        history_file: the file that every epoch is written to.
        budget: the time that the training has; without one, it has all epochs.
        extend: whether a training that its time budget has ended goes on.
    """
    trainer = Trainer(model, task_data, settings, seed, accelerator, checkpoint, callbacks, history_file, budget)
    if resume and checkpoint is not None and processes.on_first(checkpoint.exists):
        trainer.restore(checkpoint, extend)
    return trainer.run()


def restore_best(
    model: Model, task_data: TaskData, settings: TrainingSettings, checkpoint: Path, accelerator: Accelerator
) -> FitResult:
    """Give a model the best weights so far of an unfinished training, as its checkpoint has them."""
    trainer = Trainer(model, task_data, settings, 0, accelerator, checkpoint)
    trainer.restore(checkpoint)
    return trainer.result()


class Trainer:
    """The training loop of `fit`, whose arguments it has."""

    def __init__(
        self,
        model: Model,
        task_data: TaskData,
        settings: TrainingSettings,
        seed: int,
        accelerator: Accelerator | None = None,
        checkpoint: Path | None = None,
        callbacks: Sequence[Callback] = (),
        history_file: HistoryFile | None = None,
        budget: TimeBudget | None = None,
    ) -> None:
        accelerator = accelerator or make_accelerator(settings.precision)
        device = accelerator.device
        settings = choose_sampling(task_data, settings, model, total_memory(device), device.type == "cpu")
        check_processes(accelerator, task_data, settings, model.ego_hops)
        model.encoder.recompute = choose_recompute(task_data, settings, model, total_memory(device))
        self.accelerator, self.model, self.settings, self.seed = accelerator, model, settings, seed
        self.task_data, self.members = task_data.to(accelerator.device), task_data.members
        model.to(device)
        self.gradients = processes.Gradients(model)
        self.optimizer = make_optimizer(model, settings)
        main = accelerator.is_main_process
        self.checkpoint = checkpoint
        self.callbacks, self.history_file = (callbacks, history_file) if main else ((), None)
        several, recording = accelerator.num_processes, can_record(accelerator, settings, model)
        self.batches = make_batches(
            self.task_data, settings, model.receptive_field, model.samples_pairs, model.ego_hops, several,
            padded=recording and leaves_padding_out(model),
        )  # fmt: skip
        self.compute_gradients: Callable[[Batch], Tensor] = self._compute_gradients
        if recording and self.batches.repeats is not None:
            self.compute_gradients = RecordedSteps(
                self._compute_gradients, list(model.parameters()), self.batches.repeats
            )
        self.steps = len(self._plan(0))
        self.evaluator = None
        if self.task_data.has("validation"):
            part = self.task_data.only("validation")
            self.evaluator = Evaluator(part, "validation", regression_loss=settings.regression_loss)
            if not accelerator.is_main_process:  # which alone validates: a graph with known labels is a copy
                self.evaluator.graph = part.graph
            self.rows_per_validated = _ratio(self.task_data, part, model.ego_hops > 0)
        loss = settings.regression_loss
        self.monitor = choose_monitor(settings.monitor, self.task_data, self.evaluator, loss)
        if self.evaluator is not None:
            self.evaluator.metrics = {self.monitor}
        patience = None if self.evaluator is None else settings.patience
        self.early_stopping = EarlyStopping(self.monitor, patience, settings.validate_every)
        self.objective = Objective(self.task_data, settings, model, processes.total, several)
        self.progress = Progress(loss=[0.0] * self.members, best=[None] * self.members, best_epoch=[-1] * self.members)
        self.weights = Weights(model, self.optimizer, settings.ema_decay)
        self.saved_at = time.monotonic()
        self.budget = budget
        self.pace = Pace(budget, settings.epochs, self.steps, settings.validate_every, 0)

    def run(self) -> FitResult:
        """Train until the last epoch, early stopping, a callback or an interrupt ends it."""
        progress, settings = self.progress, self.settings
        self.pace = Pace(self.budget, settings.epochs, self.steps, settings.validate_every, self._steps_done)
        for callback in self.callbacks:
            callback.on_train_begin(settings.epochs, progress.epoch, self.steps, self.monitor)
        if self.history_file is not None:
            validated = None if self.evaluator is None else self.monitor
            self.history_file.begin(progress.history, history_columns(validated), self.members)
        hooks = freeze(self.model, self.task_data.frozen)
        try:
            if self.accelerator.is_main_process and self.checkpoint is not None and not self.checkpoint.exists():
                self.save()
            with interruptible() as interrupted:
                while not progress.finished:
                    self._epoch(interrupted)
        finally:
            for hook in hooks:
                hook.remove()
            for callback in self.callbacks:
                callback.on_train_end()
        return self.result()

    def restore(self, checkpoint: Path, extend: bool = False) -> None:
        """Load a checkpoint; the number of epochs may have changed since it was written.

        Args:
            checkpoint: the file.
            extend: whether the training goes on if its time budget has ended it.
        """
        self.progress = self.weights.restore(checkpoint)
        if extend:
            self.progress.planned_epochs, self.progress.out_of_time = None, False
        self.progress.finished = self._is_finished() or self.progress.out_of_time

    def result(self) -> FitResult:
        """Give the model the best weights of each member."""
        self.weights.load_best()
        progress = self.progress
        return FitResult(
            progress.history, self.monitor, progress.best, progress.best_epoch, progress.planned_epochs,
            progress.out_of_time,
        )  # fmt: skip

    def save(self) -> None:
        """Write the checkpoint."""
        if self.checkpoint is not None and self.accelerator.is_main_process:
            self._check_weights()
            self.weights.save(self.checkpoint, self.progress)
        self.saved_at = time.monotonic()

    def _epoch(self, interrupted: threading.Event) -> None:
        progress, settings = self.progress, self.settings
        if not self.model.training:
            self.model.train()
        plan = self._plan(progress.epoch)
        totals = torch.tensor(progress.loss, dtype=torch.float64, device=self.accelerator.device)
        several, asked = self.accelerator.num_processes > 1, torch.zeros((), device=self.accelerator.device)
        while progress.step < len(plan):
            loss = self._step(plan[progress.step])
            if several:  # the loss of all their samples, and whether one is to stop: all see the same
                loss, asked = self._of_all(loss, asked, interrupted.is_set())
            totals += loss
            progress.step += 1
            # reading a number from a GPU waits for it
            on_cpu = self.accelerator.device.type == "cpu"
            seen = on_cpu or progress.step == len(plan) or progress.step % 32 == 0
            for callback in self.callbacks:
                callback.on_step_end()
            if self.pace.is_due(self._steps_done):
                self._look_at_clock()
            last = progress.step == len(plan) or self._steps_done >= self.pace.total
            if seen or last:
                self._check_loss(totals)
            may_stop = not last and settings.sampling != "history"  # whose steps depend on those before them
            stop = may_stop and (seen and bool(asked > 0) if several else interrupted.is_set())
            if may_stop and (stop or self._checkpoint_is_due()):
                progress.loss = totals.tolist()
                self._check_loss(totals)
                self.save()
            if stop:
                raise interrupted_after(progress.epoch, progress.step, self.checkpoint)
            if last:
                break
        progress.loss = totals.tolist()
        self._end_epoch(progress.step)
        stop = self._any_process(interrupted.is_set())
        if progress.finished or stop or self._checkpoint_is_due():
            self.save()
        if stop and not (progress.finished and self.checkpoint is None):
            raise interrupted_after(progress.epoch, progress.step, self.checkpoint)

    def _step(self, chosen: Tensor) -> Tensor:
        """Take one step. -> the loss of each member."""
        settings, number = self.settings, self._steps_done
        seed = step_seed(self.seed, number)
        if self.accelerator.process_index:  # others drop other channels, and hide other labels
            seed = step_seed(seed, self.accelerator.process_index)
        seed_generators(seed, self.accelerator.device)
        batch = self.batches.make(chosen, torch.Generator().manual_seed(seed))
        factor = lr_factor(settings.schedule, settings.warmup, number, self.pace.total)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * factor
        loss = self.compute_gradients(batch)
        self.optimizer.step()
        self.weights.update_ema()
        return loss

    def _compute_gradients(self, batch: Batch) -> Tensor:
        """Leave the gradients of a batch in the parameters. -> the loss of each member"""
        settings = self.settings
        with self.accelerator.autocast() if settings.precision == "bf16" else nullcontext():
            loss: Tensor = self.objective(self.model(batch.graph, batch.chunk), batch)
        self.optimizer.zero_grad()
        loss.sum().backward()  # type: ignore[no-untyped-call]
        self.gradients.average()
        if settings.max_grad_norm is not None:
            clip_gradients(list(self.model.parameters()), settings.max_grad_norm, self.members)
        return loss.detach()

    def _of_all(self, loss: Tensor, asked: Tensor, interrupted: bool) -> tuple[Tensor, Tensor]:
        """The mean loss of all processes, and how often one of them was asked to stop, so far."""
        flag = torch.tensor([float(interrupted)], dtype=torch.float64).to(loss.device)
        every = processes.total(torch.cat([loss.double(), flag]))
        return every[:-1] / self.accelerator.num_processes, asked + every[-1]

    def _end_epoch(self, steps: int) -> None:
        """Validate, update the best weights and the history, and decide whether the training is finished."""
        progress, epoch = self.progress, self.progress.epoch + 1
        if self.pace.can_plan(self._steps_done):
            self._look_at_clock()
        ended = self._steps_done >= self.pace.total
        validate = epoch % self.settings.validate_every == 0 or epoch == self.settings.epochs or ended
        scores = self._validate() if self.evaluator is not None and validate else None
        if scores is not None and self.pace.can_plan(self._steps_done):
            self._look_at_clock()
            ended = self._steps_done >= self.pace.total
        rows, improved = list[Row](), list[int]()
        for member in range(self.members):
            row: Row = {"member": member} if self.members > 1 else {}
            row |= {"epoch": epoch, "loss": progress.loss[member] / steps}
            row["learning_rate"] = float(self.optimizer.param_groups[0]["lr"])
            rows.append(row)
            if scores is None:
                continue
            value, loss = (mean_over_levels(scores[member], name) for name in (self.monitor, "loss"))
            row |= {} if loss is None else {"validation_loss": loss}
            row |= {} if value is None else {f"validation_{self.monitor}": value}
            if value is None or loss is None or self._is_over(member):
                continue
            if self.early_stopping.improves(ValidationScore(value, loss), progress.best[member]):
                progress.best[member], progress.best_epoch[member] = ValidationScore(value, loss), epoch
                improved.append(member)
        if self.evaluator is None:
            improved, progress.best_epoch = list(range(self.members)), [epoch] * self.members
        self.weights.keep_best(improved)
        progress.history += rows
        if self.history_file is not None:
            self.history_file.add(rows)
        best = [None if score is None else score.value for score in progress.best]
        stop = [callback.on_epoch_end(rows, best) for callback in self.callbacks]
        progress.epoch, progress.step, progress.loss = epoch, 0, [0.0] * self.members
        progress.planned_epochs = self.pace.epochs if self.pace.is_cut else None
        finished = self._is_finished() or self._any_process(any(stop))
        progress.out_of_time = ended and not finished
        progress.finished = finished or ended
        if progress.finished:
            self._check_weights()

    def _is_finished(self) -> bool:
        return self.progress.epoch >= self.settings.epochs or all(map(self._is_over, range(self.members)))

    def _is_over(self, member: int) -> bool:
        """Whether early stopping has ended the training of a member."""
        return self.early_stopping.is_over(self.progress.epoch, self.progress.best_epoch[member])

    def _validate(self) -> list[Scores]:
        """Validation scores of each member, computed by the main process."""
        assert self.evaluator is not None
        started = time.monotonic() if self.budget is None else self.budget.now()
        if self.accelerator.num_processes > 1:
            broadcast(list(self.weights.validated.buffers()))  # each process has statistics of its own batches
        found = processes.on_first(self._score)
        if self.budget is not None:
            seconds = self.budget.now() - started
            self.pace.validated(seconds)
            self.budget.measured(seconds * self.rows_per_validated)
        return found

    def _score(self) -> list[Scores]:
        assert self.evaluator is not None
        try:
            return self.evaluator(self.weights.validated)
        except FloatingPointError as error:
            self._check_weights()  # names the parameter
            self._diverged(str(error))

    @property
    def _steps_done(self) -> int:
        """The steps that were taken, also those of epochs before; an epoch that time has cut counts as one."""
        return self.progress.epoch * self.steps + self.progress.step

    def _look_at_clock(self) -> None:
        """Plan the steps that the time allows, as the main process sees it."""
        if self.accelerator.device.type == "cuda":
            torch.cuda.synchronize()
        if self.pace.lacks_validation and self.evaluator is not None:
            self._validate()  # to see how long it takes; the score is of no use yet
            self.model.train()
        epochs, firm = self.pace.epochs, self.pace.is_firm
        self.pace.look(self._steps_done)
        if self.accelerator.num_processes > 1:
            self.pace.total, self.pace.next = broadcast_object_list([self.pace.total, self.pace.next])
        if self.pace.epochs != epochs or (self.pace.is_firm and not firm):
            for callback in self.callbacks:
                callback.on_plan(self.pace.epochs)

    def _plan(self, epoch: int) -> Sequence[Tensor]:
        """The steps of an epoch that this process takes."""
        plan = self.batches.plan(torch.Generator().manual_seed(step_seed(self.seed, -1 - epoch)))
        process, several = self.accelerator.process_index, self.accelerator.num_processes
        return plan if several == 1 else [share_of(chosen, process, several) for chosen in plan]

    def _check_loss(self, totals: Tensor) -> None:
        if not bool(totals.isfinite().all()):
            self._diverged(f"the loss is {float(totals[~totals.isfinite()][0])}")

    def _check_weights(self) -> None:
        """Raise if a weight is not finite: the last step can do that although its loss was finite."""
        name = self.weights.find_not_finite()
        if name is not None:
            self._diverged(f"{name} is not finite")

    def _diverged(self, what: str) -> NoReturn:
        progress = self.progress
        epoch, step = (progress.epoch + 1, progress.step) if progress.step else (progress.epoch, self.steps)
        raise diverged(what, epoch, step, self.checkpoint)

    def _checkpoint_is_due(self) -> bool:
        wait = self.settings.checkpoint_seconds
        return self.checkpoint is not None and time.monotonic() - self.saved_at >= wait

    def _any_process(self, flag: bool) -> bool:
        """Whether a flag is set in any process: all stop at the same step, or they would wait for each other."""
        if self.accelerator.num_processes == 1:
            return flag
        return bool(self.accelerator.reduce(torch.tensor(float(flag), device=self.accelerator.device)) > 0)


def _ratio(every: TaskData, part: TaskData, egos: bool) -> float:
    """How many times as many rows a forward pass over everything has as one for validation."""
    if egos:
        return len(every.parts["node"]) / max(int((part.parts["node"] == PARTS.index("validation")).sum()), 1)
    return (every.graph.num_nodes + every.graph.num_edges) / max(part.graph.num_nodes + part.graph.num_edges, 1)
