"""Bitcoin OTC: members of a market rate how far they trust each other, from -10 to 10 (Kumar et al. 2016)."""

from __future__ import annotations

import pandas as pd

from censnet.data.splits.splitters import Split, by_time, ratio
from censnet.data.tables.files import Tables
from censnet_experiments.edges.files import find_edge_file


def read_otc() -> Tables:
    """Read the ratings as a table of directed edges; there is no table of nodes.

    Returns:
        `edges`, 35,592 rows: source (who rates), target, rating (-10 to 10, never 0), time (seconds since 1970), and
        sign, 1 for a rating above 0 and 0 below.
    """
    names = ["source", "target", "rating", "time"]
    edges = pd.read_csv(find_edge_file("bitcoin_otc.csv"), header=None, names=names)
    return Tables(edges=edges.assign(sign=(edges["rating"] > 0).astype(int)), names={"edges": "bitcoin_otc.csv"})


def split_at_random(edges: pd.DataFrame, seed: int) -> Split:
    """80 % of the ratings for training, 10 % for validation and 10 % for testing, at random."""
    return ratio(len(edges), (0.8, 0.1, 0.1), seed)


def split_by_time(edges: pd.DataFrame) -> Split:
    """The oldest 80 % for training, the next 10 % for validation, the newest 10 % for testing."""
    return by_time(edges["time"], (0.8, 0.1, 0.1))
