"""An evaluation on rows that were trained on says how many they are, wherever and however they are read again."""

from __future__ import annotations

import logging

import pandas as pd
import pytest
import torch
from rich.console import Console
from samples import payments, quick, shapes, smiles
from torch_geometric.data import Data

from censnet.cli.render_run import scores_screen
from censnet.data import Dataset, load_data
from censnet.data.digests import row_digests
from censnet.data.tables.files import Tables
from censnet.ops.graph import Graph
from censnet.pipeline import train
from censnet.runs import Run, load_run
from censnet.runs.known_rows import COUNTS


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> Run:
    """Answers for accounts and payments, read from a directory."""
    folder = tmp_path_factory.mktemp("town") / "run"
    train(payments(), ["node:tier", "edge:fraud"], folder, settings=quick(training__epochs=2))
    return load_run(folder)


def counts(run: Run, data: object, level: str) -> tuple[int, ...]:
    found = run.evaluate(data)["all"][level]
    return tuple(int(found[name]) for name in COUNTS)


def test_rows_in_another_order_are_known_by_what_they_are(town, caplog):
    data = payments()
    other = Tables(data.nodes.sample(frac=1, random_state=1), data.edges.sample(frac=1, random_state=2))
    with caplog.at_level(logging.WARNING, "censnet"):
        scores = town.evaluate(other)
    assert [scores["all"]["node"][name] for name in COUNTS] == [30, 24, 3]
    assert [scores["all"]["edge"][name] for name in COUNTS] == [90, 72, 9]
    assert (
        "81 of 90 edges to score are known from training (72 for training, 9 for validation): their scores do not show "
        "how the run generalizes to new ones"
    ) in caplog.messages
    test = town.evaluate(data)["test"]  # what was not known are the test rows
    for level, found in scores["new"].items():
        for name, value in found.items():
            assert value == pytest.approx(test[level][name], abs=1e-5)


def test_new_rows_are_distinguished_from_known_ones(town, caplog):
    data, other = payments(), payments(seed=5)
    with caplog.at_level(logging.WARNING, "censnet"):
        assert counts(town, other, "node") == (30, 0, 0)
        assert counts(town, other, "edge") == (90, 0, 0)
    assert not [message for message in caplog.messages if "known from training" in message]
    assert set(town.evaluate(other)) == {"all"}
    changed = Tables(data.nodes, data.edges.assign(amount=data.edges["amount"] + 0.5))  # the same ends, other payments
    assert counts(town, changed, "edge") == (90, 0, 0)
    assert counts(town, changed, "node") == (30, 24, 3)
    labels = Tables(
        data.nodes, data.edges.head(80).assign(fraud=1 - data.edges["fraud"])
    )  # a label is not what a row is
    assert sum(counts(town, labels, "edge")[1:]) == int((town.predictions["edge"]["split"][:80] != "test").sum())


def test_the_screen_has_the_scores_of_new_rows_beside_all(town):
    data = payments()
    console = Console(width=100)
    with console.capture() as capture:
        console.print(scores_screen(town, town.evaluate(Tables(data.nodes, data.edges.head(60)))))
    text = capture.get()
    assert "all" in text
    assert "new" in text
    assert "known_train" not in text


def test_another_spelling_of_a_molecule_is_known():
    chem = pytest.importorskip("rdkit.Chem")
    run = train(smiles(), "graph:acid", settings=quick(training__epochs=1))
    spelled = [chem.MolToSmiles(chem.MolFromSmiles(text), rootedAtAtom=0) for text in smiles()["smiles"]]
    spelled = [chem.MolToSmiles(chem.MolFromSmiles(text), doRandom=True) for text in spelled]
    table = pd.DataFrame({"smiles": [*spelled, "c1ccccc1", "CCCCCCCCCCCCBr"], "acid": [*smiles()["acid"], 0, 0]})
    found = run.evaluate(table)["all"]["graph"]
    kept = run.predictions["graph"]
    train_, chosen = (set(kept.loc[kept["split"] == part, "smiles"]) for part in ("train", "validation"))
    expected = [42, kept["smiles"].isin(train_).sum(), (kept["smiles"].isin(chosen - train_)).sum()]
    assert [found[name] for name in COUNTS] == expected


def test_graphs_and_their_nodes_are_known_by_their_structure():
    run = train(shapes(), ["graph:ring", "node:warm"], settings=quick(training__epochs=1))
    data, frames = shapes(), []
    for frame in (data.nodes, data.edges, data.graphs):  # all under other names, and one a second time
        again = frame[frame["graph"] == "g0"]
        frames.append(pd.concat([frame.assign(graph="new " + frame["graph"]).iloc[::-1], again]))
    more, kept = Tables(*frames), run.predictions
    sizes = {level: int((frame["split"] == "train").sum()) for level, frame in kept.items()}
    found = run.evaluate(more)["all"]
    twice = kept["graph"].set_index("graph").loc["g0", "split"] == "train"
    assert found["graph"]["known_train"] == sizes["graph"] + twice
    assert found["node"]["known_train"] >= sizes["node"]


def test_links_that_were_seen_in_training_are_counted(caplog):
    data = payments()
    run = train(data, "link", settings=quick(training__epochs=1))
    with caplog.at_level(logging.WARNING, "censnet"):
        rows, known, _ = counts(run, Tables(data.nodes, data.edges.head(70)), "link")
    assert 0 < known <= rows
    assert any("links to score are known from training" in message for message in caplog.messages)


@pytest.mark.slow
def test_ids_are_compared_as_they_are_written(tmp_path):
    nodes = pd.DataFrame({"id": [f"{number:03d}" for number in range(30)], "y": [0, 1] * 15})
    edges = pd.DataFrame({"source": nodes["id"][:-1].tolist(), "target": nodes["id"][1:].tolist()})
    train(Tables(nodes, edges), "node:y", tmp_path / "run", settings=quick(training__epochs=1))
    run = load_run(tmp_path / "run")
    assert sum(counts(run, Tables(nodes, edges.head(20)), "node")[1:]) == 27
    other = Tables(nodes.assign(id=nodes["id"].astype(int)), edges.astype(int).head(20))
    assert counts(run, other, "node") == (30, 0, 0)


def test_a_digest_is_of_the_row_and_not_of_its_place():
    def read(order: list[int]) -> Dataset:
        x, ends = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0, 1], [1, 2]])
        place = torch.tensor(order).argsort()
        return load_data([Data(x=x[order], edge_index=place[ends], edge_attr=torch.tensor([[5.0], [6.0]]))] * 2)

    one, two = (row_digests(read(order), "graph") for order in ([0, 1, 2], [2, 0, 1]))
    assert one.tolist() == two.tolist()
    assert len({*one.tolist()}) == 1


def test_rows_with_sparse_features_have_digests() -> None:
    """The words of the built-in citations are sparse: each paper is its words."""
    words = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    ends = torch.tensor([[0, 1], [1, 2]])
    dense, sparse = (load_data(Graph(rows, torch.ones(2, 1), ends)) for rows in (words, words.to_sparse_csr()))
    for data in (dense, sparse):
        first, second, third = row_digests(data, "node").tolist()
        assert first != second
        assert first != third, "an id tells them apart"
