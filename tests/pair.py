"""Two processes that train together, each of which runs the same Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

# What torchrun does, but for importing everything twice
START = """
import os, signal, socket, sys
sys.path.insert(0, {tests!r})
import torch
from samples import payments, quick, shapes
from censnet.errors import CensNetError
from censnet.pipeline import train

torch.set_num_threads(1)
with socket.socket() as free:
    free.bind(("localhost", 0))
    place = dict(MASTER_ADDR="localhost", MASTER_PORT=str(free.getsockname()[1]), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
other = os.fork()
rank = 1 if other == 0 else 0
os.environ.update(place, RANK=str(rank), LOCAL_RANK=str(rank), ACCELERATE_USE_CPU="true")
out, said = sys.argv[1], open(sys.argv[1] + f"/said-{{rank}}", "w", buffering=1)

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

code = 0
try:
{body}
except BaseException:
    import traceback
    traceback.print_exc()
    code = 1
sys.stderr.flush()
if other:
    code = max(code, abs(os.waitpid(other, 0)[1]))
os._exit(code)
"""


class Pair(NamedTuple):
    """What both processes said, in lines, and how they ended."""

    first: list[str]
    second: list[str]
    code: int
    stderr: str


def run_pair(folder: Path, body: str, seconds: float = 120) -> Pair:
    """Run statements in two processes, which know their `rank` and the folder `out`, and may `say` something."""
    indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
    script = folder / "script.py"
    script.write_text(START.format(tests=str(Path(__file__).parent), body=indented))
    try:
        done = subprocess.run(
            [sys.executable, str(script), str(folder)], capture_output=True, text=True, timeout=seconds
        )
    except OSError as error:
        pytest.skip(f"two processes cannot be started here: {error}")
    said = [(folder / f"said-{rank}").read_text().splitlines() for rank in range(2)]
    return Pair(said[0], said[1], done.returncode, done.stderr[-3000:])
