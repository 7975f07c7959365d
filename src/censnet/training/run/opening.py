"""The run directory while a training is not finished: what it was started with, and whether it may go on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from censnet.training.prepare import Prepared
from censnet.training.run.checkpoint import RunError, write_whole
from censnet.training.run.directory import CHECKPOINT, clear, is_whole, seal, unseal

logger = logging.getLogger("censnet")

START = "start.json"  # what an unfinished training was started with
FREE = ("learning_rate", "clip", "checkpoint_seconds")  # settings that may differ when a training goes on


def is_begun(folder: Path) -> bool:
    """Whether there is an unfinished training to go on with."""
    return (folder / CHECKPOINT / START).is_file()


def open_directory(
    folder: Path,
    prepared: Prepared,
    ensemble: int,
    resume: bool,
    overwrite: bool,
    overrides: Mapping[str, str] | None,
    named: bool,
) -> None:
    """Make the run directory ready, and write down what the training was started with.

    Args:
        folder: the run directory.
        prepared, ensemble, overrides: what it is started with.
        resume: whether a training that is there goes on; where there is none, one is begun.
        overwrite: whether what is there may be replaced.
        named: whether the data have a name, or a path, by which they can be read again.
    """
    start = {
        "asked": prepared.asked,
        "settings": prepared.settings.model_dump(mode="json"),
        "changed": prepared.changed,
        "others": [settings.model_dump(mode="json") for settings in prepared.networks[1:]],
        "ensemble": ensemble,
        "overrides": dict(overrides or {}),
        "data": prepared.data.name if named else "",
        "fingerprint": prepared.fingerprint,
    }
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, expected a directory for the run")
    if resume and is_begun(folder):
        _check_same(folder, read_start(folder), start)
    else:
        if not overwrite and (is_whole(folder) or is_begun(folder)):
            state = "a finished run" if is_whole(folder) else "an unfinished training, which --resume goes on with"
            raise RunError(f"{folder} holds {state}: choose another --out, or --overwrite to replace it")
        clear(folder)
    write_whole(folder / CHECKPOINT / START, seal(start))


def read_start(folder: Path) -> dict[str, Any]:
    """What an unfinished training was started with."""
    if not is_begun(folder):
        raise RunError(
            f"{folder} has no training to go on with: censnet train DATA --target ... --out {folder} starts one"
        )
    place = folder / CHECKPOINT / START
    return unseal(place.read_bytes(), place)


def _check_same(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise unless a training goes on with what it was started with, but for what may differ."""
    old, new = before["settings"]["training"], now["settings"]["training"]
    for name in FREE:
        if old.get(name) != new[name]:
            logger.info("training.%s was %s, from here on it is %s", name, old.get(name), new[name])
            old[name] = new[name]
            for other in before["others"]:
                other["training"][name] = new[name]
    for name, value in now.items():
        if name not in ("data", "changed") and before.get(name) != value:
            what = f"{name} {_difference(before.get(name), value)}"
            raise RunError(f"{folder} was started with another {what}: give the same, or --overwrite to start anew")


def _difference(old: object, new: object, at: str = "") -> str:
    """Where two settings differ first, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            if old.get(name) != new.get(name):
                return _difference(old.get(name), new.get(name), f"{at}.{name}" if at else str(name))
    return f"{at}: it was {old!r}, now it is {new!r}".lstrip(": ")
