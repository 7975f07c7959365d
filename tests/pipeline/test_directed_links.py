"""Links of a directed graph, from training to suggestions: which way a link goes is learnt."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from censnet.data.splits.links import read_links
from censnet.data.tables.files import Tables
from censnet.nn.directed_decoder import DirectedPairDecoder
from censnet.nn.pair_decoder import PairDecoder
from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.runs import Run, load_run
from censnet.runs.links import pair_probability

SMALL: dict[str, object] = {"training.epochs": 150, "model.hidden": 32, "model.latent": 32}


def levels(num_nodes: int = 200, num_edges: int = 1200) -> Tables:
    """Links go from nodes of a lower level to nodes of a higher one, mostly within a group."""
    rng = np.random.default_rng(0)
    level, group = rng.random(num_nodes), rng.integers(0, 4, num_nodes)
    first, second = rng.integers(0, num_nodes, (2, 40 * num_edges))
    good = (level[first] < level[second]) & ((group[first] == group[second]) | (rng.random(len(first)) < 0.1))
    first, second = first[good][:num_edges], second[good][:num_edges]
    names = np.array([f"n{number}" for number in range(num_nodes)])
    nodes = pd.DataFrame({"id": names, "level": level, "group": np.array(list("abcd"))[group]})
    return Tables(
        nodes, pd.DataFrame({"source": names[first], "target": names[second], "amount": rng.random(len(first))})
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(levels(), "link", tmp_path_factory.mktemp("runs") / "run", settings=SMALL, device="cpu")


@pytest.mark.slow
def test_the_direction_of_links_is_learnt(run: Run) -> None:
    assert isinstance(run.models[0].decoder, DirectedPairDecoder)
    data = run.read(levels())
    split = read_links(run.splits, data.rows("edge"), ordered=True)
    outputs = run.outputs(data.message_graph(split), torch.device("cpu"))
    inputs = [member.link_inputs for member in outputs]
    there, _ = pair_probability(run.models, inputs, split.test_links)
    back, _ = pair_probability(run.models, inputs, split.test_links.flip(0))
    truth = np.repeat([1, 0], len(there))
    assert roc_auc_score(truth, torch.cat([there, back]).numpy()) > 0.95
    assert run.metrics["test"]["link"]["auc"] > 0.85


@pytest.mark.slow
def test_a_saved_run_scores_and_suggests_ordered_pairs(run: Run) -> None:
    data, again = levels(), load_run(Path(run.path))
    assert again.evaluate(data)["test"]["link"] == pytest.approx(run.metrics["test"]["link"], rel=1e-5)
    rows = data.edges[["source", "target"]].iloc[:20].reset_index(drop=True)
    turned = rows.rename(columns={"source": "target", "target": "source"})[["source", "target"]]
    there, back = (again.predict(data, pairs=pairs)["link_p"] for pairs in (rows, turned))
    assert (there - back).abs().max() > 0.1
    np.testing.assert_allclose(again.predict(data)["link_p"].iloc[:20], there, rtol=1e-5)
    likely = again.predict(data, top=50)
    known = set(data.edges[["source", "target"]].itertuples(index=False, name=None))
    found = list(likely[["source", "target"]].itertuples(index=False, name=None))
    assert not set(found) & known
    level = data.nodes.set_index("id")["level"]
    assert np.mean([level[i] < level[j] for i, j in found]) > 0.9
    free = pd.DataFrame(
        [pair for pair in permutations(data.nodes["id"].iloc[:30], 2) if pair not in known],
        columns=["source", "target"],
    )
    assert again.predict(data, pairs=free)["link_p"].max() <= likely["link_p"].iloc[0] + 1e-6


@pytest.mark.slow
def test_other_data_are_evaluated_by_ordered_pairs(run: Run) -> None:
    other = levels(150, 700)
    assert run.evaluate(other)["all"]["link"]["auc"] > 0.7


def test_directed_is_as_the_data_and_as_the_user_says() -> None:
    data = levels(40, 150)
    prepared = prepare(data, "link", "strong", {})
    assert prepared.links is not None
    assert prepared.links.ordered
    assert (prepared.settings.model.directed, prepared.settings.model.kernel) == (True, "hop")
    symmetric = prepare(data, "link", "strong", {"model.directed": False})
    assert symmetric.links is not None
    assert not symmetric.links.ordered
    assert symmetric.settings.model.kernel == "pagerank"
    for changes in ({"data.directed": False}, {"model.decoder": "inner_product"}):
        other = prepare(data, "link", "strong", changes)
        assert other.links is not None
        assert not other.links.ordered
    kernel = prepare(data, "link", "strong", {"model.kernel": "pagerank"})
    assert kernel.settings.model.kernel == "pagerank"


def test_an_undirected_graph_has_the_model_that_it_had() -> None:
    quick = {"training.epochs": 2, "model.hidden": 8, "model.latent": 4, "data.directed": False}
    auto = train(levels(40, 150), "link", settings=quick, device="cpu")
    off = train(levels(40, 150), "link", settings={**quick, "model.directed": False}, device="cpu")
    assert isinstance(auto.models[0].decoder, PairDecoder)
    for name, value in auto.models[0].state_dict().items():
        assert value.equal(off.models[0].state_dict()[name]), name
    pd.testing.assert_frame_equal(auto.predictions["link"], off.predictions["link"])


def test_layers_that_cannot_be_directed_leave_it_to_the_decoder() -> None:
    settings = {"training.epochs": 2, "model.hidden": 8, "model.latent": 4, "model.kernel": "pagerank"}
    run = train(levels(40, 150), "link", settings=settings, device="cpu")
    assert isinstance(run.models[0].decoder, DirectedPairDecoder)
    assert type(run.models[0].encoder.layers[0]).__name__ == "EdgeLayer"
