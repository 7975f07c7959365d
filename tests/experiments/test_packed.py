"""What is packed is what is trained on, and the machine that trains needs none of our readers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet_experiments.packed import LinkData, MoleculeData, NodeData, Pack, read_pack, write_pack
from censnet_experiments.plan import Plan, Recipe
from censnet_experiments.records import read
from censnet_experiments.train_packed import main, train_packed

PLAN = Plan("table1", "gcn", Recipe("gcn", {"hidden": 8}, (0.01, 0.005), epochs=3), runs=2)


def test_a_pack_of_nodes_comes_back_whole(tmp_path: Path, citations: NodeData) -> None:
    write_pack(tmp_path / "cora.safetensors", Pack("table1", "cora", citations, [PLAN]))
    pack = read_pack(tmp_path / "cora.safetensors")
    assert (pack.table, pack.name, list(pack.plans)) == ("table1", "cora", [PLAN])
    assert isinstance(pack.data, NodeData)
    torch.testing.assert_close(pack.data.graph.nodes.to_dense(), citations.graph.nodes.to_dense())
    torch.testing.assert_close(pack.data.graph.ends, citations.graph.ends)
    torch.testing.assert_close(pack.data.parts["cora-3"], citations.parts["cora-3"])
    assert pack.data.num_classes == 3


def test_packs_of_molecules_and_links_come_back_whole(tmp_path: Path, citations: NodeData) -> None:
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
        write_pack(tmp_path / "pack.safetensors", Pack(table, "x", data))
        back = read_pack(tmp_path / "pack.safetensors").data
        assert type(back) is type(data)
        if isinstance(back, MoleculeData):
            torch.testing.assert_close(back.labels, molecules.labels, equal_nan=True)
            torch.testing.assert_close(back.graphs.ends, molecules.graphs.ends)
            assert back.regression
        elif isinstance(back, LinkData):
            torch.testing.assert_close(back.test[0][0], pairs[0])
            torch.testing.assert_close(back.seen[0], torch.arange(5))


def test_training_a_pack_adds_the_missing_records(tmp_path: Path, citations: NodeData) -> None:
    write_pack(tmp_path / "cora.safetensors", Pack("table1", "cora", citations, [PLAN]))
    arguments = [str(tmp_path / "cora.safetensors"), "--results", str(tmp_path / "results"), "--cells", "cora-3"]
    main([*arguments, "--seeds", "1"])
    main(arguments)
    found = read(tmp_path / "results" / "table1" / "cora-3" / "gcn.jsonl")
    assert [record.seed for record in found] == [0, 1]
    assert all(record.num_candidates == 2 and record.chosen["learning_rate"] in (0.01, 0.005) for record in found)
    with pytest.raises(ValueError, match="has no method 'gat', expected some of gcn"):
        train_packed(tmp_path / "cora.safetensors", tmp_path, methods=["gat"])


def test_training_needs_no_reader_of_data_or_specs() -> None:
    """The entry for a machine that only trains imports without what reads molecules and draws figures."""
    blocked = ["rdkit", "typer", "matplotlib"]
    code = f"import sys\nfor name in {blocked}: sys.modules[name] = None\nimport censnet_experiments.train_packed\n"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
