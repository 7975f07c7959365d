"""`python -m benchmarks.molecules`: SMILES to packed graphs, and batches of them, against PyTorch Geometric in one run.

All 4,200 molecules of Lipophilicity. The targets: one process reads at least 2 times the molecules per second of
`from_smiles` followed by `Batch.from_data_list`; several processes nearly as many times more; a batch of 256 from a
`GraphSet`, with the incidence order and degrees that the layers need, at least 8 times faster than `from_data_list`.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
from collections.abc import Callable
from typing import Any

import torch
from rdkit import Chem, rdBase
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_smiles, to_undirected

from benchmarks.records import take_turns, write_record
from censnet.cli.options import keep_heap
from censnet.data.datasets.download import find
from censnet.data.molecules.featurize import featurize
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet

BATCH = 256
TARGETS = {"reading": 2.0, "batch": 8.0}
console = Console(width=120)


def read_smiles() -> list[str]:
    with open(find("lipophilicity")["Lipophilicity.csv"], newline="") as stream:
        return [row["smiles"] for row in csv.DictReader(stream)]


def measure_reading(smiles: list[str], repetitions: int) -> dict[str, Any]:
    """Molecules per second, one process each."""
    times = take_turns(
        {
            "PyG from_smiles and Batch.from_data_list": lambda: Batch.from_data_list([from_smiles(s) for s in smiles]),
            "censnet, rich features": lambda: featurize(smiles, processes=1),
            "censnet, paper features": lambda: featurize(smiles, "paper", processes=1),
            "rdkit parses and nothing else": lambda: [Chem.MolFromSmiles(s) for s in smiles],
        },
        repetitions,
        warm=1,
    )
    pyg = times["PyG from_smiles and Batch.from_data_list"]
    return {name: {"molecules/s": len(smiles) / t, "x PyG": pyg / t} for name, t in times.items()}


def measure_processes(smiles: list[str], repetitions: int) -> dict[str, Any]:
    """Several processes on a longer list, against one.

    On a busy machine the wall clock says little, so the time that the processors worked is beside it, and the gain that
    follows from it if each process had a core of its own: what the first does alone bounds it.
    """
    several = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    long = smiles * 4
    worked: dict[int, list[tuple[float, float]]] = {1: [], several: []}

    def read(processes: int) -> None:
        before = os.times()
        featurize(long, processes=processes)
        after = os.times()
        own = after.user + after.system - before.user - before.system
        others = after.children_user + after.children_system - before.children_user - before.children_system
        worked[processes].append((own, others))

    times = take_turns({number: lambda number=number: read(number) for number in worked}, repetitions, warm=1)
    rows = {}
    alone = statistics.median(own for own, _ in worked[1])
    for number, seconds in times.items():
        own, others = (statistics.median(part) for part in zip(*worked[number], strict=True))
        rows[f"processes: {number}"] = {
            "molecules/s": len(long) / seconds,
            "x one process": times[1] / seconds,
            "x by time worked": alone / (own + others / number),
            "s worked, first process": own,
            "s worked, others": others,
        }
    return rows


def as_data(graph: Graph) -> Data:
    """Our features in PyG's form: each bond in both directions."""
    edge_index, edge_attr = to_undirected(graph.ends, graph.edges, num_nodes=graph.num_nodes)
    return Data(x=graph.nodes, edge_index=edge_index, edge_attr=edge_attr)


def gather(graphs: GraphSet, numbers: Tensor) -> tuple[Graph, Any, Tensor, Tensor]:
    """A batch and all that a layer asks of its incidence before it begins."""
    batch = graphs.batch(numbers)
    incidence = batch.incidence
    return batch, incidence.csr, incidence.node_degree, incidence.edge_degree


def measure_batches(smiles: list[str], repetitions: int) -> dict[str, Any]:
    """One batch of 256 molecules drawn at random, features ready in memory, after an epoch or two of such batches."""
    graphs = featurize(smiles).graphs
    assert graphs is not None
    integers, floats = [from_smiles(s) for s in smiles], [as_data(graphs[n]) for n in range(len(graphs))]
    draw = torch.Generator().manual_seed(0)
    batches = [torch.randperm(len(smiles), generator=draw)[:BATCH] for _ in range(10)]
    check(graphs, floats, batches[0])

    def every(one: Callable[[Tensor], object]) -> Callable[[], None]:
        def work() -> None:
            for numbers in batches:
                one(numbers)  # and dropped before the next, as in training

        return work

    times = take_turns(
        {
            "PyG Batch.from_data_list, its 9 + 3 integers": every(
                lambda numbers: Batch.from_data_list([integers[n] for n in numbers.tolist()])
            ),
            "PyG Batch.from_data_list, our 81 + 11 columns": every(
                lambda numbers: Batch.from_data_list([floats[n] for n in numbers.tolist()])
            ),
            "censnet GraphSet.batch, order and degrees included": every(lambda numbers: gather(graphs, numbers)),
        },
        repetitions,
        warm=3,
    )
    pyg = times["PyG Batch.from_data_list, its 9 + 3 integers"]
    return {name: {"ms": 1e3 * t / len(batches), "x PyG": pyg / t} for name, t in times.items()}


def check(graphs: GraphSet, data: list[Data], numbers: Tensor) -> None:
    """Both batches are the same molecules."""
    ours, theirs = graphs.batch(numbers), Batch.from_data_list([data[n] for n in numbers.tolist()])
    edge_index, _ = to_undirected(ours.ends, ours.edges, num_nodes=ours.num_nodes)
    torch.testing.assert_close(ours.nodes, theirs.x)
    torch.testing.assert_close(ours.owner, theirs.batch)
    torch.testing.assert_close(edge_index, theirs.edge_index)


def show(title: str, rows: dict[str, dict[str, float]]) -> None:
    columns = list(next(iter(rows.values())))
    table = Table("", *columns, title=title, title_justify="left")
    for name, row in rows.items():
        table.add_row(name, *(f"{row[column]:,.2f}" for column in columns))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    repetitions = parser.parse_args().repetitions
    torch.set_num_threads(1)
    console.print(f"memory is kept between steps, for all methods: {keep_heap()}")
    smiles = read_smiles()
    measured: dict[str, Any] = {"targets": TARGETS, "repetitions": repetitions, "load before": os.getloadavg()[0]}
    with rdBase.BlockLogs():
        measured["reading"] = measure_reading(smiles, repetitions)
        measured["processes"] = measure_processes(smiles, repetitions)
        measured["batches"] = measure_batches(smiles, 7 * repetitions)
    show("SMILES to packed graphs, 4,200 molecules of Lipophilicity, one process", measured["reading"])
    show("The same 4 times over, several processes", measured["processes"])
    show(f"A batch of {BATCH} molecules", measured["batches"])
    device = f"{platform.machine()} CPU, {os.cpu_count()} cores"
    path = write_record("molecules", measured, device, "python -m benchmarks.molecules")
    console.print(f"record: {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
