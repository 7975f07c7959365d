"""Recorded steps: padding changes nothing but rounding, and a step that is recorded waits for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from samples import payments, quick, shapes, smiles, untrained_model
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from censnet.data.tables.files import Tables
from censnet.nn.model import Model
from censnet.nn.norms import BatchNorm
from censnet.ops.graph_set import GraphSet
from censnet.pipeline.prepare import Prepared, prepare
from censnet.training import trainer
from censnet.training.batch import Batch
from censnet.training.devices import make_accelerator
from censnet.training.graph_batches import GraphBatches, PaddedGraphBatches
from censnet.training.objective import Objective
from censnet.training.padding import Padding, can_pad
from censnet.training.step_graphs import RecordedSteps, Replay, Step, copy_tensors, leaves_padding_out, signature
from censnet.training.trainer import Trainer, fit

CPU = make_accelerator(device="cpu")
MANY = {"graph:ring": shapes(40), "graph:size": smiles(40)}
WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "lift_fresh", "unique_dim", "_unique2", "equal", "item"}


def prepared_graphs(target: str = "graph:ring", data: object = None, **changes: object) -> Prepared:
    return prepare(
        shapes(40) if data is None else data,
        target,
        "strong",
        quick(**{"model__dropout": 0.0, "data__directed": False, **changes}),
        0,
    )


class Operations(TorchDispatchMode):
    """The operations that wait for a GPU, or whose shapes depend on values."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        by_mask = name.startswith("index") and any(
            isinstance(each, Tensor) and each.dtype == torch.bool
            for each in (args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ())
        )
        by_counts = name == "repeat_interleave" and (kwargs or {}).get("output_size") is None
        if name in WAITS or by_mask or by_counts:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> Iterator[list[RecordedSteps]]:
    """Trainings on a CPU that pad and record as those on a GPU do."""
    made: list[RecordedSteps] = []

    class OnCpu(RecordedSteps):
        def __init__(self, step: Any, parameters: Any, repeats: Any) -> None:
            super().__init__(step, parameters, repeats, self.replay)
            made.append(self)

        def replay(self, step: Step, batch: Batch) -> tuple[Replay, Tensor]:
            if fails:
                raise RuntimeError("operation not permitted when stream is capturing\nmore")
            generator, buffers = torch.get_rng_state(), list(step.__self__.model.buffers())  # type: ignore[attr-defined]
            before = [buffer.clone() for buffer in buffers]
            loss = step(copy_tensors(batch, lambda tensor: tensor)).clone()
            gradients = [parameter.grad for parameter in self.parameters]
            torch.set_rng_state(generator)  # a recording computes nothing
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)

            def again() -> None:
                for parameter in self.parameters:
                    parameter.grad = None
                loss.copy_(step(copy_tensors(batch, lambda tensor: tensor)))  # what was cached is computed again
                for gradient, parameter in zip(gradients, self.parameters, strict=True):
                    if gradient is not None:
                        gradient.copy_(parameter.grad)

            return again, loss

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "RecordedSteps", OnCpu)
        patch.setattr(trainer, "can_record", lambda *_: True)
        yield made


# -- batch norm of the rows that are present -------------------------------------------------------------------------


def test_batch_norm_of_present_rows_is_that_of_a_batch_of_them() -> None:
    rows = torch.randn(9, 3, dtype=torch.float64) * 3 + 100
    present = torch.tensor([1, 1, 1, 1, 1, 1, 0, 0, 0], dtype=torch.float64)
    some, every = BatchNorm(3).double(), BatchNorm(3).double()
    for norm in (some, every):
        torch.manual_seed(1)
        nn.init.normal_(norm.weight)
    found, expected = every(rows, present), some(rows[:6])
    torch.testing.assert_close(found[:6], expected, rtol=1e-10, atol=1e-10)
    for name, buffer in some.named_buffers():
        torch.testing.assert_close(dict(every.named_buffers())[name], buffer, rtol=1e-10, atol=1e-10)


def test_its_gradients_are_those_of_the_formula() -> None:
    present = torch.tensor([1, 1, 1, 1, 0], dtype=torch.float64)
    norm = BatchNorm(2).double()

    def of_present(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (rows, present))
        return out[:4]

    inputs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 2), (2,), (2,))]
    assert torch.autograd.gradcheck(of_present, inputs)


# -- padding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", MANY)
def test_padded_batches_have_one_shape_and_the_same_gradients(target: str) -> None:
    prepared = prepared_graphs(target, MANY[target])
    task_data = prepared.task_data
    settings = prepared.settings.training.model_copy(update={"batch_size": 8})
    plain, padded = (kind(task_data, settings, False) for kind in (GraphBatches, PaddedGraphBatches))
    model = untrained_model(prepared).double().train()
    objective = Objective(task_data, settings, model)
    assert leaves_padding_out(model)
    plans = [batches.plan(torch.Generator().manual_seed(0)) for batches in (plain, padded)]
    kinds = set()
    for one, other in zip(*plans, strict=True):
        assert torch.equal(one, other)
        batches = [make.make(one, torch.Generator()) for make in (plain, padded)]
        assert batches[1].graph.num_nodes > batches[0].graph.num_nodes
        kinds.add(signature(batches[1], []))
        results = []
        for batch in batches:
            batch = replace(
                batch, graph=batch.graph.with_features(batch.graph.nodes.double(), batch.graph.edges.double())
            )
            if "present" in vars(batches[1].graph.incidence) and batch.graph.num_nodes == batches[1].graph.num_nodes:
                assert batch.graph.incidence.present
            model.zero_grad()
            buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
            loss = objective(model(batch.graph), batch)
            loss.sum().backward()
            results.append([loss.detach(), *(p.grad for p in model.parameters()), *model.buffers()])
            results[-1] = [each.clone() for each in results[-1]]
            for name, buffer in model.named_buffers():
                buffer.copy_(buffers[name])
        torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)
    assert len(kinds) == len({len(chosen) for chosen in plans[0]})


def test_labels_of_nodes_and_edges_of_other_parts_are_not_in_the_loss_of_a_padded_batch() -> None:
    prepared = prepared_graphs("graph:ring")
    task_data = prepared.task_data
    parts = {"graph": task_data.parts["graph"].clone()}
    padded = PaddedGraphBatches(task_data, prepared.settings.training, False)
    batch = padded.make(padded.index[:3], torch.Generator())
    assert batch.labels["graph"].isnan().sum() == batch.graph.num_graphs - 3
    other = (parts["graph"][:, 0] != 0).nonzero().squeeze(1)[:2]
    assert padded.make(other, torch.Generator()).labels["graph"].isnan().all()


def test_a_batch_of_an_unusual_size_is_not_padded() -> None:
    graphs = prepared_graphs().task_data.graph
    assert isinstance(graphs, GraphSet)
    padding = Padding(graphs, torch.arange(len(graphs)), 4)
    largest = graphs.node_offset.diff().argmax()
    assert padding.fill(torch.arange(4)) is not None
    assert padding.fill(largest.repeat(400)) is None


def test_directed_graphs_and_loops_are_not_padded() -> None:
    graphs = prepared_graphs().task_data.graph
    assert isinstance(graphs, GraphSet)
    assert can_pad(graphs)
    assert not can_pad(replace(graphs, directed=True))
    loops = graphs.ends.clone()
    loops[1, 0] = loops[0, 0]
    assert not can_pad(replace(graphs, ends=loops))


def test_a_model_with_other_batch_norms_is_not_padded() -> None:
    prepared = prepared_graphs(model__pool_norm="batch")
    assert not leaves_padding_out(untrained_model(prepared))


# -- recorded steps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "target"), [(None, "graph:ring"), (smiles(40), "graph:size"), (payments(), "node:tier")]
)
def test_what_is_recorded_waits_for_nothing(data: Tables | None, target: str) -> None:
    prepared = prepared_graphs(target, data, training__batch_size=8)
    model = untrained_model(prepared)
    made = Trainer(model, prepared.task_data, prepared.settings.training, 0, CPU)
    batches: Any = made.batches
    if isinstance(prepared.task_data.graph, GraphSet):
        batches = PaddedGraphBatches(prepared.task_data, prepared.settings.training, False)
    for _ in range(2):  # as in a training: the first steps are not recorded
        batch = batches.make(batches.plan(torch.Generator())[0], torch.Generator())
        made._compute_gradients(batch)
    batch = batches.make(batches.plan(torch.Generator())[0], torch.Generator())
    batch = copy_tensors(batch) if batches.repeats == "shapes" else batch
    with Operations() as operations:
        made._compute_gradients(batch)
    assert operations.found == []


@pytest.mark.parametrize(("data", "target"), [(None, "graph:ring"), (payments(), "node:tier")])
def test_a_training_of_recorded_steps_takes_the_same_steps(
    data: Tables | None, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepared_graphs(target, data, training__batch_size=8, training__epochs=6, model__dropout=0.5)
    found: list[Model] = []
    for fails in (False, True):
        found.append(untrained_model(prepared))
        with recording(monkeypatch, fails) as made:
            fit(found[-1], prepared.task_data, prepared.settings.training, accelerator=CPU)
        assert made[0].fails is fails
        assert bool(made[0].recorded) is not fails
    for one, other in zip(found[0].parameters(), found[1].parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_step_that_cannot_be_recorded_is_taken_as_it_is() -> None:
    parameter = nn.Parameter(torch.ones(1))

    def fail(step: Step, batch: Batch) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    def step(batch: Batch) -> Tensor:
        parameter.grad = torch.full((1,), 3.0)
        return torch.ones(1)

    prepared = prepared_graphs()
    batches = PaddedGraphBatches(prepared.task_data, prepared.settings.training, False)
    steps = RecordedSteps(step, [parameter], "shapes", fail)
    for _ in range(4):
        assert steps(batches.make(batches.index[:4], torch.Generator())) == 1
        assert parameter.grad == 3
    assert steps.fails


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    ("data", "target"), [(None, "graph:ring"), (smiles(40), "graph:size"), (payments(), "node:tier")]
)
def test_steps_are_recorded_on_a_gpu(data: Tables | None, target: str) -> None:
    prepared = prepared_graphs(target, data, training__batch_size=8, training__epochs=8)
    weights = []
    for recorded in (False, True):
        model = untrained_model(prepared)
        settings = prepared.settings.training.model_copy(update={"step_graphs": recorded})
        trainer_ = Trainer(model, prepared.task_data, settings, 0, make_accelerator(device="cuda"))
        trainer_.run()
        steps = trainer_.compute_gradients
        assert isinstance(steps, RecordedSteps) is recorded
        assert not isinstance(steps, RecordedSteps) or (steps.recorded and not steps.fails)
        weights.append({name: tensor.cpu() for name, tensor in model.state_dict().items()})
    torch.testing.assert_close(weights[0], weights[1], rtol=2e-3, atol=2e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_recorded_training_has_the_same_bits_each_time() -> None:
    prepared = prepare(
        smiles(40),
        "graph:size",
        "strong",
        quick(training__batch_size=8, training__epochs=8, training__step_graphs=True),
        0,
    )
    found: list[Model] = []
    for _ in range(2):
        found.append(untrained_model(prepared))
        fit(found[-1], prepared.task_data, prepared.settings.training, accelerator=make_accelerator(device="cuda"))
    for one, other in zip(found[0].parameters(), found[1].parameters(), strict=True):
        assert torch.equal(one, other)
