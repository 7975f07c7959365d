"""The page of how far the presets of ours go past the paper: every number in it is computed from records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from censnet.settings.presets import make_settings
from censnet_experiments.cells import TABLES, Cell
from censnet_experiments.plan import SECTIONS
from censnet_experiments.records import Record
from censnet_experiments.reference_scores import PAPER, Bar, best_published, paper_best, sources
from censnet_experiments.spec import Spec, load_specs
from censnet_experiments.summary import SURE, Paired, Summary, pair
from censnet_experiments.tables import Summaries, digits_of

TITLES = {
    "nodes": "Nodes: classes of papers from few labels, accuracy in percent",
    "molecules": "Molecules: mean AUC of 12 assays (tox21) and RMSE (lipophilicity)",
    "links": "Links: hidden links, AUC and average precision in percent",
}
OURS = "strong"
FRESH = "strong-fresh"  # the same on splits that nobody had looked at when the recipe was fixed
SAME_SPLITS = {"links": "table3"}  # a table of the paper whose variants "splits" were trained on the splits of ours


@dataclass(frozen=True)
class Row:
    """A cell and a metric: what is to be passed, the best known since, and ours, if recorded, also on fresh splits."""

    cell: Cell
    name: str
    least: Bar
    since: Bar
    ours: Summary | None
    fresh: Summary | None

    @property
    def past(self) -> bool:
        """Whether ours is at least as good as the paper's best."""
        return self._reaches(self.ours, self.least)

    @property
    def past_since(self) -> bool:
        """Whether ours is at least as good as the best known since."""
        return self._reaches(self.ours, self.since)

    @property
    def past_since_again(self) -> bool:
        """Whether it is so on fresh splits."""
        return self._reaches(self.fresh, self.since)

    @property
    def in_doubt(self) -> bool:
        """Whether the confidence interval of our mean has the best known since within it."""
        return self.ours is not None and abs(self.ours.mean - self.since.value) < self.ours.half_width

    def _reaches(self, found: Summary | None, bar: Bar) -> bool:
        """By the mean, which is not rounded for it."""
        if found is None:
            return False
        gap = found.mean - bar.value
        return (-gap if self.cell.lower else gap) >= 0


def page(records: Sequence[Record], summaries: Summaries, figure: str) -> str:
    """The whole page, as Markdown."""
    mine = [record for record in records if record.table in TITLES]
    parts = ["# Past the paper", "", *_opening(mine), "", *_overview(mine, summaries), ""]
    for table in TITLES:
        if any(record.table == table for record in mine):
            parts += [*_section(table, records, summaries), ""]
    if any("-depth-" in record.method for record in mine):
        parts += ["## Depth", "", f"![scores by depth, over the splits that all depths of a cell have]({figure})", ""]
    return "\n".join(parts)


def _opening(records: Sequence[Record]) -> Iterator[str]:
    yield (
        f"What `--preset strong`, the default, reaches on the paper's data, computed by `censnet report` from "
        f"{len(records):,} records in `results/`. One recipe for each kind of task; what validation rows chose, and "
        f"from how many settings, stands below each table. {_devices(records)}"
    )
    yield ""
    yield (
        "Nothing was chosen by test rows. But recipes were changed several times while scores of these splits were "
        "there to be seen, and stopping was decided by somebody who saw them. Fresh splits, which nobody had looked at "
        "when the recipe was fixed, are the cleaner test: they have a column of their own where there are records."
    )
    yield ""
    yield (
        "`censnet reproduce nodes`, `molecules` and `links` train them again; `--method` takes the names of what is "
        "compared, which `--methods` lists."
    )


def _devices(records: Sequence[Record]) -> str:
    """What the networks were trained on."""
    counts = Counter(record.device for record in records)
    return f"Trained on: {', '.join(f'{device} ({count:,})' for device, count in counts.most_common())}."


def _overview(records: Sequence[Record], summaries: Summaries) -> Iterator[str]:
    """How many cells of each task are past what."""
    yield (
        "| by the mean | as good as the paper's best, of molecules as a baseline | as the best published since "
        "| on fresh splits |"
    )
    yield "| --- | ---: | ---: | ---: |"
    for table in TITLES:
        if any(record.table == table for record in records):
            rows = _rows(table, summaries)
            since = [row for row in rows if row.since.published]
            fresh = [row.past_since_again for row in since if row.fresh is not None]
            yield (
                f"| {table} | {sum(row.past for row in rows)} of {len(rows)} "
                f"| {sum(row.past_since for row in since)} of {len(since)} "
                f"| {f'{sum(fresh)} of {len(fresh)}' if fresh else 'no record'} |"
            )


def _section(table: str, records: Sequence[Record], summaries: Summaries) -> Iterator[str]:
    specs = load_specs(table)
    ours = specs[OURS]
    rows = _rows(table, summaries)
    yield f"## {TITLES[table]}"
    yield ""
    bar = "the paper" if table in PAPER else "the baseline"
    fresh = any(row.fresh for row in rows)
    yield f"| | {bar} | best known since | strong, with its 95 % interval | {'on fresh splits | ' * fresh}splits | |"
    yield f"| --- | ---: | ---: | ---: | {'---: | ' * fresh}---: | --- |"
    for row in rows:
        digits, found = digits_of(row.cell), row.ours
        if found is None:
            bars = f"{row.least.value:.{digits}f} | {row.since.value:.{digits}f}"
            yield f"| {row.name} | {bars} | no record | {'| ' * fresh}| |"
            continue
        again = f"{_with_interval(row.fresh, digits)} | " if row.fresh else "| " * fresh
        verdict = "past both" if row.past and row.past_since else f"past {bar}" if row.past else f"short of {bar}"
        verdict += ", the second within the interval" if row.past_since and row.in_doubt else ""
        verdict += ", not on fresh splits" if row.past_since and row.fresh and not row.past_since_again else ""
        yield (
            f"| {row.name} | {row.least.value:.{digits}f} ({row.least.by}) | {row.since.value:.{digits}f} "
            f"| {_with_interval(found, digits)} | {again}{found.count} | {verdict} |"
        )
    yield ""
    yield sources(table)
    yield ""
    num_candidates = {record.num_candidates for record in records if (record.table, record.method) == (table, OURS)}
    yield " ".join([
        *ours.caveats,
        *([f"Settings tried for each split: {max(num_candidates)}."] if num_candidates else []),
        *_kept([record for record in records if (record.table, record.method) == (table, OURS)]),
    ])  # fmt: skip
    yield ""
    layers = make_settings(OURS, SECTIONS[table]).model.layers
    for section, title, said in (
        ("baselines", "Peers on the same splits", ""),
        ("fresh", "Peers on fresh splits", ""),
        ("additional", "What each part does", ""),
        ("depth", "Depth", f"`strong` itself has the layers {layers}. "),
    ):
        mine = FRESH if section == "fresh" else OURS
        others = [s for s in specs.values() if s.section == section and s.method != mine and _has(s, summaries)]
        others += _of_the_paper(table, summaries) if section == "baselines" else []
        if others:
            yield from _paired(specs[mine], title, said, others, records, summaries)


def _paired(
    ours: Spec, title: str, said: str, others: Sequence[Spec], records: Sequence[Record], summaries: Summaries
) -> Iterator[str]:
    """The means of the others, and what strong is better by on the same splits."""
    table = ours.table
    by_place: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        by_place.setdefault((record.table, record.cell, record.method), []).append(record)
    yield f"### {title}"
    yield ""
    yield (
        f"{said}In each field the mean, and in brackets what `strong` is better by on the same splits, with the 95 % "
        f"interval of that by Student's t. In bold where {SURE}; for how many comparisons there are, nothing is "
        "corrected."
    )
    yield ""
    yield f"| | strong | {' | '.join(spec.title for spec in others)} |"
    yield f"| --- |{' ---: |' * (len(others) + 1)}"
    compared: dict[str, list[Paired]] = {spec.method: [] for spec in others}
    for cell, about in TABLES[table].items():
        for metric in _judged(about):
            first, entries = by_place.get((table, cell, ours.method), []), []
            for spec in others:
                second, digits = by_place.get((spec.table, cell, spec.method), []), digits_of(about)
                found = pair(first, second, metric) if first and second else None
                if found is None:  # nothing to compare with, or nothing at all
                    alone = summaries.get((spec.table, cell, spec.method), {}).get(metric)
                    entries.append("" if alone is None else f"{alone.mean:.{digits}f}")
                    continue
                compared[spec.method].append(found)
                mean = summaries[spec.table, cell, spec.method][metric].mean
                gap = f"{found.difference:+.{digits}f}, {found.low:+.{digits}f} to {found.high:+.{digits}f}"
                gap = f"**{gap}**" if found.is_sure else gap
                gap += f", {found.count} splits" if found.count < len(first) else ""
                entries.append(f"{mean:.{digits}f} ({gap})")
            mine = summaries.get((table, cell, ours.method), {}).get(metric)
            if any(entries):
                own = "no record" if mine is None else f"{mine.mean:.{digits_of(about)}f}"
                yield f"| {_name(cell, metric, about)} | {own} | {' | '.join(entries)} |"
    yield ""
    for spec in others:
        usual = [one for one in load_specs(table).values() if spec.method.startswith(f"{one.method}-")]
        about_it = [doubt for doubt in spec.caveats if not any(doubt in one.caveats for one in usual)]
        if compared[spec.method]:
            about_it.insert(0, _tally(compared[spec.method]))
        yield f"- **{spec.title}**: {' '.join(about_it) or 'not compared yet.'}"
    yield ""


def _of_the_paper(table: str, summaries: Summaries) -> list[Spec]:
    """The paper's methods as reproduced, where they were trained on our splits."""
    if table not in SAME_SPLITS:
        return []
    specs = load_specs(SAME_SPLITS[table])
    found = [(specs[name.removesuffix("-splits")], spec) for name, spec in specs.items() if name.endswith("-splits")]
    said = {"caveats": ["As reproduced for the paper's table, with the split drawn anew for each seed."]}
    return [spec.model_copy(update={"title": usual.title} | said) for usual, spec in found if _has(spec, summaries)]


def _tally(compared: Sequence[Paired]) -> str:
    """In how many cells strong is better, surely better and surely worse, and how often split by split."""
    better = [found for found in compared if found.difference > 0]
    surely = sum(found.is_sure for found in better)
    worse = sum(found.is_sure for found in compared if found.difference < 0)
    said = f"`strong` is better in {len(better)} of {len(compared)}, significantly in {surely}"
    said += f", and significantly worse in {worse}" if worse else ""
    won, count = sum(found.won for found in compared), sum(found.count for found in compared)
    return f"{said}; split by split, in {won} of {count}."


def _kept(records: Sequence[Record]) -> Iterator[str]:
    """What validation rows chose how often, where they chose between gates that are learnt and gates at rest."""
    chosen = [record.chosen for record in records if "frozen_gates" in record.chosen]
    if chosen:
        learnt, later = sum(not one["frozen_gates"] for one in chosen), sum(one["round"] > 1 for one in chosen)
        yield (
            f"Validation rows kept gates that were learnt on {learnt} of {len(chosen)} splits, and a network of a "
            f"later round on {later}."
        )


def _with_interval(found: Summary, digits: int) -> str:
    return f"{found.mean:.{digits}f} ± {found.half_width:.{digits}f}"


def _name(cell: str, metric: str, about: Cell) -> str:
    """Of a row: the cell, and the metric where there are several."""
    return f"{cell} {metric}" if len(_judged(about)) > 1 else cell


def _judged(cell: Cell) -> tuple[str, ...]:
    """The metrics of rows that were held out to the last."""
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
        for metric in _judged(about)
    ]


def _has(spec: Spec, summaries: Summaries) -> bool:
    return any((spec.table, cell, spec.method) in summaries for cell in TABLES[spec.table])
