"""A stream that is killed: its answers are those of the batch pass for every prefix of random histories.

`python -m benchmarks.stream_kills [--histories 200] [--kills 100]`; record: benchmarks/results/stream_kills.json.

Each history has ties, loops, parallel edges, unknown values, labels that come with their event, later or never. A
process of `censnet stream --state` is fed with it, gets SIGKILL at a random moment, is started again and fed again:
from the first line, or from where its state says that it stands. Every answer to an event has to be the same, whenever
it comes, and that of `predict` on the table of the events so far.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]

from benchmarks.records import write_record
from censnet import load_run, train
from censnet.cli.stream import feed_lines
from censnet.runs.run import Run
from censnet.runs.stream_directory import RECORD, lock_state

FAST = {"data.time": "at", "training.epochs": 2, "model.hidden": 16}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"data.label_delay": "3h"},
    {"model.decay_rates": 2, "data.label_delay": "1h"},
    {"model.layers": "C", "model.norm": None},
]
SAVE_EVERY = 0.0, 0.02, 30.0  # seconds
TOLERANCE = 1e-5
PROBABILITY = "back_p_yes"


def history(seed: int, events: int) -> pd.DataFrame:
    """Payments with ties, loops and parallel edges, in the order of time; some values and labels are not known."""
    draw = np.random.default_rng(seed)
    nodes = 2 + seed % 7
    frame = pd.DataFrame(draw.integers(nodes, size=(events, 2)), columns=["source", "target"])
    hours = np.sort(draw.integers(0, max(2, events // 2), events))
    frame["at"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(hours, unit="h")
    frame["eur"] = np.where(draw.random(events) < 0.1, np.nan, draw.gamma(2, 30, events).round(2))
    frame["kind"] = draw.choice(["a", "b", "c"], events)
    frame["back"] = draw.choice(["yes", "no"], events)
    frame.loc[draw.random(events) < 0.2, "back"] = None
    return frame


def training_table() -> pd.DataFrame:
    """A longer history by the same rules."""
    parts = [history(seed, 60) for seed in range(5)]
    for number, part in enumerate(parts):
        part["source"] += 10 * number
    return pd.concat(parts).sort_values("at", kind="stable", ignore_index=True)


def make_lines(frame: pd.DataFrame, seed: int, delay: float) -> list[bytes]:
    """Events with numbers, with their labels or, where these are known later anyway, with these in their own lines."""
    rng, lines, waiting = random.Random(seed), list[dict[str, Any]](), list[tuple[float, dict[str, Any]]]()
    rows = json.loads(frame.to_json(orient="records", date_format="iso"))
    for number, row in enumerate(rows, 1):
        now = frame["at"].iloc[number - 1].timestamp()
        while waiting and waiting[0][0] <= now - 0.5 * delay:  # before its time has come
            lines.append(waiting.pop(0)[1])
        late = row["back"] is not None and rng.random() < 0.5 and delay > 0
        own = {name: value for name, value in row.items() if not (name == "back" and (late or value is None))}
        lines.append({"event": number, **own})
        if late:
            waiting.append((now, {"label_of": number, "back": row["back"]}))
        elif row["back"] is not None and delay == 0 and rng.random() < 0.5:
            lines[-1].pop("back")
            lines.append({"label_of": number, "back": row["back"]})
    return [json.dumps(line).encode() + b"\n" for line in lines]


def batch_answers(run: Run, frame: pd.DataFrame) -> list[list[float]]:
    """For every prefix, the probabilities of all its events."""
    counts = range(1, len(frame) + 1)
    return [run.predict(frame[:count], keep="ids")[PROBABILITY].tolist() for count in counts]


COUNTED = ("histories", "events", "prefixes", "kills", "starts", "answers", "answered_again", "half_a_line")


@dataclass
class Count:
    """What became of the histories: how many there are of each of `COUNTED`, and what went wrong."""

    of: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(COUNTED, 0)))
    largest_difference: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        """Add what became of others."""
        self.of.update(other.of)
        self.largest_difference = max(self.largest_difference, other.largest_difference)
        self.failures += other.failures


class Fed:
    """A process that is fed with lines, and the answers that it gave.

    Args:
        start: gives its id and the files to write to and to read from.
    """

    def __init__(self, start: Callable[[], tuple[int, int, int]]) -> None:
        self.process, self.into, self.out = start()

    def feed(self, lines: Sequence[bytes], kill_after: int | None = None, wait: float = 0.0) -> bytes:
        """Write lines, and read until the process ends. -> all it has written

        Args:
            lines: to be written.
            kill_after: so many answers, and then `wait` seconds, until it is killed, if it is.
            wait: see there.
        """
        writer = threading.Thread(target=self._write, args=(lines,))
        writer.start()
        found, killed = bytearray(), kill_after is None
        while True:
            if not killed and found.count(b"\n") >= (kill_after or 0):
                time.sleep(wait)
                os.kill(self.process, signal.SIGKILL)
                killed = True
            part = os.read(self.out, 65536)
            if not part:
                break
            found += part
        os.close(self.out)
        os.waitpid(self.process, 0)
        writer.join()
        return bytes(found)

    def _write(self, lines: Sequence[bytes]) -> None:
        with suppress(BrokenPipeError):
            for line in lines:
                os.write(self.into, line)
        os.close(self.into)


def fork_stream(run: Run, state: Path, save_every: float) -> tuple[int, int, int]:
    """The body of the command in a child of this process."""
    (read, into), (out, write) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(into)
            os.close(out)
            with lock_state(state), os.fdopen(read, "rb") as lines, os.fdopen(write, "wb") as answers:
                feed_lines(run.open_stream(state), lines, answers, save_every)
            code = 0
        finally:
            os._exit(code)
    os.close(read)
    os.close(write)
    return child, into, out


def start_command(run: Path, state: Path, save_every: float) -> tuple[int, int, int]:
    """`censnet stream` in a process of its own."""
    (read, into), (out, write) = os.pipe(), os.pipe()
    command = [sys.executable, "-m", "censnet", "stream", str(run), "--state", str(state)]
    command += ["--save-every", str(save_every)]
    process = subprocess.Popen(command, stdin=read, stdout=write, stderr=subprocess.DEVNULL)
    process.returncode = 0  # it is waited for by its id
    os.close(read)
    os.close(write)
    return process.pid, into, out


def stands_at(state: Path, lines: Sequence[bytes]) -> int:
    """The first line after the last event that the state has."""
    record = state / RECORD
    counted = json.loads(record.read_text())["counted"] if record.exists() else []
    numbers = [json.loads(line).get("event") for line in lines] if counted else []
    return numbers.index(counted[-1][1]) + 1 if numbers else 0


def disturb(
    start: Callable[[], tuple[int, int, int]],
    state: Path,
    lines: Sequence[bytes],
    count: Count,
    kills: int,
    rng: random.Random,
) -> dict[int, dict[str, Any]]:
    """Feed a stream, kill it so many times and feed it again; the answers by number."""
    answers = dict[int, dict[str, Any]]()
    first = 0
    for trial in range(kills + 1):
        few = rng.randint(0, max(0, len(lines) - first - 1))
        found = Fed(start).feed(lines[first:], few if trial < kills else None, rng.choice((0, rng.uniform(0, 0.05))))
        count.of["starts"] += 1
        count.of["kills"] += trial < kills
        whole, _, half = found.rpartition(b"\n")
        count.of["half_a_line"] += bool(half)
        for text in whole.splitlines():
            take_answer(json.loads(text), answers, count)
        known = stands_at(state, lines)
        first = known if rng.random() < 0.5 else 0
    return answers


def take_answer(answer: dict[str, Any], answers: dict[int, dict[str, Any]], count: Count) -> None:
    """Keep an answer, or compare it with the one that the event had before."""
    if "error" in answer:
        count.failures.append(str(answer))
    number = answer.get("event")
    again = answer.pop("again", False)
    count.of["answered_again"] += again
    count.of["answers"] += number is not None
    if number is None or (again and PROBABILITY not in answer):
        return
    if answers.setdefault(number, answer) != answer:
        count.failures.append(f"event {number} got {answers[number]} and {answer}")


def check(run: Run, frame: pd.DataFrame, answers: dict[int, dict[str, Any]], count: Count) -> None:
    """Compare the answers with those of every prefix."""
    for prefix in batch_answers(run, frame):
        count.of["prefixes"] += 1
        for number, expected in enumerate(prefix, 1):
            found = answers.get(number, {}).get(PROBABILITY)
            if found is None:
                count.failures.append(f"event {number} has no answer")
                return
            apart = abs(found - expected)
            count.largest_difference = max(count.largest_difference, apart)
            if apart > TOLERANCE:
                count.failures.append(f"event {number}: {found} is not {expected}")


def train_variants(home: Path, variants: Sequence[dict[str, Any]] = VARIANTS) -> list[Path]:
    """The runs that are streamed."""
    table = training_table()
    for number, settings in enumerate(variants):
        train(table, "edge:back", home / f"run-{number}", settings=FAST | settings)
    return [home / f"run-{number}" for number in range(len(variants))]


def kill_streams(
    runs: Sequence[Path], numbers: Sequence[int], kills: int, home: Path, events: int = 40, forked: bool = False
) -> Count:
    """Stream random histories, kill the process so many times in all, and compare every answer."""
    torch.set_num_threads(1)
    rng, count, state = random.Random(numbers[0]), Count(), home / f"state-{numbers[0]}"
    loaded = [load_run(run) for run in runs]
    for at, number in enumerate(numbers):
        run, path, save = loaded[number % len(runs)], runs[number % len(runs)], SAVE_EVERY[number % len(SAVE_EVERY)]
        frame = history(number, 10 + number % (2 * events - 20))
        lines = make_lines(frame, number, run.config.label_delay)
        left = kills - count.of["kills"]
        own = min(left, -(-left // (len(numbers) - at)) + rng.randint(0, 1))
        start = partial(fork_stream, run, state, save) if forked else partial(start_command, path, state, save)
        fed = own > 0 or forked
        answers = disturb(start, state, lines, count, own, rng) if fed else feed_here(run, lines, count)
        check(run, frame, answers, count)
        count.of["histories"] += 1
        count.of["events"] += len(frame)
        shutil.rmtree(state, ignore_errors=True)
    return count


def feed_here(run: Run, lines: Sequence[bytes], count: Count) -> dict[int, dict[str, Any]]:
    """The answers of a stream in this process, which nobody kills."""
    found, answers = io.BytesIO(), dict[int, dict[str, Any]]()
    feed_lines(run.open_stream(), io.BytesIO(b"".join(lines)), found)
    for text in found.getvalue().splitlines():
        take_answer(json.loads(text), answers, count)
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--histories", type=int, default=200, help="how many")
    parser.add_argument("--kills", type=int, default=100, help="how many, in all")
    parser.add_argument("--seed", type=int, default=0, help="of the histories, and of the moments")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the work")
    parser.add_argument("--forked", action="store_true", help="kill children of this process, which begin at once")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("censnet").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        runs, parts = train_variants(home), range(asked.workers)
        shares = [
            (range(asked.seed + part, asked.seed + asked.histories, asked.workers), asked.kills // asked.workers)
            for part in parts
        ]
        with parallel_config("loky"):
            counts = Parallel(asked.workers)(
                delayed(kill_streams)(runs, numbers, kills, home, forked=asked.forked) for numbers, kills in shares
            )
    count = counts[0]
    for other in counts[1:]:
        count.add(other)
    measured = {**count.of, "largest_difference": count.largest_difference, "failures": len(count.failures)}
    for name, value in measured.items():
        print(name.replace("_", " "), value if name == "failures" else f"{value:,.3g}")
    for text in count.failures[:20]:
        print(text)
    if not asked.no_record:
        command = f"python -m benchmarks.stream_kills --histories {asked.histories} --kills {asked.kills}"
        command += " --forked" if asked.forked else ""
        write_record("stream_kills", {"stream": measured}, f"{platform.machine()} CPU", command)
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())
