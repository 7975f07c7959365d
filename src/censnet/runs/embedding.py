"""Embeddings of nodes, edges and graphs, as tensors and as tables behind the user's ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from censnet.data.dataset import Dataset, rename_taken
from censnet.data.molecules.assemble import smiles_of
from censnet.data.molecules.featurize import atom_positions
from censnet.levels import Level
from censnet.nn.heads import GraphHead
from censnet.nn.model import Model
from censnet.nn.parts import embed_in_parts
from censnet.ops.ego import ego_batches, ego_graphs, mark_egos
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.training.evaluator import batch_rows, edges_of_part, graph_batches

ENDS = ("source", "target")


class Embeddings(NamedTuple):
    """A table for each level: the user's ids, then the channels `e0`, `e1`, ... Graphs only where there are many.

    Of molecules each table begins with `row`, the row of the input from 1; behind the ids, nodes have `atom`, and edges
    have `bond` and the atoms `source` and `target`, counted from 0 as they stand in the SMILES.
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame
    graphs: pd.DataFrame | None = None


def embedding_tables(dataset: Dataset, found: Sequence[tuple[Tensor, Tensor, Tensor | None]]) -> Embeddings:
    """Tables of the members' embeddings, concatenated."""
    tables = {}
    for table, parts in zip(Embeddings._fields, zip(*found, strict=True), strict=True):
        if parts[0] is not None:
            values = torch.cat(parts, dim=1)
            frame = pd.DataFrame(values.numpy(), columns=[f"e{channel}" for channel in range(values.shape[1])])
            tables[table] = embedding_table(dataset, Level.of_table(table), frame)
    return Embeddings(**tables)


def flip_odd_channels(dataset: Dataset, edges: pd.DataFrame, models: Sequence[Model]) -> pd.DataFrame:
    """The embeddings of edges, of which a second row, with the ends in the opposite order, has odd channels negated."""
    flipped = dataset.is_flipped
    widths = [(model.encoder.out_edge_width, getattr(model.encoder, "out_odd_width", 0)) for model in models]
    odd = [channel >= width - last for width, last in widths for channel in range(width)]
    names = [f"e{channel}" for channel, is_odd in enumerate(odd) if is_odd]
    if flipped is None or not names:
        return edges
    edges = edges.copy()
    edges.loc[flipped, names] = -edges.loc[flipped, names]
    return edges


def embedding_table(dataset: Dataset, level: str, values: pd.DataFrame) -> pd.DataFrame:
    """Embeddings behind the user's ids. For molecules the first column is `row`, from 1, to join the three tables."""
    frames = dataset.tables.frames()
    if Level(level).table not in frames:
        return _atoms_or_bonds(dataset, level, values)
    found = dataset.results(level, values, keep="ids")
    if dataset.schema.smiles is None or Level(level) is not Level.GRAPH:
        return found
    found = found.rename(columns=rename_taken(found.columns, ["row"]))
    return pd.concat([pd.Series(np.arange(1, len(found) + 1), name="row"), found], axis=1)


def _atoms_or_bonds(dataset: Dataset, level: str, values: pd.DataFrame) -> pd.DataFrame:
    """The row of each molecule and its ids, and the position of the atom or the bond in the SMILES, from 0."""
    graph, frame = dataset.graph, dataset.tables.frames()["graphs"]
    assert isinstance(graph, GraphSet)
    owner, offset = Level(level).owners(graph), Level(level).offset(graph)
    row, rows = torch.full((len(graph),), -1), dataset.rows("graph")
    row[rows[rows >= 0]] = (rows >= 0).nonzero().squeeze(1)
    inside = (torch.arange(len(owner)) - offset[owner]).numpy()
    if dataset.schema.smiles is None:
        where = {level: inside} | ({} if level == "node" else dict(zip(ENDS, graph.ends.numpy(), strict=True)))
    else:
        written = atom_positions(smiles_of(frame, dataset.schema.smiles), reading=dataset.schema.reading)
        position = np.concatenate([np.asarray(found, dtype=np.int64) for found in written])
        if level == "node":
            where = {"atom": position}
        else:
            ends = position[(graph.ends + graph.node_offset[owner]).numpy()]
            where = {"bond": inside, **dict(zip(ENDS, ends, strict=True))}
    ids = frame[dataset.id_columns("graph")].iloc[row[owner].numpy()].reset_index(drop=True)
    ids = ids.rename(columns=rename_taken(ids.columns, ["row", *where, *values.columns]))
    number = pd.DataFrame({"row": (row[owner] + 1).numpy()})
    found = pd.concat([number, ids, pd.DataFrame(where), values], axis=1)
    if bool((row >= 0).all()):
        return found
    return found[(row[owner] >= 0).numpy()].reset_index(drop=True)  # without graphs whose row cannot be used


@torch.no_grad()
def embed_graph(
    model: Model, graph: Graph | GraphSet, tick: Callable[[int], None] = lambda _: None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The embeddings of nodes, edges and, of many graphs, graphs, on the CPU. `tick` is called as by `infer`."""
    if model.ego_hops:
        return _embed_egos(model, graph, tick)
    if isinstance(graph, Graph):
        most = edges_of_part(model, graph)
        nodes, edges = model.embed(graph) if most is None else embed_in_parts(model, graph, most)
        nodes = nodes if model.decoder is None else model.decoder.embed_nodes(nodes)
        nodes, edges = _to_dense(nodes), _to_dense(edges)
        tick(1)
        return nodes, edges, None
    head = dict(model.heads.items()).get("graph")
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for numbers in graph_batches(graph, model):
        batch = graph.batch(numbers)
        nodes, edges = model.embed(batch)
        if isinstance(head, GraphHead):
            pooled = head.embed(nodes, model.even_edges(edges), batch)
        else:  # no head that pools was trained: mean pooling of both sides
            count = [batch.incidence.count(side).clamp(min=1).unsqueeze(1) for side in ("node", "edge")]
            sides = (batch.incidence.pool(nodes, "node"), batch.incidence.pool(model.even_edges(edges), "edge"))
            pooled = torch.cat([side / number for side, number in zip(sides, count, strict=True)], dim=1)
        parts.append((_to_dense(nodes), _to_dense(edges), _to_dense(pooled)))
        tick(len(numbers))
    nodes, edges, graphs = (torch.cat(side) for side in zip(*parts, strict=True))
    return nodes, edges, graphs


def _embed_egos(
    model: Model, graph: Graph | GraphSet, tick: Callable[[int], None]
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Each node in its ego graph, each edge as the mean over the ego graphs of its two ends, and means over graphs."""
    whole = graph if isinstance(graph, Graph) else graph.whole
    every, parts = torch.arange(whole.num_nodes, device=whole.ends.device), list[Tensor]()
    sums = torch.zeros(whole.num_edges, model.encoder.out_edge_width)
    for chosen in ego_batches(whole, every, model.ego_hops, batch_rows(whole)):
        egos = ego_graphs(whole, chosen, model.ego_hops)
        batch = mark_egos(egos)
        nodes, edges = model.embed(batch)
        parts.append(_to_dense(nodes[egos.seeds]))
        assert batch.owner is not None
        for end in batch.ends:  # a loop has its ego at both, and counts twice
            there = (egos.seeds[batch.owner[end]] == end).nonzero().squeeze(1)
            sums.index_add_(0, egos.edges[there].cpu(), _to_dense(edges[there]))
        tick(len(chosen))
    node_rows, edge_rows = torch.cat(parts), sums / 2
    if isinstance(graph, Graph):
        return node_rows, edge_rows, None
    pooled = []
    for level, rows in (("node", node_rows), ("edge", edge_rows)):
        owner = Level(level).owners(graph).cpu()
        total = rows.new_zeros(len(graph), rows.shape[1]).index_add(0, owner, rows)
        pooled.append(total / owner.bincount(minlength=len(graph)).clamp(min=1).unsqueeze(1))
    return node_rows, edge_rows, torch.cat(pooled, dim=1)


def _to_dense(rows: Tensor) -> Tensor:
    """Dense, on the CPU; features that no layer updated may still be sparse."""
    return (rows.to_dense() if rows.layout == torch.sparse_csr else rows).float().cpu()
