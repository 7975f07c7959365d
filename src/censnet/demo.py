"""`make demo`: on Zachary's karate club, told the side of four members, CensNet and a GCN find the others' sides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pandas as pd
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.nn import GCN
from torch_geometric.utils import to_undirected

from censnet.data.karate import read_karate
from censnet.nn.encoder import CensNet
from censnet.ops.graph import Graph

OUT = Path("runs/demo")
LABELLED = torch.tensor([0, 5, 32, 33])  # two of each side: the instructor and the president among them
SEEDS = 10


def edge_features(ends: Tensor, num_nodes: int) -> Tensor:
    """For each friendship, a constant and how many friends the two have in common, as a share of those they have."""
    friends = torch.zeros(num_nodes, num_nodes).index_put((ends[0], ends[1]), torch.ones(ends.shape[1]))
    friends = friends + friends.t()
    common = (friends[ends[0]] * friends[ends[1]]).sum(1)
    either = ((friends[ends[0]] + friends[ends[1]]) > 0).sum(1)
    return torch.stack([torch.ones_like(common), common / either], dim=1)


def fit(model: torch.nn.Module, logits: Callable[[], Tensor], labels: Tensor) -> Tensor:
    """Train on the labelled members; what the model then says of all."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(200):
        optimizer.zero_grad()
        F.cross_entropy(logits()[LABELLED], labels[LABELLED]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return logits()


def node_logits(model: CensNet, graph: Graph) -> Tensor:
    """What the last node layer says."""
    nodes, _ = model(graph.nodes, graph.edges, graph.incidence)
    return cast(Tensor, nodes)


def main() -> None:
    """Train both ten times, print their accuracy, write the predictions and the embeddings of the last CensNet."""
    karate = read_karate()
    labels = karate.labels
    graph = Graph(torch.eye(len(labels)), edge_features(karate.ends, len(labels)), karate.ends)
    edge_index = to_undirected(graph.ends)
    hidden = torch.ones(len(labels), dtype=torch.bool).index_fill(0, LABELLED, False)
    scores: dict[str, list[float]] = {"CensNet": [], "GCN": []}
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        gcn = GCN(graph.node_width, 16, 2, 2, dropout=0.5)
        censnet = CensNet(graph.node_width, 2, 16, "NEN", out_width=2, dropout=0.5, gate="bounded", self_weight="one")
        answers = {
            "GCN": fit(gcn, partial(gcn, graph.nodes, edge_index), labels),
            "CensNet": fit(censnet, partial(node_logits, censnet, graph), labels),
        }
        for name, answer in answers.items():
            scores[name].append(float((answer.argmax(1) == labels)[hidden].float().mean()))
    table = Table("model", "accuracy", "spread", title=f"Karate club, 4 of 34 labelled, {SEEDS} seeds")
    for name, values in scores.items():
        found = torch.tensor(values)
        table.add_row(name, f"{100 * found.mean():.1f} %", f"{100 * found.std():.1f}")
    console = Console()
    console.print(table)
    write(graph, censnet, answers["CensNet"], labels)
    console.print(f"predictions, and embeddings of nodes and edges: {OUT}/")


def write(graph: Graph, model: CensNet, answer: Tensor, labels: Tensor) -> None:
    """One row for each node and each edge."""
    OUT.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        nodes, edges = model(graph.nodes, graph.edges, graph.incidence)
    probability = answer.softmax(1)[:, 1]
    rows = pd.DataFrame({"id": range(len(labels)), "side": labels, "predicted": answer.argmax(1), "p": probability})
    rows.to_csv(OUT / "predictions.csv", index=False)
    pd.DataFrame(nodes.numpy()).rename_axis("id").to_csv(OUT / "nodes.csv")
    ends = pd.DataFrame({"source": graph.ends[0], "target": graph.ends[1]})
    ends.join(pd.DataFrame(edges.numpy())).to_csv(OUT / "edges.csv", index=False)


if __name__ == "__main__":
    main()
