"""Batched training of many networks on one small graph: all splits and learning rates of a cell at once.

An epoch on a small graph is too little work for a GPU. Networks of one shape on the same graph differ only in their
weights, training nodes and learning rate, so they are trained as one network with a further dimension:

- layers of PyTorch Geometric by `torch.vmap` over stacked parameters. Their inputs (edges in both directions,
  normalized weights) are computed once and have no such dimension;
- CensNet by its own members (`censnet.nn.ensemble`), whose activations are (N, M d).

On a CPU a loop over the networks does the same. Both start from the same weights and, without dropout, agree.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

from censnet.nn.ensemble import stack_members
from censnet.ops.graph import Graph
from censnet_experiments.plan import Recipe

Inputs = tuple[Any, ...]
CHECK_EVERY = 50  # epochs between counts of the members that have stopped early
WARMUP = 3  # epochs before a CUDA graph is captured: cached tensors must exist by then


class Classifier(Protocol):
    """A network with an output for every node; `inputs` computes its arguments from a graph, once."""

    def inputs(self, graph: Graph) -> Inputs: ...


@dataclass(frozen=True)
class Compute:
    """Where networks are trained, and how many together.

    Args:
        device: for training.
        batched: number of networks trained as one batch, all learning rates of a seed among them. None is all on a GPU
            and one on a CPU. Records are added after each batch, so a stopped run loses one batch.
        capture: whether each epoch of Table 1 runs as one CUDA graph.
    """

    device: torch.device
    batched: int | None = None
    capture: bool = False


@dataclass(frozen=True)
class NodeSplits:
    """The training, validation and test nodes of each member.

    Args:
        labels: (N,), the class of each node; -1 where it has none.
        parts: (M, N), 0 train, 1 validation, 2 test, anything else none. All members have equally many training nodes.
    """

    labels: Tensor
    parts: Tensor

    def __post_init__(self) -> None:
        count = (self.parts == 0).sum(1)
        if len(count) == 0 or int(count.min()) != int(count.max()) or int(count.min()) == 0:
            raise ValueError(f"members have {count.tolist()} training nodes, expected equally many, and at least one")
        if bool((self.labels[(self.parts >= 0).any(0)] < 0).any()):
            raise ValueError("a node of a split has no label, expected a class from 0")

    def only(self, members: slice) -> NodeSplits:
        """The splits of some of the members."""
        return NodeSplits(self.labels, self.parts[members])

    def to(self, device: torch.device) -> NodeSplits:
        """The same on another device."""
        return NodeSplits(self.labels.to(device), self.parts.to(device))


@dataclass(frozen=True)
class BestEpoch:
    """For each member, its best validation accuracy, and the test accuracy and number of that epoch. (M,)"""

    validation: Tensor
    test: Tensor
    epoch: Tensor


def train(
    models: Sequence[nn.Module],
    graph: Graph,
    splits: NodeSplits,
    learning_rates: Sequence[float],
    recipe: Recipe,
    *,
    batched: int | None = None,
    capture: bool = False,
    seed: int = 0,
) -> BestEpoch:
    """Train a classifier for each member, and return for each its best epoch on the validation set.

    Args:
        models: one for each member, of one shape; they are not modified.
        graph: on the training device.
        splits: of each member.
        learning_rates: of each member.
        recipe: epochs and weight decay.
        batched: number of members trained as one batch. None is all on a GPU and one on a CPU.
        capture: whether to run an epoch as one CUDA graph, which saves launch time.
        seed: of dropout.
    """
    device = graph.ends.device
    batched = batched if batched is not None else (1 if device.type == "cpu" else len(models))
    found = []
    for start in range(0, len(models), batched):
        some = slice(start, start + batched)
        torch.manual_seed(seed + start)
        inputs = cast(Classifier, models[some][0]).inputs(graph)
        found.append(_train(models[some], inputs, splits.only(some).to(device), learning_rates[some], recipe, capture))
    return BestEpoch(*(torch.cat([getattr(one, name) for one in found]).cpu() for name in BestEpoch.__annotations__))


# -- many networks as one ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchedNetwork:
    """M networks as one: parameters that hold members one after the other, and outputs (M, n, width).

    Args:
        names, parameters: of every parameter.
        forward: whether it is training, and the inputs -> the outputs.
    """

    names: list[str]
    parameters: list[Tensor]
    forward: Callable[[bool, Inputs], Tensor]


def batch_networks(models: Sequence[nn.Module], device: torch.device) -> BatchedNetwork:
    """Make one network whose members are copies of these. Each takes its inputs unpacked, and returns (n, width)."""
    if len(models) == 1 or getattr(models[0], "has_members", False):
        model = copy.deepcopy(models[0]) if len(models) == 1 else stack_members(models)
        model = model.to(device)

        def forward(training: bool, inputs: Inputs) -> Tensor:
            outputs: Tensor = model.train(training)(*inputs)
            return outputs.view(outputs.shape[0], len(models), -1).transpose(0, 1)

        named = dict(model.named_parameters())
        return BatchedNetwork(list(named), list(named.values()), forward)
    shape = copy.deepcopy(models[0]).to(device)
    every = [dict(model.named_parameters()) for model in models]
    stacked = {name: torch.stack([own[name].detach() for own in every]).to(device) for name in every[0]}
    for parameter in stacked.values():
        parameter.requires_grad_()

    def forward_stacked(training: bool, inputs: Inputs) -> Tensor:
        shape.train(training)
        each = vmap(lambda own: functional_call(shape, own, inputs), randomness="different")
        return cast(Tensor, each(stacked))

    return BatchedNetwork(list(stacked), list(stacked.values()), forward_stacked)


def make_adam(network: BatchedNetwork, learning_rates: Sequence[float], recipe: Recipe) -> Adam:
    """Adam with the recipe's weight decay, each member with its own learning rate."""
    decay = [recipe.weight_decay * (not recipe.decay_first or name.startswith("first.")) for name in network.names]
    return Adam(network.parameters, torch.tensor(learning_rates), decay)


class Adam:
    """Adam (Kingma and Ba 2015) as in torch, for parameters that hold members one after the other.

    Torch has one learning rate for a parameter; here each member has its own: ``p.view(M, -1)[m]`` of a parameter p
    belongs to member m. The number of steps is on the device, so that a step can be captured as a CUDA graph.

    Args:
        parameters: leaves, contiguous, whose first dimension the members divide.
        learning_rates: (M,)
        weight_decay: of each parameter, added to its gradient.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        learning_rates: Tensor,
        weight_decay: Sequence[float],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.parameters, self.weight_decay, self.betas, self.eps = list(parameters), list(weight_decay), betas, eps
        self.rate = learning_rates.to(self.parameters[0]).unsqueeze(1)
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.powers = torch.ones(2, dtype=torch.float64, device=self.rate.device)  # beta_1^t and beta_2^t
        self.factors = torch.tensor(betas, dtype=torch.float64, device=self.rate.device)

    @torch.no_grad()
    def resume_from(self, old: Adam, members: Tensor) -> None:
        """Take over some members of another optimizer: their parameters and all moments."""
        for ours, theirs in zip(
            (*self.parameters, *self.first, *self.second), (*old.parameters, *old.first, *old.second), strict=True
        ):
            ours.view(len(self.rate), -1).copy_(theirs.view(len(old.rate), -1)[members])
        self.powers.copy_(old.powers)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Update every parameter by its gradient."""
        self.powers.mul_(self.factors)
        left = (1 - self.powers).to(self.rate.dtype)
        size, root = self.rate / left[0], left[1].sqrt()
        for p, grad, m, v, decay in zip(
            self.parameters, gradients, self.first, self.second, self.weight_decay, strict=True
        ):
            grad = grad + decay * p if decay else grad
            m.lerp_(grad, 1 - self.betas[0])
            v.mul_(self.betas[1]).addcmul_(grad, grad, value=1 - self.betas[1])
            step = m / (v.sqrt() / root + self.eps)
            p.view(len(size), -1).sub_(step.view(len(size), -1) * size)


# -- training ---------------------------------------------------------------------------------------------------------


def _train(
    models: Sequence[nn.Module],
    inputs: Inputs,
    splits: NodeSplits,
    learning_rates: Sequence[float],
    recipe: Recipe,
    capture: bool,
) -> BestEpoch:
    """Train all members; each time half of the remaining ones have stopped early, continue with the others."""
    device = splits.labels.device
    result = BestEpoch(*(torch.zeros(len(models), device=device) for _ in range(3)))
    left, done = torch.arange(len(models), device=device), 0
    network = batch_networks(models, device)
    adam = make_adam(network, learning_rates, recipe)
    while True:
        some = splits if len(left) == len(models) else NodeSplits(splits.labels, splits.parts[left])
        best = BestEpoch(*(getattr(result, name)[left] for name in BestEpoch.__annotations__))
        done, patient = _train_stage(network, adam, inputs, some, best, recipe, capture, done)
        for name in BestEpoch.__annotations__:
            getattr(result, name)[left] = getattr(best, name)
        if done >= recipe.epochs or len(patient) == 0:
            return result
        left = left[patient]
        numbers = left.tolist()
        network, old = batch_networks([models[number] for number in numbers], device), adam
        adam = make_adam(network, [learning_rates[number] for number in numbers], recipe)
        adam.resume_from(old, patient)


def _train_stage(
    network: BatchedNetwork,
    adam: Adam,
    inputs: Inputs,
    splits: NodeSplits,
    best: BestEpoch,
    recipe: Recipe,
    capture: bool,
    done: int,
) -> tuple[int, Tensor]:
    """Continue until the last epoch, or until half of the members have stopped. -> epoch, members that have not"""
    labels, parts = splits.labels, splits.parts
    members, device = len(parts), labels.device
    chosen = (parts == 0).nonzero()[:, 1].view(members, -1)  # the training nodes of each member
    each = torch.arange(members, device=device).unsqueeze(1)
    target = labels[chosen].flatten()
    epoch = torch.full((), float(done), device=device)
    patience = recipe.epochs if recipe.patience is None else recipe.patience

    def step() -> None:
        epoch.add_(1)
        logits = network.forward(True, inputs)[each, chosen]
        # the mean of each member, summed over members: a gradient does not depend on how many members there are
        loss = F.cross_entropy(logits.flatten(0, 1), target, reduction="sum") / chosen.shape[1]
        adam.step(torch.autograd.grad(loss, network.parameters))
        with torch.no_grad():
            _update_best(best, epoch, network.forward(False, inputs), labels, parts, patience)

    def patient() -> Tensor:
        return (epoch - best.epoch <= patience).nonzero().squeeze(1)

    done += _repeat(step, recipe.epochs - done, capture, lambda: len(patient()) <= members // 2)
    return done, patient()


def _update_best(best: BestEpoch, epoch: Tensor, logits: Tensor, labels: Tensor, parts: Tensor, patience: int) -> None:
    """Update the best epoch of each member whose validation accuracy improved.

    A member that has run out of patience is still trained with the others, but no longer updated: early stopping.
    """
    hit = logits.argmax(2) == labels
    validation, test = (((parts == part) & hit).sum(1) / (parts == part).sum(1) for part in (1, 2))
    better = (validation > best.validation) & (epoch - best.epoch <= patience)
    for old, new in ((best.validation, validation), (best.test, test), (best.epoch, epoch)):
        old.copy_(torch.where(better, new, old))


def _repeat(step: Callable[[], None], times: int, capture: bool, over: Callable[[], bool]) -> int:
    """Repeat a step a number of times, or until it is over. -> how many times"""
    done = 0
    if capture:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            while done < min(WARMUP, times):
                step()
                done += 1
        torch.cuda.current_stream().wait_stream(side)
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            step()
        step = recorded.replay
    while done < times:
        step()
        done += 1
        if done % CHECK_EVERY == 0 and over():
            break
    return done
