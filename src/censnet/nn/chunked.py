"""The outputs of a head that would fill the memory: 5,000 classes of 50,000 edges, computed some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

MOST_AT_ONCE = 2**25  # numbers in the outputs of all rows, from which on they are computed in chunks
CHUNK = 2**22  # numbers in the outputs of a chunk: 16 MB, and a few times that with its gradient


@dataclass(frozen=True, eq=False)
class ChunkedOutputs:
    """What a head gives for each row, computed when it is asked for, so that no tensor has every row and class.

    The head runs in the mode (training or not, with gradients or without) in which the outputs were made, also if the
    model has changed it since.

    Args:
        inputs: what the head reads. (n, in_width)
        head: the module. (n, in_width) -> (n, width)
        width: channels of the outputs.
        finish: what is done with the outputs, such as clipping them.
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
        """The outputs of some rows alone, not computed yet."""
        return replace(self, inputs=self.inputs.index_select(0, rows.to(self.inputs.device)))

    def split(self) -> list[ChunkedOutputs]:
        """The rows in chunks that can be computed at once, in order."""
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
    """One output for each row from those of several networks, such as their mean.

    Args:
        members: the outputs of each network.
        combine: (members, n, width) -> (n, width).
    """

    members: Sequence[ChunkedOutputs]
    combine: Callable[[Tensor], Tensor]

    def __len__(self) -> int:
        return len(self.members[0])

    def select(self, rows: Tensor) -> CombinedOutputs:
        """The outputs of some rows alone, not computed yet."""
        return replace(self, members=[member.select(rows) for member in self.members])

    def split(self) -> list[CombinedOutputs]:
        """The rows in chunks that can be computed at once, in order."""
        parts = zip(*(member.split() for member in self.members), strict=True)
        return [replace(self, members=chunks) for chunks in parts]

    def compute(self) -> Tensor:
        """The outputs. -> (n, width)"""
        return self.combine(torch.stack([member.compute().float().cpu() for member in self.members]))


HeadOutputs = Tensor | ChunkedOutputs  # of one network
LazyOutputs = ChunkedOutputs | CombinedOutputs
RowOutputs = Tensor | LazyOutputs


def is_too_large(num_rows: int, width: int) -> bool:
    """Whether the outputs of so many rows are computed in chunks."""
    return num_rows * width > MOST_AT_ONCE


def chunk_rows(width: int) -> int:
    """How many rows of outputs are computed at once."""
    return max(1, CHUNK // width)


def join(parts: Sequence[HeadOutputs]) -> HeadOutputs:
    """The outputs of several batches that one head gives."""
    chunked = [part for part in parts if isinstance(part, ChunkedOutputs)]
    if len(chunked) == len(parts):
        return replace(chunked[0], inputs=torch.cat([part.inputs for part in chunked]))
    return torch.cat([dense(part) for part in parts])


def dense(outputs: RowOutputs) -> Tensor:
    """The outputs of every row, in one tensor."""
    if isinstance(outputs, Tensor):
        return outputs
    return torch.cat([chunk.compute() for chunk in outputs.split()])
