"""Notes that are logged before a training starts: on the data, the targets, the split, times and leaks."""

from __future__ import annotations

import logging
from pathlib import Path

from censnet.console import printable
from censnet.inspection import audit
from censnet.levels import Level
from censnet.option_names import setting_option
from censnet.pipeline.prepare import Prepared
from censnet.text import count

logger = logging.getLogger(__name__)
MAX_SHOWN = 12  # targets that are described one by one
MAX_FINDINGS = 8


def announce(prepared: Prepared, folder: Path | None) -> None:
    """Log the notes on the data, the targets, the split and the findings before the training starts."""
    for note in prepared.data.notes:
        if note.kind != "row error":  # a warning was logged when the rows were read
            logger.info("%s", note)
    for target in prepared.targets[:MAX_SHOWN]:
        logger.info("%s is %s: %s", target.name, target.kind, target.reason)
    if len(prepared.targets) > MAX_SHOWN:
        logger.info("... and %d more targets", len(prepared.targets) - MAX_SHOWN)
    for level, source in prepared.split_sources.items():
        logger.info("split of %s: %s", Level(level).table, source)
    for line in describe_times(prepared):
        logger.info("%s", line)
    for finding in prepared.findings:
        logger.warning("%s", finding)
    if folder is not None:
        logger.info("the run goes to %s", folder)


def describe_times(prepared: Prepared) -> list[str]:
    """Sentences on the inputs of a model that follow from times, and on the labels known when rows are scored."""
    column, task_data, found = prepared.data.schema.time, prepared.task_data, list[str]()
    if column is None:
        return found
    if prepared.settings.model.windows is True:
        widths = ", ".join(map(column.show_duration, task_data.widths))
        found.append(f"edges also have the gaps to the edges before and after them, and windows of {widths}")
    delay = task_data.label_delay
    if prepared.settings.model.causal is True:
        known = f", {column.show_duration(delay)} after their edge," if delay else ""
        said = "each edge is embedded from the edges before it alone, and scored with the labels that arrived"
        of_nodes = "each node is embedded as of the last edge, from what happened to it in the order of time"
        found.append(f"{said}{known} before it" if "edge" in task_data.parts else of_nodes)
    elif task_data.is_by_time:
        known = f" and older than {column.show_duration(delay)}" if delay else ""
        found.append(
            f"validation and test rows are scored with the labels before their part{known}; no later one, though edges "
            "of all times are seen"
        )
    elif "edge" in task_data.parts:
        found.append("edges are not split by time: later edges are seen when a row is scored")
    elif prepared.links is None:
        reads = setting_option("model.causal", True)
        found.append(f"no layer reads the times of edges: {reads} embeds nodes from their edges in the order of time")
    times = task_data.graph.times
    span = 0.0 if times is None or not len(times) else float(times.max() - times.min())
    if delay and delay >= span:
        both = column.show_duration(delay), column.show_duration(span)
        found.append(f"no label is ever known: the label delay is {both[0]}, and all edges are within {both[1]}")
    if prepared.links is not None and prepared.settings.data.split not in ("auto", "time", "file"):
        found.append("links are not split by time: later edges are seen when a link is scored")
    return found


def find_leaks(prepared: Prepared) -> list[str]:
    """Features that leak a target, and rows that are in two parts, as `censnet inspect` finds them: the first few."""
    targets: dict[str, list[str]] = {}
    for target in prepared.targets:
        targets.setdefault(target.level.table, []).append(target.column)
    splits = {Level(level).table: split for level, split in prepared.splits.items()}
    found = audit.find_leaks(prepared.data, targets, splits)
    lines = [one.what for one in found if one.kind in ("leak", "duplicate") and one.level != "note"]
    more = len(lines) - MAX_FINDINGS
    lines = [printable(line, longest=500) for line in lines[:MAX_FINDINGS]]
    return lines + ([f"{count(more, 'more finding')} like these, which censnet inspect shows"] if more > 0 else [])
