"""Two processes that train together, each of which runs the same Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

# What torchrun does, but for importing everything in each process: one that has imported it is copied
START = """
import os, signal, socket, sys, traceback
sys.path.insert(0, {tests!r})
import torch
from samples import payments, quick, shapes
from censnet.errors import CensNetError
from censnet.pipeline import train

torch.set_num_threads(1)
out, codes = sys.argv[1], []


def act(body, rank, said):
    def say(*words):
        print(*words, file=said)

    def say_error(work, *arguments, **options):
        try:
            work(*arguments, **options)
        except CensNetError as error:
            say(type(error).__name__, error)
        else:
            say("no error")

    def say_weights(run):
        say([float(tensor.double().sum()) for tensor in run.models[0].state_dict().values()])

    exec(body, globals() | locals())


for number, body in enumerate({bodies!r}):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        place = dict(MASTER_ADDR="localhost", MASTER_PORT=str(free.getsockname()[1]), WORLD_SIZE="2")
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            os.environ.update(place, RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2")
            os.environ["ACCELERATE_USE_CPU"] = "true"
            code = 0
            try:
                with open(out + f"/said-{{number}}-{{rank}}", "w", buffering=1) as said:
                    act(body, rank, said)
            except BaseException:
                traceback.print_exc()
                code = 1
            sys.stderr.flush()
            os._exit(code)
        children.append(child)
    codes += [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(*codes)
"""


class Pair(NamedTuple):
    """What both processes said, in lines, how they ended, and what is on stderr."""

    first: list[str]
    second: list[str]
    codes: list[int]
    stderr: str


def run_pairs(folder: Path, *bodies: str, seconds: float = 300) -> list[Pair]:
    """Run statements in two processes, which know their `rank` and the folder `out`, and may `say` something.

    Args:
        folder: a folder.
        bodies: the statements; two new processes run each, when those before have ended.
        seconds: for all.
    """
    script = folder / "script.py"
    script.write_text(START.format(tests=str(Path(__file__).parent), bodies=bodies))
    try:
        done = subprocess.run(
            [sys.executable, str(script), str(folder)], capture_output=True, text=True, timeout=seconds
        )
    except OSError as error:
        pytest.skip(f"two processes cannot be started here: {error}")
    assert done.returncode == 0, done.stderr[-3000:]
    codes = [int(code) for code in done.stdout.split()]
    found = []
    for number in range(len(bodies)):
        said = [(folder / f"said-{number}-{rank}").read_text().splitlines() for rank in range(2)]
        found.append(Pair(said[0], said[1], codes[2 * number : 2 * number + 2], done.stderr[-3000:]))
    return found
