"""A run on one screen: targets, samples, the best epoch, scores by split, and the next commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table

from censnet.console import Text
from censnet.data.splits.split_file import PARTS
from censnet.levels import Level
from censnet.option_names import resume_option
from censnet.pipeline.replicates import Replicates
from censnet.runs.config import TimeBudgetRecord
from censnet.runs.known_rows import COUNTS
from censnet.runs.run import Run
from censnet.runs.scoring import FIXED
from censnet.selection.candidates import Candidate
from censnet.tasks.decision import RANKS
from censnet.tasks.metrics import CENSORED, METRICS, higher_is_better
from censnet.tasks.uncertainty import COVERAGE_METRICS
from censnet.text import count, show_seconds

MAX_COLUMNS = 12
MAX_TABLES = 3  # of confusion
MAX_WIDTH = 76  # of such a table; a wider one numbers its classes
DRAWN = ("drawn", "graphs drawn", "scaffolds", "by time")  # splits that have every row with a label

SHOWN_FIXED = "test_labels_fixed"  # of the scores with fixed labels
ALL_FIXED = f"all{FIXED}"
_STREAM = "each edge is scored as in a stream, with every label that arrived before it"
LABELS_OF_STREAM = f"{_STREAM}; {SHOWN_FIXED}: with none that came after validation"
LABELS_OF_OTHER_DATA = f"{_STREAM}; {ALL_FIXED}: with none of these data"
_AT_RANKS = [f"{name}@{k}" for name in ("precision", "recall") for k in RANKS]
Scores = Mapping[str, Mapping[str, Mapping[str, Any]]]  # part -> level -> metric -> what is shown


def run_screen(run: Run) -> RenderableType:
    """Targets, samples, the best epoch, candidates, time, scores, and the next commands."""
    provenance, facts = run.config.provenance, _facts()
    _add_targets(facts, run)
    facts.add_row("best epoch", _best_epoch(run))
    _add_candidates(facts, [run])
    facts.add_row("time", f"{_seconds(provenance.seconds)} on {provenance.device}")
    if run.config.time_budget is not None:
        facts.add_row("time budget", Text(_time_budget(run.config.time_budget, run)))
    _add_findings(facts, run)
    if SHOWN_FIXED in run.metrics:
        facts.add_row("labels", LABELS_OF_STREAM)
    place = run.path or Path(".")
    return Group(
        _title(place, run),
        facts,
        *score_tables(_without_ranks(run.metrics), monitored_metric(run), _number),
        Text("next", "bold"),
        *_next(str(place), run.config.data, run.levels),
    )


def replicates_screen(found: Replicates, out: Path, vary: str) -> RenderableType:
    """The mean and standard deviation of every score over replicates."""
    first, facts = found.runs[0], _facts()
    what = {"both": "split and initialization", "split": "split", "init": "initialization"}[vary]
    facts.add_row("runs", f"{len(found.runs)}, each with its own {what}; mean ± standard deviation")
    _add_targets(facts, first)
    _add_candidates(facts, found.runs)
    _add_findings(facts, first)
    return Group(
        _title(out, first),
        facts,
        *score_tables(
            _without_ranks(found.summary),
            monitored_metric(first),
            lambda cell: f"{_number(cell['mean'])} ± {cell['std']:.4f}",
        ),
        Text("next", "bold"),
        *_next(str(first.path), first.config.data, first.levels),
    )


def _without_ranks(scores: Scores) -> Scores:
    """The scores but precision and recall of the likeliest rows, which `evaluate` shows."""
    return {
        part: {level: {name: value for name, value in found.items() if "@" not in name} for level, found in by.items()}
        for part, by in scores.items()
    }


def scores_screen(run: Run, scores: Scores) -> RenderableType:
    """The scores of a run on some data."""
    shown = score_tables(scores, monitored_metric(run), _number)
    lines = [Text(f"labels: {LABELS_OF_STREAM if SHOWN_FIXED in scores else LABELS_OF_OTHER_DATA}")]
    lines = lines if any(part.endswith(FIXED) for part in scores) else []
    return Group(*_positives(run), *_thresholds(run), *lines, *shown, *_confusion_tables(run, scores))


def _thresholds(run: Run) -> Iterable[RenderableType]:
    """The threshold of each target of two classes that has one of its own."""
    few = run.uncertainty.where_known(0.0)
    for level, targets in run.targets.items():
        both = run.uncertainty.of(level, targets), few.of(level, targets)
        for target, own, other in zip(targets, *both, strict=True):
            if own.decision is not None:
                rule = f"{own.decision.rule}, on validation rows"
                more = "" if few is run.uncertainty else f", of {other.threshold:.4g} where no labels are known"
                yield Text(
                    f"{target.column} is {target.classes[1]} from a probability of {own.threshold:.4g}{more} ({rule})"
                )


def _confusion_tables(run: Run, scores: Scores) -> Iterable[RenderableType]:
    """For each target of few classes, how many test rows of each class (or of all rows) are predicted to be of each."""
    part = next((part for part in ("new", "all", "test") if part in scores), None)
    shown = 0
    for level, targets in run.targets.items():
        found = scores[part].get(level, {}) if part else {}
        for target in targets:
            codes, place = range(len(target.classes)), f"{target.column}/confusion"
            if f"{place}_0_0" not in found or shown == MAX_TABLES:
                continue
            shown += 1
            counts = [[found[f"{place}_{row}_{column}"] for column in codes] for row in codes]
            yield confusion_table(f"{target.column}, {part} rows", target.classes, counts)


def confusion_table(title: str, classes: Sequence[str], counts: Sequence[Sequence[float]]) -> Table:
    """Counts by label and predicted class; classes are numbered where the names of all are too long for a line."""
    names, heads = list(classes), [f"predicted {name}" for name in classes]
    if sum(map(len, [max(names, key=len), *heads])) + 3 * len(heads) > MAX_WIDTH:
        names, heads = (
            [f"{code} {name}" for code, name in enumerate(names)],
            [f"as {code}" for code in range(len(names))],
        )
    grid = _grid(title, heads)
    for name, row in zip(names, counts, strict=True):
        grid.add_row(Text(f"  {name}"), *(f"{value:,.0f}" for value in row))
    return grid


def _positives(run: Run) -> Iterable[RenderableType]:
    """The positive class of each binary target."""
    found = [f"{target.column} {target.classes[1]}" for target in run.config.targets if target.kind == "binary"]
    if found:
        more = f" and {len(found) - MAX_COLUMNS} more" if len(found) > MAX_COLUMNS else ""
        yield Text(f"positive class: {', '.join(found[:MAX_COLUMNS])}{more}")


def score_tables(scores: Scores, monitor: str, spell: Callable[[Any], str]) -> Iterable[RenderableType]:
    """Metrics by split for each level, the monitored one first; then the monitored one of each column, if a mean."""
    parts = [part for part in (*PARTS, SHOWN_FIXED, "all", "new", ALL_FIXED) if part in scores]
    for level in dict.fromkeys(level for part in parts for level in scores[part]):
        mine = {part: scores[part].get(level, {}) for part in parts}
        every = list(dict.fromkeys(name for values in mine.values() for name in values))
        every = [name for name in every if name not in COUNTS]
        plain = sorted((name for name in every if "/" not in name), key=lambda name: _rank(name, monitor))
        columns = list(dict.fromkeys(name.rpartition("/")[0] for name in every if "/" in name))
        of = {name: [column for column in columns if f"{column}/{name}" in every] for name in plain}
        several = any(len(found) > 1 for found in of.values())
        shared = all(len(found) in (0, len(columns)) for found in of.values())  # the loss is of no column
        head = f"scores of {Level(level).table}"
        grid = _grid(head + (f", mean of {count(len(columns), 'column')}" if several and shared else ""), parts)
        for name in plain:
            style = "bold" if name == monitor else ""
            source = "" if shared else _source(of[name])
            arrow = "" if higher_is_better(name) else " (less is better)"
            echo = _whole if name == CENSORED[0] else spell
            cells = [echo(values[name]) if name in values else "" for values in mine.values()]
            grid.add_row(Text(f"  {name}{source}{arrow}", style), *(Text(cell, style) for cell in cells))
        yield grid
        if several:
            shown = {column: next(name for name in plain if f"{column}/{name}" in every) for column in columns}
            alike = len(set(shown.values())) == 1
            grid = _grid(f"{shown[columns[0]]} of each column" if alike else "each column", parts)
            for column in columns[:MAX_COLUMNS]:
                name = f"{column}/{shown[column]}"
                cells = [spell(found[name]) if name in found else "" for found in mine.values()]
                grid.add_row(Text(f"  {column}" if alike else f"  {column}, {shown[column]}"), *cells)
            if len(columns) > MAX_COLUMNS:
                grid.add_row(f"  ... and {len(columns) - MAX_COLUMNS} more, which --json shows")
            yield grid


def _source(columns: Sequence[str]) -> str:
    """The columns of a metric, where not all have it."""
    if len(columns) > 1:
        return f", mean of {count(len(columns), 'column')}"
    return f" of {columns[0]}" if columns else ""


def monitored_metric(run: Run) -> str:
    """The validation metric that the best epoch was selected by."""
    return run.config.monitor or "loss"


def _title(place: Path, run: Run) -> RenderableType:
    size = "" if run.config.members == 1 else f", {count(run.config.members, 'member')}"
    preset = run.config.settings.preset
    return Text.assemble(
        (str(place), "bold"), f"  {', '.join(run.config.target_specs)} on {run.config.data} ({preset}{size})"
    )


def _add_targets(facts: Table, run: Run) -> None:
    """The task type of each target with the reason, the samples of each split, and the source of the split."""
    targets = run.config.targets
    for target in targets[:MAX_COLUMNS]:
        kind = count(len(target.classes), "class") if target.kind == "multiclass" else target.kind
        facts.add_row("target", Text(f"{target.name} is {kind}: {target.reason}"))
    if len(targets) > MAX_COLUMNS:
        facts.add_row("", f"... and {len(targets) - MAX_COLUMNS} more")
    for level, frame in run.predictions.items():
        facts.add_row("samples", _samples(level, frame, run.config.split.get(level, "")))
    for level, source in run.config.split.items():
        of = f"{Level(level).table}: " if len(run.config.split) > 1 else ""
        facts.add_row("split", Text(f"{of}{source}"))


def _add_findings(facts: Table, run: Run) -> None:
    """Leaks and duplicates that may make the scores look better than they are."""
    for finding in run.config.findings:
        facts.add_row(Text("leak?", "yellow"), Text(finding, "yellow"))


def _samples(level: str, frame: pd.DataFrame, source: str) -> Text:
    """The number of samples in each split, without a label, in no split of a stated one, and that cannot be used."""
    counts = frame["split"].value_counts()
    parts = ", ".join(f"{int(counts.get(part, 0)):,} {part}" for part in PARTS if part in counts)
    if level == "link":
        return Text(f"pairs, half of them links: {parts}")
    bad = int(frame["error"].notna().sum()) if "error" in frame else 0
    free = len(frame) - int(counts.sum()) - bad
    text = Text(f"{count(len(frame), level)}: {parts}")
    if free:
        stated = source and not source.startswith(DRAWN)
        text.append(f"; {free:,} in no part or without a label" if stated else f"; {free:,} without a label")
    if bad:
        text.append(f"; {bad:,} cannot be used: see error in the predictions", "red")
    return text


def _best_epoch(run: Run) -> str:
    """The best epoch of all, and the metric that it was selected by."""
    first, last, monitor = min(run.config.best_epoch), max(run.config.best_epoch), run.config.monitor
    epochs = f"{first}" if first == last else f"{first} to {last}"
    why = "the last: there was nothing to validate on" if monitor is None else f"by {monitor} on validation"
    return f"{epochs} of {int(run.history['epoch'].max())}, {why}"


def _time_budget(record: TimeBudgetRecord, run: Run) -> str:
    """What the time of a training was enough for, and how it goes on."""
    given = show_seconds(record.seconds)
    if not record.ended:
        return f"{given}, which was enough for the whole training"
    planned, most = [one for one in record.planned_epochs if one is not None], run.config.settings.training.epochs
    low, high = min(planned, default=most), max(planned, default=most)
    epochs = count(low, "epoch") if low == high else f"{low} to {high} epochs"
    said = f"{given}, enough for {epochs} of {most}" if planned else f"{given}, not enough for other candidates"
    if run.path is None:
        return said
    return f"{said}; {resume_option(run.path)} goes on for as long again, or --time-budget none to the end"


def _add_candidates(facts: Table, runs: Sequence[Run]) -> None:
    """The number of candidates, and how often which was selected."""
    found = [run.config.selection for run in runs if run.config.selection is not None]
    if not found:
        return
    candidates = found[0].candidates
    times = Counter(number for one in found for number in one.selected)
    selected = ", ".join(
        _describe(candidates[number], candidates) + (f" ({count} of {times.total()})" if len(times) > 1 else "")
        for number, count in sorted(times.items())
    )
    facts.add_row("candidates", f"{count(len(candidates), 'training')}; selected on validation: {selected}")


def _describe(one: Candidate, candidates: Sequence[Candidate]) -> str:
    """What distinguishes a candidate from the others."""
    counts = len({other.label_features for other in candidates}) > 1
    words = ["counts of known labels" if one.label_features else "no counts of known labels"] * counts
    if one.recipe == "high_label" and any(other.recipe != "high_label" for other in candidates):
        return " with ".join(["the high-label recipe", *words * one.label_features])
    if len({other.descriptors for other in candidates}) > 1:
        words.append("RDKit descriptors, which predictions also take time for" if one.descriptors else "no descriptors")
    if len({other.gates for other in candidates}) > 1:
        words.append("learned gates" if one.gates == "learned" else "frozen gates")
    if any(other.pseudo_label_weight for other in candidates):
        source = "self-training" if one.round > 1 else "centroids"
        weight = one.pseudo_label_weight
        words.append(f"pseudo-labels of {source} (weight {weight:g})" if weight else "no pseudo-labels")
    return " with ".join(words)


def _next(place: str, data: str, levels: Sequence[str]) -> list[Text]:
    run, source = shlex.quote(place), shlex.quote(data)
    to = "predictions.csv" if len(levels) == 1 else "predictions/"
    lines = (
        f"censnet predict {run} NEW_DATA --to {to}",
        f"censnet embed {run} {source} --to embeddings/",
        f"censnet evaluate {run} NEW_DATA",
    )
    return [Text(f"  {line}", "green") for line in lines]


def _facts() -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column(overflow="fold")
    return facts


def _grid(head: str, parts: Sequence[str]) -> Table:
    grid = Table.grid(padding=(0, 3))
    grid.add_column(overflow="fold")
    for _ in parts:
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row(Text(head, "bold"), *(Text(part, "cyan") for part in parts))
    return grid


def _rank(name: str, monitor: str) -> tuple[bool, int]:
    """Sort key of a metric: the monitored one, then by the order of `METRICS`, the loss, and censored counts last."""
    metrics = dict.fromkeys(metric for names in METRICS.values() for metric in names)
    order = [*metrics, "loss", *COVERAGE_METRICS, "cost", "precision", "recall", *_AT_RANKS, *CENSORED]
    return name != monitor, order.index(name) if name in order else len(order)


def _number(value: float) -> str:
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.4g}"


def _whole(value: Any) -> str:
    """A count, or the mean of some."""
    return f"{value['mean'] if isinstance(value, Mapping) else value:,g}"


def _seconds(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"
