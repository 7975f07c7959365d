"""Every model of every table, by the name that specs call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from censnet_experiments.classifiers import CLASSIFIERS
from censnet_experiments.link_models import LINK_MODELS
from censnet_experiments.molecule_networks import CLASSICAL, MOLECULE_NETWORKS

MODELS: dict[str, dict[str, Callable[..., Any]]] = {
    "table1": {**CLASSIFIERS},
    "table2": {**MOLECULE_NETWORKS, **CLASSICAL},
    "table3": {**LINK_MODELS},
    "speed": {**CLASSIFIERS},
}
