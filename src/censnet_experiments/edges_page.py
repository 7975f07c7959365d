"""Page "Results where edges carry data": every number is computed from records, or published and named as such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from censnet_experiments.cells import TABLES, Cell
from censnet_experiments.edge_scores import NAMES
from censnet_experiments.records import Record
from censnet_experiments.reference_scores import edge_references
from censnet_experiments.spec import Spec, load_specs
from censnet_experiments.summary import SIGNIFICANCE, Paired, Summary, pair
from censnet_experiments.tables import Summaries, digits_of

TABLE, OURS, TREES = "edges", "strong", "trees"
ByKey = Mapping[tuple[str, str], Sequence[Record]]  # cell and method -> their records

WORDS = {
    "epoch": "epoch",
    "candidate": "candidate",
    "learning_rate": "learning rate",
    "trees": "trees",
    "settings": "number of the settings",
    "features": "features",
    "shows_labels": "known labels shown",
    "past_labels": "older labels alone shown in training",
}  # what a record calls a choice -> its words
COUNTED = ("known labels shown", "older labels alone shown in training")


@dataclass(frozen=True)
class EdgeSet:
    """A section of the page: the title, and the protocol in words."""

    title: str
    protocol: str


SETS = {
    "otc": EdgeSet(
        "Bitcoin OTC: who trusts whom",
        "35,592 directed ratings from -10 to 10 between 5,881 members of a market, with their times; nodes have no "
        "columns. `otc-sign` predicts whether a rating is positive and `otc-rating` the rating, both on random splits "
        "of 80 % for training, 10 % for validation and 10 % for testing, one for each seed. `otc-sign-time` trains on "
        "the oldest 80 %, validates on the next 10 % and tests on the newest 10 %; labels are known up to the end of "
        "validation, all edges are in the graph (`model.causal=false`), and all seeds share the split. "
        "`otc-sign-stream` has the same split, and each rating is predicted from the ratings before it alone, with "
        "their labels, those of test rows too. Average precision is that of the negative ratings.",
    ),
    "direction": EdgeSet(
        "Direction alone",
        "600 nodes with one normal column x, 6,000 random edges, and a label of edges: whether x is less at the source "
        "than at the target. A seed draws the graph and the split, 80 % / 10 % / 10 %.",
    ),
    "payments": EdgeSet(
        "Simulated payments",
        "About 200,000 payments between 20,000 accounts in 90 days, from "
        "`censnet_experiments.edges.payments` with seed 0: rings, mules and stolen cards, each with an innocent "
        "counterpart. `payments` has random splits of 80 % / 10 % / 10 %, one for each seed; `payments-time` trains on "
        "the oldest 80 % and tests on the newest 10 %, as a stream. Average precision is that of fraud.",
    ),
    "karate": EdgeSet(
        "Karate club",
        "34 nodes without columns, 78 edges, two factions. `karate` has the default split of "
        "`censnet train karate --target node:faction`, 80 % / 10 % / 10 % of each faction; `karate-9` has 9 labels "
        "for training, 5 for validation and 20 for testing. A seed draws the split. With 3 or 4 test nodes a single "
        "seed says little.",
    ),
    "patterns": EdgeSet(
        "Patterns in directed multigraphs",
        "Random circulant multigraphs of 8,192 nodes and 24,576 directed edges, after Egressy et al. (AAAI 2024): "
        "three independent graphs for training, validation and testing, drawn anew for each seed. Nodes and edges have "
        "no columns; each cell is one label of nodes. F1 is that of the class with fewer training nodes.",
    ),
    "case118": EdgeSet(
        "Power grid",
        "400 samples of the grid `case118`, each with its own loads and line parameters, and every second one with a "
        "line out; AC power flow by pandapower. One model predicts the active power flow P of lines, an oriented "
        "target, and the voltage angle Va of nodes. Samples are split 80 % / 10 % / 10 % at random, by the seed. RMSE "
        "is divided by the standard deviation of the labels of the same rows. `case118-unseen` predicts P in the same "
        "400 samples by a model that has seen nothing of this grid: it trains on 90 % and validates on 10 % of 1,000 "
        "samples of `case14`, `case30`, `case39`, `case57` and `case89pegase`, which "
        "`censnet_experiments.edges.grids` generates in the same way (`pip install 'censnet[grids]'`).",
    ),
    "bde": EdgeSet(
        "Bond dissociation enthalpies",
        "816,311 values by DFT for bonds of 63,331 molecules (St. John et al. 2020), in kcal/mol, with the authors' "
        "split of molecules; one model predicts BDE and BDFE, hydrogens are explicit. All seeds of `bde` share the "
        "split. `bde-10` has a tenth of the training molecules, drawn by the seed.",
    ),
}


def page(records: Iterable[Record], summaries: Summaries) -> str:
    """The page as Markdown."""
    by_key: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.table == TABLE:
            by_key.setdefault((record.cell, record.method), []).append(record)
    every = [record for some in by_key.values() for record in some]
    parts = ["# Results where edges carry data", "", *_opening(every), "", *_winners(by_key, summaries), ""]
    for name, about in SETS.items():
        parts += [*_section(name, about, by_key, summaries), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _opening(records: Sequence[Record]) -> Iterator[str]:
    files = {(record.cell, record.method) for record in records}
    yield (
        "Scores of `--preset strong`, the default, on graphs whose edges carry data, beside boosted trees on hand-made "
        f"features. Computed by `censnet reproduce pages` from {len(records):,} records of {len(files)} cells and "
        "methods in `results/edges/`, one for each seed; published scores are named as such."
    )
    yield ""
    devices = Counter(record.device for record in records)
    yield (
        f"Trained on: {', '.join(f'{device} ({count:,})' for device, count in devices.most_common())}."
        if records
        else "There are no records yet."
    )
    yield ""
    yield (
        "`censnet reproduce edges` trains `strong` and the boosted trees again; `--cell`, `--method` and `--seeds` "
        "select, and `--list-methods` lists all methods. `strong` is trained by `censnet.train` itself. Epochs, "
        "candidates and the settings of trees are selected on validation rows. In sets of one graph all rows are in "
        "the graph for every method, so that columns and neighbors of test rows are seen, and where known labels are "
        "inputs, a test row sees those of training and validation rows, and never its own."
    )


def _winners(by_key: ByKey, summaries: Summaries) -> Iterator[str]:
    yield "## Where boosted trees win"
    yield ""
    yield (
        "The best boosted trees are the variant with the best mean on validation rows, among those with the most "
        "seeds. Scores are means over seeds "
        "with their 95 % confidence intervals by Student's t; the difference is that of `strong` to the trees on the "
        "same splits, positive where `strong` is better, with its 95 % interval. Where all seeds share one split, they "
        f"are paired by number. A verdict is given where {SIGNIFICANCE.replace('splits', 'seeds')}; there is no "
        "correction for multiple comparisons."
    )
    yield ""
    yield "| cell | metric | strong | best boosted trees | difference | seeds | verdict |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
    for cell, about in TABLES[TABLE].items():
        for metric in about.metrics:
            yield _winner(cell, about, metric, by_key, summaries)


def _winner(cell: str, about: Cell, metric: str, by_key: ByKey, summaries: Summaries) -> str:
    digits = digits_of(about)
    name = f"| {cell} | {metric_name(metric)} "
    ours, trees = summaries.get((TABLE, cell, OURS), {}).get(metric), best_trees(cell, metric, summaries)
    if ours is None and trees is None:
        return f"{name}| not run | not run | | | |"
    theirs = _best_shown(trees, summaries, cell, metric, digits)
    if ours is None or trees is None:
        mine = "not run" if ours is None else _shown(ours, digits)
        return f"{name}| {mine} | {theirs} | | | not compared |"
    found = paired(by_key[cell, OURS], by_key[cell, trees.method], metric)
    if found is None:
        return f"{name}| {_shown(ours, digits)} | {theirs} | | | not compared: one seed in common |"
    gap = f"{found.difference:+.{digits}f}, {found.low:+.{digits}f} to {found.high:+.{digits}f}"
    return f"{name}| {_shown(ours, digits)} | {theirs} | {gap} | {found.count} | {verdict(found)} |"


def verdict(found: Paired) -> str:
    """The comparison of strong with the trees in words."""
    if not found.is_significant:
        return "no significant difference"
    return "`strong` wins" if found.difference > 0 else "**trees win**"


def best_trees(cell: str, metric: str, summaries: Summaries) -> Spec | None:
    """Of the boosted trees with the most seeds, those with the best mean on validation rows; None without records."""
    sign = -1 if TABLES[TABLE][cell].lower else 1
    found = []
    for spec in _specs().values():
        score = summaries.get((TABLE, cell, spec.method), {}).get(f"validation_{metric}")
        if _is_trees(spec) and score is not None:
            found.append((score.count, sign * score.mean, spec))
    return max(found, key=lambda one: one[:2])[2] if found else None


def paired(first: Sequence[Record], second: Sequence[Record], metric: str) -> Paired | None:
    """Compare two methods on the same splits; where all seeds share one split, seed by seed."""
    if len({record.split_seed for record in (*first, *second)}) == 1:
        first, second = (
            [replace(record, split_seed=record.seed) for record in records] for records in (first, second)
        )  # fmt: skip
    return pair(first, second, metric)


def metric_name(metric: str) -> str:
    """The name of a metric, with its column where there are several.

    >>> metric_name("mae_bde")
    'MAE of bde'
    """
    name, _, column = metric.partition("_")
    return f"{NAMES[name]} of {column}" if column else NAMES[name]


def _section(name: str, about: EdgeSet, by_key: ByKey, summaries: Summaries) -> Iterator[str]:
    cells = {cell: one for cell, one in TABLES[TABLE].items() if one.data == name}
    yield f"## {about.title}"
    yield ""
    yield about.protocol
    yield ""
    yield f"    censnet reproduce edges {' '.join(f'--cell {cell}' for cell in cells)}"
    missing = [cell for cell in cells if not any(key[0] == cell for key in by_key)]
    if missing:
        yield ""
        yield f"Not run yet: {', '.join(missing)}."
    shown = [spec for spec in _specs().values() if any((cell, spec.method) in by_key for cell in cells)]
    references = {one.by: one.note for cell in cells for one in edge_references(cell)}
    if shown or references:
        yield ""
        yield from _scores(shown, cells, by_key, summaries)
    if references:
        yield ""
        yield from _sources(references)
    if shown:
        yield ""
        yield from _selected(shown, cells, by_key)
        yield ""
        yield from _notes(shown)


def _scores(shown: Sequence[Spec], cells: Mapping[str, Cell], by_key: ByKey, summaries: Summaries) -> Iterator[str]:
    """All methods: the mean and its interval and, in brackets, the difference of strong on the same splits."""
    columns = [(cell, metric) for cell in cells for metric in cells[cell].metrics]
    yield f"| | {' | '.join(_head(cell, metric) for cell, metric in columns)} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for spec in shown:
        entries = [_entry(spec, cell, metric, by_key, summaries) for cell, metric in columns]
        yield f"| {spec.title} | {' | '.join(entries)} |"
    published: dict[str, dict[tuple[str, str], str]] = {}
    for cell, metric in columns:
        for one in edge_references(cell):
            if metric in one.scores:
                value = f"{one.scores[metric]:.{digits_of(cells[cell])}f}"
                published.setdefault(one.by, {})[cell, metric] = value
    for by, row in published.items():
        yield f"| published: {by} | {' | '.join(row.get(column, '') for column in columns)} |"
    if any(spec.method == OURS for spec in shown) and len(shown) > 1:
        yield ""
        yield (
            "In brackets: the mean difference of `strong` to the method on the same splits, positive where `strong` is "
            "better, in bold where it is significant."
        )


def _entry(spec: Spec, cell: str, metric: str, by_key: ByKey, summaries: Summaries) -> str:
    found, digits = summaries.get((TABLE, cell, spec.method), {}).get(metric), digits_of(TABLES[TABLE][cell])
    if found is None:
        return ""
    if spec.method == OURS or (cell, OURS) not in by_key:
        return _shown(found, digits)
    gap = paired(by_key[cell, OURS], by_key[cell, spec.method], metric)
    if gap is None:
        return _shown(found, digits)
    text = f"{gap.difference:+.{digits}f}"
    return f"{_shown(found, digits)} ({f'**{text}**' if gap.is_significant else text})"


def _head(cell: str, metric: str) -> str:
    """The cell, without the name of its data if all cells of the data begin with it, and the metric."""
    data = TABLES[TABLE][cell].data
    others = [name for name, about in TABLES[TABLE].items() if about.data == data]
    short = all(name.startswith(f"{data}-") for name in others)
    return f"{cell.removeprefix(f'{data}-') if short else cell}, {metric_name(metric)}"


def _sources(references: Mapping[str, str]) -> Iterator[str]:
    """The protocols of the published scores."""
    by_note: dict[str, list[str]] = {}
    for by, note in references.items():
        by_note.setdefault(note, []).append(by)
    texts = [f"{', '.join(some)}: {note}" for note, some in by_note.items()]
    yield f"Published: {'. '.join(texts)}."


def _selected(shown: Sequence[Spec], cells: Mapping[str, Cell], by_key: ByKey) -> Iterator[str]:
    """The number of settings tried, what validation selected, and the time."""
    yield "| method | settings tried | selected on validation rows | seconds for a seed |"
    yield "| --- | ---: | --- | ---: |"
    for spec in shown:
        records = [record for cell in cells for record in by_key.get((cell, spec.method), ())]
        tried = _range([record.num_candidates for record in records])
        yield f"| {spec.title} | {tried} | {_chosen(records)} | {np.mean([one.seconds for one in records]):.0f} |"


def _chosen(records: Sequence[Record]) -> str:
    """What was selected on validation rows: ranges of numbers, and how often labels were shown.

    Where there are several targets, `COLUMN_NAME` is put together with those of the other columns.
    """
    found: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.chosen.items():
            known = next((key for key in WORDS if name == key or name.endswith(f"_{key}")), None)
            found.setdefault(name if known is None else WORDS[known], []).append(value)
    return ", ".join(
        f"{name} in {sum(map(bool, values))} of {len(values)}" if name in COUNTED else f"{name} {_range(values)}"
        for name, values in found.items()
    )


def _notes(shown: Sequence[Spec]) -> Iterator[str]:
    """The caveats of each method, without those of the method that it varies."""
    for spec in shown:
        parents = [one for one in _specs().values() if spec.method.startswith(f"{one.method}-")]
        notes = [caveat for caveat in spec.caveats if not any(caveat in one.caveats for one in parents)]
        if notes:
            yield f"- **{spec.title}**: {' '.join(notes)}"


def _best_shown(trees: Spec | None, summaries: Summaries, cell: str, metric: str, digits: int) -> str:
    if trees is None:
        return "not run"
    found = summaries[TABLE, cell, trees.method][metric]
    return f"{_shown(found, digits)} ({trees.title.removeprefix('trees, ')})"


def _shown(found: Summary, digits: int) -> str:
    """The mean with its interval; of a single seed, the score alone."""
    if found.count < 2:
        return f"{found.mean:.{digits}f} (one seed)"
    return f"{found.mean:.{digits}f} ± {found.half_width:.{digits}f}"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):g}", f"{max(values):g}"
    return low if low == high else f"{low} to {high}"


def _specs() -> Mapping[str, Spec]:
    return load_specs(TABLE)


def _is_trees(spec: Spec) -> bool:
    return spec.method == TREES or spec.method.startswith(f"{TREES}-")
