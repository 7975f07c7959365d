"""Integrated gradients of all features of a neighborhood, by captum."""

from __future__ import annotations

import torch
from torch import Tensor

from censnet.errors import MissingDependencyError
from censnet.explanation.probe import Probe

STEPS = 32


def integrated_gradients(probe: Probe, steps: int = STEPS) -> dict[str, Tensor]:
    """What each feature of each node and edge adds between the baseline and its value.

    The path is a straight line from the baseline, where every row has the mean columns, to the features as they are.
    All attributions add up to the answer minus that at the baseline, up to the error of `steps` points. The known
    labels of a history, between which there is nothing, are on the whole path as they are.

    Args:
        probe: the row.
        steps: points of the path, by the Gauss-Legendre rule.

    Returns:
        node -> (N, d_v), edge -> (E, d_e).
    """
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise MissingDependencyError(
            "integrated gradients need captum, which is not installed: pip install 'censnet[explain]'"
        ) from None
    graph, (node, edge) = probe.place.graph, probe.place.baseline
    inputs = graph.nodes[None], graph.edges[None]
    edges = edge.expand_as(graph.edges).clone()
    if probe.place.label_width:
        edges[:, -probe.place.label_width :] = graph.edges[:, -probe.place.label_width :]
    baselines = node.expand_as(graph.nodes)[None], edges[None]
    for model in probe.models:
        model.eval()
    found = IntegratedGradients(probe.of_features).attribute(
        inputs, baselines, n_steps=steps, method="gausslegendre", internal_batch_size=min(steps, probe.copies)
    )
    return {"node": found[0][0].detach().to(torch.float32), "edge": found[1][0].detach().to(torch.float32)}
