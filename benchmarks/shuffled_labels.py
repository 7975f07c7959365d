"""Bitcoin OTC as a stream with shuffled labels: nothing can be learned, so held-out rows have an AUC of a half.

`python -m benchmarks.shuffled_labels [--seeds 8]`; record: benchmarks/results/shuffled_labels.json. A label that
reached the answer to its own row would show here. It exits with 1 where the mean over the seeds is off by more than
0.02.
"""

from __future__ import annotations

import argparse
import logging
import platform
import statistics
import sys
from math import sqrt

import numpy as np
import torch

from benchmarks.records import write_record
from censnet import train
from censnet.data.tables.files import Tables
from censnet_experiments.edges.otc import read_otc

EPOCHS, MOST = 10, 0.02
PARTS = ("train", "validation", "test", "test_labels_fixed")


def measure(seed: int) -> dict[str, float]:
    """Part -> AUC."""
    frame = read_otc().edges
    assert frame is not None
    shuffled = np.random.default_rng(seed).permutation(frame["sign"].to_numpy())
    tables = Tables(edges=frame.drop(columns="rating").assign(sign=shuffled))
    run = train(tables, "edge:sign=binary", settings={"training.epochs": EPOCHS}, time="time", seed=seed)
    return {part: run.metrics[part]["edge"]["auc"] for part in PARTS}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=8, help="how many")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("censnet").setLevel(logging.ERROR)
    rows, worst = dict[str, dict[str, float]](), 0.0
    for seed in range(asked.seeds):
        rows[f"seed {seed}"] = measure(seed)
        print(f"seed {seed}", ", ".join(f"{part} {auc:.4f}" for part, auc in rows[f"seed {seed}"].items()), flush=True)
        if not asked.no_record:
            name, command = "shuffled_labels", f"python -m benchmarks.shuffled_labels --seeds {seed + 1}"
            write_record(name, {"AUC": rows}, f"{platform.machine()} CPU", command)
    for part in PARTS[2:]:
        scores = [row[part] for row in rows.values()]
        error = statistics.stdev(scores) / sqrt(len(scores)) if len(scores) > 1 else float("nan")
        worst = max(worst, abs(statistics.mean(scores) - 0.5))
        print(f"{part}: {statistics.mean(scores):.4f} with a standard error of {error:.4f}, must be 0.5 +- {MOST}")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
