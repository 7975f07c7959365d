"""Bundles: a dataset with its splits and plans in one safetensors file, for a machine without the datasets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from censnet.data.splits.links import LinkSplit
from censnet.data.splits.split_file import Split
from censnet.errors import ArgumentError
from censnet.files import tensor_digest
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.tasks.targets import Target
from censnet.training.task_data import TaskData
from censnet_experiments.data import Data, LinkData, MoleculeData, NodeData, PresetData
from censnet_experiments.edge_tasks import EdgeTasks
from censnet_experiments.plan import Plan

PAIRS = ("validation_links", "validation_negatives", "test_links", "test_negatives")


@dataclass(frozen=True, eq=False)
class Bundle:
    """A dataset, its table and name, and the plans of the methods to train on it."""

    table: str
    name: str
    data: Data
    plans: Sequence[Plan[Any]] = ()


def write_bundle(path: Path, bundle: Bundle) -> None:
    """Write a bundle. Nothing in the file is code."""
    store = TensorStore()
    about = {
        "table": bundle.table,
        "name": bundle.name,
        "plans": json.dumps([json.loads(plan.to_json()) for plan in bundle.plans]),
        "data": json.dumps(_put_data(bundle.data, store)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(store.tensors, path, about)


def read_bundle(path: Path) -> Bundle:
    """Read what `write_bundle` wrote."""
    with safe_open(path, framework="pt") as file:
        about: dict[str, str] = file.metadata()
        store = TensorStore({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 - no mapping
    plans = [Plan.from_json(json.dumps(plan)) for plan in json.loads(about["plans"])]
    return Bundle(about["table"], about["name"], _take_data(json.loads(about["data"]), store), plans)


@dataclass(frozen=True)
class TensorStore:
    """Tensors by name, equal ones once; floating-point features that are integers below 256 take a byte each."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def put(self, tensor: Tensor) -> str:
        """Add a tensor. -> its name, which ends with its type"""
        tensor, dtype = tensor.clone(memory_format=torch.contiguous_format), str(tensor.dtype).removeprefix("torch.")
        if tensor.is_floating_point() and not tensor.signbit().any():
            byte = tensor.to(torch.uint8)
            tensor = byte if torch.equal(byte.to(tensor.dtype), tensor) else tensor
        key = tensor_digest({dtype: tensor})
        if key not in self.names:
            self.names[key] = f"{len(self.names)}.{dtype}"
            self.tensors[self.names[key]] = tensor
        return self.names[key]

    def take(self, name: str) -> Tensor:
        """Read a tensor."""
        dtype: torch.dtype = getattr(torch, name.partition(".")[2])
        return self.tensors[name].to(dtype)


# -- data as names of tensors ------------------------------------------------------------------------------------------


def _put_data(data: Data, store: TensorStore) -> dict[str, Any]:
    if isinstance(data, EdgeTasks):
        raise ArgumentError("the table edges has no bundles: `censnet reproduce edges` needs its data beside it")
    if isinstance(data, PresetData):
        found = {cell: [_put_task_data(one, store) for one in some] for cell, some in data.task_data.items()}
        return {"kind": "preset", "task_data": found}
    if isinstance(data, LinkData):
        held_out = {
            part: {seed: [store.put(tensor) for tensor in pairs] for seed, pairs in by_seed.items()}
            for part, by_seed in (("validation", data.validation), ("test", data.test))
        }
        train = {seed: store.put(edges) for seed, edges in data.train.items()}
        return {"kind": "links", "graph": _put_graph(data.graph, store), "train": train, **held_out}
    parts = {cell: store.put(part) for cell, part in data.parts.items()}
    about = {"labels": store.put(data.labels), "parts": parts}
    if isinstance(data, NodeData):
        graph = _put_graph(data.graph, store)
        return {"kind": "nodes", "graph": graph, "num_classes": data.num_classes, **about}
    return {"kind": "molecules", "graph": _put_graph(data.graphs, store), "regression": data.regression, **about}


def _take_data(about: Mapping[str, Any], store: TensorStore) -> Data:
    if about["kind"] == "preset":
        graphs: dict[str, Graph | GraphSet] = {}
        return PresetData(
            {cell: [_take_task_data(one, store, graphs) for one in some] for cell, some in about["task_data"].items()}
        )
    graph: Any = _take_graph(about["graph"], store)
    if about["kind"] == "links":
        train = {int(seed): store.take(edges) for seed, edges in about["train"].items()}
        validation, test = (
            {int(seed): (store.take(pairs), store.take(labels)) for seed, (pairs, labels) in about[part].items()}
            for part in ("validation", "test")
        )
        return LinkData(graph, train, validation, test)
    labels, parts = store.take(about["labels"]), {cell: store.take(part) for cell, part in about["parts"].items()}
    if about["kind"] == "nodes":
        return NodeData(graph, labels, parts, about["num_classes"])
    return MoleculeData(graph, labels, about["regression"], parts)


def _put_task_data(task_data: TaskData, store: TensorStore) -> dict[str, Any]:
    return {
        "graph": _put_graph(task_data.graph, store),
        "targets": [target.model_dump(mode="json") for target in task_data.targets],
        "labels": {level: store.put(labels) for level, labels in task_data.labels.items()},
        "parts": {level: store.put(parts.to(torch.int8)) for level, parts in task_data.parts.items()},
        "links": None if task_data.links is None else _put_links(task_data.links, store),
        "node_features": task_data.node_features,
        "censoring": {level: store.put(sides) for level, sides in task_data.censoring.items()},
    }


def _take_task_data(about: Mapping[str, Any], store: TensorStore, graphs: dict[str, Graph | GraphSet]) -> TaskData:
    """Inputs of one graph share it again."""
    key = str(about["graph"])
    if key not in graphs:
        graphs[key] = _take_graph(about["graph"], store)
    return TaskData(
        graphs[key],
        [Target.model_validate(target) for target in about["targets"]],
        {level: store.take(name) for level, name in about["labels"].items()},
        {level: store.take(name).long() for level, name in about["parts"].items()},
        None if about["links"] is None else _take_links(about["links"], store),
        node_features=about["node_features"],
        censoring={level: store.take(name) for level, name in about["censoring"].items()},
    )


def _put_graph(graph: Graph | GraphSet, store: TensorStore) -> dict[str, Any]:
    found: dict[str, Any] = {"edges": store.put(graph.edges), "ends": store.put(graph.ends)}
    if isinstance(graph, GraphSet):
        names = ("nodes", "node_offset", "edge_offset", *(() if graph.graph_features is None else ("graph_features",)))
        return found | {name: store.put(getattr(graph, name)) for name in names}
    if graph.nodes.layout == torch.strided:
        return found | {"nodes": store.put(graph.nodes)}
    sparse = (graph.nodes.crow_indices(), graph.nodes.col_indices(), graph.nodes.values())
    return found | {"sparse": [store.put(tensor) for tensor in sparse], "width": graph.nodes.shape[1]}


def _take_graph(about: Mapping[str, Any], store: TensorStore) -> Graph | GraphSet:
    if "sparse" in about:
        crow, column, value = (store.take(name) for name in about["sparse"])
        shape = (len(crow) - 1, about["width"])
        nodes = torch.sparse_csr_tensor(crow, column, value, shape, check_invariants=True)
        return Graph(nodes, store.take(about["edges"]), store.take(about["ends"]))
    tensors = {field: store.take(name) for field, name in about.items()}
    if "node_offset" in tensors:
        return GraphSet(**tensors)  # type: ignore[arg-type]
    return Graph(tensors["nodes"], tensors["edges"], tensors["ends"])


def _put_links(links: LinkSplit, store: TensorStore) -> dict[str, Any]:
    rows = [store.put(part) for part in links.rows.parts.values()]
    return {"rows": rows} | {name: store.put(getattr(links, name)) for name in PAIRS}


def _take_links(about: Mapping[str, Any], store: TensorStore) -> LinkSplit:
    split = Split(*(store.take(name) for name in about["rows"]))
    return LinkSplit(split, *(store.take(about[name]) for name in PAIRS))
