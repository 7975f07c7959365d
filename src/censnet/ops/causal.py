"""Sums over the past: what was sent to a list before a moment, exactly, in O(M d) for all moments of a history.

A message has a list (the edges that leave a node, those between two nodes, ...) and a time. A query (list, time) reads
the messages of its list that came before, an exclusive prefix in the order of time:

    sum        P_q = sum of m_f            over the messages f of the list with t_f < t_q
    decayed    P_q = sum of exp(-rate (t_q - t_f)) m_f
    window     P_q = sum of m_f with t_q - width <= t_f < t_q: the difference of two prefixes

`ops/scan.py` adds up, in float64 whatever comes in and goes out. The gradient of a message is the sum over the queries
that see it, those later in its list: the same operation with messages and queries exchanged, and time reversed. The
gradient of a rate is -sum_f m_f . y_f with y_f = sum of (t_q - t_f) exp(-rate (t_q - t_f)) g_q over these queries.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from censnet.ops.checks import check_shape
from censnet.ops.scan import Decay, read_sums
from censnet.ops.timed_lists import Mirror, Reads, TimedLists

__all__ = ["Reads", "TimedLists", "decayed_sums", "prefix_sums"]
ROWS = 1 << 16  # of which products in float64 are made at a time


def prefix_sums(messages: Tensor, reads: Reads) -> Tensor:
    """P_q = the sum of the messages that query q sees. (M, d) -> (Q, d)"""
    _check(messages, reads)
    return cast(Tensor, _Prefix.apply(messages, None, reads))  # type: ignore[no-untyped-call]


def decayed_sums(messages: Tensor, rate: Tensor, reads: Reads) -> Tensor:
    """P_q = the sum of exp(-rate (t_q - t_f)) m_f over the messages that query q sees. (M, d), (K,) -> (Q, d)

    Args:
        messages: a row for each message of `reads.lists`.
        rate: decay rates, none negative, each of an equal share of the channels: the first of the first d / K.
        reads: queries without a window.
    """
    _check(messages, reads)
    check_shape("rate", rate, (None,), "(K,)")
    if reads.begin is not None:
        raise ValueError("reads has windows, expected none: a sum that decays has no window")
    if len(rate) == 0 or messages.shape[1] % len(rate):
        raise ValueError(f"rate has {len(rate)} rates, expected a divisor of the {messages.shape[1]} channels")
    return cast(Tensor, _Prefix.apply(messages, rate, reads))  # type: ignore[no-untyped-call]


def _check(messages: Tensor, reads: Reads) -> None:
    check_shape("messages", messages, (len(reads.lists.key), None), "(M, d), a row for each message of the lists")


class _Prefix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor, rate: Tensor | None, reads: Reads) -> Tensor:
        ctx.reads, needs_messages = reads, rate is not None and rate.requires_grad
        ctx.save_for_backward(messages if needs_messages else None, rate)
        lists, dtype = reads.lists, messages.dtype
        decay = None if rate is None else Decay(rate.double(), lists.gaps)
        if reads.begin is not None:
            sums = lists.plan.sums(messages, lists.source)
            later, earlier = (read_sums(sums, at, torch.float64) for at in (reads.at_stop, reads.at_begin))
            return later.sub_(earlier).to(dtype)
        sums = lists.plan.sums(messages, lists.source, decay, dtype=_kept(dtype))
        age = (None, None) if decay is None else (reads.age, decay.rate)
        return read_sums(sums, reads.at_stop, dtype, *age)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        messages, rate = ctx.saved_tensors
        first, *others = ctx.reads.mirrored
        if rate is None:
            received = _received(grad, first, torch.float64 if others else grad.dtype)
            for mirror in others:
                received.sub_(_received(grad, mirror, torch.float64))
            return received.to(grad.dtype), None, None
        decay = Decay(rate.double(), first.gaps, first.age)
        sums = first.plan.sums(grad, first.source, decay, messages is not None, _kept(grad.dtype))
        age = first.age_of_reads, decay.rate
        of_messages = read_sums(sums[:1], first.at, grad.dtype, *age) if ctx.needs_input_grad[0] else None
        if messages is None:
            return of_messages, None, None
        moments = read_sums(sums, first.at, _kept(grad.dtype), *age)
        of_rate = -_dots(messages, moments).view(len(rate), -1).sum(1)
        return of_messages, of_rate.to(rate.dtype), None


def _received(grad: Tensor, mirror: Mirror, dtype: torch.dtype) -> Tensor:
    """Of each message, the sum of the gradients of the queries that see it."""
    return read_sums(mirror.plan.sums(grad, mirror.source, dtype=_kept(dtype)), mirror.at, dtype)


def _dots(a: Tensor, b: Tensor) -> Tensor:
    """The sum over rows of a * b in float64, some rows at a time. (n, d), (n, d) -> (d,)"""
    total = a.new_zeros(a.shape[1], dtype=torch.float64)
    for x, y in zip(torch.split(a, ROWS), torch.split(b, ROWS), strict=True):
        total += (x.double() * y).sum(0)
    return total


def _kept(dtype: torch.dtype) -> torch.dtype:
    """The type in which finished sums are kept until they are read: rounded once or twice, never added up in it."""
    return torch.promote_types(dtype, torch.float32)
