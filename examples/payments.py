"""The second act of the demo: fraud among simulated payments, beside boosted trees, and a map of the embeddings.

The graph is generated, so that nothing is downloaded: `censnet_experiments.edges.payments` says what is in it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from maps import Map, Marks, draw_maps, nearest_neighbor_accuracy
from numpy.typing import NDArray
from rich.table import Table
from sklearn.metrics import average_precision_score, roc_auc_score

from censnet.console import Console
from censnet.data.splits.splitters import by_time
from censnet.data.tables.files import Tables, write_table
from censnet.pipeline import train
from censnet.runs import Run
from censnet.runs.embedding import Embeddings
from censnet_experiments.edge_tasks import EdgeTask
from censnet_experiments.edge_trees import fit_trees
from censnet_experiments.edges.payments import FRAUD, simulate_history
from censnet_experiments.plan import Trees

Values = NDArray[np.float32]  # (n, d)

PAYMENTS, EPOCHS = 20_000, 200  # those of the preset
SEED = 0  # of the payments, the split and every method
FRACTIONS = 0.6, 0.15, 0.25  # in the order of time; a large test set, since one payment in eighty is fraud
METRIC = "ap"  # on validation payments, by which every method selects
TARGET, COLUMN, TIME = "edge:is_fraud", "is_fraud", "time"
TREES = {
    "trees on raw columns": Trees("raw"),
    "trees on graph features": Trees("graph"),
}
DRAWS = 1_000  # of the bootstrap
SHOWN = 1_500  # payments on the map; more of them leave little room for fraud
PURPOSES = {  # family on the map -> its schemes
    "shopping": ("shopping", "refund", "trip"),
    "salary": ("salary",),
    "rent": ("rent",),
    "friends": ("friends", "bill", "settlement", "collection"),
    "invoices": ("invoice", "pooling"),
    "second-hand": ("market",),
}
PALE = "#99C7EC", "#F4A582", "#C9B18B", "#D5C85A", "#C3A5CF", "#86CDB5"  # of the purposes
STRONG = {"ring": ("#CC3311", "o"), "stolen card": ("#111111", "s"), "mule": ("#0B5394", "^")}


@dataclass(frozen=True, eq=False)
class History:
    """Payments, their split, and the purpose of each, which no method sees.

    Args:
        task: the tables and the split, for any method.
        scheme: of each payment, (E,).
    """

    task: EdgeTask
    scheme: NDArray[np.str_]

    @property
    def edges(self) -> pd.DataFrame:
        """The table of payments."""
        return self.task.tables.frames()["edges"]

    @property
    def test(self) -> NDArray[np.int64]:
        """The rows of the test payments."""
        return self.task.split.test.numpy()

    @property
    def labels(self) -> NDArray[np.int64]:
        """Whether each test payment is marked as fraud, as 0 or 1."""
        return self.edges[COLUMN].to_numpy()[self.test]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Probabilities of fraud that a method gives to the test payments, and the seconds that it took."""

    name: str
    values: NDArray[np.float64]
    seconds: float


@dataclass(frozen=True)
class Difference:
    """The difference of two scores, and its 95 % interval."""

    gap: float
    low: float
    high: float


def make_history(payments: int = PAYMENTS) -> History:
    """Simulate payments and split them by time: fraud is to be found among later payments."""
    nodes, edges = simulate_history(payments, SEED)
    tables = Tables(nodes, edges.drop(columns="scheme"))
    split = by_time(edges[TIME], FRACTIONS)
    task = EdgeTask(tables, (TARGET,), split, "edges", time=TIME, is_stream=True)
    return History(task, edges["scheme"].to_numpy(str))


# -- methods -----------------------------------------------------------------------------------------------------------


def train_censnet(history: History, out: Path, epochs: int = EPOCHS) -> tuple[Run, Predicted]:
    """Train by the default preset, as `censnet train` does, and select the best epoch by average precision."""
    start, data = time.perf_counter(), history.task.stated()
    changes = {"training.epochs": epochs, "training.monitor": METRIC}
    run = train(data, TARGET, out, settings=changes, seed=SEED, time=TIME, if_exists="overwrite", progress=True)
    values = run.predictions["edge"][f"{COLUMN}_p_1"].to_numpy(np.float64)[history.test]
    return run, Predicted("CensNet", values, time.perf_counter() - start)


def train_trees(history: History, name: str) -> Predicted:
    """Fit boosted trees as `censnet reproduce edges` does: validation payments choose their settings and number."""
    start = time.perf_counter()
    outcome = fit_trees(TREES[name], history.task, SEED, [METRIC])
    return Predicted(name, outcome.predicted[COLUMN]["test"].values, time.perf_counter() - start)


# -- scores ------------------------------------------------------------------------------------------------------------


def find_alarms(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The payments with the highest probabilities, as many as are fraud.

    >>> find_alarms(np.array([0.1, 0.9, 0.3, 0.8]), np.array([0, 1, 1, 0]))
    array([False,  True, False,  True])
    """
    alarms = np.zeros(len(values), bool)
    alarms[np.argsort(-values, kind="stable")[: labels.sum()]] = True
    return alarms


def average_precision(labels: NDArray[np.int64], values: NDArray[np.float64], times: NDArray[np.int64]) -> list[float]:
    """Average precision of resampled rows, as that of scikit-learn with weights, but sorted once for all.

    Args:
        labels: 0 or 1, (n,).
        values: predictions, (n,).
        times: for each sample, how often it has each row, (samples, n).

    >>> average_precision(np.array([1, 0, 1]), np.array([0.9, 0.8, 0.1]), np.array([[1, 1, 1], [1, 0, 1]]))
    [0.8333333333333333, 1.0]
    """
    order = np.argsort(-values, kind="stable")
    last = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))  # of equal predictions
    found = []
    for one in times[:, order]:
        positives, rows = np.cumsum(one * labels[order])[last], np.cumsum(one)[last]
        precision = positives / np.maximum(rows, 1)
        found.append(float((np.diff(positives, prepend=0) * precision).sum() / positives[-1]))
    return found


def compare(
    labels: NDArray[np.int64], ours: NDArray[np.float64], theirs: NDArray[np.float64], draws: int = DRAWS
) -> Difference:
    """The difference in average precision, with an interval by the bootstrap over test payments, the same for both."""
    draw, count = np.random.default_rng(SEED), len(labels)
    times = draw.multinomial(count, np.full(count, 1 / count), draws)
    times = np.concatenate([np.ones_like(times[:1]), times[times @ labels > 0]])  # all rows once, then the samples
    first, second = (np.array(average_precision(labels, values, times)) for values in (ours, theirs))
    gaps = first - second
    low, high = np.quantile(gaps[1:], [0.025, 0.975])
    return Difference(float(gaps[0]), float(low), float(high))


def describe_difference(name: str, found: Difference) -> str:
    """A clause on CensNet and another method, which claims no more than the interval shows.

    >>> describe_difference("trees", Difference(-0.2, -0.3, -0.1))
    'worse than trees (-0.20, 95 % interval -0.30 to -0.10)'
    >>> describe_difference("trees", Difference(0.02, -0.1, 0.1))
    'not distinguishable from trees (+0.02, 95 % interval -0.10 to +0.10)'
    """
    if found.low <= 0 <= found.high:
        word = "not distinguishable from"
    else:
        word = "better than" if found.gap > 0 else "worse than"
    return f"{word} {name} ({found.gap:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f})"


def describe_comparison(labels: NDArray[np.int64], ours: Predicted, others: Sequence[Predicted]) -> str:
    """One sentence on CensNet beside the other methods."""
    clauses = [describe_difference(one.name, compare(labels, ours.values, one.values)) for one in others]
    return f"By average precision (AP) on these test payments, {ours.name} is {', and '.join(clauses)}."


def score(labels: NDArray[np.int64], found: Predicted) -> dict[str, Any]:
    """The scores of a method on test payments."""
    return {
        "method": found.name,
        "ap": float(average_precision_score(labels, found.values)),
        "auc": float(roc_auc_score(labels, found.values)),
        "fraud_in_alarms": int(labels[find_alarms(found.values, labels)].sum()),
        "seconds": round(found.seconds, 1),
    }


def show_scores(
    scores: Sequence[dict[str, Any]], history: History, sentence: str, epochs: int, console: Console
) -> None:
    """Print the table and the sentence on who is better."""
    count, fraud = len(history.test), int(history.labels.sum())
    title = f"payments: the last {count:,}, {fraud} of them fraud, each with the payments and labels before it"
    table = Table("", "AP", "AUC", f"fraud in top {fraud}", "seconds", title=title, title_justify="left")
    for one in scores:
        numbers = f"{one['ap']:.3f}", f"{one['auc']:.3f}", str(one["fraud_in_alarms"]), f"{one['seconds']:.0f}"
        table.add_row(one["method"], *numbers)
    console.print(table)
    console.print(sentence)
    console.print(
        "All methods have the same columns and the same split by time, and select by AP on validation payments. "
        f"CensNet has its default preset with {epochs} epochs and `--time {TIME}`. Graph features are what its causal "
        "layers start from: of both accounts and of the two together, counts, gaps, windows of time and means of the "
        "labels before each payment, and triads. Intervals are by the bootstrap over test payments."
    )


def table_of_predictions(history: History, methods: Sequence[Predicted]) -> pd.DataFrame:
    """The test payments with their scheme and the probability of fraud by each method."""
    found = history.edges.iloc[history.test].assign(scheme=history.scheme[history.test])
    return found.assign(**{one.name: one.values for one in methods})


# -- the map -----------------------------------------------------------------------------------------------------------


def draw_embeddings(
    found: Embeddings, columns: tuple[Values, Values], history: History, ours: Predicted, path: Path
) -> None:
    """Draw the embeddings of test payments and of all accounts, by the run that was scored.

    Args:
        found: embeddings of that run.
        columns: of `read_columns`, to compare with.
        history: the data.
        ours: predictions of that run.
        path: of the figure.
    """
    maps = [
        map_payments(channels(found.edges), columns[1], history, ours),
        map_accounts(channels(found.nodes), columns[0], history),
    ]
    precision = average_precision_score(history.labels, ours.values)
    title = "Payments (edges) and accounts (nodes), as the CensNet that was scored embeds them"
    subtitle = (
        f"Average precision {precision:.2f} on these test payments. Embeddings of run.embed, which is shown no labels, "
        "in two dimensions by t-SNE. Colors and markers are purposes that the simulation knows: the model was trained "
        f"on {COLUMN} of other payments alone."
    )
    draw_maps(maps, title, subtitle, path)


def map_payments(values: Values, columns: Values, history: History, ours: Predicted) -> Map:
    """Test payments by purpose: fraud is filled if it is among the highest predictions, and hollow if it is missed."""
    test, labels = history.test, history.labels
    values, scheme, alarms = values[test], history.scheme[test], find_alarms(ours.values, labels)
    fraud = np.isin(scheme, FRAUD)
    _, purpose = np.unique(scheme, return_inverse=True)
    same, before = (
        100 * nearest_neighbor_accuracy(one, purpose, np.arange(len(test))) for one in (values, columns[test])
    )
    chance = 100 * float(((np.bincount(purpose) / len(test)) ** 2).sum())
    others = np.random.default_rng(SEED).permutation(np.flatnonzero(~fraud & ~alarms))
    kept = np.concatenate([np.flatnonzero(fraud | alarms), others])[:SHOWN]
    shown = "" if len(kept) == len(test) else f", {len(kept):,} shown"
    values, scheme, alarms, fraud = values[kept], scheme[kept], alarms[kept], fraud[kept]
    marks = [
        Marks(family, np.isin(scheme, schemes), color)
        for (family, schemes), color in zip(PURPOSES.items(), PALE, strict=True)
    ]
    marks.append(Marks("false alarm", alarms & ~fraud, "#555555", "x"))
    marks += [Marks(kind, scheme == kind, *STRONG[kind], hollow=~alarms) for kind in STRONG]
    title = (
        f"{len(test):,} test payments{shown}. The nearest neighbor has the same\n"
        f"purpose for {same:.0f} % (by columns alone {before:.0f} %, at random {chance:.0f} %)"
    )
    note = f"filled: among the {labels.sum()} highest predictions, as many as are fraud; hollow: missed"
    return Map(title, values, marks, note)


def map_accounts(values: Values, columns: Values, history: History) -> Map:
    """All accounts: people, businesses, and those behind fraud."""
    nodes, edges = history.task.tables.frames()["nodes"], history.edges
    ids, kind = nodes["id"].to_numpy(), nodes["kind"].to_numpy(str)
    payers, payees = ({one: edges[end][history.scheme == one] for one in FRAUD} for end in ("source", "target"))
    behind = {
        "member of a ring": np.isin(ids, payers["ring"]),
        "owner of a stolen card": np.isin(ids, payers["stolen card"]),
        "mule": np.isin(ids, payers["mule"]) & np.isin(ids, payees["mule"]),
    }
    every = np.any(list(behind.values()), axis=0)
    same, before = (
        100 * nearest_neighbor_accuracy(one, every.astype(np.int64), np.flatnonzero(every)) for one in (values, columns)
    )
    marks = [
        Marks(name, (kind == one) & ~every, color)
        for one, name, color in (("personal", "people", "#B9C0C8"), ("business", "businesses", "#DD99BB"))
    ]
    marks += [Marks(name, rows, *style) for (name, rows), style in zip(behind.items(), STRONG.values(), strict=True)]
    title = (
        f"{len(ids):,} accounts. Of the {every.sum()} behind fraud, {same:.0f} % have another one as\n"
        f"nearest neighbor (by columns alone {before:.0f} %, at random {100 * every.mean():.0f} %)"
    )
    return Map(title, values, marks, "by the fraud of the whole history, also that of training payments")


def read_columns(run: Run, data: Tables) -> tuple[Values, Values]:
    """The columns of each account, and those of each payment and its two accounts, as the numbers that a run reads."""
    dataset = run.read(data)
    graph = dataset.graph
    nodes, (source, target) = graph.nodes.to_dense(), graph.ends
    edges = torch.cat([graph.edges, nodes[source], nodes[target]], dim=1)
    return nodes[dataset.rows("node")].numpy(), edges[dataset.rows("edge")].numpy()


def channels(frame: pd.DataFrame) -> Values:
    """The embedding of each row, (n, d)."""
    return frame.filter(regex=r"^e\d+$").to_numpy(np.float32)


def play(out: Path, console: Console, payments: int = PAYMENTS, epochs: int = EPOCHS) -> None:
    """Train all methods on one split, print their scores, write predictions and embeddings, and draw them.

    Args:
        out: directory for everything that is written.
        console: where to print.
        payments: to simulate.
        epochs: of CensNet.
    """
    history = make_history(payments)
    count = len(history.task.tables.frames()["nodes"])
    console.print(
        f"{len(history.edges):,} simulated payments between {count:,} accounts, with amount, currency, channel and "
        f"time. {100 * history.edges[COLUMN].mean():.1f} % are marked as fraud: rings, mules and stolen cards."
    )
    console.print("CensNet, default preset")
    run, ours = train_censnet(history, out / "run", epochs)
    others = []
    for name in TREES:
        console.print(f"Boosted {name}")
        others.append(train_trees(history, name))
    scores = [score(history.labels, one) for one in (ours, *others)]
    sentence = describe_comparison(history.labels, ours, others)
    show_scores(scores, history, sentence, epochs, console)
    write_table(pd.DataFrame(scores), out / "scores.csv")
    write_table(table_of_predictions(history, [ours, *others]), out / "predictions.csv")
    found = run.embed(history.task.tables)
    write_table(found.nodes, out / "nodes.csv")
    write_table(found.edges, out / "edges.csv")
    columns = read_columns(run, history.task.tables)
    draw_embeddings(found, columns, history, ours, out / "embeddings.png")
