"""A trained network with all it takes to use it: predict, embed, evaluate; save to a directory and load from one."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from safetensors.torch import save

from censnet.arguments import check_arguments
from censnet.data.dataset import Dataset
from censnet.data.digests import fingerprint
from censnet.data.splits.links import LinkSplit, links, read_links
from censnet.data.splits.split import PARTS, Split, read_splits
from censnet.data.tables.files import to_csv
from censnet.errors import DataError, RunError
from censnet.levels import Level
from censnet.runs.directory import (
    HISTORY,
    METRICS,
    MODEL,
    SCHEMA,
    SPLITS,
    read_config,
    write_directory,
)
from censnet.runs.embedding import Embeddings
from censnet.runs.known_rows import count_known, count_known_links, describe_known, known_rows, split_texts
from censnet.runs.links import link_scores, one_graph
from censnet.runs.loading import read_metrics, read_models, read_schema, read_table_file
from censnet.runs.lock import check_folder, named_folder
from censnet.runs.predictor import Keep, Predictor
from censnet.text import count
from censnet.training.evaluator import Evaluator, Scores, combine, score_rows
from censnet.training.history import history_csv
from censnet.training.task_data import make_task_data, row_censoring, row_labels

__all__ = ["Embeddings", "Keep", "Run", "load_run"]

logger = logging.getLogger("censnet")


@dataclass(eq=False)
class Run(Predictor):
    """What a training gave. `censnet.train` makes one, `censnet.load_run` reads one.

    Args:
        config: settings, targets, and how it came about.
        schema: how data are read.
        learners: the trained networks; several are an ensemble, whose answers are averaged.
        metrics: part -> level -> metric -> value, on the training data; for an ensemble, of the averaged answers.
        history: a row for each epoch.
        splits: which row of the training data was in which part, as in splits.csv.
        predictions: level -> one row for each row of the training data.
        path: the directory it was read from or written to.
        parts: level -> the parts of the input rows, and the links that were hidden, while they are in memory.
        written: splits.csv as it was read.
    """

    metrics: dict[str, Scores]
    history: pd.DataFrame
    splits: pd.DataFrame
    predictions: dict[str, pd.DataFrame] = field(default_factory=dict)
    path: Path | None = None
    parts: tuple[dict[str, Split], LinkSplit | None] | None = None
    written: bytes = b""

    def __repr__(self) -> str:
        asked = ", ".join(self.config.asked)
        size = "" if len(self.models) == 1 else f", {count(len(self.models), 'member')}"
        return f"Run({asked} on {Path(self.config.data).name}{size})"

    def evaluate(
        self, data: object, *, strict: bool = False, device: str | None = None, progress: bool = False
    ) -> dict[str, Scores]:
        """Part -> level -> metric -> value, from the labels of the data.

        On the data of the training, each part has its own scores. On others there is one part, `all`, with the number
        of `rows` that have labels, and how many of these are known from training (`known_train`, `known_validation`);
        where some are and some are not, a part `new` has the scores of those that are not. Links are judged by hiding
        some: those hidden in training, or on another graph as many drawn by the run's seed.
        """
        check_arguments(Run.evaluate, locals())
        dataset = self.read(data, strict=strict)
        same = fingerprint(dataset.graph) == self.config.fingerprint
        if same:
            return self.judge(dataset, device, progress)
        targets = self.config.targets
        scores, fresh, told = Scores(), Scores(), split_texts(self.splits, self.written)
        if targets:
            outputs = self.outputs(dataset, device, progress)
            for level in self.models[0].targets:
                mine = [target for target in targets if target.level == level]
                columns = [dataset.labels(level, target.column) for target in mine]
                shape = dataset.rows(level), dataset.count(level)
                values = [target.encode(column) for target, column in zip(mine, columns, strict=True)]
                labels = row_labels(mine, values, *shape)
                censoring = row_censoring(
                    [t.encode_censoring(column) for t, column in zip(mine, columns, strict=True)], *shape
                )
                answer = combine(mine, [member.rows[level] for member in outputs])
                labelled = ~labels.isnan().all(1)
                if not bool(labelled.any()):
                    raise DataError(f"no {level} has a label that the run knows, expected some to judge by")
                scores[level] = score_rows(mine, answer, labels, labelled.nonzero().squeeze(1), censoring)
                known = known_rows(told, dataset, level)
                if known is not None:
                    scores[level] |= count_known(labelled, known)
                    others = labelled & ~known["train"] & ~known["validation"]
                    if 0 < int(others.sum()) < int(labelled.sum()):
                        fresh[level] = score_rows(mine, answer, labels, others.nonzero().squeeze(1), censoring)
        if self.config.link:
            hidden = links(one_graph(dataset), self.config.settings.data.link_fractions, self.config.settings.seed)
            scores["link"] = self._judge_links(dataset, hidden, device)["test"]["link"]
            scores["link"] |= count_known_links(told, dataset, hidden.test_links)
        for level, found in scores.items():
            note = describe_known(found, Level(level).table)
            if note is not None:
                logger.warning("%s", note)
        return {"all": scores, "new": fresh} if fresh else {"all": scores}

    # -- pieces that training uses too --------------------------------------------------------------------------------

    def judge(
        self,
        dataset: Dataset,
        device: str | None = None,
        progress: bool = False,
        splits: dict[str, Split] | None = None,
        hidden: LinkSplit | None = None,
    ) -> dict[str, Scores]:
        """The scores of each part of the training data."""
        if splits is None:
            splits, hidden = self._stored_parts(dataset)
        task_data = make_task_data(dataset, self.config.targets, [splits], hidden)
        outputs = self.outputs_of(task_data.graph, device, progress)
        rows = {
            level: combine(targets, [member.rows[level] for member in outputs])
            for level, targets in self.models[0].targets.items()
        }
        found: dict[str, Scores] = {}
        for part in PARTS:
            scores = Evaluator(task_data, part, narrow=False).of(rows)[0]
            if scores:
                found[part] = scores
        if hidden is not None:
            for part, values in link_scores(self.models, outputs, hidden).items():
                found.setdefault(part, {})["link"] = values
        return found

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run directory; `load_run` reads it back."""
        check_arguments(Run.save, locals())
        path = named_folder(path)
        check_folder(path)
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

    # -- inside -------------------------------------------------------------------------------------------------------

    def _judge_links(self, dataset: Dataset, hidden: LinkSplit, device: str | None) -> dict[str, Scores]:
        outputs = self.outputs_of(dataset.message_graph(hidden), device)
        return {part: {"link": values} for part, values in link_scores(self.models, outputs, hidden).items()}

    def _stored_parts(self, dataset: Dataset) -> tuple[dict[str, Split], LinkSplit | None]:
        """The parts of the training data, as they were written."""
        if self.parts is not None:
            return self.parts
        if not self.written:
            raise RunError("this run has no record of its parts, expected one that was trained here or loaded")
        with tempfile.TemporaryDirectory() as place:  # the checked bytes, whatever became of the directory since
            path = Path(place) / SPLITS
            path.write_bytes(self.written)
            splits = read_splits(path)
            hidden = read_links(path, dataset.edge_rows) if self.config.link else None
        for level in self.models[0].targets:
            if Level(level).table not in splits:
                raise RunError(
                    f"{SPLITS} of the run has no rows of {Level(level).table}, expected those that were trained on"
                )
        return {level: splits[Level(level).table] for level in self.models[0].targets}, hidden


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read a run directory. One that is damaged, unfinished or not a run is refused; nothing in it is executed."""
    check_arguments(load_run, locals())
    path = Path(path)
    config = read_config(path)
    schema = read_schema(path, config)
    models = read_models(path, config)
    ids = schema.id_columns
    tables = {name: read_table_file(path, config, name, ids) for name in config.files if name.endswith(".csv")}
    nothing = pd.DataFrame(), b""
    predictions = {}
    for name in tables:
        if name.startswith("predictions"):
            level = name.removeprefix("predictions").removesuffix(".csv").lstrip("_") or None
            predictions[level or next(iter(models[0].targets), "link")] = tables[name][0]
    return Run(
        config,
        schema,
        models,
        read_metrics(path, config) if METRICS in config.files else {},
        tables.get(HISTORY, nothing)[0],
        tables.get(SPLITS, nothing)[0],
        predictions,
        path,
        written=tables.get(SPLITS, nothing)[1],
    )
