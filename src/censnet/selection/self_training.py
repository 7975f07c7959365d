"""Self-training: rounds of training, each with pseudo-labels that models of the previous round predict.

In the first round the candidates train on the labels, with and without pseudo-labels that are made before any model is
trained (`pseudo_labels.py`). In each further round the pseudo-labels are the averaged predictions of models of the
previous round, the best with learned and the best with frozen gates, calibrated on the validation nodes. All candidates
start from the same weights. Validation selects one candidate of all rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from accelerate import Accelerator
from torch import Tensor

from censnet.data.splits.split_file import PARTS
from censnet.nn.chunked import dense
from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.selection.candidates import (
    SUPERVISED,
    Candidate,
    Selection,
    best_of,
    candidate_grid,
    feasible_candidates,
    select_best,
)
from censnet.selection.pseudo_labels import calibrate_confidence, propagate_features, pseudo_labels
from censnet.settings.build import MakeEncoder
from censnet.settings.schema import Settings
from censnet.tasks.uncertainty import probabilities
from censnet.training import processes
from censnet.training.callbacks import Callback
from censnet.training.choose_sampling import choose_sampling
from censnet.training.devices import make_accelerator, total_memory
from censnet.training.ensemble import TrainingFiles, can_batch_members, fit_members, restore_members
from censnet.training.evaluator import infer
from censnet.training.task_data import TaskData, build_model
from censnet.training.time_budget import TimeBudget
from censnet.training.trainer import FitResult

GATES = ("encoder.*.gate_weight", "encoder.*.root_weight", "heads.*.gate_weight", "heads.*.root_weight")
CANDIDATE_SEEDS = 2**32  # distance between the seeds of the candidates of a member: seeds of trainings are below

Results = dict[int, tuple[Model, FitResult]]  # number of a candidate -> its model and result


def fit_ensemble(
    task_data: TaskData,
    settings: Settings,
    members: int = 1,
    *,
    accelerator: Accelerator | None = None,
    files: TrainingFiles | None = None,
    callbacks: Sequence[Callback] = (),
    make_encoder: MakeEncoder | None = None,
    budget: TimeBudget | None = None,
) -> list[Selection]:
    """Train the members of an ensemble from seeds of their own, and select the best candidate of each.

    Args:
        task_data: the data, with an entry for each member.
        settings: of model and training; the first member has `settings.seed`, the second the next, and so on.
        members: size of the ensemble.
        accelerator: device and processes; the best device if None.
        files: where checkpoints and the history are written.
        callbacks: of the training loop.
        make_encoder: makes the encoder, if it is not a CensNet.
        budget: the time of all members and candidates; they share it.
    """
    task_data = task_data.with_inputs(settings.model)
    accelerator = accelerator or make_accelerator(settings.training.precision)
    rounds = _rounds(task_data, settings, members, accelerator.device, make_encoder)
    several = members * sum(map(len, rounds)) > 1
    batched = several and can_batch(task_data, settings, members, accelerator.device)
    if files is not None:
        batched = processes.on_first(partial(files.was_batched, batched))
        if files.history is not None:
            files.history.numbered |= several
    found: list[Results] = [{} for _ in range(members)]
    done: list[Candidate] = []
    soft_labels = None
    if any(candidate.pseudo_label_weight for candidate in rounds[0]):
        soft_labels = initial_pseudo_labels(task_data, accelerator.device)
    for number, candidates in enumerate(rounds):
        if number > 0:
            teachers = [best_per_gate_mode(results, done) for results in found]
            soft_labels = predict_pseudo_labels(teachers, task_data, accelerator.device)
        data = expand_members(task_data, candidates, soft_labels, members)
        places = range(len(done), len(done) + len(candidates))
        seeds = [settings.seed + member + place * CANDIDATE_SEEDS for member in range(members) for place in places]

        def make_model(model: int, data: TaskData = data, seeds: Sequence[int] = seeds) -> Model:
            torch.manual_seed(seeds[model] % CANDIDATE_SEEDS)  # all candidates of a member start alike
            return build_model(data.member(model), settings, make_encoder)

        trained = fit_members(
            make_model, data, settings.training, seeds, batched=batched, accelerator=accelerator,
            files=_of_round(files, number), callbacks=callbacks,
            budget=None if budget is None else budget.share(len(rounds) - number),
        )  # fmt: skip
        for model, result in enumerate(trained):
            found[model // len(candidates)][places[model % len(candidates)]] = result
        done += candidates
    return [select_best(results, done) for results in found]


def restore_ensemble(
    task_data: TaskData, settings: Settings, members: int, files: TrainingFiles, accelerator: Accelerator
) -> list[Selection]:
    """The members of an unfinished training that have completed an epoch, each with its best candidate so far."""
    task_data = task_data.with_inputs(settings.model)
    found: list[Results] = [{} for _ in range(members)]
    done: list[Candidate] = []
    for number, candidates in enumerate(_rounds(task_data, settings, members, accelerator.device, None)):
        data = expand_members(task_data, candidates, None, members)
        restored = restore_members(
            lambda model, data=data: build_model(data.member(model), settings),  # type: ignore[misc]
            members * len(candidates), data, settings.training,
            files.with_prefix(f"round-{number + 1}-" if number else ""), accelerator,
        )  # fmt: skip
        for model, result in restored.items():
            found[model // len(candidates)][len(done) + model % len(candidates)] = result
        done += candidates
    return [select_best(results, done) for results in found if results]


def can_batch(task_data: TaskData, settings: Settings, members: int, device: torch.device) -> bool:
    """Whether all candidates of all members of a round are trained as one batched model."""
    return can_batch_members(task_data, settings, members * max(map(len, candidate_grid(settings.training))), device)


def _of_round(files: TrainingFiles | None, number: int) -> TrainingFiles | None:
    return files.with_prefix(f"round-{number + 1}-") if files is not None and number else files


def _rounds(
    task_data: TaskData, settings: Settings, members: int, device: torch.device, make_encoder: MakeEncoder | None
) -> list[list[Candidate]]:
    """The candidates of each round, as far as they can be trained."""
    rounds = candidate_grid(settings.training)
    if rounds == [[SUPERVISED]]:
        return rounds
    if isinstance(task_data.graph, Graph) and members > 1 and can_batch(task_data, settings, members, device):
        return feasible_candidates(settings, full_batch=True)
    one = task_data.member(0)
    model = build_model(one, settings, make_encoder)
    sampling = choose_sampling(one, settings.training, model, total_memory(device), device.type == "cpu").sampling
    return feasible_candidates(settings, full_batch=sampling == "full")


def initial_pseudo_labels(task_data: TaskData, device: torch.device | str) -> Tensor:
    """Pseudo-labels of the first round, from the labels of each member. -> (n, members, classes)"""
    (target,) = task_data.targets
    assert isinstance(task_data.graph, Graph)
    graph, labels = task_data.graph.to(device), task_data.labels[target.level][:, 0].to(device)
    features = propagate_features(graph)
    found: dict[bytes, Tensor] = {}  # the members of an ensemble have one split
    soft_labels = []
    for codes in task_data.parts[target.level].unbind(1):
        key = codes.cpu().numpy().tobytes()
        if key not in found:
            train, validation = (
                (codes == PARTS.index(part)).nonzero().squeeze(1).to(device) for part in ("train", "validation")
            )
            classes = pseudo_labels(graph, labels, train, validation, len(target.classes), features=features)
            found[key] = classes.to(task_data.parts[target.level].device)
        soft_labels.append(found[key])
    return torch.stack(soft_labels, 1)


def predict_pseudo_labels(
    teachers: Sequence[Sequence[Model]], task_data: TaskData, device: torch.device | str
) -> Tensor:
    """Averaged probabilities of the teachers of each member, calibrated on validation. -> (n, members, classes)"""
    (target,) = task_data.targets
    assert isinstance(task_data.graph, Graph)
    graph, labels = task_data.graph.to(device), task_data.labels[target.level][:, 0].to(device)
    found = []
    for models, codes in zip(teachers, task_data.parts[target.level].unbind(1), strict=True):
        outputs = [dense(infer(model.to(device), graph).by_level[target.level]) for model in models]
        predicted = torch.stack([probabilities(target, each.float()) for each in outputs]).mean(0)
        validation = ((codes.to(device) == PARTS.index("validation")) & ~labels.isnan()).nonzero().squeeze(1)
        accuracy = float((predicted[validation].argmax(1) == labels[validation]).double().mean())
        found.append(calibrate_confidence(predicted, validation, accuracy).to(codes.device))
        for model in models:
            model.cpu()
    return torch.stack(found, 1)


def best_per_gate_mode(results: Mapping[int, tuple[Model, FitResult]], candidates: Sequence[Candidate]) -> list[Model]:
    """Of the candidates of one member in the last round, the best model with learned and with frozen gates."""
    last = [number for number, one in enumerate(candidates) if one.round == candidates[-1].round]
    found = []
    for mode in dict.fromkeys(candidates[number].gates for number in last):
        scores = {number: results[number][1].best[0] for number in last if candidates[number].gates == mode}
        found.append(results[best_of(scores, results[last[0]][1].monitor)][0])
    return found


def expand_members(
    task_data: TaskData, candidates: Sequence[Candidate], soft_labels: Tensor | None, members: int
) -> TaskData:
    """Repeat each member once for each candidate, with its soft labels and frozen gates."""
    times = len(candidates)
    parts = {level: part.repeat_interleave(times, 1) for level, part in task_data.parts.items()}
    frozen = torch.tensor([one.gates == "frozen" for one in candidates]).repeat(members)
    task_data = replace(task_data, parts=parts, frozen=dict.fromkeys(GATES, frozen) if bool(frozen.any()) else {})
    if soft_labels is None:
        return task_data
    soft_label_weight = torch.tensor([one.pseudo_label_weight for one in candidates]).repeat(members)
    return replace(task_data, soft_labels=soft_labels.repeat_interleave(times, 1), soft_label_weight=soft_label_weight)
