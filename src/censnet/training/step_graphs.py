"""Recorded steps: on a GPU a step is launched once as a CUDA graph, not operation by operation.

A small step takes a GPU less time than Python needs to launch it. Where the batches repeat, as one object (the full
graph) or in their shapes (padded batches of graphs), the operations of forward and backward pass are recorded once, and
replayed on the tensors of the next batch.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from censnet.nn.encoder import CensNet
from censnet.nn.model import Model
from censnet.nn.norms import BatchNorm
from censnet.ops.caching import unchecked
from censnet.settings.schema import TrainingSettings
from censnet.training.batch import Batch

logger = logging.getLogger(__name__)

WARM_UP = 2  # steps of the same shapes before one is recorded: kernels are chosen, and cached tensors exist, by then
MOST_RECORDED = 16
LARGEST = 2**20  # nodes and edges of a batch; the launches of a larger one take little of its time

Step = Callable[[Batch], Tensor]  # the gradients of a batch, left in the parameters -> the loss of each member
Replay = Callable[[], None]
Record = Callable[[Step, Batch], tuple[Replay, Tensor]]


@dataclass(frozen=True)
class Recorded:
    """A step that was recorded, and the tensors that it reads and writes."""

    replay: Replay
    inputs: list[Tensor]
    loss: Tensor
    gradients: list[Tensor | None]


class RecordedSteps:
    """A step that is recorded for each kind of batch, and replayed from then on.

    A step that cannot be recorded, since it waits for the GPU or has shapes that depend on values, is taken as it is.

    Args:
        step: computes the gradients of a batch.
        parameters: whose gradients these are.
        repeats: whether batches repeat as objects, which are kept as they are, or in their shapes.
        record: records what a step does with a batch. -> how it is done again, and the loss, which that changes
    """

    def __init__(
        self,
        step: Step,
        parameters: Sequence[nn.Parameter],
        repeats: Literal["objects", "shapes"],
        record: Record | None = None,
    ) -> None:
        self.step, self.parameters, self.repeats = step, list(parameters), repeats
        self.record: Record = CudaRecorder() if record is None else record
        self.seen = Counter[Hashable]()
        self.recorded: dict[Hashable, Recorded] = {}
        self.fails = False

    def __call__(self, batch: Batch) -> Tensor:
        """Leave the gradients of a batch in the parameters. -> the loss of each member"""
        if self.fails or batch.graph.num_nodes + batch.graph.num_edges > LARGEST:
            return self.step(batch)
        inputs = list[Tensor]()
        key: Hashable = id(batch)
        if self.repeats == "shapes":
            key = signature(batch, inputs)
        found = self.recorded.get(key)
        if found is None:
            self.seen[key] += 1
            if self.seen[key] <= WARM_UP or len(self.recorded) >= MOST_RECORDED:
                return self.step(batch)
            found = self._record(batch)
            if found is None:
                return self.step(batch)
            self.recorded[key] = found
        elif inputs:
            torch._foreach_copy_(found.inputs, inputs)  # in few launches
        found.replay()
        for parameter, gradient in zip(self.parameters, found.gradients, strict=True):
            parameter.grad = gradient
        return found.loss.clone()

    def _record(self, batch: Batch) -> Recorded | None:
        inputs = list[Tensor]()
        if self.repeats == "shapes":
            batch = copy_tensors(batch)
            signature(batch, inputs)
        for parameter in self.parameters:
            parameter.grad = None
        try:
            replay, loss = self.record(self.step, batch)
        except RuntimeError as error:
            logger.info("steps are not recorded as CUDA graphs: %s", str(error).splitlines()[0])
            self.fails = True
            for parameter in self.parameters:
                parameter.grad = None
            return None
        return Recorded(replay, inputs, loss, [parameter.grad for parameter in self.parameters])


class CudaRecorder:
    """Records what a step does on the current GPU; all recordings share their memory."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Step, batch: Batch) -> tuple[Replay, Tensor]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            loss = step(batch)
        return graph.replay, loss


def can_record(accelerator: Accelerator, settings: TrainingSettings, model: Model) -> bool:
    """Whether steps may be recorded: on one GPU, and where no layer is computed again in the backward pass."""
    alone = accelerator.device.type == "cuda" and accelerator.num_processes == 1
    return settings.step_graphs and alone and not model.encoder.recompute


def leaves_padding_out(model: Model) -> bool:
    """Whether the outputs for a graph do not depend on graphs that pad its batch: batch norms know of these."""
    if not isinstance(model.encoder, CensNet):
        return False
    aware = sum(isinstance(norm, BatchNorm) for norm in model.encoder.norms)
    return aware == sum(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in model.modules())


def signature(value: object, tensors: list[Tensor]) -> Hashable:
    """The properties that batches of one recording have in common; different tensors are added to a list."""
    known: dict[int, int] = {}
    found: list[Hashable] = []

    def visit(value: Any) -> None:
        if isinstance(value, Tensor):
            if id(value) not in known:
                known[id(value)] = len(tensors)
                tensors.append(value)
            found.append((known[id(value)], value.shape, value.dtype))
        elif isinstance(value, Mapping):
            for name in value:
                found.append(name)
                visit(value[name])
        elif isinstance(value, tuple):
            for each in value:
                visit(each)
        elif dataclasses.is_dataclass(value):
            visit(vars(value))
        else:
            found.append(value)

    visit(value)
    return tuple(found)


def copy_tensors(batch: Batch, copy: Callable[[Tensor], Tensor] = torch.clone) -> Batch:
    """The same batch with tensors of its own; a tensor that is there twice still is one."""
    copies: dict[int, Tensor] = {}

    def visit(value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in copies:
                copies[id(value)] = copy(value)
            return copies[id(value)]
        if isinstance(value, Mapping):
            return {name: visit(each) for name, each in value.items()}
        if isinstance(value, tuple):
            return tuple(map(visit, value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return unchecked(type(value), **visit(vars(value)))
        return value

    copied: Batch = visit(batch)
    return copied
