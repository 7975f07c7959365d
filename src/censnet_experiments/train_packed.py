"""Train what a pack says and add the records, on a machine that has none of the data sets.

    python -m censnet_experiments.train_packed packs/table1-cora.safetensors --results results --methods gcn censnet

It needs no rdkit. `reproduce.pack` writes the packs.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from censnet_experiments import runner as learn
from censnet_experiments import speed, table1, table2, table3
from censnet_experiments.bundle import LessonData
from censnet_experiments.cells import TABLES
from censnet_experiments.packed import Data, LinkData, MoleculeData, read_pack
from censnet_experiments.plan import Plan

logger = logging.getLogger(__name__)


def train_plan(
    plan: Plan[Any],
    cells: Sequence[str],
    data: Data,
    seeds: Sequence[int],
    results: Path,
    device: torch.device,
    at_once: int | None = None,
    capture: bool = False,
) -> None:
    """Train one method on some cells of one data set, and add the records that are missing."""
    if isinstance(data, MoleculeData):
        table2.run_cells(plan, cells, data, seeds, results, device=device, at_once=at_once)
        return
    for cell in cells:
        if isinstance(data, LessonData):
            learn.run_cell(plan, cell, data, seeds, results, device=device, at_once=at_once)
        elif isinstance(data, LinkData):
            table3.run_cell(plan, cell, data, seeds, results, device=device)
        elif plan.table == "speed":
            speed.run_cell(plan, cell, data, seeds, results)
        else:
            table1.run_cell(plan, cell, data, seeds, results, device=device, at_once=at_once, capture=capture)


def train_packed(
    path: Path,
    results: Path,
    *,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    first: int | None = None,
    device: str | None = None,
    at_once: int | None = None,
    capture: bool = False,
) -> None:
    """Train the methods of a pack on its cells; None is all of them, and as many seeds as a plan asks for."""
    pack = read_pack(path)
    there = [cell for cell, about in TABLES[pack.table].items() if about.data == pack.name]
    plans = {plan.method: plan for plan in pack.plans}
    for name, asked, known in (("cell", cells, there), ("method", methods, plans)):
        unknown = [each for each in asked or () if each not in known]
        if unknown:
            raise ValueError(f"{path.name} has no {name} {unknown[0]!r}, expected some of {', '.join(known)}")
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    for method in methods or plans:
        plan = plans[method]
        began = time.perf_counter()
        chosen = [cell for cell in there if cells is None or cell in cells]
        train_plan(plan, chosen, pack.data, plan.seeds(seeds, first), results, place, at_once, capture)
        logger.info("%s %s: %.1f s", pack.name, method, time.perf_counter() - began)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packs", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--cells", nargs="*", help="all of the data set by default")
    parser.add_argument("--methods", nargs="*", help="all of the pack by default")
    parser.add_argument("--seeds", type=int, help="how many; what the spec says by default")
    parser.add_argument("--first", type=int, help="the first of them; what the spec says by default")
    parser.add_argument("--device", help="a GPU if there is one, by default")
    parser.add_argument("--at-once", type=int, help="networks trained together; all on a GPU by default")
    parser.add_argument("--capture", action="store_true", help="run each epoch of Table 1 as one CUDA graph")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    for path in given.packs:
        train_packed(
            path,
            given.results,
            cells=given.cells,
            methods=given.methods,
            seeds=given.seeds,
            first=given.first,
            device=given.device,
            at_once=given.at_once,
            capture=given.capture,
        )


if __name__ == "__main__":
    main()
