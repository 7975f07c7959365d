"""Sums over the past against an undirected edge propagation, and events for each second of a stream.

`python -m benchmarks.causal` on one CPU thread, record: benchmarks/results/causal.json;
`python -m benchmarks.causal --device cuda` the sums on a GPU, record: benchmarks/results/causal_gpu.json.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.records import take_turns, write_record
from censnet.cli.options import keep_heap
from censnet.nn import CausalEncoder, CausalStream
from censnet.ops import Incidence, propagate_edges
from censnet.ops.causal import decayed_sums, prefix_sums
from censnet.ops.history import History

WIDTH, HIDDEN, EVENTS = 32, 64, 20_000
MOST_OF_STAR = 2.0  # times the same edges spread over many nodes
MOST_OF_PEER, MOST_OF_GROWTH = 4.0, 12.0  # times the propagation of 10 M edges on a GPU, and for ten times the edges
LEAST_EVENTS = 2_000  # for each second


def history(num_edges: int, star: bool, device: str = "cpu") -> History:
    """Edges between a tenth as many nodes at random times; of a star, all leave one node."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(num_edges // 10, (2, num_edges), generator=generator)
    ends[0] *= not star
    times = torch.rand(num_edges, generator=generator, dtype=torch.float64) * num_edges
    return History(Incidence(ends.to(device), num_edges // 10), times.to(device))


def step(past: History, rates: int = 0) -> Callable[[], object]:
    """Forward and backward of the sums at both ends of each edge, over the edges that leave them; they may decay."""
    reads, device = past.reads("out"), past.times.device
    messages = torch.randn(len(past.times), WIDTH, device=device, requires_grad=True)
    given = torch.randn(len(reads), WIDTH, device=device)
    if rates:
        rate = torch.full((rates,), 1e-6, device=device, requires_grad=True)
        return lambda: torch.autograd.grad(decayed_sums(messages, rate, reads), (messages, rate), given)
    return lambda: torch.autograd.grad(prefix_sums(messages, reads), messages, given)


def peer(incidence: Incidence) -> Callable[[], object]:
    """Forward and backward of an undirected edge propagation."""
    device = incidence.ends.device
    edges = torch.randn(incidence.num_edges, WIDTH, device=device, requires_grad=True)
    weight, given = (
        torch.rand(incidence.num_nodes, device=device),
        torch.randn(incidence.num_edges, WIDTH, device=device),
    )
    return lambda: torch.autograd.grad(propagate_edges(edges, weight, incidence), edges, given)


def measure_scan(sizes: tuple[int, ...] = (10**5, 10**6)) -> dict[str, dict[str, Any]]:
    """Seconds: of the scan on spread edges and on a star, of the propagation, and of first passes, which sort."""
    rows = dict[str, dict[str, Any]]()
    for num_edges in sizes:
        start = time.perf_counter()
        spread = history(num_edges, star=False)
        work = {"spread": step(spread), "star": step(history(num_edges, star=True)), "peer": peer(spread.incidence)}
        for one in work.values():
            one()
        prepared = time.perf_counter() - start
        times = take_turns(work, repetitions=5 if num_edges < 10**6 else 3, warm=0)
        rows[f"{num_edges:.0e} edges"] = {
            "scan, ms": 1e3 * times["spread"],
            "star, ms": 1e3 * times["star"],
            "propagate_edges, ms": 1e3 * times["peer"],
            "x propagate_edges": times["spread"] / times["peer"],
            "star x spread": times["star"] / times["spread"],
            "sorted once and first passes, s": prepared,
        }
    return rows


def measure_gpu(sizes: tuple[int, ...] = (10**5, 10**6, 10**7)) -> dict[str, dict[str, float]]:
    """Milliseconds of each step, and the seconds before it: sorting, and compiling where a kernel is new."""
    from triton.testing import do_bench

    rows = dict[str, dict[str, float]]()
    for num_edges in sizes:
        spread, row = history(num_edges, False, "cuda"), dict[str, float]()
        star = history(num_edges, True, "cuda")
        work: dict[str, Callable[[], Callable[[], object]]] = {
            "propagate_edges": partial(peer, spread.incidence),
            "scan": partial(step, spread),
            "star": partial(step, star),
            "scan with decay": partial(step, spread, rates=2),
            "star with decay": partial(step, star, rates=2),
        }
        for name, make in work.items():
            start = time.perf_counter()
            one = make()
            one()
            torch.cuda.synchronize()
            row[f"{name}: sorted once and first pass, s"] = time.perf_counter() - start
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            row[f"{name}, ms"] = float(do_bench(one, warmup=100, rep=400, return_mode="median"))
            row[f"{name}: GiB above inputs"] = (torch.cuda.max_memory_allocated() - before) / 2**30
        row["x propagate_edges"] = row["scan, ms"] / row["propagate_edges, ms"]
        row["star x spread"] = row["star, ms"] / row["scan, ms"]
        rows[f"{num_edges:.0e} edges"] = row
        torch.cuda.empty_cache()
    return rows


def report_gpu() -> None:
    """Measure on a GPU, print, and write the record."""
    rows = measure_gpu()
    for name, row in rows.items():
        print(name, ", ".join(f"{key} {value:,.4g}" for key, value in row.items()))
    each = [row["scan, ms"] for row in rows.values()]
    growth = max(more / less for less, more in itertools.pairwise(each))
    last = rows["1e+07 edges"]["x propagate_edges"]
    print(f"10 M edges take {last:.2f} times propagate_edges; must be at most {MOST_OF_PEER}")
    print(f"ten times the edges take at most {growth:.2f} times as long; must be at most {MOST_OF_GROWTH}")
    print(f"a star of 1 M takes {rows['1e+06 edges']['star x spread']:.2f} times spread edges; must be at most 2")
    write_record(
        "causal_gpu", {"scan": rows}, torch.cuda.get_device_name(), "python -m benchmarks.causal --device cuda"
    )


def measure_stream() -> dict[str, Any]:
    """Events for each second of processor time, latencies, and bytes of state for each node and layer."""
    torch.manual_seed(0)
    encoder = CausalEncoder(4, 10, 2, HIDDEN, "CC", windows=(3600.0, 86400.0, 604800.0))
    stream, draw = CausalStream(encoder), np.random.default_rng(0)
    ends, now = draw.integers(EVENTS // 5, size=(EVENTS, 2)), np.cumsum(draw.exponential(60, EVENTS))
    features, nodes = (draw.normal(size=(EVENTS, width)).astype(np.float32) for width in (8, 4))
    seconds, begin = np.empty(EVENTS), time.process_time()
    for number, (source, target) in enumerate(ends.tolist()):
        start = time.perf_counter()
        stream.step(source, target, float(now[number]), nodes[source], nodes[target], features[number])
        stream.set_label(number, (1.0, 0.0))
        seconds[number] = time.perf_counter() - start
    state = stream.state
    return {
        "events/s of processor time": EVENTS / (time.process_time() - begin),
        "median latency, ms": 1e3 * float(np.median(seconds)),
        "p99 latency, ms": 1e3 * float(np.quantile(seconds, 0.99)),
        "bytes of a node and layer": (state.sums.rows[0].nbytes + state.clock.rows[0].nbytes) / len(encoder.layers),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    if parser.parse_args().device == "cuda":
        report_gpu()
        return
    keep_heap()
    torch.set_num_threads(1)
    rows, stream = measure_scan(), measure_stream()
    for name, row in {**rows, "stream": stream}.items():
        print(name, ", ".join(f"{key} {value:,.4g}" for key, value in row.items()))
    worst = max(row["star x spread"] for row in rows.values())
    print(f"a star costs at most {worst:.2f} times spread edges; must be at most {MOST_OF_STAR}")
    print(f"{stream['events/s of processor time']:,.0f} events/s; must be at least {LEAST_EVENTS:,}")
    write_record(
        "causal", {"scan": rows, "stream": {"two layers of 64": stream}}, f"{platform.machine()} CPU",
        "python -m benchmarks.causal",
    )  # fmt: skip


if __name__ == "__main__":
    main()
