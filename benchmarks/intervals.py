"""`python -m benchmarks.intervals`: our 90 % intervals on Lipophilicity beside chemprop's own, on the same splits.

chemprop 2.3.1 is trained by `peers/chemprop_intervals.py` in its own environment (`.bench-chemprop`, made by `make
bench`; CENSNET_CHEMPROP names the python of another), by the defaults of its command, and makes its intervals in its
two ways: one width for all molecules from the residuals of validation molecules ("residuals"), and a quantile
regression ("quantiles"). Ours are those of the strong preset in benchmarks/results/coverage.json (`python -m
benchmarks.coverage --only "Lipophilicity, strong"`). Both are calibrated on the validation molecules and
measured on the test molecules of a split. Record: benchmarks/results/intervals.json, with what splits it rests on. It
exits with 1 where ours are wider on average than the narrower of chemprop's.

    python -m benchmarks.intervals --splits 2                    trains the splits that FOLDER lacks
    python -m benchmarks.intervals --splits 2 --collect          the record from what FOLDER has
    python -m benchmarks.intervals --splits 2 --epochs 3 --folder DIR --to FILE.json     tries it out
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.records import RESULTS, write_record
from censnet_experiments.external import write_cells

PEER = Path(__file__).parent / "peers" / "chemprop_intervals.py"
OURS = "censnet, strong"
LINES = "intervals.jsonl"
KEYS = ("coverage", "width", "rmse")
console = Console(width=120)

Found = dict[str, float]
Scores = dict[str, dict[str, Found]]  # method -> split -> scores


def run_chemprop(folder: Path, splits: Sequence[int], epochs: int | None) -> Path:
    """Train chemprop on the splits that have no line yet. -> its lines"""
    cell, _ = write_cells(folder, splits, ["lipophilicity"])
    lines = folder / LINES
    python = os.environ.get("CENSNET_CHEMPROP", ".bench-chemprop/bin/python")
    command = [python, str(PEER), str(cell), "--to", str(lines), "--seeds", ",".join(map(str, splits))]
    command += [] if epochs is None else ["--epochs", str(epochs)]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, env=own)
    return lines


def read_lines(path: Path, splits: Sequence[int]) -> Scores:
    """What chemprop reached, by way and split."""
    found: Scores = {}
    for line in map(json.loads, path.read_text().splitlines()):
        if line["split"] in splits:
            way = f"chemprop {line['chemprop']}, {line['way']}"
            found.setdefault(way, {})[str(line["split"])] = {key: line[key] for key in KEYS}
    return found


def read_ours(splits: Sequence[int], record: Path = RESULTS / "coverage.json") -> dict[str, Found]:
    """What the strong preset reached on the same splits."""
    rows = json.loads(record.read_text())["measured"]["test rows"]["Lipophilicity, strong"]
    return {str(split): {key: rows[str(split)][key] for key in KEYS} for split in splits if str(split) in rows}


def summarize(found: Mapping[str, Mapping[str, Found]]) -> dict[str, Found]:
    """Means over the splits that all methods have."""
    common = set.intersection(*(set(splits) for splits in found.values()))
    if not common:
        raise SystemExit("no split was measured by all methods")
    return {name: {key: mean(splits[one][key] for one in common) for key in KEYS} for name, splits in found.items()}


def missed(means: Mapping[str, Found]) -> list[str]:
    """The target, if it is missed: not wider than the narrower way of chemprop."""
    best = min((name for name in means if name != OURS), key=lambda name: means[name]["width"])
    wider = means[OURS]["width"] > means[best]["width"]
    return [f"ours are {means[OURS]['width']:.3f} wide, those of {best} {means[best]['width']:.3f}"] if wider else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="of chemprop, other than its default of 50: to try this out")
    parser.add_argument("--folder", type=Path, default=Path("runs/intervals"), help="for its splits and its lines")
    parser.add_argument("--collect", action="store_true", help="train nothing")
    parser.add_argument("--to", type=Path, help="a file, in place of the record")
    asked = parser.parse_args()
    splits, lines = range(asked.splits), asked.folder / LINES
    found: dict[str, Any] = {
        OURS: read_ours(splits),
        **read_lines(lines if asked.collect else run_chemprop(asked.folder, splits, asked.epochs), splits),
    }
    means = summarize(found)
    table = Table("", "splits", "coverage", "width", "RMSE")
    for name, scores in means.items():
        table.add_row(name, str(len(found[name])), *(f"{scores[key]:.3f}" for key in KEYS))
    console.print(table)
    wrong = missed(means)
    for line in wrong:
        console.print(f"missed: {line}")
    content = {"epochs of chemprop": asked.epochs or 50, "mean": means, "missed": wrong, "test rows": found}
    if asked.to is not None:
        asked.to.write_text(json.dumps(content, indent=1) + "\n")
    else:
        path = write_record("intervals", content, platform.machine(), "python -m benchmarks.intervals")
        console.print(f"record: {path}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
