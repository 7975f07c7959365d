"""Timed multigraphs, and causal encoders whose parameters are all at work."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from censnet.nn.causal_encoder import CausalEncoder
from censnet.ops.incidence import Incidence

CASES = [  # ties, label delay, decay rates, windows; all with triads
    ("time", 0.0, 0, ()),
    ("time", 1.0, 2, (0.5, 2.0)),
    ("row", 0.0, 2, (1.25,)),
    ("row", 0.75, 1, ()),
]


@dataclass(frozen=True)
class Timed:
    """A multigraph with loops and ties in the order of time, features, and labels of which some are not known."""

    incidence: Incidence
    times: Tensor
    nodes: Tensor
    edges: Tensor  # with two channels of labels at the end


def timed(seed: int, edges: int = 40) -> Timed:
    generator = torch.Generator().manual_seed(seed)
    nodes = 2 + seed % 6
    ends = torch.randint(nodes, (2, edges), generator=generator)
    times = (torch.randint(edges // 2, (edges,), generator=generator).double() / 4).sort().values
    features = torch.randn(nodes, 3, generator=generator, dtype=torch.float64)
    labels = F.one_hot(torch.randint(2, (edges,), generator=generator), 2).double()
    labels = labels * (torch.rand(edges, 1, generator=generator) < 0.7)
    own = torch.randn(edges, 2, generator=generator, dtype=torch.float64)
    return Timed(Incidence(ends, nodes), times, features, torch.cat([own, labels], 1))


def encoder_of(case: tuple[str, float, int, tuple[float, ...]], layers: str = "CC", hidden: int = 8) -> CausalEncoder:
    ties, delay, rates, windows = case
    torch.manual_seed(0)
    encoder = CausalEncoder(
        3, 4, 2, hidden, layers, windows=windows, num_rates=rates, label_delay=delay, ties=ties, triads=True  # type: ignore[arg-type]
    )  # fmt: skip
    for weight in encoder.parameters():  # also gates and biases, which start at 0
        torch.nn.init.normal_(weight, std=0.4) if weight.dim() == 2 else torch.nn.init.normal_(weight, 0.5, 0.3)
    return encoder.double().eval()
