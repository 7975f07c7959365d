"""The paper's tables as Markdown and LaTeX: our scores with the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from censnet_experiments.cells import TABLES, Cell
from censnet_experiments.spec import Spec
from censnet_experiments.summary import Comparison, Key, Summary

MARKS = {"above": "▲", "same": "=", "near": "≈", "below": "▼"}
LATEX_MARKS = {"above": r"$\uparrow$", "same": "$=$", "near": r"$\approx$", "below": r"$\downarrow$"}
LATEX_SIGN = r"$\pm$"
LEGEND = (
    "▲ better than published, = the same, both by the 95 % confidence interval of our mean; ≈ worse, but within one "
    "published spread; ▼ worse. Spreads are sample standard deviations over seeds."
)
Summaries = Mapping[Key, Mapping[str, Summary]]


def digits_of(cell: Cell) -> int:
    """The number of decimals: as many as the paper prints, one more in the tables of our own splits."""
    return 1 if cell.unit == 100 else 3 if cell.split else 2


def compare(spec: Spec, cell: str, metric: str, summaries: Summaries) -> Comparison | None:
    """Compare our score with the published one; None where either is missing."""
    ours = summaries.get((spec.table, cell, spec.method), {}).get(metric)
    published = spec.published.get(cell, {}).get(metric)
    if ours is None or published is None:
        return None
    about = TABLES[spec.table][cell]
    return Comparison(ours, published, about, digits_of(about))


def markdown_table(specs: Sequence[Spec], summaries: Summaries, published: bool = True) -> str:
    """One row for each cell and metric, one column for each method: ours, the published score in brackets, the mark.

    In tables other than the paper's, rows without any record are left out.

    Args:
        specs: of one table.
        summaries: of its records.
        published: whether to show the published scores.
    """
    rows = [["", *(spec.title for spec in specs), "runs"]]
    additional = [spec for spec in specs if spec.section != "table"]
    for cell, metric in _rows(specs):
        if additional and all(_ours(spec, cell, metric, summaries) is None for spec in additional):
            continue
        counts = {entry.count for spec in specs if (entry := _ours(spec, cell, metric, summaries)) is not None}
        runs = "-".join(str(count) for count in sorted({min(counts), max(counts)})) if counts else ""
        rows.append(
            [_name(specs[0].table, cell, metric), *(_entry(s, cell, metric, summaries, published) for s in specs), runs]
        )
    lines = [" | ".join(row) for row in rows]
    ruler = " | ".join(["---", *["---:"] * (len(rows[0]) - 1)])
    return "\n".join(f"| {line} |" for line in [lines[0], ruler, *lines[1:]]) + "\n"


def latex_table(specs: Sequence[Spec], summaries: Summaries) -> str:
    """The same in LaTeX with booktabs: ours above and the published score below in small print."""
    columns = "l" + "r" * len(specs)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [" & ".join(["", *(_escape(spec.title) for spec in specs)]) + r" \\", r"\midrule"]
    for cell, metric in _rows(specs):
        ours, theirs = [_escape(_name(specs[0].table, cell, metric))], [r"\quad published"]
        for spec in specs:
            entry, comparison = _ours(spec, cell, metric, summaries), compare(spec, cell, metric, summaries)
            digits = digits_of(TABLES[spec.table][cell])
            mark = LATEX_MARKS[comparison.verdict] if comparison else ""
            ours.append("--" if entry is None else f"{_plus_minus(entry, digits, LATEX_SIGN)} {mark}".strip())
            published = spec.published.get(cell, {}).get(metric)
            theirs.append("" if published is None else f"{published[0]:.{digits}f}{LATEX_SIGN}{published[1]:g}")
        lines += [" & ".join(ours) + r" \\", r"\small " + r" & \small ".join(theirs) + r" \\"]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _rows(specs: Sequence[Spec]) -> list[tuple[str, str]]:
    return [(cell, metric) for cell, about in TABLES[specs[0].table].items() for metric in about.metrics]


def _name(table: str, cell: str, metric: str) -> str:
    data, _, rate = cell.partition("-")
    about = TABLES[table][cell]
    share = f"{rate} %" if rate[:1].isdigit() else rate
    return " ".join(part for part in (data, share, metric if len(about.metrics) > 1 else "") if part)


def _ours(spec: Spec, cell: str, metric: str, summaries: Summaries) -> Summary | None:
    return summaries.get((spec.table, cell, spec.method), {}).get(metric)


def _entry(spec: Spec, cell: str, metric: str, summaries: Summaries, with_published: bool) -> str:
    ours = _ours(spec, cell, metric, summaries)
    comparison = compare(spec, cell, metric, summaries) if with_published else None
    published = spec.published.get(cell, {}).get(metric) if with_published else None
    digits = digits_of(TABLES[spec.table][cell])
    shown = "no record" if ours is None else _plus_minus(ours, digits, " ± ")
    in_brackets = "" if published is None else f" ({published[0]:.{digits}f})"
    return shown + in_brackets + (f" {MARKS[comparison.verdict]}" if comparison else "")


def _plus_minus(summary: Summary, digits: int, sign: str) -> str:
    return f"{summary.mean:.{digits}f}{sign}{summary.spread:.{digits}f}"


def _escape(text: str) -> str:
    return text.replace("%", r"\%")
