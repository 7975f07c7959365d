"""One function over a long list, in chunks, in as many processes as there are cores."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from rich.progress import track

from censnet.console import Console
from censnet.errors import ArgumentError, DataError
from censnet.isolated import safe_path

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNK = 256  # items handed to a process at once: large against what handing over costs
EACH = 8  # chunks for each process, at least, so that all end at nearly the same time
SMALL = 2_000  # fewer items than this are done before a second process has started
# A fork starts in milliseconds and needs no `if __name__ == "__main__"` in the user's script; the children compute with
# numpy alone. Elsewhere than on Linux it is not safe, and the platform's own way is taken.
START = "fork" if sys.platform == "linux" else None

logger = logging.getLogger(__name__)


def parallel_map(
    work: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    processes: int | None = None,
    progress: str | None = None,
) -> list[Result]:
    """`work` of each chunk of the items, in order.

    Args:
        work: a function at the top of a module, so that another process can find it.
        items: what it is applied to, a chunk at a time.
        processes: how many; None is one for a short list and one for each core for a long one.
        progress: what to call the progress bar; None shows none.

    >>> parallel_map(sum, list(range(1000)), processes=1)
    [32640, 98176, 163712, 204972]
    """
    if processes is not None and processes < 1:
        raise ArgumentError(f"processes is {processes}, expected at least 1, or None for one for each core")
    if processes is None:
        processes = 1 if len(items) < SMALL else _num_cores()
    size = CHUNK if processes == 1 else min(CHUNK, max(1, len(items) // (EACH * processes)))
    chunks = [items[first : first + size] for first in range(0, len(items), size)]
    processes = min(processes, len(chunks))
    if processes <= 1 or multiprocessing.current_process().daemon:  # a daemon may have no children
        return list(_watched(map(work, chunks), len(chunks), progress))
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)  # a child runs the user's script again, for want of a guard: it is not to start over
    done: list[Result] = []
    with safe_path():
        pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context(START))
        try:
            done.extend(_watched(pool.map(work, chunks), len(chunks), progress))
        except BrokenProcessPool:
            if done or START == "fork":
                raise DataError(
                    "a process that read a part of the rows was ended, for lack of memory perhaps"
                ) from None
            logger.warning(
                "no other process could start, so one does all: put the script under if __name__ == '__main__'"
            )
            return list(_watched(map(work, chunks), len(chunks), progress))
        finally:
            pool.shutdown(cancel_futures=True)
    return done


def _num_cores() -> int:
    """The number of cores that this process may use; one in a child, which is one of several."""
    if multiprocessing.parent_process() is not None:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))  # torchrun: so many share this machine


def _watched(results: Iterable[Result], total: int, progress: str | None) -> Iterable[Result]:
    return (
        results if progress is None else track(results, description=progress, total=total, console=Console(stderr=True))
    )
