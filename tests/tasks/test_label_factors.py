"""Matrix factorization of known labels: better than offsets, blind to what is hidden, whatever the order of rows."""

from __future__ import annotations

import pytest
import torch

from censnet.errors import SettingsError
from censnet.ops.graph import Graph
from censnet.ops.incidence import Incidence
from censnet.settings.schema import TrainingSettings
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.label_factors import factorize_labels
from censnet.tasks.targets import Target
from censnet.training.batches import make_batches
from censnet.training.task_data import TaskData

USERS, ITEMS = 80, 60
RATING = Target(level="edge", column="rating", kind="regression")


def ratings(seed=0, count=3000):
    """Pairs of users and items, and ratings of offsets, one factor and noise."""
    draw = torch.Generator().manual_seed(seed)
    pair = torch.randperm(USERS * ITEMS, generator=draw)[:count]
    ends = torch.stack([pair // ITEMS, USERS + pair % ITEMS])
    offset, factor = torch.randn(2, USERS + ITEMS, generator=draw)
    values = 0.4 * offset[ends].sum(0) + 0.8 * factor[ends].prod(0) + 0.3 * torch.randn(count, generator=draw)
    return ends, values, torch.rand(count, generator=draw) < 0.8


@pytest.mark.parametrize("directed", [True, False])
def test_factors_explain_what_offsets_do_not(directed):
    ends, values, known = ratings()
    offsets, products = factorize_labels(values, known, Incidence(ends, USERS + ITEMS), directed).T
    held_out = ~known
    error = (offsets - values)[held_out].square().mean(), (offsets + products - values)[held_out].square().mean()
    assert error[0] > 0.5
    assert error[1] < error[0] / 2


def test_labels_that_are_hidden_change_nothing_to_the_last_bit():
    ends, values, known = ratings()
    other = torch.where(known, values, torch.nan)
    one, two = (factorize_labels(each, known, Incidence(ends, USERS + ITEMS), True) for each in (values, other))
    assert one.equal(two)
    assert bool(one.isfinite().all())


@pytest.mark.parametrize("directed", [True, False])
def test_the_order_of_rows_and_nodes_does_not_matter(directed):
    ends, values, known = ratings()
    order, names = torch.randperm(len(values)), torch.randperm(USERS + ITEMS)
    found = factorize_labels(values, known, Incidence(ends, USERS + ITEMS), directed)
    again = factorize_labels(values[order], known[order], Incidence(names[ends[:, order]], USERS + ITEMS), directed)
    torch.testing.assert_close(again, found[order], atol=1e-3, rtol=1e-3)


def test_without_a_direction_the_ends_can_be_exchanged():
    ends, values, known = ratings()
    flip = torch.rand(len(values)) < 0.5
    swapped = torch.where(flip, ends.flip(0), ends)
    one, two = (factorize_labels(values, known, Incidence(each, USERS + ITEMS), False) for each in (ends, swapped))
    torch.testing.assert_close(one, two, atol=1e-3, rtol=1e-3)


def test_nothing_known_predicts_nothing():
    ends, values, known = ratings()
    assert not factorize_labels(values, known & False, Incidence(ends, USERS + ITEMS), True).any()


def test_sampled_subgraphs_are_refused():
    ends, values, known = ratings()
    inputs = ModelInputs(known=[RATING], directed=True, label_factors=True)
    graph = Graph(torch.ones(USERS + ITEMS, 1), torch.ones(len(values), 1), ends, directed=True)
    parts = {"edge": (~known).long().unsqueeze(1)}
    task_data = TaskData(inputs.add(graph), [RATING], {"edge": values.unsqueeze(1)}, parts, inputs=inputs)
    with pytest.raises(SettingsError, match=r"sampling is neighbors, expected full, or model\.label_factors=false"):
        make_batches(task_data, TrainingSettings(sampling="neighbors"), 1)
