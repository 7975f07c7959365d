"""Trainings that go on with other data, settings, targets or a changed directory: said in words, nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import censnet.training.trainer as fit
from censnet.pipeline import resume_run, train
from censnet.runs.directory import dump_with_checksum, load_with_checksum
from hostile.place import Place, Refusal, says, snapshot
from hostile.runs import IDS, QUICK, home
from hostile.tables import Table, world, write_all

SETTINGS: dict[str, Any] = QUICK | {
    "training.epochs": 6,
    "training.checkpoint_seconds": 0,
    "training.recipe": "low_label",
}


class _StopError(Exception):
    """A crash."""


@cache
def _stopped() -> Path:
    """An unfinished training, by a crash at its fourth step, with its data beside it."""
    place = home() / "stopped"
    write_all(place / "data", world(IDS))
    step, taken = fit.Trainer._step, 0

    def crash(self: Any, chosen: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken == 4:
            raise _StopError
        return step(self, chosen)

    fit.Trainer._step = crash
    try:
        train(place / "data", "node:label", place / "run", settings=SETTINGS, device="cpu")
    except _StopError:
        pass
    finally:
        fit.Trainer._step = step
    assert (place / "run" / "checkpoint").is_dir(), "the training was not stopped in the middle"
    return place


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Changed data, changed calls, changed start.json, changed files."""
    for name, (change, words) in DATA.items():
        yield f"data-{name}", partial(_data, change, words)
    for name, (changes, words) in CALLS.items():
        yield f"call-{name}", partial(_call, changes, words)
    for name in START:
        yield f"start-{name}", partial(_start, name)
    for file in ("start.json", "checkpoint"):
        for damage in ("cut", "empty", "gone", "text", "link", "folder", "nul"):
            yield f"{file}-{damage}", partial(_damaged, file, damage)
    yield "nothing-changed", _nothing
    yield "other-folder", _other_folder


def _copy(place: Place) -> Path:
    for name in ("data", "run"):
        shutil.copytree(_stopped() / name, place.folder / name, dirs_exist_ok=True)
    return place.folder / "run"


def _resumed(place: Place, **changes: Any) -> Any:
    arguments: dict[str, Any] = {
        "data": place.data,
        "target": "node:label",
        "settings": SETTINGS,
        "device": "cpu",
        "if_exists": "resume",
    } | changes
    return place.attempt(lambda: train(out=place.folder / "run", **arguments))


def _nothing(place: Place) -> None:
    _copy(place)
    found = _resumed(place)
    assert not isinstance(found, Refusal), f"refused: {found}"
    assert len(found.history) == 6, f"{len(found.history)} epochs"


def _cell(table: str, column: str, value: str) -> Callable[[dict[str, Table]], None]:
    return lambda tables: tables[table][column].__setitem__(0, value)


def _append(table: Table) -> None:
    for name, cells in table.items():
        cells.append("far" if name == "id" else cells[0])


def _swap(table: Table) -> None:
    for cells in table.values():
        cells[0], cells[1] = cells[1], cells[0]


DATA: dict[str, tuple[Callable[[dict[str, Table]], None], tuple[str, ...]]] = {
    "label": (_cell("nodes", "label", "b"), ("data",)), "feature": (_cell("nodes", "age", "1"), ("data",)),
    "edge-feature": (_cell("edges", "amount", "999"), ("data",)), "edge": (_cell("edges", "target", "n7"), ("data",)),
    "row-added": (lambda t: _append(t["nodes"]), ("data",)),
    "row-removed": (lambda t: [cells.pop() for cells in t["edges"].values()], ("data",)),
    "rows-swapped": (lambda t: _swap(t["nodes"]), ("data",)),
    "column-added": (lambda t: t["nodes"].update(new=[str(k) for k in range(len(IDS))]), ("data",)),
    "column-removed": (lambda t: t["nodes"].pop("age"), ("data",)),
    "split-added": (lambda t: t["nodes"].update(split=["train", "validation", "test"] * (len(IDS) // 3)), ("data",)),
    "label-missing": (_cell("nodes", "label", ""), ("data",)),
}  # fmt: skip


def _data(change: Callable[[dict[str, Table]], None], words: tuple[str, ...], place: Place) -> None:
    """Data that changed since are said to have changed, without a word of the inside; the checkpoint stays."""
    run = _copy(place)
    tables = world(IDS)
    change(tables)
    write_all(place.data, tables)
    before = snapshot(run)
    found = _resumed(place)
    line = says(found, *words)
    assert "fingerprint" not in line, f"a word of the inside: {line}"
    assert snapshot(run) == before, "the unfinished training was changed"


CALLS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "target": ({"target": "node:score"}, ("node:score",)),
    "hidden": ({"settings": SETTINGS | {"model.hidden": 16}}, ("hidden",)), "seed": ({"seed": 5}, ("seed",)),
    "ensemble": ({"ensemble": 2}, ("ensemble",)), "preset": ({"preset": "paper"}, ("preset",)),
    "overrides": ({"overrides": {"age": "category"}}, ()),
    "split": ({"settings": SETTINGS | {"data.split": "ratio"}}, ("split",)),
    "no-data": ({"data": "nowhere"}, ("nowhere",)),
    "fewer-epochs": ({"settings": SETTINGS | {"training.epochs": 0}}, ("epochs",)),
}  # fmt: skip


def _call(changes: dict[str, Any], words: tuple[str, ...], place: Place) -> None:
    run = _copy(place)
    before = snapshot(run)
    says(_resumed(place, **changes), *words)
    assert snapshot(run) == before, "the unfinished training was changed"


def _fields() -> list[str]:
    path = _stopped() / "run" / "checkpoint" / "start.json"
    return sorted(load_with_checksum(path.read_bytes(), path))


START = (
    "target_specs",
    "changed",
    "data",
    "ensemble",
    "fingerprint",
    "other_recipes",
    "overrides",
    "settings",
    "all",
    "list",
    "extra",
    "settings-empty",
    "asked-number",
    "ensemble-text",
    "data-number",
    "overrides-list",
    "others-number",
    "settings-text",
)


def _start(name: str, place: Place) -> None:
    """A resealed start.json without a field, or with one of another type, is refused or goes on; never a traceback."""
    run = _copy(place)
    path = run / "checkpoint" / "start.json"
    content: Any = load_with_checksum(path.read_bytes(), path)
    odd = {
        "settings-empty": ("settings", {}),
        "asked-number": ("target_specs", 3),
        "ensemble-text": ("ensemble", "two"),
        "data-number": ("data", 7),
        "overrides-list": ("overrides", [1]),
        "others-number": ("other_recipes", 3),
        "settings-text": ("settings", "x"),
    }
    if name == "all":
        content = {}
    elif name == "list":
        content = {"x": [1]}
    elif name == "extra":
        content["extra"] = 1
    elif name in odd:
        content[odd[name][0]] = odd[name][1]
    else:
        content.pop(name, None)
    path.write_bytes(dump_with_checksum(content))
    for found in (place.attempt(lambda: resume_run(run, device="cpu")), _resumed(place) if path.exists() else None):
        if isinstance(found, Refusal):
            assert "run" in found or "start.json" in found, f"the place is not named: {found}"


def _damaged(file: str, damage: str, place: Place) -> None:
    """Damaged states are refused with their file, or the training begins with the epoch before; it never crashes."""
    run = _copy(place)
    files = [path for path in sorted((run / "checkpoint").rglob("*")) if path.is_file() and path.name != "start.json"]
    path = run / "checkpoint" / "start.json" if file == "start.json" else files[0]
    if damage == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("hello")
    elif damage == "nul":
        path.write_bytes(bytes(path.stat().st_size))
    else:
        path.unlink()
        if damage == "link":
            path.symlink_to("/etc/passwd")
        elif damage == "folder":
            path.mkdir()
    found = _resumed(place)
    if isinstance(found, Refusal):
        assert "run" in found or path.name in found, f"the place is not named: {found}"


def _other_folder(place: Place) -> None:
    """Data at another place are data all the same, if they are the same."""
    _copy(place)
    elsewhere = place.folder / "moved"
    shutil.copytree(place.data, elsewhere)
    found = _resumed(place, data=elsewhere)
    assert not isinstance(found, Refusal), f"refused: {found}"
