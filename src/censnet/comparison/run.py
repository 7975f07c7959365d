"""Compare the default with boosted trees, forests and its own ablations: the same rows, the same split."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from censnet.arguments import check_arguments
from censnet.comparison.methods import METHODS, run_method
from censnet.comparison.records import FILE, Compared, Start, Stored, check_same_start, read_stored, write_stored
from censnet.comparison.skipped import NO_MOLECULES
from censnet.comparison.summary import comparison_table, describe_comparison
from censnet.console import show
from censnet.data.splits.split_file import PARTS
from censnet.data.tables.target_spec import as_texts
from censnet.errors import ArgumentError, DataError, RunError
from censnet.option_names import name_option
from censnet.pipeline.prepare import Prepared, TargetsLike, as_specs, prepare, read_settings
from censnet.pipeline.resume import make_start
from censnet.pipeline.train import IfExists
from censnet.runs.directory import check_own, is_complete
from censnet.runs.lock import locked, run_dir
from censnet.settings.presets import Changes
from censnet.training import processes
from censnet.training.callbacks import Callback
from censnet.training.devices import make_accelerator

logger = logging.getLogger(__name__)

OWN = re.compile(re.escape(FILE))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several methods on the same splits.

    Args:
        stored: the records, and what they are of.
        path: the folder of its `comparison.json`; None if nothing was written.
    """

    stored: Stored
    path: Path | None = None

    @property
    def table(self) -> pd.DataFrame:
        """One row for each target, method and metric.

        `mean`, `low` and `high` are of test rows, with a 95 % interval over seeds by Student's t (NaN for one seed),
        `validation` is the mean of validation rows, `seconds` the mean time of a fit. A method that could not be fitted
        has one row, and the reason in `note`. The first metric of a target is the one that selects.
        """
        return comparison_table(self.stored)

    @property
    def scores(self) -> pd.DataFrame:
        """Every score: `seed`, `method`, `part`, `level`, `metric`, `value`."""
        rows = [
            (one.seed, one.method, part, level, metric, value)
            for one in self.stored.records
            for part, levels in one.scores.items()
            for level, metrics in levels.items()
            for metric, value in metrics.items()
        ]
        return pd.DataFrame(rows, columns=["seed", "method", "part", "level", "metric", "value"])

    @property
    def sentence(self) -> str:
        """What edges are worth here, and whether trees are better."""
        return describe_comparison(self.stored)

    def __repr__(self) -> str:
        seeds = len({one.seed for one in self.stored.records})
        return (
            f"Comparison({', '.join(one.name for one in self.stored.targets)}, {len(METHODS)} methods, {seeds} seeds)"
        )


def load_comparison(path: str | os.PathLike[str]) -> Comparison:
    """Read the folder of a comparison, also of one that is not finished."""
    return Comparison(read_stored(Path(path)), Path(path))


def compare(
    data: object,
    target: TargetsLike,
    out: str | os.PathLike[str] | None = None,
    *,
    seeds: int = 3,
    preset: str = "strong",
    settings: Changes | None = None,
    seed: int = 0,
    device: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, str] | None = None,
    if_exists: IfExists = "error",
    progress: bool = False,
    directed: bool | None = None,
) -> Comparison:
    """Train several methods on the same splits: is a graph network worth it here, and are edges?

    The methods are boosted trees on the row's own columns; boosted trees on aggregates of neighbors and incident edges
    and on known labels too; for molecules a random forest on Morgan counts and descriptors; CensNet, by the preset;
    CensNet without the edge stream, where each edge layer is a node layer; and CensNet without the columns of edges.
    What cannot be fitted is skipped, with the reason.

    Args:
        data, target, preset, settings, device, strict, overrides, progress, directed: as in `train`.
        out: the folder for `comparison.json`, which is written after each method; without one, nothing is.
        seeds: how many; each has its own split, unless the data or the settings state one, and its own initialization.
        seed: the first one.
        if_exists: what to do if `out` holds a comparison. `error` leaves it; `resume` goes on with it, also with more
            seeds; `overwrite` replaces it.

    Example:
        >>> found = compare("karate", "node:faction", seeds=1, settings={"training.epochs": 2})
        >>> found.table["method"].unique().tolist()[1:3]
        ['trees on neighbors', 'CensNet']
    """
    check_arguments(compare, locals())
    if processes.launched() > 1:
        raise ArgumentError(
            f"a comparison was started as {processes.launched()} processes, expected one: trees are fitted by one"
        )
    if seeds < 1:
        raise ArgumentError(f"seeds is {seeds}, expected at least 1")
    specs = as_specs(target)
    changes, preset, seed = read_settings(settings, specs, preset, seed)
    if directed is not None:
        changes["data.directed"] = directed
    name = os.fspath(data) if isinstance(data, str | os.PathLike) else ""
    start = Start(data=name, target_specs=as_texts(specs), preset=preset, changes=changes,
                  overrides=dict(overrides or {}), strict=strict)  # fmt: skip
    folder = None if out is None else run_dir(out)
    with ExitStack() as held:
        stored = Stored(start=start)
        if folder is not None:
            check_own(folder, OWN)
            if is_complete(folder):
                raise RunError(f"{folder} holds a run: choose another {name_option('--out')} for a comparison")
            held.enter_context(locked(folder))
            stored = _open(folder, start, if_exists)
        for number in range(seed, seed + seeds):
            if all(stored.find(method.key, number) is not None for method in METHODS):
                continue
            prepared = prepare(data, specs, preset, changes, number, strict=strict, overrides=overrides)
            _check_test_rows(prepared)
            stored = _with_data(stored, prepared, number, folder)
            accelerator = make_accelerator(prepared.settings.training.precision, device)
            for method in METHODS:
                if stored.find(method.key, number) is not None:
                    continue
                if not method.for_molecules or prepared.data.schema.smiles is not None:
                    logger.info("seed %d of %d: %s", number - seed + 1, seeds, method.name)
                callbacks: list[Callback] = [show()] if progress else []
                record = run_method(method, prepared, number, accelerator, callbacks)
                if record.skipped not in ("", NO_MOLECULES):
                    logger.info("%s: skipped, since %s", method.name, record.skipped)
                stored = stored.model_copy(update={"records": [*stored.records, record]})
                if folder is not None:
                    write_stored(folder, _with_results(stored))
        return Comparison(stored, folder)


def _check_test_rows(prepared: Prepared) -> None:
    """Raise where no test row has a label: there is nothing to compare on."""
    task_data, test = prepared.task_data, PARTS.index("test")
    labeled = [
        bool((task_data.parts[level][:, 0] == test)[~labels.isnan().all(1)].any())
        for level, labels in task_data.labels.items()
    ]
    if labeled and not any(labeled):
        names = ", ".join(target.name for target in prepared.targets)
        raise DataError(f"no test row has a label of {names}, expected some to compare on: give more labels")


def _open(folder: Path, start: Start, if_exists: IfExists) -> Stored:
    """The records that are there, or none."""
    if not (folder / FILE).exists() or if_exists == "overwrite":
        return Stored(start=start)
    if if_exists == "error":
        out, resume, overwrite = (name_option(flag) for flag in ("--out", "--resume", "--overwrite"))
        raise RunError(f"{folder} holds a comparison: choose another {out}, {resume} to go on, or {overwrite}")
    stored = read_stored(folder)
    check_same_start(folder, stored.start, start)
    return stored


def _with_data(stored: Stored, prepared: Prepared, seed: int, folder: Path | None) -> Stored:
    """The same with the data of a seed, which must be those of its records if it has some."""
    found = make_start(prepared, 1, None, has_name=False).fingerprint
    if stored.fingerprints.get(seed, found) != found:
        raise RunError(
            f"the data are not those that {folder} was started with, or are split in another way: choose another "
            f"{name_option('--out')}, or {name_option('--overwrite')}"
        )
    sources = " and ".join(dict.fromkeys(prepared.split_sources.values()))
    monitor = prepared.settings.training.monitor
    targets = [Compared.of(one.level, one.column, one.kind, monitor) for one in prepared.targets]
    if prepared.links is not None:
        targets.append(Compared.of("link", "link", "link", monitor))
    fingerprints = {**stored.fingerprints, seed: found}
    one_split = len(fingerprints) > 1 and len(set(fingerprints.values())) == 1
    return stored.model_copy(
        update={"fingerprints": fingerprints, "split": sources, "one_split": one_split, "targets": targets}
    )


def _with_results(stored: Stored) -> Stored:
    table = comparison_table(stored).astype(object).where(lambda found: found.notna(), None)
    return stored.model_copy(update={"table": table.to_dict("records"), "sentence": describe_comparison(stored)})
