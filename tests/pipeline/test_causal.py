"""A causal model from a table with times: what it is trained on, how it is scored, and what it predicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from censnet import load_run, train
from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.nn.causal_stream import CausalStream
from censnet.pipeline import causal
from censnet.pipeline.prepare import prepare
from censnet.pipeline.train import describe_times
from censnet.runs.run import Run
from censnet.runs.scoring import FIXED_LABELS

POSITIVE = "good"
FAST = {"training.epochs": 6, "model.hidden": 8, "model.head": [], "data.time": "time"}


def ratings(kinds: bool = False, seed: int = 0, rows: int = 300) -> Tables:
    """Ratings that follow from those that a node got before: half of the nodes are bad."""
    generator = np.random.default_rng(seed)
    source, target = generator.integers(0, 30, (2, rows))
    sign = np.where((target % 2 == 0) ^ (generator.random(rows) < 0.05), "good", "bad")
    time = np.sort(generator.integers(0, 200, rows)) * 3600
    edges = {"source": source, "target": target, "amount": generator.normal(size=rows), "sign": sign, "time": time}
    nodes = pd.DataFrame({"id": range(30), "size": generator.normal(size=30)})
    if kinds:
        nodes["kind"] = np.where(np.arange(30) % 2 == 0, "good", "bad")
    return Tables(nodes, pd.DataFrame(edges))


def edges_of(data: Tables) -> pd.DataFrame:
    assert data.edges is not None
    return data.edges


@pytest.fixture(scope="module")
def run() -> Run:
    return train(ratings(), "edge:sign", settings=FAST)


@pytest.fixture(scope="module")
def data() -> Tables:
    return ratings()


def test_edges_with_times_get_causal_layers(run: Run) -> None:
    model = run.config.settings.model
    assert (model.causal, model.layers, model.known_labels, model.windows) == (True, "CC", True, False)
    assert set(run.metrics) == {"train", "validation", "test", *FIXED_LABELS}
    for part in ("validation", "test"):
        assert run.metrics[part]["edge"]["loss"] != run.metrics[f"{part}_labels_fixed"]["edge"]["loss"]


def test_run_is_saved_and_evaluates_as_it_was_scored(run: Run, data: Tables, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert loaded.evaluate(data) == run.metrics
    predicted = loaded.predict(data, keep="ids")[f"sign_p_{POSITIVE}"]
    np.testing.assert_allclose(predicted, run.predictions["edge"][f"sign_p_{POSITIVE}"], atol=1e-6)


def test_label_of_a_row_and_what_comes_later_change_no_earlier_prediction(run: Run, data: Tables) -> None:
    edges = edges_of(data)
    before = run.predict(data, keep="ids")[f"sign_p_{POSITIVE}"]
    changed = edges.copy()
    late = changed["time"] >= changed["time"].iloc[200]
    changed.loc[late, "sign"] = np.where(changed.loc[late, "sign"] == "good", "bad", "good")
    changed.loc[changed["time"] > changed["time"].iloc[200], "amount"] = 7.0
    after = run.predict(Tables(data.nodes, changed), keep="ids")[f"sign_p_{POSITIVE}"]
    same = edges["time"] <= edges["time"].iloc[200]
    assert (before[same] == after[same]).all()
    assert (before[~same] != after[~same]).any()
    hidden = run.predict(data, keep="ids", known_labels=False)[f"sign_p_{POSITIVE}"]
    assert (hidden[same] != before[same]).any()


def test_stream_of_a_run_gives_its_predictions(run: Run, data: Tables) -> None:
    (model,), dataset = run.models, run.read(data)
    graph, head = run.inputs.add(dataset.graph), model.heads["edge"]
    stream, labels = CausalStream(model.encoder), edges_of(data)["sign"].tolist()  # type: ignore[arg-type]
    classes, width = run.config.targets[0].classes, stream.encoder.label_width
    nodes, edges = graph.nodes.numpy(), graph.edges.numpy()[:, :-width]
    assert graph.times is not None
    row, found = dataset.rows("edge").argsort(), {}
    for number, edge in enumerate(graph.times.argsort(stable=True).tolist()):
        s, t = graph.ends[:, edge].tolist()
        found[int(row[edge])] = stream.step(s, t, float(graph.times[edge]), nodes[s], nodes[t], edges[edge])
        stream.set_label(number, np.eye(width)[classes.index(labels[int(row[edge])])])
    with torch.no_grad():
        embedded = torch.from_numpy(np.stack([found[number] for number in range(len(found))]))
        scores = torch.sigmoid(head.mlp(embedded)).squeeze(1)  # type: ignore[union-attr, operator]
    expected = run.predict(data, keep="ids")[f"sign_p_{POSITIVE}"].to_numpy()
    np.testing.assert_allclose(scores.numpy(), expected, atol=1e-5)


@pytest.mark.slow
def test_nodes_are_predicted_as_of_the_end_of_a_history() -> None:
    run = train(ratings(kinds=True), "node:kind", settings={**FAST, "model.causal": True, "training.epochs": 40})
    assert run.config.settings.model.causal
    assert list(run.metrics) == ["train", "validation", "test"]
    assert len(run.predict(ratings(kinds=True))) == 30


@pytest.mark.parametrize("targets", [["node:kind", "edge:sign"], ["edge:sign", "node:kind"]])
def test_edges_beside_nodes_are_causal_in_any_order_of_the_targets(targets: list[str]) -> None:
    found = prepare(ratings(kinds=True), targets, "strong", FAST)
    model = found.settings.model
    assert (model.causal, model.layers, model.known_labels) == (True, "CC", True)
    (said,) = describe_times(found)
    assert said.startswith("each edge is embedded from the edges before it alone, and scored with the labels that arr")
    assert (
        prepare(ratings(kinds=True), targets, "strong", {**FAST, "model.causal": False}).settings.model.causal is False
    )


def test_what_a_model_sees_of_times_is_said() -> None:
    def said(target: str, **changes: object) -> str:
        named = {name.replace("__", "."): value for name, value in changes.items()}
        return "; ".join(describe_times(prepare(ratings(kinds=True), target, "strong", {**FAST, **named})))

    assert "labels that arrived, 7,200 after their edge, before it" in said("edge:sign", data__label_delay=7200)
    assert "no label is ever known: the label delay is" in said("edge:sign", data__label_delay=10**9)
    assert "no later one, though edges of all times are seen" in said("edge:sign", model__causal=False)
    assert "no layer reads the times of edges: settings={'model.causal': True} embeds nodes" in said("node:kind")
    assert "each node is embedded as of the last edge" in said("node:kind", model__causal=True)


@pytest.mark.slow
def test_with_shuffled_labels_held_out_rows_are_at_chance() -> None:
    """A label that reached the answer to its own row would show; `python -m benchmarks.shuffled_labels` is exacter."""
    frame = edges_of(ratings(rows=4000))
    frame["sign"] = np.random.default_rng(1).permutation(frame["sign"])
    run = train(Tables(edges=frame), "edge:sign", settings={**FAST, "training.epochs": 15})
    for part in ("train", "validation", "test", "test_labels_fixed"):
        assert abs(run.metrics[part]["edge"]["auc"] - 0.5) < 0.09, part  # 3 standard errors of 400 rows


@pytest.mark.slow
def test_label_delay_and_rates_are_those_of_the_run(data: Tables, tmp_path: Path) -> None:
    late = {**FAST, "data.label_delay": 7200, "model.decay_rates": 2, "training.epochs": 2}
    run = train(data, "edge:sign", tmp_path / "run", settings=late)
    encoder = load_run(tmp_path / "run").models[0].encoder
    assert (encoder.label_delay, encoder.layers[0].num_rates) == (7200.0, 2)  # type: ignore[attr-defined]
    assert load_run(tmp_path / "run").evaluate(data) == run.metrics


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data.time": None, "data.split": "ratio"}, r"model\.causal is true, expected false: edges have no times"),
        ({"model.layers": "NEN"}, r"model\.layers is NEN, expected letters C: others use later edges"),
        ({"model.norm": "batch"}, r"model\.causal is true, expected model\.kernel hop, model\.norm layer"),
        ({"training.sampling": "neighbors"}, r"a sampled past would lack events"),
    ],
)
def test_what_cannot_be_causal_is_one_line(changes: dict[str, object], words: str, data: Tables) -> None:
    with pytest.raises(SettingsError, match=words):
        train(data, "edge:sign", settings={**FAST, "model.causal": True, **changes})


def test_a_long_history_is_trained_in_parts(data: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal, "MANY_EDGES", 250)
    monkeypatch.setattr(causal, "PART", 50)
    run = train(data, "edge:sign", settings={**FAST, "training.epochs": 40})
    training = run.config.settings.training
    assert (training.sampling, training.batch_size) == ("history", 50)
    assert run.metrics["test"]["edge"]["auc"] > 0.8
    assert (
        train(data, "edge:sign", settings={**FAST, "training.sampling": "full"}).config.settings.training.sampling
        == "full"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.decay_rates": 2}, r"training\.sampling is history, expected full: model\.decay_rates is 2"),
        ({"training.stale_label_ratio": 0.5}, r"expected full: training\.stale_label_ratio is 0\.5"),
        ({"model.causal": False}, r"training\.sampling is history, expected auto or full: layers are not causal"),
    ],
)
def test_what_cannot_be_trained_in_parts_is_one_line(changes: dict[str, object], words: str, data: Tables) -> None:
    with pytest.raises(SettingsError, match=words):
        train(data, "edge:sign", settings={**FAST, "training.sampling": "history", **changes})


def test_causal_settings_without_causal_layers_are_refused(data: Tables) -> None:
    with pytest.raises(SettingsError, match=r"model\.decay_rates is 2, expected 0"):
        train(data, "edge:sign", settings={**FAST, "model.causal": False, "model.decay_rates": 2})
    with pytest.raises(SettingsError, match=r"model\.layers is CC, expected model\.causal=true beside it"):
        train(data, "edge:sign", settings={**FAST, "model.causal": False, "model.layers": "CC"})
