"""Tasks to state laws over, and changes of the data to predict that may move no other row's answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import pandas as pd
from samples import payments, shapes, smiles

from censnet.data.tables.files import Tables
from censnet.pipeline import train
from censnet.runs import Run

SMALL: dict[str, object] = {"training.epochs": 3, "model.hidden": 8, "training.checkpoint_seconds": 1000}
LEVELS = {"node": "nodes", "edge": "edges", "graph": "graphs"}
Frames = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Task:
    """A run to train, on which data.

    Args:
        data: the tables.
        targets: what is learnt.
        settings: beyond the strong preset with few units and epochs.
        ensemble: members.
        except_: changes that the law makes an exception for, on purpose: see `EXCEPTIONS`.
    """

    data: Callable[[], Frames]
    targets: tuple[str, ...]
    settings: dict[str, object] = field(default_factory=dict)
    ensemble: int = 1
    except_: frozenset[str] = frozenset()


def _payments() -> Frames:
    """With a column that the model does not read, and two components."""
    frames = dict(payments(24, 60).frames())
    frames["nodes"] = frames["nodes"].assign(memo=[f"n{row}" for row in range(24)])
    frames["edges"] = frames["edges"].assign(memo=[f"e{row}" for row in range(len(frames["edges"]))])
    return frames


def _twice() -> Frames:
    """Each edge once in each direction, as PyTorch Geometric keeps them; no two edges between the same nodes."""
    frames = _payments()
    edges = frames["edges"]
    pair = [frozenset(ends) for ends in zip(edges["source"], edges["target"], strict=True)]
    edges = edges[~pd.Series(pair).duplicated().to_numpy()]
    back = edges.rename(columns={"source": "target", "target": "source"})[edges.columns]
    both = pd.concat([edges, back]).sort_index(kind="stable").reset_index(drop=True)
    return {**frames, "edges": both}


def _bare() -> Frames:
    """Edges alone: nodes have no column, so their degree stands in."""
    return {"edges": _payments()["edges"]}


def _shapes() -> Frames:
    frames = dict(shapes(24).frames())
    return {name: frame.assign(memo=[f"{name}{row}" for row in range(len(frame))]) for name, frame in frames.items()}


def _molecules() -> Frames:
    frame = smiles(30).drop_duplicates("smiles").reset_index(drop=True)
    return {"graphs": frame.assign(memo=[f"m{row}" for row in range(len(frame))])}


# the Lanczos kernel sums over all nodes of a graph to find its basis, so that each of them has a say for the others
EXCEPTIONS = frozenset({"add_node", "add_component"})
TASKS: dict[str, Task] = {
    "node classes": Task(_payments, ("node:tier",)),
    "node numbers": Task(_payments, ("node:wealth",)),
    "edge classes": Task(_payments, ("edge:sort",)),
    "edge numbers": Task(_payments, ("edge:fee",)),
    "edge classes, no node table": Task(_bare, ("edge:sort",)),
    "graph classes": Task(_shapes, ("graph:ring",)),
    "graph numbers": Task(_shapes, ("graph:red,weight",)),
    "node classes of many graphs": Task(_shapes, ("node:colour",)),
    "molecules": Task(_molecules, ("graph:size",)),
    "molecules, two classes": Task(_molecules, ("graph:acid",), {"data.descriptors": True}),
    "links": Task(_payments, ("link",)),
    "links by an inner product": Task(_payments, ("link",), {"model.decoder": "inner_product"}),
    # where labels are inputs, answers depend on the labels of others, and folds on ids
    "joint heads": Task(_payments, ("node:vip", "edge:fee"), {"model.known_labels": False}),
    "joint heads and links": Task(_payments, ("edge:sort", "link")),
    "ensemble": Task(_payments, ("node:tier",), ensemble=2),
    "ensemble of graphs": Task(_shapes, ("graph:ring",), ensemble=2),
    "paper": Task(_payments, ("edge:sort",), {"preset": "paper"}),
    "released": Task(_payments, ("node:tier",), {"preset": "released"}),
    "lanczos": Task(
        _payments, ("node:tier",), {"model.kernel": "lanczos", "model.kernel_options": {}}, except_=EXCEPTIONS
    ),
}
for _name in ("node classes", "edge classes", "edge numbers", "links"):
    TASKS[f"{_name}, edges twice"] = replace(TASKS[_name], data=_twice)


@cache
def trained(name: str) -> Run:
    """The run of a task; trained once for all laws."""
    task = TASKS[name]
    settings = dict(task.settings)
    preset = str(settings.pop("preset", "strong"))
    overrides = {f"{table}.memo": "drop" for table, frame in task.data().items() if "memo" in frame}
    return train(
        Tables(**task.data()), list(task.targets), preset=preset, settings=SMALL | settings, ensemble=task.ensemble,
        overrides=overrides, device="cpu",
    )  # fmt: skip


# -- changes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Changed:
    """Tables, where each row of the first ones is now, and what each node is called now.

    Args:
        frames: the tables.
        rows: table -> for each row of the tables at the start, its row now.
        names: node or graph -> its id at the start -> its id now.
    """

    frames: Frames
    rows: dict[str, list[int]]
    names: dict[str, dict[Any, Any]]

    @staticmethod
    def of(frames: Frames) -> Changed:
        rows = {table: list(range(len(frame))) for table, frame in frames.items()}
        return Changed(dict(frames), rows, {"nodes": {}, "graphs": {}})

    def having(self, table: str, frame: pd.DataFrame) -> Changed:
        return replace(self, frames={**self.frames, table: frame})


def permute(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """The rows of every table in another order."""
    for table, frame in state.frames.items():
        order = rng.sample(range(len(frame)), len(frame))
        place = {row: number for number, row in enumerate(order)}
        state = state.having(table, frame.iloc[order].reset_index(drop=True))
        state = replace(state, rows={**state.rows, table: [place[row] for row in state.rows[table]]})
    return state


def rename(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """Every node and every graph under another id, of another form and order."""
    number = rng.sample(range(100, 999), 500)
    frames, names = dict(state.frames), {table: dict(known) for table, known in state.names.items()}

    def fresh(ids: list[Any], table: str) -> dict[Any, Any]:
        new = {name: f"{rng.choice('xyz')}{number.pop()}" for name in dict.fromkeys(ids)}
        first = names[table] or {name: name for name in new}
        names[table] = {old: new.get(now, now) for old, now in first.items()} | {
            name: new[name] for name in new if name not in first.values() and name not in first
        }
        return new

    if "graph" in frames.get("nodes", pd.DataFrame()):
        new = fresh(frames["graphs"]["graph"].tolist(), "graphs")
        frames = {table: frame.assign(graph=frame["graph"].map(new)) for table, frame in frames.items()}
    elif "edges" in frames:
        edges = frames["edges"]
        known = frames["nodes"]["id"].tolist() if "nodes" in frames else [*edges["source"], *edges["target"]]
        new = fresh(known, "nodes")
        frames["edges"] = edges.assign(source=edges["source"].map(new), target=edges["target"].map(new))
        if "nodes" in frames:
            frames["nodes"] = frames["nodes"].assign(id=frames["nodes"]["id"].map(new))
    return replace(state, frames=frames, names=names)


def add_node(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """A node that no edge touches; beside many graphs, a graph of one node."""
    if "nodes" not in state.frames:
        return state
    return _add(state, rng, 1)


def add_component(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """Two or three nodes joined to each other and to no other; beside many graphs, a graph of them."""
    return _add(state, rng, rng.choice((2, 3)))


def _add(state: Changed, rng: random.Random, count: int) -> Changed:
    frames = dict(state.frames)
    if "edges" not in frames:  # molecules
        frames["graphs"] = _more(
            frames["graphs"], [{"smiles": rng.choice(["CCO", "c1ccccc1", "CC(=O)O", "C1CC1"])}], rng
        )
        return replace(state, frames=frames)
    tag = f"new{rng.randrange(10**9)}"
    ids: list[Any] = [f"{tag}-{number}" for number in range(count)]
    extra = {}
    if "graphs" in frames:
        extra = {"graph": tag}
        frames["graphs"] = _more(frames["graphs"], [{"graph": tag}], rng)
    if "nodes" in frames:
        frames["nodes"] = _more(frames["nodes"], [{"id": name, **extra} for name in ids], rng)
    pairs = list(pairwise(ids))
    if is_twice(state.frames["edges"]):
        pairs = [pair for one, other in pairs for pair in ((one, other), (other, one))]
    drawn = rng.randrange(len(frames["edges"]))
    new = [{"source": one, "target": other, **extra} for one, other in pairs]
    if new:
        frames["edges"] = _more(frames["edges"], new, rng, like=drawn)
    return replace(state, frames=frames)


def add_lone_direction(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """Where edges are there twice, one that is there once, between two new nodes: it gets an error, no other moves."""
    if "nodes" not in state.frames or "graphs" in state.frames or not is_twice(state.frames["edges"]):
        return state
    frames, tag = dict(state.frames), f"lone{rng.randrange(10**9)}"
    frames["nodes"] = _more(frames["nodes"], [{"id": f"{tag}-0"}, {"id": f"{tag}-1"}], rng)
    frames["edges"] = _more(frames["edges"], [{"source": f"{tag}-0", "target": f"{tag}-1"}], rng)
    return replace(state, frames=frames)


def relabel(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """Labels of some rows of the data to predict: other ones, none, or a word that no class has."""
    frames = dict(state.frames)
    for target in targets:
        level, _, columns = target.partition(":")
        for column in columns.split(",") if columns else ():
            frame = frames[LEVELS[level]]
            if column not in frame or not len(frame):
                continue
            values = frame[column].astype(object).tolist()
            for _ in range(rng.randint(1, 4)):
                values[rng.randrange(len(values))] = rng.choice([*frame[column].dropna().tolist(), None])
            frames[LEVELS[level]] = frame.assign(**{column: pd.Series(values, dtype=object).infer_objects()})
    return replace(state, frames=frames)


def drop_labels(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """The columns of the targets are gone, as in data whose labels nobody knows."""
    frames = dict(state.frames)
    for target in targets:
        level, _, columns = target.partition(":")
        if columns:
            frames[LEVELS[level]] = frames[LEVELS[level]].drop(columns=columns.split(","), errors="ignore")
    return replace(state, frames=frames)


def change_unread(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """Other values in the columns that the model does not read."""
    frames = {}
    for table, frame in state.frames.items():
        kinds = [[rng.choice("ab") for _ in range(len(frame))], [rng.random() for _ in range(len(frame))], None]
        frames[table] = frame.assign(memo=rng.choice(kinds)) if "memo" in frame else frame
    return replace(state, frames=frames)


def add_unread(state: Changed, rng: random.Random, targets: tuple[str, ...]) -> Changed:
    """A column that training never saw, at any place."""
    frames = {}
    for table, frame in state.frames.items():
        frame = frame.copy()
        name = f"extra{rng.randrange(1000)}"
        if name not in frame:
            frame.insert(rng.randint(0, frame.shape[1]), name, [rng.choice([0.5, 1.5]) for _ in range(len(frame))])
        frames[table] = frame
    return replace(state, frames=frames)


CHANGES = {
    change.__name__: change
    for change in (
        permute, rename, add_node, add_component, add_lone_direction, relabel, drop_labels, change_unread, add_unread,
    )
}  # fmt: skip


def is_twice(edges: pd.DataFrame) -> bool:
    """Whether every edge but new lone ones is there in both directions."""
    pairs = set(zip(edges["source"], edges["target"], strict=True))
    return sum((other, one) in pairs for one, other in pairs) > 0.8 * len(pairs) > 0


def _more(frame: pd.DataFrame, rows: list[dict[str, Any]], rng: random.Random, like: int | None = None) -> pd.DataFrame:
    """Rows as some other one, but for what is said of them, behind the others."""
    source = rng.randrange(len(frame)) if like is None else like
    new = [{**frame.iloc[source].to_dict(), **row} for row in rows]
    made = pd.concat([frame, pd.DataFrame(new, columns=frame.columns)], ignore_index=True)
    return made.astype({name: frame[name].dtype for name in frame if name not in ("id", "graph", "source", "target")})
