"""Bounded gates: the gradient from the gate alone."""

from __future__ import annotations

import torch

from censnet.nn.gates import bounded


def test_the_gate_and_its_gradient():
    x = torch.linspace(-9, 9, 50, dtype=torch.float64, requires_grad=True)
    assert bounded(x).equal(2 * torch.sigmoid(x))
    assert torch.autograd.gradcheck(bounded, x)
