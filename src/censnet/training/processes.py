"""Several processes that train one model together: work of the first alone, errors of one for all, and sums over all.

`accelerate launch`, torchrun and MPI start them and say in the environment how many there are. Where there is one,
every function here does its work at once.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState
from torch import Tensor, nn

from censnet.errors import CensNetError, TrainingStopped
from censnet.option_names import resume_option

T = TypeVar("T")
Failure = tuple[type[CensNetError], str, dict[str, Any]]

PATIENCE = timedelta(minutes=30)  # how long a process waits for others that do the same as it
LONGEST_NAP = 0.1  # seconds between two looks at whether the first process has done its work
SIZES = "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"
LOST = (  # what gloo, NCCL and the store say of a process that is gone
    "connection closed by peer", "connection reset", "connection refused", "connection was closed", "broken pipe",
    "connection was likely closed", "timed out waiting", "wait timeout", "socket timeout", "failed to recv",
    "remote process exited", "nccl communicator was aborted", "nccl error", "watchdog", "socket closed",
    "read error", "connection timed out",
)  # fmt: skip
_waits = itertools.count()  # numbers of the works of the first process; the same in all


def launched() -> int:
    """The number of processes that a launcher says it has started; 1 without one."""
    sizes = (os.environ.get(name, "") for name in SIZES)
    return next((int(size) for size in sizes if size.isdigit()), 1)


def join(device: str | None = None) -> None:
    """Meet the other processes, if a launcher has started several.

    Args:
        device: where the training is going to compute; the best device if None.
    """
    if launched() == 1 or dist.is_initialized():
        return
    try:
        PartialState(cpu=device is not None and device.startswith("cpu"), timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise TrainingStopped(f"{launched()} processes were started, and did not meet: {why}") from None


def leave() -> None:
    """Wait for the other processes when all work is done: the first one may serve the store that they look into."""
    if count() > 1:
        dist.barrier()


def count() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def index() -> int:
    """The number of this one of them, from 0."""
    return dist.get_rank() if count() > 1 else 0


def per_machine() -> int:
    """The number of processes that share the memory of this machine."""
    size = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, int(size)) if size.isdigit() and count() > 1 else 1


@contextmanager
def together() -> Iterator[None]:
    """Do the work of a block in every process, about as long in each; an error of one is raised in all."""
    several, error = count() > 1, None
    try:
        yield
    except CensNetError as raised:
        if not several:
            raise
        error = raised
    if not several:
        return
    failures: list[Failure | None] = [None] * count()
    dist.all_gather_object(failures, None if error is None else _describe(error))
    if error is not None:
        raise error
    for failure in failures:
        if failure is not None:
            raise _revive(failure)


def on_first(work: Callable[[], T]) -> T:
    """Do some work in the first process alone; all get what it returns, or raise its error.

    The others wait for it as long as it takes, and look now and then whether it is still there.

    Args:
        work: returns something that can be sent.
    """
    if count() == 1:
        return work()
    result: tuple[Any, Failure | None] = None, None
    name, error = f"censnet/{next(_waits)}", None
    if index() == 0:
        try:
            result = work(), None
        except CensNetError as raised:
            error, result = raised, (None, _describe(raised))
        _store().set(name, b"done")
    else:
        _wait_for(name)
    every = [result]
    dist.broadcast_object_list(every)
    found, failure = every[0]
    if error is not None:
        raise error
    if failure is not None:
        raise _revive(failure)
    return found  # type: ignore[no-any-return]


def total(values: Tensor) -> Tensor:
    """The sum of a tensor over all processes."""
    if count() == 1:
        return values
    values = values.clone()
    dist.all_reduce(values)
    return values


class Gradients:
    """The gradients of a model, averaged over all processes in one message a step.

    `DistributedDataParallel` would look through the graph of each step for parameters that have no gradient, as those
    of a last layer whose one side no head reads, and hide the communication of many more weights than there are here.

    Args:
        model: the same in all processes; it gets the weights and buffers of the first one.
    """

    def __init__(self, model: nn.Module) -> None:
        self.parameters = list(model.parameters())
        self._used: list[bool] | None = None  # which have a gradient, in any process
        if count() > 1:
            for tensor in (*self.parameters, *model.buffers()):
                dist.broadcast(tensor.detach(), 0)

    def average(self) -> None:
        """Give every parameter the mean of its gradients in all processes."""
        if count() == 1:
            return
        if self._used is None:
            found: list[Any] = [None] * count()
            dist.all_gather_object(found, [parameter.grad is not None for parameter in self.parameters])
            self._used = [any(each) for each in zip(*found, strict=True)]
        used = [parameter for parameter, used in zip(self.parameters, self._used, strict=True) if used]
        each = [torch.zeros_like(one) if one.grad is None else one.grad for one in used]
        mean = total(torch.cat([gradient.reshape(-1) for gradient in each])) / count()
        for parameter, gradient in zip(used, torch.split(mean, [one.numel() for one in used]), strict=True):
            parameter.grad = gradient.view_as(parameter)


def is_first_to_say() -> bool:
    """Whether this process is the first to report an error, which one of them does for all.

    Before they have met, each may see what no other does, but all see what was typed: the first one reports it.
    """
    if count() == 1:
        return launched() == 1 or os.environ.get("RANK", "0") == "0"
    try:
        return bool(_store().add("censnet/said", 1) == 1)
    except (RuntimeError, OSError):  # it was in a process that is gone
        return True


def is_lost(error: BaseException) -> bool:
    """Whether an error means that another process is gone."""
    text = str(error).lower()
    return count() > 1 and isinstance(error, RuntimeError) and any(words in text for words in LOST)


@contextmanager
def losses_named(folder: Path | None = None) -> Iterator[None]:
    """Say of a process that is gone what happened, in one line.

    Args:
        folder: the run directory, if there is something to resume.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, CensNetError) or not is_lost(error):
            raise
        how = "" if folder is None else f": start all of them again with {resume_option(folder)}"
        raise TrainingStopped(f"one of the {count()} processes has ended, so the others ended too{how}") from None


def _store() -> Any:
    return dist.distributed_c10d._get_default_store()


def _wait_for(name: str) -> None:
    nap = 0.001
    while not _store().check([name]):
        time.sleep(nap)
        nap = min(2 * nap, LONGEST_NAP)


def _describe(error: CensNetError) -> Failure:
    return type(error), str(error), dict(vars(error))


def _revive(failure: Failure) -> CensNetError:
    """The error of another process; without its constructor, which may have taken other things than the message."""
    kind, text, facts = failure
    error = kind.__new__(kind)
    error.args = (text,)
    vars(error).update(facts)
    return error
