"""The paper's sets as a user loads them by name; skipped where `CENSNET_DATA` does not hold them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from censnet.data import load_data
from censnet.data.datasets.citation import read_citation, released_links
from censnet.data.load import read_data
from censnet.data.splits.split_file import Split
from censnet.pipeline import train
from censnet.runs import load_run
from censnet_experiments.data import prepare_link_data, prepare_node_data, prepare_preset_data


@pytest.mark.slow
def test_tox21_by_name_has_a_row_for_each_line_and_a_graph_for_each_molecule(real_data: Path) -> None:
    typed = read_data("tox21", target="graph:NR-AR,SR-p53", features="paper")
    data = typed.encode()
    assert (len(data.tables.graphs), data.count("graph"), len(data.problems["graphs"])) == (7831, 7823, 8)
    assert data.schema.graphs.targets == ["NR-AR", "SR-p53"]
    assert data.labels("graph", "SR-p53").notna().sum() == 6774
    bad = sorted(data.problems["graphs"])
    result = data.results("graph", pd.DataFrame({"number": np.arange(7823)}))
    assert result["mol_id"].tolist() == data.labels("graph", "mol_id").tolist()
    assert result["number"].isna().to_numpy().nonzero()[0].tolist() == bad
    assert result["number"].dropna().tolist() == list(range(7823))

    train = Split.of(np.arange(7831) % 2).train
    encoded = typed.encode({"graph": train})
    kept = set(encoded.schema.vocabulary)
    assert kept < set(data.schema.vocabulary)
    column = [data.schema.vocabulary.index(kind) for kind in encoded.schema.vocabulary]
    assert encoded.graph.edges.equal(data.graph.edges[:, column])
    chosen = data.rows("graph")[train]
    seen = data.graph.subset(chosen[chosen >= 0]).edges.sum(0) > 0
    assert {data.schema.vocabulary[number] for number in seen.nonzero().squeeze(1).tolist()} == kept


def test_citeseer_by_name_keeps_its_isolated_and_unlabeled_papers(real_data: Path) -> None:
    typed = read_data("citeseer", target="node:label")
    data = typed.encode({"node": torch.arange(100)})
    assert (data.graph.num_nodes, data.graph.num_edges, data.graph.node_width, data.graph.edge_width) == (
        3327,
        4552,
        3703,
        3,
    )
    assert data.graph.nodes.layout == torch.sparse_csr
    assert int((data.graph.incidence.edge_count == 0).sum()) == 48
    assert data.labels("node", "label").isna().sum() == 15
    assert data.graph is typed.graph


def test_cora_as_in_the_paper_and_as_released_is_what_table_1_trains_on(real_data: Path) -> None:
    trained, given = prepare_node_data("cora", 1).graph, read_citation("cora").graph
    paper, released = (load_data("cora", target="node:label", features=name) for name in ("paper", "released"))
    for data in (paper, released):
        assert data.graph.nodes.values().equal(trained.nodes.values())
        assert load_data("cora", schema=data.schema).graph.edges.equal(data.graph.edges)
    assert paper.graph.edges.equal(trained.edges)
    assert released.graph.edges.equal(released_links(trained.edges))
    assert load_data("cora").graph.nodes.values().equal(given.nodes.values())


def test_links_of_the_papers_table_are_hidden_as_ours_are(real_data: Path) -> None:
    """What the page of results compares split by split."""
    theirs, ours = prepare_link_data("cora", [0, 3]), prepare_preset_data("links", "cora", 4)
    for seed in (0, 3):
        split = ours.task_data["cora"][seed].links
        assert split is not None
        for links, others, pairs in (
            (split.validation_links, split.validation_negatives, theirs.validation[seed][0]),
            (split.test_links, split.test_negatives, theirs.test[seed][0]),
        ):
            assert torch.cat([links, others], dim=1).equal(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["node:label", "link"])
def test_a_training_on_citations_ends_and_its_run_answers(real_data: Path, tmp_path: Path, target: str) -> None:
    """Their words are sparse, as no table gives them."""
    small = {
        "training.epochs": 1,
        "model.hidden": 8,
        "training.self_training_rounds": 1,
        "training.pseudo_label_weights": 0.0,
    }
    settings = {"training.epochs": 1, "model.hidden": 8} if target == "link" else small
    train("citeseer", target, tmp_path / "run", settings=settings)
    run = load_run(tmp_path / "run")
    assert set(run.evaluate("citeseer")) >= {"validation", "test"}
    level = "link" if target == "link" else "node"
    predicted = run.predict("citeseer", level, keep="ids")
    words = ["unlike_training"] if level == "node" else []  # empty where a row is like others
    assert predicted.drop(columns=words).notna().all(axis=None)
