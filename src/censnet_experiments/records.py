"""Records of runs: one JSON line for each seed, in `results/TABLE/CELL/METHOD.jsonl`. Every page is computed from them.

A line is written in one piece and only ever added. A run that was stopped while it wrote leaves a torn last line, which
is left out when reading and cut off before the next line is added; the run goes on with the seeds that are missing.
"""

from __future__ import annotations

import json
import logging
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from censnet_experiments.plan import Plan

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Record:
    """What one seed gave.

    Args:
        table, cell, method: where it belongs.
        seed: of the weights and, where it varies, of the split.
        split_seed: of the split.
        settings: the recipe, the same in every record of a file.
        chosen: what was chosen on validation rows: learning rate, epoch.
        tried: how many settings that was chosen from.
        metrics: fractions, or in the unit of the data.
        seconds: of this seed, its settings together; trained with others at once, its share.
        device: what it was trained on.
        versions: of what it was trained with.
        curves: of the chosen setting, by epoch, rounded to 4 digits.
    """

    table: str
    cell: str
    method: str
    seed: int
    split_seed: int
    settings: dict[str, Any]
    chosen: dict[str, float]
    num_candidates: int
    metrics: dict[str, float]
    seconds: float
    device: str
    versions: dict[str, str]
    curves: dict[str, list[float]] = field(default_factory=dict)

    def to_line(self) -> str:
        """As one line of JSON, without curves where there are none."""
        fields = {name: value for name, value in asdict(self).items() if name != "curves" or value}
        return json.dumps(fields, allow_nan=False, separators=(",", ":"))


def record_path(results: Path, table: str, cell: str, method: str) -> Path:
    """Where the records of a cell and method are."""
    return results / table / cell / f"{method}.jsonl"


def append(path: Path, records: Iterable[Record]) -> None:
    """Add records to a file, each by one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _cut_torn_line(path)
    with path.open("ab", buffering=0) as file:
        for record in records:
            file.write(record.to_line().encode() + b"\n")
        os.fsync(file.fileno())


def read(path: Path) -> list[Record]:
    """The records of a file, without a torn last line; none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    records = []
    for number, line in enumerate(lines):
        if number == len(lines) - 1:  # what follows the last line break
            if line:
                logger.warning("%s, row %d: the line is torn and left out: its run was stopped", path, number + 1)
            break
        try:
            records.append(Record(**json.loads(line)))
        except (ValueError, TypeError) as problem:
            raise ValueError(f"{path}, row {number + 1}: not a record: {problem}") from None
    return records


def read_all(results: Path) -> Iterator[Record]:
    """Every record there is, table by table."""
    for path in sorted(results.glob("*/*/*.jsonl")):
        place = (path.parent.parent.name, path.parent.name, path.stem)
        for number, record in enumerate(read(path), 1):
            if (record.table, record.cell, record.method) != place:
                raise ValueError(
                    f"{path}, row {number}: a record of {record.table} {record.cell} {record.method}, expected one of "
                    f"{' '.join(place)}: move it to its own file"
                )
            yield record


def missing_seeds(path: Path, plan: Plan[Any], seeds: Iterable[int]) -> list[int]:
    """The seeds without a record yet. Records of another recipe are an error: they would be mixed into one mean."""
    records = read(path)
    for record in records:
        if record.settings != plan.settings():
            changed = [
                name
                for name in sorted({*record.settings, *plan.settings()})
                if record.settings.get(name) != plan.settings().get(name)
            ]
            raise ValueError(
                f"{path} has records with another {', '.join(changed)}, expected those of the spec: move the file away"
            )
    done = {record.seed for record in records}
    return [seed for seed in seeds if seed not in done]


def versions() -> dict[str, str]:
    """Of what numbers depend on."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("censnet", "torch_geometric", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a working tree that is on the path and not installed
            continue
    return found


def device_name(device: torch.device) -> str:
    """The name of a GPU, or how many threads a CPU has."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
