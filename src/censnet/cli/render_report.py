"""The report of `censnet inspect` on one screen: problems stand out, long lists are cut, `--json` has all of it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table

from censnet.cli.messages import MARKS
from censnet.console import Text
from censnet.inspection.report import LabelReport, Report
from censnet.text import count, format_bytes

MAX_COLUMNS = 12
MAX_LABELS = 12
MAX_REASONS = 6
MAX_FINDINGS = 8
MAX_NOTES = 4
BARS = "▁▂▃▄▅▆▇█"


class ReportScreen:
    """A report as a rich renderable."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def __rich_console__(self, console: object, options: ConsoleOptions) -> RenderResult:
        plain = not options.encoding.lower().startswith("utf")
        yield Group(*self._lines(plain))

    def _lines(self, plain: bool) -> Iterable[RenderableType]:
        report, shape, line = self.report, self.report.structure, self.report.line_graph
        graphs = f"{shape.graphs:,} graphs, " if shape.graphs > 1 else ""
        sparse = " (sparse)" if shape.sparse else ""
        nodes = f"{count(shape.nodes, 'node')} x {shape.node_width:,}{sparse}"
        edges = f"{count(shape.edges, 'edge')} x {shape.edge_width:,}"
        yield Text.assemble((report.name, "bold"), f"  {graphs}{nodes}, {edges}")
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="cyan", no_wrap=True)
        facts.add_column(overflow="fold")
        for table in report.tables:
            bad = f", {table.bad_rows:,} of them bad" if table.bad_rows else ""
            facts.add_row(table.table, Text(f"{table.file}: {count(table.rows, 'row')}{bad}", "red" if bad else ""))
        facts.add_row("structure", _structure(report))
        facts.add_row("degrees", _degrees(report, plain))
        memory = f"explicit {format_bytes(line.explicit_bytes)}, dense {format_bytes(line.dense_bytes)}"
        facts.add_row("line graph", f"{count(line.links, 'link')}, not built ({memory})")
        if (cost := report.cost) is not None:
            batches = f" in {count(cost.batches, 'batch')}" if cost.batches > 1 else ""
            facts.add_row(
                "training",
                f"about {_seconds(cost.seconds)} an epoch{batches} on this CPU and {format_bytes(cost.bytes)}: "
                f"an estimate for one model, {cost.network}",
            )
        for table_name, sizes in report.splits.items():
            parts = ", ".join(f"{count:,} {part}" for part, count in sizes.items())
            facts.add_row("split", f"{table_name}: {parts}")
        yield facts
        if report.columns:
            yield Text("columns", "bold")
            yield _columns(report, plain)
        yield Text("labels", "bold")
        yield _labels(report, plain)
        yield Text("audit", "bold")
        yield _findings(report, plain)


def _structure(report: Report) -> str:
    shape = report.structure
    if shape.graphs > 1:
        least, median, most = shape.nodes_per_graph
        size = f"{least:,} to {most:,} nodes in a graph, median {median:,.0f}; {count(shape.components, 'component')}"
    else:
        largest = f"{count(shape.largest_component, 'node')} ({shape.largest_component / shape.nodes:.1%})"
        size = count(shape.components, "component") + (f", the largest {largest}" if shape.components > 1 else "")
    rest = f"{shape.isolated:,} isolated, {count(shape.loops, 'loop')}, {count(shape.parallel, 'parallel edge')}"
    return f"{size}; {rest}"


def _degrees(report: Report, plain: bool) -> str:
    degrees = report.structure.degrees
    bins = degrees.histogram
    bins = bins[next((place for place, (*_, count) in enumerate(bins) if count), 0) :]  # from the first that has a node
    if len(bins) > 7:
        bins = [*bins[:6], (bins[6][0], degrees.most, sum(count for *_, count in bins[6:]))]
    most = max((nodes for *_, nodes in bins), default=1) or 1
    shown = []
    for low, high, nodes in bins:
        name = str(low) if low == high else f"{low}-{high}"
        bar = f"{nodes:,}" if plain else BARS[-(-nodes * len(BARS) // most) - 1] if nodes else " "
        shown.append(f"{name} {bar}")
    median = f"{degrees.median:g}"
    return f"min {degrees.least}, median {median}, mean {degrees.mean:.1f}, max {degrees.most:,}   {'  '.join(shown)}"


def _columns(report: Report, plain: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for style in ("dim", "", "cyan", "dim"):
        grid.add_column(
            style=style,
            no_wrap=style != "dim",
            overflow="crop" if plain else "ellipsis",
            max_width=32 if style == "" else None,
        )
    shown = sorted(report.columns, key=lambda column: column.features == 0)
    for column in shown[:MAX_COLUMNS]:
        made = count(column.features, "feature") if column.features else "left out"
        grid.add_row("  " + column.table, column.name, f"{column.kind}: {made}", column.reason)
    if len(shown) > MAX_COLUMNS:
        grid.add_row("", f"... and {len(shown) - MAX_COLUMNS:,} more", "", "")
    return grid


def _labels(report: Report, plain: bool) -> RenderableType:
    labels = report.labels
    if not labels:
        levels = [table.table.removesuffix("s") for table in report.tables]
        forms = [f"{level}:COLUMN" for level in levels] + (["link"] if levels != ["graph"] else [])
        return Text(f"  no target was named: give --target {' or '.join(forms)}", "dim")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="cyan", overflow="crop" if plain else "ellipsis")
    grid.add_column(no_wrap=True, overflow="crop")
    grid.add_column(overflow="fold")
    for label in labels[:MAX_LABELS]:
        missing = f", {label.missing:,} missing" if label.missing else ""
        grid.add_row("  " + label.target, f"{label.rows - label.missing:,} labeled{missing}", _balance(label))
        if label.kind and len(labels) <= MAX_REASONS:
            grid.add_row("", "", Text(f"{label.kind}: {label.reason}", "dim"))
    if len(labels) > MAX_LABELS:
        grid.add_row(f"  ... and {len(labels) - MAX_LABELS} more", "", "")
    return grid


def _balance(label: LabelReport) -> str:
    if label.quantity:
        found = label.quantity
        ends = f"{found['least']:.4g} to {found['most']:.4g}, mean {found['mean']:.4g}"
        censored = f"; {label.censored:,} more are censored" if label.censored else ""
        return f"{ends}, deviation {found['deviation']:.3g}{censored}"
    total = label.rows - label.missing
    shares = [f"{name[:24]} {count / total:.1%}" for name, count in list(label.classes.items())[:8]]
    more = f", and {label.num_classes - 8:,} more" if label.num_classes > 8 else ""
    return f"{count(label.num_classes, 'class')}: {', '.join(shares)}{more}"


def _findings(report: Report, plain: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    if not any(finding.level != "note" for finding in report.findings):
        grid.add_row(Text("  ok" if plain else "  ✓", "green"), Text("nothing wrong was found", "green"))
    for finding in report.findings[:MAX_FINDINGS]:
        mark, letter, style = MARKS[finding.level]
        grid.add_row(Text(f"  {letter if plain else mark}", style), Text(finding.what, style))
    if len(report.findings) > MAX_FINDINGS:
        grid.add_row("", f"... and {len(report.findings) - MAX_FINDINGS} more")
    notes = [note for note in report.notes if note.kind not in ("column", "row error")]  # those are above
    for note in notes[:MAX_NOTES]:
        grid.add_row(Text("  -" if plain else "  ·", "dim"), Text(_short(note), "dim"))
    return grid


def _short(text: str, longest: int = 240) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{float(f'{seconds * 1000:.2g}'):g} ms"
    return f"{float(f'{seconds:.2g}'):g} s" if seconds < 100 else f"{seconds / 60:,.0f} minutes"
