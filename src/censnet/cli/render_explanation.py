"""Explanations on the screen: for each row its answer, the parts that change it most, and the fidelity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table

from censnet.console import Text
from censnet.runs.explain import Explained

SHOWN = 5  # parts of each kind
WORDS = {"edge": "edge", "node": "node", "column": "column"}
CHEMISTRY = {"edge": "bond", "node": "atom", "column": "column"}


def explanation_screen(found: Sequence[Explained], table: pd.DataFrame, molecules: bool = False) -> RenderableType:
    """One table for each row."""
    parts, words = list[RenderableType](), CHEMISTRY if molecules else WORDS
    for one in found:
        what = f"{one.target}, log odds of {one.chosen}" if one.chosen else one.target
        parts.append(Text(f"row {one.row + 1}, {one.name}: {what}: {one.answer:.4g}", "bold"))
        parts.append(_parts(table[(table["row"] == one.row + 1)], words))
        for kind, fidelity in one.fidelity.items():
            moved = f"{fidelity.change:.3g}, without {fidelity.count} at random by {fidelity.random:.3g}"
            share = f"less in {100 * fidelity.beats:.0f} % of draws"
            first = f"{fidelity.count} {words[kind]}s of one sign" if fidelity.count > 1 else words[kind]
            head = f"  without the first {first} the answer moves by"
            parts.append(Text(f"{head} {moved} ({share})"))
    return Group(*parts)


def _parts(rows: pd.DataFrame, words: Mapping[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    for _ in range(3):
        grid.add_column(justify="right", no_wrap=True)
    for kind, mine in rows.groupby("kind", sort=False):
        gate = "closed gate" if mine["gate"].notna().any() else ""
        grid.add_row(*(Text(name, "cyan") for name in (f"{words[str(kind)]}s", "change", gate, "gradients")))
        for _, part in mine.head(SHOWN).iterrows():
            name = f"  {part['part']}" + (f" ({part['where']})" if part["where"] else "")
            cells = ["" if np.isnan(part[one]) else f"{part[one]:+.3g}" for one in ("change", "gate", "gradients")]
            grid.add_row(Text(name), *map(Text, cells))
    return grid
