"""Trained models, which read data by the schema of their run and compute outputs and embeddings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import pandas as pd
import torch
from torch import Tensor

from censnet.console import counting
from censnet.data.dataset import Dataset
from censnet.data.load import given_smiles, load_data, tables_of
from censnet.data.tables.notes import Note
from censnet.data.tables.schema import Schema
from censnet.errors import DataError, RunError
from censnet.levels import MOLECULE_LEVELS
from censnet.nn.chunked import HeadOutputs
from censnet.nn.model import Model, Outputs
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.option_names import name_option
from censnet.runs.config import GraphSize, RunConfig
from censnet.runs.embedding import embed_graph
from censnet.runs.history import join_history, warn_of_late_history, with_nodes_of
from censnet.runs.known_labels_in_prediction import KnownLabels, merge, read_labels
from censnet.runs.uncertainty import Uncertainty
from censnet.runs.watched import Watch, watched
from censnet.settings.build import model_inputs
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.targets import Target
from censnet.text import count, plural
from censnet.training.evaluator import edges_of_part, infer
from censnet.training.task_data import TaskData

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class TrainedModels:
    """Trained models: they read data by the schema of their run, and compute outputs. `Run` documents the arguments."""

    config: RunConfig
    schema: Schema
    models: list[Model]
    uncertainty: Uncertainty = field(default_factory=Uncertainty, kw_only=True)

    @property
    def targets(self) -> dict[str, list[Target]]:
        """The targets of each level: node, edge, graph."""
        every = self.config.targets
        return {level: [target for target in every if target.level == level] for level in self.models[0].heads}

    @property
    def levels(self) -> list[str]:
        """The levels that are predicted: node, edge, graph, link."""
        return [*self.targets, *(["link"] if self.config.link else [])]

    def level_of(self, word: str | None) -> str | None:
        """The level that a user names; of molecules, `atom` and `bond` are `node` and `edge`."""
        return word if word is None or self.schema.smiles is None else MOLECULE_LEVELS.get(word, word)

    def read(self, data: object, *, strict: bool = False) -> Dataset:
        """Read data by the schema of this run, and say how large they are beside those of the training."""
        if isinstance(data, Dataset):
            return data
        dataset = self._read(data, strict)
        return replace(dataset, notes=[*dataset.notes, *self._compare_size(dataset.graph)])

    @property
    def inputs(self) -> ModelInputs:
        """The inputs of the models beside the features of the data."""
        return model_inputs(self.config.shape, self.config.settings.model)

    def read_after(self, history: object, data: object, strict: bool) -> tuple[Dataset, Dataset]:
        """The data and the history before them, for a model whose edges see those of the history that are earlier."""
        if not self.inputs.causal or "edge" not in self.targets:
            raise RunError(
                f"{name_option('--history')} is given, expected none: the run has no causal layers that predict edges, "
                "so put all rows in one table"
            )
        past = history if isinstance(history, Dataset) else self._read(history, strict)
        if not isinstance(data, Dataset) and self.config.node_features:
            data = with_nodes_of(tables_of(data, self.schema), past)
        dataset = data if isinstance(data, Dataset) else self._read(data, strict)
        warn_of_late_history(dataset, past)
        return replace(dataset, notes=[*dataset.notes, *self._compare_size(join_history(dataset, past))]), past

    def outputs_in_stream(
        self,
        dataset: Dataset,
        past: Dataset | None,
        device: torch.device,
        progress: bool = False,
        shown: Literal["all", "past", "none"] = "all",
        watch: Watch | None = None,
    ) -> list[Outputs]:
        """The outputs of a causal model for edges that see what is before them, with their labels.

        Args:
            dataset: with the edges.
            past: the edges before them, if there are any.
            device, progress, watch: as in `outputs`.
            shown: whose labels arrive: those of all edges, of the edges in `past`, or none.
        """
        graph = dataset.graph if past is None else join_history(dataset, past)
        known, count = None, dataset.count("edge")
        if shown != "none" and self.config.shows_labels and self.inputs.known:
            each = [dataset] if past is None else [dataset, past]
            labels = torch.cat([read_labels(one, "edge", self.targets["edge"]) for one in each])
            arrives = ~labels.isnan().all(1)
            arrives[: count if shown == "past" else 0] = False
            known = KnownLabels.in_stream({"edge": labels}, {"edge": arrives})
        outputs = self.outputs(graph, device, progress, known, watch)
        return outputs if past is None else [_first_edges(each, count) for each in outputs]

    def outputs(
        self,
        graph: Graph | GraphSet,
        device: torch.device,
        progress: bool = False,
        known: KnownLabels | None = None,
        watch: Watch | None = None,
    ) -> list[Outputs]:
        """The outputs of each member, on the CPU: in one forward pass, or in several that show known labels.

        The embeddings that `watch` reads are those of the first member.
        """
        inputs, found = self.inputs, list[Outputs]()
        graph = inputs.add(graph)
        passes = 1 if known is None else known.num_passes
        with counting("predicting", self._work(graph) * passes, progress) as tick:
            for number, model in enumerate(self.models):
                own = watch if number == 0 else None
                if known is None or not isinstance(graph, Graph):
                    found.append(_infer(model, graph, device, tick, own))
                    continue
                merged: Outputs | None = None
                for shown, predicted in known.graphs(graph, inputs):
                    merged = merge(merged, _infer(model, shown, device, tick, own), predicted)
                assert merged is not None
                found.append(merged)
        return found

    def embeddings(
        self, graph: Graph | GraphSet, device: torch.device, progress: bool = False
    ) -> list[tuple[Tensor, Tensor, Tensor | None]]:
        """The embeddings of nodes, edges and, of many graphs, graphs by each member, on the CPU."""
        with counting("embedding", self._work(graph), progress) as tick:
            return [embed_graph(model, placed, tick) for model, placed in self._placed(self.inputs.add(graph), device)]

    def known_training_labels(self, dataset: Dataset, task_data: TaskData) -> KnownLabels | None:
        """The labels of the training data that predictions for it are shown; None if the models read no labels."""
        levels = self.inputs.levels
        if not levels or not self.config.shows_labels:
            return None
        if self.inputs.causal:
            return KnownLabels.in_stream({level: task_data.labels[level] for level in levels})
        return KnownLabels.of_training(dataset, task_data, levels)

    def known_labels(self, dataset: Dataset) -> KnownLabels | None:
        """The labels that data carry; None if the models read no labels, or there are none."""
        targets = {level: self.targets[level] for level in self.inputs.levels}
        if not targets or not self.config.shows_labels:
            return None
        if self.inputs.causal:
            labels = {level: read_labels(dataset, level, mine) for level, mine in targets.items()}
            known = KnownLabels.in_stream(labels)
        else:
            known = KnownLabels.of_data(dataset, targets)
        total = sum(int((~labels.isnan().all(1)).sum()) for labels in known.labels.values())
        if not total:
            logger.info("the data carry no labels; predictions of this model improve with those that are known")
            return None
        logger.info("%s in the data %s context of the predictions for other rows (%s ignores them)",
                    count(total, "known label"), plural(total, "is"),
                    name_option("--no-known-labels"))  # fmt: skip
        return known

    def _read(self, data: object, strict: bool) -> Dataset:
        """Read data by the schema of this run."""
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
        if isinstance(dataset.graph, Graph) and "graph" in self.targets:
            raise DataError("the data are one graph, expected many: this run predicts whole graphs")
        if dataset.graph.graph_width != self.config.graph_width and "graph" in self.targets:
            raise DataError(
                f"the data have {dataset.graph.graph_width} features of each graph, expected {self.config.graph_width}"
            )
        return dataset

    def _compare_size(self, graph: Graph | GraphSet) -> list[Note]:
        """A remark on the size of a graph beside that of the training."""
        if self.config.graph_size is None:
            return []
        line, much = GraphSize.of(graph).compare(self.config.graph_size)
        logger.log(logging.WARNING if much else logging.INFO, "%s", line)
        return [Note("size", line)]

    def _work(self, graph: Graph | GraphSet) -> int:
        """The number of graphs to go through, for all members; of ego graphs, one for each node."""
        if self.models[0].ego_hops:
            return graph.num_nodes * len(self.models)
        return (len(graph) if isinstance(graph, GraphSet) else 1) * len(self.models)

    def _placed(self, graph: Graph | GraphSet, device: torch.device) -> list[tuple[Model, Graph | GraphSet]]:
        """Each model and the graph on the device."""
        placed = graph.to(device)
        return [(model.to(device).eval(), placed) for model in self.models]


def _infer(
    model: Model, graph: Graph | GraphSet, device: torch.device, tick: Callable[[int], None], watch: Watch | None
) -> Outputs:
    """The outputs of a model for a graph, computed on a device; on the CPU."""
    with watched(model, watch) as parts:
        model.to(device).eval()
        in_parts = edges_of_part(model, graph) is not None  # which are taken to the device one after the other
        found = infer(model, graph if in_parts else graph.to(device), tick)
    links = None if found.link_inputs is None else found.link_inputs.to("cpu")
    rows = {level: torch.cat(batches) for level, batches in parts.items()}
    return Outputs(_on_cpu(found.by_level), links, _on_cpu(found.unclipped), rows)


def _first_edges(outputs: Outputs, count: int) -> Outputs:
    """The outputs for the first edges alone."""

    def cut(rows: HeadOutputs) -> HeadOutputs:
        return rows[:count] if isinstance(rows, Tensor) else rows.select(torch.arange(count))

    both = outputs.by_level, outputs.unclipped
    by_level, unclipped = ({"edge": cut(each["edge"])} if "edge" in each else {} for each in both)
    watched = {"edge": outputs.watched["edge"][:count]} if "edge" in outputs.watched else {}
    return Outputs(by_level, None, unclipped, watched)


def _on_cpu(rows: Mapping[str, HeadOutputs]) -> dict[str, HeadOutputs]:
    """Outputs on the CPU; those in chunks stay where they are, for they are computed when they are needed."""
    return {level: one.float().cpu() if isinstance(one, Tensor) else one for level, one in rows.items()}
