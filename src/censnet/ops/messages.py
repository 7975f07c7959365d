"""Node propagation with a weight for each edge and channel, or nearly: a message each way along each edge, and its sum.

The factors of the degrees ride on the sums that gather and add the messages, so that no pass is for them alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.ops.incidence import Incidence
from censnet.ops.normalization import DegreePower, by_head, scale_of
from censnet.ops.segments import sum_segments, take_rows

BLOCK = 16384  # edges whose dot products are taken at once on a CPU: two tables of this many rows stay in its cache


def make_messages(x: Tensor, incidence: Incidence, power: DegreePower) -> Tensor:
    """What each edge brings to its first end, and below to its second: the scaled row of the other end. (2, E, d)"""
    return _messages_of(slice(None), x, incidence, power)


def _messages_of(block: slice, x: Tensor, incidence: Incidence, power: DegreePower) -> Tensor:
    weight = _at_other(incidence, power, x.dtype)
    read = incidence.crossed[:, block]
    messages = take_rows(x, read.reshape(-1), None if weight is None else weight[:, block].reshape(-1))
    return messages.view(*read.shape, x.shape[1])


def sum_messages(messages: Tensor, w: Tensor, incidence: Incidence, power: DegreePower) -> Tensor:
    """The scaled sum at each node of the messages to it, each times the weights of its edge. (N, d)

    The messages are weighed in their place, and so are lost.
    """
    heads = w.shape[1]
    messages.view(*messages.shape[:2], heads, messages.shape[2] // heads).mul_(w.unsqueeze(2))
    return sum_segments(messages.flatten(0, 1), incidence.entries, _at_entries(incidence, power, messages.dtype))


def message_dots(x: Tensor, messages: Tensor, incidence: Incidence, heads: int, power: DegreePower) -> Tensor:
    """At each edge i-j, y_i . h_j + y_j . h_i within each head, for y = R x and the messages h. (E, heads)"""
    blocks = []
    for start in range(0, max(incidence.num_edges, 1), BLOCK):
        block = slice(start, start + BLOCK)
        first, second = _messages_of(block, x, incidence, power)
        product = first.mul_(messages[1, block]).addcmul_(second, messages[0, block])
        blocks.append(product if heads == x.shape[1] else by_head(product, heads).sum(2))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks)


def _at_other(incidence: Incidence, power: DegreePower, dtype: torch.dtype) -> Tensor | None:
    """The factor of the node at the other end, of the first and of the second end of each edge. (2, E)"""
    scale = scale_of(incidence, "node", power, dtype)
    if scale is None:
        return None
    return incidence.cache(("crossed", power, dtype), lambda: scale[incidence.crossed])


def _at_entries(incidence: Incidence, power: DegreePower, dtype: torch.dtype) -> Tensor | None:
    """The factor of the node at each entry of T in row order. (2E,)"""
    scale = scale_of(incidence, "node", power, dtype)
    if scale is None:
        return None
    return incidence.cache(
        ("entries", power, dtype),
        lambda: scale[incidence.ends].reshape(-1)[incidence.entries.index],
    )
