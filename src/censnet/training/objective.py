"""What a step makes small: the losses of all targets, of guessed classes and of the links, and the penalty."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from censnet.errors import SettingsError
from censnet.nn.chunked import ChunkedOutputs, HeadOutputs, dense
from censnet.nn.model import Model, Outputs
from censnet.ops.normalization import by_head
from censnet.settings.schema import TrainingSettings
from censnet.tasks.losses import balanced_class_weights, label_count, penalty, row_loss, soft_label_loss
from censnet.tasks.targets import Target
from censnet.training.batches import Batch
from censnet.training.task_data import TaskData


class Objective:
    """The loss of each member in a step.

    Args:
        lesson: what is learnt from.
        settings: class weights and penalty.
        learner: whose weights are penalised.
    """

    def __init__(self, task_data: TaskData, settings: TrainingSettings, model: Model) -> None:
        self.task_data, self.settings, self.model = task_data, settings, model
        if settings.imbalance != "none" and all(target.kind == "regression" for target in task_data.targets):
            raise SettingsError(
                f"training.imbalance is {settings.imbalance!r}, expected none: no target here has classes"
            )
        self.class_weight = _class_weights(task_data) if settings.imbalance == "weights" else {}
        self.soft_labels = _trusted(task_data)

    def __call__(self, outputs: Outputs, batch: Batch) -> Tensor:
        """(members,)"""
        members = self.task_data.members
        total = torch.zeros(members, device=batch.graph.edges.device)
        for level, answers in outputs.by_level.items():
            total = total + self._of_rows(level, answers, batch)
        if self.soft_labels is not None:
            total = total.index_add(0, self.soft_labels.members, self.soft_labels.loss(outputs, members))
        if outputs.link_inputs is not None and self.model.decoder is not None:
            total = total + self.model.decoder.loss(outputs.link_inputs, batch.graph, batch.links, batch.others)
        if self.settings.lp_penalty:
            size = penalty(self.model.parameters(), self.settings.lp_power, members)
            total = total + self.settings.lp_penalty * size
        return total

    def _of_rows(self, level: str, answers: HeadOutputs, batch: Batch) -> Tensor:
        """The loss of one level. Outputs in chunks are computed twice, so that no gradient needs those of all rows."""
        members, labels, weight = self.task_data.members, batch.labels[level], batch.weight.get(level)
        targets, class_weight = self.task_data.of(level), self.class_weight.get(level)
        censoring = batch.censoring.get(level)
        if isinstance(answers, Tensor):
            chosen = by_head(answers.index_select(0, batch.rows[level]).float(), members)
            return row_loss(targets, chosen, labels, weight, class_weight, censoring)

        def loss_of(chunk: ChunkedOutputs, labels: Tensor, weight: Tensor | None, limits: Tensor | None) -> Tensor:
            outputs = by_head(chunk.compute().float(), members)
            return row_loss(targets, outputs, labels, weight, class_weight, limits)

        total, count = torch.zeros(members, device=labels.device), label_count(labels, weight)
        start = 0
        for chunk in answers.select(batch.rows[level]).split():
            rows = slice(start, start + len(chunk))
            some, weights = labels[rows], None if weight is None else weight[rows]
            limits = None if censoring is None else censoring[rows]
            share = label_count(some, weights) / torch.where(count > 0, count, 1)
            total = total + share * checkpoint(loss_of, chunk, some, weights, limits, use_reentrant=False)
            start = rows.stop
        return total


@dataclass(frozen=True, eq=False)
class _Guesses:
    """What the members that trust guesses learn from them."""

    target: Target
    members: Tensor  # those that do
    classes: Tensor  # (n, those, classes)
    weight: Tensor  # (n, those)

    def loss(self, outputs: Outputs, members: int) -> Tensor:
        """Of each member that trusts, from the answers of all."""
        answers = by_head(dense(outputs.by_level[self.target.level]).float(), members)
        if len(self.members) < members:
            answers = answers.index_select(1, self.members)
        return soft_label_loss(self.target, answers, self.classes, self.weight)


def _trusted(task_data: TaskData) -> _Guesses | None:
    """The guesses that count: trust_m conf_i / sum_j conf_j for a row that member m has no label of to learn from.

    A guess is as sure as its likeliest class: conf_i = max_k q_ik.
    """
    if (
        task_data.soft_labels is None
        or task_data.soft_label_weight is None
        or not bool((task_data.soft_label_weight > 0).any())
    ):
        return None
    (target,) = task_data.targets
    members = (task_data.soft_label_weight > 0).nonzero().squeeze(1)
    classes = task_data.soft_labels[:, members]
    taught = (task_data.parts[target.level][:, members] == 0) & ~task_data.labels[target.level].isnan()
    sure = classes.amax(2) * ~taught
    weight = task_data.soft_label_weight[members] * sure / sure.sum(0).clamp(min=torch.finfo(sure.dtype).tiny)
    return _Guesses(target, members, classes, weight)


def _class_weights(task_data: TaskData) -> dict[str, list[Tensor | None]]:
    """The weights of the classes of each level, from training rows."""
    found = {}
    for level, labels in task_data.labels.items():
        training = labels[(task_data.parts[level] == 0).any(1)]
        found[level] = balanced_class_weights(task_data.of(level), training)
    return found
