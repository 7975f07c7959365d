"""Every method of Table 2, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor, nn

from censnet.nn import CensNet
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.ops.incidence import Incidence
from censnet_experiments.baselines.molecules import Forest, Linear, MoleculeGCN


class MoleculeCensNet(nn.Module):
    """CensNet on every molecule of a batch, whose answer is the mean of its atoms' answers, as in the paper.

    Args:
        graph: of these widths.
        out_width: the number of targets.
        end: who predicts for an atom. "layer" is the last node layer itself; "head" is a linear map behind it, so that
            all layers have hidden channels.
        options: of `CensNet`.
    """

    has_members = True
    options_of = CensNet

    def __init__(
        self,
        graph: Graph | GraphSet,
        out_width: int,
        end: Literal["layer", "head"] = "layer",
        **options: Any,
    ) -> None:
        super().__init__()
        last = out_width if end == "layer" else None
        self.network = CensNet(graph.node_width, graph.edge_width, out_width=last, **options)
        self.head = nn.Linear(self.network.out_node_width, out_width) if end == "head" else nn.Identity()

    def inputs(self, batch: Graph) -> tuple[Tensor, Tensor, Incidence]:
        """What `forward` takes."""
        return batch.nodes, batch.edges, batch.incidence

    def forward(self, nodes: Tensor, edges: Tensor, incidence: Incidence) -> Tensor:
        """The answers. (graphs, members * out_width)"""
        atoms: Tensor = self.head(self.network(nodes, edges, incidence)[0])
        return incidence.pool(atoms, "node") / incidence.count("node").unsqueeze(1)


MOLECULE_NETWORKS: dict[str, Callable[..., nn.Module]] = {"censnet": MoleculeCensNet, "gcn": MoleculeGCN}
CLASSICAL: dict[str, Callable[..., Forest | Linear]] = {"forest": Forest, "linear": Linear}
