"""The sections of a page as HTML: what was trained, scores with intervals, settings, columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from censnet.comparison import Comparison
from censnet.levels import Level
from censnet.markup import Html, escape, escape_attribute, format_number, table
from censnet.ops.arrays import Array
from censnet.report.content import Content
from censnet.report.intervals import LEVEL, Interval, part_with_intervals, score_intervals
from censnet.report.rows import PARTS, TargetRows
from censnet.runs.known_rows import COUNTS
from censnet.runs.run import Run
from censnet.settings.presets import setting_names, values_of
from censnet.tasks.metrics import CENSORED, METRICS, higher_is_better, score
from censnet.tasks.targets import Target
from censnet.tasks.uncertainty import COVERAGE
from censnet.text import count

PART_NAMES = {"all": "these data", "new": "rows unknown to training"}
RARE = 0.1  # share of the positive class below which average precision says more than the area under ROC
MOST_ROWS = 200  # of a table of targets or columns


def header(content: Content, intervals: Mapping[str, Mapping[str, Interval]]) -> str:
    """The title, one sentence, and the scores that matter most."""
    run = content.run
    name = run.path.resolve().name if run.path is not None else "A run"
    specs = ["links" if spec == "link" else spec for spec in run.config.target_specs]
    said = f"Predicts {escape(', '.join(specs))}, trained on {escape(run.config.data)}"
    if content.is_other:
        said += f", and applied here to {escape(content.name)}"
    cards = "".join(_cards(content, intervals))
    warnings = "".join(f"<li>{escape(line, 600)}</li>" for line in _warnings(run))
    caution = f'<section class="caution" aria-label="Cautions"><ul>{warnings}</ul></section>' if warnings else ""
    return (
        f'<header><h1>{escape(name)}</h1><p class="lead">{said}.</p><div class="cards">{cards}</div></header>{caution}'
    )


def score_section(content: Content, intervals: Mapping[str, Mapping[str, Interval]]) -> str:
    """The scores of each level, part by part."""
    levels = list(dict.fromkeys(level for scores in content.scores.values() for level in scores))
    tables = "".join(_score_table(content, level, intervals.get(level, {})) for level in levels)
    some = any(intervals.values())
    note = (
        f"Brackets hold {LEVEL:.0%} of the scores of rows drawn with replacement (bootstrap). They leave out how much "
        "another training or another split would change, and that rows of one graph depend on each other."
        if some
        else "There are no intervals: the table of predictions does not determine these scores."
    )
    return _section("scores", "Scores", f'{tables}<p class="note">{note}</p>') if tables else ""


def comparison_section(comparison: Comparison) -> str:
    """What other methods reach on the same splits, by the metric that selects, and what that means."""
    frame, body = comparison.table, f"<p>{escape(comparison.sentence, 1000)}</p>"
    for target in frame["target"].unique():
        mine = frame[frame["target"] == target]
        mine = mine[mine["metric"] == mine["metric"].iloc[0]]
        rows = [
            [
                one.method,
                one.note if np.isnan(one.mean) else Html(format_number(one.mean) + _seed_interval(one.low, one.high)),
                "" if np.isnan(one.seconds) else Html(f"{one.seconds:,.1f}"),
                int(one.seeds),
            ]
            for one in mine.itertuples()
        ]
        head = ["", f"{plain_metric_name(mine['metric'].iloc[0])} on test", "seconds", "seeds"]
        body += f'<div class="scroll">{table(head, rows, str(target))}</div>'
    return _section("comparison", "Compared on the same split", body)


def training_section(run: Run) -> str:
    """Samples, split, settings, columns and versions."""
    config, provenance = run.config, run.config.provenance
    facts: list[tuple[str, object]] = [
        *((f"target {target.name}", _describe(target)) for target in config.targets[:MOST_ROWS]),
        *((f"split of {Level(level).table}", source) for level, source in config.split.items()),
        ("graph", str(config.graph_size) if config.graph_size is not None else ""),
        ("features", f"{config.node_width} of nodes, {config.edge_width} of edges, {config.graph_width} of graphs"),
        ("preset", config.settings.preset),
        ("models", count(config.members, "model")),
        ("kept epoch", ", ".join(map(str, config.best_epoch[:20])) + _monitored(run)),
        ("trained", f"{provenance.date}, {provenance.seconds:,.1f} s on {provenance.device}"),
        ("versions", f"censnet {provenance.censnet}, torch {provenance.torch}, Python {provenance.python}"),
    ]
    body = f'<div class="scroll">{table(["", ""], facts)}</div>'
    changed = config.start.changed if config.start is not None else []
    if changed:
        values = _setting_rows(run, changed)
        body += f'<div class="scroll">{table(["setting", "value"], values, "Settings that were changed")}</div>'
    body += _details("All settings", table(["setting", "value"], _setting_rows(run, setting_names())))
    for level in (Level.NODE, Level.EDGE, Level.GRAPH):
        columns = run.schema.table(level.table).columns
        if columns:
            used = {column.name for column in run.schema.features_of(level.table).columns if column.width}
            use = {True: "feature", False: "not used"}
            rows = [[c.name, c.kind, use[c.name in used], c.reason] for c in columns[:MOST_ROWS]]
            head = ["column", "type", "used as", "why"]
            body += _details(f"Columns of {level.table} ({len(columns):,})", table(head, rows))
    return _section("training", "How it was trained", body)


def _setting_rows(run: Run, names: Sequence[str]) -> list[tuple[str, str]]:
    """Settings and their values as they are written, all of them text: a column of these has one edge."""
    values = values_of(run.config.settings, names)
    return [(name, "" if value is None else str(value)) for name, value in values.items()]


def level_intervals(content: Content) -> dict[str, dict[str, Interval]]:
    """Level -> metric -> the interval of the score, in the part that has intervals."""
    found = {}
    for level, rows in content.rows.items():
        part = part_with_intervals(rows)
        scores = content.scores.get(part or "", {}).get(level, {})
        found[level] = score_intervals(rows, part, scores, content.units(level)) if part and scores else {}
    return found


def constant_scores(rows: Sequence[TargetRows], part: str) -> dict[str, float]:
    """The scores of a constant prediction: the shares of the classes in training, or the mean of training labels."""
    targets, outputs, labels = list[Target](), list[Array](), list[Array]()
    for each in rows[:MOST_ROWS]:
        target, chosen = each.target, np.flatnonzero(each.part == PARTS.index(part))
        known = each.labels[each.of_part("train" if "train" in each.parts else part)]
        if target.is_wide or not len(known):
            continue
        targets.append(target)
        here = (
            each.labels[chosen]
            if each.censoring is None
            else np.where(each.censoring == 0, each.labels, np.nan)[chosen]
        )
        if target.is_number:
            outputs.append(np.full((len(chosen), 1), (np.mean(known) - target.mean) / target.scale))
            here = (here - target.mean) / target.scale
        else:
            share = np.bincount(known.astype(np.int64), minlength=len(target.classes)) + 1e-9
            log_p = np.log(share / share.sum())
            row = log_p[1:] - log_p[:1] if target.kind == "binary" else log_p
            outputs.append(np.tile(row, (len(chosen), 1)))
        labels.append(here)
    if not targets:
        return {}
    return score(targets, np.concatenate(outputs, axis=1), np.stack(labels, axis=1))


def _section(name: str, title: str, body: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{body}</section>'


def _details(summary: str, body: str) -> str:
    return f'<details><summary>{summary}</summary><div class="scroll">{body}</div></details>'


def _cards(content: Content, intervals: Mapping[str, Mapping[str, Interval]]) -> Iterable[str]:
    for level, rows in content.rows.items():
        part = part_with_intervals(rows)
        scores = content.scores.get(part or "", {}).get(level, {})
        if part is None or not scores:
            continue
        for name in _main_metrics(content, level, rows)[:2]:
            if name in scores:
                of = PART_NAMES.get(part, part)
                yield _card(
                    Html(f"{_metric_name(name)} on {escape(of)}"), scores[name], intervals.get(level, {}).get(name),
                    Level(level).table if len(content.rows) > 1 else "", f"{part}/{level}/{name}",
                )  # fmt: skip
    size = content.run.config.graph_size
    if size is not None:
        lines = [count(size.nodes, "node"), count(size.edges, "edge")]
        lines += [count(size.graphs, "graph")] if size.graphs > 1 else []
        what = f'<span class="what">trained on</span><span class="lines">{"<br>".join(lines)}</span>'
        yield f'<div class="card">{what}</div>'


def _card(what: Html, value: float, interval: Interval | None, level: str, path: str) -> str:
    ends = f'<span class="interval">{_interval(interval)}</span>' if interval is not None else ""
    level = f'<span class="level">{level}</span>' if level else ""
    number = (
        f'<span class="big" data-score="{escape_attribute(path)}" data-value="{value!r}">{format_number(value)}</span>'
    )
    return f'<div class="card"><span class="what">{what}{level}</span>{number}{ends}</div>'


def _main_metrics(content: Content, level: str, rows: Sequence[TargetRows]) -> list[str]:
    """The monitored metric of a level, or the first of its kind, and one more that says something else."""
    kinds = [each.target.kind for each in rows]
    names = list(METRICS["link" if level == Level.LINK else kinds[0]])
    monitor = content.run.config.monitor
    if monitor in names:
        names.sort(key=lambda name: name != monitor)
    if kinds[0] == "binary" and level != Level.LINK and not _is_rare(rows[0]):
        names = [name for name in names if name != "ap"]
    return names


def _is_rare(rows: TargetRows) -> bool:
    labels = rows.labels[~np.isnan(rows.labels)]
    return len(labels) > 0 and float((labels == 1).mean()) < RARE


def _score_table(content: Content, level: str, intervals: Mapping[str, Interval]) -> str:
    parts = [part for part in (*PARTS, "new") if content.scores.get(part, {}).get(level)]
    by_part = {part: content.scores[part][level] for part in parts}
    every = [name for name in dict.fromkeys(name for found in by_part.values() for name in found) if name not in COUNTS]
    means = [name for name in every if "/" not in name]
    rows = content.rows.get(level, [])
    interval_part = part_with_intervals(rows) if rows else None
    constant = constant_scores(rows, interval_part) if interval_part else {}
    targets = list(dict.fromkeys(name.rpartition("/")[0] for name in every if "/" in name))
    what = f"{Level(level).table.capitalize()}" + (
        f", mean of {count(len(targets), 'target')}" if len(targets) > 1 else ""
    )
    head = ["", *(PART_NAMES.get(part, part) for part in parts)]
    head += [f"constant prediction, {PART_NAMES.get(str(interval_part), str(interval_part))}"] if constant else []

    def cell(name: str, part: str) -> object:
        if name not in by_part[part]:
            return ""
        interval = intervals.get(name) if part == interval_part else None
        return _score_cell(by_part[part][name], interval, f"{part}/{level}/{name}")

    def lines(names: Sequence[str], spell: Callable[[str], str]) -> list[list[object]]:
        found: list[list[object]] = [[Html(spell(name)), *(cell(name, part) for part in parts)] for name in names]
        for name, cells in zip(names, found, strict=True):
            value = f'<span class="dim">{format_number(constant[name])}</span>' if name in constant else ""
            cells += [Html(value)] if constant else []
        return found

    counts = [[Html("labeled rows"), *(_count_of(content, level, part) for part in parts), *([""] if constant else [])]]
    main = table(head, [*lines(means, _metric_name), *counts], what)
    if len(targets) > 1:
        names = [name for name in every if "/" in name][: MOST_ROWS * 5]
        main += _details(f"Each of {len(targets):,} targets", table(head, lines(names, _target_metric)))
    return f'<div class="scroll">{main}</div>'


def _count_of(content: Content, level: str, part: str) -> object:
    if part in PARTS and content.rows.get(level):
        found = max(len(each.of_part(part)) for each in content.rows[level])
        return found or ""
    return int(content.scores[part][level].get("rows", 0)) or ""


def _score_cell(value: float, interval: Interval | None, path: str) -> Html:
    ends = f'<span class="interval">{_interval(interval)}</span>' if interval is not None else ""
    return Html(
        f'<span data-score="{escape_attribute(path)}" data-value="{value!r}">{format_number(value)}</span>{ends}'
    )


def _interval(interval: Interval) -> str:
    return f"[{format_number(interval.low)}, {format_number(interval.high)}]"


def _seed_interval(low: float, high: float) -> str:
    return "" if np.isnan(low) else f'<span class="interval">{_interval(Interval(low, high))}</span>'


def plain_metric_name(name: str) -> str:
    """A metric as readers know it.

    >>> plain_metric_name("auc"), plain_metric_name("log_loss")
    ('AUC', 'log loss')
    """
    words = {
        "auc": "AUC",
        "ap": "average precision",
        "f1": "F1",
        "brier": "Brier score",
        "ece": "calibration error",
        "r2": "R²",
        "rmse": "RMSE",
        "mae": "MAE",
        "coverage": f"coverage ({COVERAGE:.0%} wanted)",
    }
    return words.get(name, name.replace("_", " "))


def _metric_name(name: str) -> str:
    if name in CENSORED:
        return name.replace("_", " ")
    try:
        arrow = "" if higher_is_better(name) else ' <span class="dim">(less is better)</span>'
    except ValueError:
        arrow = ""
    return escape_attribute(plain_metric_name(name)) + arrow


def _target_metric(name: str) -> str:
    column, _, metric = name.rpartition("/")
    return f"{escape(column, 80)}, {_metric_name(metric)}"


def _warnings(run: Run) -> Iterable[str]:
    yield from run.config.findings
    if run.config.finished_early:
        yield "The training was closed before its end."
    if run.config.gates_frozen:
        yield "The selected model has frozen gates: its predictions do not depend on the features of edges."
    if run.config.monitor is None:
        yield "There was nothing to validate on: the last epoch was kept."


def _monitored(run: Run) -> str:
    return "" if run.config.monitor is None else f", best by validation {run.config.monitor}"


def _describe(target: Any) -> str:
    shown = ", ".join(target.classes[:8]) + (
        f" and {len(target.classes) - 8:,} more" if len(target.classes) > 8 else ""
    )
    return f"{target.kind}" + (f": {shown}" if shown else "") + (f" ({target.reason})" if target.reason else "")
