"""Trainings that end early: by Ctrl-C, by a request to terminate, by divergence, or for lack of memory."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch

from censnet.errors import TrainingInterrupted, TrainingStopped


def diverged(what: str, epoch: int, step: int, checkpoint: Path | None) -> TrainingStopped:
    """The error of a training whose loss or weights are not finite.

    >>> diverged("the loss is nan", 3, 1, None)
    TrainingStopped('the loss is nan in epoch 3, step 1: lower training.learning_rate or set training.max_grad_norm=1')
    """
    kept = "" if checkpoint is None else f" (the last good checkpoint is kept in {checkpoint.parent})"
    advice = "lower training.learning_rate or set training.max_grad_norm=1"
    return TrainingStopped(f"{what} in epoch {epoch}, step {step}: {advice}{kept}")


def interrupted_after(epochs: int, steps: int, checkpoint: Path | None) -> TrainingInterrupted:
    """The error of a training that Ctrl-C interrupted: what was done, and how to resume it from its checkpoint.

    >>> interrupted_after(2, 0, Path("runs/a/checkpoint/member-0.safetensors"))
    TrainingInterrupted("stopped after epoch 2: censnet.pipeline.resume_run('runs/a') goes on with it")
    """
    where = f"epoch {epochs + 1}, step {steps}" if steps else f"epoch {epochs}"
    return TrainingInterrupted(f"stopped after {where}", None if checkpoint is None else checkpoint.parent.parent)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory is used up, on a CPU or on a GPU.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("mat1 and mat2 cannot be multiplied"))
    (True, False)
    """
    text = str(error).lower()
    said = any(words in text for words in ("can't allocate memory", "out of memory", "not enough memory"))
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (isinstance(error, RuntimeError) and said)


def out_of_memory(error: BaseException, advice: str) -> TrainingStopped:
    """The error of a training that runs out of memory: how much it asked for, and what to do.

    >>> out_of_memory(RuntimeError("can't allocate memory: you tried to allocate 400 bytes"), "lower model.hidden")
    TrainingStopped('out of memory (400 bytes were asked for): lower model.hidden')
    """
    asked = re.search(r"tried to allocate ([\d.e+]+ ?\w+)", str(error), re.IGNORECASE)
    return TrainingStopped(f"out of memory{'' if asked is None else f' ({asked[1]} were asked for)'}: {advice}")


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Let Ctrl-C and SIGTERM set an event, rather than stop in the middle of a step."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
