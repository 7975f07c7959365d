"""Resuming: the inputs of a training, and whether its directory holds a finished run."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path

from censnet.data.digests import fingerprint
from censnet.errors import RunError
from censnet.files import tensor_digest
from censnet.option_names import name_option
from censnet.pipeline.prepare import Prepared, read_settings
from censnet.runs.config import TrainingStart
from censnet.runs.directory import close_directory, commit, is_finished, read_config, read_start
from censnet.runs.lock import locked
from censnet.runs.resume import asks_other_epochs, table_content
from censnet.runs.run import Run, load_run
from censnet.settings.presets import Changes
from censnet.training import processes

logger = logging.getLogger(__name__)


def how_finished(folder: Path, changes: Mapping[str, object], finish: bool) -> tuple[bool, bool]:
    """Whether a folder holds a finished run, and whether it is asked for other epochs; else it holds a training."""
    if is_finished(folder):
        return True, not finish and asks_other_epochs(read_config(folder), changes)
    if finish:
        read_start(folder)  # an error if there is none
    return False, False


def how_started(folder: Path, settings: Changes | None, finish: bool) -> tuple[TrainingStart | None, dict[str, object]]:
    """The inputs of the training in a folder, and the changes; None if it is finished and stays as it is."""
    if not is_finished(folder):
        start = read_start(folder)
        return start, read_settings(settings, start.target_specs, start.settings.preset, start.settings.seed)[0]
    config = read_config(folder)
    changes = read_settings(settings, config.target_specs, config.settings.preset, config.settings.seed)[0]
    if finish or not asks_other_epochs(config, changes):
        return None, changes
    if config.start is None:
        raise RunError(
            f"{folder} does not say what it was started with: train it again with {name_option('--overwrite')}"
        )
    return config.start, changes


def make_start(prepared: Prepared, ensemble: int, overrides: Mapping[str, str] | None, has_name: bool) -> TrainingStart:
    """The inputs of a training, to compare with when it is resumed.

    Args:
        prepared, ensemble, overrides: as in `train`.
        has_name: whether the data can be read again by their name or path.
    """
    tables, task_data = prepared.data.tables, prepared.task_data
    named = {"labels": task_data.labels, "parts": task_data.parts, "censoring": task_data.censoring}
    tensors = {f"{name} {level}": tensor for name, found in named.items() for level, tensor in found.items()}
    return TrainingStart(
        target_specs=prepared.target_specs,
        settings=prepared.settings,
        other_recipes=prepared.recipes[1:],
        changed=prepared.changed,
        ensemble=ensemble,
        overrides=dict(overrides or {}),
        processes=processes.count(),
        data=prepared.data.name if has_name else "",
        fingerprint=f"{fingerprint(prepared.data.graph)}-{tensor_digest(tensors)}",
        tables={table: table_content(frame, tables.name(table)) for table, frame in tables.frames().items()},
        parts={
            level: hashlib.blake2b(part.numpy().tobytes(), digest_size=8).hexdigest()
            for level, part in task_data.parts.items()
        },
    )


def load_finished(folder: Path) -> Run:
    """Load the finished run of a directory, and remove what a crash at its end may have left."""
    logger.info("%s is finished already", folder)

    def tidy() -> None:
        with locked(folder):
            commit(folder)
            close_directory(folder)

    run = load_run(folder)
    processes.on_first(tidy)
    return run
