"""Candidates: trainings that differ in gates, pseudo-labels, recipe or inputs, one of which validation selects."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, model_validator

from censnet.errors import SettingsError
from censnet.nn.model import Model
from censnet.selection.pseudo_labels import INVERSE_TEMPERATURES
from censnet.settings.presets import make_settings
from censnet.settings.schema import Settings, TrainingSettings
from censnet.settings.training_settings import Gates, Recipe
from censnet.text import count
from censnet.training.early_stopping import ValidationScore
from censnet.training.trainer import FitResult

logger = logging.getLogger(__name__)


class Candidate(BaseModel):
    """One training of a model, of several that validation selects from.

    Args:
        round: round of self-training, from 1; in later rounds models of the previous one predict the pseudo-labels.
        gates: whether gates and root weights are learned, or frozen at their initial values.
        pseudo_label_weight: weight of the pseudo-labels in the loss; 0 trains on labels alone.
        recipe: the architecture of the preset.
        label_features: whether counts or factors of known labels are inputs.
        descriptors: whether the head reads descriptors of molecules.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    round: int = 1
    gates: Gates = "learned"
    pseudo_label_weight: float = 0.0
    recipe: Recipe = "low_label"
    label_features: bool = False
    descriptors: bool = False


SUPERVISED = Candidate()  # the only candidate where there is nothing to select


@dataclass(frozen=True, eq=False)
class Selection:
    """The model of one member that validation selected, with the candidates it was selected from.

    Args:
        model: the selected model.
        fit_result: the result of its training.
        candidates: all candidates; empty where there was nothing to select.
        best: the best value of the monitor of each candidate.
        selected: the number of the selected candidate.
        out_of_time: whether a time budget ended the training of some candidate.
    """

    model: Model
    fit_result: FitResult
    candidates: Sequence[Candidate] = ()
    best: Sequence[float | None] = ()
    selected: int = 0
    out_of_time: bool = False


class SelectionRecord(BaseModel):
    """The selection of every member, as a run stores it.

    Args:
        candidates: in the order of their training.
        inverse_temperature: those that validation selected from for the first pseudo-labels; see `pseudo_labels`.
        best: member -> the best value of the monitor of each candidate.
        selected: member -> the number of the selected candidate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    candidates: list[Candidate]
    inverse_temperature: list[float]
    best: list[list[float | None]]
    selected: list[int]

    @model_validator(mode="after")
    def _selected_are_candidates(self) -> SelectionRecord:
        if not all(0 <= number < len(self.candidates) for number in self.selected):
            raise ValueError(
                f"selected is {self.selected[:20]}, expected numbers of {count(len(self.candidates), 'candidate')}"
            )
        return self

    @classmethod
    def of(cls, selections: Sequence[Selection]) -> SelectionRecord | None:
        """The record of the members of an ensemble; None where there was nothing to select."""
        candidates = list(selections[0].candidates)
        if not candidates:
            return None
        return cls(
            candidates=candidates,
            inverse_temperature=list(INVERSE_TEMPERATURES) if any(c.pseudo_label_weight for c in candidates) else [],
            best=[list(selection.best) for selection in selections],
            selected=[selection.selected for selection in selections],
        )


def candidate_grid(training: TrainingSettings) -> list[list[Candidate]]:
    """The candidates of each round of self-training.

    >>> gates = ["learned", "frozen"]
    >>> training = TrainingSettings(pseudo_label_weights=[0, 1], gates=gates, self_training_rounds=3)
    >>> [len(candidates) for candidates in candidate_grid(training)]
    [4, 2, 2]
    """
    weights = training.pseudo_label_weights
    positive = [weight for weight in weights if weight > 0]
    rounds = [weights] + [positive for _ in range(1, training.self_training_rounds) if positive]
    return [
        [Candidate(round=number, gates=gates, pseudo_label_weight=w) for gates in training.gates for w in some]
        for number, some in enumerate(rounds, 1)
    ]


def feasible_candidates(settings: Settings, full_batch: bool) -> list[list[Candidate]]:
    """The candidates of each round that can be trained: pseudo-labels need full-batch training."""
    training = settings.training
    weights = training.pseudo_label_weights
    if full_batch:
        if any(weights):
            several = " and ".join(f"{weight:g}" for weight in weights)
            end = ", whichever does best on validation" if len(weights) > 1 else ""
            logger.info("unlabeled nodes get pseudo-labels, weighted %s in the loss%s", several, end)
        return candidate_grid(training)
    preset = make_settings(settings.preset, "node").training
    if any(weights) and weights != preset.pseudo_label_weights:
        raise SettingsError(
            f"training.pseudo_label_weights is {weights}, expected [0.0]: the graph is too large for full-batch "
            "training, which pseudo-labels need"
        )
    if training.self_training_rounds not in (1, preset.self_training_rounds):
        raise SettingsError(
            f"training.self_training_rounds is {training.self_training_rounds}, expected 1: the graph is too large "
            "for full-batch training, which the pseudo-labels of further rounds need"
        )
    if any(weights):
        logger.info("the graph is too large for full-batch training, so there are no pseudo-labels and one round")
    return candidate_grid(training.model_copy(update={"pseudo_label_weights": [0.0]}))


def select_best(results: Mapping[int, tuple[Model, FitResult]], candidates: Sequence[Candidate]) -> Selection:
    """Select the best candidate of one member on validation; of equals that of less loss, then the first.

    Args:
        results: number of a candidate -> its model and result; an unfinished training may lack some.
        candidates: all candidates; the result of the only supervised one is not a selection.
    """
    scores = {number: result.best[0] for number, (_, result) in sorted(results.items())}
    first = next(iter(results.values()))[1]
    best = best_of(scores, first.monitor)
    out_of_time = any(result.out_of_time for _, result in results.values())
    if list(candidates) == [SUPERVISED]:
        return Selection(*results[best], out_of_time=out_of_time)
    values = [None if (score := scores.get(number)) is None else score.value for number in range(len(candidates))]
    return Selection(*results[best], list(candidates), values, best, out_of_time)


def best_of(scores: Mapping[int, ValidationScore | None], monitor: str) -> int:
    """The key of the best validation score; of equals, the first."""
    best, *others = scores
    for number in others:
        score = scores[number]
        if score is not None and score.is_better(monitor, scores[best]):
            best = number
    return best
