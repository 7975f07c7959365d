"""`censnet compare`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from censnet.cli.messages import echo, echo_json, handle_interrupt, show_notes
from censnet.cli.options import (
    Changes,
    Column,
    Data,
    Device,
    Directed,
    Json,
    Preset,
    Quiet,
    Strict,
    Target,
    keep_heap,
    parse_overrides,
    path_option,
)
from censnet.cli.predict import write_tables
from censnet.cli.train import default_run_dir, default_targets
from censnet.errors import ArgumentError


def compare(
    data: Data,
    target: Target = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, each with its own split.")] = 3,
    out: Annotated[Path | None, path_option("The folder of results; runs/DATA-COLUMN-comparison if not given.")] = None,
    to: Annotated[Path | None, path_option("A .csv or .parquet file for the table.")] = None,
    preset: Preset = "strong",
    change: Changes = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="When each edge happened, as in `censnet train`.")
    ] = None,
    column: Column = None,
    device: Device = None,
    directed: Directed = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the comparison in --out; more seeds do.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the comparison in --out.")] = False,
    strict: Strict = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare with boosted trees, and with the same model without edges: the same rows, the same split."""
    show_notes(logging.WARNING if quiet else logging.INFO)
    if resume and overwrite:
        raise ArgumentError("--overwrite cannot be given with --resume, which replaces nothing")
    keep_heap()
    from censnet.cli.render_comparison import comparison_screen
    from censnet.comparison import compare
    from censnet.data.tables.files import SUFFIXES
    from censnet.settings.presets import parse_changes

    if to is not None and not to.name.lower().endswith(SUFFIXES):
        raise ArgumentError(f"--to is {to}, expected the name of a table, which ends in {', '.join(SUFFIXES)}")
    changes = parse_changes(change or ()) | ({} if time is None else {"data.time": time})
    targets = target or default_targets(data)
    usual = default_run_dir(data, targets)
    folder = out or usual.with_name(f"{usual.name}-comparison")
    again = [*sys.argv[1:], *([] if resume else ["--resume"])]
    with handle_interrupt(folder, again):
        found = compare(
            data, targets, folder, seeds=seeds, preset=preset, settings=changes, seed=seed,
            device=device, strict=strict, overrides=parse_overrides(column), progress=not quiet, directed=directed,
            if_exists="resume" if resume else "overwrite" if overwrite else "error",
        )  # fmt: skip
    if to is not None:
        write_tables({to: found.table})
    if as_json:
        echo_json({"table": found.table.astype(object).where(found.table.notna(), None).to_dict("records"),
                   "sentence": found.sentence})  # fmt: skip
    elif not quiet:
        echo(comparison_screen(found))
