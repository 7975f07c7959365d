"""Training on edges that have times: the split, the windows, the delay of labels, and prediction without a flag."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from samples import quick

from censnet import load_run, train
from censnet.data.tables.files import Tables
from censnet.errors import DataError, SettingsError
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import Prepared, prepare
from censnet.settings.schema import TrainingSettings
from censnet.training.sampled_subgraphs import SampledSubgraphs

TARGET = "edge:late=binary"
WINDOWS = quick(model__windows=True, model__known_labels=True, model__directed=True, data__time="day")


def invoices(rows: int = 300, seed: int = 0, days: int = 60) -> pd.DataFrame:
    """Invoices on a few days each; one is late where the payer had one shortly before: a gap alone tells it."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"source": draw.integers(0, 60, rows), "target": draw.integers(0, 60, rows), "amount": draw.random(rows)}
    )
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, days, rows), unit="D")
    ordered = frame.sort_values("day", kind="stable")
    gap = ordered.groupby("source")["day"].diff().reindex(frame.index)
    return frame.assign(late=(gap < pd.Timedelta(days=2)).map({True: "yes", False: "no"}))


def prepared(frame: pd.DataFrame, **changes: object) -> Prepared:
    return prepare(Tables(edges=frame), TARGET, "strong", {**WINDOWS, **quick_changes(changes)}, 0)


def quick_changes(changes: dict[str, object]) -> dict[str, object]:
    return {name.replace("__", "."): value for name, value in changes.items()}


def test_edges_with_times_are_split_by_time_and_ties_stay_together() -> None:
    frame = invoices()
    found = prepared(frame)
    train_days, validation_days, test_days = (frame["day"].iloc[part] for part in found.splits["edge"].parts.values())
    assert train_days.max() < validation_days.min()
    assert validation_days.max() < test_days.min()
    assert len(train_days) == pytest.approx(240, abs=8)
    assert "by time, column day of edges, validation from 2024-02-" in found.split_sources["edge"]


def test_a_split_at_given_times(caplog: pytest.LogCaptureFixture) -> None:
    frame = invoices()
    for times in (("2024-02-10", "2024-02-20"), ("2024-02-10T00:00Z", 1708387200)):
        found = prepared(frame, data__split_times=times).splits["edge"]
        starts = pd.Timestamp("2024-02-10"), pd.Timestamp("2024-02-20")
        assert sorted(found.validation.tolist()) == np.flatnonzero(frame["day"].between(*starts, "left")).tolist()
        assert sorted(found.test.tolist()) == np.flatnonzero(frame["day"] >= starts[1]).tolist()
    prepared(frame, data__split_times=("2024-02-20", "2025-01-01"))
    assert "data.split_times leaves no labeled edge for test: the last one is at 2024-02-2" in caplog.text
    with pytest.raises(DataError, match=r"data.split_times has 'soon', expected a time such as those of column day"):
        prepared(frame, data__split_times=("soon", "2024-02-20"))
    with pytest.raises(DataError, match="expected the first time to be earlier"):
        prepared(frame, data__split_times=("2024-02-20", "2024-02-10"))
    with pytest.raises(SettingsError, match="nothing reads it, since edges are not split by their times"):
        prepared(frame, data__split_times=("2024-02-10", "2024-02-20"), data__split="ratio")


def test_a_random_split_of_edges_with_times_is_allowed_and_a_stated_one_is_followed() -> None:
    frame = invoices()
    assert "drawn at random" in prepared(frame, data__split="ratio").split_sources["edge"]
    stated = np.where(np.arange(len(frame)) % 3 == 0, "test", "train")
    assert "column split" in prepared(frame.assign(split=stated)).split_sources["edge"]


def test_time_is_no_feature_unless_the_user_says_so() -> None:
    frame = invoices()
    assert prepared(frame).data.schema.edges.names == ["amount"]
    settings = {**WINDOWS, "data.split": "ratio"}
    kept = prepare(Tables(edges=frame), TARGET, "strong", settings, 0, overrides={"day": "date"})
    assert kept.data.schema.edges.names == ["amount", "day"]


@pytest.mark.slow
def test_a_run_reads_times_again_without_a_flag(tmp_path) -> None:
    frame = invoices(1500)
    settings = {"training.epochs": 60, "model.hidden": 16, "model.known_labels": False, "model.triangles": False}
    settings["model.causal"] = False  # whose layers see gaps without windows
    run = train(Tables(edges=frame), TARGET, tmp_path / "run", settings=settings, time="day")
    assert run.metrics["test"]["edge"]["auc"] > 0.8, "the gap to the invoice before tells it"
    assert len(run.config.widths) > 1
    again = load_run(tmp_path / "run")
    expected = run.predict(Tables(edges=frame))
    pd.testing.assert_frame_equal(again.predict(Tables(edges=frame)), expected)
    without = train(Tables(edges=frame), TARGET, settings=settings | {"model.windows": False}, time="day")
    assert without.metrics["test"]["edge"]["auc"] < 0.65
    with pytest.raises(DataError, match="column day: is missing, expected the time of each edge"):
        again.predict(Tables(edges=frame.drop(columns="day")))


@pytest.mark.slow
def test_the_label_of_a_row_does_not_reach_its_prediction_by_way_of_windows() -> None:
    frame = invoices(120)
    run = train(Tables(edges=frame), TARGET, settings={**WINDOWS, "training.epochs": 2, "data.split": "ratio"})
    assert run.config.shows_labels is not None
    if not run.config.shows_labels:
        run.config = run.config.model_copy(update={"shows_labels": True})
    before = run.predict(Tables(edges=frame))
    for row in (0, 57):
        other = frame.copy()
        other.loc[row, "late"] = {"yes": "no", "no": "yes"}[frame.loc[row, "late"]]
        after = run.predict(Tables(edges=other))
        assert after["late_p_yes"].iloc[row] == before["late_p_yes"].iloc[row]
        assert not after["late_p_yes"].equals(before["late_p_yes"]), "other rows are shown it"


@pytest.mark.parametrize("split", ["ratio", "time"])
def test_windows_of_a_sampled_subgraph_are_those_of_the_whole_graph(split: str) -> None:
    found = prepared(invoices(400), data__split=split)
    task_data = found.task_data.with_inputs(found.settings.model)
    inputs = task_data.inputs
    assert inputs is not None
    settings = TrainingSettings(sampling="neighbors", batch_size=16, fanout=2)
    batches = SampledSubgraphs(task_data, settings, hops=1)
    generator = torch.Generator().manual_seed(0)
    chosen = batches.plan(generator)[0]
    state = generator.get_state()
    batch = batches.make(chosen, generator)
    subgraph = batches.sample(chosen, generator.set_state(state))
    assert batch.graph.num_edges < task_data.graph.num_edges
    times = task_data.graph.times
    assert times is not None
    if split == "time":
        shown = task_data.training_rows("edge") & (times < times[chosen].min())
    else:
        shown = task_data.training_rows("edge").index_fill(0, chosen, False)
    assert shown.any()
    whole = task_data.show_labels({"edge": shown})
    width = inputs.window_width
    assert width > 0
    torch.testing.assert_close(batch.graph.edges[:, -width:], whole.edges[subgraph.edges][:, -width:])


def test_labels_are_known_only_after_their_delay() -> None:
    frame = invoices()
    late = prepared(frame, data__label_delay="10d").task_data
    now = prepared(frame).task_data
    times = now.graph.times
    assert times is not None
    assert late.label_delay == 864000
    for part in ("validation", "test"):
        code = ("train", "validation", "test").index(part)
        start = times[now.parts["edge"][:, 0] == code].min()
        known = now.known_for(part, "edge")
        assert known.equal((now.parts["edge"][:, 0] >= 0) & (now.parts["edge"][:, 0] < code))
        assert late.known_for(part, "edge").equal(known & (times + 864000 < start))
    with pytest.raises(DataError, match="the label delay is '-3d', expected a number, or one with a unit"):
        prepared(frame, data__label_delay="-3d")
    with pytest.raises(SettingsError, match=r"data.label_delay is 3d, expected 0, or data.time"):
        prepare(Tables(edges=frame), TARGET, "strong", quick(data__label_delay="3d"), 0)
    with pytest.raises(SettingsError, match="edges are not split by time, so later labels are known, too"):
        prepared(frame, data__label_delay="3d", data__split="ratio")


def test_windows_without_times_are_refused_and_many_graphs_have_them_too() -> None:
    frame = invoices()
    with pytest.raises(SettingsError, match=r"model.windows is true, expected false: no edge has a time"):
        prepare(Tables(edges=frame), TARGET, "strong", {**WINDOWS, "data.time": None}, 0)
    both = pd.concat([frame.assign(graph="a"), frame.assign(graph="b")], ignore_index=True)
    found = prepare(Tables(edges=both), TARGET, "strong", {**WINDOWS, "model.known_labels": False}, 0).task_data
    found = found.with_inputs(prepared(frame, model__known_labels=False).settings.model)
    assert isinstance(found.graph, GraphSet)
    alone = found.graph[0]
    assert found.inputs is not None
    plain = alone.with_features(alone.nodes, alone.edges[:, :1])
    assert isinstance(plain, Graph)
    again = replace(found.inputs).add(plain)
    torch.testing.assert_close(again.edges, alone.edges)
