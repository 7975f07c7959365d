"""Laws over all tasks: what is done to other rows of the data to predict moves no row's answer."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from laws import CHANGES, LEVELS, TASKS, Changed, Frames, is_twice, permute, trained

from censnet.data.tables.files import Tables
from censnet.pipeline import train
from censnet.runs import Run

NEAR = 1e-5
QUICKLY = settings(max_examples=6, phases=[Phase.generate])  # of each task; what fails is small already


def numbers(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """The answers of each row: probabilities, numbers and their deviations."""
    kept = [name for name in frame if any(mark in str(name) for mark in ("_p", "_std", "_predicted"))]
    found = frame[kept].select_dtypes("number")
    assert found.shape[1] > 0, f"no answers in {', '.join(map(str, frame))}"
    return found.to_numpy(dtype=np.float64, na_value=np.nan)


def answers(run: Run, state: Changed, start: Frames) -> dict[str, np.ndarray[Any, Any]]:
    """Level -> the answers of the rows at the start, in their order; of links those of fixed pairs of nodes."""
    data, found = Tables(**state.frames), {}
    for level in run.levels:
        if level == "link":
            names = start["edges"][["source", "target"]].iloc[:30]
            now = {key: [state.names["nodes"].get(name, name) for name in names[key]] for key in names}
            found[level] = numbers(run.predict(data, level, pairs=pd.DataFrame(now)))
        else:
            rows = numbers(run.predict(data, level, keep="ids"))
            found[level] = rows[state.rows[LEVELS[level]]]
    return found


@cache
def expected(name: str) -> dict[str, np.ndarray[Any, Any]]:
    start = TASKS[name].data()
    return answers(trained(name), Changed.of(start), start)


def check(name: str, state: Changed, what: str) -> None:
    for level, found in answers(trained(name), state, TASKS[name].data()).items():
        apart = np.abs(found - expected(name)[level])
        assert not np.isnan(apart).any(), f"{what}: some {level} has no answer"
        moved = int((apart.max(1) >= NEAR).sum())
        assert moved == 0, f"{what}: {moved} of {len(apart)} {level} answers move, by up to {apart.max():.2g}"


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_no_answer_moves_by_what_is_done_to_others(name: str) -> None:
    """Rows permuted, ids renamed, unconnected parts added, labels changed, unread columns changed, in any order."""
    task = TASKS[name]
    allowed = [change for change in CHANGES if change not in task.except_]

    @QUICKLY
    @given(st.lists(st.sampled_from(allowed), min_size=1, max_size=4, unique=True), st.integers(0, 2**16))
    def law(changes: list[str], seed: int) -> None:
        rng, state = random.Random(seed), Changed.of(task.data())
        for change in changes:
            state = CHANGES[change](state, rng, task.targets)
        check(name, state, ", ".join(changes))

    for change in allowed:  # each alone, so that none is left to chance
        state = CHANGES[change](Changed.of(task.data()), random.Random(1), task.targets)
        check(name, state, change)
    law()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if "graphs" in task.data()])
def test_graphs_answer_alike_alone_and_together(name: str) -> None:
    """Graphs split into batches of any size, in any order."""
    start = TASKS[name].data()
    level = trained(name).levels[0]

    @QUICKLY
    @given(st.integers(1, 5), st.integers(0, 2**16))
    def law(batches: int, seed: int) -> None:
        rng = random.Random(seed)
        count = len(start["graphs"])
        part = [rng.randrange(batches) for _ in range(count)]
        for batch in set(part):
            chosen = [row for row in range(count) if part[row] == batch]
            frames = {"graphs": start["graphs"].iloc[chosen].reset_index(drop=True)}
            kept = chosen
            if "nodes" in start:
                names = set(frames["graphs"]["graph"])
                inside = {table: start[table]["graph"].isin(names) for table in ("nodes", "edges")}
                frames |= {table: start[table][inside[table]].reset_index(drop=True) for table in inside}
                kept = chosen if level == "graph" else np.flatnonzero(inside[LEVELS[level]]).tolist()
            found = numbers(trained(name).predict(Tables(**frames), level, keep="ids"))
            np.testing.assert_allclose(found, expected(name)[level][kept], rtol=0, atol=NEAR)

    law()


# -- doors ------------------------------------------------------------------------------------------------------------


DOORS = ["node classes", "edge numbers", "node classes, edges twice", "edge classes, edges twice", "links"]


def as_networkx(frames: Frames, directed: bool) -> Any:
    import networkx as nx

    graph = nx.MultiDiGraph() if directed or is_twice(frames["edges"]) else nx.MultiGraph()
    for row in frames["nodes"].to_dict("records"):
        graph.add_node(row.pop("id"), **row)
    for number, row in enumerate(frames["edges"].to_dict("records")):
        graph.add_edge(row.pop("source"), row.pop("target"), key=number, **row)
    return graph


@pytest.mark.parametrize("name", DOORS)
def test_the_same_data_answer_alike_through_every_door(name: str, tmp_path: Path) -> None:
    """Folders of CSV and of Parquet files, frames, networkx."""
    run, start = trained(name), TASKS[name].data()
    level = run.levels[0]
    base = run.predict(Tables(**start), level, keep="ids")
    for kind in ("csv", "parquet"):
        folder = tmp_path / kind
        folder.mkdir()
        for table, frame in start.items():
            getattr(frame, f"to_{kind}")(folder / f"{table}.{kind}", index=False)
        np.testing.assert_allclose(numbers(run.predict(folder, level, keep="ids")), numbers(base), rtol=0, atol=NEAR)
    graph = as_networkx(start, run.schema.directed)
    found = run.predict(graph, level)
    if level == "node":
        assert found["id"].tolist() == start["nodes"]["id"].tolist()
        np.testing.assert_allclose(numbers(found), numbers(base), rtol=0, atol=NEAR)
    else:
        order = found["key"].astype(int).tolist()
        np.testing.assert_allclose(numbers(found), numbers(base)[order], rtol=0, atol=NEAR)


@cache
def pyg_run(twice: bool, target: str) -> tuple[Run, Any]:
    from torch_geometric.data import Data

    noise = torch.Generator().manual_seed(0)
    ends = torch.randint(30, (2, 70), generator=noise)
    ends = ends[:, ends[0] != ends[1]]
    ends = torch.unique(torch.stack([ends.min(0).values, ends.max(0).values]), dim=1)
    attributes = torch.randn(ends.shape[1], 2, generator=noise)
    label = (attributes[:, 0] > 0).long()
    if twice:
        ends, attributes, label = torch.cat([ends, ends.flip(0)], 1), attributes.repeat(2, 1), label.repeat(2)
    x = torch.randn(30, 3, generator=noise)
    data = Data(x=x, edge_index=ends, edge_attr=attributes, edge_label=label, y=(x[:, 0] > 0).long())
    settings = {"training.epochs": 3, "model.hidden": 8, "model.known_labels": False}  # which others are to read
    return train(data, target, settings=settings, device="cpu"), data


@pytest.mark.slow
@pytest.mark.parametrize("target", ["node:y", "edge:edge_label"])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@QUICKLY
@given(seed=st.integers(0, 2**16))
def test_no_answer_of_a_pyg_graph_moves_by_what_is_done_to_others(twice: bool, target: str, seed: int) -> None:
    """Nodes and columns permuted, an isolated node and an unconnected pair added, a label and an attribute changed."""
    run, data = pyg_run(twice, target)
    rng = torch.Generator().manual_seed(seed)
    base = numbers(run.predict(data))
    changed = data.clone()
    label, count = ("y", 30) if target == "node:y" else ("edge_label", data.num_edges)
    order, columns = torch.randperm(30, generator=rng), torch.randperm(data.num_edges, generator=rng)
    place = order.argsort()
    changed.x = torch.cat([data.x[order], torch.randn(3, 3, generator=rng)])
    changed.y = torch.cat([data.y[order], data.y[:3]])
    pair = torch.tensor([[31, 32], [32, 31]] if twice else [[31], [32]])
    changed.edge_index = torch.cat([place[data.edge_index[:, columns]], pair], 1)
    extra = torch.randn(1, 2, generator=rng).expand(pair.shape[1], 2)
    changed.edge_attr = torch.cat([data.edge_attr[columns], extra])
    changed.edge_label = torch.cat([data.edge_label[columns], data.edge_label[: pair.shape[1]]])
    changed[label] = changed[label].clone()
    changed[label][int(torch.randint(count, (1,), generator=rng))] ^= 1
    changed.mood = torch.randn(33, generator=rng)
    found = numbers(run.predict(changed))
    rows = place if target == "node:y" else columns.argsort()
    np.testing.assert_allclose(found[rows.numpy()], base, rtol=0, atol=NEAR)


def test_the_changes_change_something() -> None:
    """A law over changes that do nothing would say nothing."""
    for name in ("node classes, edges twice", "graph classes", "molecules"):
        start, targets = TASKS[name].data(), TASKS[name].targets
        for what, change in CHANGES.items():
            state = change(Changed.of(start), random.Random(0), targets)
            same = all(start[table].equals(state.frames[table]) for table in start)
            idle = {"graph classes": {"add_lone_direction"}, "molecules": {"add_lone_direction", "rename", "add_node"}}
            assert not same or what in idle.get(name, ()), f"{what} does nothing to {name}"
    state = permute(Changed.of(start), random.Random(0), targets)
    assert state.frames["graphs"]["smiles"].iloc[state.rows["graphs"]].tolist() == start["graphs"]["smiles"].tolist()
