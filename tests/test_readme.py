"""What README.md shows is what happens."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from pages import ROOT, find_blocks, run_page
from torch_geometric.data import Data

import censnet

README = ROOT / "README.md"


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


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    made = find_blocks((ROOT / "docs" / "quickstart.md").read_text())[0]  # makes payments/ and tomorrow/
    with contextlib.chdir(tmp_path):
        exec(made.text, {})
    assert [block.language for block in find_blocks(README.read_text())] == ["sh", "sh", "python", "python"]
    names = run_page(README, tmp_path)
    payments, predictions = pd.read_csv(tmp_path / "tomorrow" / "edges.csv"), pd.read_csv(tmp_path / "predictions.csv")
    assert predictions["source"].tolist() == payments["source"].tolist()
    assert (predictions["is_fraud_predicted"] == payments["is_fraud"]).mean() > 0.85
    assert len(names["predictions"]) == len(payments)
    assert names["nodes"].shape == (4, 32)  # of the layers' example, which comes last
    assert names["edges"].shape == (5, 32)
    assert names["x"].shape == (3, 32)
    assert names["edge_attr"].shape == (4, 32)


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 150


def test_the_citation_names_the_paper_and_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == censnet.__version__
    assert [author["family-names"] for author in citation["preferred-citation"]["authors"]] == [
        "Jiang",
        "Zhu",
        "Ji",
        "Li",
    ]


@pytest.mark.slow
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
    table = (ROOT / "docs" / "comparison.md").read_text()
    rows = [line.count("|") for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 10
    assert set(rows) == {7}
