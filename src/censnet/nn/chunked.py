"""Chunked outputs: logits too large for the memory, such as 5,000 classes of 50,000 edges, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

MAX_AT_ONCE = 2**25  # numbers in the outputs, from which on they are computed in chunks
CHUNK = 2**22  # numbers in the outputs of a chunk: 16 MB, and a few times that with its gradient


@dataclass(frozen=True, eq=False)
class ChunkedOutputs:
    """The outputs of a head, computed on demand, so that no tensor has every sample and class.

    The head runs in the mode (training or not, with gradients or without) in which the outputs were made, also if the
    mode of the model has changed since.

    Args:
        inputs: of the head. (n, in_width)
        head: the module. (n, in_width) -> (n, width)
        width: channels of the outputs.
        finish: applied to the outputs, such as clipping.
    """

    inputs: Tensor
    head: nn.Module
    width: int
    finish: Callable[[Tensor], Tensor] = lambda rows: rows
    training: bool = False
    gradients: bool = field(default_factory=torch.is_grad_enabled)

    def __len__(self) -> int:
        return len(self.inputs)

    def select(self, rows: Tensor) -> ChunkedOutputs:
        """The outputs of some samples alone, not computed yet."""
        return replace(self, inputs=self.inputs.index_select(0, rows.to(self.inputs.device)))

    def split(self) -> list[ChunkedOutputs]:
        """Chunks that can be computed at once, in order."""
        parts = torch.split(self.inputs, chunk_rows(self.width))
        return [replace(self, inputs=part) for part in parts]

    def compute(self) -> Tensor:
        """The outputs. -> (n, width)"""
        mode, device = self.head.training, next(self.head.parameters()).device
        self.head.train(self.training)
        try:
            with torch.set_grad_enabled(self.gradients and torch.is_grad_enabled()):
                return self.finish(self.head(self.inputs.to(device)))
        finally:
            self.head.train(mode)


@dataclass(frozen=True, eq=False)
class CombinedOutputs:
    """The combined outputs of several models, such as their mean.

    Args:
        members: the outputs of each model.
        combine: (members, n, width) -> (n, width).
    """

    members: Sequence[ChunkedOutputs]
    combine: Callable[[Tensor], Tensor]

    def __len__(self) -> int:
        return len(self.members[0])

    def select(self, rows: Tensor) -> CombinedOutputs:
        """The outputs of some samples alone, not computed yet."""
        return replace(self, members=[member.select(rows) for member in self.members])

    def split(self) -> list[CombinedOutputs]:
        """Chunks that can be computed at once, in order."""
        parts = zip(*(member.split() for member in self.members), strict=True)
        return [replace(self, members=chunks) for chunks in parts]

    def compute(self) -> Tensor:
        """The outputs. -> (n, width)"""
        return self.combine(torch.stack([member.compute().float().cpu() for member in self.members]))


HeadOutputs = Tensor | ChunkedOutputs  # of one model
LazyOutputs = ChunkedOutputs | CombinedOutputs
RowOutputs = Tensor | LazyOutputs


def is_too_large(num_rows: int, width: int) -> bool:
    """Whether outputs of this size are computed in chunks."""
    return num_rows * width > MAX_AT_ONCE


def chunk_rows(width: int) -> int:
    """The number of samples in a chunk."""
    return max(1, CHUNK // width)


def join(parts: Sequence[HeadOutputs]) -> HeadOutputs:
    """The outputs of one head for several batches, concatenated."""
    chunked = [part for part in parts if isinstance(part, ChunkedOutputs)]
    if len(chunked) == len(parts):
        return replace(chunked[0], inputs=torch.cat([part.inputs for part in chunked]))
    return torch.cat([dense(part) for part in parts])


def dense(outputs: RowOutputs) -> Tensor:
    """The outputs in one tensor."""
    if isinstance(outputs, Tensor):
        return outputs
    return torch.cat([chunk.compute() for chunk in outputs.split()])
