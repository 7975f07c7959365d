"""The training loop: the same for one big graph, for batches of small ones, and for parts of a big one."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor, nn
from torch.optim import Optimizer

from censnet.ops.graph import Graph
from censnet.tasks.losses import balance, penalty, row_loss
from censnet.training.batches import Batch, make_batches
from censnet.training.checkpoint import load_tensors, optimizer_tensors, restore_optimizer, save_tensors
from censnet.training.config import SettingsError, TrainingSettings
from censnet.training.judge import Judge, choose_monitor, is_better, overall
from censnet.training.learner import Learner
from censnet.training.lesson import Lesson

logger = logging.getLogger("censnet")

Row = dict[str, float]  # one epoch of one member


class StoppedError(RuntimeError):
    """The training ended before its time; what was reached is in the checkpoint."""


class Listener(Protocol):
    """Who wants to hear how the training goes."""

    def begin(self, epochs: int, done: int, steps: int, monitor: str) -> None:
        """A training of so many epochs, some of them done already, each of so many steps."""

    def step(self) -> None:
        """A step was taken."""

    def epoch(self, rows: Sequence[Row], best: Sequence[float | None]) -> None:
        """An epoch is over: a row for each member, and the best value of the monitor so far."""

    def end(self) -> None:
        """No more epochs."""


@dataclass
class _Progress:
    """Where a training is. All of it is in a checkpoint."""

    epoch: int = 0
    step: int = 0  # in the epoch
    loss: list[float] = field(default_factory=list)  # sum over the steps of the epoch, for each member
    best: list[float | None] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    history: list[Row] = field(default_factory=list)
    finished: bool = False


@dataclass(frozen=True)
class Fitted:
    """What a training reached. The learner has the weights of the best epoch of each member."""

    history: list[Row]
    monitor: str
    best: list[float | None]
    best_epoch: list[int]


def make_accelerator(precision: str = "float32", device: str | None = None) -> Accelerator:
    """Where to compute: the given device, or the best that is there."""
    AcceleratorState._reset_state(reset_partial_state=True)
    cpu = device is not None and torch.device(device).type == "cpu"
    return Accelerator(mixed_precision="bf16" if precision == "bf16" else "no", cpu=cpu)


def fit(
    learner: Learner,
    lesson: Lesson,
    settings: TrainingSettings,
    seed: int = 0,
    *,
    device: str | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
) -> Fitted:
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
    """
    accelerator = make_accelerator(settings.precision, device)
    if (
        accelerator.num_processes > 1
        and isinstance(lesson.graph, Graph)
        and settings.sampling not in ("neighbours", "proportional")
    ):
        raise SettingsError(
            f"{accelerator.num_processes} processes would all do the same work on one whole graph: start one, or set "
            "training.sampling to neighbours"
        )
    lesson = lesson.to(accelerator.device)
    optimizer = make_optimizer(learner, settings)
    model, optimizer = accelerator.prepare(learner, optimizer)
    trainer = _Trainer(accelerator, learner, model, optimizer, lesson, settings, seed, checkpoint, listeners)
    if resume and checkpoint is not None and checkpoint.exists():
        trainer.restore()
    return trainer.run()


class _Trainer:
    def __init__(
        self,
        accelerator: Accelerator,
        learner: Learner,
        model: nn.Module,
        optimizer: Optimizer,
        lesson: Lesson,
        settings: TrainingSettings,
        seed: int,
        checkpoint: Path | None,
        listeners: Sequence[Listener],
    ) -> None:
        self.accelerator, self.learner, self.model, self.optimizer = accelerator, learner, model, optimizer
        self.lesson, self.settings, self.seed = lesson, settings, seed
        self.checkpoint = checkpoint if accelerator.is_main_process else None
        self.source = checkpoint
        self.listeners = listeners if accelerator.is_main_process else ()
        self.members = lesson.members
        self.batches = make_batches(
            lesson, settings, hops=max(1, learner.encoder.word.count("N") + (learner.last is not None))
        )
        self.steps = len(self._plan(0))
        self.monitor = choose_monitor(settings.monitor, lesson)
        self.judge = Judge(lesson, "validation", {self.monitor}) if lesson.has("validation") else None
        self.class_weight = _class_weights(lesson) if settings.imbalance == "weights" else {}
        self.state = _Progress(loss=[0.0] * self.members, best=[None] * self.members, best_epoch=[-1] * self.members)
        self.best = self._weights()
        self.saved_at = time.monotonic()

    def run(self) -> Fitted:
        state, settings = self.state, self.settings
        for listener in self.listeners:
            listener.begin(settings.epochs, state.epoch, self.steps, self.monitor)
        try:
            if self.checkpoint is not None and not self.checkpoint.exists():
                self.save()
            with interruptible() as interrupted:
                while not state.finished:
                    self._epoch(interrupted)
        finally:
            for listener in self.listeners:
                listener.end()
        self._load(self.best)
        return Fitted(state.history, self.monitor, state.best, state.best_epoch)

    def _epoch(self, interrupted: threading.Event) -> None:
        state = self.state
        self.model.train()
        plan = self._plan(state.epoch)
        totals = torch.tensor(state.loss, dtype=torch.float64, device=self.accelerator.device)
        while state.step < len(plan):
            loss = self._step(plan[state.step])
            totals += loss.detach()
            state.step += 1
            last = state.step == len(plan)
            if self.accelerator.device.type == "cpu" or last or state.step % 32 == 0:
                self._check(totals)
            for listener in self.listeners:
                listener.step()
            if not last and (self._due() or interrupted.is_set()):
                state.loss = totals.tolist()
                self._check(totals)
                self.save()
                self._leave(interrupted)
        state.loss = totals.tolist()
        self._close_epoch(len(plan))
        if state.finished or interrupted.is_set() or self._due():
            self.save()
        if not state.finished:
            self._leave(interrupted)

    def _step(self, chosen: Tensor) -> Tensor:
        """One step. -> the loss of each member."""
        state, settings = self.state, self.settings
        number = state.epoch * self.steps + state.step
        seed = step_seed(self.seed, number)
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        batch = self.batches.make(chosen, generator)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * rate_at(settings, number, settings.epochs * self.steps)
        with self.accelerator.autocast():
            loss = self._loss(batch)
        self.optimizer.zero_grad()
        self.accelerator.backward(loss.sum())
        if settings.clip is not None:
            clip_gradients(list(self.learner.parameters()), settings.clip, self.members)
        self.optimizer.step()
        return loss

    def _loss(self, batch: Batch) -> Tensor:
        outputs = self.model(batch.graph)
        total = torch.zeros(self.members, device=self.accelerator.device)
        for level, answers in outputs.rows.items():
            answers = answers.index_select(0, batch.rows[level]).float()
            answers = answers.view(len(answers), self.members, -1)
            total = total + row_loss(
                self.lesson.of(level),
                answers,
                batch.labels[level],
                batch.weight.get(level),
                self.class_weight.get(level),
            )
        if outputs.latent is not None:
            total = total + self.learner.link_loss(outputs.latent, batch.graph)
        if self.settings.penalty:
            total = total + self.settings.penalty * penalty(self.learner.parameters(), self.settings.penalty_power)
        return total

    def _close_epoch(self, steps: int) -> None:
        state = self.state
        validated = self.judge is not None and (
            (state.epoch + 1) % self.settings.validate_every == 0 or state.epoch + 1 == self.settings.epochs
        )
        scores = self.judge(self.learner) if validated and self.judge is not None else None
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
                if (
                    value is not None
                    and not self._is_over(member)
                    and is_better(self.monitor, value, state.best[member])
                ):
                    state.best[member], state.best_epoch[member] = value, state.epoch + 1
                    better.append(member)
            rows.append(row)
        if self.judge is None:
            better, state.best_epoch = list(range(self.members)), [state.epoch + 1] * self.members
        self._keep(better)
        state.history += rows
        for listener in self.listeners:
            listener.epoch(rows, state.best)
        state.epoch, state.step, state.loss = state.epoch + 1, 0, [0.0] * self.members
        over = all(self._is_over(member) for member in range(self.members))
        state.finished = state.epoch >= self.settings.epochs or over

    def _is_over(self, member: int) -> bool:
        """Whether a member has waited for a better epoch long enough."""
        patience, best = self.settings.patience, self.state.best_epoch[member]
        return self.judge is not None and patience is not None and self.state.epoch - max(best, 0) >= patience

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
        if bool(totals.isfinite().all()):
            return
        state = self.state
        raise StoppedError(
            f"the loss is {float(totals[~totals.isfinite()][0])} in epoch {state.epoch + 1}, step {state.step}: "
            "lower training.learning_rate or set training.clip=1"
            + ("" if self.source is None else f" (the last good checkpoint is kept in {self.source.parent})")
        )

    def _due(self) -> bool:
        wait = self.settings.checkpoint_seconds
        return self.checkpoint is not None and time.monotonic() - self.saved_at >= wait

    def _leave(self, interrupted: threading.Event) -> None:
        if interrupted.is_set():
            where = "nothing was saved" if self.source is None else f"saved in {self.source.parent}"
            raise StoppedError(f"stopped in epoch {self.state.epoch + 1}; {where}")

    # -- weights ------------------------------------------------------------------------------------------------------

    def _weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self.learner.state_dict().items()}

    def _keep(self, members: Sequence[int]) -> None:
        """Remember the weights of these members as their best."""
        if not members:
            return
        for name, tensor in self.learner.state_dict().items():
            if self.members == 1 or tensor.dim() == 0:
                self.best[name].copy_(tensor)
            else:
                self.best[name].view(self.members, -1)[members] = tensor.reshape(self.members, -1)[members]

    def _load(self, weights: Mapping[str, Tensor]) -> None:
        self.learner.load_state_dict(weights)

    def save(self) -> None:
        """Write the checkpoint."""
        if self.checkpoint is None:
            return
        parts = {
            "model": self._weights(),
            "best": self.best,
            "optimizer": optimizer_tensors(self.learner, self.optimizer),
        }
        tensors = {f"{part}/{name}": tensor for part, found in parts.items() for name, tensor in found.items()}
        save_tensors(self.checkpoint, tensors, vars(self.state))
        self.saved_at = time.monotonic()

    def restore(self) -> None:
        """Go back to where the checkpoint was written."""
        assert self.source is not None
        tensors, facts = load_tensors(self.source)
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        self.state = _Progress(**facts)
        self._load(parts["model"])
        self.best = {name: tensor.to(self.accelerator.device) for name, tensor in parts["best"].items()}
        restore_optimizer(self.learner, self.optimizer, parts["optimizer"])


def make_optimizer(learner: nn.Module, settings: TrainingSettings) -> Optimizer:
    """Adam or AdamW, with a weight decay of its own for some parameters."""
    groups: dict[float, list[nn.Parameter]] = {}
    known = [name for name, _ in learner.named_parameters()]
    for prefix in settings.weight_decay_of:
        if not any(name.startswith(prefix) for name in known):
            raise SettingsError(
                f"training.weight_decay_of has {prefix!r}, which no parameter begins with: {', '.join(known[:8])}"
            )
    for name, parameter in learner.named_parameters():
        fitting = [prefix for prefix in settings.weight_decay_of if name.startswith(prefix)]
        decay = settings.weight_decay_of[max(fitting, key=len)] if fitting else settings.weight_decay
        groups.setdefault(decay, []).append(parameter)
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    stated = [{"params": parameters, "weight_decay": decay} for decay, parameters in groups.items()]
    return kind(stated, lr=settings.learning_rate, fused=True)


def rate_at(settings: TrainingSettings, step: int, steps: int) -> float:
    """The learning rate at a step, as a share of the one set.

    With a warm-up it first rises, in a line from a 25th. Then it stays, or falls to 0 as a cosine does; "one-cycle" is
    a cosine that ends at a 10,000th.
    """
    warm = settings.warm_up * steps
    if step < warm:
        return 0.04 + 0.96 * (step + 1) / max(warm, 1.0) if warm > 1 else 1.0
    if settings.schedule == "constant":
        return 1.0
    least = 1e-4 if settings.schedule == "one-cycle" else 0.0
    along = (step - warm) / max(steps - warm, 1)
    return least + (1 - least) * 0.5 * (1 + math.cos(math.pi * along))


def step_seed(seed: int, number: int) -> int:
    """A seed for one step, far from those of other steps and trainings (SplitMix64)."""
    mixed = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (mixed ^ (mixed >> 31)) >> 1


def clip_gradients(parameters: Sequence[nn.Parameter], longest: float, members: int = 1) -> None:
    """Shorten the gradient of each member to a length."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    length = torch.stack([gradient.reshape(members, -1).norm(dim=1) for gradient in gradients]).norm(dim=0)
    factor = (longest / (length + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.view(members, -1).mul_(factor.unsqueeze(1).to(gradient.dtype))


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl-C and a request to terminate set an event instead of stopping in the middle of a step."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _class_weights(lesson: Lesson) -> dict[str, list[Tensor | None]]:
    """The weights of the classes of each level, from training rows."""
    found = {}
    for level, labels in lesson.labels.items():
        training = labels[(lesson.parts[level] == 0).any(1)]
        found[level] = balance(lesson.of(level), training)
    return found
