"""What the paper says in words, each with the check of it that records allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from censnet.experiments.cells import TABLES
from censnet.experiments.records import Record
from censnet.experiments.tables import Summaries

Check = Callable[[Sequence[Record], Summaries], str]
UNKNOWN = "There are no records of it yet."


def less_data(records: Sequence[Record], summaries: Summaries) -> str:
    """CensNet at a lower rate against GCN at every higher one, by validation and test scores."""
    won, pairs = 0, 0
    for data in ("tox21", "lipophilicity"):
        cells = [cell for cell, about in TABLES["table2"].items() if about.data == data]
        for place, fewer in enumerate(cells):
            for more in cells[place + 1 :]:
                for metric in ("validation", "test"):
                    ours = summaries.get(("table2", fewer, "censnet"), {}).get(metric)
                    theirs = summaries.get(("table2", more, "gcn"), {}).get(metric)
                    if ours is None or theirs is None:
                        continue
                    pairs += 1
                    better = ours.mean < theirs.mean if TABLES["table2"][fewer].lower else ours.mean > theirs.mean
                    won += better
    if not pairs:
        return UNKNOWN
    word = "It does so always" if won == pairs else "It does not do so uniformly"
    return f"{word}: in {won} of {pairs} comparisons of a lower with a higher rate."


def edge_layers(records: Sequence[Record], summaries: Summaries) -> str:
    """The mean AUC over the graphs for every number of edge layers."""
    names = {"none": "censnet-vae", "one": "censnet-vae-one-edge-layer", "two": "censnet-vae-two-edge-layers"}
    found = {}
    for number, method in names.items():
        values = [summaries.get(("table3", cell, method), {}).get("auc") for cell in TABLES["table3"]]
        known = [value.mean for value in values if value is not None]
        if len(known) == len(TABLES["table3"]):
            found[number] = sum(known) / len(known)
    if len(found) < len(names):
        return UNKNOWN
    best = max(found, key=lambda number: found[number])
    listed = ", ".join(f"{number} {mean:.1f}" for number, mean in found.items())
    return f"Mean AUC over the three graphs by edge layers: {listed}. The best has {best}."


CLAIMS: dict[str, Check] = {
    "CensNet with less training data beats GCN with more (Table 2).": less_data,
    "More edge layers do not help CensNet-VAE (Table 3).": edge_layers,
}
