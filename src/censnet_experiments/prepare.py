"""From the data sets to what the tables train on: features, labels and the splits of many seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from censnet.data.dataset import load_data
from censnet.data.datasets.builtin import read_builtin
from censnet.data.datasets.catalogue import DATASETS
from censnet.data.datasets.citation import normalize_rows, read_citation
from censnet.data.digests import fingerprint
from censnet.data.molecules.featurize import featurize
from censnet.data.splits.links import links
from censnet.data.splits.rules import label_rate, ratio
from censnet.data.tables.files import Tables
from censnet.data.tables.target_spec import parse_targets
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import prepare_dataset
from censnet.settings.presets import make_settings
from censnet.training.task_data import TaskData
from censnet_experiments.bundle import LessonData
from censnet_experiments.cells import TABLES, Cell
from censnet_experiments.packed import Data, LinkData, MoleculeData, NodeData
from censnet_experiments.plan import SECTIONS

SMILES = {"tox21": "smiles", "lipophilicity": "smiles"}


def prepare(table: str, name: str, seeds: Sequence[int]) -> Data:
    """The data of one set as a table trains on them, with the splits of these seeds, which count from 0."""
    if table in SECTIONS:
        return lesson_data(table, name, max(seeds) + 1)
    if table in ("table1", "speed"):
        return node_data(name, max(seeds) + 1)
    return molecule_data(name, max(seeds) + 1) if table == "table2" else link_data(name, seeds)


def node_data(name: str, num_splits: int) -> NodeData:
    """A citation graph, its words divided by their sum in each paper, split by the released rule at the cell's rate."""
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
    return NodeData(graph, citation.labels, len(citation.classes), parts)


def lesson_data(table: str, name: str, num_splits: int) -> LessonData:
    """What `censnet train NAME` trains on, for the splits of each cell: seed s is `--seed s` of the command.

    Molecules have their descriptors with them, which `learn` leaves away where a plan does not ask for them.
    """
    names = [target for target in DATASETS[name].targets if (target == "link") == (table == "links")]
    asked, link = parse_targets(names)
    dataset = load_data(name, target=names, descriptors=table == "molecules")
    lessons = {}
    for cell, about in TABLES[table].items():
        if about.data == name:
            changes = _split_settings(table, about)
            lessons[cell] = [
                prepare_dataset(
                    dataset, asked, link, make_settings("strong", SECTIONS[table], changes, seed), names, ()
                ).task_data
                for seed in range(num_splits)
            ]
    return LessonData({cell: _share_graphs(found) for cell, found in lessons.items()})


def _split_settings(table: str, cell: Cell) -> dict[str, object]:
    if table == "nodes":
        return {"data.split": "label-rate", "data.label_rate": cell.rate}
    return {"data.split": "scaffold" if cell.split == "scaffold" else "ratio"} if table == "molecules" else {}


def _share_graphs(lessons: Sequence[TaskData]) -> list[TaskData]:
    """Lessons whose graphs are equal have the first of them in common."""
    graphs: dict[str, Graph | GraphSet] = {}
    return [
        replace(task_data, graph=graphs.setdefault(fingerprint(task_data.graph), task_data.graph))
        for task_data in lessons
    ]


def molecule_data(name: str, num_splits: int) -> MoleculeData:
    """Molecules with the paper's features, bond types over all of them; what is no molecule is left out.

    The share that is trained on is the cell's; the others are half for validation and half for testing.
    """
    tables = read_builtin(name)
    if not isinstance(tables, Tables) or tables.graphs is None:
        raise ValueError(f"{name} is not a set of molecules, expected one of {', '.join(SMILES)}")
    frame = tables.graphs
    read = featurize(frame[SMILES[name]].tolist(), "paper")
    if read.graphs is None:
        raise ValueError(f"{name} has no molecule that can be read")
    columns = ["exp"] if name == "lipophilicity" else [c for c in frame.columns if c not in (SMILES[name], "mol_id")]
    labels = torch.tensor(frame[columns].to_numpy(np.float32))[read.rows]
    parts = {}
    for cell, about in TABLES["table2"].items():
        if about.data == name:
            rest = (1 - about.rate) / 2
            splits = [ratio(len(labels), (about.rate, rest, rest), seed) for seed in range(num_splits)]
            parts[cell] = torch.stack([torch.from_numpy(split.codes(len(labels))) for split in splits])
    return MoleculeData(read.graphs, labels, name == "lipophilicity", parts)


def link_data(name: str, seeds: Sequence[int]) -> LinkData:
    """A citation graph with 5 % of its links hidden for validation and 10 % for testing, anew for each seed.

    Its words are as they are given, as in the code of VGAE: divided by their sum, they are too small to learn from.
    """
    graph = read_citation(name).graph
    splits = {seed: links(graph, seed=seed) for seed in sorted({0, *seeds})}

    def judged(linked: torch.Tensor, not_linked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        truth = torch.cat([torch.ones(linked.shape[1]), torch.zeros(not_linked.shape[1])])
        return torch.cat([linked, not_linked], dim=1), truth

    return LinkData(
        graph,
        {seed: split.rows.train for seed, split in splits.items()},
        {seed: judged(split.validation_links, split.validation_negatives) for seed, split in splits.items()},
        {seed: judged(split.test_links, split.test_negatives) for seed, split in splits.items()},
    )
