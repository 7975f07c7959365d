"""From the names of a table, cells, methods and seeds to their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from censnet.experiments.cells import TABLES, find_cell
from censnet.experiments.packed import Pack, write_pack
from censnet.experiments.prepare import prepare
from censnet.experiments.spec import Spec, find_spec, load_specs
from censnet.experiments.train_packed import train_plan


def reproduce(
    table: str,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    results: Path = Path("results"),
    device: str | torch.device | None = None,
    at_once: int | None = None,
) -> None:
    """Train what has no record yet: the seeds from 0 of each cell and method.

    Args:
        table: "table1", "table2" or "table3".
        cells: all by default.
        methods: those of the paper's table by default.
        seeds: how many; as many as the spec says by default.
        results: the directory of records.
        device: a GPU if there is one, by default.
        at_once: how many networks are trained together; see `table1.run_cell`.
    """
    specs = chosen_specs(table, methods)
    place = torch.device(device if device is not None else "cuda" if torch.cuda.is_available() else "cpu")
    for name, some in by_data(table, cells):
        data = prepare(table, name, range(max(seeds or spec.runs for spec in specs)))
        for spec in specs:
            train_plan(spec.plan(), some, data, range(seeds or spec.runs), results, place, at_once)


def pack(table: str, folder: Path, seeds: int | None = None) -> list[Path]:
    """Write each data set of a table with the splits of so many seeds and the plans of all methods, for `train_packed`.

    Args:
        table: its name.
        folder: where `TABLE-DATA.safetensors` go.
        seeds: how many; the most that a spec asks for by default.
    """
    specs, paths = list(load_specs(table).values()), []
    for name, _ in by_data(table, None):
        data = prepare(table, name, range(seeds or max(spec.runs for spec in specs)))
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
