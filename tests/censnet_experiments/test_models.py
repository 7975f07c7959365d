"""Models of the paper's tables: every spec builds its model."""

from __future__ import annotations

import pytest
import torch

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet_experiments.data import NodeData
from censnet_experiments.models import CLASSICAL_MODELS, LINK_MODELS, MODELS, MOLECULE_MODELS, build_node_model
from censnet_experiments.spec import Spec, load_specs

SPECS = [spec for table in MODELS for spec in load_specs(table).values()]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.table}-{spec.method}")
def test_every_spec_builds_its_model(spec: Spec, citations: NodeData) -> None:
    options = dict(spec.recipe.options)
    graph = citations.graph
    if spec.table in ("table1", "speed"):
        model = build_node_model(spec.recipe.model, graph, 3, options, seed=0)
        assert model(*model.inputs(graph)).shape == (60, 3)
    elif spec.recipe.model in CLASSICAL_MODELS:
        assert CLASSICAL_MODELS[spec.recipe.model](**options).num_candidates >= 1
    elif spec.table == "table2":
        dense = Graph(graph.nodes.to_dense(), graph.edges, graph.ends)
        batch = GraphSet.pack([dense, dense]).batch(torch.tensor([0, 1]))
        model = MOLECULE_MODELS[spec.recipe.model](batch, 12, **options)
        assert model(*model.inputs(batch)).shape == (2, 12)
    else:
        model = LINK_MODELS[spec.recipe.model](graph, **options)
        if spec.recipe.model != "deepwalk":
            assert len(model.embed(1, 0.01, 0, lambda embedding: 0.0)) == 60


def test_models_have_one_name_each() -> None:
    methods = {spec.method for spec in load_specs("table3").values() if spec.section == "table"}
    assert methods == set(MODELS["table3"])


def test_released_edges_take_one_direction_for_papers_that_cite_each_other(citations: NodeData) -> None:
    both = Graph(citations.graph.nodes, citations.graph.edges.clone(), citations.graph.ends)
    both.edges[:, 1:] = 1
    model = build_node_model("censnet", both, 3, {"released_edges": True}, seed=0)
    _, edges, _ = model.inputs(both)
    torch.testing.assert_close(edges.sum(1), torch.ones(both.num_edges))
    assert bool((edges[:, 2] == 0).all())
