"""Table 2: properties of molecules. All rates, seeds and settings of a method are trained as one batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet_experiments.baselines.molecules import pooled_features
from censnet_experiments.batched_trainer import batch_networks, make_adam
from censnet_experiments.data import MoleculeData
from censnet_experiments.models import CLASSICAL_MODELS, MOLECULE_MODELS
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record, Run

EVALUATED = 1024  # molecules in a batch of validation or test


def train_runs(plan: Plan[Recipe], runs: Sequence[Run], data: MoleculeData, device: torch.device) -> list[Record]:
    """Train the runs of a method, and record for each the best setting and epoch on its validation set."""
    if plan.recipe.model in CLASSICAL_MODELS:
        return _fit_classical(plan, runs, data)
    start, rates = time.perf_counter(), plan.recipe.learning_rates
    models, parts = [], []
    for cell, seed in runs:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            make = MOLECULE_MODELS[plan.recipe.model]
            models += [make(data.graphs, data.labels.shape[1], **plan.recipe.options)] * len(rates)
        parts += [data.parts[cell][plan.split_seed(seed)]] * len(rates)
    order = runs[0][1]
    curves = train_molecules(models, data, torch.stack(parts), list(rates) * len(runs), plan.recipe, device, order)
    seconds = (time.perf_counter() - start) / len(runs)
    records = []
    for number, run in enumerate(runs):
        members = range(number * len(rates), (number + 1) * len(rates))
        epochs = {member: curves.best_epoch(member, data.regression) for member in members}
        scores = [float(curves.validation[epoch, member]) for member, epoch in epochs.items()]
        best = members[scores.index(min(scores) if data.regression else max(scores))]
        epoch, validation = epochs[best], curves.validation[:, best]
        records.append(
            Record.of(
                plan,
                run,
                {"validation": float(validation[epoch]), "test": float(curves.test[epoch, best])},
                seconds,
                device,
                chosen={"learning_rate": rates[best - members.start], "epoch": epoch + 1},
                num_candidates=len(rates),
                curves={"validation": [round(value, 4) for value in validation.tolist()]},
            )
        )
    return records


def _fit_classical(plan: Plan[Recipe], runs: Sequence[Run], data: MoleculeData) -> list[Record]:
    """Fit the classical models on the CPU, one target after the other."""
    features, labels = pooled_features(data.graphs), data.labels.numpy()
    records = []
    for cell, seed in runs:
        start = time.perf_counter()
        model = CLASSICAL_MODELS[plan.recipe.model](**plan.recipe.options)
        part = data.parts[cell][plan.split_seed(seed)]
        columns = []
        for column in labels.T:
            train = ((part == 0).numpy() & (column == column)).nonzero()[0]  # NaN is not itself
            columns.append(torch.from_numpy(model.predict(features, column, train, data.regression, seed)).float())
        outputs = torch.stack(columns, dim=1).unsqueeze(0)
        zero = torch.zeros(1, 1, 1)
        scores = _evaluate(outputs, data.labels, part.unsqueeze(0), zero, zero + 1, data.regression)
        metrics = {name: float(score) for name, score in zip(("validation", "test"), scores, strict=True)}
        seconds, host = time.perf_counter() - start, torch.device("cpu")
        records.append(Record.of(plan, (cell, seed), metrics, seconds, host, num_candidates=model.num_candidates))
    return records


# -- networks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curves:
    """The validation and test score of each member after every epoch. (epochs, M)"""

    validation: Tensor
    test: Tensor

    def best_epoch(self, member: int, lower: bool) -> int:
        """The best epoch of a member on its validation set, from 0."""
        curve = self.validation[:, member]
        return int((curve.argmin() if lower else curve.argmax()).item())


def train_molecules(
    models: Sequence[nn.Module],
    data: MoleculeData,
    parts: Tensor,
    learning_rates: Sequence[float],
    recipe: Recipe,
    device: torch.device,
    seed: int = 0,
) -> Curves:
    """Train a network for each member on its own training molecules, all by the same batches.

    An epoch covers every molecule that any member trains on, and the loss of a member is the mean over the molecules of
    the batch that are in its own training set. Members with different splits and rates so share each operation.

    Args:
        models: one for each member, of one shape; they are not modified.
        data: the molecules.
        parts: (M, graphs), as in `MoleculeData`.
        learning_rates: of each member.
        recipe: epochs, batch size and weight decay.
        device: for training.
        seed: of the order of molecules and of dropout.
    """
    graphs, labels, parts = data.graphs.to(device), data.labels.to(device), parts.to(device)
    mean, scale = _scaling(labels, parts, data.regression)
    network = batch_networks(models, device)
    adam = make_adam(network, learning_rates, recipe)
    inputs = cast(Any, models[0]).inputs
    torch.manual_seed(seed)
    order = torch.Generator().manual_seed(seed)
    visited = (parts == 0).any(0).nonzero().squeeze(1).cpu()
    evaluated = (parts > 0).any(0).nonzero().squeeze(1)
    scores: list[tuple[Tensor, Tensor]] = []
    for _ in range(recipe.epochs):
        shuffled = visited[torch.randperm(len(visited), generator=order)]
        for numbers in torch.split(shuffled, recipe.batch_size or len(visited)):
            numbers = numbers.to(device)
            outputs = network.forward(True, inputs(graphs.batch(numbers)))
            loss = _loss(outputs, labels[numbers], parts[:, numbers] == 0, mean, scale, data.regression)
            adam.step(torch.autograd.grad(loss, network.parameters))
        with torch.no_grad():
            batches = [graphs.batch(numbers) for numbers in torch.split(evaluated, EVALUATED)]
            outputs = torch.cat([network.forward(False, inputs(batch)) for batch in batches], dim=1)
            scores.append(_evaluate(outputs, labels[evaluated], parts[:, evaluated], mean, scale, data.regression))
    validation, test = (torch.stack([epoch[part] for epoch in scores]).cpu() for part in (0, 1))
    return Curves(validation, test)


def _scaling(labels: Tensor, parts: Tensor, regression: bool) -> tuple[Tensor, Tensor]:
    """The mean and deviation of the training labels of each member; 0 and 1 for binary labels. (M, 1, 1)"""
    if not regression:
        zero = labels.new_zeros(len(parts), 1, 1)
        return zero, zero + 1
    own = torch.where(parts == 0, labels.squeeze(1), torch.nan)
    mean = own.nanmean(1, keepdim=True)
    scale = (own - mean).square().nanmean(1, keepdim=True).sqrt()
    return mean.unsqueeze(2), scale.unsqueeze(2)


def _loss(outputs: Tensor, labels: Tensor, train: Tensor, mean: Tensor, scale: Tensor, regression: bool) -> Tensor:
    """The mean over the labeled training entries of each member, summed over members. (M, B, t), (B, t), (M, B)"""
    known = ~labels.isnan() & train.unsqueeze(2)
    target = torch.where(labels.isnan(), 0, labels).expand_as(outputs)
    if regression:
        each = (outputs - (target - mean) / scale).square()
    else:
        each = F.binary_cross_entropy_with_logits(outputs, target, reduction="none")
    return (torch.where(known, each, 0).sum((1, 2)) / known.sum((1, 2)).clamp(min=1)).sum()


def _evaluate(
    outputs: Tensor, labels: Tensor, parts: Tensor, mean: Tensor, scale: Tensor, regression: bool
) -> tuple[Tensor, Tensor]:
    """The score of each member on its validation and test set. (M,), (M,)"""
    if regression:
        errors = (outputs * scale + mean - labels).squeeze(2)
        return root_mean_square(errors, parts == 1), root_mean_square(errors, parts == 2)
    return area_under_curve(outputs, labels, parts == 1), area_under_curve(outputs, labels, parts == 2)


# -- metrics of many networks --------------------------------------------------------------------------------------


def area_under_curve(scores: Tensor, labels: Tensor, chosen: Tensor) -> Tensor:
    """The mean over tasks of the area under the ROC curve, of all members at once and on the device. -> (M,)

    The area is the share of pairs of a positive and a negative sample in which the positive one has the higher score,
    ties counting half. Tasks with one class are left out; members without any task get NaN.

    Args:
        scores: (M, samples, tasks)
        labels: (samples, tasks), 0 or 1, NaN for none.
        chosen: (M, samples), the samples of each member.

    Example:
        >>> scores = torch.tensor([[[0.1], [0.4], [0.35], [0.8]]])
        >>> labels = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
        >>> area_under_curve(scores, labels, torch.ones(1, 4, dtype=torch.bool))
        tensor([0.7500])
    """
    score = scores.transpose(1, 2).contiguous()  # (M, tasks, samples)
    label, there = labels.t().contiguous(), chosen.unsqueeze(1)
    positive, negative = ((label == value) & there for value in (1, 0))
    ordered = torch.where(negative, score, torch.inf).sort(dim=2).values.contiguous()
    below, to = (torch.searchsorted(ordered, score, right=right) for right in (False, True))
    wins = (torch.where(positive, below + to, 0).sum(2) / 2).to(score.dtype)
    area = wins / (positive.sum(2) * negative.sum(2))  # 0 / 0 where a class is missing
    return area.nanmean(1)


def root_mean_square(errors: Tensor, chosen: Tensor) -> Tensor:
    """The root mean square error over the chosen samples. (M, samples), (M, samples) -> (M,)

    >>> root_mean_square(torch.tensor([[3.0, 4.0, 9.0]]), torch.tensor([[True, True, False]]))
    tensor([3.5355])
    """
    square = torch.where(chosen, errors.square(), 0)
    return (square.sum(1) / chosen.sum(1)).sqrt()
