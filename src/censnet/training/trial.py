"""The network that would be trained by default, for `censnet inspect` to see what a step of it costs."""

from __future__ import annotations

from torch import Tensor, nn

from censnet.data.inspect.cost import Network
from censnet.nn.chunked import dense
from censnet.ops.graph import Graph
from censnet.tasks.targets import Level, Target
from censnet.training.changes import make_settings
from censnet.training.config import ModelSettings
from censnet.training.loop.learner import Learner, Outputs

CLASSES = [str(number) for number in range(8)]  # a usual number of them


class Trial(nn.Module):
    """A learner whose answers mean nothing: of one column of a level, or, if None, of links."""

    def __init__(self, graph: Graph, level: Level | None, settings: ModelSettings) -> None:
        super().__init__()
        targets = [] if level is None else [Target(level=level, column="any", kind="classes", classes=CLASSES)]
        widths = graph.node_width, graph.edge_width
        self.learner = Learner(*widths, targets, level is None, settings, graph_width=graph.graph_width)

    def forward(self, graph: Graph) -> Tensor:
        told: Outputs = self.learner(graph)
        if told.latent is None:
            (answers,) = told.rows.values()
            return dense(answers)
        return self.learner.link_loss(told.latent, graph, graph.ends, graph.ends.roll(1, 1))


def default_network(asked: Level | None, link: bool, graphs: int) -> Network:
    """What is trained for a target of this level, or for links; where nothing is asked for, the paper's for nodes."""
    level: Level | None = asked or (None if link else "node")
    settings = make_settings("strong" if asked or link else "paper", level or "link")
    model = settings.model
    return Network(
        name=f"{model.layers} with {model.hidden} units",
        hidden=model.hidden,
        batch=settings.training.batch_size_for(graphs),
        hides=settings.training.mask > 0,
        make=lambda graph: Trial(graph, level, model),
    )
