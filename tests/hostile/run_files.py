"""Run directories that are damaged, linked, swapped or replaced file by file, and files of the wrong size."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from samples import RUN_FILES

from censnet import load_run
from hostile.place import Place, Refusal, snapshot
from hostile.runs import copied, data_of, trained


def _cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def _flip(path: Path, rng: random.Random) -> None:
    text = bytearray(path.read_bytes())
    text[rng.randrange(len(text))] ^= 1 << rng.randrange(8)
    path.write_bytes(text)


def _insert(path: Path, rng: random.Random) -> None:
    text, spot = path.read_bytes(), rng.randrange(path.stat().st_size)
    path.write_bytes(text[:spot] + rng.randbytes(rng.randint(1, 20)) + text[spot:])


def _append(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.choice([b"\n", b" ", b"\0", b"{}", b"x" * 1000]))


def _empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def _remove(path: Path, rng: random.Random) -> None:
    path.unlink()


def _link(path: Path, rng: random.Random) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def _dangling(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _device(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(rng.choice(["/dev/null", "/dev/zero", "/dev/urandom"]))


def _sparse(path: Path, rng: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 32)


def _other(path: Path, rng: random.Random) -> None:
    trained("edge")
    shutil.copy(trained("edge").path / path.name, path)


def _swap(path: Path, rng: random.Random) -> None:
    other = path.with_name(rng.choice([name for name in RUN_FILES if name != path.name]))
    first = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(first)


def _text(path: Path, rng: random.Random) -> None:
    path.write_text("hello\n")


def _unreadable(path: Path, rng: random.Random) -> None:
    path.chmod(0)


DAMAGES = (
    _cut,
    _flip,
    _insert,
    _append,
    _empty,
    _remove,
    _link,
    _dangling,
    _folder,
    _fifo,
    _device,
    _sparse,
    _other,
    _swap,
    _text,
    _unreadable,
)


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Each damage to each file; then the directory as a whole."""
    for file in RUN_FILES:
        for damage in DAMAGES:
            yield f"{damage.__name__.strip('_')}-{file}", partial(_damaged, file, damage)
    for name in WHOLE:
        yield f"whole-{name}", partial(_whole, name)


def _refused(place: Place, run: Path) -> None:
    before = snapshot(run)
    found = place.attempt(lambda: load_run(run))
    assert isinstance(found, Refusal), "it was loaded"
    assert str(run) in found or run.name in found, f"the file is not named: {found}"
    data = data_of("node")
    line = place.refusal(place.command("predict", run, data))
    assert run.name in line, f"the file is not named: {line}"
    assert snapshot(run) == before, "a run that was only read has changed"


def _damaged(file: str, damage: Callable[[Path, random.Random], None], place: Place) -> None:
    run = copied("node", place.folder / "run")
    damage(run / file, random.Random(file + damage.__name__))
    if damage is _unreadable and os.geteuid() == 0:
        return
    if damage is _other and (run / file).read_bytes() == (trained("node").path / file).read_bytes():
        return
    _refused(place, run)


WHOLE = (
    "empty",
    "config-alone",
    "no-config",
    "file",
    "link",
    "dangling",
    "loop",
    "saving-link",
    "saving-empty",
    "saving-other",
    "checkpoint-alone",
    "nested",
    "extra-files",
    "extra-links",
    "deep",
    "unfinished",
)


def _whole(name: str, place: Place) -> None:
    run = copied("node", place.folder / "run")
    fine = name in ("link", "extra-files", "extra-links", "saving-empty", "saving-link")
    if name == "empty":
        shutil.rmtree(run)
        run.mkdir()
    elif name == "config-alone":
        for path in run.iterdir():
            if path.name != "config.json":
                path.unlink()
    elif name == "no-config":
        (run / "config.json").unlink()
    elif name == "file":
        shutil.rmtree(run)
        run.write_text("x")
    elif name == "link":
        run.rename(place.folder / "real")
        run.symlink_to(place.folder / "real")
    elif name == "dangling":
        shutil.rmtree(run)
        run.symlink_to("nowhere")
    elif name == "loop":
        shutil.rmtree(run)
        run.symlink_to("run")
    elif name == "saving-link":
        (run / ".saving").symlink_to(trained("edge").path)
    elif name == "saving-empty":
        (run / ".saving").mkdir()
    elif name == "saving-other":
        (run / ".saving").mkdir()
        (run / ".saving" / "config.json").write_text("{}")
    elif name == "checkpoint-alone":
        shutil.rmtree(run)
        (run / "checkpoint").mkdir(parents=True)
    elif name == "nested":
        shutil.rmtree(run)
        copied("node", run / "run")
    elif name == "extra-files":
        (run / "notes.txt").write_text("x")
    elif name == "extra-links":
        (run / "x").symlink_to("/etc/passwd")
    elif name == "deep":
        run = run / "x" / "y"
    else:
        (run / "config.json").rename(run / "config.json.part")
        (run / "checkpoint").mkdir()
    if not fine:
        _refused(place, run)
        return
    found = place.attempt(lambda: load_run(run).predict(data_of("node")))
    assert not isinstance(found, Refusal), f"a whole run was refused: {found}"
    expected = trained("node").predict(data_of("node"))
    assert found.equals(expected), "it answers otherwise"
