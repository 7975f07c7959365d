"""The same training without the edge stream, and without the columns of edges."""

from __future__ import annotations

from dataclasses import replace

import torch

from censnet.comparison.skipped import Skipped
from censnet.levels import Level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import Prepared


def without_edge_stream(prepared: Prepared) -> Prepared:
    """The same with a node layer in the place of each edge layer: edges are read, and never updated."""
    if not any("E" in recipe.model.layers for recipe in prepared.recipes):
        raise Skipped("the model has no edge layer")
    if any(one.level is Level.EDGE for one in prepared.targets) and prepared.settings.model.last_layer_is_head:
        raise Skipped("the last edge layer is the head (model.last_layer_is_head)")
    recipes = [one.with_model({"layers": one.model.layers.replace("E", "N")}) for one in prepared.recipes]
    return replace(prepared, recipes=recipes)


def without_edge_features(prepared: Prepared) -> Prepared:
    """The same where all edges have one constant feature; which nodes they join, and known labels, stay."""
    graph = prepared.task_data.graph
    if prepared.data.schema.edges.structure != "none" or graph.edge_width == 0 or len(graph.edges) == 0:
        raise Skipped("edges have no columns")
    zeros = None if prepared.task_data.zeros is None else (prepared.task_data.zeros[0], torch.tensor([torch.nan]))
    task_data = replace(prepared.task_data, graph=_constant(graph), zeros=zeros)
    return replace(prepared, data=replace(prepared.data, graph=_constant(prepared.data.graph)), task_data=task_data)


def _constant(graph: Graph | GraphSet) -> Graph | GraphSet:
    return graph.with_features(graph.nodes, torch.ones_like(graph.edges[:, :1]), odd_width=0)
