"""A directed layer against the undirected one of the same width, forward and backward, on one thread of a CPU.

`python -m benchmarks.directed`; record: benchmarks/results/directed.json. `make bench` has the rows too.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.graphs import power_law
from benchmarks.records import take_turns, write_record
from censnet.cli.options import keep_heap
from censnet.nn import DirectedEdgeLayer, DirectedNodeLayer, EdgeLayer, NodeLayer
from censnet.nn.layers import IncidenceLayer
from censnet.ops import Incidence

WIDTH = 32
KINDS: dict[str, tuple[type[IncidenceLayer], type[IncidenceLayer]]] = {
    "edge layer": (DirectedEdgeLayer, EdgeLayer),
    "node layer": (DirectedNodeLayer, NodeLayer),
}
MUST = 2.3  # times the undirected layer, at most


def step(layer: IncidenceLayer, incidence: Incidence) -> Callable[[], object]:
    """Forward and backward of a layer, with the gradients of its inputs and of all parameters."""
    torch.manual_seed(0)
    nodes = torch.randn(incidence.num_nodes, WIDTH, requires_grad=True)
    edges = torch.randn(incidence.num_edges, WIDTH, requires_grad=True)
    given = torch.randn_like(nodes if layer.updates == "node" else edges)
    inputs = [nodes, edges, *layer.parameters()]
    return lambda: torch.autograd.grad(layer(nodes, edges, incidence), inputs, given)


def measure_directed(sizes: tuple[int, ...] = (10**5, 10**6)) -> dict[str, dict[str, Any]]:
    """Milliseconds and ratios; the undirected peer has a root weight too, `self_weight="learned"`."""
    threads, rows = torch.get_num_threads(), dict[str, dict[str, Any]]()
    torch.set_num_threads(1)
    for num_edges in sizes:
        ends = power_law(num_edges // 5, num_edges, 0.6, ordered=True)
        flip = torch.rand(num_edges, generator=torch.Generator().manual_seed(1)) < 0.5
        incidence = Incidence(torch.where(flip, ends.flip(0), ends), num_edges // 5)
        for heads in (1, 4, WIDTH):
            for name, (directed, undirected) in KINDS.items():
                options: dict[str, Any] = {"gate": "bounded", "heads": heads}
                work = {
                    "directed": step(directed(WIDTH, WIDTH, WIDTH, **options), incidence),
                    "undirected": step(undirected(WIDTH, WIDTH, WIDTH, self_weight="learned", **options), incidence),
                }
                times = take_turns(work, repetitions=11 if num_edges < 10**6 else 5, warm=1)
                rows[f"{name}, {num_edges:.0e} edges, heads {heads}"] = {
                    "directed, ms": 1e3 * times["directed"],
                    "undirected, ms": 1e3 * times["undirected"],
                    "x undirected": times["directed"] / times["undirected"],
                }
    torch.set_num_threads(threads)
    return rows


def main() -> None:
    keep_heap()
    rows = measure_directed()
    torch.set_num_threads(1)
    for name, row in rows.items():
        print(f"{name:36} {row['directed, ms']:8.1f} {row['undirected, ms']:8.1f}  x {row['x undirected']:.2f}")
    worst = max(row["x undirected"] for row in rows.values())
    print(f"at most {worst:.2f} times the undirected layer; must be at most {MUST}")
    write_record("directed", {"directed": rows}, f"{platform.machine()} CPU", "python -m benchmarks.directed")


if __name__ == "__main__":
    main()
