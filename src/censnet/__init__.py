"""Co-embedding of the nodes and edges of a graph, exactly and in linear time."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from censnet.nn import CensNet, CensNetVAE, EdgeLayer, NodeLayer
    from censnet.ops.graph import Graph
    from censnet.ops.graph_set import GraphSet
    from censnet.pipeline import replicate, train
    from censnet.runs import Run, load_run

__version__ = "0.1.0"
__all__ = [
    "CensNet",
    "CensNetVAE",
    "EdgeLayer",
    "Graph",
    "GraphSet",
    "NodeLayer",
    "Run",
    "load_run",
    "replicate",
    "train",
]

_HOMES = {
    "censnet.nn": ("CensNet", "CensNetVAE", "EdgeLayer", "NodeLayer"),
    "censnet.ops.graph": ("Graph", "GraphSet"),
    "censnet.pipeline": ("replicate", "train"),
    "censnet.runs": ("Run", "load_run"),
}
_PARTS = ("data", "estimators", "inspection", "nn", "ops", "pipeline", "pyg", "runs", "settings", "tasks", "training")


def __getattr__(name: str) -> Any:
    """What is asked for is imported then: layers need torch and no pandas, and `censnet --help` needs neither."""
    if name in _PARTS:
        return importlib.import_module(f"censnet.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'censnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_PARTS, "__version__"]
