"""`censnet train`."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, cast

import typer

from censnet.cli.messages import echo, echo_json, handle_interrupt, show_notes
from censnet.cli.options import (
    Changes,
    Column,
    Cost,
    Device,
    Directed,
    Preset,
    Quiet,
    Recall,
    Strict,
    Target,
    given_options,
    keep_heap,
    parse_cost,
    parse_overrides,
    path_option,
)
from censnet.errors import ArgumentError, DataError

WITHOUT_DATA = {
    "out",
    "resume",
    "finish",
    "change",
    "bf16",
    "device",
    "tensorboard",
    "quiet",
    "as_json",
    "time_budget",
    "cost",
    "recall",
}  # allowed


class Vary(Enum):
    """The source of variance among replicates."""

    both = "both"
    split = "split"
    init = "init"


def train(
    context: typer.Context,
    data: Annotated[
        str | None, typer.Argument(help="A built-in set, a CSV, Parquet, .smi or .sdf file, or a folder.")
    ] = None,
    target: Target = None,
    out: Annotated[Path | None, path_option("The run directory; runs/DATA-COLUMN if not given.")] = None,
    preset: Preset = "strong",
    change: Changes = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    ensemble: Annotated[int, typer.Option(min=1, help="Number of models whose predictions are averaged.")] = 1,
    replicates: Annotated[
        int | None, typer.Option(min=2, help="Train from N seeds; report mean and standard deviation.")
    ] = None,
    vary: Annotated[
        Vary, typer.Option(help="What the seeds of replicates vary: the split, the initialization, or both.")
    ] = Vary.both,
    cost: Cost = None,
    recall: Recall = None,
    column: Column = None,
    device: Device = None,
    bf16: Annotated[bool, typer.Option("--bf16", help="The same as --set training.precision=bf16.")] = False,
    directed: Directed = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="When each edge happened: the split is then by time, and windows of time are inputs."
        ),
    ] = None,
    label_delay: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="A label is known so long after its edge: 7d, 12h (s, m, h, d, w)."),
    ] = None,
    time_budget: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="The best model of so much wall time: 90s, 10m, 2h; none is as long as it takes."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the training in --out; needs no DATA.")] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Finish the training in --out with its best epoch so far; needs no DATA.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out, at the end.")] = False,
    strict: Strict = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write curves to OUT/tensorboard.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train a model, and save all that prediction needs in a run directory."""
    began = monotonic()
    show_notes(logging.WARNING if quiet else logging.INFO)
    _check_options(context)
    kept = keep_heap()
    from censnet.settings.presets import parse_changes

    flags = ["training.precision=bf16"] if bf16 else []
    flags += [] if directed is None else [f"data.directed={str(directed).lower()}"]
    given = {"data.time": ("--time", time), "data.label_delay": ("--label-delay", label_delay)}
    for option, value in given.values():
        if value is not None and not value.strip():
            raise ArgumentError(
                f"{option} is empty, expected a {'column' if option == '--time' else 'time such as 7d'}"
            )
    flags += [f"{name}={value}" for name, (_, value) in given.items() if value is not None]
    changes: dict[str, object] = {**parse_changes([*(change or ()), *flags])}
    costs = parse_cost(cost)
    changes |= {} if costs is None else {"training.cost": costs}
    changes |= {} if recall is None else {"training.recall": recall}
    if time_budget is not None:
        if not time_budget.strip():
            raise ArgumentError("--time-budget is empty, expected a time such as 90s, 10m or 2h, or none")
        changes |= parse_changes([f"training.time_budget={time_budget}"])
    import censnet.pipeline as pipeline
    from censnet.cli.render_run import replicates_screen, run_screen
    from censnet.inspection.cost import assume_heap_kept
    from censnet.training import processes
    from censnet.training.time_budget import counted_from

    if kept:
        assume_heap_kept()
    shared: dict[str, Any] = {"device": device, "progress": not quiet, "settings": changes}
    several = None
    if data is None:
        folder = cast(Path, out)
        with handle_interrupt(folder), counted_from(began):
            run = pipeline.resume_run(folder, tensorboard=tensorboard, finish=finish, **shared)
    else:
        targets = target or default_targets(data)
        folder = out or default_run_dir(data, targets)
        shared |= {"preset": preset, "seed": seed, "strict": strict}
        shared["if_exists"] = "resume" if resume else "overwrite" if overwrite else "error"
        shared["overrides"] = parse_overrides(column)
        again = None if replicates is None else [*sys.argv[1:], *([] if resume else ["--resume"])]
        with handle_interrupt(folder, again), counted_from(began):
            if replicates is None:
                run = pipeline.train(data, targets, folder, ensemble=ensemble, tensorboard=tensorboard, **shared)
            else:
                several = pipeline.replicate(data, targets, folder, replicates=replicates, vary=vary.value, **shared)
    processes.leave()
    if as_json:
        echo_json(run.metrics if several is None else several.summary)
    elif not quiet:
        echo(run_screen(run) if several is None else replicates_screen(several, folder, vary.value))


def default_targets(data: str) -> list[str]:
    """The targets that a built-in set is known for; other data have no default.

    >>> default_targets("karate")
    ['node:faction']
    """
    from censnet.data.datasets.download import DATASETS, is_built_in

    if not is_built_in(data):
        raise DataError(
            "there is no --target, expected node:COLUMN, edge:COLUMN, graph:COLUMN or link "
            f"(censnet inspect {data} shows the columns)"
        )
    targets = DATASETS[data].targets
    level = targets[0].partition(":")[0]
    return [target for target in targets if target.partition(":")[0] == level]


def default_run_dir(data: str, targets: Sequence[str]) -> Path:
    """The run directory if none is given: `runs/`, the name of the data, and the column.

    >>> str(default_run_dir("tables/payments.csv", ["edge:is_fraud=binary"]))
    'runs/payments-is_fraud'
    >>> str(default_run_dir("tox21", ["graph:NR-AR,NR-AhR", "link"]))
    'runs/tox21-NR-AR-and-2-more'
    """
    from censnet.data.tables.target_spec import parse_targets

    try:
        specs, link = parse_targets(targets)
        columns = ["all" if spec.every else spec.column for spec in specs] + ["link"] * link
    except DataError:  # which the training raises again, with the targets that the data suggest
        columns = list(targets)
    more = f"-and-{len(columns) - 1}-more" if len(columns) > 1 else ""
    name = f"{Path(data).resolve().name.split('.')[0]}-{columns[0]}{more}"
    return Path("runs") / re.sub(r"[^\w.-]+", "_", name)


def _check_options(context: typer.Context) -> None:
    """Raise for what is missing, and for options that would be ignored."""
    given = given_options(context)

    def refuse(names: set[str], why: str) -> None:
        found = [option for name, option in given.items() if name in names]
        if found:
            raise ArgumentError(f"{', '.join(found)} cannot be given {why}")

    if "data" not in given:
        if "out" not in given or not given.keys() & {"resume", "finish"}:
            raise ArgumentError("there are no DATA, expected some, or --resume and --out to go on with a training")
        refuse(given.keys() - WITHOUT_DATA, "without DATA: --resume goes on with what the training was started with")
    if "finish" in given:
        refuse(
            {"data", "resume", "change", "bf16", "tensorboard", "time_budget"}, "with --finish, which trains no more"
        )
    if "resume" in given:
        refuse({"overwrite"}, "with --resume, which replaces nothing")
    if "replicates" in given:
        refuse({"ensemble", "tensorboard"}, "with --replicates")
    else:
        refuse({"vary"}, "without --replicates")
