"""A map of embeddings: nodes, edges and graphs in two dimensions, with what colors them, as packed arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import Tensor

from censnet.data.dataset import Dataset
from censnet.data.molecules.assemble import smiles_of
from censnet.levels import Level
from censnet.markup import visible
from censnet.ops.arrays import Array
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.report.figures import pack
from censnet.report.molecules import draw_molecules
from censnet.report.rows import PARTS, TargetRows
from censnet.report.sample import Shown, choose_shown
from censnet.runs.links import node_names

Method = Literal["pca", "tsne"]
MOST_POINTS: dict[Method, int] = {"pca": 50_000, "tsne": 6_000}
NAMES: dict[Method, str] = {"pca": "principal components", "tsne": "t-SNE"}
GRID = 65_535  # steps of a coordinate
DRAWN = 2_000  # molecules
COLORED = 6  # targets of a level
NAMED = 7  # classes with a color each
_CHANNELS = 64  # of which t-SNE gets the principal components


def make_map(
    dataset: Dataset,
    embed: Callable[[Graph | GraphSet], Sequence[tuple[Tensor, Tensor, Tensor | None]]],
    rows: Mapping[str, Sequence[TargetRows]],
    worst: Mapping[str, Array],
    method: Method,
    link_part: Array | None = None,
) -> dict[str, Any]:
    """The panels of a map, one for each level, and how they were made.

    Args:
        dataset: the data, in whose rows the predictions are.
        embed: gives the embeddings of nodes, edges and graphs by each member; of many graphs, only those shown are.
        rows: level -> the labels and predictions of the targets, for each input row.
        worst: level -> input rows that are shown in any case.
        method: of the projection.
        link_part: of each input row of edges its part, where links are predicted.
    """
    graph, most = dataset.graph, MOST_POINTS[method]
    first = {level: _tensor_rows(dataset, level, chosen) for level, chosen in worst.items() if level != Level.LINK}
    shown = choose_shown(graph, most, first)
    if isinstance(graph, GraphSet):
        assert shown.graphs is not None
        embeddings = embed(graph.subset(torch.from_numpy(shown.graphs)))  # the nodes that are shown come first
        taken: list[Any] = [slice(len(shown.nodes)), slice(len(shown.edges)), slice(None)]
    else:
        embeddings = embed(graph)
        taken = [shown.nodes, shown.edges, slice(None)]
    panels = list[dict[str, Any]]()
    for place, level in enumerate((Level.NODE, Level.EDGE, Level.GRAPH)):
        chosen = shown.of(level)
        if chosen is None:
            continue
        values = np.concatenate([_numpy(member[place])[taken[place]] for member in embeddings], axis=1)
        xy, share = project(values, method)
        colors = _colors(dataset, level, chosen, rows.get(level, ()))
        if level is Level.EDGE and link_part is not None:
            colors.append(_parts(np.append(link_part, -1)[_input_rows(dataset, level)[chosen]]))
        panels.append(
            {
                "level": str(level),
                "title": _title(dataset, level),
                "total": dataset.count(level),
                "shown": len(chosen),
                "share": share,
                "xy": pack(xy, "u2"),
                "colors": colors,
                "rows": pack(_input_rows(dataset, level)[chosen] if rows.get(level) else np.empty(0), "i4"),
            }
        )
    _add_structure(dataset, shown, panels)
    return {"method": NAMES[method], "panels": panels, "note": _note(panels, method)}


def project(values: Array, method: Method) -> tuple[Array, float | None]:
    """Rows in two dimensions, on a grid of whole numbers; of principal components the share of the variance."""
    n = len(values)
    if n == 0 or values.shape[1] == 0:
        return np.zeros((n, 2), np.int64), None
    values = values.astype(np.float64)
    values = values - values.mean(axis=0)
    size = np.abs(values).max()
    if n < 3 or size == 0:
        return np.tile(np.linspace(0.25, 0.75, n)[:, None] * GRID, (1, 2)).astype(np.int64), None
    values, share = values / size, None  # whatever its scale, its squares are finite
    width = min(values.shape[1], n, _CHANNELS if method == "tsne" else 2)
    fitted = PCA(n_components=width, svd_solver="covariance_eigh", random_state=0)
    xy = fitted.fit_transform(values)
    if method == "pca":
        share = float(np.nan_to_num(fitted.explained_variance_ratio_.sum()))
    elif n > 4:
        xy = TSNE(
            perplexity=min(30.0, (n - 1) / 3), random_state=0, init="pca" if width > 1 else "random"
        ).fit_transform(xy)
    if xy.shape[1] < 2:
        xy = np.concatenate([xy, np.zeros((n, 1))], axis=1)
    low, high = np.quantile(xy, [0.001, 0.999], axis=0)  # a few far-off points do not press the others together
    span = max(float((high - low).max()), 1e-12)
    center = (low + high) / 2
    return np.round(np.clip((xy - center) / span * 0.94 + 0.5, 0, 1) * GRID).astype(np.int64), share


def _numpy(values: Tensor | None) -> Array:
    assert values is not None
    return values.numpy()


def _tensor_rows(dataset: Dataset, level: str, chosen: Array) -> Array:
    """The rows of the tensors that some input rows became."""
    found = dataset.rows(level).numpy()[chosen]
    return found[found >= 0]


def _title(dataset: Dataset, level: Level) -> str:
    if dataset.schema.smiles is None:
        return level.table.capitalize()
    return {Level.NODE: "Atoms", Level.EDGE: "Bonds", Level.GRAPH: "Molecules"}[level]


def _note(panels: Sequence[Mapping[str, Any]], method: Method) -> str:
    cut = [
        f"{panel['shown']:,} of {panel['total']:,} {panel['title'].lower()}"
        for panel in panels
        if panel["shown"] < panel["total"]
    ]
    sample = f" A random sample is shown, with the worst errors in it: {', '.join(cut)}." if cut else ""
    if method == "tsne":
        return f"Two dimensions by t-SNE: near points are alike, distances between groups mean little.{sample}"
    shares = [f"{panel['share']:.0%} for {panel['title'].lower()}" for panel in panels if panel["share"] is not None]
    held = f", which hold {', '.join(shares)} of the variance" if shares else ""
    return f"Two dimensions by principal components{held}.{sample}"


def _colors(dataset: Dataset, level: Level, chosen: Array, rows: Sequence[TargetRows]) -> list[dict[str, Any]]:
    """What the points of a level can be colored by: label, prediction, error and part of each of its targets."""
    found = list[dict[str, Any]]()
    input_row = _input_rows(dataset, level)[chosen] if rows else np.empty(0, np.int64)

    def at(values: Array, missing: float) -> Array:
        return np.append(values, missing)[input_row]  # -1 takes the last

    for each in rows[:COLORED]:
        target, name = each.target, visible(each.target.column, 60)
        of = f" of {name}" if len(rows) > 1 else ""
        labels, predicted = at(each.labels, np.nan), at(each.predicted, np.nan)
        if target.is_number:
            found.append(_numbers(f"label{of}", labels))
            found.append(_numbers(f"prediction{of}", predicted))
            found.append(_numbers(f"error{of}", predicted - labels, diverging=True))
        else:
            found.append(_categories(f"label{of}", labels, target.classes))
            found.append(_categories(f"prediction{of}", predicted, target.classes))
            if target.kind == "binary" and each.probability is not None:
                p = at(each.probability[:, 1], np.nan)
                found.append(_numbers(f"probability of {visible(target.classes[1], 60)}{of}", p))
            found.append(_numbers(f"loss{of}", at(each.loss, np.nan)))
    if rows:
        found.append(_parts(at(rows[0].part, -1)))
    if level is Level.NODE:
        ends = dataset.graph.global_ends.cpu().numpy()
        degree = np.bincount(ends.ravel(), minlength=dataset.graph.num_nodes)[chosen]
        found.append(_numbers("degree", degree.astype(np.float64)))
    if level is Level.GRAPH and isinstance(dataset.graph, GraphSet):
        found.append(_numbers("nodes in it", dataset.graph.node_offset.diff().numpy()[chosen].astype(np.float64)))
    return found


def _parts(codes: Array) -> dict[str, Any]:
    names = [name for number, name in enumerate(PARTS) if name != "all" or (codes == number).any()]
    return _categories("part", np.where(codes < 0, np.nan, codes), names)


def _input_rows(dataset: Dataset, level: Level) -> Array:
    """The first input row of each row of the tensors; -1 where there is none."""
    rows = dataset.rows(level).numpy()
    found = np.full(dataset.count(level), -1)
    good = np.flatnonzero(rows >= 0)[::-1]
    found[rows[good]] = good
    return found


def _numbers(name: str, values: Array, diverging: bool = False) -> dict[str, Any]:
    there = values[np.isfinite(values)]
    if len(there) and diverging:
        high = float(np.quantile(np.abs(there), 0.98)) or 1.0
        low = -high
    else:
        low, high = (float(np.quantile(there, q)) for q in (0.01, 0.99)) if len(there) else (0.0, 1.0)
    kind = "diverging" if diverging else "number"
    return {"name": name, "kind": kind, "low": low, "high": high, "values": pack(values, "f4")}


def _categories(name: str, codes: Array, classes: Sequence[str]) -> dict[str, Any]:
    """Codes of the classes by frequency; the rarer ones share the last color, and 255 is none."""
    there = codes[~np.isnan(codes)].astype(np.int64)
    counts = np.bincount(there, minlength=len(classes))
    if len(classes) <= NAMED + 1:
        order = np.arange(len(classes))
        names = [visible(each, 60) for each in classes]
    else:
        order = np.argsort(-counts, kind="stable")[:NAMED]
        names = [*(visible(classes[number], 60) for number in order.tolist()), f"{len(classes) - NAMED:,} others"]
    place = np.full(len(classes) + 1, NAMED)
    place[order] = np.arange(len(order))
    place[-1] = 255
    values = place[np.where(np.isnan(codes), len(classes), np.nan_to_num(codes)).astype(np.int64)]
    return {"name": name, "kind": "category", "names": names, "values": pack(values, "u1")}


def _add_structure(dataset: Dataset, shown: Shown, panels: list[dict[str, Any]]) -> None:
    """Names of the points, the ends of each edge, and the graph of each node and edge, by their place in a panel."""
    graph, by_level = dataset.graph, {panel["level"]: panel for panel in panels}
    nodes, edges = by_level["node"], by_level["edge"]
    place = np.full(graph.num_nodes, -1)
    place[shown.nodes] = np.arange(len(shown.nodes))
    edges["ends"] = pack(place[graph.global_ends.cpu().numpy()[:, shown.edges]].T, "i4")
    if not isinstance(graph, GraphSet) or shown.graphs is None:
        nodes["names"] = _texts(node_names(dataset)[shown.nodes])
        return
    owners = {level: level.owners(graph).cpu().numpy() for level in (Level.NODE, Level.EDGE)}
    where = np.full(len(graph), -1)
    where[shown.graphs] = np.arange(len(shown.graphs))
    for level, panel in ((Level.NODE, nodes), (Level.EDGE, edges)):
        chosen = shown.of(level)
        assert chosen is not None
        panel["owner"] = pack(where[owners[level][chosen]], "i4")
        offset = level.offset(graph).cpu().numpy()
        panel["inside"] = pack(chosen - offset[owners[level][chosen]], "i4")
    frame = dataset.tables.frames().get("graphs")
    input_row = _input_rows(dataset, Level.GRAPH)[shown.graphs]
    panel = by_level["graph"]
    if frame is None:
        panel["names"] = [str(number + 1) for number in shown.graphs]
    elif dataset.schema.smiles is None:
        ids = frame[dataset.id_columns("graph")[0]].astype("string").fillna("")
        panel["names"] = _texts(np.array([*ids, ""], dtype=object)[input_row])
    else:
        smiles = np.array([*smiles_of(frame, dataset.schema.smiles), ""], dtype=object)[input_row]
        panel["names"] = _texts(smiles)
        panel["molecules"] = draw_molecules(list(smiles[:DRAWN]), dataset.schema.reading)


def _texts(names: Array) -> list[str]:
    return [visible(name, 80) for name in names]
