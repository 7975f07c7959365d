"""`python -m benchmarks.comparison`: the time of `censnet compare` beside that of one training, and its trees.

Lipophilicity, the signs of Bitcoin OTC, and simulated payments, by the strong preset. A comparison may take at most
four times as long, for each seed, as one training alone with that seed, which is timed just before it; and its boosted
trees have to reach an AUC of 0.97 on OTC, where the split is random and labels are known. Times are of the wall clock,
and of the processor, whose ratio does not depend on what else the machine does and is judged; so that no other process
has a share in the work and nothing is left uncounted, all is done on one core with one thread. `--epochs` trains all
networks for fewer epochs: trees and forest then weigh more, so the ratio is no less than that of whole trainings, and
the scores of the networks say nothing. Record: benchmarks/results/comparison.json. It exits with 1 where a target is
missed.

    python -m benchmarks.comparison --only OTC --to FILE.json       one data set, elsewhere
    python -m benchmarks.comparison --collect FILE.json ...         such files into the record
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.records import RESULTS, write_record
from censnet.comparison import Comparison, compare
from censnet.data.tables.files import Tables
from censnet.pipeline import train
from censnet_experiments.edges.otc import read_otc
from censnet_experiments.edges.payments import simulate_payments

PAYMENTS = 20_000
MOST = 4.0  # times a training
LEAST_TREES = 0.97  # AUC of the better trees on OTC
WHOLE = "of the preset"
RECORD = RESULTS / "comparison.json"
console = Console(width=120)


def read_signs() -> Tables:
    """The ratings of Bitcoin OTC with their signs and times, without their values."""
    return Tables(edges=read_otc().edges.drop(columns="rating"), names={"edges": "bitcoin_otc.csv"})


DATA: dict[str, tuple[Callable[[], Any], str]] = {
    "Lipophilicity": (lambda: "lipophilicity", "graph:exp"),
    "OTC": (read_signs, "edge:sign"),
    "payments": (lambda: simulate_payments(PAYMENTS), "edge:is_fraud"),
}


def measure(name: str, seeds: int, device: str | None, epochs: int | None = None) -> dict[str, Any]:
    """Time a training and a comparison for each seed, and keep what the comparison says."""
    make, target = DATA[name]
    data = make()
    settings: dict[str, object] = {"data.split": "ratio"} | ({} if epochs is None else {"training.epochs": epochs})
    alone, whole, found = list[float](), list[float](), None
    computed = {"alone": 0.0, "comparison": 0.0}
    for seed in range(seeds):
        begin, before = time.perf_counter(), time.process_time()
        train(data, target, settings=settings, seed=seed, device=device)
        alone.append(time.perf_counter() - begin)
        computed["alone"] += time.process_time() - before
        begin, before = time.perf_counter(), time.process_time()
        one = compare(data, target, settings=settings, seeds=1, seed=seed, device=device)
        whole.append(time.perf_counter() - begin)
        computed["comparison"] += time.process_time() - before
        console.print(f"{name}, seed {seed}: {alone[-1]:.0f} s alone, {whole[-1]:.0f} s to compare: {one.sentence}")
        records = [*(found.records if found else []), *one.stored.records]
        fingerprints = {**(found.fingerprints if found else {}), **one.stored.fingerprints}
        found = one.stored.model_copy(update={"records": records, "fingerprints": fingerprints, "one_split": False})
    assert found is not None
    every = Comparison(found)
    table = every.table.astype(object).where(every.table.notna(), None)
    return {
        "seconds alone": alone,
        "seconds of the comparison": whole,
        "ratio of the wall clock": sum(whole) / sum(alone),
        "ratio": computed["comparison"] / computed["alone"],
        "seconds of the processor": computed,
        "epochs": epochs or WHOLE,
        "sentence": every.sentence,
        "table": table.to_dict("records"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() and device != "cpu" else "cpu",
        "threads": torch.get_num_threads(),
    }


def missed(measured: dict[str, Any]) -> list[str]:
    """The targets that are missed, and those that short trainings leave open."""
    wrong = [
        f"{name}: {one['ratio']:.2f} times a training"
        + ("" if one["epochs"] == WHOLE else f" of {one['epochs']} epochs, which does not say it of a whole one")
        for name, one in measured.items()
        if one["ratio"] > MOST
    ]
    if "OTC" in measured:
        trees = [row["mean"] for row in measured["OTC"]["table"] if "trees" in row["method"] and row["metric"] == "auc"]
        wrong += [f"OTC: trees reach {max(trees):.4f}"] if max(trees) < LEAST_TREES else []
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=list(DATA))
    parser.add_argument("--epochs", type=int, help="fewer than those of the preset")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--to", type=Path, help="a file, in place of the record")
    parser.add_argument("--collect", type=Path, nargs="+", default=[], help="files of --to for the record")
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    measured: dict[str, Any] = {}
    if asked.to is None and RECORD.exists():
        measured |= json.loads(RECORD.read_text())["measured"]["data"]
    for path in asked.collect:
        measured |= json.loads(path.read_text())
    for name in [] if asked.collect else [name for name in DATA if asked.only in (None, name)]:
        measured[name] = measure(name, asked.seeds, asked.device, asked.epochs)
    if asked.to is not None:
        asked.to.write_text(json.dumps(measured))
        return
    table = Table("", "seeds", "epochs", "train, CPU s", "compare, CPU s", "ratio", "says")
    for name, one in measured.items():
        seeds = len(one["seconds alone"])
        seconds = (f"{one['seconds of the processor'][key] / seeds:.0f}" for key in ("alone", "comparison"))
        table.add_row(name, str(seeds), str(one["epochs"]), *seconds, f"{one['ratio']:.2f}", one["sentence"])
    console.print(table)
    wrong = missed(measured)
    for line in wrong:
        console.print(f"missed: {line}")
    content = {"payments": PAYMENTS, "load of the machine": os.getloadavg(), "missed": wrong, "data": measured}
    console.print(
        f"record: {write_record('comparison', content, platform.machine(), 'python -m benchmarks.comparison')}"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
