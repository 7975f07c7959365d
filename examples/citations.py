"""The first act of the demo: CensNet on Cora with 3 % of the labels, and a GCN that is trained by the same recipe."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from figures import MethodScores, draw_curves
from rich.table import Table
from torch import Tensor

from censnet.console import Console
from censnet.data.dataset import Dataset
from censnet.data.datasets.download import find
from censnet.data.datasets.karate import read_karate
from censnet.data.splits.split_file import Split
from censnet.data.tables.files import Tables, write_table
from censnet.errors import DataError
from censnet.pipeline import train
from censnet.pipeline.fit_run import make_run
from censnet.pipeline.prepare import prepare
from censnet.runs import Run
from censnet.selection.self_training import fit_ensemble
from censnet.training.devices import make_accelerator
from censnet_experiments.baselines.convolutions import GCN
from censnet_experiments.baselines.encoders import baseline_encoder
from censnet_experiments.records import read, record_path
from censnet_experiments.spec import find_spec
from censnet_experiments.summary import pair

RESULTS = Path("results")
SEED = 0  # of the split and of the initial weights, for all methods
MAX_EPOCHS, PATIENCE = 300, 50
NORMAL = 1.96  # half of the 95 % confidence interval, in standard errors


@dataclass(frozen=True)
class DemoData:
    """A dataset and its task.

    Args:
        name: of the dataset.
        data: as `censnet.train` takes it.
        target: as `censnet.train` takes it.
        rate: share of the labels that is trained on.
        cell: of the paper's Table 1, if it has one.
    """

    name: str
    data: str | Tables
    target: str
    rate: float
    cell: str | None = None

    @property
    def column(self) -> str:
        """The column of labels."""
        return self.target.partition(":")[2]


CORA = DemoData("cora", "cora", "node:label", rate=0.03, cell="cora-3")


def choose_data(console: Console) -> DemoData:
    """Cora, or the karate club of the library where Cora cannot be downloaded."""
    try:
        find(CORA.name)
    except DataError as problem:
        console.print(f"Cora is not available: {problem}")
        console.print("The demo uses Zachary's karate club instead, 34 nodes.")
        console.print()
        return make_karate()
    return CORA


def make_karate() -> DemoData:
    """Zachary's karate club: one-hot nodes, and the Jaccard index of common friends as the edge feature."""
    karate = read_karate()
    friends = np.zeros((len(karate.labels),) * 2, bool)
    one, other = karate.ends.numpy()
    friends[one, other] = friends[other, one] = True
    common, either = (friends[one] & friends[other]).sum(1), (friends[one] | friends[other]).sum(1)
    faction = [karate.classes[label] for label in karate.labels.tolist()]
    members = pd.DataFrame({"id": range(len(faction)), "name": np.eye(len(faction)).tolist(), "faction": faction})
    friendships = pd.DataFrame({"source": one, "target": other, "common": common / either})
    return DemoData("karate", Tables(members, friendships), "node:faction", rate=0.12)


# -- methods -----------------------------------------------------------------------------------------------------------


def make_changes(demo: DemoData, epochs: int) -> dict[str, object]:
    """Settings that differ from the preset: few labels, and the same early stopping for every method."""
    return {
        "data.split": "label-rate",
        "data.label_rate": demo.rate,
        "training.epochs": epochs,
        "training.patience": PATIENCE,
        "training.monitor": "accuracy",
    }


def train_censnet(demo: DemoData, preset: str, out: Path, epochs: int = MAX_EPOCHS) -> Run:
    """Train CensNet by a preset, as `censnet train` does."""
    changes = make_changes(demo, epochs)
    return train(
        demo.data, demo.target, out, preset=preset, settings=changes, seed=SEED, if_exists="overwrite", progress=True
    )


def train_gcn_by_recipe(demo: DemoData, epochs: int = MAX_EPOCHS) -> Run:
    """Train GCN by the recipe of CensNet's preset `strong`: pseudo-labels, self-training rounds, candidates, stopping.

    Two GCN layers with the propagation kernel of the preset replace the layers of CensNet, as in docs/results.md.
    """
    changes = {**find_spec("nodes", "gcn").recipe.changes, **make_changes(demo, epochs)}
    prepared = prepare(demo.data, demo.target, "strong", changes, SEED)
    start = time.perf_counter()
    accelerator, encoder = make_accelerator(prepared.settings.training.precision), baseline_encoder("gcn")
    selections = fit_ensemble(prepared.task_data, prepared.settings, accelerator=accelerator, make_encoder=encoder)
    return make_run(prepared, selections, time.perf_counter() - start, accelerator.device)


def train_gcn(dataset: Dataset, labels: Tensor, split: Split, epochs: int = MAX_EPOCHS) -> MethodScores:
    """Train two GCN layers of PyTorch Geometric with the settings of the GCN paper and 32 units."""
    graph = dataset.graph
    torch.manual_seed(SEED)
    model = GCN(graph, int(labels.max()) + 1)  # type: ignore[arg-type]
    inputs = model.inputs(graph)  # type: ignore[arg-type]
    decayed = {"params": list(model.first.parameters()), "weight_decay": 5e-4}
    groups: list[dict[str, Any]] = [decayed, {"params": list(model.second.parameters())}]
    optimizer = torch.optim.Adam(groups, lr=0.01)
    curve: list[float] = []
    tested: list[float] = []
    while len(curve) < epochs and len(curve) - (int(np.argmax(curve)) if curve else 0) <= PATIENCE:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(*inputs)[split.train], labels[split.train]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(*inputs).argmax(1) == labels).double()
        curve.append(float(right[split.validation].mean()))
        tested.append(float(right[split.test].mean()))
    best = int(np.argmax(curve)) + 1
    return MethodScores("GCN, own settings", [curve], [best], [tested[best - 1]])


# -- scores ------------------------------------------------------------------------------------------------------------


def score_run(name: str, run: Run, published: tuple[float, float] | None = None) -> MethodScores:
    """The curve and the test accuracy of a run."""
    curve, test = run.history["validation_accuracy"].tolist(), run.metrics["test"]["node"]["accuracy"]
    return MethodScores(name, [curve], run.config.best_epoch, [test], published)


def find_published(method: str, cell: str | None) -> tuple[float, float] | None:
    """The mean and spread of a method in Table 1 of the paper, in percent."""
    return None if cell is None else find_spec("table1", method).published[cell]["test"]


def compare_runs(ours: Run, theirs: Run, column: str) -> tuple[float, float]:
    """The difference in test accuracy and its 95 % margin over test nodes, in points; paired, since nodes are the same.

    As in McNemar's test, only nodes that one run predicts right and the other wrong contribute to the margin.
    """
    right = []
    for run in (ours, theirs):
        test = run.predictions["node"].query("split == 'test'")
        right.append((test[f"{column}_predicted"] == test[column]).to_numpy(float))
    gaps = right[0] - right[1]
    return 100 * float(gaps.mean()), 100 * NORMAL * float(gaps.std()) / len(gaps) ** 0.5


def describe_difference(gap: float, margin: float) -> str:
    """One sentence on CensNet and GCN trained by the same recipe, and no more than the comparison shows.

    >>> describe_difference(2.5, 1.0)
    'Trained by the same recipe, CensNet is 2.5 points better than GCN on this split'
    >>> describe_difference(-0.4, 1.0)
    'Trained by the same recipe, CensNet and GCN are equal within the error of this test set (-0.4 ± 1.0 points)'
    """
    if abs(gap) <= margin:
        found = f"({gap:+.1f} ± {margin:.1f} points)"
        return f"Trained by the same recipe, CensNet and GCN are equal within the error of this test set {found}"
    better = "better" if gap > 0 else "worse"
    return f"Trained by the same recipe, CensNet is {abs(gap):.1f} points {better} than GCN on this split"


def describe_gates(run: Run) -> str:
    """One sentence on the edges that the selected CensNet uses."""
    if run.config.selection is None:
        return ""
    selected = run.config.selection.candidates[run.config.selection.selected[0]]
    if selected.gates == "frozen":
        return "The selected CensNet has frozen gates: edge features are not used and do not explain the gap."
    return "The selected CensNet has learned gates: it uses edge features."


def describe_records(cell: str | None, results: Path = RESULTS) -> str:
    """The same comparison over the splits that are recorded in `results/`; empty where there are none."""
    if cell is None:
        return ""
    found = [read(record_path(results, "nodes", cell, method)) for method in ("strong", "gcn")]
    paired = pair(*found, "test") if all(found) else None
    if paired is None:
        return ""
    return (
        f"Over the {paired.count} splits recorded in {results}/, the mean difference is {paired.difference:+.1f} "
        f"points (95 % interval {paired.low:+.1f} to {paired.high:+.1f})."
    )


def show_scores(
    methods: Sequence[MethodScores], demo: DemoData, split: Split, findings: Sequence[str], console: Console
) -> None:
    """Print the table, what the comparison shows, and how the published scores differ."""
    count = len(split.train) + len(split.validation) + len(split.test)
    title = (
        f"{demo.name}: {len(split.train)} of {count:,} labels for training, {len(split.test):,} test nodes, one split"
    )
    table = Table("", "test accuracy, %", "best epoch", "published", title=title, title_justify="left")
    for one in methods:
        published = "" if one.published is None else "{:.1f} ± {:.1f}".format(*one.published)
        table.add_row(one.name, f"{100 * one.mean:.1f}", str(one.best_epochs[0]), published)
    console.print(table)
    console.print(" ".join(filter(None, findings)))
    console.print(
        "All methods have the same split and the same early stopping on validation nodes. `strong` and the GCN with "
        "the same recipe select one of eight candidates, trained in three rounds with and without pseudo-labels."
    )
    if demo.cell is not None:
        console.print(
            "The published scores differ in protocol: CensNet's vary the initial weights on ONE split, which is not "
            "public, with learning rate and epoch selected on the validation set; GCN's are from Liao et al. 2019."
        )


def write_scores(methods: Sequence[MethodScores], path: Path) -> None:
    """Write a row for each method."""
    rows = [
        {"method": one.name, "epoch": epoch, "validation": one.curves[number][epoch - 1], "test": test}
        for one in methods
        for number, (epoch, test) in enumerate(zip(one.best_epochs, one.tested, strict=True))
    ]
    write_table(pd.DataFrame(rows), path)


def play(out: Path, console: Console, epochs: int = MAX_EPOCHS) -> None:
    """Train all methods on one split, print their accuracy, and draw their curves."""
    demo = choose_data(console)
    runs = {}
    for preset in ("paper", "strong"):
        console.print(f"CensNet on {demo.name}, preset {preset}")
        runs[preset] = train_censnet(demo, preset, out / preset, epochs)
    console.print(f"GCN on {demo.name}, by the same recipe as strong, and with its own settings")
    by_recipe = train_gcn_by_recipe(demo, epochs)
    dataset = runs["strong"].read(demo.data)
    split = runs["strong"].split("node")
    labels = runs["strong"].config.targets[0].encode(dataset.labels("node", demo.column)).long()
    plain = train_gcn(dataset, labels, split, epochs)
    methods = [
        score_run("CensNet, strong", runs["strong"]),
        score_run("GCN, same recipe", by_recipe),
        score_run("CensNet, paper", runs["paper"], find_published("censnet", demo.cell)),
        MethodScores(plain.name, plain.curves, plain.best_epochs, plain.tested, find_published("gcn", demo.cell)),
    ]
    difference = describe_difference(*compare_runs(runs["strong"], by_recipe, demo.column))
    gates, recorded = describe_gates(runs["strong"]), describe_records(demo.cell)
    show_scores(methods, demo, split, [f"{difference}.", gates, recorded], console)
    write_scores(methods, out / "scores.csv")
    about = f"{demo.name}, {len(split.train)} training labels, one split for all methods."
    subtitle = " ".join(filter(None, [about, recorded, gates]))
    draw_curves(methods, difference, subtitle, out / "learning_curves.png")
