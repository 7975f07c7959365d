"""What README.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from pages import ROOT, find_blocks, run_page
from torch_geometric.data import Data

import censnet

README = ROOT / "README.md"


def make_molecules(folder: Path) -> None:
    rng = np.random.default_rng(0)
    ends = rng.choice(["O", "N", "F"], 12)
    length = rng.integers(1, 6, 12)
    smiles = ["C" * int(number) + end for number, end in zip(length, ends, strict=True)]
    pd.DataFrame({"smiles": smiles, "logd": length + 0.25}).to_csv(folder / "molecules.csv", index=False)
    pd.DataFrame({"smiles": ["CCO", "not one"]}).to_csv(folder / "new.csv", index=False)


def make_payments(folder: Path, seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    accounts = np.array(list("abcdefgh"))
    source = rng.integers(0, 8, rows)
    table = pd.DataFrame({"source": accounts[source], "target": accounts[(source + rng.integers(1, 8, rows)) % 8]})
    table["amount"] = rng.uniform(1, 100, rows)
    folder.mkdir()
    table.assign(is_fraud=(table["amount"] > 50).astype(int)).to_csv(folder / "edges.csv", index=False)


def make_graph() -> Data:
    ends = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 0]])
    masks = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2])
    return Data(
        x=torch.arange(24.0).view(8, 3).sin(),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        edge_attr=torch.ones(16, 1),
        y=torch.tensor([0, 1, 0, 1, 0, 1, 0, 1]),
        train_mask=masks == 0,
        val_mask=masks == 1,
        test_mask=masks == 2,
    )


def test_the_examples_run(tmp_path: Path) -> None:
    make_molecules(tmp_path)
    make_payments(tmp_path / "payments", 0, 40)
    make_payments(tmp_path / "tomorrow", 1, 5)
    names: dict[str, Any] = {"censnet": censnet, "data": make_graph()}
    blocks = find_blocks(README.read_text())
    assert [block.language for block in blocks] == ["sh", "sh", "python", "python", "python"]
    run_page(README, tmp_path, names)
    answers = pd.read_csv(tmp_path / "predictions.csv")
    assert answers["smiles"].tolist() == ["CCO", "not one"]
    assert answers["logd_predicted"].notna().tolist() == [True, False]
    assert len(pd.read_parquet(tmp_path / "embeddings" / "graphs.parquet")) == 2
    tomorrow = pd.read_csv(tmp_path / "tomorrow" / "edges.csv")
    frauds = pd.read_csv(tmp_path / "answers.csv")
    assert frauds["source"].tolist() == tomorrow["source"].tolist()
    assert set(frauds["is_fraud_predicted"]) <= {0, 1}
    assert len(names["answers"]) == 8
    assert names["run"].splits["split"].tolist() == ["train"] * 4 + ["validation"] * 2 + ["test"] * 2
    assert names["nodes"].shape == (4, 32)  # of the layers' example, which comes last
    assert names["edges"].shape == (5, 32)
    assert names["x"].shape == (8, 32)


def test_embeddings_have_a_row_for_each_column_of_edge_index() -> None:
    data = make_graph()
    run = censnet.train(data, "node:y", settings={"training.epochs": 1})
    edges = run.embed(data).edges
    assert edges[["source", "target"]].to_numpy().T.tolist() == data.edge_index.tolist()


@pytest.mark.parametrize("page", [README, *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    assert [link for link in links if not link.startswith("http") and not (page.parent / link).exists()] == []


def test_the_table_of_peers_is_whole() -> None:
    table = README.read_text().split("## Beside its peers")[1].split("## ")[0]
    rows = [line.count("|") for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 10
    assert set(rows) == {7}
