"""One page as one HTML file: sections, the content of the figures as JSON, and our own script and style."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from censnet.arguments import check_arguments
from censnet.comparison import Comparison, load_comparison
from censnet.comparison.records import FILE
from censnet.levels import Level
from censnet.markup import document, escape, escape_attribute, script_json, visible
from censnet.report.content import Content, gather
from censnet.report.explanations import explain_worst
from censnet.report.figures import target_figures
from censnet.report.maps import Method, make_map
from censnet.report.sections import (
    comparison_section,
    header,
    level_intervals,
    plain_metric_name,
    score_section,
    training_section,
)
from censnet.runs.predictor import UNLIKE
from censnet.runs.run import Run
from censnet.tasks.predictions import class_names
from censnet.training.devices import find_device

STYLE, SCRIPTS = "page.css", ("dom.js", "charts.js", "figures.js", "molecule.js", "map.js", "main.js")
FIGURED = 24  # targets with figures
EPOCHS = 2_000  # points of a learning curve
MEMBERS = 20  # of an ensemble whose curves are drawn


def report_page(
    run: Run,
    data: object = None,
    *,
    method: Method = "pca",
    comparison: str | os.PathLike[str] | None = None,
    explain: int | None = None,
    strict: bool = False,
    device: str | None = None,
    progress: bool = False,
) -> str:
    """A run as one self-contained HTML page, which reads nothing from a network.

    Args:
        run: the run.
        data: anything `load_data` takes: on other data than those of the training the page shows predictions, errors
            and embeddings of these. The training data if None; where they cannot be read, the page has no map.
        method: of the two dimensions of the map: `pca`, or `tsne`, which takes longer and shows fewer points.
        comparison: the folder of a comparison, by `censnet.compare`, whose table is shown; if None, that beside the run
            with `-comparison` behind its name, if it is of the same targets.
        explain: how many of the worst rows of each target are explained; None is 5, as far as some seconds are enough.
        strict: whether a row that cannot be used is an error.
        device: where to compute; the best available if None.
        progress: whether to show a progress bar.
    """
    check_arguments(report_page, locals())
    where = find_device(device)
    compared = find_comparison(run) if comparison is None else load_comparison(comparison)
    content = gather(run, data, strict, where, progress)
    figured = [(level, number) for level, rows in content.rows.items() for number in range(len(rows))][:FIGURED]
    worst = {level: content.worst(level, number) for level, number in reversed(figured)}  # of the first target
    mapped = None
    if content.dataset is not None:
        first = {level: rows for level, (_, rows) in worst.items()}
        embed = partial(run.embeddings, device=where, progress=progress)
        mapped = make_map(content.dataset, embed, content.rows, first, method, content.link_part())
    explained, why = explain_worst(content, {key: content.worst(*key)[1] for key in figured}, explain)
    total = sum(len(rows) for rows in content.rows.values())
    parts = {
        "targets": [
            target_figures(content.rows[level][number])
            | {"worst": _worst(content, level, number, explained.get((level, number), {}), why.get(level, ""))}
            for level, number in figured
        ],
        "unshown": total - len(figured),
        "history": _history(run),
        "map": mapped,
        "missing": content.missing,
    }
    intervals = level_intervals(content)
    body = header(content, intervals) + score_section(content, intervals)
    body += "" if compared is None else comparison_section(compared)
    body += _places(parts) + training_section(run)
    name = run.path.resolve().name if run.path is not None else "run"
    return _assemble(f"{escape_attribute(name)}: censnet", body, parts)


def find_comparison(run: Run) -> Comparison | None:
    """The comparison that lies beside a run, as `censnet compare` names it, if it is of the same targets."""
    if run.path is None:
        return None
    folder = run.path.resolve()
    folder = folder.with_name(f"{folder.name}-comparison")
    if not (folder / FILE).exists():
        return None
    found = load_comparison(folder)
    same = sorted(found.stored.start.target_specs) == sorted(run.config.target_specs)
    return found if same and found.stored.start.data in ("", run.config.data) else None


def _places(parts: Mapping[str, Any]) -> str:
    """The places that the script fills, with their titles, in the order of the page."""
    found = ""
    if parts["targets"]:
        found += '<section id="predictions"><h2>Predictions</h2><div data-fill="predictions"></div></section>'
        found += '<section id="errors"><h2>Worst errors</h2><div data-fill="errors"></div></section>'
    if parts["map"] is not None:
        found += '<section id="map"><h2>Map of embeddings</h2><div data-fill="map"></div></section>'
    elif parts["missing"]:
        said = f"{escape(parts['missing'], 400)}: name them as DATA and the page has a map of their embeddings."
        found += f'<section id="map"><h2>Map of embeddings</h2><p class="note">There is none: {said}</p></section>'
    if parts["history"]["series"]:
        found += '<section id="learning"><h2>Learning curves</h2><div data-fill="learning"></div></section>'
    return found


def _assemble(title: str, body: str, parts: Mapping[str, Any]) -> str:
    style = _asset(STYLE)
    script = '"use strict";\n(() => {\n' + "\n".join(map(_asset, SCRIPTS)) + "\n})();\n"
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:"
    policy += "; base-uri 'none'; form-action 'none'"
    links = "".join(
        f'<a href="#{name}">{text}</a>'
        for name, text in (
            *(
                ("scores", "Scores"),
                ("comparison", "Comparison"),
                ("predictions", "Predictions"),
                ("errors", "Errors"),
                ("map", "Map"),
            ),
            *(("learning", "Learning"), ("training", "Training")),
        )
        if f'<section id="{name}"' in body
    )
    head = f"""<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">"""
    main = f'<noscript><p class="caution">Figures need JavaScript. The tables below do not.</p></noscript>\n{body}'
    code = f'<script type="application/json" id="content">{script_json(parts)}</script>\n<script>{script}</script>'
    return document(title, head, style, "Sections", links, main, code)


def _asset(name: str) -> str:
    return resources.files("censnet.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The SHA-256 of a script or style by which the page's policy allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _history(run: Run) -> dict[str, Any]:
    """The curves of history.csv, for each member the loss and what was validated."""
    history, found = run.history, list[dict[str, Any]]()
    names = [str(name) for name in history if name not in ("member", "epoch", "learning_rate")]
    members = history["member"].to_numpy() if "member" in history else np.zeros(len(history), np.int64)
    for member in np.unique(members)[:MEMBERS]:
        mine = history[members == member]
        step = max(1, -(-len(mine) // EPOCHS))
        mine = mine.iloc[::step]
        curves = {name: _finite(mine[name]) for name in names}
        found.append({"member": int(member), "epoch": mine["epoch"].astype(int).tolist(), "curves": curves})
    monitor = None if run.config.monitor is None else plain_metric_name(run.config.monitor)
    return {"series": found, "names": names, "monitor": monitor, "best": run.config.best_epoch[:MEMBERS]}


def _finite(column: pd.Series) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in column.to_numpy(np.float64, na_value=np.nan)]


def _worst(content: Content, level: str, number: int, explained: Mapping[int, Any], why: str) -> dict[str, Any]:
    """The rows with the worst predictions of a target: their ids, label, prediction, error, and why it is so."""
    part, chosen = content.worst(level, number)
    rows, frame = content.rows[level][number], content.frames[level]
    target = rows.target
    ids = ["source", "target"] if level == Level.LINK else list(map(str, frame.columns[: list(frame).index("split")]))
    unlike = next((str(name) for name in reversed(list(frame)) if str(name).startswith(UNLIKE)), None)
    names = None if target.is_number or level == Level.LINK else class_names(target)

    def spell(value: float) -> object:
        if np.isnan(value):
            return None
        if target.is_number:
            return float(value)
        return visible(target.classes[int(value)] if names is None else names[int(value)], 60)

    found = []
    for row in chosen.tolist():
        entry = {
            "row": row,
            "ids": [visible(frame[name].iloc[row], 80) for name in ids[:4]],
            "label": spell(rows.labels[row]),
            "predicted": spell(rows.predicted[row]),
            "error": float(rows.predicted[row] - rows.labels[row]) if target.is_number else None,
        }
        if unlike is not None and isinstance(frame[unlike].iloc[row], str):
            entry["unlike"] = visible(frame[unlike].iloc[row])
        if rows.probability is not None:
            entry["p"] = float(rows.probability[row, int(rows.labels[row])])
        if row in explained:
            entry["why"] = explained[row]
        found.append(entry)
    return {
        "part": part,
        "unexplained": visible(why, 300),
        "ids": [visible(name, 40) for name in ids[:4]],
        "rows": found,
    }
