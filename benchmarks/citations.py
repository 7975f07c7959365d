"""The citation graphs that are measured."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.graphs import power_law
from censnet import Graph
from censnet.data.datasets.citation import read_citation


def citation(name: str) -> tuple[Graph, Tensor, str]:
    """Cora or PubMed with sparse, row-normalized features and 3 edge features, their labels, and which graph it is.

    Where the files cannot be had, a random graph of the same sizes stands in, and is called so.
    """
    nodes, edges, width, density, classes = SIZES[name]
    try:
        found = read_citation(name)
    except ValueError:
        generator = torch.Generator().manual_seed(0)
        dense = (torch.rand(nodes, width, generator=generator) < density).float()
        ends = power_law(nodes, edges, 0.6, ordered=True)
        labels = torch.randint(0, classes, (nodes,), generator=generator)
        return Graph(_rows_to_one(dense), torch.rand(edges, 3, generator=generator), ends), labels, f"like {name}"
    graph = found.graph
    return Graph(_rows_to_one(graph.nodes.to_dense()), graph.edges, graph.ends), found.labels, name


SIZES = {"cora": (2_708, 5_278, 1_433, 0.013, 7), "pubmed": (19_717, 44_324, 500, 0.1, 3)}


def _rows_to_one(dense: Tensor) -> Tensor:
    return (dense / dense.sum(1, keepdim=True).clamp(min=1e-12)).to_sparse_csr()
