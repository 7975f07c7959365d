"""Building the model that settings and targets describe."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from censnet.errors import SettingsError, quote
from censnet.levels import COLUMN_LEVELS
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.decoder import LinkDecoder
from censnet.nn.directed_decoder import DirectedPairDecoder
from censnet.nn.encoder import CensNet
from censnet.nn.heads import GraphHead, Head, LayerHead, RowHead
from censnet.nn.kernels import KERNELS, Kernel
from censnet.nn.layers import LAYERS, LayerOptions, letters_of
from censnet.nn.model import Encoder, Model
from censnet.nn.oriented_encoder import OrientedNet
from censnet.nn.pair_decoder import PairDecoder
from censnet.nn.vae import VariationalDecoder
from censnet.settings.model_settings import DIFFUSION_STEPS
from censnet.settings.oriented import FeatureStatistics, build_edge_head, build_oriented_encoder, is_oriented
from censnet.settings.schema import ModelSettings
from censnet.tasks.inputs import ModelInputs
from censnet.tasks.targets import Target, target_range

MAX_STEPS = 10_000  # of a kernel: a training would not come to its end
MakeEncoder = Callable[[int, int, ModelSettings], Encoder]  # from node_width, edge_width and settings


@dataclass(frozen=True)
class TaskShape:
    """The task that a model is built for: the widths of the features that it reads, and its targets.

    Args:
        node_width, edge_width: channels of the features, without the inputs that are added to them.
        targets: the targets of nodes, edges and graphs.
        link: whether links are predicted.
        node_features: whether the nodes have features of their own, not only default ones.
        windows: the widths of the windows in time, if edges have times.
        label_delay: time after which the label of an edge is known.
        graph_width: channels of the features of graphs, which the head of graphs reads.
        odd_width: of the features of edges, the last ones, that change sign where the two ends are exchanged. If there
            are any, or a target is oriented, the encoder is `OrientedNet`.
    """

    node_width: int
    edge_width: int
    targets: Sequence[Target] = ()
    link: bool = False
    node_features: bool = True
    windows: Sequence[float] = ()
    label_delay: float = 0.0
    graph_width: int = 0
    odd_width: int = 0


def build_model(
    shape: TaskShape,
    settings: ModelSettings,
    *,
    reference_size: tuple[float, float] | None = None,
    statistics: FeatureStatistics | None = None,
    make_encoder: MakeEncoder | None = None,
) -> Model:
    """Build the encoder, the heads and the decoder, for features of these widths and the `model_inputs` beside them.

    With `model.last_layer_is_head` and targets of nodes or edges alone, the last layer is the head, as in the paper.

    Args:
        shape: the features and the targets.
        settings: of the model.
        reference_size: nodes and edges of an average training graph, by which pooled sums are divided.
        statistics: of the features of oriented data, with the inputs that are added to them.
        make_encoder: builds another encoder in the place of CensNet.
    """
    targets, link, odd_width = shape.targets, shape.link, shape.odd_width
    dropout = settings.dropout_for(bool(targets) and not link and all(target.is_number for target in targets))
    settings = settings.model_copy(update={"dropout": dropout})
    by_level = {level: [target for target in targets if target.level == level] for level in COLUMN_LEVELS}
    by_level = {level: found for level, found in by_level.items() if found}
    oriented = is_oriented(targets, odd_width) and make_encoder is None
    if oriented and link:
        raise SettingsError("links are predicted, expected none beside an oriented column or target: train two models")
    layers, options = settings.layers, layer_options(settings, link)
    inputs = model_inputs(shape, settings)
    if settings.ego_marks:
        check_ego_marks(settings, targets, link, odd_width)
    node_width = shape.node_width + inputs.node_width + settings.ego_marks
    edge_width = shape.edge_width + inputs.edge_width
    last = settings.last_layer_is_head and list(by_level) in (["node"], ["edge"]) and not link
    if last and make_encoder is None and not oriented:  # another encoder has its own last layer
        check_last_layer(settings, next(iter(by_level)))
        layers = layers[:-1]
    encoder: Encoder
    shared = _encoder_options(settings, dropout)
    if make_encoder is not None:
        encoder = make_encoder(node_width, edge_width, settings)
    elif settings.causal is True:
        encoder = build_causal_encoder(node_width, edge_width, inputs, settings, dropout, shape)
    elif oriented:
        encoder = build_oriented_encoder(node_width, edge_width, odd_width, settings, shared, statistics)
    else:
        encoder = CensNet(node_width, edge_width, settings.hidden, layers, options=options, **shared)
    widths = encoder.out_node_width, encoder.out_edge_width
    heads = dict[str, Head]()
    for level, found in by_level.items():
        out_width = sum(target.width for target in found)
        limits = target_range(found) if settings.clip_to_label_range else None
        if layers != settings.layers:
            heads[level] = LayerHead(settings.layers[-1], *widths, out_width, options, limits)
        elif level == "graph":
            heads[level] = head = GraphHead(
                *widths, out_width, settings.pool, settings.pool_from, settings.head, dropout, settings.pool_norm,
                shape.graph_width, limits,
            )  # fmt: skip
            if reference_size is not None:
                head.set_reference_size(*reference_size)
        elif isinstance(encoder, OrientedNet) and level == "edge":
            heads[level] = build_edge_head(encoder, found, settings, dropout, limits)
        else:
            reads_nodes = settings.edge_head_reads_nodes and level == "edge" and not settings.causal
            directed = settings.directed is True and reads_nodes
            heads[level] = RowHead(level, *widths, out_width, settings.head, dropout, reads_nodes, limits, directed)  # type: ignore[arg-type]
    decoder = build_decoder(*widths, settings, shape.node_features) if link else None
    hops = None if settings.ego_hops == "auto" else settings.ego_hops
    return Model(encoder, heads, decoder, settings.feature_dropout, settings.ego_marks, hops)


def _encoder_options(settings: ModelSettings, dropout: float) -> dict[str, Any]:
    """The options that all encoders have, beside their widths and layers."""
    names = ("residual", "activation", "pre_layers", "edge_pre_layer")
    norm = "batch" if settings.norm == "auto" else settings.norm
    return {"dropout": dropout, "norm": norm, **{name: getattr(settings, name) for name in names}}


def build_causal_encoder(
    node_width: int,
    edge_width: int,
    inputs: ModelInputs,
    settings: ModelSettings,
    dropout: float,
    shape: TaskShape,
) -> CausalEncoder:
    """Build the encoder of a history, whose embedding of an edge has the states of both nodes in it."""
    if settings.kernel != "hop" or settings.norm == "batch" or settings.normalization == "symmetric":
        raise SettingsError(
            f"model.causal is true, expected model.kernel hop, model.norm layer and model.normalization row beside it: "
            f"{settings.kernel}, {settings.norm} and {settings.normalization} would use later edges"
        )
    return CausalEncoder(
        node_width,
        edge_width,
        inputs.label_width("edge"),
        settings.hidden,
        settings.layers,
        dropout=dropout,
        norm="layer" if settings.norm == "auto" else settings.norm,
        residual=settings.residual is not False,
        activation=settings.activation,
        windows=shape.windows,
        num_rates=settings.decay_rates,
        label_delay=shape.label_delay,
        triads=settings.triangles is True,
    )


def build_decoder(node_width: int, edge_width: int, settings: ModelSettings, node_features: bool) -> LinkDecoder:
    """Build the link decoder, for embeddings of these widths."""
    if settings.decoder == "inner_product":
        return VariationalDecoder(node_width, settings.latent, settings.positive_weight)
    steps = DIFFUSION_STEPS if settings.diffusion_steps == "auto" else settings.diffusion_steps
    kind = DirectedPairDecoder if settings.directed is True else PairDecoder
    return kind(node_width, edge_width, settings.latent, node_features, settings.decoder == "pairwise", steps)


def has_ordered_links(settings: ModelSettings, directed: bool) -> bool:
    """Whether links of data that are directed, or not, are scored by direction; an inner product is symmetric."""
    return directed and settings.directed is not False and settings.decoder != "inner_product"


def layer_options(settings: ModelSettings, link: bool = False) -> LayerOptions:
    """The options of the graph layers.

    Where links are predicted, layers that cannot be directed, such as those with a kernel of several hops, leave
    direction to the decoder.
    """
    directed = settings.directed is True and (not link or _can_be_directed(settings))
    return LayerOptions(
        settings.bias, settings.self_weight, settings.num_heads, settings.gate, settings.normalization,
        build_kernel(settings), settings.variant, settings.gate_init, directed, settings.edge_content,
        settings.pair_means,
    )  # fmt: skip


def _can_be_directed(settings: ModelSettings) -> bool:
    """Whether directed layers have these options."""
    fits = settings.self_weight in (None, "learned") and settings.normalization in (None, "row")
    return fits and settings.kernel == "hop" and settings.variant == "paper"


def model_inputs(shape: TaskShape, settings: ModelSettings) -> ModelInputs:
    """The inputs that a model has beside the features of the data; "auto" is off until it is resolved."""
    of_rows = [target for target in shape.targets if target.level in ("node", "edge")]
    known = of_rows if settings.known_labels is True else []
    if settings.causal is True:
        of_edges = [target for target in known if target.level == "edge"]
        return ModelInputs(known=of_edges, node_features=shape.node_features, causal=True)
    steps = 0 if settings.position_steps == "auto" else settings.position_steps
    directed, triangles = settings.directed is True, settings.triangles is True
    counts, factors = (bool(known) and each is True for each in (settings.label_counts, settings.label_factors))
    return ModelInputs(
        settings.structural_features, steps, known, directed, triangles, settings.ports, shape.node_features,
        widths=shape.windows if settings.windows is True else (), label_counts=counts, label_factors=factors,
    )  # fmt: skip


def check_ego_marks(settings: ModelSettings, targets: Sequence[Target], link: bool, odd_width: int = 0) -> None:
    """Raise unless nodes alone are predicted, each of which can be marked in a graph of its own."""
    other = next((target for target in targets if target.level != "node"), None)
    why = None
    if other is not None:
        why = f"{other.level}:{other.column} is predicted, and only nodes are marked"
    elif link or not targets:
        why = "links are predicted, and only nodes are marked"
    elif is_oriented(targets, odd_width):
        why = "a column is oriented, and oriented layers read no marks"
    elif settings.known_labels is True:
        why = "model.known_labels is true, and the labels of a neighborhood would be hidden for each node anew"
    if why is not None:
        raise SettingsError(f"model.ego_marks is true, expected false: {why}")


def build_kernel(settings: ModelSettings) -> Kernel:
    """Build the graph kernel, and refuse options that do not fit it."""
    parameters = inspect.signature(KERNELS[settings.kernel]).parameters.values()
    known = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    for name, value in settings.kernel_options.items():
        if name not in known:
            expected = f"expected {' or '.join(known)}" if known else "expected none: it has no options"
            raise SettingsError(f"model.kernel_options has {quote(name)} for the kernel {settings.kernel}, {expected}")
        if isinstance(value, int | float) and value > MAX_STEPS:
            raise SettingsError(f"model.kernel_options has {name} {value}, expected at most {MAX_STEPS:,}")
    try:
        return KERNELS[settings.kernel](**settings.kernel_options)
    except (TypeError, ValueError) as error:
        found = " ".join(str(error).split())[:200]
        raise SettingsError(f"model.kernel_options does not fit the kernel {settings.kernel}: {found}") from None


def check_last_layer(settings: ModelSettings, level: str) -> None:
    """Raise unless the last layer can be the head of a level."""
    layers, least = settings.layers, 1 if settings.pre_layers else 2
    if len(layers) < least or LAYERS[layers[-1]].updates != level:
        letters = " or ".join(letters_of(level))  # type: ignore[arg-type]
        raise SettingsError(
            f"model.layers is {layers!r}, expected two letters or more and {letters} at the end: with "
            f"model.last_layer_is_head the last layer predicts for each {level}"
        )
    if settings.head:
        raise SettingsError(
            f"model.head is {settings.head}, expected none, since with model.last_layer_is_head the last layer "
            "is the head: set model.last_layer_is_head=false"
        )
