"""A trained model with its schema, splits, history and scores: predict, embed, evaluate; save and load."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.torch import save

from censnet.arguments import check_arguments
from censnet.data.digests import fingerprint
from censnet.data.splits.links import read_links
from censnet.data.splits.split_file import Split, read_splits
from censnet.data.tables.files import to_csv
from censnet.errors import ArgumentError, RunError, quote
from censnet.levels import Level
from censnet.option_names import name_option
from censnet.runs.directory import CALIBRATION, HISTORY, METRICS, MODEL, SCHEMA, SPLITS, read_config, write_directory
from censnet.runs.embedding import Embeddings
from censnet.runs.links import score_held_out
from censnet.runs.loading import read_metrics, read_models, read_schema, read_table_file, read_uncertainty
from censnet.runs.lock import run_dir
from censnet.runs.notebook import run_html
from censnet.runs.predictor import Keep, Predictor
from censnet.runs.scoring import replace_decision, score_other_data, score_parts, score_with_fixed_labels
from censnet.runs.stream import Stream
from censnet.runs.stream_directory import has_state
from censnet.runs.stream_history import feed_history
from censnet.runs.stream_lines import NUMBER
from censnet.settings.build import has_ordered_links
from censnet.tasks.decision import Decision, Rule, score_decision
from censnet.tasks.predictions import class_names
from censnet.tasks.targets import Target
from censnet.tasks.uncertainty import COVERAGE
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
        uncertainty: calibration, and scores of validation rows for intervals and sets.
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

    def _repr_html_(self) -> str:
        return run_html(self.config, self.metrics, self.levels)

    def evaluate(
        self,
        data: object,
        *,
        strict: bool = False,
        device: str | None = None,
        progress: bool = False,
        coverage: float = COVERAGE,
        cost: Mapping[str, float] | None = None,
        recall: float | None = None,
        history: object = None,
    ) -> dict[str, Scores]:
        """Part -> level -> metric -> value, from the labels of the data.

        On the training data the parts are `train`, `validation` and `test`, as in `metrics`. On other data there is one
        part, `all`, with the number of labeled `rows` and how many of them are known from training (`known_train`,
        `known_validation`); where only some are, a part `new` has the scores of the others. Links are scored by holding
        some out: those held out in training, or on another graph as many, drawn by the seed of the run. With causal
        layers the scores are those of a stream, each edge with the labels that arrived before it, and
        `all_labels_fixed` has those with the labels of `history` alone.

        Args:
            data: anything `load_data` takes, with labels.
            strict: whether a row that cannot be used is an error.
            device: where to compute; the best available if None.
            progress: whether to show a progress bar.
            coverage: of the intervals and sets whose `coverage` and `width` (or `set_size`) are among the metrics.
            cost: `{"fp": 1, "fn": 20}`, of false positives and false negatives: `decide` on these before.
            recall: the share of positive rows that is to be found: `decide` on this before.
            history: of a causal model, the edges before those of `data`, which are context and are not scored.
        """
        check_arguments(Run.evaluate, locals())
        if cost or recall is not None:
            self.decide(cost, recall)
        if not 0 < coverage < 1:
            raise ArgumentError(f"{name_option('--coverage')} is {coverage:g}, expected more than 0 and less than 1")
        where = find_device(device)
        if history is not None:
            dataset, past = self.read_after(history, data, strict)
            return score_other_data(self, self.splits, dataset, where, progress, coverage, past)
        dataset = self.read(data, strict=strict)
        if fingerprint(dataset.graph) != self.config.fingerprint:
            return score_other_data(self, self.splits, dataset, where, progress, coverage)
        splits = self._read_splits()
        ordered = has_ordered_links(self.config.settings.model, dataset.graph.directed)
        links = read_links(self.splits, dataset.rows("edge"), ordered) if self.config.link else None
        task_data = make_task_data(dataset, self.config.targets, [splits], links, self.config.label_delay)
        outputs = self.outputs(task_data.graph, where, progress, self.known_training_labels(dataset, task_data))
        held_out = None if links is None else score_held_out(self.models, outputs, links)
        scores = score_parts(task_data, outputs, held_out, self.uncertainty, coverage)
        return scores | score_with_fixed_labels(self, task_data, where, coverage)

    def open_stream(
        self,
        state: str | os.PathLike[str] | None = None,
        history: object = None,
        *,
        number: str = NUMBER,
        coverage: float | None = None,
    ) -> Stream:
        """Feed a causal run event by event: each gets at once the answer that `predict` gives it.

        Args:
            state: the directory that `Stream.save` writes the state to. One that is there is gone on from.
            history: the edges before the first event with the labels that are known, in anything `load_data` takes.
                A state that is gone on from has it already.
            number: the field with the number of an event.
            coverage: as in `predict`.
        """
        check_arguments(Run.open_stream, locals())
        stream = Stream(self, number, coverage)
        if state is not None:
            stream.path = Path(state)
        if state is not None and has_state(Path(state)):
            stream.load(state)
        elif history is not None:
            feed_history(stream, history)
            if state is not None:
                stream.save()
        return stream

    def decide(self, cost: Mapping[str, float] | None = None, recall: float | None = None) -> None:
        """Choose the threshold of each target of two classes by validation rows; predictions use it from then on.

        `save` stores it. Without a cost and a recall the threshold is 0.5 again. Predictions of the training data and
        their scores follow; those of a causal model with fixed labels lose what depends on the threshold.
        """
        rule = Rule.of(cost, recall)
        self.uncertainty = self.uncertainty.decide(self.targets, rule)
        for level, targets in self.targets.items():
            frame = self.predictions.get(level)
            for target, own in zip(targets, self.uncertainty.of(level, targets), strict=True):
                if frame is None or target.kind != "binary":
                    continue
                names = f"{target.column}_predicted", f"{target.column}_p_{target.classes[-1]}"
                if set(names) <= set(frame):
                    known = frame[names[1]].notna()
                    chosen = (frame.loc[known, names[1]] >= own.threshold).to_numpy().astype(np.int64)
                    frame.loc[known, names[0]] = class_names(target)[chosen]
                    if target.column in frame:
                        self._score_decision(target, own.decision)

    def _score_decision(self, target: Target, decision: Decision | None) -> None:
        """Score decisions on the training data anew, by the labels and probabilities of `predictions`."""
        frame = self.predictions[target.level]
        labels = target.encode(frame[target.column]).numpy()
        p = frame[f"{target.column}_p_{target.classes[-1]}"].to_numpy(np.float64)
        labeled = ~np.isnan(labels) & ~np.isnan(p)
        for part, scores in self.metrics.items():
            if target.level in scores:
                rows = labeled & (frame["split"] == part).to_numpy()
                found = dict(score_decision(p[rows], labels[rows] > 0.5, decision, every=True)) if rows.any() else {}
                scores[target.level] = replace_decision(scores[target.level], target.column, found)

    def split(self, level: str) -> Split:
        """The rows of the training data that were used for training, validation and test.

        Args:
            level: node, edge or graph.
        """
        check_arguments(Run.split, locals())
        level = self.level_of(level) or level
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
            CALIBRATION: (self.uncertainty.model_dump_json(exclude_defaults=True) + "\n").encode(),
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
    return Run(
        config, schema, models, read_metrics(path, config), tables[HISTORY], tables[SPLITS], predictions, path,
        uncertainty=read_uncertainty(path, config),
    )  # fmt: skip
