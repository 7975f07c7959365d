"""The kernels of directed edges against the rule in float64 on a CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from censnet.ops import Incidence, triton
from censnet.ops.directed import _combine_plainly, combine_edges

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

RELATIVE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
SIZES = [(32, 32, 1), (32, 32, 32), (64, 64, 64), (64, 64, 4), (5, 8, 2), (16, 33, 1), (3, 6, 6), (20, 48, 48)]
LARGER = [(80, 32, 1), (32, 80, 1), (12, 6, 3)]  # which the kernels leave to torch


def make_inputs(width: int, out: int, heads: int, dtype: torch.dtype) -> tuple[Incidence, list[Tensor], Tensor]:
    """A multigraph with a hub and loops; h, the matrices, the table and the factors; and a gradient."""
    generator = torch.Generator().manual_seed(width)
    ends = torch.randint(90, (2, 3001), generator=generator)
    ends[0, :1100] = 0
    shapes = [(3001, width), (1, width, 3 * out), (180, out), (180, heads), (3001, out)]
    *inputs, grad = (torch.randn(*shape, generator=generator).to(dtype) for shape in shapes)
    return Incidence(ends, 90), inputs, grad


def gradients(found: Tensor, inputs: list[Tensor], grad: Tensor) -> list[Tensor]:
    return [found.detach(), *torch.autograd.grad(found, inputs, grad)]


@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize(("width", "out", "heads"), SIZES + LARGER)
def test_edges_and_all_gradients_are_those_of_the_rule(width: int, out: int, heads: int, dtype: torch.dtype) -> None:
    incidence, inputs, grad = make_inputs(width, out, heads, dtype)
    on_gpu = [one.cuda().requires_grad_() for one in inputs]
    exact = [one.double().requires_grad_() for one in inputs]
    assert triton.can_combine(on_gpu[0], on_gpu[1], on_gpu[3]) == ((width, out, heads) in SIZES)
    there = Incidence(incidence.ends.cuda(), 90)
    found = gradients(combine_edges(*on_gpu, there), on_gpu, grad.cuda())
    expected = gradients(_combine_plainly(*exact, incidence), exact, grad.double())
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        assert float((one.cpu().double() - other).norm() / other.norm()) < RELATIVE[dtype]
    again = gradients(combine_edges(*on_gpu, there), on_gpu, grad.cuda())
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))
