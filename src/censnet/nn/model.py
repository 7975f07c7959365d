"""What is trained, saved and asked: an encoder of nodes and edges, and a head for each kind of answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from censnet.errors import SettingsError
from censnet.nn.chunked import ChunkedOutputs, HeadOutputs, is_too_large
from censnet.nn.dropout import Dropout
from censnet.nn.encoder import CensNet
from censnet.nn.encoders import Encoder, MakeEncoder
from censnet.nn.graph_task import GraphTask
from censnet.nn.kernels import KERNELS
from censnet.nn.layers import EdgeLayer, NodeLayer
from censnet.nn.pair_decoder import PairDecoder, PairInputs
from censnet.nn.row_task import RowTask
from censnet.nn.vae import Latent
from censnet.nn.variational_decoder import VariationalDecoder
from censnet.ops.graph import Graph
from censnet.ops.normalization import by_head
from censnet.ops.sampling import receptive_field
from censnet.ops.sparse import map_values
from censnet.settings.schema import DIFFUSION_STEPS, ModelSettings
from censnet.tasks.targets import Target, target_range

LEVELS = ("node", "edge", "graph")
MOST_STEPS = 10_000  # of a kernel: a training would not come to its end
LinkInputs = Latent | PairInputs  # what pairs are scored from


class Outputs(NamedTuple):
    """The answers of a network: for each level (n, members * width), and for links what pairs are scored from.

    Where there are too many rows and classes for one tensor, the answers of a level are `ChunkedOutputs`. Where answers
    are clipped to the range of training labels, `raw` has them as they were before.
    """

    rows: dict[str, HeadOutputs]
    latent: LinkInputs | None
    raw: Mapping[str, HeadOutputs] = MappingProxyType({})


class Model(nn.Module):
    """A CensNet, or another encoder, with heads for some targets of nodes, edges and graphs, and for links.

    Where the settings ask for it and one side alone is asked about, the last layer is the head, as in the paper.

    Args:
        node_width, edge_width: channels of the features.
        targets: what is predicted.
        link: whether links are predicted.
        settings: of the network.
        members: networks side by side; see `CensNet`.
        features: whether the nodes have features of their own, and none that stand in for them.
        make_encoder: makes what stands in the place of CensNet, if something does.
        graph_width: channels of the features of whole graphs, which the head of graphs reads.
    """

    def __init__(
        self,
        node_width: int,
        edge_width: int,
        targets: Sequence[Target],
        link: bool,
        settings: ModelSettings,
        members: int = 1,
        features: bool = True,
        make_encoder: MakeEncoder | None = None,
        graph_width: int = 0,
    ) -> None:
        super().__init__()
        self.members = members
        self.targets = {level: [t for t in targets if t.level == level] for level in LEVELS}
        self.targets = {level: found for level, found in self.targets.items() if found}
        dropout = settings.dropout_for(
            bool(targets) and not link and all(target.kind == "regression" for target in targets)
        )
        settings = settings.model_copy(update={"dropout": dropout})
        word, shared = settings.layers, _layer_options(settings)
        self.limits = {
            level: target_range(found) if settings.clip_to_label_range else None
            for level, found in self.targets.items()
        }
        self.feature_dropout = Dropout(settings.feature_dropout)
        if members > 1 and link:
            raise ValueError(
                f"members is {members}, expected 1: only answers for rows and graphs can stand side by side"
            )
        level = next(iter(self.targets), "")
        self.last: NodeLayer | EdgeLayer | None = None
        as_head = settings.last_layer_is_head and len(self.targets) == 1 and not link and level != "graph"
        as_head &= make_encoder is None  # the linear end of another network is its own
        if as_head and (len(word) < (1 if settings.pre_layers else 2) or word[-1] != level[0].upper()):
            raise SettingsError(
                f"model.layers is {word!r}, expected two letters or more and {level[0].upper()} at the end: with "
                f"model.last_layer_is_head the last layer answers for each {level}"
            )
        if as_head and settings.head:
            raise SettingsError(
                f"model.head is {settings.head}, expected none, since with model.last_layer_is_head the last layer "
                "is the head: set model.last_layer_is_head=false"
            )
        self.encoder: Encoder
        if make_encoder is not None:
            self.encoder = make_encoder(node_width, edge_width, settings, members)
        else:
            self.encoder = CensNet(
                node_width,
                edge_width,
                settings.hidden,
                word[:-1] if as_head else word,
                dropout=dropout,
                norm=settings.norm,
                residual=settings.residual,
                activation=settings.activation,
                pre_layers=settings.pre_layers,
                edge_pre_layer=settings.edge_pre_layer,
                heads=settings.num_heads,
                members=members,
                **shared,
            )
        widths = self.encoder.out_node_width, self.encoder.out_edge_width
        self.tasks = nn.ModuleDict()
        for level, found in self.targets.items():
            width = sum(target.width for target in found)
            if as_head:
                layer = NodeLayer if level == "node" else EdgeLayer
                self.last = layer(*widths, width, heads=1, members=members, **shared)
            elif level == "graph":
                self.tasks[level] = GraphTask(
                    found, *widths, settings.pool, settings.pool_from, settings.head, dropout, settings.pool_norm,
                    graph_width, members,
                )  # fmt: skip
            else:
                self.tasks[level] = RowTask(
                    level,  # type: ignore[arg-type]
                    found,
                    *widths,
                    settings.head,
                    dropout,
                    edge_head_reads_nodes=settings.edge_head_reads_nodes and level == "edge",
                    members=members,
                )
        if link and settings.decoder != "inner_product":
            diffusion_steps = DIFFUSION_STEPS if settings.diffusion_steps == "auto" else settings.diffusion_steps
            self.tasks["link"] = PairDecoder(
                *widths, settings.latent, features, settings.decoder == "pairwise", diffusion_steps
            )
        elif link:
            self.tasks["link"] = VariationalDecoder(
                self.encoder.out_node_width, settings.latent, settings.positive_weight
            )

    @property
    def link(self) -> bool:
        """Whether links are predicted."""
        return "link" in self.tasks

    @property
    def learns_pairs(self) -> bool:
        """Whether links are learnt from pairs that a step draws, rather than from the graph that it sees."""
        return self.link and isinstance(self.tasks["link"], PairDecoder)

    @property
    def receptive_field(self) -> int:
        """How many hops around a row its answer depends on."""
        encoder, level = self.encoder, next(iter(self.targets), "node")
        word = encoder.word + ("" if self.last is None else level[0].upper())
        return max(
            1,
            receptive_field(word, "edge" if level == "edge" else "node", encoder.steps, encoder.variant == "released"),
        )

    def reset_parameters(self) -> None:
        """Start afresh."""
        for part in (self.encoder, self.last, *self.tasks.values()):
            if part is not None:
                part.reset_parameters()  # type: ignore[operator]

    def embed(self, graph: Graph) -> tuple[Tensor, Tensor]:
        """The embeddings of nodes and edges."""
        nodes = graph.nodes
        if self.training and self.feature_dropout.p and nodes.layout == torch.sparse_csr:
            nodes = map_values(nodes, self.feature_dropout)
        embedded: tuple[Tensor, Tensor] = self.encoder(nodes, graph.edges, graph.incidence)
        return embedded

    def place(self, nodes: Tensor) -> Tensor:
        """The embedding of nodes that is given out: where pairs are scored one by one, what they are scored by."""
        task = self.tasks["link"] if self.link else None
        return task.places(nodes) if isinstance(task, PairDecoder) else nodes

    def forward(self, graph: Graph) -> Outputs:
        """The answers."""
        return self.answer(*self.embed(graph), graph)

    def answer(self, nodes: Tensor, edges: Tensor, graph: Graph) -> Outputs:
        """The answers, from embeddings."""
        rows, raw, latent = dict[str, HeadOutputs](), dict[str, HeadOutputs](), None
        for level in self.targets:
            head = self.last if self.last is not None else self.tasks[level]
            if isinstance(head, RowTask) and is_too_large(len(nodes if level == "node" else edges), head.out_width):
                chunked = self._in_chunks(level, head, head.inputs(nodes, edges, graph.incidence))
                rows[level] = chunked
                if not self.training and self.limits[level] is not None:
                    raw[level] = replace(chunked, finish=lambda rows: rows)
                continue
            whole = (graph.graphs,) if level == "graph" else ()
            answers = head(nodes, edges, graph.incidence, *whole)
            rows[level] = self._within(level, answers)
            if rows[level] is not answers:
                raw[level] = answers
        if self.link:
            task = self.tasks["link"]
            latent = task(nodes, edges, graph) if self.learns_pairs else task(nodes, graph.incidence)
        return Outputs(rows, latent, raw)

    def _in_chunks(self, level: str, task: RowTask, inputs: Tensor) -> ChunkedOutputs:
        training = self.training
        return ChunkedOutputs(
            inputs, task.head, task.out_width, lambda rows: rows if training else self._clip(level, rows), training
        )

    def _within(self, level: str, answers: Tensor) -> Tensor:
        """Answers no further out than training labels are; while training as they are, so that they can be moved."""
        return answers if self.training else self._clip(level, answers)

    def _clip(self, level: str, answers: Tensor) -> Tensor:
        limits = self.limits[level]
        if limits is None:
            return answers
        low, high = limits.to(answers).unbind(0)
        return by_head(answers, self.members).clamp(low, high).flatten(1)

    def link_loss(self, latent: LinkInputs, graph: Graph, links: Tensor | None, others: Tensor | None) -> Tensor:
        """The loss of the links of a graph, or of pairs that were drawn: links, and others that are none."""
        task = self.tasks["link"]
        if isinstance(latent, PairInputs):
            assert isinstance(task, PairDecoder)
            assert links is not None
            assert others is not None
            return task.loss(latent, links, others)
        assert isinstance(task, VariationalDecoder)
        return task.loss(latent, graph.incidence)

    def link_logits(self, latent: LinkInputs, pairs: Tensor) -> Tensor:
        """How likely each pair is a link, as a logit. (2, P) -> (P,)."""
        logits: Tensor = self.tasks["link"].score(latent, pairs.to(latent.places.device))  # type: ignore[operator]
        return logits

    def link_logits_with_all(self, latent: LinkInputs, nodes: Tensor, start: int) -> Tensor:
        """How likely some nodes are linked to every node from `start` on, as logits. (k,) -> (k, N - start)."""
        scores: Callable[..., Tensor] = self.tasks["link"].score_all_pairs  # type: ignore[assignment]
        return scores(latent, nodes.to(latent.places.device), start)


def _layer_options(settings: ModelSettings) -> dict[str, Any]:
    """What the encoder's layers and a last layer that is the head have in common."""
    for name, value in settings.kernel_options.items():
        if isinstance(value, int | float) and value > MOST_STEPS:
            raise SettingsError(f"model.kernel_options has {name} {value}, expected at most {MOST_STEPS:,}")
    try:
        kernel = KERNELS[settings.kernel](**settings.kernel_options)
    except (TypeError, ValueError) as error:
        found = " ".join(str(error).split())[:200]
        raise SettingsError(f"model.kernel_options does not fit the kernel {settings.kernel}: {found}") from None
    return {
        "bias": settings.bias,
        "self_weight": settings.self_weight,
        "gate": settings.gate,
        "gate_init": settings.gate_init,
        "normalization": settings.normalization,
        "kernel": kernel,
        "variant": settings.variant,
    }
