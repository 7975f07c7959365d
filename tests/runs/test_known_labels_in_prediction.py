"""Known labels as inputs: what they change, and that the label of a row never reaches its own prediction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick

from censnet import load_run, train
from censnet.data.tables.files import Tables
from censnet.errors import SettingsError
from censnet.runs.known_labels_in_prediction import FOLDS, KnownLabels, row_folds

LABELS = {"model__known_labels": True, "model__layers": "ENE", "training__epochs": 8}


def trust(people: int = 40, rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Ratings: whether one is good follows from who is rated, which no column tells."""
    rng = np.random.default_rng(seed)
    good = rng.random(people) < 0.5
    source, target = rng.integers(people, size=(2, rows))
    other = source != target
    frame = pd.DataFrame({"source": source[other], "target": target[other]})
    frame["good"] = np.where(rng.random(len(frame)) < 0.95, good[frame["target"]], ~good[frame["target"]])
    return frame


@pytest.fixture(scope="module")
def run():
    return train(trust(), "edge:good", settings=quick(**LABELS, training__learning_rate=0.02))


def probability(table: pd.DataFrame) -> np.ndarray:
    return table["good_p_True"].to_numpy()


def test_the_label_of_a_row_never_reaches_its_own_prediction_to_the_bit(run) -> None:
    data = trust()
    before = probability(run.predict(data))
    for row in (0, 7, 200):
        changed = data.copy()
        changed.loc[row, "good"] = not changed.loc[row, "good"]
        after = probability(run.predict(changed))
        assert after[row] == before[row]
        assert (after != before).any(), "other predictions read it"


def test_new_labels_change_predictions_without_a_training_and_a_flag_turns_that_off(run) -> None:
    data = trust().astype({"good": object})
    data.loc[:99, "good"] = None
    fewer = data.copy()
    fewer.loc[100:, "good"] = None
    assert (probability(run.predict(data))[:100] != probability(run.predict(fewer))[:100]).all()
    off = [probability(run.predict(one, known_labels=False)) for one in (data, fewer)]
    np.testing.assert_array_equal(*off)
    np.testing.assert_array_equal(off[0], probability(run.predict(data.drop(columns="good"))))


def test_predictions_do_not_depend_on_the_order_of_rows(run) -> None:
    data = trust().drop_duplicates(["source", "target"])
    order = np.random.default_rng(1).permutation(len(data))
    found = run.predict(data.iloc[order].reset_index(drop=True))
    np.testing.assert_allclose(probability(found), probability(run.predict(data))[order], atol=1e-5)


def test_scores_are_those_of_the_stored_predictions_and_of_evaluate(run, tmp_path) -> None:
    loaded = load_run(run.save(tmp_path / "run"))
    assert loaded.config.shows_labels is run.config.shows_labels is True
    found = loaded.evaluate(trust())
    for part, scores in run.metrics.items():
        assert found[part]["edge"] == pytest.approx(scores["edge"], abs=1e-6)
    stored = run.predictions["edge"]
    test = stored[stored["split"] == "test"]
    accuracy = (test["good"].astype(str) == test["good_predicted"].astype(str)).mean()
    assert run.metrics["test"]["edge"]["accuracy"] == pytest.approx(accuracy)


def test_rows_of_each_part_are_shown_the_labels_of_parts_before_it(run) -> None:
    dataset = run.read(trust())
    splits = run._read_splits()
    from censnet.training.task_data import make_task_data

    task_data = make_task_data(dataset, run.config.targets, [splits], None)
    known = KnownLabels.of_training(dataset, task_data, ["edge"])
    part, fold = task_data.parts["edge"][:, 0], row_folds(dataset, "edge")
    shows, group = known.shows["edge"], known.group["edge"]
    for number in range(FOLDS):
        assert torch.equal(group == number, (part == 0) & (fold == number))
        assert not bool((shows[number] & (fold == number)).any())
        assert not bool((shows[number] & (part != 0)).any())
    assert torch.equal(shows[group[part == 1][0]], part == 0)
    assert torch.equal(shows[group[part == 2][0]], (part == 0) | (part == 1))


@pytest.mark.slow
def test_labels_help_where_no_column_tells_and_shuffled_ones_do_not() -> None:
    data = trust(rows=1500)
    settings = quick(**LABELS | {"training__epochs": 60}, training__learning_rate=0.02, model__hidden=16)
    found = train(data, "edge:good", settings=settings).metrics["test"]["edge"]["auc"]
    without = train(data, "edge:good", settings=settings | {"model.known_labels": False})
    assert found > max(0.88, without.metrics["test"]["edge"]["auc"])
    rng = np.random.default_rng(0)
    aucs = [
        train(data.assign(good=rng.permutation(data["good"])), "edge:good", settings=settings, seed=seed)
        for seed in range(3)
    ]
    assert abs(np.mean([each.metrics["test"]["edge"]["auc"] for each in aucs]) - 0.5) < 0.1  # 150 rows each


@pytest.mark.parametrize("sampling", ["full", "neighbors", "proportional"])
def test_every_kind_of_batch_hides_the_labels_that_it_predicts(sampling: str) -> None:
    from censnet.pipeline.prepare import prepare
    from censnet.training.batches import make_batches

    prepared = prepare(trust(), "edge:good", "strong", quick(**LABELS, training__sampling=sampling), 0)
    task_data = prepared.task_data.with_inputs(prepared.settings.model)
    settings = prepared.settings.training.model_copy(update={"batch_size": 64})
    batches = make_batches(task_data, settings, 2)
    seen = 0
    for chosen in batches.plan(torch.Generator().manual_seed(0)):
        for seed in range(5):
            batch = batches.make(chosen, torch.Generator().manual_seed(seed))
            channels = batch.graph.edges[:, -2:]
            assert not bool(channels[batch.rows["edge"]].any()), "a row in the loss shows its label"
            seen += int(channels.any(1).sum())
    assert seen > 0


def test_nodes_and_edges_are_hidden_together_in_a_joint_training() -> None:
    found = train(payments(), ["node:vip", "edge:fraud"], settings=quick(**LABELS))
    assert found.inputs.levels == ["node", "edge"]
    assert set(found.metrics["test"]) == {"node", "edge"}
    assert len(found.predict(payments(), "node")) == 30


def test_many_graphs_have_no_known_labels_and_asking_for_them_is_refused_with_the_reason() -> None:
    edges = pd.concat([trust(rows=20).assign(graph=number) for number in range(4)])
    data = Tables(edges=edges.reset_index(drop=True))
    with pytest.raises(SettingsError, match="known labels are of no use, as there are many graphs, whose rows have no"):
        train(data, "edge:good", settings=quick(**LABELS))
    assert train(data, "edge:good", settings=quick(model__known_labels="auto")).inputs.levels == []


def test_rows_without_known_labels_have_a_calibration_of_their_own(tmp_path) -> None:
    """The model was trained to lean on labels: without them its answers and embeddings are others."""
    settings = quick(**LABELS, training__learning_rate=0.02, data__fractions=(0.4, 0.4, 0.2))
    run = load_run(train(trust(rows=1500), "edge:good", tmp_path / "run", settings=settings).path)
    few = run.uncertainty.unlabeled
    assert few is not None
    assert run.uncertainty.label_share == pytest.approx(0.4, abs=0.01)
    data = trust(rows=1500)
    bare = run.predict(data.drop(columns="good"), coverage=0.9)
    labels, sets = data["good"].astype(str), bare["good_set"].str.split(" | ", regex=False)
    inside = np.array([label in each for label, each in zip(labels, sets, strict=True)])
    assert min(inside[labels == name].mean() for name in ("True", "False")) > 0.85
    marked = bare["unlike_training"].notna().mean()
    assert marked < 0.06
    run.uncertainty = run.uncertainty.model_copy(update={"unlabeled": None})
    assert run.predict(data.drop(columns="good"))["unlike_training"].notna().mean() > 2 * marked
    assert run.uncertainty.where_known(0.0) is run.uncertainty


def test_a_threshold_is_chosen_for_rows_with_and_without_known_labels(run) -> None:
    assert run.uncertainty.unlabeled is not None
    run.decide(recall=0.9)
    both = [one.of("edge", run.targets["edge"])[0].decision for one in (run.uncertainty, run.uncertainty.unlabeled)]
    assert None not in both
    share = run.uncertainty.label_share
    assert run.uncertainty.where_known(0.6 * share) is run.uncertainty
    assert run.uncertainty.where_known(0.4 * share) is run.uncertainty.unlabeled
    run.decide()
    assert run.uncertainty.unlabeled.of("edge", run.targets["edge"])[0].decision is None
