from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import samples
import torch

import censnet
from censnet.data.tables.files import Tables
from censnet.errors import ArgumentError, DataError
from censnet.explanation.probe import Probe, neighborhood, pair_neighborhood
from censnet.runs.draw import draw_explanation
from censnet.runs.explain import PartNames, find_rows
from censnet.runs.run import Run


@pytest.fixture(scope="module")
def payments() -> Run:
    settings = {"training.epochs": 3, "model.hidden": 8}
    return censnet.train(samples.payments(), ["edge:fraud,fee", "node:tier"], settings=settings)


@pytest.mark.slow
def test_the_answer_is_that_of_predict_with_the_known_labels_of_others(payments):
    data = samples.payments()
    predicted, dataset = payments.predict(data, "edge"), payments.read(data)
    raw = payments.outputs(dataset.graph, torch.device("cpu"), known=payments.known_labels(dataset))[0]
    table = payments.explain(data, [3, 50], target="fraud")
    for row in (3, 50):  # the log odds before they are calibrated
        expected = float(raw.by_level["edge"][int(dataset.rows("edge")[row - 1]), 0])
        assert table[table["row"] == row]["answer"].iloc[0] == pytest.approx(expected, abs=1e-3)
    fee = payments.explain(data, [3], target="fee")
    assert fee["answer"].iloc[0] == pytest.approx(predicted["fee_predicted"][2], rel=1e-3)
    assert fee["class"].iloc[0] == ""
    tier = payments.explain(data, "a5", target="tier")
    assert tier["class"].iloc[0] == payments.predict(data, "node")["tier_predicted"][5]
    assert "edge: (known labels)" in set(table["part"])


@pytest.mark.slow
def test_rows_are_named_by_the_user_s_ids(payments):
    data = samples.payments()
    dataset = payments.read(data)
    edges = data.edges
    pair = f"{edges['source'][0]},{edges['target'][0]}"
    assert find_rows(dataset, "edge", [pair]) == [0, 1]  # parallel payments
    assert find_rows(dataset, "edge", ["#4", 4, 1]) == [3, 0]
    table = payments.explain(data, "a5", target="tier")
    nodes = table[table["kind"] == "node"]
    assert set(nodes["part"]) <= set(data.nodes["id"])
    first = table[table["kind"] == "edge"].iloc[0]
    row = int(first["part_row"]) - 1
    assert first["part"] == f"{edges['source'][row]},{edges['target'][row]}"
    with pytest.raises(DataError, match="no row has the id 'a77', expected one such as 'a0', 'a1', 'a2', or #N"):
        payments.explain(data, "a77", target="tier")
    with pytest.raises(DataError, match="no row has the id '#0'"):
        payments.explain(data, "#0", target="tier")
    with pytest.raises(ArgumentError, match="expected one column of edge:fraud, edge:fee, node:tier"):
        payments.explain(data, "a5")
    with pytest.raises(ArgumentError, match="level is 'graph', expected node or edge: of edge:fraud"):
        payments.explain(data, "a5", level="graph")
    with pytest.raises(ArgumentError, match="rows and top"):
        payments.explain(data, target="tier")


@pytest.mark.slow
def test_the_top_rows_are_those_of_the_highest_score_or_loss(payments):
    data = samples.payments()
    predicted = payments.predict(data, "edge")
    p, label = predicted["fraud_p_1"], data.edges["fraud"]
    by_score = payments.explain(data, top=2, target="fraud")["row"].unique()
    assert by_score.tolist() == (p.sort_values(ascending=False).index[:2] + 1).tolist()
    loss = -np.log(np.where(label == 1, p, 1 - p))
    by_loss = payments.explain(data, top=2, by="loss", target="fraud")["row"].unique()
    assert set(by_loss) == set(np.argsort(-loss)[:2] + 1)


@pytest.mark.slow
def test_molecules_and_graphs_are_drawn(tmp_path: Path) -> None:
    settings = {"training.epochs": 2, "model.hidden": 8}
    frame = samples.smiles()
    run = censnet.train(frame, "graph:size", settings=settings)
    dataset = run.read(frame)
    (one,) = run.explain_rows(dataset, [4])
    names = PartNames(dataset, run.inputs)
    svg, png = draw_explanation(one, names, tmp_path / "row-4")
    assert "<svg" in svg.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")
    table = run.explain(frame, [4])
    assert table[table["kind"] == "node"]["part"].str.startswith("atom ").all()
    assert table[table["kind"] == "edge"]["part"].str.match(r"bond \d+-\d+ \(\w+-\w+\)$").all()
    assert {"atom: element", "bond: type"} <= set(table["part"])
    shown = table._repr_html_()
    assert shown.count("data:image/png;base64,") == 1
    assert "<bdi>size</bdi>" in shown
    assert re.search(r"<bdi>bond \d+-\d+ \(C-\w+\)</bdi>", shown)
    assert type(table.head(2)) is pd.DataFrame
    alone = run.explain("CCO")  # the only row
    assert set(alone[alone["kind"] == "node"]["part"]) == {"atom 0 (C)", "atom 1 (C)", "atom 2 (O)"}
    with pytest.raises(ArgumentError, match="rows and top are both given, or neither"):
        run.explain(["CCO", "CCN"])
    named = pd.DataFrame({"smiles": ["CCO", "CCN", "CCC", "CCC"], "name": ["a", "b", "c", "d"]})
    assert set(run.explain(run.read(named), "CCN")["row"]) == {2}
    shapes = samples.shapes()
    run = censnet.train(shapes, "graph:ring", settings=settings)
    dataset = run.read(shapes)
    (one,) = run.explain_rows(dataset, ["g3"])
    paths = draw_explanation(one, PartNames(dataset, run.inputs), tmp_path / "g3")
    assert all(path.stat().st_size > 1000 for path in paths)


@pytest.mark.slow
def test_oriented_ensembles_and_ego_marks_are_explained() -> None:
    draw = np.random.default_rng(0)
    pipes = pd.DataFrame({"source": draw.integers(0, 12, 30), "target": draw.integers(0, 12, 30)})
    pipes = pipes[pipes["source"] != pipes["target"]].reset_index(drop=True)
    pipes["length"] = draw.random(len(pipes))
    pipes["flow"] = draw.normal(size=len(pipes))
    run = censnet.train(pipes, "edge:flow=oriented", settings={"training.epochs": 2}, ensemble=2)
    answer = run.explain(pipes, [2])["answer"].iloc[0]
    assert answer == pytest.approx(run.predict(pipes)["flow_predicted"].iloc[1], abs=1e-3)
    settings = {"training.epochs": 2, "model.ego_marks": True, "model.hidden": 8}
    marked = censnet.train("karate", "node:faction", settings=settings)
    raw = marked.outputs(marked.read("karate").graph, torch.device("cpu"))[0].by_level["node"][4, 0]
    assert marked.explain("karate", "4")["answer"].iloc[0] == pytest.approx(float(raw), abs=1e-3)


@pytest.fixture(scope="module")
def history() -> tuple[Run, Tables]:
    """A run with causal layers, and its payments in the order of time."""
    draw = np.random.default_rng(0)
    edges = pd.DataFrame({"source": draw.integers(0, 20, 160), "target": draw.integers(0, 20, 160)})
    edges["amount"], edges["time"] = draw.normal(size=160), np.sort(draw.integers(0, 100, 160)) * 3600
    edges["sign"] = np.where(edges["target"] % 2 == 0, "good", "bad")
    nodes = pd.DataFrame({"id": range(20), "size": draw.normal(size=20)})
    data, settings = Tables(nodes, edges), {"training.epochs": 3, "model.hidden": 8, "data.time": "time"}
    return censnet.train(data, "edge:sign", settings=settings), data


@pytest.mark.slow
def test_of_a_history_the_answer_is_without_an_earlier_event_and_later_ones_are_no_parts(history) -> None:
    run, data = history
    assert run.config.settings.model.causal
    table = run.explain(data, [120])

    def answer(kept: Tables, row: int) -> float:
        dataset = run.read(kept)
        found = run.outputs(dataset.graph, torch.device("cpu"), known=run.known_labels(dataset))[0]
        return float(found.by_level["edge"][int(dataset.rows("edge")[row]), 0])

    whole = answer(data, 119)
    assert table["answer"].iloc[0] == pytest.approx(whole, abs=1e-4)
    edges = table[table["kind"] == "edge"].dropna(subset="change")
    assert (data.edges["time"][edges["part_row"].astype(int) - 1] <= data.edges["time"][119]).all()
    assert edges["gate"].isna().all()
    for _, part in edges.head(3).iterrows():
        gone = int(part["part_row"]) - 1
        kept = Tables(data.nodes, data.edges.drop(index=gone).reset_index(drop=True))
        assert part["change"] == pytest.approx(whole - answer(kept, 119 - (gone < 119)), abs=1e-4)


@pytest.mark.slow
def test_of_a_history_known_labels_are_left_out_whole_and_gradients_add_up(history) -> None:
    run, data = history
    table = run.explain(data, [120])
    columns = table[table["kind"] == "column"].set_index(["part", "where"])
    labels = columns.loc[("edge: (known labels)", "around")]
    bare = Tables(data.nodes, data.edges.drop(columns="sign"))
    dataset = run.read(bare)
    row = int(dataset.rows("edge")[119])
    without = run.outputs(dataset.graph, torch.device("cpu"))[0].by_level["edge"][row, 0]
    assert labels["answer"] - labels["change"] == pytest.approx(float(without), abs=1e-4)
    assert np.isnan(labels["gradients"])
    read = run.read(data)
    graph = next(run.known_labels(read).graphs(run.inputs.add(read.graph), run.inputs))[0]
    place = neighborhood(graph, "edge", row, run.models[0])
    probe = Probe(run.models, place, "edge", lambda outputs: outputs[:, 0])
    width = place.label_width
    node, edge = place.baseline[0].expand_as(place.graph.nodes), place.baseline[1].expand_as(place.graph.edges)
    edge = torch.cat([edge[:, :-width], place.graph.edges[:, -width:]], 1)
    with torch.no_grad():
        start = float(probe.of_features(node[None], edge[None])[0])
    assert columns["gradients"].sum() == pytest.approx(probe.whole() - start, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("steps", [0, 2])
def test_links_are_explained_by_what_their_scores_are_without_a_part(directed: bool, steps: int) -> None:
    draw = np.random.default_rng(0)
    edges = pd.DataFrame({"source": draw.integers(0, 30, 90), "target": draw.integers(0, 30, 90)})
    edges = edges[edges["source"] != edges["target"]].reset_index(drop=True)
    edges["amount"] = draw.normal(size=len(edges))
    data = Tables(pd.DataFrame({"id": range(30), "size": draw.normal(size=30)}), edges)
    settings = {"training.epochs": 5, "model.hidden": 8, "model.diffusion_steps": steps, "model.layers": "NEN"}
    run = censnet.train(data, "link", settings=settings | {"data.directed": directed})

    def logit(kept: Tables, pair: tuple[int, int]) -> float:
        outputs = run.outputs(run.read(kept).graph, torch.device("cpu"))[0]
        return float(run.models[0].decoder.score(outputs.link_inputs, torch.tensor(pair)[:, None]).detach()[0])

    first, second = int(edges["source"][3]), int(edges["target"][3])
    table = run.explain(data, [f"{first},{second}", "7,8"])
    assert table["row"].unique().tolist() == [1, 2]
    assert set(table["class"]) == {"link"}
    for row, pair in ((1, (first, second)), (2, (7, 8))):
        mine = table[table["row"] == row]
        whole = logit(data, pair)
        assert mine["id"].iloc[0] == f"{pair[0]},{pair[1]}"
        assert mine["answer"].iloc[0] == pytest.approx(whole, abs=1e-4)
        assert {"own", "around"} == set(mine[mine["part"] == "node: size"]["where"])
        assert not set(mine[mine["kind"] == "node"]["part"]) & set(map(str, pair))
        edge = mine[mine["kind"] == "edge"].iloc[0]
        if directed and not steps:  # means are over the edges that are left
            kept = Tables(data.nodes, edges.drop(index=int(edge["part_row"]) - 1).reset_index(drop=True))
            assert edge["change"] == pytest.approx(whole - logit(kept, pair), abs=1e-4)
    assert run.explain(data, [4])["answer"].iloc[0] == table["answer"].iloc[0]
    gradients = table[(table["row"] == 2) & (table["kind"] == "column")]["gradients"]
    graph = run.inputs.add(run.read(data).graph)
    probe = Probe(run.models, pair_neighborhood(graph, 7, 8, run.models[0]), "link", lambda scores: scores[:, 0])
    place = probe.place
    with torch.no_grad():
        start = float(probe.of_features(*(
            mean.expand_as(own)[None]
            for mean, own in zip(place.baseline, (place.graph.nodes, place.graph.edges), strict=True)
        ))[0])  # fmt: skip
    assert gradients.sum() == pytest.approx(probe.whole() - start, abs=0.1)
    likeliest = run.predict(data, top=1).iloc[0]
    assert run.explain(data, top=1)["id"].iloc[0] == f"{likeliest['source']},{likeliest['target']}"
    with pytest.raises(DataError, match="'7,99' is no pair of nodes: no node has the id '99'"):
        run.explain(data, "7,99")
    with pytest.raises(ArgumentError, match="expected two ids of nodes joined by a comma"):
        run.explain(data, "7")
    with pytest.raises(ArgumentError, match="a link that is not there has no label"):
        run.explain(data, top=1, by="loss")


@pytest.mark.slow
def test_links_of_payments_are_drawn(tmp_path: Path) -> None:
    data = samples.payments()
    run = censnet.train(data, "link", settings={"training.epochs": 2, "model.hidden": 8})
    dataset = run.read(data)
    (one,) = run.explain_rows(dataset, ["a1,a2"])
    paths = draw_explanation(one, PartNames(dataset, run.inputs), tmp_path / "pair")
    assert all(path.stat().st_size > 1000 for path in paths)
    assert one.place.centers == [1, 2]
