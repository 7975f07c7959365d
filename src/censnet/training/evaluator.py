"""How good a network is on one part of its rows, for every member."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.data.splits.split import PARTS
from censnet.errors import SettingsError
from censnet.nn.chunked import ChunkedOutputs, CombinedOutputs, LazyOutputs, RowOutputs, dense
from censnet.nn.decoder import LinkInputs
from censnet.nn.model import Model
from censnet.ops.normalization import by_head
from censnet.tasks.losses import label_count, row_loss
from censnet.tasks.metrics import (
    METRICS,
    MONITORS,
    condense,
    condensed_width,
    higher_is_better,
    score,
    score_condensed,
    score_links,
)
from censnet.tasks.targets import Target, output_slices
from censnet.training.inference import infer
from censnet.training.task_data import TaskData

logger = logging.getLogger("censnet")

Scores = dict[str, dict[str, float]]  # level -> metric -> value


class Evaluator:
    """Scores of one part.

    Args:
        lesson: with the part's rows.
        part: train, validation or test.
        quick: the metrics to compute; None is all.
        narrow: whether, of many graphs, to look at those of the part alone.
    """

    def __init__(self, task_data: TaskData, part: str, quick: set[str] | None = None, narrow: bool = True) -> None:
        self.task_data, self.part, self.quick = task_data.only(part) if narrow else task_data, part, quick
        self.rows: dict[str, Tensor] = {}  # level -> those of the part for any member
        self.own: dict[str, list[Tensor]] = {}  # level -> of those, each member's
        self.labels: dict[str, Tensor] = {}
        self.censoring: dict[str, Tensor] = {}
        for level, codes in self.task_data.parts.items():
            there = codes == PARTS.index(part)
            rows = self.rows[level] = there.any(1).nonzero().squeeze(1)
            self.own[level] = [mine.nonzero().squeeze(1) for mine in there[rows].cpu().unbind(1)]
            self.labels[level] = self.task_data.labels[level][rows].cpu()
            if level in self.task_data.censoring:
                self.censoring[level] = self.task_data.censoring[level][rows].cpu()

    def __call__(self, model: Model) -> list[Scores]:
        """For each member, its scores by level. There are none of answers that are not numbers."""
        outputs = infer(model, self.task_data.graph)
        links = {} if outputs.link_inputs is None else {"link": outputs.link_inputs.embedding}
        for level, answers in {**outputs.by_level, **links}.items():
            if not bool((answers if isinstance(answers, Tensor) else answers.inputs).isfinite().all()):
                raise FloatingPointError(f"the answer for a {level} is not finite")
        found = self.of(outputs.by_level)
        if outputs.link_inputs is not None and self.part != "train":
            found[0]["link"] = self._links(model, outputs.link_inputs)
        return found

    def of(self, rows: Mapping[str, RowOutputs]) -> list[Scores]:
        """The scores of answers that are there, for each member by level."""
        members = self.task_data.members
        found: list[Scores] = [{} for _ in range(members)]
        for level, answers in rows.items():
            targets = self.task_data.of(level)
            if not isinstance(answers, Tensor):
                for member, scores in self._of_chunks(level, answers):
                    found[member][level] = scores
                continue
            answers = answers.index_select(0, self.rows[level]).float().cpu()  # at once: of each member, a GPU is idle
            answers = by_head(answers, members)
            for member, mine in enumerate(self.own[level]):
                if len(mine) == 0:
                    continue
                answer, labels = answers[:, member].index_select(0, mine), self.labels[level][mine]
                censoring = self.censoring[level][mine] if level in self.censoring else None
                limits = None if censoring is None else censoring.numpy()
                scores = score(targets, answer.numpy(), labels.numpy(), self.quick, limits)
                scores["loss"] = float(row_loss(targets, answer.unsqueeze(1), labels, censoring=censoring))
                found[member][level] = scores
        return found

    def _of_chunks(self, level: str, answers: LazyOutputs) -> Iterator[tuple[int, dict[str, float]]]:
        """For each member with rows in this part, the scores of answers that are computed some rows at a time."""
        targets, members, own = self.task_data.of(level), self.task_data.members, self.own[level]
        labels, censoring, start = self.labels[level], self.censoring.get(level), 0
        mine = torch.zeros(len(labels), members)
        for member, rows in enumerate(own):
            mine[rows, member] = 1
        loss, condensed = torch.zeros(members), []
        for chunk in answers.select(self.rows[level]).split():
            part = slice(start, start + len(chunk))
            some, counts = labels[part], mine[part]
            answer = by_head(chunk.compute().float().cpu(), members)
            limits = None if censoring is None else censoring[part]
            loss += row_loss(targets, answer, some, counts, censoring=limits) * label_count(some, counts)
            of_member = (condense(targets, x.numpy(), some.numpy()) for x in answer.unbind(1))
            condensed.append(np.stack(list(of_member), axis=1))
            start = part.stop
        if not condensed:
            return
        every, loss = np.concatenate(condensed), loss / label_count(labels, mine).clamp(min=1)
        for member, rows in enumerate(own):
            if len(rows):
                sides = None if censoring is None else censoring[rows].numpy()
                scores = score_condensed(targets, every[rows, member], labels[rows].numpy(), self.quick, sides)
                yield member, {**scores, "loss": float(loss[member])}

    def defines(self, metric: str) -> bool:
        """Whether the labels define a metric for every member: there is no AUC of one class."""
        if self.task_data.links is not None and metric in (*METRICS["link"], "loss"):
            return True
        for member in range(self.task_data.members):
            scores: Scores = {}
            for level, own in self.own.items():
                targets, labels = self.task_data.of(level), self.labels[level][own[member]].numpy()
                sides = self.censoring[level][own[member]].numpy() if level in self.censoring else None
                zeros = np.zeros((len(labels), sum(map(condensed_width, targets))))
                if len(labels):
                    scores[level] = {**score_condensed(targets, zeros, labels, {metric}, sides), "loss": 0.0}
            if overall(scores, metric) is None:
                return False
        return True

    def _links(self, model: Model, inputs: LinkInputs) -> dict[str, float]:
        """The scores of hidden links, and the cross entropy of telling them from as many pairs that are none."""
        links, decoder = self.task_data.links, model.decoder
        assert links is not None
        assert decoder is not None
        joined, apart = (
            (links.validation_links, links.validation_negatives)
            if self.part == "validation"
            else (links.test_links, links.test_negatives)
        )
        with torch.no_grad():
            linked, not_linked = (decoder.score(inputs, pairs).float().cpu() for pairs in (joined, apart))
        loss = torch.cat([F.softplus(-linked), F.softplus(not_linked)]).mean()
        return {**score_links(linked.numpy(), not_linked.numpy()), "loss": float(loss)}


def choose_monitor(asked: str, task_data: TaskData, judge: Evaluator | None) -> str:
    """The validation metric that decides which epoch is kept; the loss where the labels do not define it."""
    kinds = {target.kind for target in task_data.targets} | ({"link"} if task_data.links is not None else set())
    known = {"loss", *(metric for kind in kinds for metric in METRICS[kind])}
    if asked == "auto":
        asked = MONITORS[kinds.pop()] if len(kinds) == 1 else "loss"
    if asked not in known:
        raise SettingsError(f"training.monitor is {asked!r}, expected auto or one of {', '.join(sorted(known))}")
    if judge is None or judge.defines(asked):
        return asked
    why = "limits" if asked in METRICS["regression"] else "one class"
    logger.warning("the validation rows do not define %s (%s alone?): the loss decides", asked, why)
    return "loss"


def overall(scores: Scores, metric: str) -> float | None:
    """The mean of a metric over the levels that have it; None if none has."""
    found = [values[metric] for values in scores.values() if np.isfinite(values.get(metric, np.nan))]
    return float(np.mean(found)) if found else None


class ValidationScore(NamedTuple):
    """How good an epoch is: the metric that decides, and the validation loss between epochs that it finds equal.

    On few validation rows an AUC is soon 1, by luck; the loss goes on telling the epochs apart.
    """

    value: float
    loss: float

    def is_better(self, metric: str, old: ValidationScore | None) -> bool:
        """Whether it is an improvement.

        >>> best = ValidationScore(1.0, 0.6)
        >>> ValidationScore(1.0, 0.3).is_better("auc", best), ValidationScore(0.9, 0.3).is_better("auc", best)
        (True, False)
        """
        if old is None or self.value == old.value:
            return old is None or self.loss < old.loss
        return self.value > old.value if higher_is_better(metric) else self.value < old.value


def score_rows(
    targets: Sequence[Target], outputs: RowOutputs, labels: Tensor, rows: Tensor, censoring: Tensor | None = None
) -> dict[str, float]:
    """The metrics of some rows, whose outputs may be in chunks."""
    chosen, limits = labels[rows].numpy(), None if censoring is None else censoring[rows].numpy()
    if isinstance(outputs, Tensor):
        return score(targets, outputs[rows].numpy(), chosen, censoring=limits)
    parts, start = [], 0
    for chunk in outputs.select(rows).split():
        parts.append(condense(targets, chunk.compute().float().cpu().numpy(), chosen[start : start + len(chunk)]))
        start += len(chunk)
    return score_condensed(targets, np.concatenate(parts), chosen, censoring=limits)


def combine(targets: Sequence[Target], members: Sequence[RowOutputs]) -> RowOutputs:
    """One answer of several networks (see `average`), in chunks where theirs are."""
    chunked = [outputs for outputs in members if isinstance(outputs, ChunkedOutputs)]
    if len(chunked) == len(members):
        return CombinedOutputs(chunked, lambda outputs: average(targets, outputs))
    return average(targets, torch.stack([dense(outputs) for outputs in members]))


def average(targets: Sequence[Target], outputs: Tensor) -> Tensor:
    """One answer of several members: the logit of the mean probability, the mean number. (M, n, w) -> (n, w)."""
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
