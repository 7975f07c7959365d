"""Co-embedding of the nodes and edges of a graph, exactly and in linear time."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from censnet.comparison import compare as compare
    from censnet.comparison import load_comparison as load_comparison
    from censnet.data import load_data as load_data
    from censnet.errors import CensNetError as CensNetError
    from censnet.nn import CensNet as CensNet
    from censnet.nn import CensNetVAE as CensNetVAE
    from censnet.nn import EdgeLayer as EdgeLayer
    from censnet.nn import Model as Model
    from censnet.nn import NodeLayer as NodeLayer
    from censnet.ops.graph import Graph as Graph
    from censnet.ops.graph_set import GraphSet as GraphSet
    from censnet.pipeline import replicate as replicate
    from censnet.pipeline import train as train
    from censnet.runs import Run as Run
    from censnet.runs import load_run as load_run
    from censnet.settings import Settings as Settings
    from censnet.tasks.targets import Target as Target

__version__ = "0.1.0"

_HOMES = {
    "CensNet": "nn",
    "CensNetError": "errors",
    "CensNetVAE": "nn",
    "EdgeLayer": "nn",
    "Graph": "ops.graph",
    "GraphSet": "ops.graph_set",
    "Model": "nn",
    "NodeLayer": "nn",
    "Run": "runs",
    "Settings": "settings",
    "Target": "tasks.targets",
    "compare": "comparison",
    "load_comparison": "comparison",
    "load_data": "data",
    "load_run": "runs",
    "replicate": "pipeline",
    "train": "pipeline",
}
_PACKAGES = (
    *("comparison", "data", "errors", "estimators", "inspection", "nn", "ops", "pipeline"),
    *("pyg", "report", "runs", "selection", "settings", "tasks", "training"),
)
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import what is used when it is used: layers need torch and no pandas, and `censnet --help` needs neither."""
    if name in _PACKAGES:
        return importlib.import_module(f"censnet.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"censnet.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'censnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES, "__version__"]
