"""Oriented targets from tables to predictions: exchanged ends flip exactly the answers of their rows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from censnet.data.tables.files import Tables
from censnet.errors import DataError, SettingsError
from censnet.pipeline import train
from censnet.pipeline.inspect import inspect_data
from censnet.runs import Run, load_run

SMALL = {"training.epochs": 2, "model.hidden": 8, "model.layers": "ENEN", "model.head": [8], "training.batch_size": 8}
ODD = ["flow", "shift"]
TARGETS = ["edge:flow=oriented", "edge:loading", "node:head", "graph:total"]


def grids(count: int = 12, seed: int = 0, num_nodes: int = 10, num_edges: int = 15) -> dict[str, pd.DataFrame]:
    """Flows in small grids by Kirchhoff's laws: parallel lines, and a loop whose flow is 0."""
    rng = np.random.default_rng(seed)
    tables: dict[str, list[pd.DataFrame]] = {"nodes": [], "edges": [], "graphs": []}
    for graph in range(count):
        start = np.concatenate([np.arange(1, num_nodes), rng.integers(0, num_nodes, num_edges - num_nodes), [3]])
        lower = (rng.random(num_nodes - 1) * np.arange(1, num_nodes)).astype(int)
        end = np.concatenate([lower, rng.integers(0, num_nodes, num_edges - num_nodes), [3]])
        length, shift, load = rng.uniform(0.5, 2, len(start)), rng.normal(size=len(start)), rng.normal(size=num_nodes)
        load -= load.mean()
        B = np.zeros((num_nodes, len(start)))
        np.add.at(B, (start, np.arange(len(start))), -1)
        np.add.at(B, (end, np.arange(len(start))), 1)
        shift[start == end] = 0
        head = np.linalg.lstsq(B / length @ B.T, B @ (shift / length) - load, rcond=None)[0]
        flow = (shift - B.T @ head) / length
        tables["nodes"].append(
            pd.DataFrame({"graph": graph, "id": range(num_nodes), "load": load, "head": head - head[0]})
        )
        edges = pd.DataFrame(
            {"graph": graph, "source": start, "target": end, "length": length, "shift": shift, "flow": flow}
        )
        tables["edges"].append(edges.assign(loading=np.abs(flow)))
        tables["graphs"].append(pd.DataFrame({"graph": [graph], "total": [np.abs(flow).sum()]}))
    return {name: pd.concat(frames, ignore_index=True) for name, frames in tables.items()}


def flip(edges: pd.DataFrame, chosen: np.ndarray) -> pd.DataFrame:
    """The table with the ends of some rows exchanged, and what is oriented negated there."""
    swapped = edges.assign(source=edges["target"], target=edges["source"], **{name: -edges[name] for name in ODD})
    return pd.DataFrame({name: np.where(chosen, swapped[name], edges[name]) for name in edges})


@cache
def trained() -> Run:
    return train(Tables(**grids()), TARGETS, settings=SMALL, overrides={"shift": "oriented"}, device="cpu")


def test_flipped_tables_flip_the_answers_of_their_rows_alone() -> None:
    run, frames = trained(), grids(6, seed=1)
    before = {level: run.predict(Tables(**frames), level, keep="ids") for level in ("edge", "node", "graph")}
    embedded = run.embed(Tables(**frames))
    assert before["edge"]["flow_predicted"].abs().max() > 0.01
    rng = np.random.default_rng(0)
    for _ in range(10):
        chosen = rng.random(len(frames["edges"])) < 0.5
        tables = Tables(**{**frames, "edges": flip(frames["edges"], chosen)})
        after = {level: run.predict(tables, level, keep="ids") for level in before}
        sign = np.where(chosen, -1.0, 1.0)
        np.testing.assert_allclose(sign * after["edge"]["flow_predicted"], before["edge"]["flow_predicted"], rtol=1e-6)
        for level, column in (("edge", "loading"), ("node", "head"), ("graph", "total")):
            np.testing.assert_allclose(
                after[level][f"{column}_predicted"], before[level][f"{column}_predicted"], rtol=1e-6
            )
    found = run.embed(tables)
    even, odd = ([f"e{channel}" for channel in range(*span)] for span in ((0, 8), (8, 16)))
    np.testing.assert_allclose(found.edges[even], embedded.edges[even], rtol=1e-6)
    np.testing.assert_allclose(sign[:, None] * found.edges[odd], embedded.edges[odd], rtol=1e-6)
    np.testing.assert_allclose(found.nodes.filter(regex="^e"), embedded.nodes.filter(regex="^e"), rtol=1e-6)
    np.testing.assert_allclose(found.graphs.filter(regex="^e"), embedded.graphs.filter(regex="^e"), rtol=1e-6)


def test_the_answers_of_100_subsets_of_rows_flip_and_all_others_stay() -> None:
    run, frames = trained(), grids(3, seed=3)
    before = run.predict(Tables(**frames), "edge", keep="ids")
    flow, loading = before["flow_predicted"].to_numpy(), before["loading_predicted"].to_numpy()
    rng = np.random.default_rng(0)
    for _ in range(100):
        chosen = rng.random(len(flow)) < rng.random()
        after = run.predict(Tables(**{**frames, "edges": flip(frames["edges"], chosen)}), "edge", keep="ids")
        np.testing.assert_allclose(np.where(chosen, -1, 1) * after["flow_predicted"], flow, rtol=0, atol=1e-6)
        np.testing.assert_allclose(after["loading_predicted"], loading, rtol=0, atol=1e-6)
    assert np.abs(flow).max() > 0.01


def test_a_loop_answers_0_and_scores_do_not_depend_on_the_order_of_ends(tmp_path: Path) -> None:
    run, frames = trained(), grids(6, seed=2)
    loops = (frames["edges"]["source"] == frames["edges"]["target"]).to_numpy()
    assert loops.any()
    assert not run.predict(Tables(**frames), "edge").loc[loops, "flow_predicted"].any()
    chosen = np.random.default_rng(1).random(len(frames["edges"])) < 0.5
    one, two = (
        run.evaluate(Tables(**{**frames, "edges": edges})) for edges in (frames["edges"], flip(frames["edges"], chosen))
    )
    assert one["all"]["edge"]["flow/rmse"] == pytest.approx(two["all"]["edge"]["flow/rmse"], rel=1e-6)
    assert {"flow/rmse", "flow/mae", "flow/r2"} <= one["all"]["edge"].keys()
    run.save(tmp_path / "run")
    again = load_run(tmp_path / "run")
    assert (again.config.odd_width, again.config.settings.model.directed) == (1, False)
    pd.testing.assert_frame_equal(again.predict(Tables(**frames), "edge"), run.predict(Tables(**frames), "edge"))


def test_edges_that_are_there_twice_have_answers_of_opposite_sign() -> None:
    frames = grids()
    edges = frames["edges"]
    edges = edges[
        ~edges[["graph"]]
        .assign(pair=[frozenset(two) for two in zip(edges["source"], edges["target"], strict=True)])
        .duplicated()
    ]
    edges = edges[edges["source"] != edges["target"]]
    back = flip(edges, np.ones(len(edges), bool)).set_index(edges.index)
    both = pd.concat([edges, back]).sort_index(kind="stable").reset_index(drop=True)
    tables = Tables(**{**frames, "edges": both})
    run = train(tables, TARGETS[:2], settings=SMALL, overrides={"shift": "oriented"}, device="cpu")
    assert run.schema.edge_form == "twice"
    found = run.predict(tables, "edge")
    pairs = found.assign(pair=[frozenset(two) for two in zip(found["source"], found["target"], strict=True)])
    for _, rows in pairs.groupby(["graph", "pair"]):
        one, other = rows["flow_predicted"]
        assert one == -other
        assert rows["loading_predicted"].nunique() == 1
    once = train(Tables(**{**frames, "edges": edges.reset_index(drop=True)}), TARGETS[:2], settings=SMALL,
                 overrides={"shift": "oriented"}, device="cpu")  # fmt: skip
    assert once.metrics["test"]["edge"] == pytest.approx(run.metrics["test"]["edge"], rel=1e-3)
    table = run.embed(tables).edges
    first, second = table.iloc[0], table.iloc[1]
    assert (first["source"], first["target"]) == (second["target"], second["source"])
    np.testing.assert_array_equal(first[[f"e{c}" for c in range(8, 16)]], -second[[f"e{c}" for c in range(8, 16)]])


def test_one_graph_is_learned_too_with_odd_columns_alone() -> None:
    frames = grids(1, num_nodes=30, num_edges=60)
    tables = Tables(nodes=frames["nodes"].drop(columns="graph"), edges=frames["edges"].drop(columns="graph"))
    run = train(tables, "edge:loading", settings=SMALL, overrides={"shift": "oriented", "flow": "drop"}, device="cpu")
    chosen = np.arange(len(tables.edges)) % 2 == 0
    other = Tables(nodes=tables.nodes, edges=flip(tables.edges, chosen))
    np.testing.assert_allclose(
        run.predict(other)["loading_predicted"], run.predict(tables)["loading_predicted"], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model.kernel", "pagerank"),
        ("model.self_weight", "one"),
        ("model.directed", True),
        ("model.pair_means", True),
        ("model.known_labels", True),
        ("model.last_layer_is_head", True),
        ("model.variant", "released"),
        ("training.recipe", "high_label"),
    ],
)
def test_settings_that_oriented_layers_do_not_read_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=rf"{name} is .*oriented"):
        train(Tables(**grids(6)), TARGETS[:1], settings={**SMALL, name: value}, device="cpu")


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_other_presets_leave_out_what_cannot_be_followed(preset: str) -> None:
    settings = {"training.epochs": 1, "training.batch_size": 8}
    run = train(Tables(**grids(6)), TARGETS[:1], preset=preset, settings=settings, device="cpu")
    assert (run.config.settings.model.variant, run.config.settings.model.last_layer_is_head) == ("paper", False)


def test_directed_and_links_beside_oriented_are_refused() -> None:
    with pytest.raises(DataError, match="edges are said to be directed, and flow to be oriented"):
        train(Tables(**grids(6)), TARGETS[:1], settings=SMALL, directed=True, device="cpu")
    one = {name: frame.drop(columns="graph") for name, frame in grids(1).items() if name != "graphs"}
    with pytest.raises(SettingsError, match="links are predicted, expected none beside an oriented"):
        train(Tables(**one), [TARGETS[0], "link"], settings=SMALL, device="cpu")


def test_an_ensemble_and_clipped_answers_are_odd_too() -> None:
    frames = grids(8)
    settings = {**SMALL, "model.clip_to_label_range": True, "training.epochs": 1}
    run = train(
        Tables(**frames), TARGETS[:1], settings=settings, ensemble=2, overrides={"shift": "oriented"}, device="cpu"
    )
    chosen = np.arange(len(frames["edges"])) % 3 == 0
    wide = frames["nodes"].assign(load=frames["nodes"]["load"] * 1000)
    one, two = (
        run.predict(Tables(**{**frames, "nodes": wide, "edges": edges}))
        for edges in (frames["edges"], flip(frames["edges"], chosen))
    )
    assert one["flow_clipped"].any()
    sign = np.where(chosen, -1.0, 1.0)
    for column in ("flow_predicted", "flow_raw"):
        np.testing.assert_allclose(sign * two[column], one[column], rtol=1e-6)
    np.testing.assert_allclose(two["flow_std"], one["flow_std"], rtol=1e-6)


def test_inspection_suggests_oriented_numbers_and_no_others() -> None:
    frames = grids(30)
    rng = np.random.default_rng(0)
    edges = frames["edges"].assign(score=rng.normal(size=len(frames["edges"])))
    said = [
        note
        for note in inspect_data(Tables(**{**frames, "edges": edges}), "edge:flow").notes
        if note.kind == "oriented"
    ]
    assert len(said) == 1
    assert "the sign of flow seems to follow the order of source and target" in said[0]
    assert said[0].endswith("if that order is arbitrary, say target='edge:flow=oriented'")
    asked = inspect_data(Tables(**frames), "edge:flow=oriented", overrides={"shift": "oriented"})
    assert not [note for note in asked.notes if note.kind == "oriented"]
    assert asked.labels[0].kind == "oriented"
    assert asked.labels[0].quantity


def test_inspection_suggests_numbers_that_change_sign_in_the_opposite_row() -> None:
    rng = np.random.default_rng(0)
    start, end = rng.integers(0, 40, (2, 60))
    height, mood = rng.normal(size=60), rng.normal(size=60)
    edges = pd.DataFrame(
        {"source": [*start, *end], "target": [*end, *start], "height": [*height, *-height], "mood": [*mood, *mood]}
    )
    said = [note for note in inspect_data(edges.drop_duplicates(["source", "target"])).notes if note.kind == "oriented"]
    assert len(said) == 1
    assert "the sign of height seems to follow" in said[0]
    assert "overrides={'height': 'oriented'}" in said[0]
