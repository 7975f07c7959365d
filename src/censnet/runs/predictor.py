"""Predictions and embeddings of a trained model for a user's data."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.arguments import check_arguments
from censnet.data.dataset import Dataset
from censnet.errors import ArgumentError, RunError, quote
from censnet.explanation.parts import WHOLE, Effort
from censnet.levels import Level
from censnet.nn.chunked import ChunkedOutputs, HeadOutputs, dense
from censnet.nn.model import Outputs
from censnet.ops.arrays import Array
from censnet.option_names import name_option, setting_option
from censnet.runs.embedding import Embeddings, embedding_tables, flip_odd_channels
from censnet.runs.explain import Explained, PartNames
from censnet.runs.explained_rows import explain_rows
from censnet.runs.explanation_frame import ExplanationFrame
from censnet.runs.links import LINK, check_link_options, link_table
from censnet.runs.trained_models import TrainedModels
from censnet.runs.uncertainty import Uncertainty, check_coverage
from censnet.tasks.predictions import prediction_rows, prediction_table
from censnet.tasks.targets import Target
from censnet.text import count
from censnet.training.devices import find_device

logger = logging.getLogger(__name__)
Keep = Literal["ids", "all"]
UNLIKE = "unlike_training"  # the column that says why a row is unlike all training rows


@dataclass(eq=False)
class Predictor(TrainedModels):
    """Predictions, embeddings and explanations of trained models, in the user's labels and units."""

    def predict(
        self,
        data: object,
        level: str | None = None,
        *,
        keep: Keep = "all",
        pairs: pd.DataFrame | None = None,
        top: int | None = None,
        strict: bool = False,
        device: str | None = None,
        progress: bool = False,
        known_labels: bool = True,
        coverage: float | None = None,
        history: object = None,
    ) -> pd.DataFrame:
        """Predict each row of the user's table, in its order: classes with their probabilities, or numbers.

        Args:
            data: anything `load_data` takes, or a SMILES, or several. It may have other rows and other graphs.
            level: the level to predict, where the run has several: node, edge, graph or link; of molecules also atom
                and bond.
            keep: the user's columns to repeat: all, or those that identify a row.
            pairs: for links, the pairs (source, target) to score; the rows of the table of edges if None.
            top: for links, return this many of the most probable pairs without an edge instead.
            strict: whether a row that cannot be used is an error rather than a row with an `error`.
            device: where to compute; the best available if None.
            progress: whether to show a progress bar.
            known_labels: where the model has known labels as inputs, whether those that the data carry are shown. The
                label of a row is never shown to its own prediction.
            coverage: also give an interval of each number, `COLUMN_low` to `COLUMN_high`, or a set of classes,
                `COLUMN_set`, that hold the label of a new row with this probability: see the page on uncertainty.
            history: of a causal model, the edges before those of `data`, with the labels that are known, in anything
                `load_data` takes. They are context, and get no row.
        """
        check_arguments(Predictor.predict, locals())
        if level is None and len(self.levels) > 1:
            raise ArgumentError(f"level is not given, expected one of {', '.join(self.levels)}: this run predicts each")
        level = self.level_of(level) or self.levels[0]
        if level not in self.levels:
            raise ArgumentError(
                f"level is {quote(level)}, expected {' or '.join(self.levels)}: this run predicts no other"
            )
        check_link_options([level], pairs, top)
        if coverage is not None:
            check_coverage(coverage, self.uncertainty, level, self.targets.get(level, []))
        where = find_device(device)
        if history is not None:
            dataset, past = self.read_after(history, data, strict)
            shown: Literal["all", "none"] = "all" if known_labels else "none"
            outputs = self.outputs_in_stream(dataset, past, where, progress, shown, self.uncertainty.watch)
            return self.table(dataset, level, outputs, keep, coverage)
        dataset = self.read(data, strict=strict)
        known = self.known_labels(dataset) if known_labels else None
        sure = self.uncertainty.where_known(0.0 if known is None else known.share)
        outputs = self.outputs(dataset.graph, where, progress, known, sure.watch)
        if level == "link":
            certain = self.uncertainty.calibrate_links
            sets = None if coverage is None else partial(self.uncertainty.link_sets, coverage=coverage)
            novelty = self.uncertainty.novelty.get(Level.NODE)
            unlike = None if novelty is None else novelty.describe(dataset, "node", None)
            return link_table(
                dataset, self.models, outputs, pairs, top, keep, where, progress, certain, sets, unlike
            )  # fmt: skip
        return self.table(dataset, level, outputs, keep, coverage, sure)

    def embed(
        self, data: object, *, strict: bool = False, device: str | None = None, progress: bool = False
    ) -> Embeddings:
        """Embed nodes, edges and, for many graphs, graphs; the embeddings of an ensemble's members are concatenated."""
        check_arguments(Predictor.embed, locals())
        if self.config.gates_frozen:
            logger.warning(
                "the selected model has frozen gates, so its edge embeddings were not trained; retrain with %s",
                setting_option("training.gates", "learned"),
            )
        dataset = self.read(data, strict=strict)
        found = self.embeddings(dataset.graph, find_device(device), progress)
        tables = embedding_tables(dataset, found)
        return tables._replace(edges=flip_odd_channels(dataset, tables.edges, self.models))

    def explain(
        self,
        data: object,
        rows: Sequence[str | int] | str | int | None = None,
        *,
        top: int | None = None,
        by: Literal["score", "loss"] = "score",
        target: str | None = None,
        level: str | None = None,
        strict: bool = False,
        progress: bool = False,
    ) -> ExplanationFrame:
        """What each edge, node and column adds to the answer for some rows.

        The answer is a number in the user's unit, or the log odds of the positive, or of the predicted, class. One row
        for each part: `change` is the answer minus the answer without the edge, without the node and its edges, or
        with the column at its mean, computed anew on all that the answer depends on; `gate` the answer minus that with
        the gates of the edge closed in all node layers, where there are any; `gradients` integrated gradients.
        `fidelity` is how far the answer moves without the first parts of the kind together, `random` without as many
        drawn at random, `beats` the share of draws that move it less. See `docs/explain.md`.

        Args:
            data: as in `predict`.
            rows: ids as in the table, several joined by commas (`a7,a12` is an edge), or numbers of rows from 1. Of
                links the two nodes, or the number of an edge; `row` then counts the pairs. The only row if there is
                one.
            top: without `rows`, how many rows: those of the highest score, or loss.
            by: score or loss.
            target: the column, where several are predicted.
            level: its level, where columns of several levels are.
            strict: whether a row that cannot be used is an error.
            progress: whether to show a progress bar.
        """
        check_arguments(Predictor.explain, locals())
        dataset = self.read(data, strict=strict)
        chosen = self._explained_target(target, level)
        if rows is None and top is None and chosen is not LINK and len(dataset.rows(chosen.level)) == 1:
            rows = [1]
        if (rows is None) == (top is None):
            names = f"{name_option('--row')} and {name_option('--top')}"
            raise ArgumentError(f"{names} are both given, or neither, expected one of them")
        found = explain_rows(self, dataset, chosen, rows, top, by, progress)
        return ExplanationFrame.of(found, PartNames(dataset, self.inputs))

    def explain_rows(
        self,
        dataset: Dataset,
        rows: Sequence[str | int] | str | int,
        *,
        target: str | None = None,
        level: str | None = None,
        effort: Effort = WHOLE,
        seconds: float | None = None,
    ) -> list[Explained]:
        """The explanations of `explain` for given rows, with the neighborhoods that they are of, to be drawn.

        Args:
            dataset: the data.
            rows, target, level: as in `explain`.
            effort: how much is computed for each.
            seconds: for all rows; one that would take longer than what is left is left out. None has no limit.
        """
        chosen = self._explained_target(target, level)
        return explain_rows(self, dataset, chosen, rows, None, "score", False, effort, seconds)

    def _explained_target(self, column: str | None, level: str | None) -> Target:
        """The target that a user means."""
        word = self.level_of(level)
        every = [*self.config.targets, *([LINK] if self.config.link else [])]
        asked = every if column or word else self.config.targets or every
        found = [one for one in asked if column in (None, one.column) and word in (None, one.level)]
        if len(found) == 1:
            return found[0]
        names = ", ".join("link" if one is LINK else one.name for one in every)
        if word is not None and word not in self.levels:
            raise ArgumentError(f"level is {quote(level)}, expected {' or '.join(self.levels)}: of {names}")
        raise ArgumentError(f"target is {quote(column)}, expected one column of {names}: this run predicts each")

    def table(
        self,
        dataset: Dataset,
        level: str,
        outputs: Sequence[Outputs],
        keep: Keep,
        coverage: float | None = None,
        uncertainty: Uncertainty | None = None,
    ) -> pd.DataFrame:
        """Outputs as predictions in the user's labels and units, behind the user's columns.

        By an `uncertainty` other than that of the run, where the outputs are shown other labels.
        """
        targets, certain = self.targets[level], uncertainty or self.uncertainty
        sure = certain.of(level, targets)
        taken = set(dataset.tables.frames()[Level(level).table].columns) | {"error", "split"}
        members = [member.by_level[level] for member in outputs]
        raw = [member.unclipped[level] for member in outputs if level in member.unclipped]
        chunked = [rows for rows in members if isinstance(rows, ChunkedOutputs)]
        if len(chunked) == len(members):
            before = [rows for rows in raw if isinstance(rows, ChunkedOutputs)]
            values = prediction_table(
                targets, _computed(chunked), len(chunked[0]), taken, _computed(before) if before else None, sure,
                coverage,
            )  # fmt: skip
        else:
            clipped = torch.stack([dense(rows) for rows in raw]) if raw else None
            stacked = torch.stack([dense(rows) for rows in members])
            values = prediction_rows(targets, stacked, taken, clipped, sure, coverage)
        check_finite(values)
        unlike = _describe_unlike(certain, dataset, level, outputs, taken | set(values.columns))
        values = values.assign(**unlike)
        found = dataset.results(level, values, keep)
        flipped = dataset.is_flipped if any(target.kind == "oriented" for target in targets) else None
        if flipped is None:
            return found
        opposite = [_negate_oriented(targets, rows) for rows in (members, raw)]
        values = prediction_rows(targets, opposite[0], taken, opposite[1] if raw else None, sure, coverage)
        return found.mask(pd.Series(flipped), dataset.results(level, values.assign(**unlike), keep))


def _describe_unlike(
    uncertainty: Uncertainty, dataset: Dataset, level: str, outputs: Sequence[Outputs], taken: Collection[str]
) -> dict[str, Array]:
    """The column that says why a row is unlike training rows, by a name that is not taken."""
    novelty = uncertainty.novelty.get(Level(level))
    if novelty is None:
        return {}
    return {free_name(UNLIKE, taken): novelty.describe(dataset, level, outputs[0].watched.get(level))}


def _negate_oriented(targets: Sequence[Target], members: Sequence[HeadOutputs]) -> Tensor:
    """The outputs of all members, those of oriented targets with the opposite sign."""
    if not members:
        return torch.empty(0)
    sign = torch.tensor([-1.0 if t.kind == "oriented" else 1.0 for t in targets for _ in range(t.width)])
    return torch.stack([dense(rows) * sign for rows in members])


def free_name(name: str, taken: Collection[str]) -> str:
    """A name, with a number at its end if it is taken.

    >>> free_name("fee", ["fee", "fee_2"])
    'fee_3'
    """
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def check_finite(values: pd.DataFrame) -> None:
    """Raise where a prediction is not finite: the weights are damaged, or the features are far beyond training's.

    >>> check_finite(pd.DataFrame({"fee_predicted": [1.0, np.inf]}))
    Traceback (most recent call last):
    censnet.errors.RunError: fee_predicted is inf for 1 of 2 rows, expected finite numbers: train again, or look at ...
    """
    for name in values.select_dtypes("number"):
        bad = ~np.isfinite(values[name].to_numpy(np.float64))
        if bad.any():
            found = f"{values[name].to_numpy()[bad][0]} for {int(bad.sum()):,} of {count(len(bad), 'row')}"
            raise RunError(f"{name} is {found}, expected finite numbers: train again, or look at the features")


def _computed(members: Sequence[ChunkedOutputs]) -> Iterator[Tensor]:
    """The outputs of all members, chunk by chunk. -> (members, k, width) each"""
    for chunk in zip(*(rows.split() for rows in members), strict=True):
        yield torch.stack([one.compute().float().cpu() for one in chunk])
