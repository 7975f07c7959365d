"""From the names of a table, cells, methods and seeds to their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from censnet_experiments.cells import TABLES, find_cell
from censnet_experiments.packed import Pack, write_pack
from censnet_experiments.plan import External
from censnet_experiments.prepare import prepare
from censnet_experiments.records import missing_seeds, record_path
from censnet_experiments.spec import Spec, find_spec, load_specs
from censnet_experiments.train_packed import train_plan

FIGURES = {"figure2": ("table2", ("gcn", "censnet"))}  # what a figure is drawn from


def reproduce(
    table: str,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    first: int | None = None,
    results: Path = Path("results"),
    device: str | torch.device | None = None,
    at_once: int | None = None,
) -> list[tuple[str, Spec]]:
    """Train what has no record yet: so many seeds of each cell and method.

    Args:
        table: one of `TABLES`, or "figure2", which is two methods of Table 2.
        cells: all by default.
        methods: those of the paper's table by default.
        seeds: how many; as many as the spec says by default.
        first: the first of them; as the spec says by default.
        results: the directory of records.
        device: a GPU if there is one, by default.
        at_once: how many networks are trained together; see `table1.run_cell`.

    Returns:
        every cell and method that was asked for.
    """
    table, of_figure = FIGURES.get(table, (table, None))
    specs = chosen_specs(table, methods or of_figure)
    for spec in specs:
        if isinstance(spec.recipe, External):
            raise ValueError(f"{spec.title} has an environment of its own: `{spec.recipe.command}` adds its records")
    if (seeds is not None and seeds < 1) or (first is not None and first < 0):
        raise ValueError(f"there are {seeds} seeds from {first or 0}, expected at least one, from 0 on")
    asked = []
    place = torch.device(device if device is not None else "cuda" if torch.cuda.is_available() else "cpu")
    for name, some in by_data(table, cells):
        asked += [(cell, spec) for cell in some for spec in specs]
        todo = {spec.method: spec.plan().seeds(seeds, first) for spec in specs}
        left = [
            spec
            for spec in specs
            if any(
                missing_seeds(record_path(results, table, cell, spec.method), spec.plan(), todo[spec.method])
                for cell in some
            )
        ]
        if not left:
            continue
        data = prepare(table, name, range(max(numbers.stop for numbers in todo.values())))
        for spec in left:
            train_plan(spec.plan(), some, data, todo[spec.method], results, place, at_once)
    return asked


def pack(table: str, folder: Path, seeds: int | None = None) -> list[Path]:
    """Write each data set of a table with the splits of so many seeds and the plans of all methods, for `train_packed`.

    Args:
        table: its name.
        folder: where `TABLE-DATA.safetensors` go.
        seeds: how many; the most that a spec asks for by default.
    """
    specs = [spec for spec in load_specs(table).values() if not isinstance(spec.recipe, External)]
    paths = []
    for name, _ in by_data(table, None):
        data = prepare(table, name, range(seeds or max(spec.first + spec.runs for spec in specs)))
        paths.append(folder / f"{table}-{name}.safetensors")
        write_pack(paths[-1], Pack(table, name, data, [spec.plan() for spec in specs]))
    return paths


def chosen_specs(table: str, methods: Sequence[str] | None) -> list[Spec]:
    """The specs of these methods, or of those in the paper's table."""
    if methods is None:
        return [spec for spec in load_specs(table).values() if spec.place == "table"]
    return [find_spec(table, method) for method in methods]


def by_data(table: str, cells: Sequence[str] | None) -> Iterator[tuple[str, list[str]]]:
    """The cells that were asked for, or all of a table, gathered by their data set."""
    names = list(TABLES[table]) if cells is None else list(cells)
    found: dict[str, list[str]] = {}
    for cell in names:
        found.setdefault(find_cell(table, cell).data, []).append(cell)
    yield from found.items()
