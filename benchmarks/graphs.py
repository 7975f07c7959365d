"""The graphs that are measured."""

from __future__ import annotations

import torch
from torch import Tensor


def power_law(num_nodes: int, num_edges: int, exponent: float, ordered: bool, device: str = "cpu") -> Tensor:
    """Ends of a simple graph whose node of rank r is drawn with p ~ (r + 10)^-exponent. (2, E)

    Nodes are numbered at random. Edges stand in random order, or sorted by their ends as most tables are.
    """
    generator = torch.Generator(device).manual_seed(0)

    def draw(count: int) -> Tensor:
        u = torch.rand(count, dtype=torch.float64, generator=generator, device=device)
        power = 1 - exponent
        low, high = 10.0**power, (num_nodes + 10.0) ** power
        return ((low + u * (high - low)) ** (1 / power) - 10).long().clamp_(0, num_nodes - 1)

    keys = torch.empty(0, dtype=torch.int64, device=device)
    while len(keys) < num_edges:
        count = int(1.1 * (num_edges - len(keys))) + 1000
        a, b = draw(count), draw(count)
        fresh = (torch.minimum(a, b) * num_nodes + torch.maximum(a, b))[a != b]
        keys = torch.unique(torch.cat([keys, fresh]))
    keys = keys[torch.randperm(len(keys), generator=generator, device=device)[:num_edges]]
    number = torch.randperm(num_nodes, generator=generator, device=device)
    return _arrange(torch.stack([number[keys // num_nodes], number[keys % num_nodes]]), num_nodes, ordered)


def star(leaves: int, device: str = "cpu") -> Tensor:
    """Every edge at node 0. (2, leaves), of leaves + 1 nodes."""
    return torch.stack(
        [torch.zeros(leaves, dtype=torch.int64, device=device), torch.arange(1, leaves + 1, device=device)]
    )


def ring(num_nodes: int, device: str = "cpu") -> Tensor:
    """As many edges as nodes, spread evenly, the nodes numbered at random. (2, N)"""
    generator = torch.Generator(device).manual_seed(0)
    number = torch.randperm(num_nodes, generator=generator, device=device)
    return torch.stack([number, number.roll(1)])


def _arrange(ends: Tensor, num_nodes: int, ordered: bool) -> Tensor:
    if not ordered:
        return ends
    low, high = ends.amin(0), ends.amax(0)
    order = torch.argsort(low * num_nodes + high)
    return torch.stack([low[order], high[order]])
