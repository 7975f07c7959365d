"""What a page is about: a run, its labels and predictions by level, its scores, and the data if they can be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from censnet.data.dataset import Dataset
from censnet.data.datasets.download import is_built_in
from censnet.data.digests import fingerprint
from censnet.data.tables.files import is_there
from censnet.errors import CensNetError, DataError
from censnet.levels import Level
from censnet.ops.arrays import Array
from censnet.report.figures import worst_rows
from censnet.report.intervals import part_with_intervals
from censnet.report.rows import PARTS, TargetRows, read_links, read_rows
from censnet.runs.run import Run
from censnet.runs.uncertainty import Uncertainty

logger = logging.getLogger(__name__)
Scores = Mapping[str, Mapping[str, Mapping[str, float]]]  # part -> level -> metric -> value


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a page.

    Args:
        run: what was trained.
        frames: level -> the table of predictions.
        rows: level -> labels and predictions of each target, row by row of that table.
        scores: those of the run and, of other data, those in the parts `all` and `new`.
        dataset: the data; None if they cannot be read.
        name: of the data.
        is_other: whether they are other data than those of the training.
        missing: why there are no data.
    """

    run: Run
    frames: Mapping[str, pd.DataFrame]
    rows: Mapping[str, list[TargetRows]]
    scores: Scores
    dataset: Dataset | None
    name: str
    is_other: bool = False
    missing: str = ""

    def worst(self, level: str, number: int = 0) -> tuple[str, Array]:
        """The part that errors are looked for in, and its worst rows for a target of a level."""
        rows = self.rows[level]
        part = part_with_intervals(rows[number : number + 1])
        return ("", np.empty(0, np.int64)) if part is None else (part, worst_rows(rows[number], part))

    def link_part(self) -> Array | None:
        """Of each row of the table of edges its part, where links are predicted; -1 for none."""
        splits = self.run.splits
        if self.dataset is None or self.is_other or Level.LINK not in self.rows or "table" not in splits:
            return None
        mine = splits[splits["table"] == "links"]
        found = np.full(len(self.dataset.rows("edge")), -1)
        rows = mine["row"].to_numpy(np.int64) - 1
        found[rows] = mine["split"].map({part: number for number, part in enumerate(PARTS)}).fillna(-1).to_numpy()
        return found

    def units(self, level: str) -> Array | None:
        """Of each row of a level the number of its edge, where the table has each edge twice; None elsewhere."""
        if Level(level) is not Level.EDGE or self.run.schema.edge_form == "once":
            return None
        keys = self.run.schema.edges.keys
        names, frame = [keys.get(role, role) for role in ("source", "target")], self.frames[level]
        if not set(names) <= set(frame.columns):
            return None
        ends = [np.asarray(frame[name].astype("string").fillna(""), dtype=str) for name in names]
        pairs = np.sort(np.stack(ends), axis=0)
        return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)


def gather(run: Run, data: object, strict: bool, device: torch.device, progress: bool) -> Content:
    """Read the data, and predict them if they are not those of the training.

    Args:
        run: whose page it is.
        data: anything `load_data` takes; None for the training data, if they can still be read.
        strict, device, progress: as in `Run.evaluate`.
    """
    own: dict[str, list[TargetRows]] = {
        level: _rows_of(run, run.uncertainty, level, run.predictions[level])
        for level in Level
        if level in run.predictions
    }
    name = run.config.data
    if data is None:
        dataset, why = _training_data(run)
        return Content(run, run.predictions, own, run.metrics, dataset, name, missing=why)
    dataset = run.read(data, strict=strict)
    if fingerprint(dataset.graph) == run.config.fingerprint:
        return Content(run, run.predictions, own, run.metrics, dataset, name)
    frames = _predict(run, dataset, device, progress)
    sure = run.uncertainty.where_known(0.0)
    rows = {level: _rows_of(run, sure, level, frame) for level, frame in frames.items()}
    scores = dict(run.metrics)
    try:
        scores |= run.evaluate(dataset, device=str(device), progress=progress)
    except DataError as error:  # no labels, which new data need not have
        logger.info("%s: the page has no scores of them", error)
    return Content(run, frames, rows, scores, dataset, dataset.name, is_other=True)


def _rows_of(run: Run, sure: Uncertainty, level: str, frame: pd.DataFrame) -> list[TargetRows]:
    targets = run.targets.get(level, [])
    return [read_links(frame)] if level == Level.LINK else read_rows(frame, targets, sure.of(level, targets))


def _training_data(run: Run) -> tuple[Dataset | None, str]:
    """The data that a run was trained on, or why they are not at hand."""
    name = run.config.data
    if not is_built_in(name) and not (name and is_there(Path(name))):
        return None, "the training data are not where they were"
    try:
        dataset = run.read(name)
    except CensNetError as error:
        return None, f"the training data cannot be read: {error}"
    if fingerprint(dataset.graph) != run.config.fingerprint:
        return None, "the training data have changed since"
    return dataset, ""


def _predict(run: Run, dataset: Dataset, device: torch.device, progress: bool) -> dict[str, pd.DataFrame]:
    """Level -> predictions of other data, with labels and parts in the form of predictions.csv.

    Known labels are not shown to the model, as in `Run.evaluate`.
    """
    if not run.targets:
        return {}
    sure = run.uncertainty.where_known(0.0)
    outputs, found = run.outputs(dataset.graph, device, progress, watch=sure.watch), {}
    for level, targets in run.targets.items():
        frame = run.table(dataset, level, outputs, "ids", uncertainty=sure)
        frame.insert(len(dataset.id_columns(level)), "split", "all")
        table = dataset.tables.frames()[Level(level).table]
        for target in targets:
            start = next(n for n, name in enumerate(frame) if str(name).startswith(f"{target.column}_predicted"))
            if target.column in table and target.column not in frame:
                frame.insert(start, target.column, dataset.labels(level, target.column))
        found[level] = frame
    return found
