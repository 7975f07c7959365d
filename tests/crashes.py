"""Trainings that stop at a given step, and processes that end at a given write."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
import torch

from censnet.training.trainer import Trainer


class CrashError(Exception):
    """Out of memory, a full disk, a bug."""


class KillError(BaseException):
    """The end of the process, as far as it can be simulated within one."""


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int, how: str) -> None:
    """Raise `CrashError`, or interrupt, at the given step, counted over everything that is trained."""
    taken, whole_step = 0, Trainer._step

    def patched(self: Trainer, chosen: torch.Tensor) -> torch.Tensor:
        nonlocal taken
        taken += 1
        if taken == step:
            if how == "exception":
                raise CrashError
            os.kill(os.getpid(), signal.SIGINT)
        return whole_step(self, chosen)

    monkeypatch.setattr(Trainer, "_step", patched)


def kill_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Change nothing on the disk after so many renamings, removals and new files."""
    done = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            if done >= count:
                raise KillError
            done += 1
            return function(*args, **kwargs)

        return call

    for name in ("replace", "unlink", "rmdir", "mkdir", "fsync"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
