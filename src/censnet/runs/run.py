"""A trained model with its schema, splits, history and scores: predict, embed, evaluate; save and load."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from safetensors.torch import save

from censnet.arguments import check_arguments
from censnet.data.digests import fingerprint
from censnet.data.splits.links import read_links
from censnet.data.splits.split_file import Split, read_splits
from censnet.data.tables.files import to_csv
from censnet.errors import ArgumentError, RunError, quote
from censnet.levels import Level
from censnet.runs.directory import (
    HISTORY,
    METRICS,
    MODEL,
    SCHEMA,
    SPLITS,
    read_config,
    run_dir,
    write_directory,
)
from censnet.runs.embedding import Embeddings
from censnet.runs.evaluation import score_other_data, score_parts
from censnet.runs.links import score_held_out
from censnet.runs.loading import read_metrics, read_models, read_schema, read_table_file
from censnet.runs.predictor import Keep, Predictor
from censnet.settings.build import has_ordered_links
from censnet.text import count
from censnet.training.devices import find_device
from censnet.training.evaluator import Scores
from censnet.training.history import history_csv
from censnet.training.task_data import make_task_data

__all__ = ["Embeddings", "Keep", "Run", "load_run"]


@dataclass(eq=False)
class Run(Predictor):
    """The result of a training. `censnet.train` makes one, `censnet.load_run` reads one.

    Args:
        config: settings, targets and provenance.
        schema: how data are read.
        models: the trained models; several are an ensemble, whose predictions are averaged.
        metrics: part -> level -> metric -> value, on the training data; of an ensemble's averaged predictions.
        history: a row for each epoch.
        splits: the part of each row of the training data, as in splits.csv.
        predictions: level -> a row for each row of the training data.
        path: the directory it was read from or written to.
    """

    metrics: dict[str, Scores]
    history: pd.DataFrame
    splits: pd.DataFrame
    predictions: dict[str, pd.DataFrame] = field(default_factory=dict)
    path: Path | None = None

    def __repr__(self) -> str:
        targets = ", ".join(self.config.target_specs)
        size = "" if len(self.models) == 1 else f", {count(len(self.models), 'member')}"
        return f"Run({targets} on {Path(self.config.data).name}{size})"

    def evaluate(
        self, data: object, *, strict: bool = False, device: str | None = None, progress: bool = False
    ) -> dict[str, Scores]:
        """Part -> level -> metric -> value, from the labels of the data.

        On the training data the parts are `train`, `validation` and `test`, as in `metrics`. On other data there is one
        part, `all`, with the number of labeled `rows` and how many of them are known from training (`known_train`,
        `known_validation`); where only some are, a part `new` has the scores of the others. Links are scored by holding
        some out: those held out in training, or on another graph as many, drawn by the seed of the run.

        Args:
            data: anything `load_data` takes, with labels.
            strict: whether a row that cannot be used is an error.
            device: where to compute; the best available if None.
            progress: whether to show a progress bar.
        """
        check_arguments(Run.evaluate, locals())
        dataset, where = self.read(data, strict=strict), find_device(device)
        if fingerprint(dataset.graph) != self.config.fingerprint:
            return score_other_data(self, self.splits, dataset, where, progress)
        splits = self._read_splits()
        ordered = has_ordered_links(self.config.settings.model, dataset.graph.directed)
        links = read_links(self.splits, dataset.rows("edge"), ordered) if self.config.link else None
        task_data = make_task_data(dataset, self.config.targets, [splits], links)
        outputs = self.outputs(task_data.graph, where, progress, self.known_training_labels(dataset, task_data))
        held_out = None if links is None else score_held_out(self.models, outputs, links)
        return score_parts(task_data, outputs, held_out)

    def split(self, level: str) -> Split:
        """The rows of the training data that were used for training, validation and test.

        Args:
            level: node, edge or graph.
        """
        check_arguments(Run.split, locals())
        if level not in self.targets:
            levels = " or ".join(self.targets) or "nothing"
            raise ArgumentError(f"level is {quote(level)}, expected {levels}, which this run predicts")
        return self._read_splits()[level]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run directory; `load_run` reads it back."""
        check_arguments(Run.save, locals())
        path = run_dir(path)
        tensors = {
            f"{member}/{name}": tensor.detach().cpu().contiguous().clone()
            for member, model in enumerate(self.models)
            for name, tensor in model.state_dict().items()
        }
        files = {
            MODEL: save(tensors),
            SCHEMA: self.schema.to_json().encode(),
            SPLITS: to_csv(self.splits, SPLITS),
            HISTORY: history_csv(self.history),
            METRICS: (json.dumps(self.metrics, indent=1) + "\n").encode(),
        }
        for level, frame in self.predictions.items():
            name = "predictions.csv" if len(self.predictions) == 1 else f"predictions_{level}.csv"
            files[name] = to_csv(frame, name)
        write_directory(path, self.config, files)
        self.path = path
        return path

    def _read_splits(self) -> dict[str, Split]:
        """Level -> the split of its rows."""
        if not len(self.splits):
            raise RunError("this run has no record of its splits, expected one that was trained here or loaded")
        found, levels = read_splits(self.splits), self.targets
        missing = next((Level(level).table for level in levels if Level(level).table not in found), None)
        if missing is not None:
            raise RunError(f"{SPLITS} of the run has no rows of {missing}, expected those of the training")
        return {level: found[Level(level).table] for level in levels}


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read a run directory. One that is damaged, unfinished or not a run is refused; nothing in it is executed."""
    check_arguments(load_run, locals())
    path = Path(path)
    config = read_config(path)
    schema = read_schema(path, config)
    models = read_models(path, config)
    ids = schema.id_columns
    tables = {name: read_table_file(path, config, name, ids) for name in config.files if name.endswith(".csv")}
    predictions = {}
    for name, frame in tables.items():
        if name.startswith("predictions"):
            level = name.removeprefix("predictions").removesuffix(".csv").lstrip("_")
            predictions[level or next(iter(models[0].heads), "link")] = frame
    return Run(config, schema, models, read_metrics(path, config), tables[HISTORY], tables[SPLITS], predictions, path)
