"""Records of runs: one JSON line for each seed, in `results/TABLE/CELL/METHOD.jsonl`. Every page is computed from them.

A line is written by one call and only ever appended. A run that was stopped while writing leaves an incomplete last
line, which is ignored when reading and removed before the next line is appended; the run continues with the seeds that
are missing.
"""

from __future__ import annotations

import json
import logging
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from censnet.errors import DataError
from censnet_experiments.plan import Plan

logger = logging.getLogger(__name__)

Run = tuple[str, int]  # a cell and a seed
DIGITS = 5  # of recorded metrics


@dataclass(frozen=True)
class Record:
    """The result of one seed.

    Args:
        table, cell, method: names, as in the path of the file.
        seed: of the weights and, where it varies, of the split.
        split_seed: of the split.
        settings: the recipe, the same in every record of a file.
        chosen: what was selected on the validation set: learning rate, epoch, candidate.
        num_candidates: number of settings that it was selected from.
        metrics: fractions, or in the unit of the data.
        seconds: training time of this seed, all candidates included; its share where seeds were trained together.
        device: name of the training device.
        versions: of the packages that numbers depend on.
        curves: of the selected candidate, by epoch, rounded to 4 digits.
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

    @classmethod
    def of(
        cls,
        plan: Plan[Any],
        run: Run,
        metrics: Mapping[str, float],
        seconds: float,
        device: torch.device,
        *,
        chosen: Mapping[str, float] | None = None,
        num_candidates: int = 1,
        curves: Mapping[str, list[float]] | None = None,
    ) -> Record:
        """Make the record of one run of a plan on this machine."""
        cell, seed = run
        return cls(
            table=plan.table,
            cell=cell,
            method=plan.method,
            seed=seed,
            split_seed=plan.split_seed(seed, cell),
            settings=plan.settings(cell),
            chosen=dict(chosen or {}),
            num_candidates=num_candidates,
            metrics={name: round(value, DIGITS) for name, value in metrics.items()},
            seconds=round(seconds, 2),
            device=device_name(device),
            versions=versions(),
            curves=dict(curves or {}),
        )

    def to_line(self) -> str:
        """One line of JSON, without curves where there are none."""
        fields = {name: value for name, value in asdict(self).items() if name != "curves" or value}
        return json.dumps(fields, allow_nan=False, separators=(",", ":"))


def record_path(results: Path, table: str, cell: str, method: str) -> Path:
    """The file of the records of a cell and method."""
    return results / table / cell / f"{method}.jsonl"


def append(path: Path, records: Iterable[Record]) -> None:
    """Append records to a file, each by one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _cut_incomplete_line(path)
    with path.open("ab", buffering=0) as file:
        for record in records:
            file.write(record.to_line().encode() + b"\n")
        os.fsync(file.fileno())


def read(path: Path) -> list[Record]:
    """Read the records of a file, without an incomplete last line; none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    records = []
    for number, line in enumerate(lines):
        if number == len(lines) - 1:  # what follows the last line break
            if line:
                logger.warning("%s, row %d: the line is incomplete and ignored: its run was stopped", path, number + 1)
            break
        try:
            records.append(Record(**json.loads(line)))
        except (ValueError, TypeError) as problem:
            raise DataError(f"{path}, row {number + 1}: not a record: {problem}") from None
    return records


def read_all(results: Path) -> Iterator[Record]:
    """Read every record, table by table."""
    for path in sorted(results.glob("*/*/*.jsonl")):
        names = (path.parent.parent.name, path.parent.name, path.stem)
        for number, record in enumerate(read(path), 1):
            if (record.table, record.cell, record.method) != names:
                raise DataError(
                    f"{path}, row {number}: a record of {record.table} {record.cell} {record.method}, expected one of "
                    f"{' '.join(names)}: move it to its own file"
                )
            yield record


def missing_seeds(path: Path, plan: Plan[Any], seeds: Iterable[int]) -> list[int]:
    """The seeds without a record. Records of another recipe are an error: their mean would mix two recipes."""
    records, settings = read(path), plan.settings(path.parent.name)
    for record in records:
        if record.settings != settings:
            names = sorted({*record.settings, *settings})
            changed = [name for name in names if record.settings.get(name) != settings.get(name)]
            raise DataError(
                f"{path} has records with another {', '.join(changed)}, expected those of the spec: move the file away"
            )
    done = {record.seed for record in records}
    return [seed for seed in seeds if seed not in done]


def versions() -> dict[str, str]:
    """Versions of the packages that numbers depend on."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("censnet", "torch_geometric", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a source tree on the path that is not installed
            continue
    return found


def device_name(device: torch.device) -> str:
    """The name of a GPU, or the number of threads of a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def _cut_incomplete_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        with path.open("r+b") as file:
            file.truncate(complete)
