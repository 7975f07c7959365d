"""The trainers of the tables: what is chosen on validation rows, what members share, and what a seed fixes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.strategies import integers
from sklearn.metrics import roc_auc_score

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet_experiments.batched_trainer import Compute
from censnet_experiments.data import MoleculeData
from censnet_experiments.models import MOLECULE_MODELS
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.runner import run_plan
from censnet_experiments.table2 import area_under_curve, root_mean_square, train_molecules

CPU = torch.device("cpu")


@pytest.fixture
def molecules() -> MoleculeData:
    """Rings and paths of several sizes; the target is the share of one kind of atom, the second column has blanks."""
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(60):
        size = 3 + number % 5
        ends = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        atoms = torch.nn.functional.one_hot(torch.randint(3, (size,), generator=draw), 3).float()
        graphs.append(Graph(atoms, torch.rand(size - 1, 2, generator=draw), ends))
    share = torch.stack([graph.nodes[:, 0].mean() for graph in graphs])
    parts = torch.tensor([[0] * 40 + [1] * 10 + [2] * 10, [1] * 10 + [2] * 10 + [0] * 40], dtype=torch.int8)
    return MoleculeData(GraphSet.pack(graphs), share.unsqueeze(1), True, {"lipophilicity-80": parts})


@pytest.mark.parametrize("name", MOLECULE_MODELS)
def test_batched_molecule_networks_are_each_alone(name: str, molecules: MoleculeData) -> None:
    """Members with one split see the same batches together as alone, and learn the same."""
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(MOLECULE_MODELS[name](molecules.graphs, 1, hidden=8))
    recipe, rates = Recipe(name, epochs=4, batch_size=16, weight_decay=1e-3), [0.01, 0.02, 0.005]
    parts = molecules.parts["lipophilicity-80"][[0, 0, 0]]
    together = train_molecules(models, molecules, parts, rates, recipe, CPU)
    for member, model in enumerate(models):
        alone = train_molecules([model], molecules, parts[:1], rates[member : member + 1], recipe, CPU)
        torch.testing.assert_close(together.validation[:, member], alone.validation[:, 0])
        torch.testing.assert_close(together.test[:, member], alone.test[:, 0])


def test_a_member_is_trained_on_its_own_split_alone(molecules: MoleculeData) -> None:
    """Other labels of validation and test molecules change no output, even where another member trains on them."""
    torch.manual_seed(0)
    models = [MOLECULE_MODELS["censnet"](molecules.graphs, 1, hidden=8) for _ in range(2)]
    recipe, parts = Recipe("censnet", epochs=2, batch_size=16), molecules.parts["lipophilicity-80"]
    before = train_molecules(models, molecules, parts, [0.01, 0.01], recipe, CPU)
    labels = molecules.labels.clone()
    only_second = (parts[0] == 2) & (parts[1] == 0)
    labels[only_second] += 5
    after = train_molecules(models, replace(molecules, labels=labels), parts, [0.01, 0.01], recipe, CPU)
    torch.testing.assert_close(after.validation[:, 0], before.validation[:, 0])
    assert not torch.equal(after.validation[:, 1], before.validation[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("censnet", {"hidden": 32, "gate_init": "positive"}),
        ("gcn", {"hidden": 16}),
        ("linear", {}),
        ("forest", {"trees": 10}),
    ],
)
def test_every_method_of_table_2_beats_the_mean(
    model: str, options: dict[str, object], molecules: MoleculeData, tmp_path: Path
) -> None:
    plan = Plan("table2", model, Recipe(model, options, (0.02, 0.0005), epochs=30, batch_size=16), runs=2)
    run_plan(plan, ["lipophilicity-80"], molecules, [0, 1], tmp_path, Compute(CPU))
    found = read(tmp_path / "table2" / "lipophilicity-80" / f"{model}.jsonl")
    spread = float(molecules.labels.std())
    assert [record.seed for record in found] == [0, 1]
    assert all(record.metrics["test"] < 0.9 * spread for record in found)
    if model in MOLECULE_MODELS:
        curve = found[0].curves["validation"]
        assert len(curve) == 30
        assert found[0].metrics["validation"] == pytest.approx(min(curve), abs=1e-4)
        assert curve[int(found[0].chosen["epoch"]) - 1] == min(curve)


@pytest.mark.slow
@given(seed=integers(0, 2**16), levels=integers(2, 20))
def test_area_is_scikit_learns_with_ties_and_missing_labels(seed: int, levels: int) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.integers(levels, size=(2, 40, 3)).astype(np.float32)
    labels = draw.choice([0.0, 1.0, np.nan], size=(40, 3))
    chosen = draw.random((2, 40)) < 0.6
    expected = []
    for member in range(2):
        tasks = []
        for task in range(3):
            rows = chosen[member] & ~np.isnan(labels[:, task])
            if len(np.unique(labels[rows, task])) == 2:
                tasks.append(roc_auc_score(labels[rows, task], scores[member, rows, task]))
        expected.append(np.mean(tasks) if tasks else np.nan)
    found = area_under_curve(torch.tensor(scores), torch.tensor(labels), torch.tensor(chosen))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_area_without_both_classes_is_not_a_number() -> None:
    scores = torch.rand(1, 4, 1)
    found = area_under_curve(scores, torch.ones(4, 1), torch.ones(1, 4, dtype=torch.bool))
    assert bool(found.isnan())


def test_root_mean_square_by_hand() -> None:
    found = root_mean_square(
        torch.tensor([[1.0, -1.0, 5.0], [2.0, 0.0, 0.0]]), torch.tensor([[1, 1, 0], [1, 1, 0]]) > 0
    )
    assert found.tolist() == pytest.approx([1.0, 2**0.5])
