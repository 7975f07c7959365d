"""Bundles hold what is trained on, and a machine that trains them needs no datasets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer import Typer
from typer.testing import CliRunner

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet_experiments.__main__ import main
from censnet_experiments.bundle import Bundle, read_bundle, write_bundle
from censnet_experiments.data import LinkData, MoleculeData, NodeData
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.runner import train_bundle

PLAN = Plan("table1", "gcn", Recipe("gcn", {"hidden": 8}, (0.01, 0.005), epochs=3), runs=2)


def test_a_bundle_of_nodes_is_read_back(tmp_path: Path, citations: NodeData) -> None:
    write_bundle(tmp_path / "cora.safetensors", Bundle("table1", "cora", citations, [PLAN]))
    bundle = read_bundle(tmp_path / "cora.safetensors")
    assert (bundle.table, bundle.name, list(bundle.plans)) == ("table1", "cora", [PLAN])
    assert isinstance(bundle.data, NodeData)
    torch.testing.assert_close(bundle.data.graph.nodes.to_dense(), citations.graph.nodes.to_dense())
    torch.testing.assert_close(bundle.data.graph.ends, citations.graph.ends)
    torch.testing.assert_close(bundle.data.parts["cora-3"], citations.parts["cora-3"])
    assert bundle.data.num_classes == 3


def test_bundles_of_molecules_and_links_are_read_back(tmp_path: Path, citations: NodeData) -> None:
    path = Graph(torch.ones(3, 2), torch.ones(2, 1), torch.tensor([[0, 1], [1, 2]]))
    molecules = MoleculeData(
        GraphSet.pack([path, path]),
        torch.tensor([[1.0], [torch.nan]]),
        True,
        {"lipophilicity-80": torch.tensor([[0, 1]], dtype=torch.int8)},
    )
    pairs = torch.tensor([[0, 1], [2, 3]]), torch.tensor([1.0, 0.0])
    links = LinkData(citations.graph, {0: torch.arange(5)}, {0: pairs}, {0: pairs})
    for table, data in (("table2", molecules), ("table3", links)):
        write_bundle(tmp_path / "bundle.safetensors", Bundle(table, "x", data))
        back = read_bundle(tmp_path / "bundle.safetensors").data
        assert type(back) is type(data)
        if isinstance(back, MoleculeData):
            torch.testing.assert_close(back.labels, molecules.labels, equal_nan=True)
            torch.testing.assert_close(back.graphs.ends, molecules.graphs.ends)
            assert back.regression
        elif isinstance(back, LinkData):
            torch.testing.assert_close(back.test[0][0], pairs[0])
            torch.testing.assert_close(back.train[0], torch.arange(5))


def test_training_a_bundle_adds_the_missing_records(tmp_path: Path, citations: NodeData) -> None:
    write_bundle(tmp_path / "cora.safetensors", Bundle("table1", "cora", citations, [PLAN]))
    app = Typer()
    app.command()(main)
    arguments = [str(tmp_path / "cora.safetensors"), "--results", str(tmp_path / "results"), "--cell", "cora-3"]
    for more in (["--seeds", "1"], []):
        assert CliRunner().invoke(app, [*arguments, *more]).exit_code == 0
    found = read(tmp_path / "results" / "table1" / "cora-3" / "gcn.jsonl")
    assert [record.seed for record in found] == [0, 1]
    assert all(record.num_candidates == 2 and record.chosen["learning_rate"] in (0.01, 0.005) for record in found)
    with pytest.raises(ValueError, match="has no method 'gat', expected some of gcn"):
        train_bundle(tmp_path / "cora.safetensors", tmp_path, methods=["gat"])


@pytest.mark.slow
def test_training_needs_no_rdkit_and_no_matplotlib() -> None:
    """A machine that only trains needs neither rdkit nor matplotlib, and from Python no typer."""
    code = (
        "import sys\n"
        "for name in ['rdkit', 'matplotlib', 'typer']: sys.modules[name] = None\n"
        "import censnet_experiments.runner\n"
        "del sys.modules['typer']\n"
        "import censnet_experiments.__main__\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
