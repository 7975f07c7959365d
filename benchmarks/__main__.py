"""`make bench`: speed against the peers on a CPU, as ratios in one run. Record: benchmarks/results/cpu.json."""

from __future__ import annotations

import platform
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import LineGraph as PyGLineGraph
from torch_geometric.utils import to_undirected

from benchmarks.citations import citation
from benchmarks.directed import measure_directed
from benchmarks.epochs import epochs
from benchmarks.explicit import LineGraph, dense_rule
from benchmarks.graphs import power_law, ring, star
from benchmarks.records import take_turns, write_record
from censnet.cli.options import keep_heap
from censnet.ops import Incidence, propagate_edges, propagate_nodes

WIDTH = 32
console = Console(width=120)
Measured = dict[str, dict[str, Any]]


def show(title: str, rows: dict[str, dict[str, Any]]) -> None:
    columns = list(next(iter(rows.values())))
    table = Table("", *columns, title=title, title_justify="left")
    for name, row in rows.items():
        table.add_row(
            name, *(f"{row[c]:.3g}" if isinstance(row.get(c), float) else str(row.get(c, "")) for c in columns)
        )
    console.print(table)


def step(propagate: Any, rows: Tensor, weight: Tensor, incidence: Incidence, given: Tensor) -> Any:
    """Forward and backward of one propagation, as a function to be timed."""
    rows, weight = rows.detach().requires_grad_(), weight.detach().requires_grad_()
    return lambda: torch.autograd.grad(propagate(rows, weight, incidence), (rows, weight), given)


def edge_inputs(incidence: Incidence) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    shape = (incidence.num_edges, WIDTH)
    return torch.randn(shape), torch.randn(incidence.num_nodes), torch.randn(shape)


def power_law_incidence(num_edges: int, ordered: bool = True) -> Incidence:
    """A power-law graph with five times as many edges as nodes."""
    return Incidence(power_law(num_edges // 5, num_edges, 0.6, ordered=ordered), num_edges // 5)


def propagations(incidence: Incidence, edges: Tensor, u: Tensor, given: Tensor) -> dict[str, Any]:
    """Forward and backward of edge and of node propagation, to be timed."""
    nodes, w = torch.randn(incidence.num_nodes, WIDTH), torch.randn(incidence.num_edges)
    return {
        "edges": step(propagate_edges, edges, u, incidence, given),
        "nodes": step(propagate_nodes, nodes, w, incidence, torch.randn_like(nodes)),
    }


def measure_epochs() -> Measured:
    measured: Measured = {}
    for name in ("cora", "pubmed"):
        graph, labels, called = citation(name)
        times = take_turns(epochs(graph, labels), repetitions=11, warm=1, burst=5)
        gcn, tuned = times["PyG GCN, dense features"], times["PyG GCN, our sparse product and dropout"]
        rows = {
            model: {"ms": 1e3 * t, "x GCN": t / gcn, "x GCN with our features and dropout": t / tuned}
            for model, t in times.items()
        }
        show(f"One training epoch on {called}, 32 channels", rows)
        measured[called] = rows
    return measured


def measure_operator() -> Measured:
    """Edge and node propagation, forward and backward, in copies of the E x 32 tensor; and the explicit line graph."""
    graphs = {
        "pubmed": citation("pubmed")[0].incidence,
        "10^5 edges, power law": power_law_incidence(10**5),
        "10^6 edges, power law": power_law_incidence(10**6),
        "10^6 edges, shuffled": power_law_incidence(10**6, ordered=False),
    }
    rows: Measured = {}
    for name, incidence in graphs.items():
        edges, u, given = edge_inputs(incidence)
        buffer = torch.empty_like(edges)
        copy = {"copy": lambda buffer=buffer, edges=edges: buffer.copy_(edges)}
        work = copy | propagations(incidence, edges, u, given)
        small = incidence.num_edges < 10**6
        times = take_turns(work, repetitions=31 if small else 11)
        rows[name] = {
            "ms": 1e3 * times["edges"],
            "in copies of the edges": times["edges"] / times["copy"],
            "nodes, in copies": times["nodes"] / times["copy"],
        }
        if small:
            line = LineGraph(incidence)
            explicit = {"no gradient of u": line.careful_features_only, "with it": line.careful}
            for called, make in explicit.items():  # one at a time: the second empties the caches
                pair = {"explicit": make(edges, u, given), "ours": work["edges"]}
                times = take_turns(pair, repetitions=11)
                rows[name][f"explicit line graph, {called}: x"] = times["explicit"] / times["ours"]
    show(f"Edge propagation, forward and backward, {WIDTH} channels", rows)
    return rows


def measure_dense() -> Measured:
    """The dense rule, and the line graph written out plainly, on Cora; PyG's LineGraph transform."""
    graph, _, called = citation("cora")
    incidence = graph.incidence
    edges, u, given = edge_inputs(incidence)
    dense, line = dense_rule(incidence), LineGraph(incidence)

    def autograd(rule: Any) -> Any:
        rows, weight = edges.clone().requires_grad_(), u.clone().requires_grad_()
        return lambda: torch.autograd.grad(rule(rows, weight), (rows, weight), given)

    fast = {"censnet": step(propagate_edges, edges, u, incidence, given), "plain": autograd(line.plain)}
    times = take_turns(fast, repetitions=31) | take_turns({"dense": autograd(dense)}, repetitions=3, warm=1)
    edge_index, edge_attr = to_undirected(graph.ends, graph.edges)
    transform = PyGLineGraph()
    build = take_turns(
        {
            "PyG": lambda: transform(Data(edge_index=edge_index, edge_attr=edge_attr, num_nodes=graph.num_nodes)),
            "censnet": lambda: Incidence(graph.ends, graph.num_nodes).csr,
        },
        repetitions=5,
        warm=1,
    )
    rows = {
        "edge propagation": {"ms": 1e3 * times["censnet"], "x censnet": 1.0},
        "explicit line graph, index_add and autograd": {
            "ms": 1e3 * times["plain"],
            "x censnet": times["plain"] / times["censnet"],
        },
        "dense rule": {"ms": 1e3 * times["dense"], "x censnet": times["dense"] / times["censnet"]},
        "our sorted order, once": {"ms": 1e3 * build["censnet"], "x censnet": 1.0},
        "PyG's LineGraph transform, once": {"ms": 1e3 * build["PyG"], "x censnet": build["PyG"] / build["censnet"]},
    }
    show(f"On {called}", rows)
    return rows


def measure_growth() -> Measured:
    """A star against a ring of as many edges, and ten times the edges."""
    shapes = {
        "ring, 10^6 edges": Incidence(ring(10**6), 10**6),
        "star, 10^6 edges": Incidence(star(10**6), 10**6 + 1),
    } | {f"power law, 10^{power} edges": power_law_incidence(10**power) for power in (5, 6, 7)}
    rows: Measured = {}
    for name, incidence in shapes.items():
        edges, u, given = edge_inputs(incidence)
        repetitions = 31 if incidence.num_edges < 10**6 else 5
        times = take_turns(propagations(incidence, edges, u, given), repetitions=repetitions, warm=2)
        rows[name] = {"edges, ms": 1e3 * times["edges"], "nodes, ms": 1e3 * times["nodes"]}
    for small, large in (
        ("ring, 10^6", "star, 10^6"),
        ("power law, 10^5", "power law, 10^6"),
        ("power law, 10^6", "power law, 10^7"),
    ):
        before, after = rows[f"{small} edges"], rows[f"{large} edges"]
        after["edges, x the row before"] = after["edges, ms"] / before["edges, ms"]
        after["nodes, x the row before"] = after["nodes, ms"] / before["nodes, ms"]
    first = rows["ring, 10^6 edges"]
    first["edges, x the row before"] = first["nodes, x the row before"] = ""
    show("Growth: forward and backward", rows)
    return rows


def measure_direction() -> Measured:
    """Directed layers against undirected ones, on one thread."""
    rows = measure_directed()
    show(f"Directed layers, forward and backward, {WIDTH} channels, one thread", rows)
    return rows


def main() -> None:
    torch.set_num_threads(2)
    console.print(f"memory is kept between steps, for all methods: {keep_heap()}")
    measured = {
        "epochs": measure_epochs(),
        "operator": measure_operator(),
        "dense": measure_dense(),
        "growth": measure_growth(),
        "directed": measure_direction(),
    }
    path = write_record("cpu", measured, f"{platform.machine()} CPU", "make bench")
    console.print(f"record: {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
