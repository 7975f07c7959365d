"""Page "Results of the default preset": every number is computed from records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from censnet.settings.presets import make_settings
from censnet_experiments.cells import TABLES, Cell
from censnet_experiments.plan import SECTIONS
from censnet_experiments.records import Record
from censnet_experiments.reference_scores import PAPER, ReferenceScore, best_published, paper_best, sources
from censnet_experiments.spec import Spec, load_specs
from censnet_experiments.summary import SIGNIFICANCE, Paired, Summary, pair
from censnet_experiments.tables import Summaries, digits_of

TITLES = {
    "nodes": "Nodes: classification with few labels, accuracy in percent",
    "molecules": "Molecules: mean AUC of 12 assays (tox21) and RMSE (lipophilicity)",
    "links": "Links: link prediction, AUC and average precision in percent",
}
OURS = "strong"
FRESH = "strong-fresh"  # the same on splits that were not used while the recipe was developed
SAME_SPLITS = {"links": "table3"}  # our table -> the paper's table whose variants "splits" have the same splits


@dataclass(frozen=True)
class Row:
    """A cell and a metric: the reference scores, and ours, if recorded, also on fresh splits."""

    cell: Cell
    name: str
    paper: ReferenceScore
    published: ReferenceScore
    ours: Summary | None
    fresh: Summary | None

    @property
    def reaches_paper(self) -> bool:
        """Whether ours is at least as good as the paper's best."""
        return self._reaches(self.ours, self.paper)

    @property
    def reaches_published(self) -> bool:
        """Whether ours is at least as good as the best published since."""
        return self._reaches(self.ours, self.published)

    @property
    def fresh_reaches_published(self) -> bool:
        """The same on fresh splits."""
        return self._reaches(self.fresh, self.published)

    @property
    def interval_contains_published(self) -> bool:
        """Whether the best published score is within the confidence interval of our mean."""
        return self.ours is not None and abs(self.ours.mean - self.published.value) < self.ours.half_width

    def _reaches(self, found: Summary | None, reference: ReferenceScore) -> bool:
        """By the unrounded mean."""
        if found is None:
            return False
        gap = found.mean - reference.value
        return (-gap if self.cell.lower else gap) >= 0


def page(records: Sequence[Record], summaries: Summaries, figure: str) -> str:
    """The page as Markdown."""
    mine = [record for record in records if record.table in TITLES]
    parts = ["# Results of the default preset", "", *_opening(mine), "", *_overview(mine, summaries), ""]
    for table in TITLES:
        if any(record.table == table for record in mine):
            parts += [*_section(table, records, summaries), ""]
    if any("-depth-" in record.method for record in mine):
        parts += ["## Depth", "", f"![scores by depth, over the splits common to all depths of a cell]({figure})", ""]
    return "\n".join(parts)


def _opening(records: Sequence[Record]) -> Iterator[str]:
    yield (
        f"Scores of `--preset strong`, the default, on the paper's datasets, computed by `censnet reproduce pages` "
        f"from {len(records):,} records in `results/`. There is one recipe for each kind of task; what was selected on "
        f"the validation set, and from how many candidates, is below each table. {_devices(records)}"
    )
    yield ""
    yield (
        "Nothing was selected on test data. However, recipes were changed several times while test scores of these "
        "splits were known, and development was stopped by somebody who had seen them. Fresh splits, which were not "
        "used before the recipe was final, are the cleaner test: they have their own column where there are records."
    )
    yield ""
    yield (
        "`censnet reproduce nodes`, `molecules` and `links` train them again; `--method` selects the methods, which "
        "`--list-methods` lists."
    )
    yield ""
    yield (
        "Tables of comparisons show the mean score of each method and, in brackets, the mean difference of `strong` to "
        "it on the same splits (positive: `strong` is better) with its 95 % confidence interval by Student's t. "
        f"Differences are in bold where {SIGNIFICANCE}; there is no correction for multiple comparisons."
    )


def _devices(records: Sequence[Record]) -> str:
    """The training devices."""
    counts = Counter(record.device for record in records)
    return f"Trained on: {', '.join(f'{device} ({count:,})' for device, count in counts.most_common())}."


def _overview(records: Sequence[Record], summaries: Summaries) -> Iterator[str]:
    """The number of cells of each task that reach the reference scores."""
    yield (
        "| cells whose mean reaches | the paper's best (molecules: the baseline) | the best published since "
        "| the same on fresh splits |"
    )
    yield "| --- | ---: | ---: | ---: |"
    for table in TITLES:
        if any(record.table == table for record in records):
            rows = _rows(table, summaries)
            published = [row for row in rows if row.published.published]
            fresh = [row.fresh_reaches_published for row in published if row.fresh is not None]
            yield (
                f"| {table} | {sum(row.reaches_paper for row in rows)} of {len(rows)} "
                f"| {sum(row.reaches_published for row in published)} of {len(published)} "
                f"| {f'{sum(fresh)} of {len(fresh)}' if fresh else 'no record'} |"
            )


def _section(table: str, records: Sequence[Record], summaries: Summaries) -> Iterator[str]:
    specs = load_specs(table)
    ours = specs[OURS]
    rows = _rows(table, summaries)
    yield f"## {TITLES[table]}"
    yield ""
    reference = "the paper" if table in PAPER else "the baseline"
    fresh = any(row.fresh for row in rows)
    columns = f"{reference} | best published since | strong, with its 95 % interval"
    yield f"| | {columns} | {'on fresh splits | ' * fresh}splits | |"
    yield f"| --- | ---: | ---: | ---: | {'---: | ' * fresh}---: | --- |"
    for row in rows:
        digits, found = digits_of(row.cell), row.ours
        if found is None:
            scores = f"{row.paper.value:.{digits}f} | {row.published.value:.{digits}f}"
            yield f"| {row.name} | {scores} | no record | {'| ' * fresh}| |"
            continue
        again = f"{_with_interval(row.fresh, digits)} | " if row.fresh else "| " * fresh
        verdict = f"{'reaches' if row.reaches_paper else 'below'} {reference}"
        if row.reaches_published:
            verdict = "reaches both" if row.reaches_paper else verdict
            verdict += ", the second within the interval" if row.interval_contains_published else ""
            verdict += ", not on fresh splits" if row.fresh and not row.fresh_reaches_published else ""
        yield (
            f"| {row.name} | {row.paper.value:.{digits}f} ({row.paper.by}) | {row.published.value:.{digits}f} "
            f"| {_with_interval(found, digits)} | {again}{found.count} | {verdict} |"
        )
    yield ""
    yield sources(table)
    yield ""
    num_candidates = {record.num_candidates for record in records if (record.table, record.method) == (table, OURS)}
    yield " ".join([
        *ours.caveats,
        *([f"Candidates for each split: {max(num_candidates)}."] if num_candidates else []),
        *_selected([record for record in records if (record.table, record.method) == (table, OURS)]),
    ])  # fmt: skip
    yield ""
    layers = make_settings(OURS, SECTIONS[table]).model.layers
    for section, title, note in (
        ("baselines", "Baselines on the same splits", ""),
        ("fresh", "Baselines on fresh splits", ""),
        ("additional", "Ablations and variants", ""),
        ("depth", "Depth", f"`strong` has the layers {layers}."),
    ):
        mine = FRESH if section == "fresh" else OURS
        others = [s for s in specs.values() if s.section == section and s.method != mine and _has(s, summaries)]
        others += _of_the_paper(table, summaries) if section == "baselines" else []
        if others:
            yield from _paired(specs[mine], title, note, others, records, summaries)


def _paired(
    ours: Spec, title: str, note: str, others: Sequence[Spec], records: Sequence[Record], summaries: Summaries
) -> Iterator[str]:
    """The means of the others, and the paired differences of strong on the same splits."""
    table = ours.table
    by_key: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        by_key.setdefault((record.table, record.cell, record.method), []).append(record)
    yield f"### {title}"
    yield ""
    if note:
        yield note
        yield ""
    yield f"| | strong | {' | '.join(spec.title for spec in others)} |"
    yield f"| --- |{' ---: |' * (len(others) + 1)}"
    compared: dict[str, list[Paired]] = {spec.method: [] for spec in others}
    for cell, about in TABLES[table].items():
        for metric in _test_metrics(about):
            first, entries = by_key.get((table, cell, ours.method), []), []
            for spec in others:
                second, digits = by_key.get((spec.table, cell, spec.method), []), digits_of(about)
                found = pair(first, second, metric) if first and second else None
                if found is None:  # no common splits, or no records
                    alone = summaries.get((spec.table, cell, spec.method), {}).get(metric)
                    entries.append("" if alone is None else f"{alone.mean:.{digits}f}")
                    continue
                compared[spec.method].append(found)
                mean = summaries[spec.table, cell, spec.method][metric].mean
                gap = f"{found.difference:+.{digits}f}, {found.low:+.{digits}f} to {found.high:+.{digits}f}"
                gap = f"**{gap}**" if found.is_significant else gap
                gap += f", {found.count} splits" if found.count < len(first) else ""
                entries.append(f"{mean:.{digits}f} ({gap})")
            mine = summaries.get((table, cell, ours.method), {}).get(metric)
            if any(entries):
                own = "no record" if mine is None else f"{mine.mean:.{digits_of(about)}f}"
                yield f"| {_name(cell, metric, about)} | {own} | {' | '.join(entries)} |"
    yield ""
    for spec in others:
        parents = [one for one in load_specs(table).values() if spec.method.startswith(f"{one.method}-")]
        notes = [caveat for caveat in spec.caveats if not any(caveat in one.caveats for one in parents)]
        if compared[spec.method]:
            notes.insert(0, _tally(compared[spec.method]))
        yield f"- **{spec.title}**: {' '.join(notes) or 'not compared yet.'}"
    yield ""


def _of_the_paper(table: str, summaries: Summaries) -> list[Spec]:
    """The methods of the paper's table, where they were trained on our splits."""
    if table not in SAME_SPLITS:
        return []
    specs = load_specs(SAME_SPLITS[table])
    found = [(specs[name.removesuffix("-splits")], spec) for name, spec in specs.items() if name.endswith("-splits")]
    notes = {"caveats": ["As reproduced for the paper's table, with a new split for each seed."]}
    return [spec.model_copy(update={"title": parent.title} | notes) for parent, spec in found if _has(spec, summaries)]


def _tally(compared: Sequence[Paired]) -> str:
    """The number of cells in which strong is better, significantly better and worse, and the number of splits."""
    better = [found for found in compared if found.difference > 0]
    significant = sum(found.is_significant for found in better)
    worse = sum(found.is_significant for found in compared if found.difference < 0)
    text = f"`strong` is better in {len(better)} of {len(compared)}, significantly in {significant}"
    text += f", and significantly worse in {worse}" if worse else ""
    won, count = sum(found.won for found in compared), sum(found.count for found in compared)
    return f"{text}; split by split, in {won} of {count}."


def _selected(records: Sequence[Record]) -> Iterator[str]:
    """How often learned gates and later rounds were selected, where the gates are learned or frozen."""
    chosen = [record.chosen for record in records if "frozen_gates" in record.chosen]
    if chosen:
        learned, later = sum(not one["frozen_gates"] for one in chosen), sum(one["round"] > 1 for one in chosen)
        yield (
            f"The selected network has learned gates on {learned} of {len(chosen)} splits, and is of a later round on "
            f"{later}."
        )


def _with_interval(found: Summary, digits: int) -> str:
    return f"{found.mean:.{digits}f} ± {found.half_width:.{digits}f}"


def _name(cell: str, metric: str, about: Cell) -> str:
    """The name of a row: the cell, and the metric where there are several."""
    return f"{cell} {metric}" if len(_test_metrics(about)) > 1 else cell


def _test_metrics(cell: Cell) -> tuple[str, ...]:
    """The metrics of the test set."""
    return tuple(metric for metric in cell.metrics if metric != "validation")


def _rows(table: str, summaries: Summaries) -> list[Row]:
    return [
        Row(
            about,
            _name(cell, metric, about),
            paper_best(table, cell, metric),
            best_published(table, cell, metric),
            summaries.get((table, cell, OURS), {}).get(metric),
            summaries.get((table, cell, FRESH), {}).get(metric),
        )
        for cell, about in TABLES[table].items()
        for metric in _test_metrics(about)
    ]


def _has(spec: Spec, summaries: Summaries) -> bool:
    return any((spec.table, cell, spec.method) in summaries for cell in TABLES[spec.table])
