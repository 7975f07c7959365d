"""Trained networks that answer for a user's rows, and embed them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.arguments import check_arguments
from censnet.data.dataset import Dataset
from censnet.data.load import load_data
from censnet.data.molecules.smiles_input import given_smiles
from censnet.data.splits.split import PARTS
from censnet.data.tables.notes import Note
from censnet.data.tables.schema import Schema
from censnet.errors import DataError, quote
from censnet.levels import Level
from censnet.nn.chunked import ChunkedOutputs, HeadOutputs, dense
from censnet.nn.model import Model, Outputs
from censnet.ops.graph import Graph, GraphSet
from censnet.progress import counting
from censnet.runs.directory import RunConfig
from censnet.runs.embedding import Embeddings, embed_graph, embedding_tables
from censnet.runs.graph_size import GraphSize, compare_sizes
from censnet.runs.links import check_exclusive, link_table
from censnet.tasks.predictions import answer_table, answers
from censnet.text import count
from censnet.training.devices import make_accelerator
from censnet.training.inference import infer

logger = logging.getLogger("censnet")
Keep = Literal["ids", "all"]


@dataclass(eq=False)
class Predictor:
    """What it takes to answer: networks, and how data are read for them. `Run` has the arguments."""

    config: RunConfig
    schema: Schema
    models: list[Model]

    @property
    def levels(self) -> list[str]:
        """What can be predicted: node, edge, graph, link."""
        return [*self.models[0].targets, *(["link"] if self.config.link else [])]

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
            data: anything `load_data` takes, or a SMILES, or several. It may have other rows and other graphs.
            level: which answers, where the run has several: node, edge, graph or link.
            keep: the user's columns to repeat: all, or those that say who a row is.
            pairs: for links, the pairs (source, target) to judge; the rows of the table of edges if None.
            top: for links, give the likeliest so many pairs that no edge joins instead.
            strict: whether a row that cannot be used is an error rather than a row with an `error`.
            device: where to compute; the best there is if None.
            progress: whether to show a bar.
        """
        check_arguments(Predictor.predict, locals())
        level = self._level(level)
        if level != "link" and (pairs is not None or top is not None):
            raise ValueError(f"pairs and top are for links, but {level} is asked for")
        check_exclusive(pairs, top)
        dataset = self.read(data, strict=strict)
        outputs = self.outputs(dataset, device, progress)
        if level == "link":
            return link_table(dataset, self.models, outputs, pairs, top, keep, device, progress)
        return self.table(dataset, level, outputs, keep)

    def embed(
        self, data: object, *, strict: bool = False, device: str | None = None, progress: bool = False
    ) -> Embeddings:
        """The embeddings of nodes, edges and, for many graphs, graphs; of an ensemble, its members' side by side."""
        check_arguments(Predictor.embed, locals())
        if self.config.at_rest:
            logger.warning(
                "validation kept gates at rest, so that nothing was learnt of edges, and their embeddings say little: "
                "train with --set training.gates=learned for them"
            )
        dataset = self.read(data, strict=strict)
        with counting("embedding", self._work(dataset.graph), progress) as tick:
            found = [embed_graph(model, graph, tick) for model, graph in self._ready(dataset.graph, device)]
        return embedding_tables(dataset, found)

    # -- pieces that training uses too --------------------------------------------------------------------------------

    def read(self, data: object, *, strict: bool = False) -> Dataset:
        """Data as this run reads them."""
        if isinstance(data, Dataset):
            return data
        texts = given_smiles(data, self.schema)
        if texts is not None:
            data = pd.DataFrame({self.schema.smiles: pd.Series(texts, dtype=object)})
        if isinstance(data, Graph | GraphSet):
            dataset = load_data(data)
        else:
            dataset = load_data(data, schema=self.schema, strict=strict)
        found = dataset.graph.node_width, dataset.graph.edge_width
        expected = self.config.node_width, self.config.edge_width
        if found != expected:
            raise DataError(
                f"the data have {found[0]} node and {found[1]} edge features, expected {expected[0]} and {expected[1]} "
                f"as in {self.config.data}, which the run was trained on"
            )
        if isinstance(dataset.graph, Graph) and "graph" in self.models[0].targets:
            raise DataError("the data are one graph, expected many: this run answers for whole graphs")
        if dataset.graph.graph_width != self.config.graph_width and "graph" in self.models[0].targets:
            raise DataError(
                f"the data have {dataset.graph.graph_width} features of each graph, expected {self.config.graph_width}"
            )
        if self.config.graph_size is None:
            return dataset
        line, much = compare_sizes(GraphSize.of(dataset.graph), self.config.graph_size)
        logger.log(logging.WARNING if much else logging.INFO, "%s", line)
        return replace(dataset, notes=[*dataset.notes, Note("size", line)])

    def outputs(self, dataset: Dataset, device: str | None = None, progress: bool = False) -> list[Outputs]:
        """The answers of each member, on the CPU."""
        return self.outputs_of(dataset.graph, device, progress)

    def outputs_of(self, graph: Graph | GraphSet, device: str | None = None, progress: bool = False) -> list[Outputs]:
        """The answers of each member for the graph's rows, on the CPU."""
        found = []
        with counting("predicting", self._work(graph), progress) as tick:
            for model, placed in self._ready(graph, device):
                rows, latent, raw = infer(model, placed, tick)
                if latent is not None:
                    latent = latent.to("cpu")
                found.append(Outputs(_on_cpu(rows), latent, _on_cpu(raw)))
        return found

    def table(self, dataset: Dataset, level: str, outputs: Sequence[Outputs], keep: Keep) -> pd.DataFrame:
        """Answers as the user reads them."""
        targets = self.models[0].targets[level]
        taken = set(dataset.tables.frames()[Level(level).table].columns) | {"error", "split"}
        members = [member.rows[level] for member in outputs]
        raw = [member.raw[level] for member in outputs if level in member.raw]
        chunked = [rows for rows in members if isinstance(rows, ChunkedOutputs)]
        if len(chunked) == len(members):
            before = [rows for rows in raw if isinstance(rows, ChunkedOutputs)]
            values = answer_table(
                targets, _computed(chunked), len(chunked[0]), taken, _computed(before) if before else None
            )
        else:
            clipped = torch.stack([dense(rows) for rows in raw]) if raw else None
            values = answers(targets, torch.stack([dense(rows) for rows in members]), taken, clipped)
        check_finite(values)
        return dataset.results(level, values, keep)

    def training_table(
        self, dataset: Dataset, level: str, outputs: Sequence[Outputs], codes: Sequence[int]
    ) -> pd.DataFrame:
        """Answers for the rows of a training: the user's ids, `split`, and each observed value before its answers.

        Args:
            dataset, level, outputs: as in `table`.
            codes: the part of each input row, -1 for none.
        """
        table, ids = self.table(dataset, level, outputs, "ids"), dataset.id_columns(level)
        found: dict[str, pd.Series[Any]] = {str(name): table[name] for name in table.columns[: len(ids)]}
        found["split"] = pd.Series([PARTS[code] if code >= 0 else None for code in codes], dtype=object)
        observed = {f"{target.column}_predicted": target.column for target in self.models[0].targets[level]}
        for name in map(str, table.columns[len(ids) :]):
            column = observed.pop(re.sub(r"(?<=_predicted)_\d+$", "", name), None)
            if column is not None and column not in ids:
                found[column if column not in found else f"{column}_"] = dataset.labels(level, column)
            found[name] = table[name]
        return pd.DataFrame(found)

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
                f"level is {quote(level)}, expected {' or '.join(self.levels)}: that is what this run answers for"
            )
        return level

    def _work(self, graph: Graph | GraphSet) -> int:
        """How many graphs there are to go through, for all members."""
        return (len(graph) if isinstance(graph, GraphSet) else 1) * len(self.models)

    def _ready(self, graph: Graph | GraphSet, device: str | None) -> list[tuple[Model, Graph | GraphSet]]:
        where = make_accelerator(device=device).device
        placed = graph.to(where)
        return [(model.to(where).eval(), placed) for model in self.models]


def check_finite(values: pd.DataFrame) -> None:
    """Raise where an answer is no finite number: the weights were damaged, or the features are far beyond training's.

    >>> check_finite(pd.DataFrame({"fee_predicted": [1.0, np.inf]}))
    Traceback (most recent call last):
    ValueError: fee_predicted is inf for 1 of 2 rows, expected finite numbers: train again, or look at the features
    """
    for name in values.select_dtypes("number"):
        bad = ~np.isfinite(values[name].to_numpy(np.float64))
        if bad.any():
            found = f"{values[name].to_numpy()[bad][0]} for {int(bad.sum()):,} of {count(len(bad), 'row')}"
            raise ValueError(f"{name} is {found}, expected finite numbers: train again, or look at the features")


def _on_cpu(rows: Mapping[str, HeadOutputs]) -> dict[str, HeadOutputs]:
    """Outputs in memory; those in chunks stay where they are, for they are computed when they are needed."""
    return {level: one.float().cpu() if isinstance(one, Tensor) else one for level, one in rows.items()}


def _computed(members: Sequence[ChunkedOutputs]) -> Iterator[Tensor]:
    """The outputs of all members, some rows at a time. -> (members, k, width) each"""
    for chunk in zip(*(rows.split() for rows in members), strict=True):
        yield torch.stack([one.compute().float().cpu() for one in chunk])
