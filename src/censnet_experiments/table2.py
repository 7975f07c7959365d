"""Table 2: properties of molecules. All rates, seeds and settings of a method are trained at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from censnet_experiments import records
from censnet_experiments.baselines.molecules import pooled_features
from censnet_experiments.batched_trainer import gather, optimizer
from censnet_experiments.measures import area_under_curve, root_mean_square
from censnet_experiments.molecule_networks import CLASSICAL, MOLECULE_NETWORKS
from censnet_experiments.packed import MoleculeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import Record

logger = logging.getLogger(__name__)
JUDGED = 1024  # molecules that are answered for at once
Run = tuple[str, int]  # a cell and a seed


def run_cells(
    plan: Plan[Recipe],
    cells: Sequence[str],
    data: MoleculeData,
    seeds: Sequence[int],
    results: Path,
    *,
    device: torch.device,
    at_once: int | None = None,
) -> None:
    """Add a record for each cell and seed that has none yet.

    Args:
        plan: the method.
        cells: of the data.
        data: with the splits of these seeds.
        seeds: which replicates.
        results: the directory of records.
        device: where to train.
        at_once: how many networks are trained together, all settings of a seed among them. None is all of them on a GPU
            and those of one seed on a CPU. Records are added after each lot, so a run that is stopped loses one lot.
    """
    todo: list[Run] = []
    for cell in cells:
        path = records.record_path(results, plan.table, cell, plan.method)
        todo += [(cell, seed) for seed in records.missing_seeds(path, plan, seeds)]
    num_candidates = len(plan.recipe.learning_rates)
    lot = max(1, (at_once or (1 if device.type == "cpu" else len(todo) * num_candidates)) // num_candidates)
    if plan.recipe.model in CLASSICAL:
        lot = 1
    for start in range(0, len(todo), lot):
        some = todo[start : start + lot]
        learn = _answer if plan.recipe.model in CLASSICAL else _train
        for record in learn(plan, some, data, device):
            records.append(records.record_path(results, plan.table, record.cell, plan.method), [record])
            logger.info("%s %s seed %d: %s", record.cell, plan.method, record.seed, record.metrics)


def _train(plan: Plan[Recipe], runs: Sequence[Run], data: MoleculeData, device: torch.device) -> list[Record]:
    """Train every setting of every run, and take for each run the setting and epoch that validation rows like best."""
    began = time.perf_counter()
    rates = plan.recipe.learning_rates
    models, parts = [], []
    for cell, seed in runs:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            make = MOLECULE_NETWORKS[plan.recipe.model]
            models += [make(data.graphs, data.labels.shape[1], **plan.recipe.options)] * len(rates)
        parts += [data.parts[cell][plan.split_seed(seed)]] * len(rates)
    order = runs[0][1]
    course = train_molecules(models, data, torch.stack(parts), list(rates) * len(runs), plan.recipe, device, order)
    seconds = (time.perf_counter() - began) / len(runs)
    found = []
    for number, (cell, seed) in enumerate(runs):
        members = range(number * len(rates), (number + 1) * len(rates))
        epochs = {member: course.best(member, data.regression) for member in members}
        scores = [float(course.validation[epoch, member]) for member, epoch in epochs.items()]
        best = members[scores.index(min(scores) if data.regression else max(scores))]
        found.append(
            _record(
                plan,
                (cell, seed),
                chosen={"learning_rate": rates[best - members.start], "epoch": epochs[best] + 1},
                num_candidates=len(rates),
                validation=float(course.validation[epochs[best], best]),
                test=float(course.test[epochs[best], best]),
                seconds=seconds,
                device=device,
                curves={"validation": [round(value, 4) for value in course.validation[:, best].tolist()]},
            )
        )
    return found


def _answer(plan: Plan[Recipe], runs: Sequence[Run], data: MoleculeData, device: torch.device) -> list[Record]:
    """The classical models, on the host, one target after the other."""
    features, labels = pooled_features(data.graphs), data.labels.numpy()
    found = []
    for cell, seed in runs:
        began = time.perf_counter()
        model = CLASSICAL[plan.recipe.model](**plan.recipe.options)
        part = data.parts[cell][plan.split_seed(seed)]
        columns = []
        for column in labels.T:
            train = ((part == 0).numpy() & (column == column)).nonzero()[0]  # NaN is not itself
            columns.append(torch.from_numpy(model.answer(features, column, train, data.regression, seed)).float())
        answers = torch.stack(columns, dim=1).unsqueeze(0)
        zero = torch.zeros(1, 1, 1)
        scores = _judge(answers, data.labels, part.unsqueeze(0), zero, zero + 1, data.regression)
        validation, test = (float(score) for score in scores)
        seconds = time.perf_counter() - began
        host = torch.device("cpu")
        found.append(_record(plan, (cell, seed), {}, model.num_candidates, validation, test, seconds, host, {}))
    return found


def _record(
    plan: Plan[Recipe],
    run: Run,
    chosen: dict[str, float],
    num_candidates: int,
    validation: float,
    test: float,
    seconds: float,
    device: torch.device,
    curves: dict[str, list[float]],
) -> Record:
    return Record(
        table=plan.table,
        cell=run[0],
        method=plan.method,
        seed=run[1],
        split_seed=plan.split_seed(run[1]),
        settings=plan.settings(),
        chosen=chosen,
        num_candidates=num_candidates,
        metrics={"validation": round(validation, 5), "test": round(test, 5)},
        seconds=round(seconds, 2),
        device=records.device_name(device),
        versions=records.versions(),
        curves=curves,
    )


# -- networks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """For each member, how good it was on validation and test rows after every epoch. (epochs, M)"""

    validation: Tensor
    test: Tensor

    def best(self, member: int, lower: bool) -> int:
        """The epoch that is best on validation rows, from 0."""
        course = self.validation[:, member]
        return int((course.argmin() if lower else course.argmax()).item())


def train_molecules(
    models: Sequence[nn.Module],
    data: MoleculeData,
    parts: Tensor,
    learning_rates: Sequence[float],
    recipe: Recipe,
    device: torch.device,
    seed: int = 0,
) -> Course:
    """Train a network for each member on its own training molecules, all from the same batches.

    An epoch passes over every molecule that any member trains on, and a member's loss is the mean over those of the
    batch that are in its own training part. So members with other splits and rates still share each operation.

    Args:
        models: one for each member, of one shape; they are not changed.
        data: the molecules.
        parts: (M, graphs), as in `MoleculeData`.
        learning_rates: for each member.
        recipe: epochs, batch size and weight decay.
        device: where to train.
        seed: of the order of molecules and of dropout.
    """
    graphs, labels, parts = data.graphs.to(device), data.labels.to(device), parts.to(device)
    mean, scale = _scaling(labels, parts, data.regression)
    network = gather(models, device)
    adam = optimizer(network, learning_rates, recipe)
    inputs = cast(Any, models[0]).inputs
    torch.manual_seed(seed)
    order = torch.Generator().manual_seed(seed)
    visited = (parts == 0).any(0).nonzero().squeeze(1).cpu()
    judged = (parts > 0).any(0).nonzero().squeeze(1)
    course: list[tuple[Tensor, Tensor]] = []
    for _ in range(recipe.epochs):
        shuffled = visited[torch.randperm(len(visited), generator=order)]
        for numbers in torch.split(shuffled, recipe.batch_size or len(visited)):
            numbers = numbers.to(device)
            answers = network.forward(True, inputs(graphs.batch(numbers)))
            loss = _loss(answers, labels[numbers], parts[:, numbers] == 0, mean, scale, data.regression)
            adam.step(torch.autograd.grad(loss, network.parameters))
        with torch.no_grad():
            batches = [graphs.batch(numbers) for numbers in torch.split(judged, JUDGED)]
            answers = torch.cat([network.forward(False, inputs(batch)) for batch in batches], dim=1)
            course.append(_judge(answers, labels[judged], parts[:, judged], mean, scale, data.regression))
    validation, test = (torch.stack([epoch[part] for epoch in course]).cpu() for part in (0, 1))
    return Course(validation, test)


def _scaling(labels: Tensor, parts: Tensor, regression: bool) -> tuple[Tensor, Tensor]:
    """The mean and deviation of each member's training labels; 0 and 1 for yes or no. (M, 1, 1)"""
    if not regression:
        zero = labels.new_zeros(len(parts), 1, 1)
        return zero, zero + 1
    own = torch.where(parts == 0, labels.squeeze(1), torch.nan)
    mean = own.nanmean(1, keepdim=True)
    scale = (own - mean).square().nanmean(1, keepdim=True).sqrt()
    return mean.unsqueeze(2), scale.unsqueeze(2)


def _loss(answers: Tensor, labels: Tensor, train: Tensor, mean: Tensor, scale: Tensor, regression: bool) -> Tensor:
    """The mean over each member's labelled training entries, added up over members. (M, B, t), (B, t), (M, B)"""
    known = ~labels.isnan() & train.unsqueeze(2)
    target = torch.where(labels.isnan(), 0, labels).expand_as(answers)
    if regression:
        each = (answers - (target - mean) / scale).square()
    else:
        each = F.binary_cross_entropy_with_logits(answers, target, reduction="none")
    return (torch.where(known, each, 0).sum((1, 2)) / known.sum((1, 2)).clamp(min=1)).sum()


def _judge(
    answers: Tensor, labels: Tensor, parts: Tensor, mean: Tensor, scale: Tensor, regression: bool
) -> tuple[Tensor, Tensor]:
    if regression:
        errors = (answers * scale + mean - labels).squeeze(2)
        return root_mean_square(errors, parts == 1), root_mean_square(errors, parts == 2)
    return area_under_curve(answers, labels, parts == 1), area_under_curve(answers, labels, parts == 2)
