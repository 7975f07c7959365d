"""Data sets and their splits as one safetensors file each, for a machine that has torch and none of our readers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet_experiments.bundle import LessonData, from_tensors, to_tensors
from censnet_experiments.plan import Plan


@dataclass(frozen=True, eq=False)
class NodeData:
    """A graph whose nodes are classified.

    Args:
        graph: with the features that every method gets.
        labels: (N,), -1 for none.
        num_classes: how many.
        parts: for each cell (seeds, N): 0 train, 1 validation, 2 test, -1 none; row s is the split of seed s.
    """

    graph: Graph
    labels: Tensor
    num_classes: int
    parts: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class MoleculeData:
    """Many graphs with one or more targets each.

    Args:
        graphs: the molecules.
        labels: (graphs, targets), NaN for none.
        regression: whether the targets are numbers rather than yes or no.
        parts: for each cell (seeds, graphs), as in `NodeData`.
    """

    graphs: GraphSet
    labels: Tensor
    regression: bool
    parts: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class LinkData:
    """A graph some of whose links are hidden.

    Args:
        graph: with every link.
        seen: for each seed, the edges that are trained on.
        validation, test: for each seed, linked pairs and then as many that are not, and which is which (1 and 0).
    """

    graph: Graph
    seen: dict[int, Tensor]
    validation: dict[int, tuple[Tensor, Tensor]]
    test: dict[int, tuple[Tensor, Tensor]]


Data = NodeData | MoleculeData | LinkData | LessonData


@dataclass(frozen=True, eq=False)
class Pack:
    """What travels: a data set, its table and name, and the plans of the methods."""

    table: str
    name: str
    data: Data
    plans: Sequence[Plan[Any]] = ()


def write_pack(path: Path, pack: Pack) -> None:
    """Write a pack. Nothing in the file is code."""
    tensors, facts = _tensors(pack.data), _facts(pack.data)
    if isinstance(pack.data, LessonData):
        tensors, lessons = to_tensors(pack.data)
        facts |= {"lessons": lessons}
    about = {
        "table": pack.table,
        "name": pack.name,
        "plans": json.dumps([json.loads(plan.to_json()) for plan in pack.plans]),
        "about": json.dumps(facts),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    save_file(whole, path, about)


def read_pack(path: Path) -> Pack:
    """Read what `write_pack` wrote."""
    with safe_open(path, framework="pt") as file:
        about: dict[str, str] = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    facts = json.loads(about["about"])
    plans = [Plan.from_json(json.dumps(plan)) for plan in json.loads(about["plans"])]
    return Pack(about["table"], about["name"], _KINDS[facts.pop("kind")](tensors, facts), plans)


def to_device(data: NodeData, device: torch.device) -> NodeData:
    """The same data on another device."""
    parts = {cell: part.to(device) for cell, part in data.parts.items()}
    return NodeData(data.graph.to(device), data.labels.to(device), data.num_classes, parts)


# -- tensors by name --------------------------------------------------------------------------------------------------


def _facts(data: Data) -> dict[str, object]:
    if isinstance(data, NodeData):
        return {"kind": "nodes", "num_classes": data.num_classes, "node_width": data.graph.node_width}
    if isinstance(data, MoleculeData):
        return {"kind": "molecules", "regression": data.regression}
    if isinstance(data, LessonData):
        return {"kind": "lessons"}
    return {"kind": "links", "node_width": data.graph.node_width}


def _tensors(data: Data) -> dict[str, Tensor]:
    if isinstance(data, LessonData):
        return {}
    if isinstance(data, MoleculeData):
        fields = ("nodes", "edges", "ends", "node_offset", "edge_offset")
        found = {f"graphs.{name}": _small(getattr(data.graphs, name)) for name in fields}
        return found | {"labels": data.labels} | {f"parts.{cell}": part for cell, part in data.parts.items()}
    found = _graph_tensors(data.graph)
    if isinstance(data, NodeData):
        return found | {"labels": data.labels} | {f"parts.{cell}": part for cell, part in data.parts.items()}
    for seed, rows in data.seen.items():
        found[f"seen.{seed}"] = rows
        for name, pairs in (("validation", data.validation[seed]), ("test", data.test[seed])):
            found[f"{name}.pairs.{seed}"], found[f"{name}.linked.{seed}"] = pairs
    return found


def _small(tensor: Tensor) -> Tensor:
    """Features that are whole numbers below 256, as ones and zeros are, in a byte each."""
    byte = tensor.to(torch.uint8)
    return byte if tensor.is_floating_point() and torch.equal(byte.to(tensor.dtype), tensor) else tensor


def _graph_tensors(graph: Graph) -> dict[str, Tensor]:
    words = graph.nodes if graph.nodes.layout == torch.sparse_csr else graph.nodes.to_sparse_csr()
    return {
        "nodes.crow": words.crow_indices(),
        "nodes.column": words.col_indices().int(),
        "nodes.value": words.values(),
        "edges": graph.edges,
        "ends": graph.ends,
    }


def _graph(tensors: Mapping[str, Tensor], node_width: int) -> Graph:
    crow = tensors["nodes.crow"]
    words = torch.sparse_csr_tensor(
        crow,
        tensors["nodes.column"].long(),
        tensors["nodes.value"],
        (len(crow) - 1, node_width),
        check_invariants=True,
    )
    return Graph(words, tensors["edges"], tensors["ends"])


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _read_nodes(tensors: Mapping[str, Tensor], facts: Mapping[str, int]) -> NodeData:
    graph = _graph(tensors, facts["node_width"])
    return NodeData(graph, tensors["labels"], facts["num_classes"], _under(tensors, "parts."))


def _read_molecules(tensors: Mapping[str, Tensor], facts: Mapping[str, int]) -> MoleculeData:
    parts = _under(tensors, "graphs.")
    graphs = GraphSet(**parts | {name: parts[name].float() for name in ("nodes", "edges")})
    return MoleculeData(graphs, tensors["labels"], bool(facts["regression"]), _under(tensors, "parts."))


def _read_links(tensors: Mapping[str, Tensor], facts: Mapping[str, int]) -> LinkData:
    seen = {int(seed): rows for seed, rows in _under(tensors, "seen.").items()}
    judged = [
        {seed: (tensors[f"{name}.pairs.{seed}"], tensors[f"{name}.linked.{seed}"]) for seed in seen}
        for name in ("validation", "test")
    ]
    return LinkData(_graph(tensors, facts["node_width"]), seen, *judged)


_KINDS: dict[str, Callable[[Mapping[str, Tensor], Mapping[str, Any]], Data]] = {
    "lessons": lambda tensors, facts: from_tensors(tensors, facts["lessons"]),
    "nodes": _read_nodes,
    "molecules": _read_molecules,
    "links": _read_links,
}
