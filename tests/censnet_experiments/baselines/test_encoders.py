"""Baseline encoders have the published layers, train batched members as CensNet does, and by the same loop."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
import torch
from samples import payments, quick
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GATConv, GCNConv

from censnet.errors import SettingsError
from censnet.nn.ensemble import count_members, split_members, stack_members
from censnet.nn.kernels import Hop, PageRank
from censnet.ops import Incidence
from censnet.ops.graph import Graph
from censnet.pipeline.fit_run import make_run
from censnet.pipeline.prepare import prepare
from censnet.selection.self_training import fit_ensemble
from censnet.settings import build
from censnet.settings.build import MakeEncoder
from censnet.settings.presets import make_settings
from censnet.settings.schema import ModelSettings
from censnet.tasks.targets import Target
from censnet.training.devices import make_accelerator
from censnet.training.optim import make_optimizer
from censnet.training.task_data import build_model
from censnet_experiments.baselines.attention import attend, neighbors_of, propagate
from censnet_experiments.baselines.convolutions import both_ways
from censnet_experiments.baselines.encoders import (
    HEADS,
    Attention,
    BaselineEncoder,
    BaselineName,
    Layer,
    baseline_encoder,
)
from censnet_experiments.data import NodeData

PLAIN: dict[str, object] = {"model.pre_layers": 0, "model.residual": False}  # what the peers have none of

BASELINES: tuple[BaselineName, ...] = ("gcn", "appnp", "gat")
MODEL = ModelSettings(hidden=16, dropout=0.6, kernel="pagerank", kernel_options={"steps": 4, "teleport": 0.2})
TANGLE = Incidence(torch.tensor([[0, 1, 2, 1, 3, 3, 3], [1, 2, 0, 0, 3, 0, 3]]), 5)  # parallel, loops, an isolated node
SIMPLE = Incidence(torch.tensor([[0, 1, 2, 3], [1, 2, 0, 0]]), 5)  # the same without what is parallel, and loops


def double(graph: Graph) -> Graph:
    return Graph(graph.nodes.to_dense().double(), graph.edges.double(), graph.ends)


def made(name: BaselineName, graph: Graph, settings: ModelSettings = MODEL, **options: object) -> BaselineEncoder:
    """A baseline in float64 whose biases are not 0."""
    encoder = cast(
        BaselineEncoder, baseline_encoder(name, **options)(graph.node_width, graph.edge_width, settings)
    ).double()  # type: ignore[arg-type]
    for layer in encoder.layers:
        nn.init.normal_(layer.bias)
    return encoder


def embedded(encoder: nn.Module, graph: Graph) -> Tensor:
    nodes, edges = encoder(graph.nodes, graph.edges, graph.incidence)
    assert torch.equal(edges, graph.edges)
    return nodes


# -- as published -----------------------------------------------------------------------------------------------------


def test_gcn_of_one_hop_has_the_layers_of_pytorch_geometric(citations: NodeData) -> None:
    graph = double(citations.graph)
    encoder, nodes = made("gcn", graph, kernel=Hop()).eval(), graph.nodes
    for layer in encoder.layers:
        theirs = GCNConv(layer.in_width, layer.out_width).double()
        theirs.lin.weight.data, theirs.bias.data = layer.weight.data.t(), layer.bias.data
        nodes = theirs(nodes, both_ways(graph)).relu()
    torch.testing.assert_close(embedded(encoder, graph), nodes)


def test_gat_of_one_hop_has_the_layers_of_pytorch_geometric(citations: NodeData) -> None:
    graph = double(citations.graph)
    encoder, nodes = made("gat", graph, kernel=Hop()).eval(), graph.nodes
    for layer in encoder.layers:
        theirs = GATConv(layer.in_width, layer.out_width // HEADS, HEADS).double()
        theirs.lin.weight.data, theirs.bias.data = layer.weight.data.t(), layer.bias.data
        theirs.att_src.data, theirs.att_dst.data = layer.propagate.source.data[None], layer.propagate.target.data[None]
        nodes = theirs(nodes, both_ways(graph)).relu()
    torch.testing.assert_close(embedded(encoder, graph), nodes)


def test_appnp_has_the_propagation_of_pytorch_geometric(citations: NodeData) -> None:
    graph = double(citations.graph)
    encoder, nodes = made("appnp", graph).eval(), graph.nodes
    for layer in encoder.layers:
        nodes = torch.relu(nodes @ layer.weight + layer.bias)
    torch.testing.assert_close(embedded(encoder, graph), APPNP(4, 0.2)(nodes, both_ways(graph)))


def dense_attention(layer: Layer, nodes: Tensor, incidence: Incidence) -> Tensor:
    """PageRank by attention, written out: (heads, N, N) matrices."""
    spread = cast(Attention, layer.propagate)
    adjacency = torch.eye(incidence.num_nodes, dtype=torch.bool)
    adjacency[incidence.ends[0], incidence.ends[1]] = adjacency[incidence.ends[1], incidence.ends[0]] = True
    x = (nodes @ layer.weight).view(incidence.num_nodes, spread.heads, -1).transpose(0, 1)
    score = (x @ spread.target.unsqueeze(2)) + (x @ spread.source.unsqueeze(2)).transpose(1, 2)
    alpha = nn.functional.leaky_relu(score, 0.2).masked_fill(~adjacency, -torch.inf).softmax(2)
    h = x
    for _ in range(4):
        h = 0.8 * alpha @ h + 0.2 * x
    return h.transpose(0, 1).flatten(1) + layer.bias


def test_attention_has_the_hops_of_the_kernel() -> None:
    nodes = torch.randn(5, 3, dtype=torch.float64)
    graph = Graph(nodes, torch.ones(7, 1, dtype=torch.float64), TANGLE.ends)
    encoder = made("gat", graph).eval()
    first, second = encoder.layers
    expected = dense_attention(second, dense_attention(first, nodes, TANGLE).relu(), TANGLE).relu()
    torch.testing.assert_close(embedded(encoder, graph), expected)


@pytest.mark.parametrize("name", BASELINES)
def test_parallel_edges_and_loops_count_as_distinct_neighbors(name: BaselineName) -> None:
    nodes = torch.randn(5, 3, dtype=torch.float64)
    tangle = Graph(nodes, torch.ones(7, 1, dtype=torch.float64), TANGLE.ends)
    simple = Graph(nodes, torch.ones(4, 1, dtype=torch.float64), SIMPLE.ends)
    encoder = made(name, tangle).eval()
    torch.testing.assert_close(embedded(encoder, tangle), embedded(encoder, simple))


@pytest.mark.parametrize(
    "incidence", [TANGLE, Incidence(torch.zeros(2, 0, dtype=torch.long), 3)], ids=["edges", "none"]
)
def test_attention_has_the_gradients_of_its_formula(incidence: Incidence) -> None:
    near = neighbors_of(incidence)
    shapes = ((incidence.num_nodes, 6), (incidence.num_nodes, 2), (incidence.num_nodes, 2))
    inputs = tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    assert torch.autograd.gradcheck(lambda x, t, s: propagate(x, *attend(t, s, near), near), inputs)


def test_attention_of_high_scores_is_finite_and_sums_to_one() -> None:
    near = neighbors_of(SIMPLE)
    target, source = 500 * torch.randn(2, 5, 3, dtype=torch.float64)
    alpha, own = attend(target, source, near)
    torch.testing.assert_close(own + near.sum(alpha), torch.ones_like(own))


@pytest.mark.slow
def test_a_hub_has_more_neighbors_than_one_chunk() -> None:
    star = Incidence(torch.stack([torch.zeros(1500, dtype=torch.long), torch.arange(1, 1501)]), 1501)
    nodes = torch.randn(1501, 3, dtype=torch.float64)
    graph = Graph(nodes, torch.ones(1500, 1, dtype=torch.float64), star.ends)
    layer = cast(Layer, made("gat", graph).eval().layers[0])
    torch.testing.assert_close(layer(nodes, graph.incidence), dense_attention(layer, nodes, star))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", BASELINES)
def test_a_gpu_gives_what_a_cpu_gives(name: BaselineName, members: int) -> None:
    star = torch.stack([torch.zeros(1500, dtype=torch.long), torch.arange(1, 1501)])
    ends = torch.cat([star, torch.randint(1, 1501, (2, 3000), generator=torch.Generator().manual_seed(0))], dim=1)
    graph = Graph(torch.randn(1501, 3).double().to_sparse_csr(), torch.ones(4500, 1).double(), ends)
    encoder = stack_members([made(name, graph) for _ in range(members)]).eval()
    found = []
    for device in ("cpu", "cuda"):
        there = encoder.to(device)
        there.zero_grad()
        nodes = embedded(there, graph.to(device))
        nodes.square().sum().backward()
        found.append(
            [kept.detach().to("cpu", copy=True) for kept in (nodes, *(each.grad for each in there.parameters()))]
        )
    for cpu, gpu in zip(*found, strict=True):
        torch.testing.assert_close(gpu, cpu, rtol=1e-8, atol=1e-8)


def test_dropout_of_attention_does_not_multiply_over_hops() -> None:
    walk = Attention(16, HEADS, PageRank(10, 0.1), dropout=0.6).train()
    hop = Attention(16, HEADS, Hop(), dropout=0.6).train()
    ones, seen = torch.ones(5, 16), set()
    for _ in range(50):
        spread = walk(ones, TANGLE)
        assert bool(((spread >= 0) & (spread <= 1.0001)).all())
        seen |= {round(value, 3) for value in hop(ones, TANGLE)[4].tolist()}  # a node alone: all of its own, or nothing
    assert seen == {0.0, 2.5}


# -- members ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
@pytest.mark.parametrize("name", BASELINES)
def test_batched_members_are_each_alone(name: BaselineName, sparse: bool, citations: NodeData) -> None:
    graph = double(citations.graph)
    if sparse:
        graph = Graph(graph.nodes.to_sparse_csr(), graph.edges, graph.ends)
    alone = [made(name, graph).eval() for _ in range(3)]
    stack = stack_members(alone)
    assert count_members(stack) == 3
    together = embedded(stack, graph)
    torch.testing.assert_close(together, torch.cat([embedded(one, graph) for one in alone], dim=1))
    together.square().sum().backward()
    for member, one, again in zip(range(3), alone, split_members(stack), strict=True):
        embedded(one, graph).square().sum().backward()
        assert repr(again) == repr(one)
        for (key, whole), own in zip(stack.named_parameters(), one.parameters(), strict=True):
            torch.testing.assert_close(whole.grad.view(3, -1)[member], own.grad.view(-1))
            assert torch.equal(again.get_parameter(key), own)


# -- in the recipe ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_trained_and_scored_by_the_same_loop(name: BaselineName, members: int) -> None:
    options = {"steps": 3, "teleport": 0.5}
    changes = quick(model__kernel="pagerank", model__kernel_options=options, model__dropout=0.1, training__epochs=40)
    changes |= PLAIN | {
        "training.learning_rate": 0.03,
        "training.weight_decay_by_name": {"encoder.layers.0": 5e-3},
        "training.pseudo_label_weights": [0.0, 1.0],
    }
    prepared = prepare(payments(), "node:tier", changes=changes)
    parts = {level: part.expand(-1, members) for level, part in prepared.task_data.parts.items()}
    task_data = replace(prepared.task_data, parts=parts)
    encoder = baseline_encoder(name)
    accelerator = make_accelerator(device="cpu")
    selections = fit_ensemble(task_data, prepared.settings, members, accelerator=accelerator, make_encoder=encoder)
    assert len(selections) == members
    for selection in selections:
        assert isinstance(selection.model.encoder, BaselineEncoder)
        assert count_members(selection.model) == 1
        losses = [row["loss"] for row in selection.fit_result.history]
        assert losses[-1] < 0.8 * losses[0]
    run = make_run(prepared, selections, 0.0, torch.device("cpu"))
    assert run.metrics["train"]["node"]["accuracy"] > 0.6
    assert run.config.selection is not None


@pytest.mark.parametrize(("name", "hops"), [("gcn", 8), ("gat", 8), ("appnp", 4)])
def test_a_model_has_the_receptive_field_of_a_baseline_and_its_weight_decay(name: BaselineName, hops: int) -> None:
    prepared = prepare(
        payments(), "node:tier", changes=PLAIN | quick(training__weight_decay_by_name={"encoder.layers.0": 5e-3})
    )
    network = build_model(prepared.task_data, prepared.settings, baseline_encoder(name, kernel=PageRank(4)))
    assert network.receptive_field == hops
    decayed = [
        g["params"] for g in make_optimizer(network, prepared.settings.training).param_groups if g["weight_decay"]
    ]
    assert [set(map(id, group)) for group in decayed] == [set(map(id, network.encoder.layers[0].parameters()))]


def test_a_last_layer_that_is_the_head_has_no_activation_and_no_dropout(citations: NodeData) -> None:
    graph = double(citations.graph)
    plain, ended = (MODEL.model_copy(update={"last_layer_is_head": linear}) for linear in (False, True))
    encoder, other = made("gcn", graph, plain).eval(), made("gcn", graph, ended).eval()
    other.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(embedded(other, graph).relu(), embedded(encoder, graph))
    assert bool((embedded(other, graph) < 0).any())
    torch.manual_seed(0)
    once = embedded(other.train(), graph)
    assert not bool((once == 0).any())


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_reinitialized(name: BaselineName, citations: NodeData) -> None:
    encoder = made(name, citations.graph)
    before = [parameter.clone() for parameter in encoder.parameters()]
    encoder.reset_parameters()
    assert all(not torch.equal(old, new) for old, new in zip(before, encoder.parameters(), strict=True))


@pytest.mark.parametrize("make_encoder", [None, baseline_encoder("appnp")], ids=["censnet", "appnp"])
def test_feature_dropout_precedes_every_encoder_in_training(
    make_encoder: MakeEncoder | None, citations: NodeData
) -> None:
    settings = ModelSettings(hidden=8, feature_dropout=0.5)
    target = Target(level="node", column="label", kind="classes", classes=["a", "b", "c"])
    graph, got = citations.graph, list[Tensor]()
    shape = build.TaskShape(graph.node_width, graph.edge_width, [target])
    network = build.build_model(shape, settings, make_encoder=make_encoder)
    network.encoder.layers[0].register_forward_pre_hook(lambda _, inputs: got.append(inputs[0]))
    network.train()(graph)
    network.eval()(graph)
    learnt, asked = got
    assert 0.3 < float((learnt.values() == 0).float().mean()) < 0.7
    torch.testing.assert_close(asked.values(), graph.nodes.values())
    dense = Graph(graph.nodes.to_dense(), graph.edges, graph.ends)
    network.train()(dense)
    torch.testing.assert_close(got[2], dense.nodes)


def test_settings_that_a_baseline_does_not_have_are_refused() -> None:
    prepared = prepare(payments(), "node:tier", changes=PLAIN | quick())
    model = prepared.settings.model.model_copy(update={"norm": "batch"})
    with pytest.raises(SettingsError, match=r"model\.norm is batch"):
        build_model(prepared.task_data, prepared.settings.model_copy(update={"model": model}), baseline_encoder("gcn"))
    with pytest.raises(ValueError, match="width is 12, expected a multiple of 8"):
        baseline_encoder("gat")(3, 1, ModelSettings(hidden=12))
    with pytest.raises(ValueError, match="expected 'gcn', 'appnp' or 'gat'"):
        baseline_encoder("sage")  # type: ignore[arg-type]


def test_the_strong_recipe_builds_every_baseline() -> None:
    settings = make_settings("strong", "node", PLAIN).model
    for name in BASELINES:
        encoder = cast(BaselineEncoder, baseline_encoder(name)(7, 3, settings))
        assert (encoder.out_node_width, encoder.steps, encoder.dropout.p) == (64, 10, 0.6)
