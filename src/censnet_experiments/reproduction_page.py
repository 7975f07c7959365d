"""The page of what reproduces: every sentence with a number in it is computed from records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from censnet_experiments.cells import TABLES
from censnet_experiments.claims import CLAIMS
from censnet_experiments.records import Record
from censnet_experiments.spec import Spec, load_specs
from censnet_experiments.summary import SURE, Comparison, pair
from censnet_experiments.tables import LEGEND, Summaries, compare, digits_of, markdown_table

TITLES = {
    "table1": "Table 1: classes of papers, accuracy in percent",
    "table2": "Table 2: properties of molecules, AUC (tox21) and RMSE (lipophilicity)",
    "table3": "Table 3: hidden links, AUC and average precision in percent",
}
OURS = {"table1": ("censnet", "censnet-released"), "table2": ("censnet",), "table3": ("censnet-vae",)}
ALLOWED = 2.0  # points that CensNet may be worse by in Table 1 and still count as near


def page(records: Sequence[Record], summaries: Summaries, figure: str) -> str:
    """The whole page, as Markdown."""
    records = [record for record in records if record.table in (*TITLES, "speed")]
    parts = ["# What reproduces", "", *_opening(records), "", *_short(summaries), ""]
    for table in TITLES:
        if any(record.table == table for record in records):
            parts += [*_section(table, records, summaries), ""]
        if table == "table2" and any(record.curves for record in records):
            parts += ["## Figure 2: validation scores by epoch", "", f"![Figure 2]({figure})", ""]
    parts += ["## The paper's claims in words", "", *_claims(records, summaries), ""]
    return "\n".join(parts)


def _opening(records: Sequence[Record]) -> Iterator[str]:
    devices = sorted({record.device for record in records})
    files = {(record.table, record.cell, record.method) for record in records}
    yield (
        f"Computed by `censnet report` from {len(records):,} records of {len(files)} cells and methods in `results/`, "
        "one for each seed. Nothing on this page is typed by hand."
    )
    yield ""
    yield f"Trained on: {'; '.join(devices)}." if devices else "There are no records yet."
    yield ""
    yield (
        "A seed draws the split and the weights, unless a table says otherwise. Learning rate and epoch are chosen on "
        "validation rows, for each seed by itself; test rows are read at that epoch alone."
    )


def _short(summaries: Summaries) -> Iterator[str]:
    """A row for each table: how much of it there is, how strong the baselines are, and how CensNet does."""
    yield "| | cells with all runs | baselines within a published spread, or better | CensNet at the published mean |"
    yield "| --- | ---: | ---: | ---: |"
    for table, title in TITLES.items():
        shown = [spec for spec in load_specs(table).values() if spec.section == "table"]
        found = {spec.method: list(_comparisons(spec, summaries).values()) for spec in shown}
        every = len(shown) * sum(len(about.metrics) for about in TABLES[table].values())
        others = [one for method, many in found.items() if method not in OURS[table] for one in many]
        ours = found[OURS[table][0]]
        there = sum(one.ours.count >= spec.runs for spec in shown for one in found[spec.method])
        text = f"{sum(one.reached for one in ours)} of {len(ours)}"
        if table == "table1":
            text += f", within {ALLOWED:g} points in {sum(one.gap >= -ALLOWED for one in ours)}"
        strong = sum(one.within_spread for one in others)
        yield f"| {title.partition(':')[0]} | {there} of {every} | {strong} of {len(others)} | {text} |"


def _section(table: str, records: Sequence[Record], summaries: Summaries) -> Iterator[str]:
    specs = load_specs(table)
    shown = [spec for spec in specs.values() if spec.section == "table"]
    beside = [spec for spec in specs.values() if spec.section == "additional" and _has_records(spec, summaries)]
    yield f"## {TITLES[table]}"
    yield ""
    yield markdown_table(shown, summaries)
    yield LEGEND
    yield ""
    yield from _counts(table, shown, summaries)
    yield ""
    missed = list(_missed(shown, summaries))
    if missed:
        yield "### What does not reproduce"
        yield ""
        yield from missed
        yield ""
    if beside:
        yield "### Beside the table"
        yield ""
        yield markdown_table(beside, summaries)
        yield from _notes(beside)
        yield ""
    kernels = [spec for spec in specs.values() if spec.section == "kernels" and _has_records(spec, summaries)]
    if kernels:
        yield "### The kernels that the paper names"
        yield ""
        yield markdown_table(kernels, summaries, published=False)
        yield from _notes(kernels)
        yield ""
    yield from _paired(table, list(specs.values()), records)
    yield "### Doubts"
    yield ""
    for spec in shown:
        num_candidates = {
            record.num_candidates for record in records if (record.table, record.method) == (table, spec.method)
        }
        number = f" ({max(num_candidates)} settings tried on validation rows)" if num_candidates else ""
        yield f"- **{spec.title}**{number}: {' '.join(spec.caveats)}"


def _comparisons(spec: Spec, summaries: Summaries) -> dict[tuple[str, str], Comparison]:
    found = {}
    for cell, about in TABLES[spec.table].items():
        for metric in about.metrics:
            comparison = compare(spec, cell, metric, summaries)
            if comparison is not None:
                found[cell, metric] = comparison
    return found


def _counts(table: str, specs: Sequence[Spec], summaries: Summaries) -> Iterator[str]:
    """How many cells of each method come up to the published ones."""
    for spec in specs:
        found = list(_comparisons(spec, summaries).values())
        if not found:
            continue
        reached = sum(comparison.reached for comparison in found)
        text = f"- **{spec.title}** reaches the published mean in {reached} of {len(found)}"
        if spec.method in OURS[table] and table == "table1":
            near = sum(comparison.gap >= -ALLOWED for comparison in found)
            text += f", and is at most {ALLOWED:g} points worse in {near}"
        else:
            text += f", and is at most one published spread worse in {sum(c.within_spread for c in found)}"
        yield text + "."


def _missed(specs: Sequence[Spec], summaries: Summaries) -> Iterator[str]:
    for spec in specs:
        for (cell, metric), comparison in _comparisons(spec, summaries).items():
            if comparison.verdict == "below":
                seeds = round(comparison.share_of_seeds * comparison.ours.count)
                digits = comparison.digits
                yield (
                    f"- {spec.title}, {cell}, {metric}: {comparison.ours.mean:.{digits}f} against "
                    f"{comparison.published[0]:.{digits}f}, worse by {-comparison.gap:.{digits}f}. "
                    f"{seeds} of {comparison.ours.count} seeds are as good as the published mean."
                    + _one_split(spec, cell, metric, comparison, summaries)
                    + _other_splits(spec, cell, metric, digits, summaries)
                    + (f" Likely reason: {spec.reason}" if spec.reason else "")
                )


def _one_split(spec: Spec, cell: str, metric: str, over_splits: Comparison, summaries: Summaries) -> str:
    """What initialisations on one split say of a published spread that is over such."""
    fixed = summaries.get((spec.table, cell, f"{spec.method}-one-split"), {}).get(metric)
    if fixed is None:
        return ""
    digits = over_splits.digits
    return (
        f" The published spread is {over_splits.published[1]:.{digits}f}; ours is {over_splits.ours.spread:.{digits}f} "
        f"over splits, and {fixed.spread:.{digits}f} over initialisations on one of them, whose mean is "
        f"{fixed.mean:.{digits}f}."
    )


def _other_splits(spec: Spec, cell: str, metric: str, digits: int, summaries: Summaries) -> str:
    """What splits drawn anew say of a method that was judged on one."""
    drawn = summaries.get((spec.table, cell, f"{spec.method}-splits"), {}).get(metric)
    return "" if drawn is None else f" Over {drawn.count} splits it is {drawn.mean:.{digits}f}."


def _notes(specs: Sequence[Spec]) -> Iterator[str]:
    """What is to be known of the columns of a table beside: the doubts that no method of the table has."""
    shown = [spec for spec in load_specs(specs[0].table).values() if spec.section == "table"]
    common = {doubt for spec in shown for doubt in spec.caveats}
    for spec in specs:
        own = [doubt for doubt in spec.caveats if doubt not in common]
        if own:
            yield f"- **{spec.title}**: {' '.join(own)}"


def _paired(table: str, specs: Sequence[Spec], records: Sequence[Record]) -> Iterator[str]:
    """CensNet against every other method of the table, on the same splits: a row for each cell.

    A method that keeps one split is paired by its variant that does not.
    """
    by_place: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.table == table:
            by_place.setdefault((record.cell, record.method), []).append(record)
    drawn = "-splits" if table == "table3" else ""
    ours = OURS[table][0] + drawn
    methods = {spec.method + drawn for spec in specs if spec.section == "table"} - {ours}
    others = [spec for spec in specs if spec.method in methods]
    rows = []
    for cell, about in TABLES[table].items():
        metric = "test" if "test" in about.metrics else about.metrics[0]
        entries = [
            _difference(by_place.get((cell, ours)), by_place.get((cell, spec.method)), metric, digits_of(about) + 1)
            for spec in others
        ]
        if any(entries):
            rows.append(f"| {cell} | {' | '.join(entries)} |")
    if rows:
        yield f"### {ours} against the others, on the same splits"
        yield ""
        yield (
            "The mean of what it is better by, and the 95 % interval of that mean by Student's t over splits. In bold "
            f"where {SURE}."
        )
        yield ""
        yield f"| cell | {' | '.join(spec.title for spec in others)} |"
        yield f"| --- |{' ---: |' * len(others)}"
        yield from rows
        yield ""


def _difference(first: Sequence[Record] | None, second: Sequence[Record] | None, metric: str, digits: int) -> str:
    found = pair(first, second, metric) if first and second else None
    if found is None:
        return ""
    text = f"{found.difference:+.{digits}f} ({found.low:+.{digits}f} to {found.high:+.{digits}f})"
    return f"**{text}**" if found.is_sure else text


def _claims(records: Sequence[Record], summaries: Summaries) -> Iterator[str]:
    for claim, check in CLAIMS.items():
        yield f"- {claim} {check(records, summaries)}"


def _has_records(spec: Spec, summaries: Mapping[tuple[str, str, str], object]) -> bool:
    return any((spec.table, cell, spec.method) in summaries for cell in TABLES[spec.table])
