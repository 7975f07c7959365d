"""Training steps of whole networks on one GPU: `python -m benchmarks.gpu_steps`.

- A step on 256 (64, 8) graphs of the sizes of molecules, by the default preset, in the loop of `censnet train`: batch,
  forward and backward pass, clipping, optimizer and moving average; launched one by one, and recorded as CUDA graphs.
  At most 4 ms for 256.
- A step on Cora and on PubMed (N-E-N, width 32), the same loop, beside an epoch of PyG's GCN: at most 1.0 and 0.8 of
  it.

The record goes to benchmarks/results/gpu_steps.json.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.citations import citation
from benchmarks.epochs import epochs
from benchmarks.records import write_record
from censnet.data.tables.files import Tables
from censnet.pipeline.prepare import Prepared, prepare
from censnet.training.devices import make_accelerator
from censnet.training.step_graphs import RecordedSteps
from censnet.training.task_data import build_model
from censnet.training.trainer import Trainer

GRAPHS, ATOMS, RINGS = 4_096, (27.0, 7.0), 3  # the sizes of the molecules of Lipophilicity
console = Console(width=120)


def like_molecules(count: int = GRAPHS, seed: int = 0) -> Tables:
    """Trees with a few more edges, of as many nodes as drug-like molecules have, with kinds of atoms and bonds."""
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.normal(*ATOMS, count).round().astype(int), 7, 110)
    nodes, edges = list[pd.DataFrame](), list[pd.DataFrame]()
    for number, size in enumerate(sizes):
        parent = [int(rng.integers(max(0, atom - 3), atom)) for atom in range(1, size)]
        pairs = {(up, atom + 1) for atom, up in enumerate(parent)}
        pairs |= {(atom, atom + 5) for atom in rng.choice(size - 6, RINGS) if atom + 5 < size}
        ends = np.array(sorted(pairs))
        nodes.append(pd.DataFrame({"graph": number, "id": range(size), "atom": rng.integers(0, 40, size)}))
        bonds = pd.DataFrame({"graph": number, "source": ends[:, 0], "target": ends[:, 1]})
        edges.append(bonds.assign(bond=rng.integers(0, 4, len(ends))))
    every = pd.concat(nodes).astype({"atom": str}).assign(atom=lambda table: "a" + table["atom"])
    bonds = pd.concat(edges).assign(bond=lambda table: "b" + table["bond"].astype(str))
    labels = pd.DataFrame({"graph": range(count), "y": rng.normal(size=count)})
    return Tables(nodes=every, edges=bonds, graphs=labels)


def steps_of(prepared: Prepared, recorded: bool) -> Trainer:
    model = build_model(prepared.task_data, prepared.settings)
    settings = prepared.settings.training.model_copy(update={"step_graphs": recorded})
    trainer = Trainer(model, prepared.task_data, settings, 0, make_accelerator(settings.precision, "cuda"))
    trainer.model.train()
    return trainer


def median_step_ms(trainer: Trainer, count: int, warm: int = 12) -> dict[str, Any]:
    """Wall time of a step, measured over blocks of ten, which a GPU is waited for at the end of."""
    plan = trainer._plan(0)
    plan = [chosen for chosen in plan if len(chosen) == len(plan[0])]
    times = []
    for number in range(warm + count):
        if number % 10 == 0:
            torch.cuda.synchronize()
            started = time.perf_counter()
        loss = trainer._step(plan[number % len(plan)])
        trainer.progress.step += 1
        if number % 10 == 9:
            torch.cuda.synchronize()
            if number >= warm:
                times.append((time.perf_counter() - started) * 100)
    found = trainer.compute_gradients
    return {
        "ms": statistics.median(times),
        "recordings": len(found.recorded) if isinstance(found, RecordedSteps) else 0,
        "fell back": isinstance(found, RecordedSteps) and found.fails,
        "last loss": float(loss),
        "GiB reserved": torch.cuda.max_memory_reserved() / 2**30,
    }


def molecules(count: int) -> dict[str, dict[str, Any]]:
    tables, results = like_molecules(), dict[str, dict[str, Any]]()
    for batch_size in (256, 64, 8):
        changes = {"training.batch_size": batch_size, "data.directed": False, "training.epochs": 1000}
        prepared = prepare(tables, "graph:y", "strong", changes, 0)
        for recorded in (False, True):
            name = f"{batch_size} graphs, {'recorded' if recorded else 'launched one by one'}"
            results[name] = median_step_ms(steps_of(prepared, recorded), count)
            console.print(f"{name}: {results[name]}")
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return results


def citations(count: int) -> dict[str, dict[str, Any]]:
    results = dict[str, dict[str, Any]]()
    for name in ("cora", "pubmed"):
        graph, labels, which = citation(name)
        graph, labels = graph.to("cuda"), labels.to("cuda")
        work = epochs(graph, labels)
        for peer in ("PyG GCN, dense features", "CensNet"):
            results[f"{which}, {peer}, bare loop"] = {"ms": _bare_ms(work[peer], count)}
        for recorded in (False, True):
            trainer = steps_of(_prepare_citation(name), recorded)
            said = "recorded" if recorded else "launched one by one"
            results[f"{which}, CensNet NEN, {said}"] = median_step_ms(trainer, count)
        for key, value in results.items():
            console.print(f"{key}: {value}")
    return results


def _prepare_citation(name: str) -> Prepared:
    return prepare(name, "node:class", "paper", {"training.epochs": 10_000, "training.patience": None}, 0)


def _bare_ms(epoch: Callable[[], None], count: int) -> float:
    times = []
    for number in range(count // 10 + 2):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(10):
            epoch()
        torch.cuda.synchronize()
        if number >= 2:
            times.append((time.perf_counter() - started) * 100)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300, help="that are measured of each")
    count = parser.parse_args().steps
    device = torch.cuda.get_device_name()
    results = {**molecules(count), **citations(count)}
    table = Table("step", "ms", "recordings", "GiB reserved", title=device)
    for name, row in results.items():
        gib = f"{row['GiB reserved']:.1f}" if "GiB reserved" in row else ""
        table.add_row(name, f"{row['ms']:.2f}", str(row.get("recordings", "")), gib)
    console.print(table)
    path = write_record("gpu_steps", results, device, "python -m benchmarks.gpu_steps")
    console.print(f"record: {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
