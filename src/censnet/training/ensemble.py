"""Several members: trained as one batched model where that is faster, else one after the other, and then averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

from censnet.nn.chunked import ChunkedOutputs, CombinedOutputs, RowOutputs, dense
from censnet.nn.ensemble import split_members, stack_members
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.settings.schema import Settings, TrainingSettings
from censnet.tasks.targets import Target, output_slices
from censnet.training.callbacks import Callback
from censnet.training.history import HistoryFile
from censnet.training.task_data import TaskData, graphs_with
from censnet.training.time_budget import TimeBudget
from censnet.training.trainer import FitResult, fit, restore_best

# Values in one activation up to which members are batched. On a CPU this saves the cost of starting each operation and
# nothing else: on two cores a batched step took 0.3 to 0.6 of the time of separate ones at 7,000 values a member
# (Karate), 0.8 at 128,000, and 0.9 to 1.2 on Cora, at 256,000 and above; besides, members that have stopped early are
# still computed. A GPU is far from full.
BATCHED_ON_CPU = 2**17  # of each member
BATCHED_ON_GPU = 2**30  # of all members

MakeModel = Callable[[int], Model]  # number of a member -> its initialized model


@dataclass(frozen=True)
class TrainingFiles:
    """Files of an unfinished training.

    Args:
        checkpoints: the folder of the checkpoints, one for a batched model or one for each member.
        history: the file that each epoch is written to.
        resume: whether to continue from the checkpoints that exist.
        prefix: of the names of the checkpoints, which distinguishes rounds and recipes.
        extend: whether trainings that a time budget has ended go on.
    """

    checkpoints: Path
    history: HistoryFile | None = None
    resume: bool = False
    prefix: str = ""
    extend: bool = False

    def with_prefix(self, prefix: str) -> TrainingFiles:
        """The same with a longer prefix."""
        return replace(self, prefix=self.prefix + prefix)

    @property
    def batched(self) -> Path:
        """Checkpoint of a batched model."""
        return self.checkpoints / f"{self.prefix}members.safetensors"

    def member(self, number: int) -> Path:
        """Checkpoint of one member."""
        return self.checkpoints / f"{self.prefix}member-{number}.safetensors"

    def was_batched(self, otherwise: bool) -> bool:
        """Whether the training was begun as a batched one, which may have been on another kind of device."""
        if not self.resume:
            return otherwise
        if any(self.checkpoints.glob(f"{self.prefix}*members.safetensors")):
            return True
        return otherwise and not any(self.checkpoints.glob(f"{self.prefix}*member-*.safetensors"))


def fit_members(
    make_model: MakeModel,
    task_data: TaskData,
    settings: TrainingSettings,
    seeds: Sequence[int],
    *,
    batched: bool,
    accelerator: Accelerator,
    files: TrainingFiles | None = None,
    callbacks: Sequence[Callback] = (),
    budget: TimeBudget | None = None,
) -> list[tuple[Model, FitResult]]:
    """Train a member from each seed.

    Args:
        make_model: makes the model of a member.
        task_data: the data, with an entry for each member.
        settings: of the training.
        seeds: of dropout and batches; a batched model has the first.
        batched: whether the members are trained as one batched model.
        accelerator, callbacks: as in `fit`.
        files: where checkpoints and the history are written.
        budget: the time of all members; they share it.
    """

    def fit_one(model: Model, data: TaskData, seed: int, checkpoint: Path | None, left: int = 1) -> FitResult:
        found = TrainingFiles(Path()) if files is None else files
        return fit(
            model, data, settings, seed, accelerator=accelerator, checkpoint=checkpoint, resume=found.resume,
            callbacks=callbacks, history_file=found.history, extend=found.extend,
            budget=None if budget is None else budget.share(left),
        )  # fmt: skip

    if batched:
        many = stack_members([make_model(number) for number in range(len(seeds))])
        result = fit_one(many, task_data, seeds[0], None if files is None else files.batched)
        return list(zip(split_members(many.cpu()), split_result(result), strict=True))
    found = []
    for number, seed in enumerate(seeds):
        model = make_model(number)
        checkpoint = None if files is None else files.member(number)
        result = fit_one(model, task_data.member(number), seed, checkpoint, len(seeds) - number)
        found.append((model.cpu(), result))
    return found


def restore_members(
    make_model: MakeModel,
    members: int,
    task_data: TaskData,
    settings: TrainingSettings,
    files: TrainingFiles,
    accelerator: Accelerator,
) -> dict[int, tuple[Model, FitResult]]:
    """The members of an unfinished training that have completed an epoch, by their numbers, with their best weights."""
    found = dict[int, tuple[Model, FitResult]]()
    if files.batched.exists():
        many = stack_members([make_model(number) for number in range(members)])
        result = restore_best(many, task_data, settings, files.batched, accelerator)
        found = dict(enumerate(zip(split_members(many.cpu()), split_result(result), strict=True)))
    else:
        for number in range(members):
            checkpoint = files.member(number)
            if checkpoint.exists():
                model = make_model(number)
                result = restore_best(model, task_data.member(number), settings, checkpoint, accelerator)
                found[number] = model.cpu(), result
    return {number: (model, result) for number, (model, result) in found.items() if result.best_epoch[0] > 0}


def split_result(result: FitResult) -> list[FitResult]:
    """The result of each member of a batched model."""
    found = []
    for member, (best, epoch) in enumerate(zip(result.best, result.best_epoch, strict=True)):
        rows = [
            {name: value for name, value in row.items() if name != "member"}
            for row in result.history
            if row.get("member", 0) == member  # a single member has no number
        ]
        found.append(replace(result, history=rows, best=[best], best_epoch=[epoch]))
    return found


def can_batch_members(task_data: TaskData, settings: Settings, members: int, device: torch.device) -> bool:
    """Whether to train members as one batched model: on one small graph, or on the same batches of small graphs."""
    graph, training = task_data.graph, settings.training
    if task_data.links is not None or settings.model.ego_marks or settings.model.causal:
        return False
    if settings.model.known_labels:  # hidden labels would be those of all members
        return False
    if isinstance(graph, Graph):
        rows: float = graph.num_nodes + graph.num_edges
        if training.sampling in ("neighbors", "proportional") or training.imbalance == "sampling":
            return False
    else:
        size = training.batch_size_for(len(graphs_with(graph, task_data.parts, 0)))
        rows = (len(graph.nodes) + len(graph.edges)) / max(len(graph), 1) * size
        if any(bool((part != part[:, :1]).any()) for part in task_data.parts.values()):
            return False
    values = rows * settings.model.hidden
    return values * members <= BATCHED_ON_GPU and (device.type != "cpu" or values <= BATCHED_ON_CPU)


def combine(targets: Sequence[Target], members: Sequence[RowOutputs]) -> RowOutputs:
    """Average the outputs of the members of an ensemble (see `average`), in chunks where theirs are."""
    chunked = [outputs for outputs in members if isinstance(outputs, ChunkedOutputs)]
    if len(chunked) == len(members):
        return CombinedOutputs(chunked, lambda outputs: average(targets, outputs))
    return average(targets, torch.stack([dense(outputs) for outputs in members]))


def average(targets: Sequence[Target], outputs: Tensor) -> Tensor:
    """Average the outputs of M members: the logit of the mean probability, the mean number. (M, n, w) -> (n, w)."""
    if len(outputs) == 1:
        return outputs[0]
    found = []
    for target, part in zip(targets, output_slices(targets), strict=True):
        x = outputs[..., part].double()
        if target.kind == "binary":
            x = x.sigmoid().mean(0).logit(eps=1e-12)
        elif target.kind == "multiclass":
            x = x.softmax(2).mean(0).clamp(min=1e-30).log()
        else:
            x = x.mean(0)
        found.append(x.float())
    return torch.cat(found, dim=1)
