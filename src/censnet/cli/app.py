"""The command line: parse, call one function, print.

What is heavy is imported by the command that needs it, so that `--help` answers at once.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import RenderableType

from censnet.cli.commands import Commands
from censnet.cli.messages import WRONG, echo, handle_interrupt, named_path, report_errors, say_json, say_rows
from censnet.text import count

app = typer.Typer(
    cls=Commands,
    help="Co-embed the nodes and edges of graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

WITHOUT_DATA = {"out", "resume", "finish", "change", "bf16", "device", "tensorboard", "quiet", "as_json"}  # may be said


class Vary(Enum):
    """What the seeds of replicates decide."""

    both = "both"
    split = "split"
    init = "init"


class Columns(Enum):
    """Which columns of the user's stand beside a prediction."""

    all = "all"
    ids = "ids"


class Format(Enum):
    """The files of embeddings."""

    parquet = "parquet"
    csv = "csv"


Data = Annotated[str, typer.Argument(help="A built-in set, a CSV, Parquet, .smi or .sdf file, or a folder of tables.")]
DataOrSmiles = Annotated[
    list[str],
    typer.Argument(metavar="DATA...", help="A set, a file or a folder; or, for molecules, a SMILES or several."),
]
Trained = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, which `censnet train` made.")]
Target = Annotated[
    list[str] | None,
    typer.Option(
        help="node:COLUMN, edge:COLUMN, graph:COLUMN[,COLUMN] or link; may be repeated. COLUMN=KIND says what it is "
        '(binary, binary:POSITIVE_CLASS, multiclass, regression), graph:* is all columns left, graph:"a, b" one name.'
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=KIND", help="What a column is: number, category, drop, id, source...; repeatable."),
]
Preset = Annotated[str, typer.Option(help="strong, paper or released.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; the best there is if not given.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail at the first row that cannot be used.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def _print_version(asked: bool) -> None:
    if asked:
        try:
            found = version("censnet")
        except PackageNotFoundError:
            found = "is not installed, but run from its source"
        echo(f"censnet {found}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and stop.")
    ] = False,
) -> None:
    """Co-embed the nodes and edges of graphs."""


@app.command()
def train(
    context: typer.Context,
    data: Annotated[
        str | None, typer.Argument(help="A built-in set, a CSV, Parquet, .smi or .sdf file, or a folder.")
    ] = None,
    target: Target = None,
    out: Annotated[
        Path | None,
        typer.Option(parser=named_path, metavar="PATH", help="The run directory; runs/DATA-COLUMN if not given."),
    ] = None,
    preset: Preset = "strong",
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Such as model.hidden=64; `censnet settings` lists all."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is random.")] = 0,
    ensemble: Annotated[int, typer.Option(min=1, help="Networks whose answers are averaged.")] = 1,
    replicates: Annotated[int | None, typer.Option(min=2, help="Train from N seeds; say mean and spread.")] = None,
    vary: Annotated[Vary, typer.Option(help="What the seeds of replicates decide.")] = Vary.both,
    column: Column = None,
    device: Device = None,
    bf16: Annotated[bool, typer.Option("--bf16", help="The same as --set training.precision=bf16.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the training in --out; needs no DATA.")] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Close the training in --out with its best epoch so far; needs no DATA.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out, at the end.")] = False,
    strict: Strict = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write curves to OUT/tensorboard.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print warnings and errors alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Train on graphs, and keep all that it takes to predict in a run directory."""
    scores: object
    screen: RenderableType
    with report_errors(logging.WARNING if quiet else logging.INFO):
        from censnet import pipeline
        from censnet.cli.defaults import default_run_dir, default_targets, parse_overrides
        from censnet.cli.render_run import replicates_screen, run_screen
        from censnet.settings.presets import parse_changes

        _check_together(context)
        changes = parse_changes([*(change or ()), *(["training.precision=bf16"] if bf16 else ())])
        shared: dict[str, Any] = {"device": device, "progress": not quiet, "settings": changes}
        if data is None:
            place = cast(Path, out)
            with handle_interrupt(place):
                run = pipeline.resume_run(place, tensorboard=tensorboard, finish=finish, **shared)
        else:
            targets = target or default_targets(data)
            place = out or default_run_dir(data, targets)
            shared |= {"preset": preset, "seed": seed, "strict": strict}
            shared["if_exists"] = "resume" if resume else "overwrite" if overwrite else "error"
            shared["overrides"] = parse_overrides(column or ())
            again = None if replicates is None else [*sys.argv[1:], *([] if resume else ["--resume"])]
            with handle_interrupt(place, again):
                if replicates is None:
                    run = pipeline.train(data, targets, place, ensemble=ensemble, tensorboard=tensorboard, **shared)
                else:
                    several = pipeline.replicate(data, targets, place, replicates=replicates, vary=vary.value, **shared)
        if replicates is None:
            scores, screen = run.metrics, run_screen(run)
        else:
            scores, screen = several.summary, replicates_screen(several, place, vary.value)
    if as_json:
        say_json(scores)
    elif not quiet:
        echo(screen)


@app.command()
def predict(
    run: Trained,
    data: DataOrSmiles,
    to: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="PATH", help="A .csv or .parquet file; a folder, if there are several levels."
        ),
    ] = None,
    level: Annotated[str | None, typer.Option(help="node, edge, graph or link, where the run has several.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="A table of source and target: judge these pairs.")] = None,
    top: Annotated[int | None, typer.Option(min=1, help="The likeliest N links that are not there.")] = None,
    columns: Annotated[Columns, typer.Option(help="Which of your columns to repeat.")] = Columns.all,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Answer for each row of the data: classes with their probabilities, numbers, links. CSV unless --to is given."""
    with report_errors(logging.INFO):
        from censnet.cli.predict import check_outputs, predict_levels, prediction_places, write_tables
        from censnet.data.tables.files import to_csv
        from censnet.runs import load_run

        trained = load_run(run)
        places = prediction_places(trained, to, level, links=pairs is not None or top is not None)
        check_outputs([path for path in places.values() if path is not None], trained, _given(data), pairs)
        found = predict_levels(
            trained, _given(data), list(places), keep=columns.value, pairs=pairs, top=top, strict=strict, device=device,
            progress=True,
        )  # fmt: skip
        files = {path: found[name] for name, path in places.items() if path is not None}
        write_tables(files)
        text = b"" if files else to_csv(next(iter(found.values())), "predictions")
    if text:
        say_rows(text)
    for path, frame in files.items():
        bad = int(frame["error"].notna().sum()) if "error" in frame else 0
        echo(f"{path}: {count(len(frame), 'row')}" + (f", {bad:,} of them with an error" if bad else ""))


@app.command()
def embed(
    run: Trained,
    data: DataOrSmiles,
    to: Annotated[
        Path,
        typer.Option(
            parser=named_path, metavar="PATH", help="The folder for nodes, edges and, for many graphs, graphs."
        ),
    ],
    form: Annotated[Format, typer.Option("--format", help="Of the files.")] = Format.parquet,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Write the embeddings of nodes, edges and, for many graphs, graphs, behind your ids."""
    with report_errors(logging.INFO):
        from censnet.cli.predict import write_embeddings
        from censnet.runs import load_run

        files = write_embeddings(
            load_run(run), _given(data), to, form.value, strict=strict, device=device, progress=True
        )
    for path, frame in files.items():
        channels = sum(str(name)[1:].isdigit() for name in frame)
        echo(f"{path}: {count(len(frame), 'row')}, {count(channels, 'channel')}")


@app.command()
def evaluate(
    run: Trained,
    data: Data,
    as_json: Json = False,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Judge a run by the labels of the data; on those it was trained on, part by part."""
    with report_errors(logging.INFO):
        from censnet.cli.render_run import scores_screen
        from censnet.runs import load_run

        trained = load_run(run)
        scores = trained.evaluate(data, strict=strict, device=device, progress=True)
        screen = scores_screen(trained, scores)
    if as_json:
        say_json(scores)
    else:
        echo(screen)


@app.command()
def settings(
    task: Annotated[str, typer.Argument(help="node, edge, graph or link.")] = "node",
    preset: Preset = "strong",
    as_json: Json = False,
) -> None:
    """List every setting, its value in a preset for one kind of task, and what it means."""
    with report_errors():
        from censnet.cli.settings import entries, settings_table
        from censnet.settings.presets import make_settings
        from censnet.settings.schema import Section

        chosen = make_settings(preset, cast(Section, task))
    if as_json:
        say_json([entry._asdict() for entry in entries(chosen)])
    else:
        echo(settings_table(chosen))


@app.command()
def inspect(
    data: Data,
    target: Target = None,
    splits: Annotated[Path | None, typer.Option(help="A file of splits to audit, as splits.csv of a run.")] = None,
    column: Column = None,
    as_json: Json = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there is a problem.")] = False,
) -> None:
    """Say what is in a data set, what each column became, what training will cost, and what is wrong."""
    with report_errors():
        from censnet.cli.defaults import parse_overrides
        from censnet.cli.render_report import Screen
        from censnet.inspection.cost import estimate_for
        from censnet.inspection.report import inspect_data
        from censnet.tasks.targets import describe_target

        overrides = parse_overrides(column or ())
        report = inspect_data(data, target, splits, estimate_for, describe_target, overrides)
    if as_json:
        say_json(report.model_dump())
    else:
        echo(Screen(report))
    if strict and report.problems:
        raise typer.Exit(WRONG)


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="One set, for more about it.")] = None,
    as_json: Json = False,
) -> None:
    """List the built-in data sets: their size, licence, numbers, and where each was found."""
    with report_errors():
        from censnet.cli.render_report import dataset_card, datasets_table
        from censnet.data.datasets import download as sources
        from censnet.errors import DataError, quote

        if name is not None and name not in sources.DATASETS:
            raise DataError(f"there is no data set {quote(name)} (there are {', '.join(sources.DATASETS)})")
        rows = [(info, sources.where(info.name)) for info in sources.DATASETS.values() if name in (None, info.name)]
    if as_json:
        say_json([{**asdict(info), "found": place} for info, place in rows])
    else:
        echo(datasets_table(rows) if name is None else dataset_card(*rows[0]))


@app.command()
def reproduce(
    table: Annotated[
        str,
        typer.Argument(help="The paper's table1, table2, table3, figure2 or speed; ours: nodes, molecules or links."),
    ],
    cell: Annotated[list[str] | None, typer.Option(help="Such as cora-3; all of the table if not given.")] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Such as gcn; those of the paper's table by default.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many; what the spec of the method says if not given.")] = None,
    first: Annotated[int | None, typer.Option(help="The first seed; as the spec says by default.")] = None,
    results: Annotated[Path, typer.Option(help="The folder of records; what it has is not trained again.")] = Path(
        "results"
    ),
    device: Device = None,
    methods: Annotated[bool, typer.Option("--methods", help="List the methods of the table, and stop.")] = False,
) -> None:
    """Train what a table shows, add a record for each seed, and set it beside what was published."""
    with report_errors(logging.INFO):
        from censnet.cli.render_experiments import comparison, methods_table
        from censnet_experiments.records import read_all
        from censnet_experiments.reproduce import FIGURES, reproduce
        from censnet_experiments.spec import load_specs

        if methods:
            echo(methods_table(load_specs(FIGURES.get(table, (table,))[0]).values()))
            return
        before = sum(1 for _ in read_all(results))
        asked = reproduce(table, cell, method, seeds, first, results, device)
        records = list(read_all(results))
        echo(comparison(asked, records))
        if table in FIGURES:
            from censnet_experiments.plots import figure2, save_figure

            save_figure(figure2(records), results / "figure2.svg")
            echo(f"{results / 'figure2.svg'} has the figure")
        if len(records) == before:
            echo(
                f"{results} had all of this already: --results with another folder trains it again, --first adds seeds"
            )


@app.command()
def report(
    results: Annotated[Path, typer.Option(help="The folder of records.")] = Path("results"),
    to: Annotated[Path, typer.Option(parser=named_path, metavar="PATH", help="The folder of the page.")] = Path("docs"),
) -> None:
    """Write the pages of what reproduces and of what is past the paper, with tables and figures, from records alone."""
    with report_errors():
        from censnet_experiments.pages import report

        for path in report(results, to):
            echo(str(path))


def _given(data: list[str]) -> str | list[str]:
    """What there is to predict: one name, or several SMILES."""
    if len(data) == 1:
        return data[0]
    found = next((name for name in data if Path(name).exists()), None)
    if found is not None:
        raise ValueError(f"DATA are {len(data)}, of which {found} is there: give one file or folder, or SMILES alone")
    return data


def _check_together(context: typer.Context) -> None:
    """Raise for what is missing, and for options that would be ignored."""
    options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    given = {
        name for name in context.params if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }

    def refuse(names: set[str], why: str) -> None:
        found = [options[name] for name in context.params if name in given & names]
        if found:
            raise ValueError(f"{', '.join(found)} cannot be given {why}")

    if "data" not in given:
        if not {"resume", "out"} <= given and not {"finish", "out"} <= given:
            raise ValueError("there are no DATA, expected some, or --resume and --out to go on with a training")
        refuse(given - WITHOUT_DATA, "without DATA: --resume goes on with what the training was started with")
    if "finish" in given:
        refuse({"data", "resume", "change", "bf16", "tensorboard"}, "with --finish, which trains no more")
    if "replicates" in given:
        refuse({"ensemble", "tensorboard"}, "with --replicates")
    else:
        refuse({"vary"}, "without --replicates")


if __name__ == "__main__":
    sys.exit(app())
