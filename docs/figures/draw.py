"""Draw the figures of the method page and of that of time into the folder of this script."""

from __future__ import annotations

from pathlib import Path

BLUE, ORANGE, INK, PALE = "#2a6fb0", "#d9711c", "#222222", "#d8d8d8"
NODES = {"1": (40, 60), "2": (150, 40), "3": (95, 150), "4": (190, 190)}
EDGES = {"a": "12", "b": "13", "c": "23", "d": "34"}
MARKS = {"a": (92, 32), "b": (48, 112), "c": (142, 106), "d": (132, 192)}  # where the letter of an edge stands


def text(x: float, y: float, words: str, color: str = INK, size: int = 20, extra: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}" text-anchor="middle"{extra}>{words}</text>'


def graph(x: float, y: float, bold: str = "", lit: str = "", labels: dict[str, str] | None = None) -> str:
    """The example graph, moved to (x, y): `bold` edges and `lit` nodes are in color, the others pale."""
    shapes = [f'<g transform="translate({x} {y})">']
    for name, (one, other) in EDGES.items():
        (x1, y1), (x2, y2) = NODES[one], NODES[other]
        color, width = (ORANGE, 5) if name in bold else (PALE, 3)
        shapes.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="{width}"/>')
        shapes.append(text(*MARKS[name], name, ORANGE if name in bold else "#8a8a8a", extra=' font-style="italic"'))
    for name, (cx, cy) in NODES.items():
        fill, ink = (BLUE, "#ffffff") if name in lit else ("#ffffff", "#8a8a8a")
        stroke = BLUE if name in lit else PALE
        shapes.append(f'<circle cx="{cx}" cy="{cy}" r="17" fill="{fill}" stroke="{stroke}" stroke-width="3"/>')
        shapes.append(text(cx, cy + 7, (labels or {}).get(name, name), ink))
    return "\n".join([*shapes, "</g>"])


def matrix(x: float, y: float, cell: int = 44) -> str:
    """The incidence matrix T: a row for each node, a column for each edge."""
    shapes = [f'<g transform="translate({x} {y})">']
    for column, name in enumerate(EDGES):
        shapes.append(text(column * cell + cell / 2, -12, name, ORANGE, extra=' font-style="italic"'))
    for row, node in enumerate(NODES):
        shapes.append(text(-18, row * cell + cell / 2 + 7, node, BLUE))
        for column, ends in enumerate(EDGES.values()):
            one = node in ends
            place = f'x="{column * cell}" y="{row * cell}" width="{cell}" height="{cell}"'
            shapes.append(f'<rect {place} fill="{"#f6d9c2" if one else "#ffffff"}" stroke="{PALE}"/>')
            label, color = ("1", INK) if one else ("0", "#a0a0a0")
            shapes.append(text(column * cell + cell / 2, row * cell + cell / 2 + 7, label, color))
    return "\n".join([*shapes, "</g>"])


def picture(width: int, height: int, title: str, *shapes: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    font = 'font-family="Helvetica, Arial, sans-serif" role="img"'
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>'
    return "\n".join([f"{head} {font}>", f"<title>{title}</title>", ground, *shapes, "</svg>", ""])


def draw_incidence() -> str:
    """The example graph beside its incidence matrix."""
    return picture(
        560,
        280,
        "A graph of 4 nodes and 4 edges, and its incidence matrix T",
        graph(20, 40, bold="abcd", lit="1234"),
        text(290, 160, "T =", size=26),
        matrix(360, 60),
    )


def draw_edge_layer() -> str:
    """One edge propagation in three steps, drawn for the update of edge c."""
    steps = [
        ("1. scatter", "T z", graph(5, 50, bold="abcd", lit="23")),
        ("2. gate", "diag(u) T z", graph(245, 50, lit="23", labels={"2": "u₂", "3": "u₃"})),
        ("3. gather", "Tᵗ diag(u) T z", graph(485, 50, bold="c", lit="23")),
    ]
    words = [
        shape
        for number, (name, formula, drawing) in enumerate(steps)
        for shape in (
            text(115 + 240 * number, 30, name, size=22, extra=' font-weight="bold"'),
            drawing,
            text(115 + 240 * number, 300, formula, size=22, extra=' font-style="italic"'),
        )
    ]
    arrows = [text(x, 170, "→", "#8a8a8a", 30) for x in (238, 478)]
    return picture(720, 320, "One edge propagation: sum edges onto nodes, gate, sum nodes onto edges", *words, *arrows)


def draw_prefix_sums() -> str:
    """The edges of two nodes on a line of time, with ties, and the sum that each of them reads."""
    rows = {
        "s": (90, [(150, "a"), (250, "b"), (250, "c"), (430, "d")]),
        "t": (230, [(200, "e"), (340, "f"), (510, "g")]),
    }
    reads = {"s": ["0", "a", "a", "a + b + c"], "t": ["0", "e", "e + f"]}
    shapes = [text(350, 30, "the edges of each node, in the order of time", size=20, extra=' font-weight="bold"')]
    for node, (y, edges) in rows.items():
        shapes.append(f'<line x1="70" y1="{y}" x2="620" y2="{y}" stroke="{PALE}" stroke-width="3"/>')
        shapes.append(f'<circle cx="50" cy="{y}" r="17" fill="{BLUE}" stroke="{BLUE}" stroke-width="3"/>')
        shapes.append(text(50, y + 7, node, "#ffffff"))
        shapes.append(text(640, y + 7, "→", "#8a8a8a", 26))
        tied = 0
        for number, (x, name) in enumerate(edges):
            tied = tied + 1 if number and edges[number - 1][0] == x else 0
            top = y - 26 * tied
            shapes.append(f'<circle cx="{x}" cy="{top}" r="12" fill="{ORANGE}"/>')
            shapes.append(text(x, top + 6, name, "#ffffff", 16, ' font-style="italic"'))
            shapes.append(text(x, y + 38 + 22 * tied, reads[node][number], INK, 16))
    shapes.append(
        text(350, 320, "each edge reads the sum of the edges before it; b and c, at one time, read the same", size=16)
    )
    return picture(
        700, 345, "Edges of two nodes in the order of time, and the exclusive prefix sums they read", *shapes
    )


if __name__ == "__main__":
    folder = Path(__file__).parent
    (folder / "incidence.svg").write_text(draw_incidence(), "utf-8")
    (folder / "edge_layer.svg").write_text(draw_edge_layer(), "utf-8")
    (folder / "prefix_sums.svg").write_text(draw_prefix_sums(), "utf-8")
