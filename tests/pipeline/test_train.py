"""Every kind of target is learned, and predicted for every row in the user's own labels and units."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick, shapes
from sklearn.metrics import average_precision_score, f1_score

from censnet.data.tables.files import Tables
from censnet.errors import DataError, SettingsError
from censnet.nn.ensemble import stack_members
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import load_run
from censnet.settings.build import build_model
from censnet.settings.presets import make_settings
from censnet.tasks.losses import penalty, row_loss
from censnet.tasks.targets import Target
from censnet.training.batch import Batch, sample_balanced
from censnet.training.objective import Objective

LEARN = {
    "training__epochs": 60,
    "training__learning_rate": 0.05,
    "model__dropout": 0.0,
    "model__self_weight": "learned",
    "data__fractions": (0.9, 0.0, 0.1),  # without validation the last epoch is kept
}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["node:vip", "edge:fraud"])
def test_two_classes_have_probabilities_that_sum_to_one(target):
    data = payments()
    level, column = target.split(":")
    run = train(data, target, settings=quick(**LEARN))
    assert run.metrics["train"][level]["auc"] > 0.9
    prediction = run.predict(data)
    low, high = ("no", "yes") if column == "vip" else ("0", "1")
    assert len(prediction) == len(data.frames()[f"{level}s"])
    np.testing.assert_allclose(prediction[f"{column}_p_{low}"] + prediction[f"{column}_p_{high}"], 1, rtol=1e-6)
    likelier = np.where(prediction[f"{column}_p_{high}"] > 0.5, high, low)
    assert (prediction[f"{column}_predicted"].astype(str) == likelier).all()


@pytest.mark.slow
@pytest.mark.parametrize(("target", "classes"), [("node:tier", 3), ("edge:sort", 3)])
def test_many_classes_beat_the_largest_one(target, classes):
    data = payments()
    level, column = target.split(":")
    run = train(data, target, settings=quick(**LEARN))
    labels = data.frames()[f"{level}s"][column]
    assert run.metrics["train"][level]["accuracy"] > labels.value_counts(normalize=True).max() + 0.1
    prediction = run.predict(data)
    shares = prediction[[name for name in prediction if name.startswith(f"{column}_p_")]]
    assert shares.shape[1] == classes
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    assert set(prediction[f"{column}_predicted"]) <= set(labels)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "spread"), [("node:wealth", 50), ("edge:fee", 8)])
def test_numbers_are_given_in_the_users_units(target, spread):
    data = payments()
    level, column = target.split(":")
    settings = quick(**LEARN) | {"model.gate": "bounded", "model.head": [8], "model.last_layer_is_head": False}
    settings |= {"model.edge_head_reads_nodes": True} if level == "edge" else {}
    run = train(data, target, settings=settings)
    truth = data.frames()[f"{level}s"][column]
    assert run.metrics["train"][level]["rmse"] < 0.5 * truth.std()
    prediction = run.predict(data)[f"{column}_predicted"]
    train_rows = run.predictions[level]["split"] == "train"
    by_hand = float(np.sqrt(np.mean((prediction - truth)[train_rows] ** 2)))
    assert by_hand == pytest.approx(run.metrics["train"][level]["rmse"], rel=1e-5)


@pytest.mark.slow
def test_graphs_of_several_columns_with_gaps_have_a_mean_over_the_columns():
    data = shapes(60)
    run = train(data, "graph:ring,many_red", settings=quick(**LEARN))
    scores = run.metrics["train"]["graph"]
    assert scores["auc"] == pytest.approx((scores["ring/auc"] + scores["many_red/auc"]) / 2)
    assert scores["ring/auc"] > 0.9
    prediction = run.predict(data)
    assert prediction["many_red_p_1"].notna().all()  # a row without a label has an prediction, too
    assert data.graphs["many_red"].isna().any()


def test_a_gap_in_the_labels_pulls_no_weight():
    """A column that has no label in a row leaves no trace of that row in the loss."""
    targets = [Target(level="graph", column=name, kind="binary", classes=["0", "1"]) for name in ("a", "b")]
    outputs = torch.randn(3, 1, 2, requires_grad=True)
    labels = torch.tensor([[1.0, torch.nan], [0.0, 1.0], [torch.nan, torch.nan]])
    row_loss(targets, outputs, labels).sum().backward()
    assert outputs.grad is not None
    assert (outputs.grad[:, 0] != 0).tolist() == [[True, False], [True, True], [False, False]]


def test_the_penalty_of_graph_regression_is_added_to_the_squared_error():
    data, settings = shapes(20), quick(training__lp_penalty=0.01, training__lp_power=3.0, model__dropout=0.0)
    prepared = prepare(data, "graph:weight", "paper", settings, 0)
    torch.manual_seed(0)
    graph, task_data, model = prepared.task_data.graph, prepared.task_data, prepared.settings.model
    network = build_model(task_data.shape, model)
    batch = graph.batch(torch.arange(8))
    step = Batch(batch, {"graph": torch.arange(8)}, {"graph": task_data.labels["graph"][:8]})
    outputs = network(batch)
    found = Objective(task_data, prepared.settings.training, network)(outputs, step)
    squares = (outputs.by_level["graph"][:, 0] - task_data.labels["graph"][:8, 0]).square().mean()
    size = sum(float(theta.detach().abs().pow(3).sum()) for theta in network.parameters())
    torch.testing.assert_close(found, (squares + 0.01 * size).reshape(1))


def test_each_member_is_penalized_for_its_own_weights_alone():
    task_data = prepare(payments(), "node:vip", "paper", quick(), 0).task_data
    task_data = replace(task_data, parts={"node": task_data.parts["node"].expand(-1, 3)})
    settings = make_settings("paper", "node", quick(training__lp_penalty=0.1))
    network = stack_members([build_model(task_data.shape, settings.model) for _ in range(3)])
    network.eval()
    rows = {"node": torch.arange(5)}
    batch = Batch(task_data.graph, rows, {"node": task_data.labels["node"][:5]})
    plain = Objective(task_data, settings.training.model_copy(update={"lp_penalty": 0.0}), network)
    with torch.no_grad():
        outputs = network(task_data.graph)
        found = Objective(task_data, settings.training, network)(outputs, batch) - plain(outputs, batch)
        expected = 0.1 * penalty(network.parameters(), 2.0, 3)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert expected.unique().numel() == 3


@pytest.mark.slow
def test_graph_regression_learns_the_size():
    data = shapes(60)
    settings = quick(**LEARN) | {"model.pool": ["sum"], "training.lp_penalty": 1e-5}
    run = train(data, "graph:weight", settings=settings)
    scores = run.metrics["train"]["graph"]
    assert scores["rmse"] < 0.5 * data.graphs["weight"].std()
    assert scores["mae"] <= scores["rmse"]


@pytest.mark.slow
def test_links_are_separated_from_negatives():
    ring = pd.DataFrame({"source": range(40), "target": [(n + 1) % 40 for n in range(40)]})
    chords = pd.DataFrame({"source": range(40), "target": [(n + 2) % 40 for n in range(40)]})
    data = Tables(edges=pd.concat([ring, chords], ignore_index=True))
    settings = {"training.epochs": 60, "model.hidden": 16, "model.latent": 8}
    run = train(data, "link", settings=settings, directed=False)
    assert set(run.metrics) == {"validation", "test"}
    assert set(run.metrics["test"]["link"]) == {"auc", "ap", "brier", "ece"}
    assert "validation_loss" in run.history
    scored = run.predict(data)
    assert scored["link_p"].between(0, 1).all()
    assert len(scored) == 80
    likely = run.predict(data, top=5)
    assert likely["link_p"].is_monotonic_decreasing
    joined = {frozenset(pair) for pair in zip(data.edges["source"], data.edges["target"], strict=True)}
    assert all(
        frozenset((int(a), int(b))) not in joined for a, b in zip(likely["source"], likely["target"], strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("decoder", "ensemble"), [("pairwise", 2), ("cosine", 1), ("inner_product", 1)])
@pytest.mark.parametrize("directed", [True, False])
def test_the_likeliest_links_are_the_best_of_all_pairs_that_no_edge_joins(decoder, ensemble, directed, monkeypatch):
    monkeypatch.setattr("censnet.runs.links.GRID", 70)  # two nodes of thirty at a time
    data = payments()
    loops = pd.DataFrame(
        {"source": ["a3", "a7"], "target": ["a3", "a7"], "amount": [1.0, 2.0], "way": ["card", "cash"]}
    )
    data = Tables(nodes=data.nodes, edges=pd.concat([data.edges, loops], ignore_index=True))
    settings = quick(model__decoder=decoder, model__layers="EN")
    run = train(data, "link", settings=settings, ensemble=ensemble, directed=directed)
    names = list(data.nodes["id"])
    ordered = directed and decoder != "inner_product"  # which is symmetric
    pairs, key = (itertools.permutations, tuple) if ordered else (itertools.combinations, frozenset)
    joined = {key(pair) for pair in zip(data.edges["source"], data.edges["target"], strict=True)}
    free = [pair for pair in pairs(names, 2) if key(pair) not in joined]
    scored = run.predict(data, pairs=pd.DataFrame(free, columns=["source", "target"]))
    expected = scored.sort_values("link_p", ascending=False, kind="stable")["link_p"].to_numpy()
    for top in (1, 9, 10_000):
        found = run.predict(data, top=top)
        assert len(found) == min(top, len(free))
        np.testing.assert_allclose(found["link_p"], expected[:top], rtol=1e-5)
        assert {frozenset(pair) for pair in zip(found["source"], found["target"], strict=True)} <= set(
            map(frozenset, free)
        )


def test_links_between_users_and_what_they_rate_are_suggested_between_these(caplog):
    rng = np.random.default_rng(0)
    taste, sort = rng.integers(0, 2, 30), rng.integers(0, 2, 24)
    rated = [(u, i) for u in range(30) for i in range(24) if rng.random() < (0.5 if taste[u] == sort[i] else 0.05)]
    edges = pd.DataFrame({"source": [f"u{u}" for u, _ in rated], "target": [f"i{i}" for _, i in rated]})
    with caplog.at_level("INFO", "censnet"):
        run = train(edges, "link", settings={"training.epochs": 20})
    assert "links join its two sides" in caplog.text
    likely = run.predict(edges, top=40)
    sides = [frozenset((one[0], other[0])) for one, other in zip(likely["source"], likely["target"], strict=True)]
    assert set(sides) == {frozenset("ui")}
    judged = run.predictions["link"]
    assert all({one[0], other[0]} == {"u", "i"} for one, other in zip(judged["source"], judged["target"], strict=True))


@pytest.mark.slow
def test_nodes_edges_and_links_are_learned_together():
    data = payments()
    run = train(data, ["node:vip", "edge:fee", "link"], settings=quick(training__epochs=20))
    assert run.levels == ["node", "edge", "link"]
    assert list(run.predictions) == ["node", "edge", "link"]
    assert {"auc", "loss"} <= set(run.metrics["test"]["node"])
    assert {"rmse", "loss"} <= set(run.metrics["test"]["edge"])
    assert {"auc", "ap"} <= set(run.metrics["test"]["link"])
    with pytest.raises(ValueError, match="level is not given, expected one of node, edge, link"):
        run.predict(data)
    assert len(run.predict(data, "edge")) == len(data.edges)
    hidden = run.splits[(run.splits["table"] == "links") & (run.splits["split"] != "train")]["row"]
    judged = run.splits[run.splits["table"] == "edges"]["row"]
    assert set(hidden).isdisjoint(judged), "the label of an edge that is held out as a link is not trained on"


def test_a_kind_can_be_forced_and_is_said(caplog):
    data = payments()
    with caplog.at_level(logging.INFO, "censnet"):
        run = train(data, "edge:fraud=number", settings=quick())
    assert run.config.targets[0].kind == "regression"
    assert "edge:fraud is regression: as asked" in caplog.text
    assert set(run.metrics["test"]["edge"]) >= {"rmse", "mae"}
    caplog.clear()
    with caplog.at_level(logging.INFO, "censnet"):
        train(data, "edge:fraud", settings=quick())
    assert "edge:fraud is binary: 0 or 1; positive: 1 (the rarer, 42.2 % of the labels)" in caplog.text


def test_class_weights_make_the_rare_class_count_as_much_as_the_others():
    data = payments(rows=120)
    rare = (data.edges["amount"] > 250).astype(int)
    data = Tables(data.nodes, data.edges.assign(fraud=rare))
    assert 0.02 < rare.mean() < 0.2
    prepared = prepare(data, "edge:fraud", "strong", quick(training__imbalance="weights"), 0)
    task_data = prepared.task_data
    network = build_model(task_data.shape, prepared.settings.model)
    (weights,) = Objective(task_data, prepared.settings.training, network).class_weight["edge"]
    labels = task_data.labels["edge"][task_data.parts["edge"][:, 0] == 0, 0]
    counts = torch.tensor([float((labels == code).sum()) for code in (0, 1)])
    assert weights is not None
    torch.testing.assert_close(weights * counts, counts.sum().expand(2) / 2)


def test_balanced_sampling_draws_each_class_as_often():
    labels = torch.cat([torch.zeros(950, 1), torch.ones(50, 1)])
    drawn = sample_balanced(labels, 20_000, torch.Generator().manual_seed(0))
    assert float(labels[drawn].mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("imbalance", ["weights", "sampling"])
@pytest.mark.parametrize("target", ["edge:fraud", "graph:ring"])
def test_an_imbalanced_training_ends_with_predictions_for_all(imbalance, target):
    data = payments() if target == "edge:fraud" else shapes(20)
    run = train(data, target, settings=quick(training__imbalance=imbalance, training__batch_size=8))
    level, column = target.split(":")
    assert run.predict(data)[f"{column}_p_1"].between(0, 1).all()
    assert run.metrics["test"][level]["loss"] > 0


def test_imbalance_without_classes_is_an_error():
    with pytest.raises(SettingsError, match=r"training\.imbalance is 'weights', expected none: no target here"):
        train(payments(), "edge:fee", settings=quick(training__imbalance="weights"))


def test_parallel_payments_with_other_rows_get_other_predictions():
    data = payments()
    prediction = train(data, "edge:fraud", settings=quick()).predict(data)
    first, second, reverse = prediction["fraud_p_1"].iloc[:3]  # a0-a1, a0-a1, a1-a0, of different amounts
    assert len({first, second, reverse}) == 3


def test_edges_that_are_there_twice_have_one_prediction_on_both_rows():
    edges = payments().edges
    doubled = pd.concat([edges, edges.rename(columns={"source": "target", "target": "source"})], ignore_index=True)
    data = Tables(payments().nodes, doubled[edges.columns])
    run = train(data, "edge:fraud", settings=quick())
    prediction = run.predict(data)
    assert len(prediction) == 2 * len(edges)
    np.testing.assert_array_equal(prediction["fraud_p_1"][: len(edges)], prediction["fraud_p_1"][len(edges) :])
    parts = run.predictions["edge"]["split"]
    assert (parts[: len(edges)].to_numpy() == parts[len(edges) :].to_numpy()).all(), "one edge, one part"

    far = data.edges.iloc[:1].assign(source="a0", target="a29")
    more = run.predict(Tables(data.nodes, pd.concat([data.edges, far], ignore_index=True)))
    np.testing.assert_array_equal(more["fraud_p_1"].iloc[:-1], prediction["fraud_p_1"])
    assert "no row goes back from 'a29' to 'a0'" in more["error"].iloc[-1]
    other = run.predict(Tables(data.nodes, data.edges.assign(fraud=[1, *data.edges["fraud"][1:]])))
    np.testing.assert_array_equal(other["fraud_p_1"], prediction["fraud_p_1"])


def test_an_edge_that_is_there_twice_is_learned_from_whichever_row_has_the_label():
    edges = payments().edges
    back = edges.rename(columns={"source": "target", "target": "source"})[edges.columns]
    odd = edges.index % 2 == 1
    doubled = [edges.assign(fraud=edges["fraud"].where(odd)), back.assign(fraud=edges["fraud"].where(~odd))]
    data = Tables(payments().nodes, pd.concat(doubled, ignore_index=True))
    task_data = prepare(data, "edge:fraud").task_data
    assert task_data.graph.num_edges == len(edges)
    assert not task_data.labels["edge"].isnan().any()
    assert task_data.labels["edge"].sum() == edges["fraud"].sum()


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["strong", "paper", "released"])
@pytest.mark.parametrize("target", ["node:vip", "edge:sort", "graph:ring", "link"])
def test_every_preset_has_an_prediction_to_every_task(preset, target):
    data = shapes(12) if target.startswith("graph") else payments()
    run = train(data, target, preset=preset, settings={"training.epochs": 2, "model.hidden": 16, "model.heads": 1})
    assert np.isfinite(run.history["loss"]).all()
    assert run.metrics


def test_a_step_without_a_labeled_row_learns_from_the_rest():
    """Few labels of edges: a mask hides them all, a batch of graphs has none, and so has a part of a graph."""
    data = payments()
    fees = data.edges["fee"].where(data.edges.index < 4)
    few = Tables(nodes=data.nodes, edges=data.edges.assign(fee=fees))
    split = {"data.fractions": (1.0, 0.0, 0.0)}
    run = train(few, ["edge:fee", "link"], settings=quick(training__edge_mask_ratio=0.9) | split)
    assert np.isfinite(run.predict(few, "edge")["fee_predicted"]).all()
    vips = data.nodes["vip"].where(data.nodes.index < 4)
    few = Tables(nodes=data.nodes.assign(vip=vips), edges=data.edges)
    parts = {"training.sampling": "proportional", "training.batch_size": 5} | split
    run = train(few, "node:vip=binary", settings=quick(training__gates="learned") | parts)
    assert run.predict(few)["vip_predicted"].isin(["yes", "no"]).all()


def test_pairs_are_found_by_ids_of_any_form_and_one_without_an_id_spoils_no_other():
    edges = pd.DataFrame({"source": [1, 2, 3, 4, 5, 6, 1, 2] * 3, "target": [2, 3, 4, 5, 6, 7, 5, 6] * 3})
    run = train(Tables(edges=edges), "link", settings=quick(model__layers="EN"))
    whole = run.predict(Tables(edges=edges), pairs=pd.DataFrame({"source": [1, 2], "target": [5, 7]}))
    for source in ([1.0, 2.0, np.nan], ["1", "2", None]):
        gap = run.predict(Tables(edges=edges), pairs=pd.DataFrame({"source": source, "target": [5, 7, 7]}))
        np.testing.assert_allclose(gap["link_p"][:2], whole["link_p"])
        assert gap["error"].isna().tolist() == [True, True, False]
        assert gap["error"][2] == "pairs, row 3, column source: the id is missing"
    with pytest.raises(ValueError, match="pairs and top are both given"):
        run.predict(Tables(edges=edges), pairs=whole, top=3)


def test_of_many_graphs_in_one_the_likeliest_links_lie_within_a_graph():
    ends = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    one = Graph(torch.rand(6, 3, generator=torch.Generator().manual_seed(0)), torch.ones(6, 1), ends)
    both = GraphSet.pack([one, one]).batch(torch.arange(2))
    run = train(one, "link", settings=quick(model__layers="EN"))
    found = run.predict(both, top=100)
    assert len(found) == 2 * (15 - 6)
    assert ((found["source"].astype(int) < 6) == (found["target"].astype(int) < 6)).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_likeliest_links_are_the_same_on_a_gpu():
    data = payments()
    run = train(data, "link", settings=quick(model__layers="EN"), device="cpu")
    found = [run.predict(data, top=20, device=device) for device in ("cpu", "cuda")]
    np.testing.assert_allclose(found[0]["link_p"], found[1]["link_p"], rtol=1e-4)
    assert next(run.models[0].parameters()).device.type == "cpu"


@pytest.mark.slow
def test_average_precision_and_f1_are_of_the_class_that_is_asked_for():
    data = payments()
    edges = data.edges.assign(sign=np.where(data.edges["amount"] > 200, "neg", "pos"))
    data = Tables(data.nodes, edges.drop(columns=["fraud", "sort", "fee"]))
    runs = {
        asked: train(data, target, settings=quick())
        for asked, target in (
            ("rare", "edge:sign"),
            ("pos", "edge:sign=binary:pos"),
            ("neg", ("edge", "sign", "binary", "neg")),
        )
    }
    for run in runs.values():
        frame = run.predict(data)
        positive = run.config.targets[0].classes[1]
        truth, prediction = frame["sign"] == positive, frame["sign_predicted"] == positive
        scores = run.evaluate(data.with_frames({"edges": data.edges.iloc[::-1].reset_index(drop=True)}))["all"]["edge"]
        assert scores["f1"] == pytest.approx(f1_score(truth, prediction, zero_division=0))
        assert scores["ap"] == pytest.approx(average_precision_score(truth, frame[f"sign_p_{positive}"]))
    assert [run.config.targets[0].classes[1] for run in runs.values()] == ["neg", "pos", "neg"]
    assert runs["rare"].metrics == runs["neg"].metrics
    assert runs["neg"].config.target_specs == ["edge:sign=binary:neg"]


def test_a_star_is_every_column_left_and_is_said(caplog):
    data = payments()
    with caplog.at_level(logging.INFO, "censnet"):
        run = train(data, "edge:*", settings=quick(training__epochs=1), overrides={"amount": "number"})
    assert [target.column for target in run.config.targets] == ["way", "fraud", "sort", "fee"]
    assert "edges: edge:* is 4 columns: way, fraud, sort, fee" in caplog.text
    by_fee = quick(training__epochs=1, data__split="time", data__split_column="fee")
    others = {"amount": "number", "way": "drop"}
    again = train(data, ["edge:*", "edge:fraud=regression"], settings=by_fee, overrides=others)
    assert [(t.column, t.kind) for t in again.config.targets] == [("sort", "multiclass"), ("fraud", "regression")]
    assert again.config.target_specs == ["edge:*", "edge:fraud=regression"]


def test_a_column_of_a_star_that_cannot_be_learned_says_how_to_leave_it_out():
    data = payments()
    edges = data.edges.assign(memo=[f"word {row // 2} {row}" if row % 3 else "word" for row in range(len(data.edges))])
    with pytest.raises(
        DataError, match=r"column memo: has .* ask for memo=multiclass; overrides={'memo': 'drop'} leaves it out of"
    ):
        train(data.with_frames({"edges": edges}), "edge:*", settings=quick())


def test_targets_with_commas_in_their_names_are_trained_saved_and_read_again(tmp_path):
    data = payments()
    data = data.with_frames({"edges": data.edges.rename(columns={"fee": "fee, EUR", "fraud": 'a "b", c=d'})})
    asked = 'edge:"fee, EUR","a ""b"", c=d"=binary:1'
    run = train(data, asked, tmp_path / "run", settings=quick(training__epochs=1))
    frame = load_run(tmp_path / "run").predict(data)
    assert frame["fee, EUR_predicted"].notna().all()
    assert frame['a "b", c=d_p_1'].between(0, 1).all()
    assert run.config.target_specs == [asked]
    assert set(run.evaluate(data)["test"]["edge"]) >= {"fee, EUR/rmse", 'a "b", c=d/auc'}
