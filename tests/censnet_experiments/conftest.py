"""A small graph with labels and splits, for which every network of Table 1 can be made."""

from __future__ import annotations

import pytest
import torch

from censnet.ops.graph import Graph
from censnet_experiments.data import NodeData


@pytest.fixture
def citations() -> NodeData:
    """Three classes in three loose clusters, words that tell them apart a little, and four splits."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 3
    pairs = torch.combinations(torch.arange(60))
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    ends = pairs[torch.rand(len(pairs), generator=draw) < torch.where(same, 0.12, 0.02)].t().contiguous()
    words = (torch.rand(60, 12, generator=draw) < 0.2).float()
    words[torch.arange(60), labels] = 1
    nodes = (words / words.sum(1, keepdim=True)).to_sparse_csr()
    first = torch.randint(2, (ends.shape[1],), generator=draw).float()
    edges = torch.stack([torch.rand(ends.shape[1], generator=draw), first, 1 - first], dim=1)
    parts = torch.full((4, 60), 2, dtype=torch.int8)
    for part in parts:
        order = torch.randperm(60, generator=draw)
        part[order[:9]], part[order[9:30]] = 0, 1
    return NodeData(Graph(nodes, edges, ends), labels, {"cora-3": parts}, num_classes=3)
