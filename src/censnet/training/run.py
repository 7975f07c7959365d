"""A trained network with all it takes to use it: predict, embed, evaluate; save to a directory and load from one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd
import torch
from safetensors.torch import save

from censnet.data.dataset import Dataset, load_data
from censnet.data.errors import DataError
from censnet.data.link_splits import LinkSplit, links, read_links
from censnet.data.parts import PARTS, Split, read_splits
from censnet.data.schema import Schema
from censnet.data.tables import to_csv
from censnet.data.targets import table_of
from censnet.nn.vae import Latent
from censnet.ops.graph import Graph, GraphSet
from censnet.tasks.answers import answers
from censnet.tasks.metrics import score
from censnet.training.checkpoint import RunError
from censnet.training.devices import make_accelerator
from censnet.training.directory import (
    HISTORY,
    METRICS,
    MODEL,
    SCHEMA,
    SPLITS,
    RunConfig,
    read_directory,
    write_directory,
)
from censnet.training.embedding import Embeddings, embed_graph, embedding_tables
from censnet.training.history import history_csv
from censnet.training.infer import infer
from censnet.training.judge import Judge, Scores, average
from censnet.training.learner import Learner, Outputs
from censnet.training.lesson import row_labels
from censnet.training.links import link_scores, link_table, one_graph
from censnet.training.prepare import fingerprint, make_lesson
from censnet.training.progress import counting
from censnet.training.reading import read_frame, read_learners, read_metrics

Keep = Literal["ids", "all"]


@dataclass(eq=False)
class Run:
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
    """

    config: RunConfig
    schema: Schema
    learners: list[Learner]
    metrics: dict[str, Scores]
    history: pd.DataFrame
    splits: pd.DataFrame
    predictions: dict[str, pd.DataFrame] = field(default_factory=dict)
    path: Path | None = None
    parts: tuple[dict[str, Split], LinkSplit | None] | None = None

    def __repr__(self) -> str:
        asked = ", ".join(self.config.asked)
        size = "" if len(self.learners) == 1 else f", {len(self.learners)} members"
        return f"Run({asked} on {Path(self.config.data).name}{size})"

    @property
    def levels(self) -> list[str]:
        """What can be predicted: node, edge, graph, link."""
        return [*self.learners[0].targets, *(["link"] if self.config.link else [])]

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
    ) -> pd.DataFrame:
        """One answer for each row of the user's table, in its order: classes with their probabilities, numbers.

        Args:
            data: anything `load_data` takes, or a list of SMILES. It may have other rows and other graphs.
            level: which answers, where the run has several: node, edge, graph or link.
            keep: the user's columns to repeat: all, or those that say who a row is.
            pairs: for links, the pairs (source, target) to judge; the rows of the table of edges if None.
            top: for links, give the likeliest so many pairs that no edge joins instead.
            strict: whether a row that cannot be used is an error rather than a row with an `error`.
            device: where to compute; the best there is if None.
            progress: whether to show a bar.
        """
        level = self._level(level)
        if level != "link" and (pairs is not None or top is not None):
            raise ValueError(f"pairs and top are for links, but {level} is asked for")
        dataset = self.read(data, strict=strict)
        outputs = self.outputs(dataset, device, progress)
        if level == "link":
            return link_table(dataset, self.learners, outputs, pairs, top, keep)
        return self.table(dataset, level, outputs, keep)

    def embed(
        self, data: object, *, strict: bool = False, device: str | None = None, progress: bool = False
    ) -> Embeddings:
        """The embeddings of nodes, edges and, for many graphs, graphs; of an ensemble, its members' side by side."""
        dataset = self.read(data, strict=strict)
        with counting("embedding", self._work(dataset.graph), progress) as tick:
            found = [embed_graph(learner, graph, tick) for learner, graph in self._ready(dataset.graph, device)]
        return embedding_tables(dataset, found)

    def evaluate(
        self, data: object, *, strict: bool = False, device: str | None = None, progress: bool = False
    ) -> dict[str, Scores]:
        """Part -> level -> metric -> value, from the labels of the data.

        On the data of the training, each part has its own scores; on others there is one part, `all`. Links are judged
        by hiding some: those hidden in training, or on another graph as many drawn by the run's seed.
        """
        dataset = self.read(data, strict=strict)
        same = fingerprint(dataset) == self.config.fingerprint
        if same:
            return self.judge(dataset, device, progress)
        targets = self.config.targets
        scores: Scores = {}
        if targets:
            outputs = self.outputs(dataset, device, progress)
            for level in self.learners[0].targets:
                mine = [target for target in targets if target.level == level]
                values = [target.encode(dataset.labels(level, target.column)) for target in mine]
                labels = row_labels(mine, values, dataset.rows(level), dataset.count(level))
                answer = average(mine, torch.stack([member.rows[level] for member in outputs]))
                labelled = ~labels.isnan().all(1)
                if not bool(labelled.any()):
                    raise DataError(f"no {level} has a label that the run knows, expected some to judge by")
                scores[level] = score(mine, answer[labelled].numpy(), labels[labelled].numpy())
        if self.config.link:
            hidden = links(one_graph(dataset), self.config.settings.data.link_fractions, self.config.settings.seed)
            scores["link"] = self._judge_links(dataset, hidden, device)["test"]["link"]
        return {"all": scores}

    # -- pieces that training uses too --------------------------------------------------------------------------------

    def read(self, data: object, *, strict: bool = False) -> Dataset:
        """Data as this run reads them."""
        if isinstance(data, Dataset):
            return data
        if isinstance(data, list | tuple) and data and all(isinstance(item, str) for item in data):
            if self.schema.smiles is None:
                raise DataError("data is a list of texts, expected tables: this run was not trained on SMILES")
            data = pd.DataFrame({self.schema.smiles: list(data)})
        if isinstance(data, Graph | GraphSet):
            dataset = load_data(data)
        else:
            dataset = load_data(data, schema=self.schema, strict=strict)
        found = dataset.graph.node_width, dataset.graph.edge_width
        expected = self.config.node_width, self.config.edge_width
        if found != expected:
            raise DataError(
                f"the data have {found[0]} node and {found[1]} edge features, expected {expected[0]} and {expected[1]}"
            )
        if isinstance(dataset.graph, Graph) and "graph" in self.learners[0].targets:
            raise DataError("the data are one graph, expected many: this run answers for whole graphs")
        return dataset

    def outputs(self, dataset: Dataset, device: str | None = None, progress: bool = False) -> list[Outputs]:
        """The answers of each member, on the CPU."""
        return self.outputs_of(dataset.graph, device, progress)

    def outputs_of(self, graph: Graph | GraphSet, device: str | None = None, progress: bool = False) -> list[Outputs]:
        """The answers of each member for the graph's rows, on the CPU."""
        found = []
        with counting("predicting", self._work(graph), progress) as tick:
            for learner, placed in self._ready(graph, device):
                rows, latent = infer(learner, placed, tick)
                if latent is not None:
                    latent = Latent(latent.mean.cpu(), latent.log_std.cpu())
                found.append(Outputs({level: answer.float().cpu() for level, answer in rows.items()}, latent))
        return found

    def table(self, dataset: Dataset, level: str, outputs: Sequence[Outputs], keep: Keep) -> pd.DataFrame:
        """Answers as the user reads them."""
        targets = self.learners[0].targets[level]
        taken = set(dataset.tables.frames()[table_of(level)].columns) | {"error", "split"}
        values = answers(targets, torch.stack([member.rows[level] for member in outputs]), taken)
        return dataset.results(level, values, keep)

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
        lesson = make_lesson(dataset, self.config.targets, [splits], hidden)
        outputs = self.outputs_of(lesson.graph, device, progress)
        rows = {
            level: average(targets, torch.stack([member.rows[level] for member in outputs]))
            for level, targets in self.learners[0].targets.items()
        }
        found: dict[str, Scores] = {}
        for part in PARTS:
            scores = Judge(lesson, part, narrow=False).of(rows)[0]
            if scores:
                found[part] = scores
        if hidden is not None:
            for part, values in link_scores(self.learners, outputs, hidden).items():
                found.setdefault(part, {})["link"] = values
        return found

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run directory; `load_run` reads it back."""
        path = Path(path)
        tensors = {
            f"{member}/{name}": tensor.detach().cpu().contiguous().clone()
            for member, learner in enumerate(self.learners)
            for name, tensor in learner.state_dict().items()
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

    def _level(self, level: str | None) -> str:
        if level is None:
            if len(self.levels) > 1:
                raise ValueError(
                    f"level is not given, expected one of {', '.join(self.levels)}: this run answers for each"
                )
            return self.levels[0]
        if level not in self.levels:
            raise ValueError(
                f"level is {level!r}, expected {' or '.join(self.levels)}: that is what this run answers for"
            )
        return level

    def _work(self, graph: Graph | GraphSet) -> int:
        """How many graphs there are to go through, for all members."""
        return (len(graph) if isinstance(graph, GraphSet) else 1) * len(self.learners)

    def _ready(self, graph: Graph | GraphSet, device: str | None) -> list[tuple[Learner, Graph | GraphSet]]:
        where = make_accelerator(device=device).device
        placed = graph.to(where)
        return [(learner.to(where).eval(), placed) for learner in self.learners]

    def _judge_links(self, dataset: Dataset, hidden: LinkSplit, device: str | None) -> dict[str, Scores]:
        outputs = self.outputs_of(dataset.seen(hidden), device)
        return {part: {"link": values} for part, values in link_scores(self.learners, outputs, hidden).items()}

    def _stored_parts(self, dataset: Dataset) -> tuple[dict[str, Split], LinkSplit | None]:
        """The parts of the training data, as they were written."""
        if self.parts is not None:
            return self.parts
        if self.path is None:
            raise RunError("this run has no record of its parts, expected one that was trained here or loaded")
        splits = read_splits(self.path / SPLITS)
        hidden = read_links(self.path / SPLITS, dataset.edge_rows) if self.config.link else None
        return {level: splits[table_of(level)] for level in self.learners[0].targets}, hidden


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read a run directory. One that is damaged, unfinished or not a run is refused; nothing in it is executed."""
    path = Path(path)
    config, files = read_directory(path)
    schema = Schema.from_json(files[SCHEMA], str(path / SCHEMA))
    learners = read_learners(config, files[MODEL], path / MODEL)
    predictions = {}
    for name in files:
        if name.startswith("predictions"):
            level = name.removeprefix("predictions").removesuffix(".csv").lstrip("_") or None
            predictions[level or next(iter(learners[0].targets), "link")] = read_frame(files[name], path / name)
    return Run(
        config,
        schema,
        learners,
        read_metrics(files[METRICS], path / METRICS) if METRICS in files else {},
        read_frame(files[HISTORY], path / HISTORY) if HISTORY in files else pd.DataFrame(),
        read_frame(files[SPLITS], path / SPLITS) if SPLITS in files else pd.DataFrame(),
        predictions,
        path,
    )
