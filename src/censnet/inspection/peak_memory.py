"""Peak memory: of the tensors that some work makes, and of this process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class PeakMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most bytes that tensors made inside took at once.

    Example:
        >>> with PeakMemory() as memory:
        ...     kept = torch.ones(1000) + torch.ones(1000)
        >>> memory.peak
        12000
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, so that torch does not import its compiler, of seconds and 100 MB, to leave this class out."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if _is_strided(leaf)}
        out = func(*args, **(kwargs or {}))
        made = [leaf.untyped_storage() for leaf in tree_leaves(out) if _is_strided(leaf)]
        for storage in made:
            if storage._cdata not in given:
                self._live[storage._cdata] = StorageWeakRef(storage), storage.nbytes()  # type: ignore[no-untyped-call]
        if made:
            gone = [key for key, (storage, _) in self._live.items() if storage.expired()]  # type: ignore[no-untyped-call]
            for key in gone:
                del self._live[key]
            self.peak = max(self.peak, sum(size for _, size in self._live.values()))
        return out


def _is_strided(leaf: object) -> bool:
    return isinstance(leaf, Tensor) and leaf.layout == torch.strided


def peak_memory() -> int:
    """The peak memory of this process in bytes, on Linux; elsewhere what it holds now."""
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    return int(psutil.Process().memory_info().rss) if found is None else int(found[1]) * 1024
