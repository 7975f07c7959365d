"""Drawings of explanations: molecules with atoms and bonds colored, and neighborhoods of a row, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from censnet.data.dataset import Dataset
from censnet.explanation.parts import Part
from censnet.ops.arrays import Array
from censnet.runs.explain import Explained, PartNames, molecule_of

SIZE = 480  # pixels of a molecule
MOST_DRAWN = 40  # nodes of a neighborhood
LABELED = 12  # of these, those with their names
DEEPEST = 0.32  # of the half of the color map
GRAY = (0.8, 0.8, 0.8)  # of an edge that changes nothing: seen on white


def draw_explanation(
    one: Explained, names: PartNames, path: Path, suffixes: Sequence[str] = (".svg", ".png")
) -> list[Path]:
    """Draw one explained row to `path` with each suffix.

    Red raises the answer, blue lowers it; the color is full at the largest change.
    """
    if names.dataset.schema.smiles is not None:
        return _draw_molecule(one, names.dataset, path, suffixes)
    return _draw_neighborhood(one, names, path, suffixes)


def _changes(one: Explained, kind: str) -> Array:
    """The change of each edge or node of the neighborhood, 0 for those that were not left out."""
    graph = one.place.graph
    found = np.zeros(graph.num_edges if kind == "edge" else graph.num_nodes)
    for part in one.parts:
        if part.kind == kind:
            found[part.index] = part.change
    return found


def _draw_molecule(one: Explained, dataset: Dataset, path: Path, suffixes: Sequence[str]) -> list[Path]:
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = molecule_of(dataset, int(one.place.nodes[0]))
    atoms, bonds = _changes(one, "node"), _changes(one, "edge")
    ends = one.place.graph.ends.T.tolist()
    colored = {
        molecule.GetBondBetweenAtoms(*end).GetIdx(): value for end, value in zip(ends, bonds, strict=True) if value
    }
    atom_colors = {place: _color(value, atoms) for place, value in enumerate(atoms) if value}
    bond_colors = {place: _color(value, bonds) for place, value in colored.items()}
    prepared = rdMolDraw2D.PrepareMolForDrawing(molecule)
    paths = []
    kinds = {".svg": rdMolDraw2D.MolDraw2DSVG, ".png": rdMolDraw2D.MolDraw2DCairo}
    for suffix in suffixes:
        drawing = kinds[suffix](SIZE, SIZE)
        drawing.DrawMolecule(
            prepared,
            legend=_title(one),
            highlightAtoms=list(atom_colors),
            highlightAtomColors=atom_colors,
            highlightBonds=list(bond_colors),
            highlightBondColors=bond_colors,
        )
        drawing.FinishDrawing()
        found = drawing.GetDrawingText()
        where = path.with_name(path.name + suffix)
        where.write_bytes(found.encode() if isinstance(found, str) else found)
        paths.append(where)
    return paths


def _draw_neighborhood(one: Explained, names: PartNames, path: Path, suffixes: Sequence[str]) -> list[Path]:
    from matplotlib.figure import Figure  # a machine that only trains needs no matplotlib

    graph = one.place.graph
    nodes, edges = _changes(one, "node"), _changes(one, "edge")
    ends = graph.ends.numpy()
    centers = _centers(one)
    shown = _nearest(ends, centers, nodes, edges)
    position = _layout(ends, centers, shown)
    figure = Figure(figsize=(7, 7), layout="constrained")
    axes = figure.add_subplot()
    inside = np.isin(ends, shown).all(axis=0)
    own = one.place.seed if one.level == "edge" else -1
    largest = np.abs(edges).max(initial=0) or 1
    pairs: dict[tuple[int, int], int] = {}
    for edge in sorted(np.flatnonzero(inside), key=lambda number: (number == own, abs(edges[number]))):
        u, v = ends[:, edge].tolist()
        bend = 0.12 * pairs.get((min(u, v), max(u, v)), 0)
        pairs[min(u, v), max(u, v)] = pairs.get((min(u, v), max(u, v)), 0) + 1
        axes.annotate(
            "", position[v], position[u],
            arrowprops={
                "arrowstyle": "-|>" if graph.directed else "-", "shrinkA": 9, "shrinkB": 9,
                "connectionstyle": f"arc3,rad={bend}",
                "color": "black" if edge == own else _color(edges[edge], edges, GRAY),
                "lw": 2.5 if edge == own else 0.8 + 3 * abs(edges[edge]) / largest,
            },
        )  # fmt: skip
    where = np.array([position[node] for node in shown])
    axes.scatter(
        where[:, 0], where[:, 1], s=[260 if node in centers else 150 for node in shown], zorder=3,
        c=[_color(nodes[node], nodes) if nodes[node] else (0.93, 0.93, 0.93) for node in shown],
        edgecolors=["black" if node in centers else "#777777" for node in shown],
        linewidths=[2.0 if node in centers else 0.8 for node in shown],
    )  # fmt: skip
    named = sorted(shown, key=lambda node: (node not in centers, -abs(nodes[node])))[:LABELED]
    for node in named:
        text = names.name(Part("node", node, "", 0.0, 0.0, 0.0), one.place)[0]
        up = 13 if node in centers else 11
        axes.annotate(text, position[node], xytext=(0, up), textcoords="offset points", ha="center", fontsize=8)
    axes.set_title(_title(one), fontsize=11)
    left = "" if len(shown) == graph.num_nodes else f"; {len(shown)} of {graph.num_nodes:,} nodes"
    axes.set_xlabel(f"red raises the answer, blue lowers it; outlined in black: the row{left}", fontsize=9)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    middle, half = (where.max(0) + where.min(0)) / 2, 0.6 * max(np.ptp(where, axis=0).max(), 0.5)
    axes.set_xlim(middle[0] - half, middle[0] + half)
    axes.set_ylim(middle[1] - half, middle[1] + half)  # a square, also where all nodes are on one line
    paths = [path.with_name(path.name + suffix) for suffix in suffixes]
    for place in paths:
        figure.savefig(place, dpi=120)
    return paths


def _centers(one: Explained) -> list[int]:
    """The nodes of the row: itself, or its ends."""
    if one.level in ("node", "link"):
        return list(dict.fromkeys(one.place.centers))
    return [] if one.level == "graph" else list(dict.fromkeys(one.place.graph.ends[:, one.place.seed].tolist()))


def _nearest(ends: Array, centers: list[int], nodes: Array, edges: Array) -> list[int]:
    """The nodes that are drawn: those of the row, then those with the largest change of their own or of an edge."""
    score = np.abs(nodes)
    np.maximum.at(score, ends[0], np.abs(edges))
    np.maximum.at(score, ends[1], np.abs(edges))
    score[centers] = np.inf
    return [int(node) for node in np.argsort(-score, kind="stable")[:MOST_DRAWN]]


def _layout(ends: Array, centers: list[int], shown: list[int]) -> dict[int, tuple[float, float]]:
    """Positions of nodes by springs, from a circle; the nodes of the row in the middle."""
    place = {node: number for number, node in enumerate(shown)}
    count = len(shown)
    angle = 2 * np.pi * np.arange(count) / max(count, 1)
    where = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    fixed = [place[node] for node in centers]
    for number, one in enumerate(fixed):
        where[one] = 0.25 * (2 * number - len(fixed) + 1), 0
    pairs = np.array([(place[u], place[v]) for u, v in ends.T if u in place and v in place and u != v]).reshape(-1, 2)
    best = 1.2 / np.sqrt(count)
    for step in range(150):
        gap = where[:, None] - where[None]
        far = np.maximum(np.linalg.norm(gap, axis=2, keepdims=True), 0.01)
        force = (gap / far**2 * best**2).sum(1)
        pull = where[pairs[:, 0]] - where[pairs[:, 1]]
        pull = pull * np.linalg.norm(pull, axis=1, keepdims=True) / best
        np.add.at(force, pairs[:, 0], -pull)
        np.add.at(force, pairs[:, 1], pull)
        force -= 1.5 * where  # so that what has no edge here stays near
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        move = force / length * np.minimum(length, 0.1 * (1 - step / 150))
        move[fixed] = 0
        where = where + move
    return {node: (float(where[number, 0]), float(where[number, 1])) for node, number in place.items()}


def _color(value: float, every: Array, around: tuple[float, float, float] | None = None) -> tuple[float, float, float]:
    """To red where the answer is raised, to blue where it is lowered; from white, or from the color `around`.

    The deepest red and blue let the letters of an atom be read.
    """
    from matplotlib import colormaps

    largest = np.abs(every).max(initial=0) or 1
    share = value / largest
    found = np.array(colormaps["RdBu_r"](0.5 + DEEPEST * share)[:3])
    none = 1.0 if around is None else max(0.0, 1 - 3 * abs(share))  # how much is left of the color of no change
    red, green, blue = found if around is None else none * np.array(around) + (1 - none) * found
    return float(red), float(green), float(blue)


def _title(one: Explained) -> str:
    what = f"log odds of {one.chosen}" if one.chosen else one.target
    name = one.name if len(one.name) <= 40 else f"{one.name[:40]}..."
    target = f", {one.target}" if one.chosen else ""
    return f"row {one.row + 1} ({name}){target}: {what}: {one.answer:.3g}"
