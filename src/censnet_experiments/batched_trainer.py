"""Train many networks on one small graph: all splits and settings of a cell at once, or one after the other.

An epoch on a small graph is too little work for a GPU. Networks of one shape that read the same graph differ in their
weights, their training rows and their learning rate alone, so they are trained as one with a further dimension:

- layers of PyTorch Geometric by `torch.vmap` over stacked parameters. What they read of the graph (edges both ways,
  normalised weights) is made once and has no such dimension;
- CensNet by its own members (`censnet.nn.ensemble`), whose activations are (N, M d).

On a CPU a loop over the networks does the same. Both start from the same weights and, without dropout, agree.

This module and what it imports need torch and torch_geometric alone: it takes tensors.
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
from censnet_experiments.adam import Adam
from censnet_experiments.plan import Recipe

Inputs = tuple[Any, ...]
LOOK = 50  # epochs between looks at how many members have run out of patience
WARM_UP = 3  # epochs before a CUDA graph is captured: what is made once and kept has to be there by then


class Classifier(Protocol):
    """A network that answers for every node; `inputs` makes what it reads of a graph, once."""

    def inputs(self, graph: Graph) -> Inputs: ...


@dataclass(frozen=True)
class Rows:
    """Which rows each member learns from, is chosen on and judged on.

    Args:
        labels: (N,), the class of each node; -1 where it has none.
        parts: (M, N), 0 train, 1 validation, 2 test, anything else none. The members have equally many to train on.
    """

    labels: Tensor
    parts: Tensor

    def __post_init__(self) -> None:
        count = (self.parts == 0).sum(1)
        if len(count) == 0 or int(count.min()) != int(count.max()) or int(count.min()) == 0:
            raise ValueError(f"members have {count.tolist()} training rows, expected equally many, and at least one")
        if bool((self.labels[(self.parts >= 0).any(0)] < 0).any()):
            raise ValueError("a row without a label is in a part, expected labels from 0 there")

    def only(self, members: slice) -> Rows:
        """The rows of some of the members."""
        return Rows(self.labels, self.parts[members])

    def to(self, device: torch.device) -> Rows:
        """The same on another device."""
        return Rows(self.labels.to(device), self.parts.to(device))


@dataclass(frozen=True)
class Outcome:
    """For each member, its best accuracy on validation rows, and the test accuracy and number of that epoch. (M,)"""

    validation: Tensor
    test: Tensor
    epoch: Tensor


def train(
    models: Sequence[nn.Module],
    graph: Graph,
    rows: Rows,
    learning_rates: Sequence[float],
    recipe: Recipe,
    *,
    at_once: int | None = None,
    capture: bool = False,
    seed: int = 0,
) -> Outcome:
    """Train a classifier for each member, and give for each the epoch that is best on its validation rows.

    Args:
        models: one for each member, of one shape; they are not changed.
        graph: on the device to train on.
        rows: for each member.
        learning_rates: for each member.
        recipe: epochs and weight decay.
        at_once: how many members are trained together. None is all on a GPU and one on a CPU.
        capture: whether to run an epoch as one CUDA graph, which saves the time of starting its operations.
        seed: of dropout.
    """
    device = graph.ends.device
    at_once = at_once if at_once is not None else (1 if device.type == "cpu" else len(models))
    parts = []
    for start in range(0, len(models), at_once):
        some = slice(start, start + at_once)
        torch.manual_seed(seed + start)
        inputs = cast(Classifier, models[some][0]).inputs(graph)
        parts.append(_train(models[some], inputs, rows.only(some).to(device), learning_rates[some], recipe, capture))
    return Outcome(*(torch.cat([getattr(part, name) for part in parts]).cpu() for name in Outcome.__annotations__))


# -- many networks as one ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """M networks as one: parameters that hold members one after the other, and answers (M, rows, width).

    Args:
        names, parameters: of every parameter.
        forward: whether it is training, and what the networks read -> their answers.
    """

    names: list[str]
    parameters: list[Tensor]
    forward: Callable[[bool, Inputs], Tensor]


def gather(models: Sequence[nn.Module], device: torch.device) -> Network:
    """One network whose members are copies of these. They take what they read unpacked, and give (rows, width)."""
    if len(models) == 1 or getattr(models[0], "has_members", False):
        model = copy.deepcopy(models[0]) if len(models) == 1 else stack_members(models)
        model = model.to(device)

        def forward(training: bool, inputs: Inputs) -> Tensor:
            answers: Tensor = model.train(training)(*inputs)
            return answers.view(answers.shape[0], len(models), -1).transpose(0, 1)

        named = dict(model.named_parameters())
        return Network(list(named), list(named.values()), forward)
    shape = copy.deepcopy(models[0]).to(device)
    every = [dict(model.named_parameters()) for model in models]
    stacked = {name: torch.stack([own[name].detach() for own in every]).to(device) for name in every[0]}
    for parameter in stacked.values():
        parameter.requires_grad_()

    def forward_stacked(training: bool, inputs: Inputs) -> Tensor:
        shape.train(training)
        each = vmap(lambda own: functional_call(shape, own, inputs), randomness="different")
        return cast(Tensor, each(stacked))

    return Network(list(stacked), list(stacked.values()), forward_stacked)


def optimizer(network: Network, learning_rates: Sequence[float], recipe: Recipe) -> Adam:
    """Adam with the recipe's weight decay, each member with its own learning rate."""
    decay = [recipe.weight_decay * (not recipe.decay_first or name.startswith("first.")) for name in network.names]
    return Adam(network.parameters, torch.tensor(learning_rates), decay)


# -- training ---------------------------------------------------------------------------------------------------------


def _train(
    models: Sequence[nn.Module],
    inputs: Inputs,
    rows: Rows,
    learning_rates: Sequence[float],
    recipe: Recipe,
    capture: bool,
) -> Outcome:
    """Train all members; each time half of those that are left have run out of patience, go on with the others."""
    device = rows.labels.device
    outcome = Outcome(*(torch.zeros(len(models), device=device) for _ in range(3)))
    left, done = torch.arange(len(models), device=device), 0
    network = gather(models, device)
    adam = optimizer(network, learning_rates, recipe)
    while True:
        some = rows if len(left) == len(models) else Rows(rows.labels, rows.parts[left])
        best = Outcome(*(getattr(outcome, name)[left] for name in Outcome.__annotations__))
        done, patient = _train_stage(network, adam, inputs, some, best, recipe, capture, done)
        for name in Outcome.__annotations__:
            getattr(outcome, name)[left] = getattr(best, name)
        if done >= recipe.epochs or len(patient) == 0:
            return outcome
        left = left[patient]
        numbers = left.tolist()
        network, old = gather([models[number] for number in numbers], device), adam
        adam = optimizer(network, [learning_rates[number] for number in numbers], recipe)
        adam.go_on(old, patient)


def _train_stage(
    network: Network, adam: Adam, inputs: Inputs, rows: Rows, best: Outcome, recipe: Recipe, capture: bool, done: int
) -> tuple[int, Tensor]:
    """Go on from an epoch until all are done or few members are patient. -> the last epoch, and who is still patient"""
    labels, parts = rows.labels, rows.parts
    members, device = len(parts), labels.device
    chosen = (parts == 0).nonzero()[:, 1].view(members, -1)  # the training rows of each member
    each = torch.arange(members, device=device).unsqueeze(1)
    target = labels[chosen].flatten()
    epoch = torch.full((), float(done), device=device)
    patience = recipe.epochs if recipe.patience is None else recipe.patience

    def step() -> None:
        epoch.add_(1)
        logits = network.forward(True, inputs)[each, chosen]
        # the mean of each member and the sum of members: one's gradient does not feel how many others there are
        loss = F.cross_entropy(logits.flatten(0, 1), target, reduction="sum") / chosen.shape[1]
        adam.step(torch.autograd.grad(loss, network.parameters))
        with torch.no_grad():
            _keep_best(best, epoch, network.forward(False, inputs), labels, parts, patience)

    def patient() -> Tensor:
        return (epoch - best.epoch <= patience).nonzero().squeeze(1)

    done += _repeat(step, recipe.epochs - done, capture, lambda: len(patient()) <= members // 2)
    return done, patient()


def _keep_best(best: Outcome, epoch: Tensor, logits: Tensor, labels: Tensor, parts: Tensor, patience: int) -> None:
    """Where an epoch is better on validation rows than all before it, keep what it does on test rows.

    A member that has run out of patience goes on beside the others, but nothing of it is kept: it is as if it stopped.
    """
    hit = logits.argmax(2) == labels
    validation, test = (((parts == part) & hit).sum(1) / (parts == part).sum(1) for part in (1, 2))
    better = (validation > best.validation) & (epoch - best.epoch <= patience)
    for kept, new in ((best.validation, validation), (best.test, test), (best.epoch, epoch)):
        kept.copy_(torch.where(better, new, kept))


def _repeat(step: Callable[[], None], times: int, capture: bool, over: Callable[[], bool]) -> int:
    """Do a step so many times, or until it is over. -> how many times"""
    done = 0
    if capture:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            while done < min(WARM_UP, times):
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
        if done % LOOK == 0 and over():
            break
    return done
