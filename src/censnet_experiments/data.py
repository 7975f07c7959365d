"""Datasets as the tables train on them: features, labels and the splits of many seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from censnet.data.datasets.builtin import read_builtin
from censnet.data.datasets.catalogue import DATASETS
from censnet.data.datasets.citation import normalize_rows, read_citation
from censnet.data.digests import fingerprint
from censnet.data.load import read_data
from censnet.data.molecules.featurize import featurize
from censnet.data.splits.links import links
from censnet.data.splits.splitters import label_rate, ratio
from censnet.data.tables.files import Tables
from censnet.data.tables.target_spec import parse_targets
from censnet.errors import DataError
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import prepare_typed
from censnet.settings.presets import make_settings
from censnet.training.task_data import TaskData
from censnet_experiments.cells import TABLES, Cell
from censnet_experiments.edge_tasks import EdgeTasks
from censnet_experiments.plan import SECTIONS

SMILES = {"tox21": "smiles", "lipophilicity": "smiles"}


@dataclass(frozen=True, eq=False)
class NodeData:
    """A graph whose nodes are classified.

    Args:
        graph: with the features that every method gets.
        labels: (N,), -1 for none.
        parts: cell -> (seeds, N): 0 train, 1 validation, 2 test, -1 none; row s is the split of seed s.
        num_classes: number of classes.
    """

    graph: Graph
    labels: Tensor
    parts: dict[str, Tensor]
    num_classes: int


@dataclass(frozen=True, eq=False)
class MoleculeData:
    """Many graphs with one or more targets each.

    Args:
        graphs: the molecules.
        labels: (graphs, targets), NaN for none.
        regression: whether the targets are numbers rather than binary labels.
        parts: cell -> (seeds, graphs), as in `NodeData`.
    """

    graphs: GraphSet
    labels: Tensor
    regression: bool
    parts: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class LinkData:
    """A graph some of whose links are held out.

    Args:
        graph: with every link.
        train: seed -> the edges of the message graph.
        validation, test: seed -> positive pairs followed by as many negative pairs, and their labels (1 and 0).
    """

    graph: Graph
    train: dict[int, Tensor]
    validation: dict[int, tuple[Tensor, Tensor]]
    test: dict[int, tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class PresetData:
    """Inputs of the library's own loop: cell -> the `TaskData` of every seed, from 0 on; many share one graph."""

    task_data: dict[str, list[TaskData]]


Data = NodeData | MoleculeData | LinkData | PresetData | EdgeTasks


def prepare_data(table: str, name: str, seeds: Sequence[int]) -> Data:
    """Read one dataset as a table trains on it, with the splits of these seeds, which count from 0."""
    if table == "edges":
        return EdgeTasks(name)
    if table in SECTIONS:
        return prepare_preset_data(table, name, max(seeds) + 1)
    if table in ("table1", "speed"):
        return prepare_node_data(name, max(seeds) + 1)
    return prepare_molecule_data(name, max(seeds) + 1) if table == "table2" else prepare_link_data(name, seeds)


def prepare_node_data(name: str, num_splits: int) -> NodeData:
    """Read a citation graph: bag-of-words rows normalized to sum 1, split by the released rule at the cell's rate."""
    citation = read_citation(name)
    graph = Graph(normalize_rows(citation.graph.nodes), citation.graph.edges, citation.graph.ends)
    labels = np.where(citation.labels < 0, np.nan, citation.labels)
    parts = {
        cell: torch.stack(
            [torch.from_numpy(label_rate(labels, about.rate, seed).codes(len(labels))) for seed in range(num_splits)]
        )
        for cell, about in TABLES["table1"].items()
        if about.data == name
    }
    return NodeData(graph, citation.labels, parts, len(citation.classes))


def prepare_preset_data(table: str, name: str, num_splits: int) -> PresetData:
    """Prepare the inputs of `censnet train NAME` for the splits of each cell: seed s is `--seed s` of the command.

    Molecules always have their descriptors; `preset_tables` removes them for plans that do not use them.
    """
    names = [target for target in DATASETS[name].targets if (target == "link") == (table == "links")]
    specs, link = parse_targets(names)
    typed = read_data(name, target=names, descriptors=table == "molecules", scaffolds=table == "molecules")
    found = {}
    for cell, about in TABLES[table].items():
        if about.data == name:
            changes = _split_settings(table, about)
            found[cell] = [
                prepare_typed(
                    typed, specs, link, make_settings("strong", SECTIONS[table], changes, seed), names, ()
                ).task_data
                for seed in range(num_splits)
            ]
    return PresetData({cell: _share_graphs(task_data) for cell, task_data in found.items()})


def _split_settings(table: str, cell: Cell) -> dict[str, object]:
    if table == "nodes":
        return {"data.split": "label-rate", "data.label_rate": cell.rate}
    return {"data.split": "scaffold" if cell.split == "scaffold" else "ratio"} if table == "molecules" else {}


def _share_graphs(task_data: Sequence[TaskData]) -> list[TaskData]:
    """Let inputs with equal graphs share the first of them."""
    graphs: dict[str, Graph | GraphSet] = {}
    return [replace(one, graph=graphs.setdefault(fingerprint(one.graph), one.graph)) for one in task_data]


def prepare_molecule_data(name: str, num_splits: int) -> MoleculeData:
    """Read molecules with the paper's features, bond types over all of them; SMILES that do not parse are left out.

    The training share is the cell's; the others are half for validation and half for testing.
    """
    tables = read_builtin(name)
    if not isinstance(tables, Tables) or tables.graphs is None:
        raise DataError(f"{name} is not a set of molecules, expected one of {', '.join(SMILES)}")
    frame = tables.graphs
    read = featurize(frame[SMILES[name]].tolist(), "paper")
    if read.graphs is None:
        raise DataError(f"{name} has no molecule that can be read")
    columns = ["exp"] if name == "lipophilicity" else [c for c in frame.columns if c not in (SMILES[name], "mol_id")]
    labels = torch.tensor(frame[columns].to_numpy(np.float32))[read.rows]
    parts = {}
    for cell, about in TABLES["table2"].items():
        if about.data == name:
            rest = (1 - about.rate) / 2
            splits = [ratio(len(labels), (about.rate, rest, rest), seed) for seed in range(num_splits)]
            parts[cell] = torch.stack([torch.from_numpy(split.codes(len(labels))) for split in splits])
    return MoleculeData(read.graphs, labels, name == "lipophilicity", parts)


def prepare_link_data(name: str, seeds: Sequence[int]) -> LinkData:
    """Read a citation graph and hold out 5 % of its links for validation and 10 % for testing, again for each seed.

    The bags of words are not normalized, as in the code of VGAE: normalized features are too small to train on.
    """
    graph = read_citation(name).graph
    splits = {seed: links(graph, seed=seed) for seed in sorted({0, *seeds})}

    def labeled(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
        labels = torch.cat([torch.ones(positive.shape[1]), torch.zeros(negative.shape[1])])
        return torch.cat([positive, negative], dim=1), labels

    return LinkData(
        graph,
        {seed: split.rows.train for seed, split in splits.items()},
        {seed: labeled(split.validation_links, split.validation_negatives) for seed, split in splits.items()},
        {seed: labeled(split.test_links, split.test_negatives) for seed, split in splits.items()},
    )
