"""The objective of a step: the losses of all targets, of soft labels and of links, and the penalty on the weights."""

from __future__ import annotations

from collections.abc import Callable
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
from censnet.training.batch import Batch
from censnet.training.task_data import TaskData


class Objective:
    """Loss of each member in a step.

    Args:
        task_data: targets, class frequencies and soft labels.
        settings: class weights and penalty.
        model: whose weights are penalized.
        total: sums a tensor over all processes that take a step together.
        processes: their number. The mean of the losses of all is that of their samples taken as one batch.
    """

    def __init__(
        self,
        task_data: TaskData,
        settings: TrainingSettings,
        model: Model,
        total: Callable[[Tensor], Tensor] = lambda values: values,
        processes: int = 1,
    ) -> None:
        self.task_data, self.settings, self.model = task_data, settings, model
        self.total, self.processes = total, processes
        if settings.imbalance != "none" and all(target.is_number for target in task_data.targets):
            raise SettingsError(
                f"training.imbalance is {settings.imbalance!r}, expected none: no target here has classes"
            )
        if settings.regression_loss != "squared" and not any(target.is_number for target in task_data.targets):
            raise SettingsError(
                f"training.regression_loss is {settings.regression_loss!r}, expected squared: no target is a number"
            )
        self.class_weight = _class_weights(task_data) if settings.imbalance == "weights" else {}
        self.soft_labels = _SoftLabels.of(task_data)

    def __call__(self, outputs: Outputs, batch: Batch) -> Tensor:
        """(members,)"""
        members = self.task_data.members
        total = torch.zeros(members, device=batch.graph.edges.device)
        for level, values in outputs.by_level.items():
            total = total + self._label_loss(level, values, batch) * self._weight(level, batch)
        if self.soft_labels is not None:
            total = total.index_add(0, self.soft_labels.members, self.soft_labels.loss(outputs, members))
        if outputs.link_inputs is not None and self.model.decoder is not None:
            links = batch.graph, batch.positives, batch.negatives
            total = total + self.model.decoder.loss(outputs.link_inputs, *links)
        if self.settings.lp_penalty:
            size = penalty(self.model.parameters(), self.settings.lp_power, members)
            total = total + self.settings.lp_penalty * size
        return total

    def _weight(self, level: str, batch: Batch) -> Tensor | float:
        """The weight of the mean loss of this process: its number of labels by the mean one."""
        if self.processes == 1:
            return 1.0
        own = label_count(batch.labels[level], batch.weight.get(level)).to(torch.float32)
        every = self.total(own)
        return own * self.processes / torch.where(every > 0, every, 1)

    def _label_loss(self, level: str, outputs: HeadOutputs, batch: Batch) -> Tensor:
        """Loss of one level. Chunked outputs are recomputed in the backward pass, so that no tensor has all."""
        members, labels, weight = self.task_data.members, batch.labels[level], batch.weight.get(level)
        targets, class_weight = self.task_data.of(level), self.class_weight.get(level)
        censoring = batch.censoring.get(level)
        if isinstance(outputs, Tensor):
            chosen = by_head(outputs.index_select(0, batch.rows[level]).float(), members)
            return row_loss(targets, chosen, labels, weight, class_weight, censoring, self.settings.regression_loss)

        def loss_of(chunk: ChunkedOutputs, labels: Tensor, weight: Tensor | None, limits: Tensor | None) -> Tensor:
            values = by_head(chunk.compute().float(), members)
            return row_loss(targets, values, labels, weight, class_weight, limits, self.settings.regression_loss)

        total, count = torch.zeros(members, device=labels.device), label_count(labels, weight)
        start = 0
        for chunk in outputs.select(batch.rows[level]).split():
            rows = slice(start, start + len(chunk))
            some, weights = labels[rows], None if weight is None else weight[rows]
            limits = None if censoring is None else censoring[rows]
            share = label_count(some, weights) / torch.where(count > 0, count, 1)
            total = total + share * checkpoint(loss_of, chunk, some, weights, limits, use_reentrant=False)
            start = rows.stop
        return total


@dataclass(frozen=True, eq=False)
class _SoftLabels:
    """Soft labels of the members that train on them.

    Sample i of member m has the weight w_m conf_i / sum_j conf_j if it has no training label, where conf_i = max_k q_ik
    is the confidence of its soft label.
    """

    target: Target
    members: Tensor
    classes: Tensor  # (n, members, classes)
    weight: Tensor  # (n, members)

    @classmethod
    def of(cls, task_data: TaskData) -> _SoftLabels | None:
        """Those of the training data; None where no member trains on any."""
        soft_labels, member_weight = task_data.soft_labels, task_data.soft_label_weight
        if soft_labels is None or member_weight is None or not bool((member_weight > 0).any()):
            return None
        (target,) = task_data.targets
        members = (member_weight > 0).nonzero().squeeze(1)
        classes = soft_labels[:, members]
        labeled = (task_data.parts[target.level][:, members] == 0) & ~task_data.labels[target.level].isnan()
        confidence = classes.amax(2) * ~labeled
        total = confidence.sum(0).clamp(min=torch.finfo(confidence.dtype).tiny)
        return cls(target, members, classes, member_weight[members] * confidence / total)

    def loss(self, outputs: Outputs, members: int) -> Tensor:
        """The loss of each of these members."""
        values = by_head(dense(outputs.by_level[self.target.level]).float(), members)
        if len(self.members) < members:
            values = values.index_select(1, self.members)
        return soft_label_loss(self.target, values, self.classes, self.weight)


def _class_weights(task_data: TaskData) -> dict[str, list[Tensor | None]]:
    """Class weights of each level, from the training labels."""
    found = {}
    for level, labels in task_data.labels.items():
        training = labels[(task_data.parts[level] == 0).any(1)]
        found[level] = balanced_class_weights(task_data.of(level), training)
    return found
