"""Exact inference layer by layer, in parts of the edges, where a pass over a whole graph would not fit into memory.

Nodes and their states are all on the device. Edges and their states are in the memory of the machine, and go to the
device a part at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from censnet.nn.chunked import HeadOutputs, join
from censnet.nn.encoder import CensNet
from censnet.nn.heads import RowHead
from censnet.nn.kernels import Hop, PageRank, Power
from censnet.nn.layers import LAYERS
from censnet.nn.model import Model, Outputs
from censnet.ops.graph import Graph
from censnet.ops.parts import PartialIncidence, Parts

EDGE_VALUES = 6  # numbers for each edge and channel that a layer has at once without gradients, its input included


def can_split(model: Model, graph: Graph) -> bool:
    """Whether a model can be computed on parts of a graph: all that it sums over edges are sums at each node."""
    encoder = model.encoder
    return (
        type(encoder) is CensNet
        and encoder.variant == "paper"
        and graph.owner is None
        and model.decoder is None
        and not model.ego_hops
        and all(type(head) is RowHead for head in model.heads.values())
        and all(isinstance(layer.kernel, Hop | Power | PageRank) for layer in encoder.layers)
    )


def edges_at_once(model: Model, graph: Graph, memory: float) -> int:
    """The most edges of a part, so that what a layer has at once takes at most so many bytes."""
    width = max(model.encoder.out_edge_width, model.encoder.out_node_width, graph.edge_width)
    return max(1, int(memory / (4 * EDGE_VALUES * width)))


@torch.no_grad()
def embed_in_parts(model: Model, graph: Graph, most_edges: int) -> tuple[Tensor, Tensor]:
    """The embeddings of the nodes, on the device of the model, and of the edges, on the CPU.

    Args:
        model: not training; see `can_split`.
        graph: anywhere.
        most_edges: of a part, unless one node has more.
    """
    encoder = model.encoder
    assert isinstance(encoder, CensNet)
    device = next(model.parameters()).device
    parts = Parts(graph.incidence, most_edges, device)
    nodes, edges = graph.nodes.to(device), graph.edges
    for pre_layer in encoder.pre_layers:
        nodes = encoder.finish(pre_layer(nodes))
    if encoder.edge_pre_layer is not None and encoder.edge_pre_ends is not None:
        own, of_ends, table = encoder.edge_pre_layer, encoder.edge_pre_ends, nodes
        edges = _by_part(
            parts, lambda part, rows: encoder.finish(own(_take(edges, rows, device)) + part.gather(of_ends(table)))
        )
    for depth, letter in enumerate(encoder.layer_order):
        update = partial(_update, encoder, depth, nodes, edges)
        if LAYERS[letter].updates == "node":  # the sums are over all parts, so that each of them has all nodes
            nodes = next(iter(parts.each(update)))
        else:
            edges = _by_part(parts, update)
    return nodes, edges


def _update(encoder: CensNet, depth: int, nodes: Tensor, edges: Tensor, part: PartialIncidence, rows: Tensor) -> Tensor:
    """The side that a layer updates, of the edges of a part alone."""
    new_nodes, new_edges = encoder.update(depth, nodes, _take(edges, rows, nodes.device), part)
    return new_nodes if LAYERS[encoder.layer_order[depth]].updates == "node" else new_edges


@torch.no_grad()
def infer_in_parts(model: Model, graph: Graph, most_edges: int) -> Outputs:
    """The outputs of a model, as `Model.forward` gives them; the arguments are those of `embed_in_parts`."""
    nodes, edges = embed_in_parts(model, graph, most_edges)
    nothing = torch.empty(graph.num_nodes, 0, device=nodes.device)
    found: dict[str, list[HeadOutputs]] = {}
    unclipped: dict[str, list[HeadOutputs]] = {}
    for start in range(0, max(graph.num_edges, 1), most_edges):
        rows = slice(start, min(start + most_edges, graph.num_edges))
        ends = graph.ends[:, rows].to(nodes.device)
        some = Graph(nothing, nothing.new_empty(ends.shape[1], 0), ends, directed=graph.directed)
        one = edges[rows].to(nodes.device)
        for level, head in model.heads.items():
            if level == "node" and start:
                continue  # the first part had all of them
            raw: HeadOutputs = head(nodes, one, some)
            clipped = head.clip(raw)  # type: ignore[operator]
            found.setdefault(level, []).append(clipped)
            if clipped is not raw:
                unclipped.setdefault(level, []).append(raw)
    return Outputs(
        {level: join(each) for level, each in found.items()},
        None,
        {level: join(each) for level, each in unclipped.items()},
    )


def _by_part(parts: Parts, work: Callable[..., Tensor]) -> Tensor:
    """The result of some work for the edges of each part, on the CPU, in the order of the graph."""
    out: Tensor | None = None
    numbers = iter(range(len(parts.rows)))
    for found in parts.each(work):
        rows = parts.rows[next(numbers)]
        if out is None:
            out = torch.empty(parts.whole.num_edges, found.shape[1], dtype=found.dtype)
        out[rows] = found.cpu()
    assert out is not None
    return out


def _take(edges: Tensor, rows: Tensor, device: torch.device) -> Tensor:
    return edges.index_select(0, rows.to(edges.device)).to(device)
