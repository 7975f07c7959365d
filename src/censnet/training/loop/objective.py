"""What a step makes small: the losses of all targets, that of the links, and the penalty."""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.tasks.losses import balance, penalty, row_loss
from censnet.training.config import SettingsError, TrainingSettings
from censnet.training.lesson import Lesson
from censnet.training.loop.batches import Batch
from censnet.training.loop.learner import Learner, Outputs


class Objective:
    """The loss of each member in a step.

    Args:
        lesson: what is learnt from.
        settings: class weights and penalty.
        learner: whose weights are penalised.
    """

    def __init__(self, lesson: Lesson, settings: TrainingSettings, learner: Learner) -> None:
        self.lesson, self.settings, self.learner = lesson, settings, learner
        if settings.imbalance != "none" and all(target.kind == "number" for target in lesson.targets):
            raise SettingsError(
                f"training.imbalance is {settings.imbalance!r}, expected none: no target here has classes"
            )
        self.class_weight = _class_weights(lesson) if settings.imbalance == "weights" else {}

    def __call__(self, outputs: Outputs, batch: Batch) -> Tensor:
        """(members,)"""
        members = self.lesson.members
        total = torch.zeros(members, device=batch.graph.edges.device)
        for level, answers in outputs.rows.items():
            answers = answers.index_select(0, batch.rows[level]).float()
            answers = answers.view(len(answers), members, -1)
            labels, weight = batch.labels[level], batch.weight.get(level)
            total = total + row_loss(self.lesson.of(level), answers, labels, weight, self.class_weight.get(level))
        if outputs.latent is not None:
            total = total + self.learner.link_loss(outputs.latent, batch.graph)
        if self.settings.penalty:
            size = penalty(self.learner.parameters(), self.settings.penalty_power, members)
            total = total + self.settings.penalty * size
        return total


def _class_weights(lesson: Lesson) -> dict[str, list[Tensor | None]]:
    """The weights of the classes of each level, from training rows."""
    found = {}
    for level, labels in lesson.labels.items():
        training = labels[(lesson.parts[level] == 0).any(1)]
        found[level] = balance(lesson.of(level), training)
    return found
