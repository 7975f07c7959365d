"""One model for answers of two kinds, of nodes and of edges, beside two models with one kind each.

`python -m benchmarks.joint [--seeds 5]`; record: benchmarks/results/joint.json. Two sets: simulated payments (fraud of
payments, and whether an account is a business's), and a planted graph (a class of edges that follows from the classes
of both ends, which have no column, and a number of nodes that follows from its edges). All trainings of a seed have
the same split. It exits with 1 where joint training is worse beyond the interval over seeds (Student's t, 95 %).
"""

from __future__ import annotations

import argparse
import logging
import platform
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import t as student

from benchmarks.records import write_record
from censnet import train
from censnet.data.tables.files import Tables
from censnet_experiments.edges.payments import simulate_payments

JOINT = "one model"


@dataclass(frozen=True)
class Set:
    """Tables with two targets, and the metric of each, of which more is better or less (`sign` -1)."""

    tables: Tables
    targets: Mapping[str, tuple[str, int]]


def payments(seed: int) -> Set:
    """Accounts are businesses or not, payments are fraud or not."""
    tables = simulate_payments(10_000, seed)
    return Set(tables, {"node:kind": ("auc", 1), "edge:is_fraud": ("ap", 1)})


def planted(seed: int) -> Set:
    """Two hidden kinds of nodes; an edge is of the kinds of its ends, and a node has the sum of what it is sent."""
    draw = np.random.default_rng(seed)
    nodes, edges = 600, 6000
    kind, column = draw.integers(0, 2, nodes), draw.normal(size=nodes)
    source, target = draw.integers(0, nodes, (2, edges))
    amount = draw.gamma(2, 1, edges)
    word = np.where(draw.random(edges) < 0.1, draw.integers(0, 4, edges), 2 * kind[source] + kind[target])
    sent = np.bincount(target, amount * (1 + kind[source]), nodes) / np.maximum(np.bincount(target, minlength=nodes), 1)
    number = sent + 0.5 * column + 0.1 * draw.normal(size=nodes)
    table = pd.DataFrame({"id": np.arange(nodes), "x": column, "number": number})
    links = pd.DataFrame({"source": source, "target": target, "amount": amount, "word": [f"w{one}" for one in word]})
    return Set(Tables(table, links), {"node:number": ("rmse", -1), "edge:word": ("accuracy", 1)})


SETS = {"payments": payments, "planted": planted}


def measure(data: Set, seed: int) -> dict[str, dict[str, float]]:
    """Of each target, the test score of the joint model and of one model for each target."""
    found: dict[str, dict[str, float]] = {target: {} for target in data.targets}
    for asked in (list(data.targets), *([one] for one in data.targets)):
        run = train(data.tables, asked, seed=seed)
        for target in asked:
            level, metric = target.split(":")[0], data.targets[target][0]
            name = JOINT if len(asked) > 1 else "alone"
            found[target][name] = run.metrics["test"][level][metric]
    return found


def summarize(rows: list[dict[str, dict[str, float]]], data: Set) -> dict[str, dict[str, Any]]:
    """The mean difference of the joint model, positive where it is better, and its interval."""
    found = dict[str, dict[str, Any]]()
    for target, (metric, sign) in data.targets.items():
        gains = [sign * (row[target][JOINT] - row[target]["alone"]) for row in rows]
        mean, count = statistics.mean(gains), len(gains)
        half = float("nan") if count < 2 else student.ppf(0.975, count - 1) * statistics.stdev(gains) / sqrt(count)
        scores = {name: statistics.mean(row[target][name] for row in rows) for name in (JOINT, "alone")}
        found[target] = {"metric": metric, **scores, "better by": mean, "+-": half, "seeds": count}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--only", choices=SETS, help="one set alone")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("censnet").setLevel(logging.ERROR)
    measured, worse = dict[str, Any](), False
    for name, make in SETS.items():
        if asked.only not in (None, name):
            continue
        rows = [measure(make(seed), seed) for seed in range(asked.seeds)]
        measured[name] = {"summary": summarize(rows, make(0)), "seeds": rows}
        for target, row in measured[name]["summary"].items():
            print(
                name, target, ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
            )
            worse |= row["better by"] + row["+-"] < 0
    if not asked.no_record:
        only = "" if asked.only is None else f" --only {asked.only}"
        write_record(
            "joint", measured, f"{platform.machine()} CPU", f"python -m benchmarks.joint --seeds {asked.seeds}{only}"
        )
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
