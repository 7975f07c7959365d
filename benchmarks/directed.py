"""A directed layer against the undirected one of the same width, forward and backward.

`python -m benchmarks.directed` on one thread of a CPU, whose rows `make bench` has too, and
`python -m benchmarks.directed cuda` on a GPU; records: benchmarks/results/directed.json and directed_gpu.json.
"""

from __future__ import annotations

import platform
import sys
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
MUST_MS = 8.0  # of the edge layer with 10^7 edges and one gate, at most, on an H200


def step(layer: IncidenceLayer, incidence: Incidence) -> Callable[[], object]:
    """Forward and backward of a layer, with the gradients of its inputs and of all parameters."""
    torch.manual_seed(0)
    device = incidence.ends.device
    layer = layer.to(device)
    nodes = torch.randn(incidence.num_nodes, WIDTH, device=device, requires_grad=True)
    edges = torch.randn(incidence.num_edges, WIDTH, device=device, requires_grad=True)
    given = torch.randn_like(nodes if layer.updates == "node" else edges)
    inputs = [nodes, edges, *layer.parameters()]
    return lambda: torch.autograd.grad(layer(nodes, edges, incidence), inputs, given)


def median_seconds(run: Callable[[], object]) -> float:
    """Of a piece of work on a GPU, by its events."""
    import triton.testing

    return 1e-3 * float(triton.testing.do_bench(run, warmup=50, rep=300, return_mode="median"))


def measure_directed(sizes: tuple[int, ...] = (10**5, 10**6), device: str = "cpu") -> dict[str, dict[str, Any]]:
    """Milliseconds and ratios; the undirected peer has a root weight too, `self_weight="learned"`."""
    threads, rows = torch.get_num_threads(), dict[str, dict[str, Any]]()
    torch.set_num_threads(1)
    for num_edges in sizes:
        ends = power_law(num_edges // 5, num_edges, 0.6, ordered=True, device=device)
        flip = torch.rand(num_edges, generator=torch.Generator(device).manual_seed(1), device=device) < 0.5
        incidence = Incidence(torch.where(flip, ends.flip(0), ends), num_edges // 5)
        for heads in (1, 4, WIDTH):
            for name, (directed, undirected) in KINDS.items():
                options: dict[str, Any] = {"gate": "bounded", "heads": heads}
                work = {
                    "directed": step(directed(WIDTH, WIDTH, WIDTH, **options), incidence),
                    "undirected": step(undirected(WIDTH, WIDTH, WIDTH, self_weight="learned", **options), incidence),
                }
                if device == "cpu":
                    times = take_turns(work, repetitions=11 if num_edges < 10**6 else 5, warm=1)
                else:
                    times = {kind: median_seconds(run) for kind, run in work.items()}
                rows[f"{name}, {num_edges:.0e} edges, heads {heads}"] = {
                    "directed, ms": 1e3 * times["directed"],
                    "undirected, ms": 1e3 * times["undirected"],
                    "x undirected": times["directed"] / times["undirected"],
                }
    torch.set_num_threads(threads)
    return rows


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    sizes = (10**5, 10**6) if device == "cpu" else (10**6, 10**7)
    if device == "cpu":
        keep_heap()
        torch.set_num_threads(1)
    rows = measure_directed(sizes, device)
    for name, row in rows.items():
        print(f"{name:36} {row['directed, ms']:8.2f} {row['undirected, ms']:8.2f}  x {row['x undirected']:.2f}")
    worst = max(row["x undirected"] for row in rows.values())
    print(f"at most {worst:.2f} times the undirected layer; must be at most {MUST}")
    if device == "cpu":
        write_record("directed", {"directed": rows}, f"{platform.machine()} CPU", "python -m benchmarks.directed")
        return
    largest = rows["edge layer, 1e+07 edges, heads 1"]["directed, ms"]
    print(f"{largest:.2f} ms for 10^7 edges; must be at most {MUST_MS} on an H200")
    name, command = torch.cuda.get_device_name(), f"python -m benchmarks.directed {device}"
    write_record("directed_gpu", {"directed": rows}, name, command)


if __name__ == "__main__":
    main()
