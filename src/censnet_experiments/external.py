"""External programs with an environment of their own: our splits of molecules for them, and their results as records.

A program reads a file for each cell of the table `molecules` and writes a line for each seed; it needs nothing of this
library. `benchmarks/peers/chemprop_splits.py` is such a program.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from censnet.data.dataset import TypedData
from censnet.data.load import read_data
from censnet.errors import DataError
from censnet.pipeline.splitting import split_rows
from censnet.settings.presets import make_settings
from censnet_experiments.records import Record, append, read, record_path

logger = logging.getLogger(__name__)

TABLE = "molecules"
SPLITS = {"random": "ratio", "scaffold": "scaffold"}  # split of a cell -> data.split
TASKS = {
    "tox21": (
        "NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD",
        "NR-PPAR-gamma", "SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53",
    ),
    "lipophilicity": ("exp",),
}  # fmt: skip


def write_cells(folder: Path, seeds: Sequence[int], names: Sequence[str] = tuple(TASKS)) -> list[Path]:
    """Write CELL.json.gz for each dataset of molecules and kind of split.

    A file has `cell`, `kind` (regression or classification), `targets`, `smiles`, `labels` (null where missing) and
    `parts`: seed -> the part of each molecule, 0 train, 1 validation, 2 test, as in a training with that seed.

    Args:
        folder: output directory.
        seeds: of the splits.
        names: of the datasets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        data = read_data(name, target=f"graph:{','.join(TASKS[name])}", features="paper", scaffolds=True)
        for split in SPLITS:
            path = folder / f"{name}-{split}.json.gz"
            text = json.dumps(describe_cell(data, name, split, seeds), allow_nan=False, separators=(",", ":"))
            path.write_bytes(gzip.compress(text.encode(), mtime=0))  # without the time: the same bytes each time
            paths.append(path)
    return paths


def describe_cell(data: TypedData, name: str, split: str, seeds: Sequence[int]) -> dict[str, Any]:
    """The content of the file of a cell: molecules that parse and have a label."""
    settings = make_settings("strong", "graph", {"data.split": SPLITS[split]}).data
    columns = list(TASKS[name])
    codes = {
        seed: split_rows(data, {"graph": columns}, settings, seed)["graph"].codes(len(data.rows("graph")))
        for seed in seeds
    }
    used = np.flatnonzero(np.stack(list(codes.values())).max(axis=0) >= 0)
    if any((part[used] < 0).any() for part in codes.values()):
        raise DataError(f"the splits of {name} use different molecules, expected the same for each seed")
    assert data.schema.smiles is not None
    labels = data.tables.frames()["graphs"][columns].astype(object)
    labels = labels.where(labels.notna(), None)
    return {
        "cell": f"{name}-{split}",
        "kind": "regression" if name == "lipophilicity" else "classification",
        "targets": columns,
        "smiles": data.labels("graph", data.schema.smiles).iloc[used].tolist(),
        "labels": labels.iloc[used].to_numpy().tolist(),
        "parts": {str(seed): part[used].tolist() for seed, part in codes.items()},
    }


def add_results(results: Path, method: str, lines: Path) -> list[Record]:
    """Add the results of a program to the records of its cell, except for recorded seeds. -> those added"""
    found = {record.seed: record for record in read_results(lines, method)}
    if not found:
        return []
    cell = next(iter(found.values())).cell
    path = record_path(results, TABLE, cell, method)
    before = read(path)
    settings = [record.settings for record in (*before, *found.values())]
    if any(other != settings[0] for other in settings):
        raise DataError(f"{lines} has other settings than {path}, expected the same: move one of them away")
    new = [found[seed] for seed in sorted(found.keys() - {record.seed for record in before})]
    append(path, new)
    return new


def read_results(lines: Path, method: str) -> Iterator[Record]:
    """Read the lines of a program as records, without an incomplete last one."""
    *complete, rest = lines.read_bytes().split(b"\n")
    if rest:
        logger.warning("%s, row %d: the line is incomplete and ignored: its run was stopped", lines, len(complete) + 1)
    for line in complete:
        yield _as_record(json.loads(line), method)


def _as_record(line: Mapping[str, Any], method: str) -> Record:
    """A program is trained by one recipe, so only the epoch is selected."""
    loss = [round(value, 4) for value in line["curves"]["validation_loss"]]
    return Record(
        table=TABLE,
        cell=line["cell"],
        method=method,
        seed=line["seed"],
        split_seed=line["seed"],
        settings=line["settings"],
        chosen=line["chosen"],
        num_candidates=1,
        metrics=line["metrics"],
        seconds=round(line["seconds"], 3),
        device=line["device"],
        versions=line["versions"],
        curves={"validation_loss": loss},
    )
