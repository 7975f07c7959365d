"""The trainers of the tables: what is chosen on validation rows, what members share, and what a seed fixes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet_experiments import table1, table2, table3
from censnet_experiments.molecule_networks import MOLECULE_NETWORKS
from censnet_experiments.packed import LinkData, MoleculeData, NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.table2 import train_molecules

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


@pytest.mark.parametrize("name", MOLECULE_NETWORKS)
def test_molecule_networks_together_are_each_alone(name: str, molecules: MoleculeData) -> None:
    """Members with one split see the same batches together as alone, and learn the same."""
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(MOLECULE_NETWORKS[name](molecules.graphs, 1, hidden=8))
    recipe, rates = Recipe(name, epochs=4, batch_size=16, weight_decay=1e-3), [0.01, 0.02, 0.005]
    parts = molecules.parts["lipophilicity-80"][[0, 0, 0]]
    together = train_molecules(models, molecules, parts, rates, recipe, CPU)
    for member, model in enumerate(models):
        alone = train_molecules([model], molecules, parts[:1], rates[member : member + 1], recipe, CPU)
        torch.testing.assert_close(together.validation[:, member], alone.validation[:, 0])
        torch.testing.assert_close(together.test[:, member], alone.test[:, 0])


def test_a_member_learns_from_its_own_part_alone(molecules: MoleculeData) -> None:
    """Other labels of validation and test molecules change no answer, even where another member trains on them."""
    torch.manual_seed(0)
    models = [MOLECULE_NETWORKS["censnet"](molecules.graphs, 1, hidden=8) for _ in range(2)]
    recipe, parts = Recipe("censnet", epochs=2, batch_size=16), molecules.parts["lipophilicity-80"]
    before = train_molecules(models, molecules, parts, [0.01, 0.01], recipe, CPU)
    labels = molecules.labels.clone()
    only_second = (parts[0] == 2) & (parts[1] == 0)
    labels[only_second] += 5
    after = train_molecules(models, replace(molecules, labels=labels), parts, [0.01, 0.01], recipe, CPU)
    torch.testing.assert_close(after.validation[:, 0], before.validation[:, 0])
    assert not torch.equal(after.validation[:, 1], before.validation[:, 1])


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
    table2.run_cells(plan, ["lipophilicity-80"], molecules, [0, 1], tmp_path, device=CPU)
    found = read(tmp_path / "table2" / "lipophilicity-80" / f"{model}.jsonl")
    spread = float(molecules.labels.std())
    assert [record.seed for record in found] == [0, 1]
    assert all(record.metrics["test"] < 0.9 * spread for record in found)
    if model in MOLECULE_NETWORKS:
        curve = found[0].curves["validation"]
        assert len(curve) == 30
        assert found[0].metrics["validation"] == pytest.approx(min(curve), abs=1e-4)
        assert curve[int(found[0].chosen["epoch"]) - 1] == min(curve)


def test_table_1_takes_the_setting_that_validation_rows_like_best(citations: NodeData, tmp_path: Path) -> None:
    """The record is the best of two runs with one learning rate each, by validation alone."""
    plan = Plan("table1", "gcn", Recipe("gcn", {"hidden": 8, "dropout": 0.0}, (0.05, 0.0005), epochs=10), runs=2)
    table1.run_cell(plan, "cora-3", citations, [0, 1], tmp_path, device=CPU, at_once=4)
    found = read(tmp_path / "table1" / "cora-3" / "gcn.jsonl")
    for seed in (0, 1):
        alone = {}
        for rate in plan.recipe.learning_rates:
            single = replace(plan, recipe=replace(plan.recipe, learning_rates=(rate,)))
            alone[rate] = table1.train_seeds(single, "cora-3", citations, [seed], CPU)
        best = max(alone, key=lambda rate: float(alone[rate].validation))
        assert found[seed].chosen["learning_rate"] == best
        assert found[seed].metrics["test"] == pytest.approx(float(alone[best].test), abs=1e-5)
        assert found[seed].split_seed == seed


def test_table_3_keeps_one_split_or_draws_it_anew(citations: NodeData, tmp_path: Path) -> None:
    graph = citations.graph
    count = graph.num_edges
    seen, judged = {}, {}
    for seed in (0, 1):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
        seen[seed] = order[: count - 10]
        others = torch.stack([torch.arange(10), torch.arange(30, 40)])
        judged[seed] = torch.cat([graph.ends[:, order[-10:]], others], dim=1), torch.tensor([1.0] * 10 + [0.0] * 10)
    data = LinkData(graph, seen, judged, judged)
    plan = Plan("table3", "vgae", Recipe("vgae", {}, (0.01,), epochs=5), "initialisation", 2)
    table3.run_cell(plan, "cora", data, [0, 1], tmp_path, device=CPU)
    table3.run_cell(replace(plan, method="vgae-splits", varies="split"), "cora", data, [0, 1], tmp_path, device=CPU)
    fixed, drawn = (read(tmp_path / "table3" / "cora" / f"{name}.jsonl") for name in ("vgae", "vgae-splits"))
    assert [record.split_seed for record in fixed] == [0, 0]
    assert [record.split_seed for record in drawn] == [0, 1]
    assert fixed[0].metrics == drawn[0].metrics
    assert fixed[1].metrics != drawn[1].metrics
    assert set(fixed[0].metrics) == {"validation_auc", "validation_ap", "auc", "ap"}
