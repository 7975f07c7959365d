"""Where a run may go: what is there stays, nothing is written elsewhere, and a failed training leaves the old run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from samples import RUN_FILES

from censnet import load_run
from hostile.place import Place, Refusal, says, snapshot
from hostile.runs import QUICK, copied, data_of, trained

FLAGS = [
    part
    for name, value in QUICK.items()
    for part in ("--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
]


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Names of --out, what is there before, links inside, failures, the working directory."""
    for name, out in REFUSED.items():
        yield f"refused-{name}", partial(_refused, out)
    for name, out in FINE.items():
        yield f"fine-{name}", partial(_fine, out)
    for file in (*RUN_FILES, "notes.txt", "data.csv"):
        for overwrite in (False, True):
            yield f"own-{file}{'-overwrite' * overwrite}", partial(_own_file, file, overwrite)
    for link in (
        ".saving",
        "checkpoint",
        "config.json",
        "model.safetensors",
        ".config.json.part",
        "tensorboard",
        "predictions.csv",
    ):
        for overwrite in (False, True):
            yield f"link-{link}{'-overwrite' * overwrite}", partial(_link, link, overwrite)
    for name, flags in FAILS.items():
        yield f"failed-{name}", partial(_failed, flags)
    yield "a-run-without-overwrite", _run_there
    yield "overwrite", _overwrite
    for command in ("predict", "embed"):
        for name, to in TO.items():
            yield f"{command}-to-{name}", partial(_to, command, to)
    for script in ("torch.py", "pip.py", "json.py", "sitecustomize.py", "usercustomize.py", "numpy.py", "pandas.py"):
        yield f"script-{script}", partial(_script, script)


def _command(place: Place, out: object, *more: str) -> tuple[str, ...]:
    return ("train", str(data_of("node")), "--target", "node:label", "--out", str(out), "--quiet", *FLAGS, *more)


REFUSED: dict[str, Callable[[Place], object]] = {
    "empty": lambda place: "",
    "file": lambda place: _touched(place.folder / "file"),
    "below-a-file": lambda place: _touched(place.folder / "file") / "x",
    "null": lambda place: "/dev/null",
    "below-null": lambda place: "/dev/null/x",
    "proc": lambda place: "/proc/x",
    "long": lambda place: place.folder / ("x" * 300),
    "nul": lambda place: f"{place.folder}/a\0b",
    "fifo": lambda place: _fifo(place.folder / "fifo"),
    "dangling": lambda place: _linked(place.folder / "link", "nowhere/at/all"),
    "loop": lambda place: _linked(place.folder / "loop", "loop"),
}
FINE: dict[str, Callable[[Place], object]] = {
    "plain": lambda place: place.out, "nested": lambda place: place.out / "a" / "b" / "c",
    "dots": lambda place: f"{place.folder}/x/../out", "slash": lambda place: f"{place.out}/",
    "spaces": lambda place: place.folder / "two words",
    "markup": lambda place: place.folder / "[red]x", "percent": lambda place: place.folder / "%s{}",
    "escape": lambda place: place.folder / "a\x1b[31mb", "newline": lambda place: place.folder / "a\nb",
    "bidi": lambda place: place.folder / "a\u202eb", "emoji": lambda place: place.folder / "\U0001f600",
    "empty-folder": lambda place: _made(place.out), "tilde": lambda place: place.folder / "~",
    "dash": lambda place: place.folder / "-x", "dot-first": lambda place: place.folder / ".hidden",
}  # fmt: skip


def _touched(path: Path) -> Path:
    path.write_text("mine")
    return path


def _fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _linked(path: Path, to: str) -> Path:
    path.symlink_to(to)
    return path


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def _refused(out: Callable[[Place], object], place: Place) -> None:
    target = out(place)
    before = snapshot(place.folder)
    screen = place.command(*_command(place, target))
    if "Usage:" in screen.err:
        return
    line = place.refusal(screen)
    name = Path(str(target).replace("\0", "")).name[:20].strip()
    assert not name or name in line or "--out" in line or "out" in line, f"the place is not named: {line}"
    assert snapshot(place.folder) == before, "something was written"


def _fine(out: Callable[[Place], object], place: Place) -> None:
    target = out(place)
    before = snapshot(data_of("node"))
    screen = place.command(*_command(place, target))
    assert screen.code == 0, f"refused: {screen.text[:300]}"
    found = place.attempt(lambda: load_run(Path(str(target))))
    assert not isinstance(found, Refusal), f"the run cannot be read: {found}"
    assert snapshot(data_of("node")) == before


def _own_file(file: str, overwrite: bool, place: Place) -> None:
    """A file of the user's in a folder that is no run is never replaced: refused, or left as it is."""
    place.out.mkdir()
    (place.out / file).write_text("mine")
    screen = place.command(*_command(place, place.out, *(["--overwrite"] if overwrite else [])))
    assert (place.out / file).is_file(), f"{file} is gone"
    kept = (place.out / file).read_text(errors="replace") == "mine"
    assert kept, f"{file} of the user's was replaced"
    if screen.code == 2:
        says(place.refusal(screen), str(place.out.name))


def _link(link: str, overwrite: bool, place: Place) -> None:
    """A link inside --out is never written through."""
    secret = place.folder / "secret"
    secret.mkdir()
    (secret / "config.json").write_text("mine")
    (secret / "state.safetensors").write_text("mine")
    place.out.mkdir()
    folder = link in (".saving", "checkpoint", "tensorboard")
    (place.out / link).symlink_to(secret if folder else secret / "config.json")
    before = snapshot(secret)
    screen = place.command(*_command(place, place.out, *(["--overwrite"] if overwrite else [])))
    assert snapshot(secret) == before, "something outside --out was written or removed"
    if screen.code == 2:
        place.refusal(screen)


FAILS = {
    "target": ["--target", "node:nope"], "setting": ["--set", "model.hidden=x"],
    "kernel": ["--set", "model.kernel=banana"], "heads": ["--set", "model.heads=3"], "device": ["--device", "banana"],
    "monitor": ["--set", "training.monitor=banana"],
    "huge": ["--set", "model.hidden=1000000000"], "rate": ["--set", "training.learning_rate=1e30"],
}  # fmt: skip


def _failed(flags: list[str], place: Place) -> None:
    """--overwrite with a training that fails leaves the run that was there, whole and the same."""
    run = copied("node", place.out)
    before = snapshot(run)
    screen = place.command(*_command(place, run), "--overwrite", *flags)
    if screen.code == 0:
        return
    place.refusal(screen)
    left = {name: content for name, content in snapshot(run).items() if not name.startswith("checkpoint")}
    assert left == before, "the old run is gone or changed"


def _run_there(place: Place) -> None:
    run = copied("node", place.out)
    before = snapshot(run)
    says(place.refusal(place.command(*_command(place, run))), "--overwrite")
    assert snapshot(run) == before


def _overwrite(place: Place) -> None:
    run = copied("edge", place.out)
    (run / "notes.txt").write_text("mine")
    screen = place.command(*_command(place, run), "--overwrite")
    assert screen.code == 0, f"refused: {screen.text[:300]}"
    assert (run / "notes.txt").read_text() == "mine"
    assert load_run(run).levels == ["node"]


TO: dict[str, Callable[[Place], object]] = {
    "data": lambda place: data_of("node") / "nodes.csv", "run": lambda place: trained("node").path,
    "folder-of-data": lambda place: data_of("node"),
    "null": lambda place: "/dev/null", "empty": lambda place: "",
    "fifo": lambda place: _fifo(place.folder / "fifo.csv"),
    "link": lambda place: _linked(place.folder / "x.csv", str(_touched(place.folder / "secret"))),
    "dangling": lambda place: _linked(place.folder / "x.csv", "nowhere/x.csv"),
    "long": lambda place: place.folder / ("x" * 300 + ".csv"),
    "escape": lambda place: place.folder / "a\x1b[31mb.csv", "markup": lambda place: place.folder / "[red].csv",
    "no-suffix": lambda place: place.folder / "x",
}  # fmt: skip


def _to(command: str, to: Callable[[Place], object], place: Place) -> None:
    """Answers go where they were asked to; data, runs and what links lead to stay as they are."""
    target = to(place)
    before, run = snapshot(data_of("node")), snapshot(trained("node").path)
    secret = place.folder / "secret"
    screen = place.command(command, trained("node").path, data_of("node"), "--to", target)
    if screen.code == 2 and "Usage:" not in screen.err:
        place.refusal(screen)
    now = snapshot(trained("node").path)
    for name in now.keys() - run.keys():
        (trained("node").path / name).unlink()  # which was asked for
    assert {name: now.get(name) for name in run} == run, "the run was changed"
    assert snapshot(data_of("node")) == before, "the data were changed"
    assert not secret.exists() or secret.read_text() == "mine", "a link was written through"


def _script(script: str, place: Place) -> None:
    """A file of the working directory is never executed."""
    here, mark = Path.cwd(), place.folder / "executed"
    (here / script).write_text(f"open({str(mark)!r}, 'w').write('x')\n")
    try:
        place.command(
            "train", data_of("node"), "--target", "node:label", "--out", place.out, "--bf16", "--quiet", *FLAGS
        )
        place.command("inspect", data_of("node"))
        place.command("datasets")
        assert not mark.exists(), f"{script} of the working directory was executed"
    finally:
        (here / script).unlink()
