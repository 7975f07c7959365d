"""Training of table cells: from the names of a table, cells, methods and seeds to their records."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from censnet.errors import ArgumentError
from censnet_experiments import edges_table, preset_tables, speed, table1, table2, table3
from censnet_experiments.batched_trainer import Compute
from censnet_experiments.bundle import Bundle, read_bundle, write_bundle
from censnet_experiments.cells import TABLES, find_cell
from censnet_experiments.data import Data, LinkData, MoleculeData, PresetData, prepare_data
from censnet_experiments.edge_tasks import EdgeTasks
from censnet_experiments.models import CLASSICAL_MODELS
from censnet_experiments.plan import External, Plan
from censnet_experiments.records import Record, Run, append, missing_seeds, record_path
from censnet_experiments.spec import Spec, find_spec, load_specs

logger = logging.getLogger(__name__)

FIGURES = {"figure2": ("table2", ("gcn", "censnet"))}  # the table and methods that a figure is drawn from


def reproduce(
    table: str,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    first: int | None = None,
    results: Path = Path("results"),
    device: str | torch.device | None = None,
    batched: int | None = None,
) -> list[tuple[str, Spec]]:
    """Train what has no record yet: a number of seeds of each cell and method.

    Args:
        table: one of `TABLES`, or "figure2", which is two methods of Table 2.
        cells: all by default.
        methods: those of the paper's table by default.
        seeds: number of seeds; by default that of the spec.
        first: the first seed; by default that of the spec.
        results: directory of records.
        device: a GPU if there is one, by default.
        batched: number of networks trained as one batch; see `Compute`.

    Returns:
        every requested cell and method.
    """
    table, of_figure = FIGURES.get(table, (table, None))
    specs = select_specs(table, methods or of_figure)
    for spec in specs:
        if isinstance(spec.recipe, External):
            raise ArgumentError(f"{spec.title} has an environment of its own: `{spec.recipe.command}` adds its records")
    if (seeds is not None and seeds < 1) or (first is not None and first < 0):
        raise ArgumentError(f"there are {seeds} seeds from {first or 0}, expected at least one, from 0 on")
    requested: list[tuple[str, Spec]] = []
    for name, some in cells_by_data(table, cells):
        count = seeds or find_cell(table, some[0]).runs
        todo = {spec.method: spec.plan().seeds(count, first) for spec in specs}
        trained = {spec.method: [cell for cell in some if spec.is_for(cell)] for spec in specs}
        requested += [(cell, spec) for cell in some for spec in specs if cell in trained[spec.method]]
        unfinished = [
            spec
            for spec in specs
            if any(
                missing_seeds(record_path(results, table, cell, spec.method), spec.plan(), todo[spec.method])
                for cell in trained[spec.method]
            )
        ]
        if not unfinished:
            continue
        data = prepare_data(table, name, range(max(numbers.stop for numbers in todo.values())))
        for spec in unfinished:
            compute = Compute(pick_device(device), batched)
            run_plan(spec.plan(), trained[spec.method], data, todo[spec.method], results, compute)
    if not requested:
        raise ArgumentError(f"{', '.join(spec.method for spec in specs)} is not for {', '.join(cells or ())}")
    return requested


def write_bundles(table: str, folder: Path, seeds: int | None = None) -> list[Path]:
    """Write each dataset of a table with its splits and the plans of all methods, for `train_bundle`.

    Args:
        table: its name.
        folder: directory of `TABLE-DATA.safetensors`.
        seeds: number of splits; by default the most that a spec asks for.
    """
    specs = [spec for spec in load_specs(table).values() if not isinstance(spec.recipe, External)]
    paths = []
    for name, _ in cells_by_data(table, None):
        data = prepare_data(table, name, range(seeds or max(spec.first + spec.runs for spec in specs)))
        paths.append(folder / f"{table}-{name}.safetensors")
        write_bundle(paths[-1], Bundle(table, name, data, [spec.plan() for spec in specs]))
    return paths


def train_bundle(
    path: Path,
    results: Path,
    *,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    first: int | None = None,
    device: str | None = None,
    batched: int | None = None,
    capture: bool = False,
) -> None:
    """Train the methods of a bundle on its cells; None is all of them, and as many seeds as a plan asks for."""
    bundle = read_bundle(path)
    there = [cell for cell, about in TABLES[bundle.table].items() if about.data == bundle.name]
    plans = {plan.method: plan for plan in bundle.plans}
    for name, asked, known in (("cell", cells, there), ("method", methods, plans)):
        unknown = [each for each in asked or () if each not in known]
        if unknown:
            raise ArgumentError(f"{path.name} has no {name} {unknown[0]!r}, expected some of {', '.join(known)}")
    for method in methods or plans:
        plan, start = plans[method], time.perf_counter()
        some = [cell for cell in there if cells is None or cell in cells]
        compute = Compute(pick_device(device), batched, capture)
        run_plan(plan, some, bundle.data, plan.seeds(seeds, first), results, compute)
        logger.info("%s %s: %.1f s", bundle.name, method, time.perf_counter() - start)


def run_plan(
    plan: Plan[Any],
    cells: Sequence[str],
    data: Data,
    seeds: Sequence[int],
    results: Path,
    compute: Compute,
) -> None:
    """Train one method on some cells of one dataset, and add a record for each seed that has none.

    Args:
        plan: the method.
        cells: of the data.
        data: with the splits of these seeds.
        seeds: replicates.
        results: directory of records.
        compute: where networks are trained, and how many together.
    """
    todo = []
    for cell in cells:
        path = record_path(results, plan.table, cell, plan.method)
        todo += [(cell, seed) for seed in missing_seeds(path, plan, seeds)]
    for runs in _batches(plan, data, todo, compute):
        for record in _train(plan, runs, data, compute):
            append(record_path(results, plan.table, record.cell, plan.method), [record])
            logger.info("%s %s seed %d: %s", record.cell, plan.method, record.seed, record.metrics)


def _train(plan: Plan[Any], runs: Sequence[Run], data: Data, compute: Compute) -> list[Record]:
    """Train the networks of one batch by the trainer of their table."""
    device = compute.device
    if isinstance(data, EdgeTasks):
        return edges_table.train_runs(plan, runs, data, device)
    if isinstance(data, PresetData):
        return preset_tables.train_runs(plan, runs, data, device)
    if isinstance(data, MoleculeData):
        return table2.train_runs(plan, runs, data, device)
    if isinstance(data, LinkData):
        return table3.train_runs(plan, runs, data, device)
    if plan.table == "speed":
        return speed.time_runs(plan, runs, data)
    return table1.train_runs(plan, runs, data, compute)


def _batches(plan: Plan[Any], data: Data, runs: Sequence[Run], compute: Compute) -> Iterator[list[Run]]:
    """Split runs into those that are trained together.

    Only Table 2 trains several cells together. The library's loop draws the members of a batch from their first seed
    onwards, so that its seeds have no gap.
    """
    batched = compute.batched
    size = len(runs) if compute.device.type == "cuda" else 1
    if isinstance(data, EdgeTasks):
        size = 1
    elif isinstance(data, PresetData):
        size = (batched or size) if plan.table == "nodes" and plan.recipe.ensemble == 1 else 1
    elif isinstance(data, LinkData) or plan.table == "speed" or plan.recipe.model in CLASSICAL_MODELS:
        size = 1
    elif batched:
        size = batched // len(plan.recipe.learning_rates)
    batch: list[Run] = []
    for run in runs:
        other_cell = bool(batch) and run[0] != batch[-1][0] and not isinstance(data, MoleculeData)
        gap = bool(batch) and run[1] != batch[-1][1] + 1 and isinstance(data, PresetData)
        if len(batch) >= max(size, 1) or other_cell or gap:
            yield batch
            batch = []
        batch.append(run)
    if batch:
        yield batch


def select_specs(table: str, methods: Sequence[str] | None) -> list[Spec]:
    """The specs of these methods, or of those in the paper's table."""
    if methods is None:
        return [spec for spec in load_specs(table).values() if spec.section == "table"]
    return [find_spec(table, method) for method in methods]


def cells_by_data(table: str, cells: Sequence[str] | None) -> Iterator[tuple[str, list[str]]]:
    """The requested cells, or all of a table, grouped by their dataset."""
    found: dict[str, list[str]] = {}
    for cell in TABLES[table] if cells is None else cells:
        found.setdefault(find_cell(table, cell).data, []).append(cell)
    yield from found.items()


def pick_device(device: str | torch.device | None) -> torch.device:
    """The given device, or a GPU if there is one."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
