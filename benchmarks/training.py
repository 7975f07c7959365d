"""`python -m benchmarks.training`: training on molecules against chemprop, and what the loop itself costs.

- Molecules a second on Lipophilicity, width 300, batch 64, 2 threads, featurization excluded on both sides: at least
  1.3 times chemprop's default model (width 300, depth 3). Ours has 3 alternations; once with the paper's layers (one
  gate for each row), once with all that the default preset adds (a gate for each channel, a learned self weight, norms,
  residuals, read-out over both sides).
- A full-batch epoch on Cora through the loop of `censnet train`: at most 1.25 times a bare PyTorch loop with the same
  model that also validates and copies the best weights.

chemprop has an environment of its own, `.bench-chemprop`, made by `make bench`; CENSNET_CHEMPROP names the python
of another that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table

from benchmarks.records import write_record
from censnet.data.datasets.download import find
from censnet.nn.model import Model
from censnet.pipeline.prepare import Prepared, prepare
from censnet.settings.build import build_model
from censnet.training.devices import make_accelerator
from censnet.training.trainer import fit

TARGETS = {"molecules": 1.3, "loop": 1.25}
PEER = Path(__file__).parent / "peers" / "chemprop_speed.py"
WIDTH = {"model.hidden": 300, "model.layers": "NENENE", "training.batch_size": 64, "data.features": "rich"}
PACES = ("molecules/s", "molecules/CPU s")
PLAIN = {"model.dropout": 0.0, "model.head": [300], "training.optimizer": "adam", "training.weight_decay": 0.0}
console = Console(width=120)


class Clock:
    """Callback: times of steps, also in seconds of the CPU, and of epochs."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float]] = []
        self.epochs: list[float] = []

    def on_train_begin(self, *facts: object) -> None:
        """The clock runs by itself."""

    def on_step_end(self) -> None:
        self.steps.append((time.perf_counter(), time.process_time()))

    def on_epoch_end(self, *facts: object) -> None:
        self.epochs.append(time.perf_counter())

    def on_train_end(self) -> None:
        """Nothing is open."""


def measure_molecules(threads: int, steps: int, rounds: int) -> dict[str, Any]:
    """Molecules a second of both, in turns."""
    smiles = find("lipophilicity")["Lipophilicity.csv"]
    python = os.environ.get("CENSNET_CHEMPROP", ".bench-chemprop/bin/python")
    ours = {
        "censnet, the paper's layers": prepare("lipophilicity", "graph:exp", "paper", {**WIDTH, **PLAIN}),
        "censnet, default preset": prepare("lipophilicity", "graph:exp", "strong", {**WIDTH, "model.heads": 300}),
    }
    found: dict[str, dict[str, list[float]]] = {name: {pace: [] for pace in PACES} for name in ("chemprop", *ours)}
    facts: dict[str, Any] = {}
    for _ in range(rounds):
        command = [python, str(PEER), str(smiles), "exp", str(threads), str(steps)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        facts = json.loads(done.stdout.strip().splitlines()[-1])
        for pace in PACES:
            found["chemprop"][pace].append(facts.pop(pace))
        for name, prepared in ours.items():
            for pace, value in zip(PACES, molecules_per_second(prepared, steps), strict=True):
                found[name][pace].append(value)
    best = {  # another process can only slow a round down
        name: {pace: max(values) for pace, values in paces.items()} for name, paces in found.items()
    }
    table = {name: dict(paces) for name, paces in best.items()}
    for name, row in table.items():
        row |= {f"x chemprop, {pace}": best[name][pace] / best["chemprop"][pace] for pace in PACES}
    return {"chemprop": facts, "rounds": found, "table": table}


def molecules_per_second(prepared: Prepared, steps: int, warm: int = 5) -> tuple[float, float]:
    """Through the loop of `censnet train`, validation excluded: it comes after the epoch's last step.

    Returns:
        molecules in a second, and in a second of the CPU.
    """
    settings = prepared.settings.training.model_copy(update={"epochs": 1, "patience": None})
    clock = Clock()
    fit(make(prepared), prepared.task_data, settings, 0, accelerator=make_accelerator(device="cpu"), callbacks=[clock])
    counted = clock.steps[warm : warm + steps + 1]
    done = int(settings.batch_size) * (len(counted) - 1)
    wall, cpu = (last - first for first, last in zip(counted[0], counted[-1], strict=True))
    return done / wall, done / cpu


def make(prepared: Prepared) -> Model:
    """The network of a training, from its seed."""
    torch.manual_seed(prepared.settings.seed)
    return build_model(prepared.task_data.shape, prepared.settings.model)


def measure_loop(epochs: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of a Cora epoch through the loop and in a bare one, in turns."""
    split = {"data.split": "label-rate", "data.label_rate": 0.03}
    changes = {**split, "training.epochs": epochs, "training.patience": None}
    prepared = prepare("cora", "node:label", "paper", changes)
    work: dict[str, Callable[[], list[float]]] = {
        "the loop of censnet train": lambda: _through_fit(prepared),
        "a bare loop that validates": lambda: _bare(prepared, epochs, validate=True),
        "a bare loop that does not": lambda: _bare(prepared, epochs, validate=False),
    }
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            found[name].append(1e3 * _pace(run()))
    table = {name: {"ms": min(values)} for name, values in found.items()}
    ours = table["the loop of censnet train"]["ms"]
    for row in table.values():
        row["the loop is x of it"] = ours / row["ms"]
    return {"rounds": found, "table": table}


def _through_fit(prepared: Prepared) -> list[float]:
    clock = Clock()
    accelerator = make_accelerator(device="cpu")
    fit(make(prepared), prepared.task_data, prepared.settings.training, accelerator=accelerator, callbacks=[clock])
    return clock.epochs


def _bare(prepared: Prepared, epochs: int, validate: bool) -> list[float]:
    model, task_data, settings = make(prepared), prepared.task_data, prepared.settings.training
    graph, part = task_data.graph, task_data.parts["node"][:, 0]
    labels = task_data.labels["node"][:, 0].nan_to_num(-1).long()
    train, validation = (part == 0).nonzero().squeeze(1), (part == 1).nonzero().squeeze(1)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    times, best, best_weights = [], 0.0, {}
    for _ in range(epochs):
        model.train()
        loss = F.cross_entropy(model(graph).rows["node"][train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if validate:
            model.eval()
            with torch.no_grad():
                right = model(graph).rows["node"][validation].argmax(1) == labels[validation]
            if float(right.float().mean()) > best:
                best = float(right.float().mean())
                best_weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        times.append(time.perf_counter())
    assert best_weights or not validate
    return times


def _pace(times: Sequence[float], warm: int = 20) -> float:
    return statistics.median(b - a for a, b in zip(times[warm:], times[warm + 1 :], strict=False))


def show(title: str, rows: dict[str, dict[str, float]]) -> None:
    columns = list(next(iter(rows.values())))
    table = Table("", *columns, title=title)
    for name, values in rows.items():
        table.add_row(name, *(f"{values[column]:,.2f}" for column in columns))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    molecules = measure_molecules(options.threads, options.steps, options.rounds)
    show("Lipophilicity, molecules a second (target 1.3 x chemprop)", molecules["table"])
    loop = measure_loop(150, options.rounds)
    show("Cora, an epoch (target 1.25 x a bare loop)", loop["table"])
    path = write_record(
        "training", {"molecules": molecules, "loop": loop, "targets": TARGETS}, platform.processor() or "CPU",
        "python -m benchmarks.training",
    )  # fmt: skip
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
