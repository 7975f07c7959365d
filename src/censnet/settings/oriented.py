"""The model of oriented data: which settings it follows, and how it is built of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from censnet.errors import SettingsError
from censnet.nn.heads import Head
from censnet.nn.oriented_encoder import OrientedNet
from censnet.nn.oriented_head import OrientedHead
from censnet.settings.schema import ModelSettings, Settings
from censnet.tasks.targets import Target

_ONE = "a column or target is oriented, and oriented layers"
UNREAD: dict[
    str, tuple[object, str]
] = {  # setting of the model that oriented layers do not follow -> its value there, and why
    "variant": ("paper", f"{_ONE} are not in the released code"),
    "self_weight": (None, f"{_ONE} have a root weight always"),
    "normalization": (None, f"{_ONE} have means over the edges of a node"),
    "kernel": ("hop", f"{_ONE} go one hop"),
    "kernel_options": ({}, f"{_ONE} go one hop"),
    "gate_init": ("signed", f"{_ONE} have gates of either sign, or bounded ones"),
    "directed": (False, f"{_ONE} have no direction"),
    "pair_means": (False, f"{_ONE} have no direction"),
    "edge_content": (False, f"{_ONE} always read the features of edges"),
    "last_layer_is_head": (False, f"{_ONE} have a head of their own"),
    "known_labels": (False, f"{_ONE} do not read labels"),
    "triangles": (False, f"{_ONE} have no triangles"),
}


class FeatureStatistics(NamedTuple):
    """The features that layers of oriented data read.

    Args:
        edges: features of edges that train.
        node_zero, edge_zero: what the number 0 is in each feature of nodes and edges; NaN for one that is no number.
    """

    edges: Tensor
    node_zero: Tensor
    edge_zero: Tensor


ONE_GRAPH = {"epochs": 600, "patience": 150, "validate_every": 5}  # where an epoch is one step


def is_oriented(targets: Sequence[Target], odd_width: int) -> bool:
    """Whether a model is that of oriented data: a target, or some features of edges, are."""
    return odd_width > 0 or any(target.kind == "oriented" for target in targets)


def without_unread(settings: ModelSettings) -> ModelSettings:
    """The settings, without those of a preset that oriented layers cannot follow."""
    return settings.model_copy(update={name: value for name, (value, _) in UNREAD.items()})


def with_steps(settings: Settings, changed: Collection[str]) -> Settings:
    """The settings for one graph, whose epochs are one step each: as many steps as many graphs have, or about that."""
    own = {name: value for name, value in ONE_GRAPH.items() if f"training.{name}" not in changed}
    return settings if "training.epochs" in changed else settings.with_training(own)


def build_oriented_encoder(
    node_width: int,
    edge_width: int,
    odd_width: int,
    settings: ModelSettings,
    options: Mapping[str, Any],
    statistics: FeatureStatistics | None = None,
) -> OrientedNet:
    """Build the encoder of oriented data, for features of these widths; `options` are those of all encoders."""
    for name, (value, why) in UNREAD.items():
        found = getattr(settings, name)
        if found not in (value, "auto"):
            raise SettingsError(f"model.{name} is {found}, expected {value}, since {why}")
    more = {"heads": settings.num_heads, "gate": settings.gate, "bias": settings.bias, **options}
    more |= {"potentials": settings.potentials, "log_features": settings.log_features}
    more |= {"hidden": settings.hidden, "layers": settings.layers}
    encoder = OrientedNet(node_width, edge_width, odd_width, **more)
    if statistics is not None:
        encoder.set_statistics(*statistics)
    return encoder


def build_edge_head(
    encoder: OrientedNet, targets: Sequence[Target], settings: ModelSettings, dropout: float, limits: Tensor | None
) -> Head:
    """Build the head of edges, whose outputs for oriented targets are odd."""
    odd = [target.kind == "oriented" for target in targets for _ in range(target.width)]
    widths = encoder.out_node_width, encoder.out_edge_width, encoder.out_odd_width
    return OrientedHead(*widths, odd, settings.head, dropout, settings.edge_head_reads_nodes, limits)
