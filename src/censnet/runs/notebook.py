"""A run as a notebook shows it: what is predicted from what, and the scores of each part."""

from __future__ import annotations

from collections.abc import Mapping

from censnet.markup import Html, escape, table
from censnet.runs.config import RunConfig
from censnet.training.evaluator import Scores

MOST = 30  # metrics of a level


def run_html(config: RunConfig, metrics: Mapping[str, Scores], levels: list[str]) -> Html:
    """The targets, the data and the scores; those of single columns only where there is one."""
    members = f", {config.members} members" if config.members > 1 else ""
    said = f"{escape(', '.join(config.target_specs))} on {escape(config.data)} ({config.settings.preset}{members})"
    parts, found = list(metrics), [f"<p><strong>Run</strong>: {said}</p>"]
    for level in levels:
        scores = {part: metrics[part].get(level, {}) for part in parts}
        names = dict.fromkeys(name for values in scores.values() for name in values if "/" not in name)
        rows = [[name, *(scores[part].get(name, "") for part in parts)] for name in names]
        found += [table([level, *parts], rows[:MOST])] if rows else []
    return Html("".join(found))
