"""`python -m benchmarks.serve`: many clients at once ask `censnet serve` for molecules and for edges of small graphs.

Each client sends a request, waits for its answer and sends the next one, until the time is over. Nothing but answers
and refusals with `Retry-After` may come back, and the memory of the server and its processes must not grow. The server
runs on the cores that are given, the clients on all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pandas as pd
import psutil
from rich.console import Console

import censnet
from benchmarks.explanations import payments
from benchmarks.records import write_record

console = Console(width=120)
SHORT = {"training.epochs": 2}
SMILES, ROWS = 5, 40  # of one request, at most
WARM = 5.0  # seconds until the first measurement of memory
HEADERS = {"content-type": "application/json"}


@dataclass
class Seen:
    """What came back: the seconds of each answer, and how many requests ended in which state."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    states: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def make_runs(folder: Path) -> tuple[list[str], pd.DataFrame]:
    """Train a run on molecules and one on payments for a moment. -> SMILES, and payments without their labels"""
    from censnet.data import load_data

    censnet.train("lipophilicity", "graph:exp", folder / "molecules", settings=SHORT)
    edges, _ = payments(0)
    censnet.train(edges, "edge:fraud", folder / "payments", settings=SHORT)
    texts = load_data("lipophilicity").tables.frames()["graphs"]["smiles"].tolist()
    return texts, edges.drop(columns=["fraud"])


@contextmanager
def served(folder: Path, cores: list[int]) -> Iterator[tuple[str, psutil.Process]]:
    """The address and the process of a server of both runs, on some cores."""
    command = [sys.executable, "-m", "censnet", "serve", str(folder / "molecules"), str(folder / "payments")]
    command += ["--port", "0", "--workers", str(len(cores))]
    if hasattr(os, "sched_setaffinity"):
        code = f"import os, sys; os.sched_setaffinity(0, {cores!r}); os.execv(sys.argv[1], sys.argv[1:])"
        command = [sys.executable, "-c", code, *command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [next(process.stdout) for _ in range(3)]
        yield lines[-1].split()[0], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def memory(process: psutil.Process) -> int:
    """Bytes of a process and all that it started; pages that several share are counted for each."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_info().rss
        except psutil.Error:
            continue
    return total


def draw_request(draw: random.Random, texts: list[str], edges: pd.DataFrame) -> tuple[str, bytes]:
    """A request for molecules or for payments, one as often as the other."""
    if draw.random() < 0.5:
        body: dict[str, Any] = {"run": "molecules", "smiles": draw.sample(texts, draw.randint(1, SMILES))}
        return "molecules", json.dumps(body).encode()
    start, count = draw.randrange(len(edges) - ROWS), draw.randint(1, ROWS)
    rows = edges.iloc[start : start + count].to_dict("records")
    return "payments", json.dumps({"run": "payments", "edges": rows}).encode()


async def ask(
    client: httpx2.AsyncClient, number: int, end: float, requests: list[tuple[str, bytes]], seen: Seen
) -> None:
    """One client, until the time is over."""
    draw = random.Random(number)
    while time.monotonic() < end:
        kind, body = draw.choice(requests)
        begin = time.perf_counter()
        try:
            answer = await client.post("/predict", content=body, headers=HEADERS)
        except httpx2.HTTPError as error:
            seen.states[f"{kind} {type(error).__name__}"] += 1
            continue
        seen.states[f"{kind} {answer.status_code}"] += 1
        if answer.status_code == 200:
            seen.seconds.setdefault(kind, []).append(time.perf_counter() - begin)
        elif answer.status_code == 503 and "retry-after" in answer.headers:
            await asyncio.sleep(float(answer.headers["retry-after"]) * draw.random())
        else:
            seen.wrong.append(answer.text[:200])


async def load(address: str, process: psutil.Process, clients: int, seconds: float, requests: Any) -> dict[str, Any]:
    """Let clients ask for some seconds. -> what they saw, and the memory of the server over time"""
    seen, sizes, begin = Seen(), list[int](), time.monotonic()
    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx2.AsyncClient(base_url=address, limits=limits, timeout=120) as client:
        tasks = [asyncio.create_task(ask(client, n, begin + seconds, requests, seen)) for n in range(clients)]
        while time.monotonic() < begin + seconds:
            await asyncio.sleep(1)
            if time.monotonic() > begin + min(WARM, seconds / 4):
                sizes.append(memory(process))
        await asyncio.gather(*tasks)
        took = time.monotonic() - begin
        metrics = (await client.get("/metrics")).text
    return (
        summarize(seen, sizes, took)
        | {"restarts": _metric(metrics, "censnet_worker_restarts_total")}
        | {
            "requests in one pass": _metric(metrics, "censnet_batched_requests_total")
            / _metric(metrics, "censnet_batches_total")
        }
    )


def summarize(seen: Seen, sizes: list[int], took: float) -> dict[str, Any]:
    """Percentiles in milliseconds, requests a second, states, and memory in MB."""
    rows: dict[str, Any] = {}
    for kind, seconds in sorted(seen.seconds.items()):
        cuts = statistics.quantiles(seconds, n=100)
        found = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "longest": max(seconds)}
        rows[kind] = {"answers": len(seconds), **{f"{name} ms": round(value * 1e3, 1) for name, value in found.items()}}
    quarter = max(1, len(sizes) // 4)
    first, last = (statistics.mean(part) / 1e6 for part in (sizes[:quarter], sizes[-quarter:]))
    return {
        "answers a second": round(sum(len(each) for each in seen.seconds.values()) / took, 1),
        "answers": rows,
        "states": dict(sorted(seen.states.items())),
        "neither answer nor stated refusal": len(seen.wrong) + sum(
            count for state, count in seen.states.items() if not state.split()[1].isdecimal()
        ),
        "memory MB": {"first quarter": round(first), "last quarter": round(last), "growth": round(last / first - 1, 4),
                      "every second": [round(size / 1e6) for size in sizes]},
    }  # fmt: skip


def _metric(text: str, name: str) -> float:
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cores", default="0,1", help="of the server")
    parser.add_argument("--name", default="serve", help="of the record")
    options = parser.parse_args()
    cores = [int(core) for core in options.cores.split(",")]
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        texts, edges = make_runs(Path(name))
        requests = [draw_request(draw, texts, edges) for _ in range(2000)]
        with served(Path(name), cores) as (address, process):
            found = asyncio.run(load(address, process, options.clients, options.seconds, requests))
    console.print(found)
    setup = {"clients": options.clients, "seconds": options.seconds, "cores of the server": len(cores),
             "cores of the machine": os.cpu_count(), "load before": round(os.getloadavg()[0], 1)}  # fmt: skip
    path = write_record(
        options.name,
        setup | found,
        f"{psutil.cpu_count()} cores",
        " ".join(["python -m benchmarks.serve", *sys.argv[1:]]),
    )
    console.print(f"written to {path.name}")


if __name__ == "__main__":
    main()
