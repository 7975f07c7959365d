"""Events for each second, latencies and memory of a stream, on one CPU thread: the network alone, and the command.

`python -m benchmarks.stream [--events 1000000]`; record: benchmarks/results/stream.json. The latencies of the command
are from a line that is written to it to the answer that is read from it, one event after the other. On a machine that
others use, processor time says more than the clock.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from benchmarks.records import write_record
from censnet import train
from censnet.nn import CausalEncoder, CausalStream

HIDDEN, LAYERS = 64, "CC"
WINDOWS = (3600.0, 86400.0, 604800.0)
GAP = 60.0  # seconds between two events, in the mean
EVENTS_OF_A_NODE = 10
LEAST_EVENTS, MOST_BYTES, MOST_LATENCY = 2_000, 2_000, 5.0
SETTINGS = {"data.time": "at", "training.epochs": 1, "model.hidden": HIDDEN}


def draw_ends(draw: np.random.Generator, num_nodes: int, events: int) -> np.ndarray:
    """Two nodes for each event, of which some have many more than others. (events, 2)"""
    return (num_nodes * draw.random((events, 2)) ** 2).astype(np.int64)


def latencies(seconds: np.ndarray) -> dict[str, float]:
    """Of all events, in milliseconds."""
    return {
        "median latency, ms": 1e3 * float(np.median(seconds)),
        "p99 latency, ms": 1e3 * float(np.quantile(seconds, 0.99)),
        "p99.9 latency, ms": 1e3 * float(np.quantile(seconds, 0.999)),
        "longest, ms": 1e3 * float(seconds.max()),
    }


def measure_network(events: int, most_seconds: float) -> dict[str, Any]:
    """An event with its label, which later events see: embedded by two layers of width 64, with windows and triads."""
    torch.manual_seed(0)
    encoder = CausalEncoder(4, 10, 2, HIDDEN, LAYERS, windows=WINDOWS, triads=True)
    stream, draw = CausalStream(encoder), np.random.default_rng(0)
    num_nodes = 2 * events // EVENTS_OF_A_NODE
    ends, now = draw_ends(draw, num_nodes, events), np.cumsum(draw.exponential(GAP, events))
    features, nodes = (draw.normal(size=(1000, width)).astype(np.float32) for width in (8, 4))
    seconds, own = np.empty(events), np.empty(events)
    gc.collect()
    gc.freeze()  # as the command does
    before, begun, done = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time(), 0
    stop = time.monotonic() + most_seconds
    for number, (source, target) in enumerate(ends.tolist()):
        start, cpu = time.perf_counter(), time.thread_time()
        row = nodes[source % 1000], nodes[target % 1000], features[number % 1000]
        stream.step(source, target, float(now[number]), *row)
        stream.set_label(number, (1.0, 0.0))
        own[number], seconds[number] = time.thread_time() - cpu, time.perf_counter() - start
        done = number + 1
        if number % 1000 == 0 and time.monotonic() > stop:
            break
    spent, state, layers = time.process_time() - begun, stream.state, len(LAYERS)
    own_time = {f"{name} of processor time": value for name, value in latencies(own[:done]).items()}
    return {
        "events": done,
        "nodes": state.num_nodes,
        "pairs": len(state.pairs) - 1,
        "events/s": done / float(seconds[:done].sum()),
        "events/s of processor time": done / spent,
        **latencies(seconds[:done]),
        **own_time,
        "bytes of a node and layer": (state.sums.rows[0].nbytes + state.clock.rows[0].nbytes) / layers,
        "bytes of a pair and layer": (state.pair_sums.rows[0].nbytes + state.pair_clock.rows[0].nbytes) / layers,
        "memory for all of the state, MB": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000,
    }


def payments(events: int, num_nodes: int, seed: int) -> pd.DataFrame:
    """Events with an amount, a category and a label."""
    draw = np.random.default_rng(seed)
    source, target = draw_ends(draw, num_nodes, events).T
    at = 1.7e9 + np.cumsum(draw.exponential(GAP, events)).round(3)
    rest = {"eur": draw.gamma(2, 30, events).round(2), "kind": draw.choice(list("abcd"), events)}
    return pd.DataFrame(
        {"source": source, "target": target, "at": at, **rest, "back": draw.choice(["yes", "no"], events)}
    )


def lines(events: int, seed: int) -> Iterator[bytes]:
    """Events as JSON, with ISO 8601 timestamps."""
    for start in range(0, events, 100_000):
        frame = payments(min(100_000, events - start), 2 * events // EVENTS_OF_A_NODE, seed + start)
        frame["at"] += start * GAP * 1.05
        stamps = pd.to_datetime(frame["at"], unit="s").dt.strftime("%Y-%m-%dT%H:%M:%S").tolist()
        rows = frame.drop(columns="at").to_dict("records")
        for number, (row, stamp) in enumerate(zip(rows, stamps, strict=True), start + 1):
            yield json.dumps({"event": number, "at": stamp, **row}).encode() + b"\n"


def measure_command(events: int, most_seconds: float, options: list[str]) -> dict[str, Any]:
    """`censnet stream` in a process of its own, one event after the other."""
    with tempfile.TemporaryDirectory() as home:
        table = payments(2000, 300, seed=1)
        table["at"] = pd.to_datetime(table["at"], unit="s").dt.strftime("%Y-%m-%dT%H:%M:%S")
        train(
            table.assign(at=table["at"].str.replace("2023", "2022")), "edge:back", Path(home) / "run", settings=SETTINGS
        )
        command = [
            sys.executable,
            "-m",
            "censnet",
            "stream",
            f"{home}/run",
            *(o.replace("HOME", home) for o in options),
        ]
        seconds, done, errors, stop = np.empty(events), 0, 0, time.monotonic() + most_seconds
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            read = os.fdopen(process.stdout.fileno(), "rb", closefd=False)
            for number, line in enumerate(lines(events, seed=2)):
                start = time.perf_counter()
                process.stdin.write(line)
                answer = read.readline()
                seconds[number] = time.perf_counter() - start
                errors += b'"error"' in answer
                done = number + 1
                if number % 1000 == 0 and time.monotonic() > stop:
                    break
            process.stdin.close()
            process.wait()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = seconds[1:done]  # the first waits until the process has begun
    return {
        "events": done,
        "errors": errors,
        "events/s": len(seconds) / float(seconds.sum()),
        "events/s of processor time, its start included": done / (used.ru_utime + used.ru_stime),
        **latencies(seconds),
        "memory of the process, MB": used.ru_maxrss / 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="how many")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop each part after so many")
    parser.add_argument("--only", choices=["network", "command", "state"], help="one part alone")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    parser.add_argument("--name", default="stream", help="of the record")
    asked = parser.parse_args()
    logging.getLogger("censnet").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    found = dict[str, dict[str, Any]]()
    with threadpool_limits(1):
        if asked.only in (None, "network"):
            found["two layers of 64"] = measure_network(asked.events, asked.seconds)
        if asked.only in (None, "command"):
            found["censnet stream"] = measure_command(asked.events, asked.seconds, [])
        if asked.only in (None, "state"):
            few = asked.events // 10
            found["censnet stream --state"] = measure_command(few, asked.seconds, ["--state", "HOME/state"])
    for name, row in found.items():
        print(name, ", ".join(f"{key} {value:,.4g}" for key, value in row.items()))
    if "two layers of 64" in found:
        row = found["two layers of 64"]
        print(f"{row['events/s']:,.0f} events/s, must be at least {LEAST_EVENTS:,}; "
              f"{row['bytes of a node and layer']:,.0f} bytes of a node and layer, at most {MOST_BYTES:,}; "
              f"p99 {row['p99 latency, ms']:.2f} ms, below {MOST_LATENCY:g}")  # fmt: skip
    if not asked.no_record:
        command = f"python -m benchmarks.stream --events {asked.events}"
        command += "" if asked.only is None else f" --only {asked.only} --name {asked.name}"
        write_record(asked.name, found, f"{platform.machine()} CPU", command)


if __name__ == "__main__":
    main()
