"""Batches: the full graph, or subgraphs when it is too large; and the plan of an epoch."""

from __future__ import annotations

import pytest
import torch
from samples import payments, quick

from censnet.nn.model import Model
from censnet.ops.graph import Graph
from censnet.pipeline.prepare import Prepared, prepare
from censnet.settings.build import build_model
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.targets import Target
from censnet.training.batch import even_batches
from censnet.training.batches import make_batches
from censnet.training.choose_sampling import choose_recompute, choose_sampling
from censnet.training.full_batches import CausalBatch
from censnet.training.task_data import TaskData


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(payments(), "edge:fraud", "strong", quick())


def make(prepared: Prepared) -> Model:
    return build_model(prepared.task_data.shape, prepared.settings.model)


@pytest.mark.parametrize(("memory", "expected"), [(2**30, "full"), (2**14, "neighbors")])
def test_a_graph_that_would_fill_the_memory_is_sampled(prepared: Prepared, memory: int, expected: str) -> None:
    chosen = choose_sampling(prepared.task_data, prepared.settings.training, make(prepared), memory)
    assert chosen.sampling == expected


def test_sampling_that_is_set_is_not_overruled(prepared: Prepared) -> None:
    asked = prepared.settings.training.model_copy(update={"sampling": "full"})
    assert choose_sampling(prepared.task_data, asked, make(prepared), 1).sampling == "full"


@pytest.mark.parametrize(
    ("asked", "sampling", "memory", "expected"),
    [
        ("auto", "full", 2**30, False),
        ("auto", "full", 2**14, True),
        ("auto", "neighbors", 2**14, False),
        (True, "full", 2**30, True),
        (False, "full", 2**14, False),
    ],
)
def test_layers_are_recomputed_where_a_full_graph_would_fill_the_memory(
    prepared: Prepared, asked: bool | str, sampling: str, memory: int, expected: bool
) -> None:
    training = prepared.settings.training.model_copy(update={"sampling": sampling, "recompute": asked})
    assert choose_recompute(prepared.task_data, training, make(prepared), memory) is expected


def test_links_need_the_full_graph() -> None:
    linked = prepare(payments(), "link", "strong", quick())
    model = build_model(linked.task_data.shape, linked.settings.model)
    assert choose_sampling(linked.task_data, linked.settings.training, model, 1).sampling == "full"


def test_an_epoch_of_subgraphs_has_at_most_the_steps_set_and_other_samples_each_time(prepared: Prepared) -> None:
    changes = {"sampling": "neighbors", "batch_size": 8, "max_steps_per_epoch": 3}
    batches = make_batches(prepared.task_data, prepared.settings.training.model_copy(update=changes), hops=2)
    plans = [batches.plan(torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert [len(plan) for plan in plans] == [3, 3, 3]
    assert all(torch.equal(*pair) for pair in zip(plans[0], plans[1], strict=True))
    assert not torch.equal(torch.cat(list(plans[0])), torch.cat(list(plans[2])))


@pytest.mark.parametrize(
    ("rows", "size", "sizes"),
    [(9, 4, [4, 5]), (10, 4, [4, 4, 2]), (11, 4, [4, 4, 3]), (3, 4, [3]), (8, 4, [4, 4]), (1, 64, [1])],
)
def test_a_small_last_batch_joins_the_one_before(rows: int, size: int, sizes: list[int]) -> None:
    steps = even_batches(torch.arange(rows), size)
    assert [len(step) for step in steps] == sizes
    assert torch.equal(torch.cat(steps), torch.arange(rows))


def test_stale_steps_show_no_label_after_a_moment_and_predict_what_follows() -> None:
    count = 80
    ends = torch.randint(0, 6, (2, count), generator=torch.Generator().manual_seed(0))
    times = torch.arange(count).double()
    graph = Graph(torch.zeros(6, 1), torch.zeros(count, 1), ends, times=times)
    target = Target(level="edge", column="y", kind="binary", classes=["no", "yes"])
    parts = (torch.arange(count) >= 64).long().unsqueeze(1)
    labels = (torch.arange(count) % 2).float().unsqueeze(1)
    inputs = ModelInputs(known=[target], causal=True)
    data = TaskData(inputs.add(graph), [target], {"edge": labels}, {"edge": parts}, inputs=inputs)
    batches = CausalBatch(data, balanced=False, stale_ratio=0.5)
    draw, pieces = torch.Generator().manual_seed(0), set[tuple[int, int]]()
    for _ in range(60):
        batch = batches.make(torch.empty(0), draw)
        shown = batch.graph.edges[:, 1:].any(1).nonzero().squeeze(1)
        rows = batch.rows["edge"]
        assert torch.equal(batch.labels["edge"], labels[rows])
        first, last = int(rows.min()), int(rows.max())
        assert shown.tolist() == list(range(64 if first == 0 else first))
        pieces.add((first, last))
    assert pieces == {(0, 63)} | {(8 * piece, 8 * piece + 7) for piece in range(2, 8)}
