"""Trainings killed at random moments: each must go on to the bits of one that nobody disturbed.

`python -m benchmarks.kills --kills 100` starts short trainings that write a checkpoint after every step, sends SIGKILL
at moments drawn from all of their time, start and end included, resumes them, some of them several times, and compares
every byte of the run directory. Record: benchmarks/results/kills.json. It exits with 1 on any failure.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.records import write_record
from censnet.data.tables.files import Tables
from censnet.pipeline import train
from censnet.runs import load_run

SETTINGS: dict[str, object] = {
    "training.epochs": 10,
    "training.patience": 6,
    "training.checkpoint_seconds": 0,
    "training.learning_rate": 0.01,
    "training.batch_size": 16,
    "model.hidden": 8,
    "model.heads": 1,
    "model.dropout": 0.3,
}
EXPECTED = ("is not finished", "there is no run", "has no config.json")  # what an early kill may leave
MAX_KILLS = 4  # of one training
AIMED = 0.3  # share of the kills that wait for a file that is half written
console = Console(width=120)


def molecules() -> pd.DataFrame:
    """Chains of carbon with an end, and which end it is."""
    rng = np.random.default_rng(0)
    ends = np.array(["O", "N", "F", "C(=O)O"])[rng.integers(0, 4, 60)]
    text = ["C" * int(length) + end for length, end in zip(rng.integers(1, 9, 60), ends, strict=True)]
    return pd.DataFrame({"smiles": text, "acid": np.isin(ends, ["O", "C(=O)O"]).astype(int)})


def payments() -> Tables:
    """A random graph whose edges are large or small."""
    rng = np.random.default_rng(0)
    amount = rng.exponential(100, 200).round(2)
    source = rng.integers(0, 60, 200)
    ends = {"source": source, "target": (source + rng.integers(1, 60, 200)) % 60}
    nodes = pd.DataFrame({"id": range(60), "age": rng.uniform(20, 80, 60).round(1)})
    return Tables(nodes=nodes, edges=pd.DataFrame({**ends, "amount": amount, "fraud": (amount > 100).astype(int)}))


KINDS: dict[str, dict[str, Any]] = {
    "molecules": {"data": molecules, "target": "graph:acid", "settings": {}},
    "graph": {"data": payments, "target": "edge:fraud", "settings": {}},
    "neighbors": {"data": payments, "target": "edge:fraud", "settings": {"training.sampling": "neighbors"}},
    "ensemble": {"data": payments, "target": "edge:fraud", "settings": {}, "ensemble": 3},
    "one by one": {"data": molecules, "target": "graph:acid", "settings": {"training.epochs": 5}, "ensemble": 2},
}


@dataclass
class Count:
    """What became of the trainings of one kind."""

    seconds: float = 0.0  # of one that nobody disturbed
    kills: int = 0
    while_saving: int = 0  # with a file that was half written
    ends: int = 0
    identical: int = 0
    unreadable: int = 0
    failures: list[str] = field(default_factory=list)


def go(kind: str, folder: Path, kill_after: float | None = None, aim: bool = False) -> bool:
    """Train or go on, in a process of its own; whether it came to its end before it was killed.

    Args:
        kind: of the training.
        folder: its run directory.
        kill_after: seconds until it is killed.
        aim: whether to wait, from then on, for a file that is half written.
    """
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            stated = KINDS[kind]
            train(
                stated["data"](), stated["target"], folder, settings=SETTINGS | stated["settings"], if_exists="resume",
                ensemble=stated.get("ensemble", 1), device="cpu", seed=1,
            )  # fmt: skip
        except BaseException:  # the traceback is all that a child can leave
            (folder.parent / f"{folder.name}.error").write_text(traceback.format_exc())
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        while time.monotonic() - started < kill_after or (aim and not is_writing(folder)):
            if os.waitpid(child, os.WNOHANG)[0]:
                return True
            time.sleep(0 if aim else 0.001)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return kill_after is None


def is_writing(folder: Path) -> bool:
    """Whether a file is half written, or a run not yet in its place."""
    return (folder / ".saving").exists() or any(folder.glob(".*.part")) or any(folder.glob("checkpoint/.*.part"))


def content(folder: Path) -> dict[str, object]:
    """Every file of a run, but for when and where it was made."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    if "config.json" in found:
        config = json.loads(str(found["config.json"], "utf-8"))  # type: ignore[call-overload]
        found["config.json"] = {name: value for name, value in config.items() if name not in ("provenance", "sha256")}
    return found


def is_readable(folder: Path, count: Count) -> bool:
    """Whether a run directory is whole, or says what it lacks."""
    try:
        load_run(folder)
    except ValueError as error:
        if not any(text in str(error) for text in EXPECTED):
            count.failures.append(f"unreadable: {error}")
            return False
    return True


def disturb(kind: str, folder: Path, expected: dict[str, object], count: Count, kills: int, rng: random.Random) -> None:
    """Kill a training so many times, let it end, and compare."""
    done = False
    for _ in range(kills):
        done = go(kind, folder, rng.uniform(0, 1.05 * count.seconds), aim=rng.random() < AIMED)
        if done:
            break
        count.kills += 1
        count.while_saving += is_writing(folder)
        count.unreadable += not is_readable(folder, count)
    done = done or go(kind, folder)
    if done:  # once more: what a kill at the very end left is put in order
        go(kind, folder)
    error = folder.parent / f"{folder.name}.error"
    if error.exists():
        count.failures.append(error.read_text())
        error.unlink()
    count.ends += 1
    found = content(folder)
    if found == expected:
        count.identical += 1
    else:
        names = [name for name in {**found, **expected} if found.get(name) != expected.get(name)]
        count.failures.append(f"{folder.name} differs in {', '.join(names)}")


def kill_many(kinds: list[str], kills: int, seed: int, home: Path) -> dict[str, Count]:
    """Kill trainings of each kind in turn until there were so many kills."""
    rng, counts, expected = random.Random(seed), {kind: Count() for kind in kinds}, {}
    for kind, count in counts.items():
        folder = home / kind.replace(" ", "-")
        started = time.monotonic()
        go(kind, folder)
        count.seconds = time.monotonic() - started
        expected[kind] = content(folder)
        if "config.json" not in expected[kind]:
            raise RuntimeError((home / f"{folder.name}.error").read_text())
    trial = 0
    while (left := kills - sum(count.kills for count in counts.values())) > 0:
        kind = kinds[trial % len(kinds)]
        folder = home / f"{kind.replace(' ', '-')}-{trial}"
        disturb(kind, folder, expected[kind], counts[kind], min(left, rng.randint(1, MAX_KILLS)), rng)
        shutil.rmtree(folder, ignore_errors=True)
        trial += 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100, help="how many kills")
    parser.add_argument("--seed", type=int, default=0, help="of their moments")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="which trainings")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    asked = parser.parse_args()
    torch.set_num_threads(1)  # a fork has one thread
    logging.getLogger("censnet").setLevel(logging.ERROR)
    gc.freeze()
    with tempfile.TemporaryDirectory() as home:
        counts = kill_many(asked.kinds, asked.kills, asked.seed, Path(home))
    table = Table("", "seconds", "kills", "half a file", "ends", "identical", "unreadable", title="SIGKILL and resume")
    for kind, count in counts.items():
        numbers = (count.kills, count.while_saving, count.ends, count.identical, count.unreadable)
        table.add_row(kind, f"{count.seconds:.1f}", *map(str, numbers))
    console.print(table)
    failures = [text for count in counts.values() for text in count.failures]
    for text in failures:
        console.print(text, markup=False)
    if not asked.no_record:
        measured = {kind: {**vars(count), "failures": len(count.failures)} for kind, count in counts.items()}
        write_record(
            "kills", measured, f"{platform.machine()} CPU", f"python -m benchmarks.kills --kills {asked.kills}"
        )
    return 1 if failures or any(count.identical < count.ends for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
