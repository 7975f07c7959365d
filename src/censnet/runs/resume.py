"""The run directory while a training is not finished: what it was started with, and whether it may go on.

A training keeps its state in `checkpoint/`, and its run is brought to its place when it is whole. So a finished run
that `--overwrite` replaces stays as it is until then: `start.json` names it by the digest of its `config.json`. While
`config.json` has that digest, or is not there, the training is unfinished; as soon as it has another, the run in the
directory is the one that the training made, and what is left of `checkpoint/` is of no more use.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from censnet.errors import RunError
from censnet.files import atomic_write
from censnet.levels import Level
from censnet.runs.directory import (
    CHECKPOINT,
    HISTORY,
    START,
    RunConfig,
    check_own,
    clear_training,
    commit,
    config_digest,
    dump_with_checksum,
    is_complete,
    unseal_as,
)
from censnet.runs.start import Start, data_changes, digest_of, table_content
from censnet.settings.presets import make_settings, values_of
from censnet.training.checkpoint import read_facts

if TYPE_CHECKING:
    from censnet.pipeline.prepare import Prepared

logger = logging.getLogger("censnet")

FREE = (
    "learning_rate",
    "max_grad_norm",
    "checkpoint_seconds",
    "epochs",
)  # may differ when a training resumes
ANEW = "--overwrite trains it anew"
AGAIN = "give the same, or --overwrite to start anew"


def has_checkpoint(folder: Path) -> bool:
    """Whether there is an unfinished training to go on with, which may be to replace a finished run."""
    if not (folder / CHECKPOINT / START).is_file():
        return False
    return not is_complete(folder) or read_start(folder).replaces == config_digest(folder)


def is_finished(folder: Path) -> bool:
    """Whether there is a finished run, and no unfinished training to replace it."""
    return is_complete(folder) and not has_checkpoint(folder)


def history_path(folder: Path) -> Path:
    """Where epochs are written down as they end: in the directory, unless it has the history of a finished run."""
    return folder / CHECKPOINT / HISTORY if is_complete(folder) else folder / HISTORY


def make_start(prepared: Prepared, ensemble: int, overrides: Mapping[str, str] | None, named: bool) -> Start:
    """What a training starts with.

    Args:
        prepared, ensemble, overrides: as in `train`.
        named: whether the data have a name, or a path, by which they can be read again.
    """
    tables, parts = prepared.data.tables, prepared.task_data.parts
    return Start(
        asked=prepared.asked,
        settings=prepared.settings,
        changed=prepared.changed,
        others=prepared.networks[1:],
        ensemble=ensemble,
        overrides=dict(overrides or {}),
        data=prepared.data.name if named else "",
        fingerprint=prepared.fingerprint,
        tables={table: table_content(frame, tables.name(table)) for table, frame in tables.frames().items()},
        parts=digest_of({level: part.numpy().tobytes() for level, part in parts.items()}),
    )


def open_directory(folder: Path, start: Start, resume: bool, overwrite: bool) -> None:
    """Make the run directory ready, and write down what the training was started with.

    Args:
        folder: the run directory.
        start: what the training starts with.
        resume: whether a training that is there goes on; where there is none, one is begun.
        overwrite: whether what is there may be replaced, when the new run is whole.
    """
    check_own(folder)
    commit(folder)
    begun = has_checkpoint(folder)
    if resume and begun:
        before = read_start(folder)
        _check_same(folder, before, start)
        _check_epochs(folder, before, start)
        replaced = before.replaces
    else:
        if not overwrite and (is_complete(folder) or begun):
            state = "a finished run" if is_complete(folder) else "an unfinished training, which --resume goes on with"
            state += " and an unfinished training, which --resume goes on with" if is_complete(folder) and begun else ""
            raise RunError(f"{folder} holds {state}: choose another --out, or --overwrite to replace it")
        clear_training(folder)
        replaced = config_digest(folder)
    start = start.model_copy(update={"replaces": replaced})
    atomic_write(folder / CHECKPOINT / START, dump_with_checksum(start.model_dump(mode="json")))


def asks_other_epochs(config: RunConfig, settings: Mapping[str, object] | None) -> bool:
    """Whether other epochs are asked for than a finished run was trained with; other changes of it are refused."""
    section = config.targets[0].level if config.targets else Level.LINK
    before = config.settings if config.start is None else config.start.settings
    asked = False
    for name, value in (settings or {}).items():
        new = values_of(make_settings(before.preset, section, {name: value}, before.seed, config.link), [name])[name]
        old = values_of(before, [name])[name]
        if new == old or name == "training.checkpoint_seconds":
            continue
        if name != "training.epochs":
            raise RunError(f"the run is finished: {name} was {old!r}, and cannot become {new!r}: {ANEW}")
        asked = True
    return asked


def check_extends(folder: Path, config: RunConfig, now: Start) -> None:
    """Raise unless a training differs from that of a finished run in its epochs alone."""
    if config.start is None:
        raise RunError(f"{folder} does not say what it was started with: {ANEW}")
    _check_same(folder, config.start, now)
    logger.info("%s is finished and keeps no state to go on from: it is trained again from its start", folder)


def close_directory(folder: Path) -> None:
    """Remove what a training that has come to its end needs no more."""
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def read_start(folder: Path) -> Start:
    """What an unfinished training was started with."""
    place = folder / CHECKPOINT / START
    if not place.is_file():
        raise RunError(
            f"{folder} has no training to go on with: censnet train DATA --target ... --out {folder} starts one"
        )
    return unseal_as(Start, place, "what a training was started with")


def _check_same(folder: Path, before: Start, now: Start) -> None:
    """Raise unless a training goes on with what it was started with, but for what may differ."""
    old, new = before.model_dump(mode="json"), now.model_dump(mode="json")
    for name in FREE:
        was, value = old["settings"]["training"][name], new["settings"]["training"][name]
        if was != value:
            logger.info("training.%s was %s, from here on it is %s", name, was, value)
        for one, other in zip([old["settings"], *old["others"]], [new["settings"], *new["others"]], strict=False):
            one["training"][name] = other["training"][name]
    for name in ("asked", "settings", "others", "ensemble", "overrides"):
        if old[name] != new[name]:
            raise RunError(f"{folder} was started with another {name} {_difference(old[name], new[name])}: {AGAIN}")
    if old["fingerprint"] != new["fingerprint"]:
        raise RunError(f"{folder} was started on other data: {data_changes(before, now)}: {AGAIN}")


def _check_epochs(folder: Path, before: Start, now: Start) -> None:
    """Raise if more epochs are done than are asked for. Where more are asked for, forget rounds that rest on fewer."""
    networks = zip([before.settings, *before.others], [now.settings, *now.others], strict=True)
    for number, (old, new) in enumerate(networks, 1):
        was, epochs = old.training.epochs, new.training.epochs
        if was == epochs:
            continue
        changed = False  # whether a network of an earlier round is trained further
        for paths in _rounds(folder / CHECKPOINT, f"network-{number}-" if number > 1 else ""):
            if changed:
                logger.info("the later rounds start anew, from what networks say that were trained for longer")
                for path in paths:
                    path.unlink()
                continue
            done = max(read_facts(path)["epoch"] for path in paths)
            if done > epochs:
                raise RunError(
                    f"training.epochs is {epochs}, expected {done} or more, which are done: "
                    f"censnet train --finish --out {folder} closes it with the best of them"
                )
            changed = done >= was


def _rounds(checkpoint: Path, prefix: str) -> list[list[Path]]:
    """The checkpoints of the members of one network, round by round."""
    found, number = [], 1
    while paths := sorted(checkpoint.glob(f"{prefix}{f'round-{number}-' if number > 1 else ''}member*.safetensors")):
        found.append(paths)
        number += 1
    return found


def _difference(old: Any, new: Any, at: str = "") -> str:
    """Where two settings differ first, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                return _difference(old.get(name), new.get(name), f"{at}.{name}" if at else str(name))
    return f"{at}: it was {old!r}, now it is {new!r}".lstrip(": ")
