"""Co-embedding of the nodes and edges of a graph, exactly and in linear time."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from censnet.nn import CensNet, CensNetVAE, EdgeLayer, NodeLayer
from censnet.ops.graph import Graph, GraphSet

if TYPE_CHECKING:
    from censnet.training import Run, load_run, replicate, train

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


def __getattr__(name: str) -> Any:
    """What trains is imported when it is asked for: the layers alone need torch and nothing else."""
    if name in ("Run", "load_run", "replicate", "train"):
        return getattr(importlib.import_module("censnet.training"), name)
    raise AttributeError(f"module 'censnet' has no attribute {name!r}")
