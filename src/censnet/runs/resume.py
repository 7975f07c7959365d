"""Whether a training may resume from the stored start of another: the same inputs, but for a few settings."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from censnet.data.tables.columns import as_arrow
from censnet.errors import RunError, quote
from censnet.levels import main_level
from censnet.option_names import name_option, resume_option
from censnet.runs.config import RunConfig, TableContent, TrainingStart
from censnet.settings.presets import make_settings, values_of
from censnet.text import count, plural
from censnet.training.checkpoint import read_facts

logger = logging.getLogger(__name__)

FREE = (
    "learning_rate",
    "max_grad_norm",
    "checkpoint_seconds",
    "recompute",
    "epochs",
    "cost",
    "recall",
    "time_budget",
)  # settings that may change on resuming
FIXED = {  # inputs that may not -> their name in messages
    "target_specs": "target",
    "settings": "settings",
    "other_recipes": "recipe",
    "ensemble": "ensemble",
    "overrides": "overrides",
}
MAX_SHOWN = 3  # changes of data that a message names


def asks_other_epochs(config: RunConfig, settings: Mapping[str, object] | None) -> bool:
    """Whether `settings` asks for other epochs than a finished run was trained with; other changes are refused."""
    section = main_level(target.level for target in config.targets)
    before = config.settings if config.start is None else config.start.settings
    asked = False
    for name, value in (settings or {}).items():
        new = values_of(make_settings(before.preset, section, {name: value}, before.seed, config.link), [name])[name]
        old = values_of(before, [name])[name]
        old = old if config.start is None else config.start.changes.get(name, old)
        if new == old or name in ("training.checkpoint_seconds", "training.time_budget"):
            continue
        if name != "training.epochs":
            anew = f"{name_option('--overwrite')} trains it anew"
            raise RunError(f"the run is finished: {name} was {old!r}, and cannot become {new!r}: {anew}")
        asked = True
    return asked


def check_extends(folder: Path, config: RunConfig, now: TrainingStart) -> None:
    """Raise unless a training differs from that of a finished run in its epochs alone."""
    if config.start is None:
        raise RunError(f"{folder} does not say what it was started with: {name_option('--overwrite')} trains it anew")
    check_same(folder, config.start, now)
    logger.info("%s is finished and has no checkpoint to resume from: training again from the first epoch", folder)


def check_same(folder: Path, before: TrainingStart, now: TrainingStart) -> None:
    """Raise unless two starts have the same inputs, but for the settings in `FREE`."""
    if before.processes != now.processes:
        was = f"was started by {count(before.processes, 'process')}, and now there {plural(now.processes, 'is')}"
        raise RunError(f"{folder} {was} {now.processes}: {_again()}")
    old, new = before.model_dump(mode="json"), now.model_dump(mode="json")
    for name in FREE:
        was, value = old["settings"]["training"][name], new["settings"]["training"][name]
        if was != value:
            logger.info("training.%s was %s, from here on it is %s", name, was, value)
        recipes = ([each["settings"], *each["other_recipes"]] for each in (old, new))
        for one, other in zip(*recipes, strict=False):
            one["training"][name] = other["training"][name]
    for name, word in FIXED.items():
        if old[name] != new[name]:
            raise RunError(f"{folder} was started with another {word} {_difference(old[name], new[name])}: {_again()}")
    if old["fingerprint"] != new["fingerprint"]:
        raise RunError(f"{folder} was started on other data: {data_changes(before, now)}: {_again()}")


def _again() -> str:
    return f"give the same, or {name_option('--overwrite')} to start anew"


def check_epochs(checkpoint: Path, before: TrainingStart, now: TrainingStart, extend: bool = False) -> None:
    """Raise if more epochs are done than are asked for. If more are asked for, drop the rounds that depend on fewer.

    Args:
        checkpoint: the folder of the checkpoints.
        before, now: what the training was started with, and what it is to go on with.
        extend: whether trainings that their time budget has ended go on.
    """
    for number, (old, new) in enumerate(zip(before.recipes, now.recipes, strict=True), 1):
        was, epochs = old.training.epochs, new.training.epochs
        if was == epochs and not extend:
            continue
        changed = False  # whether a model of an earlier round is trained further
        for paths in _rounds(checkpoint, f"recipe-{number}-" if number > 1 else ""):
            if changed:
                logger.info("later self-training rounds start anew: their pseudo-labels come from longer training")
                for path in paths:
                    path.unlink()
                continue
            facts = [read_facts(path) for path in paths]
            done = max(one["epoch"] for one in facts)
            if done > epochs:
                raise RunError(
                    f"training.epochs is {epochs}, expected {done} or more, which are done: "
                    f"{resume_option(checkpoint.parent, finish=True)} closes it with the best of them"
                )
            changed = (was != epochs and done >= was) or (extend and any(one.get("out_of_time") for one in facts))


def _rounds(checkpoint: Path, prefix: str) -> list[list[Path]]:
    """The checkpoints of the members of one recipe, round by round."""
    found, number = [], 1
    while paths := sorted(checkpoint.glob(f"{prefix}{f'round-{number}-' if number > 1 else ''}member*.safetensors")):
        found.append(paths)
        number += 1
    return found


def _difference(old: Any, new: Any, at: str = "") -> str:
    """A description of the first difference between two inputs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                return _difference(old.get(name), new.get(name), f"{at}.{name}" if at else str(name))
    return f"{at}: it was {old!r}, now it is {new!r}".lstrip(": ")


def table_content(frame: pd.DataFrame, file: str) -> TableContent:
    """The rows and columns of a table, each with a digest of its values."""
    return TableContent(file=file, rows=len(frame), columns={str(name): _digest(frame[name]) for name in frame})


def data_changes(before: TrainingStart, now: TrainingStart) -> str:
    """A description of the differences between the data of two starts, as far as they are known."""
    if not before.tables:  # a finished run does not store their content
        return "the graph, the labels or the split are others"
    found = []
    for table in {**before.tables, **now.tables}:
        old, new = before.tables.get(table), now.tables.get(table)
        if old is None or new is None:
            found.append(f"there was {'no' if old is None else 'a'} table of {table}")
        else:
            found += _table_changes(old, new)
    if not found:
        levels = [level for level, digest in now.parts.items() if before.parts.get(level) != digest]
        found = [f"the split of {level} rows is another" for level in levels]
    if not found:
        found = ["the tables are the same, but features or labels made of them are not, as by another version"]
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return ", ".join(found[:MAX_SHOWN]) + more


def _table_changes(old: TableContent, new: TableContent) -> list[str]:
    found = []
    if old.rows != new.rows:
        found.append(f"{new.file} had {old.rows:,} rows and now has {new.rows:,}")
    found += [f"{new.file} has no column {quote(name)} any more" for name in old.columns if name not in new.columns]
    found += [f"{new.file} has a new column {quote(name)}" for name in new.columns if name not in old.columns]
    if old.rows == new.rows:
        other = [name for name, digest in old.columns.items() if new.columns.get(name, digest) != digest]
        found += [f"values of column {quote(name)} of {new.file} are others" for name in other]
    return found


def _digest(column: pd.Series) -> str:
    """A digest of the values of a column; empty for types that cannot be compared."""
    found = hashlib.blake2b(digest_size=8)
    try:
        for array in as_arrow(column).chunks:
            _add_values(found, array)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
        return ""
    return found.hexdigest()


def _add_values(found: hashlib.blake2b, array: pa.Array) -> None:
    """Add the type and the values of an array; nulls count as nulls, whatever their memory holds."""
    kind = array.type
    found.update(str(kind).encode() + array.is_valid().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found.update(pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).tobytes())
        found.update("".join(filter(None, array.to_pylist())).encode("utf-8", "surrogatepass"))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        found.update(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).tobytes())
        _add_values(found, array.flatten())
    else:
        plain = array if pa.types.is_floating(kind) or pa.types.is_boolean(kind) else array.cast(pa.int64())
        found.update(
            plain.fill_null(False if pa.types.is_boolean(kind) else 0).to_numpy(zero_copy_only=False).tobytes()
        )
