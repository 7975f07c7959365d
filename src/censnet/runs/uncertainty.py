"""Uncertainty of a run: `calibration.json`, fitted on its validation rows, and the scores of its intervals and sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from censnet.data.splits.split_file import PARTS
from censnet.errors import ArgumentError, RunError
from censnet.levels import COLUMN_LEVELS, Level
from censnet.nn.chunked import CombinedOutputs, HeadOutputs, RowOutputs, chunk_rows, dense
from censnet.nn.model import Outputs
from censnet.ops.arrays import Array, BoolArray
from censnet.option_names import name_option
from censnet.runs.links import LINK, HeldOutPairs, link_metrics
from censnet.runs.novelty import LevelNovelty
from censnet.tasks.calibration import MAX_ROWS, ClassCalibration
from censnet.tasks.conformal import Conformal
from censnet.tasks.decision import Rule
from censnet.tasks.predictions import summarize
from censnet.tasks.targets import Target, output_slices
from censnet.tasks.uncertainty import Rows, TargetUncertainty, calibrate
from censnet.text import count
from censnet.training.ensemble import average, combine
from censnet.training.task_data import TaskData


class Uncertainty(BaseModel):
    """The content of `calibration.json`.

    Args:
        format: of the file.
        levels: level -> of each of its targets.
        link: the calibration of link probabilities, among as many pairs with a link as without.
        link_conformal: the scores of held-out links and of pairs without one, for sets.
        novelty: level -> what training rows are like.
        label_share: the share of rows whose known labels validation rows were shown.
        unlabeled: the same for rows that are shown no known labels, of a model that reads them. Without them it embeds
            rows elsewhere and answers differently, so one calibration does not serve both.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = 2
    levels: dict[Level, list[TargetUncertainty]] = Field(default_factory=dict)
    link: ClassCalibration | None = None
    link_conformal: Conformal | None = None
    novelty: dict[Level, LevelNovelty] = Field(default_factory=dict)
    label_share: float = Field(0.0, ge=0, le=1)
    unlabeled: Uncertainty | None = None

    def where_known(self, share: float) -> Uncertainty:
        """That of the validation rows which were shown about as many known labels: those of training, or none.

        Args:
            share: of the rows, how many have a label that is shown.
        """
        return self if self.unlabeled is None or share > self.label_share / 2 else self.unlabeled

    def watch(self, level: str, embedded: Tensor) -> Tensor:
        """The distance of embedded rows from training rows. (n, channels) -> (n, 1)"""
        found = self.novelty.get(Level(level))
        if found is None or found.threshold is None:
            return embedded.new_zeros(len(embedded), 1)
        return found.distance(embedded).unsqueeze(1)

    def of(self, level: str, targets: Sequence[Target]) -> list[TargetUncertainty]:
        """Of the targets of a level; empty ones where nothing was fitted."""
        return self.levels.get(Level(level)) or [TargetUncertainty()] * len(targets)

    @classmethod
    def fit(
        cls, task_data: TaskData, outputs: Sequence[Outputs], held_out: Sequence[HeldOutPairs] | None = None
    ) -> Uncertainty:
        """From the validation rows of a training.

        Args:
            task_data: labels and split.
            outputs: of each member for `task_data.graph`.
            held_out: the probabilities of held-out links, where links are predicted.
        """
        levels = {}
        for level in task_data.labels:
            targets = task_data.of(level)
            rows = (task_data.parts[level][:, 0] == PARTS.index("validation")).nonzero().squeeze(1)
            if len(rows) > MAX_ROWS:
                rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:MAX_ROWS]].sort()[0]
            labels, exact = task_data.labels[level][rows], exact_labels(task_data, level)[rows]
            members, raw = select_rows(outputs, level, rows)
            combined, found = average(targets, members), []
            for number, (target, part) in enumerate(zip(targets, output_slices(targets), strict=True)):
                summary = summarize(target, members[..., part], None if raw is None else raw[..., part])
                arrays = {name: values.numpy() for name, values in summary.items()}
                y, known = labels[:, number].numpy(), exact[:, number].numpy()
                found.append(TargetUncertainty.fit(target, combined[:, part].numpy(), arrays, y, known))
            levels[Level(level)] = found
        if held_out is None:
            return cls(levels=levels)
        link, link_conformal = _fit_links(held_out)
        return cls(levels=levels, link=link, link_conformal=link_conformal)

    def combine(self, level: str, targets: Sequence[Target], members: Sequence[RowOutputs]) -> RowOutputs:
        """The calibrated outputs of the members of an ensemble, averaged; in chunks where theirs are."""
        own, found = self.of(level, targets), combine(targets, members)
        if isinstance(found, CombinedOutputs):
            return replace(found, combine=lambda outputs: calibrate(targets, own, average(targets, outputs)))
        return calibrate(targets, own, dense(found))

    def calibrate_links(self, probability: Tensor) -> Tensor:
        """Calibrated probabilities of links. (n,)"""
        if self.link is None or self.link.method == "none":
            return probability
        logits = probability.double().logit(eps=1e-12).unsqueeze(1)
        return self.link(logits).squeeze(1).sigmoid().to(probability.dtype)

    def link_sets(self, probability: Tensor, coverage: float) -> BoolArray:
        """Whether `no link` and `link` are in the set of each pair, by probabilities before they are calibrated. (n, 2)

        Each has its own limit, so the coverage holds for links and for pairs without one, however rare links are.
        """
        if self.link_conformal is None:
            return np.ones((len(probability), 2), bool)
        return self.link_conformal.sets(_link_summary(probability), coverage)

    def score_links(self, held_out: Sequence[HeldOutPairs], coverage: float) -> dict[str, dict[str, float]]:
        """Part -> the metrics of held-out links against pairs without one, with the coverage and size of sets."""
        found = link_metrics(held_out, self.calibrate_links)
        if self.link_conformal is None or self.link_conformal.limit < coverage:
            return found
        for part in found:
            mine = [each for each in held_out if each.part == part and len(each.probability)]
            sets = [self.link_sets(each.probability, coverage) for each in mine]
            if sets:
                inside = np.concatenate([each[:, int(one.linked)] for each, one in zip(sets, mine, strict=True)])
                found[part]["coverage"] = float(inside.mean())
                found[part]["set_size"] = float(np.concatenate(sets).sum(1).mean())
        return found

    def score(
        self,
        level: str,
        targets: Sequence[Target],
        outputs: Sequence[Outputs],
        labels: Tensor,
        exact: Tensor,
        rows: Tensor,
        coverage: float,
    ) -> dict[str, float]:
        """Coverage and mean width of intervals and sets, and metrics of decisions: of each column, and their mean.

        Args:
            level, targets: of the labels.
            outputs: of each member.
            labels, exact: of all rows of the level. (n, targets)
            rows: that are scored.
            coverage: that is promised.
        """
        found, means = dict[str, float](), dict[str, list[float]]()
        sure = self.of(level, targets)
        if level not in self.levels or not len(rows):
            return {}
        width = sum(target.width for target in targets)
        for number, (target, part, own) in enumerate(zip(targets, output_slices(targets), sure, strict=True)):
            some = rows[exact[rows, number]]
            if target.is_wide or not len(some):
                continue
            examined = list[Rows]()
            for few in torch.split(some, chunk_rows(width)):
                members, raw = select_rows(outputs, level, few)
                summary = summarize(target, members[..., part], None if raw is None else raw[..., part])
                examined.append(own.examine(target, summary, labels[few, number], coverage))
            every = {name: torch.cat([each[name] for each in examined]) for name in examined[0]}
            for name, value in own.score(target, every, labels[some, number]):
                found[f"{target.column}/{name}"] = value
                if not name.startswith("confusion"):
                    means.setdefault(name, []).append(value)
        return found | {name: sum(values) / len(values) for name, values in means.items()}

    def decide(self, targets: Mapping[str, Sequence[Target]], rule: Rule | None) -> Uncertainty:
        """The same with the threshold that a rule implies for each target of two classes; without one, 0.5."""
        if not any(target.kind == "binary" for mine in targets.values() for target in mine):
            raise ArgumentError(f"a threshold for {rule or 0.5} is asked for, but no target has two classes")
        levels = {
            Level(level): [
                own.decide(target, rule) if target.kind == "binary" else own
                for target, own in zip(mine, self.of(level, mine), strict=True)
            ]
            for level, mine in targets.items()
        }
        unlabeled = None if self.unlabeled is None else self.unlabeled.decide(targets, rule)
        return self.model_copy(update={"levels": levels, "unlabeled": unlabeled})


def exact_labels(task_data: TaskData, level: str) -> Tensor:
    """A mask of the labels of a level that are known, and not by a limit alone. (n, targets)"""
    known = ~task_data.labels[level].isnan()
    return known if level not in task_data.censoring else known & (task_data.censoring[level] == 0)


def select_rows(outputs: Sequence[Outputs], level: str, rows: Tensor) -> tuple[Tensor, Tensor | None]:
    """The outputs of the members for some rows, and those before clipping, if they were clipped. (members, n, width)"""

    def stack(of: Sequence[Mapping[str, HeadOutputs]]) -> Tensor:
        found = [each[level] for each in of]
        some = [x[rows] if isinstance(x, Tensor) else dense(x.select(rows)) for x in found]
        return torch.stack(some).detach().float().cpu()

    clipped = all(level in each.unclipped for each in outputs)
    return stack([each.by_level for each in outputs]), stack([e.unclipped for e in outputs]) if clipped else None


def check_coverage(coverage: float, uncertainty: Uncertainty, level: str, targets: Sequence[Target]) -> None:
    """Raise unless intervals or sets of a coverage can be given for each target of a level."""
    if not 0 < coverage < 1:
        raise ArgumentError(f"{name_option('--coverage')} is {coverage:g}, expected more than 0 and less than 1")
    if level not in COLUMN_LEVELS:
        found = uncertainty.link_conformal
        if found is None or found.limit < coverage:
            pairs = 0 if found is None else max(found.rows)
            raise RunError(
                f"there are {count(pairs, 'held-out validation link')}, expected at least {least_rows(coverage):,} "
                f"for a coverage of {coverage:g}: ask for less, or train with more of them"
            )
    for target, own in zip(targets, uncertainty.of(level, targets), strict=True):
        if target.is_wide:
            raise RunError(f"{target.name} has {len(target.classes):,} classes, expected at most 200 for sets of them")
        rows = 0 if own.conformal is None else sum(own.conformal.rows)
        if own.conformal is None or own.conformal.limit < coverage:
            raise RunError(
                f"{target.name} has labels in {count(rows, 'validation row')}, expected at least "
                f"{least_rows(coverage):,} for a coverage of {coverage:g}: ask for less, or train with more of them"
            )


def least_rows(coverage: float) -> int:
    """The number of validation rows that can promise a coverage: n with n / (n + 1) at least as large."""
    return next(n for n in range(1, 10**9) if n / (n + 1) >= coverage - 1e-12)


def _fit_links(held_out: Sequence[HeldOutPairs]) -> tuple[ClassCalibration, Conformal | None]:
    mine = [each for each in held_out if each.part == "validation"]
    probability = torch.cat([each.probability for each in mine])
    logits = probability.double().logit(eps=1e-12).unsqueeze(1)
    labels = torch.cat([torch.full_like(each.probability, float(each.linked)) for each in mine]).numpy()
    known = np.ones(len(labels), bool)
    return ClassCalibration.fit(logits.numpy(), labels), Conformal.fit(LINK, _link_summary(probability), labels, known)


def _link_summary(probability: Tensor) -> dict[str, Array]:
    p = probability.double().numpy()
    return {"mean": np.stack([1 - p, p], axis=1)}
