"""Edge masking and negative sampling: a link is masked with all its edges, and no negative pair is a link."""

from __future__ import annotations

import resource
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import payments, quick
from strategies import incidences
from torch import Tensor

from censnet.data.tables.files import Tables
from censnet.nn.directed_decoder import DirectedPairDecoder
from censnet.nn.pair_decoder import PairDecoder
from censnet.nn.vae import VariationalDecoder
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.pipeline.resolve import resolve_settings
from censnet.runs import load_run
from censnet.settings.presets import make_settings
from censnet.training.batches import make_batches
from censnet.training.devices import make_accelerator
from censnet.training.full_batches import FullBatch, MaskedLinkBatch
from censnet.training.link_sampling import LinkSampler
from censnet.training.optim import make_optimizer, seed_generators, step_seed
from censnet.training.task_data import build_model
from censnet.training.trainer import fit

PAIRS = {"model.decoder": "pairwise", "model.latent": 4, "training.edge_mask_ratio": 0.4, "data.directed": False}


def names(pairs: Tensor) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, j in pairs.t().tolist()}


def draw(graph: Graph, mask: float = 0.4, negatives: int = 1, seed: int = 0, ordered: bool = False):
    return LinkSampler(graph, mask, negatives, ordered)(torch.Generator().manual_seed(seed))


# -- what is drawn -----------------------------------------------------------------------------------------------------


@given(
    incidence=incidences(),
    mask=st.sampled_from([0.0, 0.1, 0.5, 0.95]),
    negatives=st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
def test_a_link_is_masked_with_all_its_edges_and_negatives_are_no_links(
    incidence: Incidence, mask: float, negatives: int, seed: int
) -> None:
    graph = Graph(torch.ones(incidence.num_nodes, 1), torch.ones(incidence.num_edges, 1), incidence.ends)
    drawn = draw(graph, mask, negatives, seed)
    linked = {(i, j) for i, j in names(graph.ends) if i != j}
    hidden, others = names(drawn.positives), names(drawn.negatives)
    count = max(1, round(mask * len(linked))) if mask and linked else 0
    assert hidden <= linked
    assert len(hidden) == drawn.positives.shape[1] == (count or len(linked))
    assert others.isdisjoint(linked)
    assert all(i < j for i, j in others)
    free = incidence.num_nodes * (incidence.num_nodes - 1) // 2 - len(linked)
    assert len(others) == drawn.negatives.shape[1] == min(free, negatives * drawn.positives.shape[1])
    if drawn.message_edges is None:
        assert not mask or not linked
        return
    seen = graph.ends[:, drawn.message_edges]
    assert names(seen).isdisjoint(hidden)
    apart = [edge for edge, (i, j) in enumerate(graph.ends.t().tolist()) if (min(i, j), max(i, j)) not in hidden]
    assert drawn.message_edges.tolist() == apart, "everything else stays, loops among it, in its order"


def test_every_sample_is_another_and_the_same_generator_gives_the_same() -> None:
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    graph = Graph(torch.ones(40, 1), torch.ones(40, 1), ring)
    one, again, other = (draw(graph, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert names(one.positives) != names(other.positives)
    assert names(one.negatives) != names(other.negatives)


def test_every_link_is_masked_and_every_other_pair_is_sampled_at_times() -> None:
    ends = torch.tensor([[0, 1, 2, 3, 1, 4], [1, 2, 3, 0, 0, 4]])
    graph, generator = Graph(torch.ones(5, 1), torch.ones(6, 1), ends), torch.Generator().manual_seed(0)
    draws = [LinkSampler(graph, 0.5, 1)(generator) for _ in range(200)]
    times = {pair: sum(pair in names(drawn.positives) for drawn in draws) for pair in names(ends) if pair[0] != pair[1]}
    assert all(60 < count < 140 for count in times.values()), "a pair with two edges as often as one with one"
    assert {pair for drawn in draws for pair in names(drawn.negatives)} == {
        (0, 2),
        (1, 3),
        (0, 4),
        (1, 4),
        (2, 4),
        (3, 4),
    }


# -- the step ----------------------------------------------------------------------------------------------------------


@given(incidence=incidences(union=False), mask=st.sampled_from([0.0, 0.3, 0.9]), seed=st.integers(0, 2**16))
def test_an_ordered_link_is_masked_with_its_parallel_edges_alone(incidence: Incidence, mask: float, seed: int) -> None:
    graph = Graph(torch.ones(incidence.num_nodes, 1), torch.ones(incidence.num_edges, 1), incidence.ends, directed=True)
    drawn = draw(graph, mask, 1, seed, ordered=True)
    linked = {(i, j) for i, j in graph.ends.t().tolist() if i != j}
    positives, negatives = (list(map(tuple, pairs.t().tolist())) for pairs in (drawn.positives, drawn.negatives))
    assert len(positives) == len(set(positives))
    assert set(positives) <= linked
    assert len(negatives) == len(set(negatives))
    assert not set(negatives) & linked
    if drawn.message_edges is not None and linked:
        seen = set(map(tuple, graph.ends[:, drawn.message_edges].t().tolist()))
        assert seen - {(i, i) for i in range(incidence.num_nodes)} == linked - set(positives)


def test_message_passing_sees_the_features_of_the_unmasked_edges() -> None:
    prepared = prepare(payments(), "link", "strong", quick() | PAIRS)
    batches = make_batches(prepared.task_data, prepared.settings.training, 2, pairs=True)
    assert isinstance(batches, MaskedLinkBatch)
    batch = batches.make(torch.empty(0), torch.Generator().manual_seed(3))
    whole, drawn = prepared.task_data.graph, draw(prepared.task_data.graph, 0.4, 1, 3)
    assert batch.graph.edges.equal(whole.edges[drawn.message_edges])
    assert batch.graph.ends.equal(whole.ends[:, drawn.message_edges])
    assert batch.graph.nodes is whole.nodes
    assert batch.graph.num_edges < whole.num_edges
    assert batch.positives is not None
    assert names(batch.positives).isdisjoint(names(batch.graph.ends))


def test_the_label_of_a_masked_edge_is_not_in_the_loss_of_that_step() -> None:
    prepared = prepare(payments(), ["edge:fee", "link"], "strong", quick() | PAIRS)
    task_data = prepared.task_data
    batch = make_batches(task_data, prepared.settings.training, 2, pairs=True).make(
        torch.empty(0), torch.Generator().manual_seed(0)
    )
    seen = draw(task_data.graph, 0.4, 1, 0).message_edges
    training = (task_data.parts["edge"][:, 0] == 0)[seen]
    assert batch.rows["edge"].tolist() == training.nonzero().squeeze(1).tolist()
    torch.testing.assert_close(batch.labels["edge"], task_data.labels["edge"][seen][training])


def test_without_a_mask_the_graph_is_unchanged() -> None:
    prepared = prepare(payments(), "link", "strong", quick() | PAIRS | {"training.edge_mask_ratio": 0})
    batch = make_batches(prepared.task_data, prepared.settings.training, 2, pairs=True).make(
        torch.empty(0), torch.Generator().manual_seed(0)
    )
    assert batch.graph is prepared.task_data.graph
    assert names(batch.positives) == {(i, j) for i, j in names(batch.graph.ends) if i != j}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("walks", "features", "steps"), [("auto", True, 4), ("auto", False, 4), (3, True, 3), (0, True, 0), (0, False, 0)]
)
def test_link_scores_use_the_diffusion_embedding(walks: int | str, features: bool, steps: int) -> None:
    data = payments() if features else Tables(edges=payments().edges)
    made = prepare(data, "link", "strong", quick() | PAIRS | {"model.diffusion_steps": walks})
    model = build_model(made.task_data, made.settings)
    assert made.settings.model.diffusion_steps == model.decoder.diffusion_steps == steps


@pytest.mark.parametrize("words", [True, False])
def test_auto_diffusion_is_off_where_nodes_have_sparse_features(words: bool) -> None:
    task_data = prepare(payments(), "link", "strong", quick() | PAIRS).task_data
    nodes = task_data.graph.nodes.relu().to_sparse_csr() if words else task_data.graph.nodes
    task_data = replace(task_data, graph=replace(task_data.graph, nodes=nodes))
    for asked, steps in (({}, 0 if words else 4), ({"model.diffusion_steps": 2}, 2)):
        settings = make_settings("strong", "link", quick() | PAIRS | asked)
        assert resolve_settings(task_data, settings).model.diffusion_steps == steps


@pytest.mark.slow
def test_an_uninformative_feature_does_not_hide_the_diffusion_embedding() -> None:
    """Three groups of nodes, with a column that is noise: links are told by the groups all the same."""
    rng = np.random.default_rng(0)
    group = np.arange(60) % 3
    one, other = np.triu_indices(60, 1)
    joined = rng.random(len(one)) < np.where(group[one] == group[other], 0.3, 0.02)
    edges = pd.DataFrame({"source": one[joined], "target": other[joined]})
    nodes = pd.DataFrame({"id": range(60), "noise": rng.normal(size=60)})
    run = train(Tables(nodes=nodes, edges=edges), "link", settings={"training.epochs": 60})
    assert run.metrics["test"]["link"]["auc"] > 0.65


# -- trainings ---------------------------------------------------------------------------------------------------------


def teams(people: int = 60) -> Tables:
    """Four teams that write to each other; who is in which shows in two numbers."""
    rng = np.random.default_rng(0)
    team = np.arange(people) % 4
    nodes = pd.DataFrame({"id": range(people), "a": team % 2 + rng.normal(0, 0.3, people)})
    nodes["b"] = team // 2 + rng.normal(0, 0.3, people)
    one, other = np.triu_indices(people, 1)
    there = rng.random(len(one)) < np.where(team[one] == team[other], 0.5, 0.02)
    return Tables(nodes, pd.DataFrame({"source": one[there], "target": other[there], "w": rng.random(there.sum())}))


@pytest.mark.slow
@pytest.mark.parametrize("layers", ["NEN", "NN", "EN"])
def test_links_are_learned_saved_and_predicted_again(layers: str, tmp_path) -> None:
    data, changes = teams(), {"training.epochs": 60, "model.hidden": 16, "model.layers": layers}
    run = train(data, "link", tmp_path / "run", settings=quick() | PAIRS | {"model.latent": 8} | changes)
    assert isinstance(run.models[0].decoder, PairDecoder | DirectedPairDecoder)
    assert run.metrics["test"]["link"]["auc"] > 0.8
    again = load_run(tmp_path / "run")
    pairs = pd.DataFrame({"source": ["0", "4"], "target": ["4", "1"]})
    told = run.predict(data, pairs=pairs)["link_p"]
    assert told.between(0, 1).all()
    assert told[0] > told[1], "two of one team, and two of different ones"
    pd.testing.assert_frame_equal(run.predict(data, pairs=pairs), again.predict(data, pairs=pairs))
    assert run.predict(data, top=3)["link_p"].is_monotonic_decreasing
    placed = again.embed(data).nodes.filter(regex=r"^e\d").to_numpy()
    assert placed.shape == (60, 8)
    np.testing.assert_allclose((placed**2).sum(1), 1, rtol=1e-5)
    assert list(run.evaluate(data)) == list(run.metrics)


@pytest.mark.slow
def test_links_of_nodes_without_features_are_predicted_by_diffusion(tmp_path) -> None:
    data = Tables(edges=teams().edges)
    prepared = prepare(data, "link", "strong", quick() | PAIRS)
    assert not prepared.task_data.node_features
    run = train(data, "link", tmp_path / "run", settings=quick() | PAIRS | {"training.epochs": 30})
    task = run.models[0].decoder
    assert task.feature_weight == 0
    assert task.diffusion_weight > 0, "two that share their surroundings are the likelier"
    assert run.metrics["test"]["link"]["auc"] > 0.8
    assert run.predict(data)["link_p"].between(0, 1).all()
    again = load_run(tmp_path / "run")
    assert again.evaluate(data)["test"]["link"] == pytest.approx(run.metrics["test"]["link"], rel=1e-5)
    pd.testing.assert_frame_equal(again.predict(data, top=20), run.predict(data, top=20))
    without = train(data, "link", settings=quick() | PAIRS | {"training.epochs": 30, "model.diffusion_steps": 0})
    assert run.metrics["test"]["link"]["auc"] > without.metrics["test"]["link"]["auc"] + 0.1


def test_features_that_are_the_same_for_all_nodes_are_none() -> None:
    prepared = prepare(payments(), "link", "strong", quick() | PAIRS)
    graph = prepared.task_data.graph
    assert prepared.task_data.node_features
    alike = Graph(torch.ones(graph.num_nodes, 2), graph.edges, graph.ends)
    assert not prepare(alike, "link", "strong", quick() | PAIRS).task_data.node_features


@pytest.mark.slow
@pytest.mark.parametrize("other", ["node:vip", "edge:fraud"])
@pytest.mark.parametrize("first", [True, False])
def test_links_beside_another_target_have_the_decoder_of_links_alone(other: str, first: bool) -> None:
    targets = ["link", other] if first else [other, "link"]
    settings = prepare(payments(), targets, "strong", {}).settings
    alone = prepare(payments(), "link", "strong", {}).settings
    assert settings.model.decoder == alone.model.decoder == "pairwise"
    assert (settings.model.latent, settings.training.edge_mask_ratio) == (
        alone.model.latent,
        alone.training.edge_mask_ratio,
    )
    assert settings.model.layers == prepare(payments(), other, "strong", {}).settings.model.layers
    run = train(payments(), targets, settings=quick())
    assert isinstance(run.models[0].decoder, PairDecoder | DirectedPairDecoder)
    assert set(run.metrics["test"]) == {"link", other.split(":")[0]}


@pytest.mark.slow
def test_no_tensor_of_all_pairs_is_made_for_120_000_nodes() -> None:
    """N x N bits alone are 1.8 GB. The other decoder's sums over pairs are not called either."""
    count = 120_000
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(count, (2, 2 * count), generator=generator)
    graph = Graph(torch.randn(count, 4, generator=generator), torch.ones(2 * count, 1), ends)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    prepared = prepare(
        graph,
        "link",
        "strong",
        quick() | PAIRS | {"training.epochs": 1, "model.layers": "EN", "model.diffusion_steps": 2},
    )
    model = build_model(prepared.task_data, prepared.settings)
    fit(model, prepared.task_data, prepared.settings.training, accelerator=make_accelerator(device="cpu"))
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert more < 1e6, f"{more / 1e6:.1f} GB"


def test_links_of_the_paper_preset_are_trained_as_by_a_bare_loop() -> None:
    """To the bit: the whole graph, the loss of CensNet-VAE, Adam."""
    prepared = prepare(payments(), "link", "paper", {"training.epochs": 4, "training.patience": None}, seed=5)
    task_data, settings = prepared.task_data, prepared.settings.training
    assert type(make_batches(task_data, settings, 1)) is FullBatch
    torch.manual_seed(5)
    model = build_model(task_data, prepared.settings)
    torch.manual_seed(5)
    other = build_model(task_data, prepared.settings)
    task = other.decoder
    assert isinstance(task, VariationalDecoder)
    fit_result = fit(model, task_data, settings, 5, accelerator=make_accelerator(device="cpu"))
    optimizer, losses = make_optimizer(other, settings), []
    for number in range(4):
        seed_generators(step_seed(5, number), torch.device("cpu"))
        graph = task_data.graph
        embedded = other.train().encoder(graph.nodes, graph.edges, graph.incidence)
        loss = task.loss(task(*embedded, graph), graph)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert [row["loss"] for row in fit_result.history] == losses
