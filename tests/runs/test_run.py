"""Predict, embed, evaluate: the same prediction for the same row, wherever it stands, and every row in its place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import payments, quick, shapes, smiles

from censnet.cli.predict import predict_levels
from censnet.data.tables.files import Tables
from censnet.pipeline import train
from censnet.runs import Run, load_run
from censnet.training import evaluator as infer_module
from censnet.training.ensemble import average


@pytest.fixture(scope="module")
def town() -> Run:
    """Answers for accounts and payments."""
    settings = quick(training__epochs=4, model__gate="bounded", model__directed=False)
    return train(payments(), ["node:tier", "edge:fraud"], settings=settings)


@pytest.fixture(scope="module")
def beads(tmp_path_factory) -> Run:
    """Answers for many graphs, their nodes and edges, read from a directory."""
    folder = tmp_path_factory.mktemp("beads") / "run"
    targets = ["graph:ring,weight", "node:warm", "edge:length"]
    train(shapes(), targets, folder, settings=quick(training__epochs=3, model__norm="batch"))
    return load_run(folder)


@pytest.fixture(scope="module")
def acids() -> Run:
    """Answers for molecules."""
    pytest.importorskip("rdkit")
    return train(smiles(), "graph:acid,size", settings=quick(training__epochs=3, model__norm="batch"))


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The predictions alone."""
    names = [name for name in frame if "_p_" in name or name.endswith("_predicted") or name.startswith("e")]
    return frame[names].select_dtypes("number").reset_index(drop=True)


def assert_same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    assert len(numbers(one).columns)
    pd.testing.assert_frame_equal(numbers(one), numbers(other), rtol=0, atol=1e-5, check_dtype=False)


# -- any batch, any order -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 37, 10**9])
def test_the_size_of_a_batch_changes_no_prediction(rows, beads, acids, monkeypatch):
    expected = [beads.predict(shapes(), level) for level in ("graph", "node", "edge")]
    molecules, embedded = acids.predict(smiles()), acids.embed(smiles())
    monkeypatch.setattr(infer_module, "BATCH_ROWS", rows)
    for level, before in zip(("graph", "node", "edge"), expected, strict=True):
        assert_same(beads.predict(shapes(), level), before)
    assert_same(acids.predict(smiles()), molecules)
    for table, before in zip(acids.embed(smiles()), embedded, strict=True):
        np.testing.assert_allclose(table.filter(regex=r"^e\d"), before.filter(regex=r"^e\d"), atol=1e-5)


def test_the_order_of_rows_changes_no_prediction(town, beads, acids):
    rng = np.random.default_rng(1)
    data, many, frame = payments(), shapes(), smiles()

    def shuffled(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        order = rng.permutation(len(frame))
        return frame.iloc[order].reset_index(drop=True), order

    (nodes, node_order), (edges, edge_order) = shuffled(data.nodes), shuffled(data.edges)
    assert_same(town.predict(Tables(nodes, edges), "node"), town.predict(data, "node").iloc[node_order])
    assert_same(town.predict(Tables(nodes, edges), "edge"), town.predict(data, "edge").iloc[edge_order])
    (graphs, order), (beads_nodes, _), (beads_edges, _) = (
        shuffled(many.graphs), shuffled(many.nodes), shuffled(many.edges),
    )  # fmt: skip
    assert_same(
        beads.predict(Tables(beads_nodes, beads_edges, graphs), "graph"), beads.predict(many, "graph").iloc[order]
    )
    molecules, order = shuffled(frame)
    assert_same(acids.predict(molecules), acids.predict(frame).iloc[order])


def test_the_two_ends_of_an_edge_may_be_swapped(town):
    data = payments()
    swapped = data.edges.rename(columns={"source": "target", "target": "source"})[data.edges.columns]
    assert_same(town.predict(Tables(data.nodes, swapped), "edge"), town.predict(data, "edge"))


def test_some_molecules_have_the_predictions_they_have_among_all(acids):
    frame = smiles()
    assert_same(acids.predict(frame.iloc[[7, 3]].reset_index(drop=True)), acids.predict(frame).iloc[[7, 3]])
    texts = frame["smiles"].tolist()
    assert_same(acids.predict(texts), acids.predict(frame))


# -- new data -------------------------------------------------------------------------------------------------------


def test_new_rows_of_the_same_graph_have_predictions_and_leave_far_ones_alone(town):
    data = payments()
    far = pd.DataFrame([{"id": "new1", "age": 33.0, "country": "fr"}, {"id": "new2", "age": 71.0, "country": "it"}])
    between = pd.DataFrame([{"source": "new1", "target": "new2", "amount": 12.0, "way": "card", "sort": "small"}])
    between["fee"] = 1.5
    more = Tables(pd.concat([data.nodes, far], ignore_index=True), pd.concat([data.edges, between], ignore_index=True))
    prediction = town.predict(more, "edge")
    assert prediction["source"].iloc[-1] == "new1"
    assert 0 <= prediction["fraud_p_1"].iloc[-1] <= 1
    assert_same(prediction.iloc[:-1], town.predict(data, "edge"))  # the new part touches no old account


def test_a_graph_of_other_accounts_is_predicted_and_scored(town):
    other = payments(accounts=12, rows=25, seed=5)
    prediction = town.predict(other, "node")
    assert prediction["id"].tolist() == other.nodes["id"].tolist()
    scores = town.evaluate(other)
    assert set(scores) == {"all"}
    right = (prediction["tier_predicted"] == other.nodes["tier"]).mean()
    assert scores["all"]["node"]["accuracy"] == pytest.approx(right)


def test_new_categories_and_missing_values_are_predicted(town):
    data = payments(accounts=12, rows=25, seed=5)
    nodes = data.nodes.assign(country=["xx"] * 6 + [None] * 6)
    prediction = town.predict(Tables(nodes, data.edges), "node")
    assert prediction["tier_p_gold"].between(0, 1).all()
    assert "error" not in prediction


def test_data_to_predict_need_no_labels(town, acids):
    data = payments()
    bare = Tables(data.nodes.drop(columns=["tier"]), data.edges.drop(columns=["fraud"]))
    assert_same(town.predict(bare, "edge"), town.predict(data, "edge"))
    assert_same(acids.predict(smiles()[["smiles"]]), acids.predict(smiles()))
    with pytest.raises(ValueError, match="tier"):
        town.evaluate(Tables(payments(9, 20, 3).nodes.drop(columns=["tier"]), payments(9, 20, 3).edges))


def test_a_row_that_cannot_be_used_keeps_its_place(town, acids):
    prediction = acids.predict(["CCO", "not a molecule", "CCN"])
    assert prediction["error"].isna().tolist() == [True, False, True]
    assert prediction["acid_p_1"].isna().tolist() == [False, True, False]
    assert_same(prediction.iloc[[0, 2]], acids.predict(["CCO", "CCN"]))
    data = payments()
    edges = data.edges.copy()
    edges.loc[4, "target"] = "nobody"
    prediction = town.predict(Tables(data.nodes, edges), "edge")
    assert np.flatnonzero(prediction["error"].notna()).tolist() == [4]
    assert np.flatnonzero(prediction["fraud_p_1"].isna()).tolist() == [4]
    with pytest.raises(ValueError, match=r"row 5, column target: no node has the id 'nobody'"):
        town.predict(Tables(data.nodes, edges), "edge", strict=True)


def test_data_of_another_shape_are_refused(town, acids):
    with pytest.raises(ValueError, match="data is a list of texts, expected tables: this run was not trained on"):
        town.predict(["CCO"], "node")
    with pytest.raises(ValueError, match="is missing, expected a number as in training"):
        town.predict(Tables(payments().nodes.drop(columns=["age"]), payments().edges), "node")
    with pytest.raises(ValueError, match="level is 'graph', expected node or edge: this run predicts no other"):
        town.predict(payments(), "graph")
    with pytest.raises(ValueError, match="top is given, which is for links, but what is predicted is edge"):
        town.predict(payments(), "edge", top=3)


# -- ensembles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "data"), [("edge:sort", payments), ("graph:ring,weight", shapes)])
def test_an_ensemble_gives_the_mean_and_the_deviation_of_its_members(target, data):
    run = train(data(), target, settings=quick(training__epochs=3), ensemble=3)
    assert len(run.models) == 3
    prediction = run.predict(data())
    dataset = run.read(data())
    level, targets = run.levels[0], run.config.targets
    with torch.no_grad():
        graph = dataset.graph if level == "edge" else dataset.graph.batch(torch.arange(len(dataset.graph)))
        each = torch.stack([model(graph).by_level[level] for model in run.models])[:, dataset.rows(level)]
    if target == "edge:sort":
        p = each.softmax(2)
        for code, name in enumerate(targets[0].classes):
            np.testing.assert_allclose(prediction[f"sort_p_{name}"], p[..., code].mean(0), atol=1e-6)
            np.testing.assert_allclose(prediction[f"sort_std_{name}"], p[..., code].std(0), atol=1e-6)
    else:
        np.testing.assert_allclose(prediction["ring_p_1"], each[..., 0].sigmoid().mean(0), atol=1e-6)
        weight = each[..., 1] * targets[1].scale + targets[1].mean
        np.testing.assert_allclose(prediction["weight_predicted"], weight.mean(0), rtol=1e-5)
        np.testing.assert_allclose(prediction["weight_std"], weight.std(0), rtol=1e-3, atol=1e-6)
    assert not torch.equal(each[0], each[1]), "members start from seeds of their own"


def test_the_average_of_members_is_that_of_their_probabilities():
    run = train(payments(), "node:vip", settings=quick(training__epochs=1))
    logits = torch.tensor([[[2.0], [-1.0]], [[0.0], [3.0]]])
    found = average(run.config.targets, logits).sigmoid()
    torch.testing.assert_close(found, logits.sigmoid().mean(0), atol=1e-6, rtol=1e-5)


# -- evaluate -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "target", "ensemble"),
    [
        (payments, ["node:tier", "edge:fee"], 1),
        (payments, "edge:fraud", 3),
        (payments, ["node:vip", "link"], 1),
        (shapes, "graph:ring,many_red,weight", 2),
    ],
)
def test_evaluating_on_the_training_data_gives_the_stored_metrics(data, target, ensemble, tmp_path):
    run = train(data(), target, tmp_path / "run", settings=quick(training__epochs=3), ensemble=ensemble)
    assert run.evaluate(data()) == run.metrics
    back = load_run(tmp_path / "run")
    assert back.evaluate(data()) == back.metrics == run.metrics


def test_the_metrics_are_those_of_the_stored_predictions():
    data = payments()
    run = train(data, "node:tier", settings=quick(training__epochs=3))
    stored = run.predictions["node"]
    test = stored["split"] == "test"
    right = stored["tier_predicted"][test] == data.nodes["tier"][test]
    assert run.metrics["test"]["node"]["accuracy"] == pytest.approx(right.mean())
    assert stored["id"].tolist() == data.nodes["id"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "target"),
    [
        (payments, ["node:tier", "edge:fee"]),
        (shapes, ["graph:ring,many_red,weight", "node:warm"]),
        (smiles, "graph:size,acid"),
    ],
)
def test_stored_predictions_have_every_observed_value_before_its_predictions(data, target, tmp_path):
    tables = data()
    tables = tables if isinstance(tables, Tables) else Tables(graphs=tables)
    run = train(tables, target, tmp_path / "run", settings=quick(training__epochs=1))
    for level, stored in load_run(tmp_path / "run").predictions.items():
        frame = {"node": tables.nodes, "edge": tables.edges, "graph": tables.graphs}[level]
        for column in [item.column for item in run.config.targets if item.level == level]:
            assert stored[column].isna().tolist() == frame[column].isna().tolist()
            assert stored[column].dropna().tolist() == frame[column].dropna().tolist()
            names = list(stored.columns)
            assert names.index(column) + 1 == names.index(f"{column}_predicted")
        assert set(stored["split"].dropna()) == {"train", "validation", "test"}


@pytest.mark.parametrize("stated", [True, False])
def test_one_column_of_stored_predictions_says_the_split(stated, tmp_path):
    frame = smiles()
    frame.insert(0, "split", ["train", "train", "valid", "test"] * 10 if stated else [f"s{n}" for n in range(40)])
    settings = quick(training__epochs=1, **({} if stated else {"data__split": "ratio"}))
    run = train(frame, "graph:acid", tmp_path / "run", settings=settings)
    for table in (load_run(tmp_path / "run").predictions["graph"], run.splits):
        assert [name for name in table if "split" in name.lower()] == ["split"]
    if stated:
        found = run.predictions["graph"]["split"].tolist()
        assert found == ["train", "train", "validation", "test"] * 10


# -- molecules as such ------------------------------------------------------------------------------------------------


def test_one_smiles_or_several_are_data(acids):
    expected = acids.predict(["CCO", "c1ccccc1"])
    assert_same(acids.predict("CCO"), expected.iloc[:1])
    assert_same(acids.predict(pd.Series(["CCO", "c1ccccc1"])), expected)
    assert_same(acids.predict(np.array(["CCO", "c1ccccc1"])), expected)
    assert_same(acids.predict(("CCO", "c1ccccc1")), expected)
    assert acids.predict("CCO")["smiles"].tolist() == ["CCO"]


def test_a_file_of_that_name_wins_over_a_smiles(acids, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "C").mkdir()
    pd.DataFrame({"smiles": ["CCN", "CCF"]}).to_csv(tmp_path / "C" / "graphs.csv", index=False)
    assert acids.predict("C")["smiles"].tolist() == ["CCN", "CCF"]


@pytest.mark.parametrize("text", ["molecules.csv", "CC(", "[C,N]", "", "/no/such/place", "C\0C", "x" * 5000])
def test_what_is_neither_a_file_nor_a_smiles_is_one_line(text, acids):
    with pytest.raises(ValueError, match=r"no such file, folder or data set, and it is no SMILES either") as error:
        acids.predict(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_a_run_on_tables_takes_no_smiles(town):
    with pytest.raises(ValueError, match="there is no such file"):
        town.predict("CCO", "node")
    with pytest.raises(ValueError, match="not trained on SMILES"):
        town.predict(["CCO"], "node")


def test_molecules_to_predict_need_no_names_though_training_had_some():
    frame = smiles().rename(columns={"smiles": "Structure"})
    frame.insert(0, "name", [f"m{number}" for number in range(len(frame))])
    run = train(frame, "graph:acid", settings=quick(training__epochs=1))
    expected = run.predict(frame)
    assert_same(run.predict(frame["Structure"].tolist()), expected)
    other = frame[["Structure"]].rename(columns={"Structure": "SMILES"})
    assert_same(run.predict(other), expected)
    assert run.embed(other).nodes["SMILES"].iloc[0] == frame["Structure"].iloc[0]
    with pytest.raises(ValueError, match="column Structure: is missing, expected SMILES as in training"):
        run.predict(Tables(graphs=frame[["name"]]))


# -- embed ----------------------------------------------------------------------------------------------------------


def test_embeddings_of_one_graph_have_the_users_ids_in_their_order(town):
    data = payments()
    found = town.embed(data)
    assert found.graphs is None
    assert found.nodes["id"].tolist() == data.nodes["id"].tolist()
    assert found.edges[["source", "target"]].values.tolist() == data.edges[["source", "target"]].values.tolist()
    dataset = town.read(data)
    with torch.no_grad():
        nodes, edges = town.models[0].embed(dataset.graph)
    np.testing.assert_allclose(found.nodes.filter(regex=r"^e\d"), nodes[dataset.rows("node")], atol=1e-6)
    np.testing.assert_allclose(found.edges.filter(regex=r"^e\d"), edges[dataset.rows("edge")], atol=1e-6)


def test_embeddings_of_many_graphs_have_three_tables(beads):
    data = shapes()
    found = beads.embed(data)
    assert found.graphs is not None
    assert found.graphs["graph"].tolist() == data.graphs["graph"].tolist()
    assert found.nodes[["graph", "id"]].values.tolist() == data.nodes[["graph", "id"]].values.tolist()
    assert len(found.edges) == len(data.edges)
    dataset = beads.read(data)
    model = beads.models[0]
    with torch.no_grad():
        batch = dataset.graph.batch(dataset.rows("graph")[[5]])
        pooled = model.heads["graph"].embed(*model.embed(batch), batch)
    np.testing.assert_allclose(found.graphs.filter(regex=r"^e\d").iloc[[5]], pooled, atol=1e-5)


def test_embeddings_of_atoms_and_bonds_can_be_joined_to_the_rows_of_the_input(acids):
    texts = ["CCO", "broken", "C#N", "[2H]C([2H])O[H]"]
    found = acids.embed(texts)
    assert found.graphs is not None
    assert found.graphs["error"].isna().tolist() == [True, False, True, True]
    assert found.graphs["row"].tolist() == [1, 2, 3, 4]
    assert found.nodes["row"].tolist() == [1, 1, 1, 3, 3, 4, 4]
    assert found.nodes["smiles"].tolist() == ["CCO"] * 3 + ["C#N"] * 2 + [texts[3]] * 2
    assert found.nodes["atom"].tolist() == [0, 1, 2, 0, 1, 1, 3], "hydrogens that are written count"
    assert found.edges["smiles"].tolist() == ["CCO"] * 2 + ["C#N", texts[3]]
    assert found.edges[["row", "bond", "source", "target"]].values.tolist() == [
        [1, 0, 0, 1],
        [1, 1, 1, 2],
        [3, 0, 0, 1],
        [4, 0, 1, 3],
    ]


def test_columns_of_the_users_never_stand_beside_columns_of_embeddings_with_their_names(acids):
    frame = pd.DataFrame({"smiles": ["CCO"], "id": ["x"]}).rename(columns={"id": "row"})
    for name in ("row", "atom", "source"):
        data = frame.rename(columns={"row": name}).assign(id=["ethanol"])
        found = acids.embed(data)
        for table in found:
            assert table is not None
            assert table.columns.is_unique
            assert table["id"].iloc[0] == "ethanol"


def test_embeddings_of_the_edges_of_many_graphs_have_the_graph_and_both_ends(beads):
    data, found = shapes(), beads.embed(shapes())
    names = ["graph", "source", "target"]
    assert found.edges[names].values.tolist() == data.edges[names].values.tolist()


def test_embeddings_of_an_ensemble_are_concatenated():
    run = train(payments(), "node:vip", settings=quick(training__epochs=1), ensemble=2)
    both = run.embed(payments()).nodes.filter(regex=r"^e\d").to_numpy()
    dataset = run.read(payments())
    with torch.no_grad():
        each = [model.embed(dataset.graph)[0] for model in run.models]
    np.testing.assert_allclose(both, torch.cat(each, dim=1), atol=1e-6)


def test_without_a_head_for_graphs_they_are_the_means_of_both_sides():
    run = train(shapes(12), "node:warm", settings=quick(training__epochs=1))
    found = run.embed(shapes(12))
    assert found.graphs is not None
    nodes = found.nodes.filter(regex=r"^e\d").groupby(found.nodes["graph"], sort=False).mean()
    edges = found.edges.filter(regex=r"^e\d").groupby(found.edges["graph"], sort=False).mean()
    by_hand = pd.concat([nodes, edges], axis=1).loc[found.graphs["graph"]]
    np.testing.assert_allclose(found.graphs.filter(regex=r"^e\d"), by_hand, atol=1e-5)


# -- links ----------------------------------------------------------------------------------------------------------


def test_given_pairs_are_scored_and_unknown_ones_keep_their_place():
    data = payments()
    run = train(data, "link", settings=quick(training__epochs=3, model__latent=4), directed=False)
    pairs = pd.DataFrame({"source": ["a0", "a1", "zz"], "target": ["a1", "a0", "a2"]})
    found = run.predict(data, pairs=pairs)
    assert found["link_p"].iloc[0] == pytest.approx(found["link_p"].iloc[1])  # i-j is j-i
    assert np.isnan(found["link_p"].iloc[2])
    assert found["error"].iloc[2] == "pairs, row 3, column source: no node has the id 'zz'"
    with pytest.raises(ValueError, match="top is 0, expected at least 1"):
        run.predict(data, top=0)


def test_the_likeliest_links_are_those_of_all_pairs():
    data = payments(accounts=12, rows=30)
    run = train(data, "link", settings=quick(training__epochs=3, model__latent=4), directed=False)
    joined = {frozenset(pair) for pair in data.edges[["source", "target"]].values.tolist()}
    names = data.nodes["id"].tolist()
    free = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if frozenset((a, b)) not in joined]
    every = run.predict(data, pairs=pd.DataFrame(free, columns=["source", "target"]))
    best = every.sort_values("link_p", ascending=False)["link_p"].iloc[:7]
    assert len(run.predict(data, top=1)) == 1
    found = run.predict(data, top=7)
    np.testing.assert_allclose(found["link_p"], best, atol=1e-6)
    assert all(frozenset(pair) not in joined for pair in found[["source", "target"]].values.tolist())


# -- numbers within the range of training labels ----------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [1, 2])
def test_numbers_stay_within_the_training_labels_if_asked(ensemble):
    data = payments()
    found = {}
    for within in (False, True):
        settings = quick(training__epochs=2, training__learning_rate=0.3, model__clip_to_label_range=within)
        run = train(data, ["edge:fee", "edge:fraud"], settings=settings, ensemble=ensemble)
        (fee,) = (target for target in run.config.targets if target.column == "fee")
        predictions = run.predict(data)
        found[within] = predictions["fee_predicted"]
        assert predictions["fraud_p_1"].between(0, 1).all()
    labels = data.edges["fee"]
    assert labels.min() <= fee.low < fee.high <= labels.max()
    assert found[True].between(fee.low - 1e-4, fee.high + 1e-4).all()
    assert not found[False].between(fee.low, fee.high).all()


# -- names ------------------------------------------------------------------------------------------------------------

ODD = ["007", "7", "0x0D", " 1", "1", "-0", "0", "+1", "1.0", "1e3", "True", "2024-01-01", "NA", "null", "nan", "é",
       "e\u0301", "a\nb", 'q"q', "a,b", "18446744073709551616", "#", "=1+1", "a\0b"]  # fmt: skip


@pytest.mark.slow
def test_ids_come_back_from_a_run_as_they_were_written(tmp_path):
    data = payments(len(ODD), 60)
    names = dict(zip(data.nodes["id"], ODD, strict=True))
    data.nodes.assign(id=data.nodes["id"].map(names)).to_csv(tmp_path / "nodes.csv", index=False)
    ends = {end: data.edges[end].map(names) for end in ("source", "target")}
    data.edges.assign(**ends).to_csv(tmp_path / "edges.csv", index=False)
    out = tmp_path / "run"
    run = train(str(tmp_path), ["node:vip", "link"], out, settings=quick(training__epochs=1))
    kept = load_run(out)
    assert kept.predictions["node"]["id"].tolist() == ODD
    assert set(kept.splits.loc[kept.splits["table"] == "nodes", "id"]) <= set(ODD)
    assert run.predict(str(tmp_path), "node")["id"].tolist() == ODD
    pd.DataFrame({"source": ODD[:2], "target": ["0x0D", "13"]}).to_csv(tmp_path / "pairs.csv", index=False)
    found = predict_levels(kept, str(tmp_path), ["link"], pairs=tmp_path / "pairs.csv")["link"]
    assert found["source"].tolist() == ODD[:2]
    assert found["error"].isna().tolist() == [True, False]
    assert kept.evaluate(str(tmp_path)).keys() == {"train", "validation", "test"}
    again = quick(training__epochs=1) | {"data.split": "file", "data.split_file": str(out / "splits.csv")}
    assert train(str(tmp_path), ["node:vip", "link"], settings=again).splits.equals(run.splits)


# -- the graph at hand ------------------------------------------------------------------------------------------------


def test_the_size_of_the_graph_is_logged_beside_that_of_training(town, beads, tmp_path, caplog):
    with caplog.at_level("INFO", "censnet"):
        town.predict(payments(), "node")
    assert "the graph has 30 nodes, 90 edges, mean degree 6.0, as in training" in caplog.text
    caplog.clear()
    with caplog.at_level("INFO", "censnet"):
        town.embed(payments(rows=60))
    assert "the graph has 30 nodes, 60 edges, mean degree 4.0; trained on 30 nodes, 90 edges" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    few = Tables(nodes=payments().nodes, edges=payments().edges[:20])
    caplog.clear()
    town.evaluate(few)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    warning = next(text for text in warnings if "known from training" not in text)
    assert warning.startswith("the graph has 30 nodes, 20 edges, mean degree 1.3; trained on 30 nodes, 90 edges, mean")
    assert "give new rows with the history before them" in warning
    assert warning in town.read(few).notes
    assert beads.config.graph_size.graphs == 40, "it is stored in the run"
    assert any(note.startswith("there are 12 graphs of ") for note in beads.read(shapes(12)).notes)


def test_a_clipped_prediction_is_marked_and_its_deviation_is_that_of_the_members(tmp_path):
    data = shapes()
    data = Tables(data.nodes.assign(grams=np.arange(len(data.nodes)) % 7 / 7), data.edges, data.graphs)
    settings = quick(training__epochs=2, model__norm=None, model__pool_norm=None, model__clip_to_label_range=True)
    run = train(data, "graph:weight", tmp_path / "run", settings=settings, ensemble=3)
    far = data.nodes.assign(grams=np.where(data.nodes["graph"] == "g0", 1e5, data.nodes["grams"]))
    found = load_run(tmp_path / "run").predict(Tables(far, data.edges, data.graphs))
    plain = found.iloc[1:]
    (target,) = run.config.targets
    assert found["weight_clipped"].dtype == bool
    assert found["weight_clipped"][0]
    assert target.low <= found["weight_predicted"][0] <= target.high
    assert abs(found["weight_raw"][0]) > 100
    assert found["weight_std"][0] > 100  # as far apart as the members are, though all were clipped
    kept = plain[~plain["weight_clipped"]]
    np.testing.assert_allclose(kept["weight_raw"], kept["weight_predicted"])
    assert "weight_clipped" in run.predictions["graph"]
    free = train(data, "graph:weight", settings=settings | {"model.clip_to_label_range": False})
    assert not [name for name in free.predict(data) if name.endswith(("_clipped", "_raw"))]


def test_predictions_that_are_not_finite_are_refused():
    run = train(payments(), "edge:fee", settings=quick(training__epochs=1))
    with torch.no_grad():
        for weight in run.models[0].parameters():
            weight.fill_(3e38)
    with pytest.raises(
        ValueError, match=r"fee_predicted is (inf|-inf|nan) for \d+ of 90 rows, expected finite numbers"
    ):
        run.predict(payments())
