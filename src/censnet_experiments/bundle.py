"""What the library would train on, for each cell and seed, and the same as tensors of one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor

from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split import Split
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.tasks.targets import Target
from censnet.training.task_data import TaskData

PAIRS = ("validation_links", "validation_negatives", "test_links", "test_negatives")


@dataclass(frozen=True, eq=False)
class LessonData:
    """For each cell the lesson of every seed, from 0 on; many have their graph in common."""

    lessons: dict[str, list[TaskData]]


class _Shelf:
    """Tensors by name; one that is there already is not put there again."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.names: dict[str, str] = {}

    def put(self, tensor: Tensor) -> str:
        tensor = tensor.contiguous()
        key = (
            f"{tensor.dtype} {tuple(tensor.shape)} {sha256(tensor.view(-1).view(torch.uint8).numpy().data).hexdigest()}"
        )
        if key not in self.names:
            self.names[key] = str(len(self.names))
            self.tensors[self.names[key]] = tensor
        return self.names[key]


def to_tensors(data: LessonData) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of lessons, each once, and by which names a lesson is made of them."""
    shelf = _Shelf()
    return shelf.tensors, {
        cell: [_shelve_lesson(task_data, shelf) for task_data in lessons] for cell, lessons in data.lessons.items()
    }


def from_tensors(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> LessonData:
    """What was shelved. Lessons of one graph have it in common again."""
    graphs: dict[str, Graph | GraphSet] = {}
    return LessonData(
        {cell: [_take_lesson(tensors, about, graphs) for about in lessons] for cell, lessons in facts.items()}
    )


def _shelve_lesson(task_data: TaskData, shelf: _Shelf) -> dict[str, Any]:
    return {
        "graph": _shelve_graph(task_data.graph, shelf),
        "targets": [target.model_dump(mode="json") for target in task_data.targets],
        "labels": {level: shelf.put(labels) for level, labels in task_data.labels.items()},
        "parts": {level: shelf.put(parts.to(torch.int8)) for level, parts in task_data.parts.items()},
        "links": None if task_data.links is None else _shelve_links(task_data.links, shelf),
        "node_features": task_data.node_features,
        "censoring": {level: shelf.put(sides) for level, sides in task_data.censoring.items()},
    }


def _take_lesson(
    tensors: Mapping[str, Tensor], about: Mapping[str, Any], graphs: dict[str, Graph | GraphSet]
) -> TaskData:
    key = str(about["graph"])
    if key not in graphs:
        graphs[key] = _take_graph(tensors, about["graph"])
    return TaskData(
        graphs[key],
        [Target.model_validate(target) for target in about["targets"]],
        {level: tensors[name] for level, name in about["labels"].items()},
        {level: tensors[name].long() for level, name in about["parts"].items()},
        None if about["links"] is None else _take_links(tensors, about["links"]),
        node_features=about["node_features"],
        censoring={level: tensors[name] for level, name in about.get("censoring", {}).items()},
    )


def _shelve_graph(graph: Graph | GraphSet, shelf: _Shelf) -> dict[str, Any]:
    found: dict[str, Any] = {"edges": shelf.put(graph.edges), "ends": shelf.put(graph.ends)}
    if isinstance(graph, GraphSet):
        whole = () if graph.graph_features is None else ("graph_features",)
        every = ("nodes", "node_offset", "edge_offset", *whole)
        return found | {name: shelf.put(getattr(graph, name)) for name in every}
    if graph.nodes.layout == torch.strided:
        return found | {"nodes": shelf.put(graph.nodes)}
    sparse = (graph.nodes.crow_indices(), graph.nodes.col_indices(), graph.nodes.values())
    return found | {"sparse": [shelf.put(part) for part in sparse], "width": graph.nodes.shape[1]}


def _take_graph(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Graph | GraphSet:
    if "sparse" in about:
        crow, column, value = (tensors[name] for name in about["sparse"])
        shape = (len(crow) - 1, about["width"])
        nodes = torch.sparse_csr_tensor(crow, column, value, shape, check_invariants=True)
        return Graph(nodes, tensors[about["edges"]], tensors[about["ends"]])
    parts = {name: tensors[where] for name, where in about.items()}
    return GraphSet(**parts) if "node_offset" in parts else Graph(parts["nodes"], parts["edges"], parts["ends"])


def _shelve_links(links: LinkSplit, shelf: _Shelf) -> dict[str, Any]:
    rows = [shelf.put(part) for part in links.rows.parts.values()]
    return {"rows": rows} | {name: shelf.put(getattr(links, name)) for name in PAIRS}


def _take_links(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> LinkSplit:
    return LinkSplit(Split(*(tensors[name] for name in about["rows"])), *(tensors[about[name]] for name in PAIRS))
