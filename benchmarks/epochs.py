"""One training epoch of CensNet (N-E-N, 32 channels on both sides) beside the epochs of PyG's layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINEConv, TransformerConv
from torch_geometric.utils import to_undirected

from censnet import CensNet, Graph
from censnet.nn.dropout import dropout
from censnet.ops.sparse import matmul

HIDDEN = 32


class Baseline(nn.Module):
    """Two layers of PyG with ReLU and dropout between them."""

    def __init__(self, make: Callable[[int, int], nn.Module], width: int, classes: int, takes_edges: bool) -> None:
        super().__init__()
        self.first, self.second = make(width, HIDDEN), make(HIDDEN, classes)
        self.takes_edges = takes_edges

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        more = (edge_attr,) if self.takes_edges else ()
        h = F.dropout(self.first(x, edge_index, *more).relu(), 0.5, self.training)
        return self.second(h, edge_index, *more)


class TunedGCN(nn.Module):
    """PyG's GCN given what CensNet has: sparse features with a cached transpose, and the cheap dropout mask."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, HIDDEN))
        nn.init.xavier_uniform_(self.weight)
        self.first = GCNConv(HIDDEN, HIDDEN, cached=True)
        self.first.lin = nn.Identity()
        self.second = GCNConv(HIDDEN, classes, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        h = self.first(matmul(x, self.weight), edge_index)
        return self.second(dropout(h.relu(), 0.5, self.training), edge_index)


def node_logits(model: CensNet, x: Tensor, graph: Graph) -> Tensor:
    return model(x, graph.edges, graph.incidence)[0]


def epochs(graph: Graph, labels: Tensor) -> dict[str, Callable[[], None]]:
    """An epoch of each: zero_grad, forward, loss over 140 nodes, backward, Adam."""
    classes = int(labels.max()) + 1
    dense = graph.nodes.to_dense()
    edge_index, edge_attr = to_undirected(graph.ends, graph.edges)
    width, edge_width = graph.node_width, graph.edge_width
    train = torch.arange(140)
    graph.incidence.csr  # noqa: B018 - the order is made once, before training

    def gine(fan_in: int, fan_out: int) -> nn.Module:
        return GINEConv(nn.Linear(fan_in, fan_out), edge_dim=edge_width)

    peers: dict[str, tuple[nn.Module, Tensor]] = {
        "PyG GCN, dense features": (Baseline(lambda i, o: GCNConv(i, o, cached=True), width, classes, False), dense),
        "PyG GCN, our sparse product and dropout": (TunedGCN(width, classes), graph.nodes),
        "PyG GAT": (
            Baseline(lambda i, o: GATConv(i, o // 4 if o == HIDDEN else o, 4, o == HIDDEN), width, classes, False),
            dense,
        ),
        "PyG GAT, edge features": (
            Baseline(
                lambda i, o: GATConv(i, o // 4 if o == HIDDEN else o, 4, o == HIDDEN, edge_dim=edge_width),
                width,
                classes,
                True,
            ),
            dense,
        ),
        "PyG GINE": (Baseline(gine, width, classes, True), dense),
        "PyG TransformerConv": (
            Baseline(
                lambda i, o: TransformerConv(i, o // 4 if o == HIDDEN else o, 4, o == HIDDEN, edge_dim=edge_width),
                width,
                classes,
                True,
            ),
            dense,
        ),
    }

    def loop(model: nn.Module, forward: Callable[[], Tensor]) -> Callable[[], None]:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

        def epoch() -> None:
            optimizer.zero_grad()
            F.cross_entropy(forward()[train], labels[train]).backward()
            optimizer.step()

        return epoch

    work = {name: loop(model, partial(model, x, edge_index, edge_attr)) for name, (model, x) in peers.items()}
    for name, x in (("CensNet", graph.nodes), ("CensNet, dense features", dense)):
        model = CensNet(width, edge_width, HIDDEN, "NEN", out_width=classes, dropout=0.5)
        work[name] = loop(model, partial(node_logits, model, x, graph))
    return work
