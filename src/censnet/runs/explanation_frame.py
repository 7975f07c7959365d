"""A table of explanations that a notebook shows with its drawings."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from censnet.markup import Html, escape, format_number, table
from censnet.runs.draw import draw_explanation
from censnet.runs.explain import Explained, PartNames, explanation_table

DRAWN = 5  # rows that are shown
PARTS = 3  # of each kind
KINDS = {"edge": "edges", "node": "nodes", "column": "columns"}


class ExplanationFrame(pd.DataFrame):
    """The table of `Predictor.explain`. In a notebook each row is drawn beside its largest parts.

    What is made of it, such as a selection of its rows, is a plain DataFrame.
    """

    _explained: tuple[Sequence[Explained], PartNames]

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    @classmethod
    def of(cls, found: Sequence[Explained], names: PartNames) -> ExplanationFrame:
        """The table of explained rows, which keeps them to draw them."""
        frame = cls(explanation_table(found, names))
        object.__setattr__(frame, "_explained", (found, names))  # no column
        return frame

    @property
    def explained(self) -> Sequence[Explained]:
        """The rows, with the neighborhoods that they are of, to be drawn."""
        return self._explained[0]

    def _repr_html_(self) -> str:
        found, names = self._explained
        left = [f"<p>and {len(found) - DRAWN:,} more rows</p>"] if len(found) > DRAWN else []
        return Html("".join([*(_show(one, names) for one in found[:DRAWN]), *left]))


def _show(one: Explained, names: PartNames) -> str:
    """An explained row: its answer, its drawing, and the largest parts of each kind."""
    what = f"{one.target}, log odds of {one.chosen} before calibration" if one.chosen else one.target
    rows = []
    for kind, head in KINDS.items():
        mine = [part for part in one.parts if part.kind == kind][:PARTS]
        for part in mine:
            name = names.name(part, one.place)[0] + (f" ({part.where})" if part.where else "")
            rows.append([name, head, Html(f"{part.change:+.3g}")])
        moved = one.fidelity.get(kind)
        if moved is not None:
            less = f"{format_number(moved.change)}, as many at random {format_number(moved.random)}"
            rows.append([f"first {moved.count} together", head, Html(less)])
    with tempfile.TemporaryDirectory() as folder:
        (path,) = draw_explanation(one, names, Path(folder) / "row", [".png"])
        picture = base64.b64encode(path.read_bytes()).decode()
    said = f"<p><strong>Row {one.row + 1}</strong> ({escape(one.name)}): {escape(what)}: {one.answer:.4g}</p>"
    return (
        f'{said}<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f'<img alt="Red parts raise the answer, blue parts lower it" style="width:340px;max-width:100%" '
        f'src="data:image/png;base64,{picture}">{table(["part", "of", "moves the answer by"], rows)}</div>'
    )
