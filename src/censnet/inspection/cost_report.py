"""What a training will take: the estimate that `censnet inspect` shows."""

from __future__ import annotations

from pydantic import BaseModel


class Cost(BaseModel):
    """An estimate for one network.

    Args:
        network: for which.
        bytes: memory of the whole process at its peak.
        seconds: of one epoch on the processor that was measured: forward, backward, the optimizer, validation.
        batches: steps in an epoch: 1 for one graph.
        measured_edges: of the part that was measured; time and memory are scaled up from it.
    """

    network: str
    bytes: int
    seconds: float
    batches: int
    measured_edges: int
