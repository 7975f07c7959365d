"""One function over a long list, in chunks, in as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from rich.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNK = 256  # items handed to a process at once: large against what handing over costs, small against the whole
SMALL = 2_000  # fewer items than this are done before a second process has started


def spread(
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

    >>> spread(sum, list(range(1000)), processes=1)
    [32640, 98176, 163712, 204972]
    """
    if processes is not None and processes < 1:
        raise ValueError(f"processes is {processes}, expected at least 1, or None for one for each core")
    chunks = [items[first : first + CHUNK] for first in range(0, len(items), CHUNK)]
    if processes is None:
        processes = 1 if len(items) < SMALL else _num_cores()
    processes = min(processes, len(chunks))
    if processes <= 1:
        return list(_watched(map(work, chunks), len(chunks), progress))
    # A fork starts in milliseconds and needs no `if __name__ == "__main__"` in the user's script; the children compute
    # with numpy alone. Elsewhere than on Linux it is not safe, and the platform's own way is taken.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return list(_watched(pool.map(work, chunks), len(chunks), progress))


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))  # what this process may use, which may be less than what there is
    return os.cpu_count() or 1


def _watched(results: Iterable[Result], total: int, progress: str | None) -> Iterable[Result]:
    return results if progress is None else track(results, description=progress, total=total)
