"""Claims of the paper in words, each checked against records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from censnet_experiments.cells import TABLES
from censnet_experiments.records import Record
from censnet_experiments.spec import load_specs
from censnet_experiments.summary import Summary, pair
from censnet_experiments.tables import Summaries

Check = Callable[[Sequence[Record], Summaries], str]
UNKNOWN = "There are no records yet."
EARLY = 20  # epochs after which, by the paper, the curves of GCN are flat
SLOWER, ABOUT = 40, 15  # percent that an epoch takes longer by the paper, and the tolerance of "about"


def _found(summaries: Summaries, table: str, cell: str, method: str, metric: str) -> Summary | None:
    return summaries.get((table, cell, method), {}).get(metric)


def _verdict(holds: bool) -> str:
    return "**Confirmed.**" if holds else "**Not confirmed.**"


def best_cells(records: Sequence[Record], summaries: Summaries) -> str:
    """The number of cells of Table 1 in which each method has the highest mean."""
    titles = {spec.method: spec.title for spec in load_specs("table1").values() if spec.section == "table"}
    won: dict[str, int] = {}
    for cell in TABLES["table1"]:
        means = {method: _found(summaries, "table1", cell, method, "test") for method in titles}
        known = {method: summary.mean for method, summary in means.items() if summary is not None}
        if len(known) == len(titles):
            best = max(known, key=lambda method: known[method])
            won[best] = won.get(best, 0) + 1
    if not won:
        return UNKNOWN
    listed = ", ".join(f"{titles[method]} in {count}" for method, count in sorted(won.items(), key=lambda kv: -kv[1]))
    return f"{_verdict(won.get('censnet', 0) >= 4)} In {sum(won.values())} cells, the best mean is that of {listed}."


def slower(records: Sequence[Record], summaries: Summaries) -> str:
    """The time of an epoch of CensNet compared with that of GCN, on each device."""
    parts, longer = [], []
    for cell in TABLES["speed"]:
        gcn, ours = (_found(summaries, "speed", cell, method, "milliseconds") for method in ("gcn", "censnet"))
        if gcn is None or ours is None:
            continue
        device = next(r.device for r in records if (r.table, r.cell, r.method) == ("speed", cell, "censnet"))
        text = f"{device}: GCN of PyTorch Geometric {gcn.mean:.2f} ms, CensNet {ours.mean:.2f} ms"
        longer.append(100 * (ours.mean / gcn.mean - 1))
        parts.append(f"{text} ({longer[-1]:+.0f} %)")
        nodes = _found(summaries, "speed", cell, "censnet-nodes", "milliseconds")
        if nodes is not None:
            share = 100 * (ours.mean / nodes.mean - 1)
            parts[-1] += f", CensNet without its edge layer {nodes.mean:.2f} ms ({share:+.0f} % with it)"
    if not parts:
        return UNKNOWN
    holds = _verdict(all(abs(percent - SLOWER) <= ABOUT for percent in longer))
    return f"{holds} An epoch on Cora takes, on {'; on '.join(parts)}."


def mini_batches(records: Sequence[Record], summaries: Summaries) -> str:
    """Mini-batches compared with the full graph, split by split, in every cell that has both."""
    by_key: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.table == "table1":
            by_key.setdefault((record.cell, record.method), []).append(record)
    parts, matches = [], True
    for method, share in (("censnet-half", "half"), ("censnet-fifth", "a fifth")):
        for cell in TABLES["table1"]:
            some, whole = by_key.get((cell, method)), by_key.get((cell, "censnet"))
            found = pair(some, whole, "test") if some and whole else None
            if found is not None:
                matches &= found.high >= 0
                parts.append(
                    f"{cell}, {share} of the nodes in a batch: {found.difference:+.1f} points "
                    f"({found.low:+.1f} to {found.high:+.1f}, {found.count} splits)"
                )
    return f"{_verdict(matches)} Compared with the full graph: {'; '.join(parts)}." if parts else UNKNOWN


def less_data(records: Sequence[Record], summaries: Summaries) -> str:
    """CensNet at a lower rate compared with GCN at every higher one, by validation and test scores."""
    won, pairs = 0, 0
    for data in ("tox21", "lipophilicity"):
        cells = [cell for cell, about in TABLES["table2"].items() if about.data == data]
        for number, fewer in enumerate(cells):
            for more in cells[number + 1 :]:
                for metric in ("validation", "test"):
                    ours = _found(summaries, "table2", fewer, "censnet", metric)
                    theirs = _found(summaries, "table2", more, "gcn", metric)
                    if ours is None or theirs is None:
                        continue
                    pairs += 1
                    better = ours.mean < theirs.mean if TABLES["table2"][fewer].lower else ours.mean > theirs.mean
                    won += better
    if not pairs:
        return UNKNOWN
    return f"{_verdict(won == pairs)} CensNet is better in {won} of {pairs} comparisons of a lower with a higher rate."


def flat_curves(records: Sequence[Record], summaries: Summaries) -> str:
    """The share of the improvement of the validation score after the first epochs, of both methods."""
    shares: dict[str, list[float]] = {"gcn": [], "censnet": []}
    for record in records:
        curve = record.curves.get("validation", [])
        if record.table == "table2" and record.method in shares and len(curve) > EARLY:
            best = min if TABLES["table2"][record.cell].lower else max
            first, early, end = curve[0], best(curve[:EARLY]), best(curve)
            if end != first:
                shares[record.method].append(abs(end - early) / abs(end - first))
    if not all(shares.values()):
        return UNKNOWN
    gcn, ours = (100 * sum(values) / len(values) for values in shares.values())
    holds = _verdict(gcn < ours)
    return (
        f"{holds} After epoch {EARLY} comes {gcn:.0f} % of the total improvement of GCN, and {ours:.0f} % for CensNet."
    )


def edge_layers(records: Sequence[Record], summaries: Summaries) -> str:
    """The mean AUC over the graphs by number of edge layers."""
    names = {"none": "censnet-vae", "one": "censnet-vae-one-edge-layer", "two": "censnet-vae-two-edge-layers"}
    found = {}
    for number, method in names.items():
        values = [_found(summaries, "table3", cell, method, "auc") for cell in TABLES["table3"]]
        known = [value.mean for value in values if value is not None]
        if len(known) == len(TABLES["table3"]):
            found[number] = sum(known) / len(known)
    if len(found) < len(names):
        return UNKNOWN
    listed = ", ".join(f"{number} {mean:.1f}" for number, mean in found.items())
    holds = _verdict(found["two"] <= found["one"])
    return f"{holds} Mean AUC over the three graphs by edge layers: {listed}."


CLAIMS: dict[str, Check] = {
    "CensNet has the best accuracy in 4 of the 9 cells of Table 1.": best_cells,
    "CensNet takes about 40 % longer for an epoch than GCN on Cora.": slower,
    "Training on mini-batches (Algorithm 2) is as good as on the full graph.": mini_batches,
    "CensNet with less training data beats GCN with more, uniformly (Table 2).": less_data,
    f"The curves of GCN are flat after {EARLY} epochs, while CensNet continues to improve (Figure 2).": flat_curves,
    "More edge layers do not help CensNet-VAE (Table 3).": edge_layers,
}
