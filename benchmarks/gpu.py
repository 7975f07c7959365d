"""The two propagations on one GPU: `python -m benchmarks.gpu`. The record goes to benchmarks/results/gpu.json.

For scale, in the same run: copies of the edge tensor, and the same products by torch's sparse matrices (cuSPARSE).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton.testing
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.graphs import power_law, ring, star
from benchmarks.records import write_record
from censnet.ops import Incidence, propagate_edges, propagate_nodes

WIDTH = 32
GRAPHS: dict[str, Callable[[], tuple[int, Tensor]]] = {
    "10 M edges, by end": lambda: (10**6, power_law(10**6, 10**7, 0.75, ordered=True, device="cuda")),
    "10 M edges, shuffled": lambda: (10**6, power_law(10**6, 10**7, 0.75, ordered=False, device="cuda")),
    "62 M edges, by end": lambda: (2_450_000, power_law(2_450_000, 61_900_000, 0.6, ordered=True, device="cuda")),
    "62 M edges, shuffled": lambda: (2_450_000, power_law(2_450_000, 61_900_000, 0.6, ordered=False, device="cuda")),
    "star of 1 M leaves": lambda: (10**6 + 1, star(10**6, device="cuda")),
    "ring of 1 M edges": lambda: (10**6, ring(10**6, device="cuda")),
    "100 k edges": lambda: (2 * 10**4, power_law(2 * 10**4, 10**5, 0.6, ordered=False, device="cuda")),
    "1 M edges": lambda: (2 * 10**5, power_law(2 * 10**5, 10**6, 0.6, ordered=False, device="cuda")),
}


class _GivenGradient(torch.autograd.Function):
    """A loss that keeps nothing of what it is of, with a given gradient: an output lives no longer than needed."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return out.new_zeros(())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.saved_tensors[0], None


def median_ms(run: Callable[[], object]) -> float:
    return float(triton.testing.do_bench(run, warmup=50, rep=200, return_mode="median"))


def step(propagate: Callable[..., Tensor], rows: Tensor, weight: Tensor, incidence: Incidence, given: Tensor) -> None:
    rows.grad = weight.grad = None
    _GivenGradient.apply(propagate(rows, weight, incidence), given).backward()


def peak_gib(run: Callable[[], object], *inputs: Tensor) -> float:
    """The most memory in use during the run, above what was in use before it: results and gradients are counted."""
    run()
    for tensor in inputs:
        tensor.grad = None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    return (torch.cuda.max_memory_allocated() - before) / 2**30


def by_sparse_matrices(incidence: Incidence, edges: Tensor, weight: Tensor, given: Tensor) -> Callable[[], None]:
    """The edge propagation, forward and backward, as products with T and T^t in CSR."""
    count = incidence.num_edges
    ones = torch.ones(2 * count, device="cuda", dtype=edges.dtype)
    T = torch.sparse_coo_tensor(
        torch.stack([incidence.ends.reshape(-1), torch.arange(count, device="cuda").repeat(2)]),
        ones,
        (incidence.num_nodes, count),
    ).to_sparse_csr()
    Tt = torch.sparse_csr_tensor(
        torch.arange(0, 2 * count + 1, 2, device="cuda"),
        incidence.ends.t().reshape(-1),
        ones,
        (count, incidence.num_nodes),
    )
    scale = incidence.edge_degree.to(edges.dtype).rsqrt().unsqueeze(1)
    u = weight.detach().unsqueeze(1)

    def run() -> None:
        total = T @ (scale * edges.detach())
        scale * (Tt @ (u * total))
        back = T @ (scale * given)
        scale * (Tt @ (u * back))
        (total * back).sum(1)

    return run


def measure(name: str, make: Callable[[], tuple[int, Tensor]], dtype: torch.dtype) -> dict[str, float]:
    num_nodes, ends = make()
    incidence = Incidence(ends, num_nodes)
    edges = torch.randn(incidence.num_edges, WIDTH, device="cuda", dtype=dtype, requires_grad=True)
    nodes = torch.randn(num_nodes, WIDTH, device="cuda", dtype=dtype, requires_grad=True)
    u = torch.randn(num_nodes, device="cuda", dtype=dtype, requires_grad=True)
    w = torch.randn(incidence.num_edges, device="cuda", dtype=dtype, requires_grad=True)
    given = torch.randn_like(edges)
    given_nodes = torch.randn_like(nodes)
    buffer = torch.empty_like(given)

    def edge_step() -> None:
        step(propagate_edges, edges, u, incidence, given)

    def node_step() -> None:
        step(propagate_nodes, nodes, w, incidence, given_nodes)

    measured = {
        "nodes": num_nodes,
        "edges": incidence.num_edges,
        "largest degree": int(incidence.edge_count.max()),
        "two copies of the edges ms": 2 * median_ms(lambda: buffer.copy_(given)),
        "edge propagation ms": median_ms(edge_step),
        "node propagation ms": median_ms(node_step),
        "edge propagation forward ms": median_ms(lambda: propagate_edges(edges.detach(), u.detach(), incidence)),
        "node propagation forward ms": median_ms(lambda: propagate_nodes(nodes.detach(), w.detach(), incidence)),
    }
    measured["edge propagation GiB above inputs"] = peak_gib(edge_step, edges, u)
    measured["node propagation GiB above inputs"] = peak_gib(node_step, nodes, w)
    if dtype == torch.float32 and "by end" in name:
        del buffer
        edges.grad = nodes.grad = None
        torch.cuda.empty_cache()
        measured["edge propagation by cuSPARSE ms"] = median_ms(by_sparse_matrices(incidence, edges, u, given))
    return measured


def main() -> None:
    console = Console(width=150)
    device = torch.cuda.get_device_name()
    results: dict[str, dict[str, float]] = {}
    for name, make in GRAPHS.items():
        for dtype in (torch.float32, torch.bfloat16):
            results[f"{name}, {str(dtype).removeprefix('torch.')}"] = measure(name, make, dtype)
            torch.cuda.empty_cache()
    table = Table(
        "graph",
        "2 copies",
        "edges fwd+bwd",
        "cuSPARSE",
        "GiB",
        "nodes fwd+bwd",
        "GiB",
        title=f"{device}, width {WIDTH}, ms",
    )
    for name, row in results.items():
        table.add_row(
            name,
            f"{row['two copies of the edges ms']:.2f}",
            f"{row['edge propagation ms']:.2f}",
            f"{row['edge propagation by cuSPARSE ms']:.2f}" if "edge propagation by cuSPARSE ms" in row else "",
            f"{row['edge propagation GiB above inputs']:.2f}",
            f"{row['node propagation ms']:.2f}",
            f"{row['node propagation GiB above inputs']:.2f}",
        )
    console.print(table)
    path = write_record("gpu", results, device, "python -m benchmarks.gpu")
    console.print(f"record: {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
