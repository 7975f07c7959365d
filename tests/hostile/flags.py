"""Commands with flags that are missing, doubled, contradictory or of a wrong value: a line, before anything is done."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial

from typer.main import get_command

from censnet.cli.app import app
from hostile.place import Place, says, snapshot
from hostile.runs import data_of, home, trained

# flag of `train` -> values it cannot have
TRAIN: dict[str, tuple[str, ...]] = {
    "--seed": ("-1", "1.5", "x", "", "9" * 30), "--ensemble": ("0", "-1", "1.5", "x", ""),
    "--replicates": ("0", "1", "-1", "x"), "--vary": ("banana", "", "BOTH?"), "--preset": ("banana", "", "Strong "),
    "--device": ("banana", "", "cuda:99", "gpu", "meta"), "--target": ("banana", "", "node:", "node:nope"),
    "--column": ("", "age", "=number", "age=", "nope=number", "age=banana", "nodes.nope=number"),
    "--set": ("", "x", "x=1", "model.hidden=x"),
}  # fmt: skip
SWITCHES = ("--resume", "--overwrite", "--strict", "--tensorboard", "--quiet", "--json", "--bf16")
COMMANDS = list(get_command(app).commands)


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Values of flags, pairs of flags, numbers of arguments, unknown flags."""
    for flag, values in TRAIN.items():
        for value in values:
            yield f"train{flag}={value}", partial(_train, (flag, value))
    for one, other in itertools.combinations(
        (*SWITCHES, "--ensemble 2", "--replicates 2", "--vary split", "--seed 1", "--target node:label"), 2
    ):
        yield f"train-no-data-{one}-{other}", partial(_no_data, (*one.split(), *other.split()))
    for one, other in itertools.combinations(
        (
            "--replicates 2",
            "--vary split",
            "--ensemble 2",
            "--tensorboard",
            "--resume",
            "--overwrite",
            "--bf16",
            "--json",
            "--quiet",
        ),
        2,
    ):
        yield (
            f"train-bad-target-{one}-{other}",
            partial(_train, (*one.split(), *other.split(), "--target", "node:nope")),
        )
    for command in COMMANDS:
        for name, more in {
            "nothing": (),
            "unknown": ("--nope",),
            "short": ("-x",),
            "too-many": ("a", "b", "c", "d"),
            "help": ("--help",),
            "empty": ("",),
        }.items():
            yield f"{command}-{name}", partial(_usage, command, more)
    for name, (arguments, words) in ANSWERS.items():
        yield f"answer-{name}", partial(_answer, arguments, words)
    for name, arguments in FINE.items():
        yield f"fine-{name}", partial(_fine, arguments)
    for name, (columns, words) in COLUMNS.items():
        yield f"columns-{name}", partial(_columns, columns, words)


def _train(flags: tuple[str, ...], place: Place) -> None:
    """Refused before anything is written; the flag, its value or what it names is in the line."""
    before = snapshot(data_of("node"))
    target = () if "--target" in flags else ("--target", "node:label")
    screen = place.command("train", data_of("node"), *target, "--out", place.out, *flags)
    assert screen.code == 2, f"{' '.join(flags)} was taken: {screen.text[-200:]}"
    assert not place.out.exists() or not any(place.out.iterdir()), "something was written"
    assert snapshot(data_of("node")) == before
    if "Usage:" not in screen.err:
        line = place.refusal(screen)
        words = [
            flags[0].strip("-"),
            *(value for value in re.split("[ :=]", " ".join(flags)) if not value.startswith("--")),
        ]
        assert any(word.strip().lower() in line.lower() for word in words if word), (
            f"nothing of {flags} is named: {line}"
        )


def _no_data(flags: tuple[str, ...], place: Place) -> None:
    screen = place.command("train", "--out", place.out, *flags)
    assert screen.code == 2, f"it was taken: {screen.text[-200:]}"
    assert not place.out.exists() or not any(place.out.iterdir()), "something was written"


def _usage(command: str, more: tuple[str, ...], place: Place) -> None:
    """Help, a usage line, or a result; no traceback, nothing written where nobody asked for it."""
    if command == "reproduce" and more in ((), ("",)):
        return  # these write to results and docs by default, which is their purpose
    screen = place.command(command, *more)
    if more == ("--help",):
        assert screen.code == 0
        assert "<bool>" not in screen.text, "a flag is shown as <bool>"
        assert command in screen.text
    elif more:
        fine = command in ("datasets", "settings") and more == ("",)
        assert screen.code == 2 or fine, f"{command} {more} was taken"


def _paths(text: str) -> str:
    for name in ("node", "edge", "link", "smiles", "graph", "joint"):
        text = text.replace(f"RUN-{name}", str(trained(name).path)) if f"RUN-{name}" in text else text
    return (
        text.replace("DATA", str(home() / "folder"))
        .replace("MANY", str(home() / "many"))
        .replace("SMILES", str(home() / "smiles.csv"))
    )


ANSWERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "level-unknown": ("predict RUN-node DATA --level banana", ("banana", "node")),
    "level-other": ("predict RUN-node DATA --level edge", ("edge", "node")),
    "level-missing": ("predict RUN-joint DATA --to x.csv", ("node", "edge")),
    "top-of-nodes": ("predict RUN-node DATA --top 3", ("link",)), "top-zero": ("predict RUN-link DATA --top 0", ()),
    "top-text": ("predict RUN-link DATA --top x", ()),
    "pairs-of-nodes": ("predict RUN-node DATA --pairs SMILES", ("link",)),
    "pairs-and-top": ("predict RUN-link DATA --pairs DATA/edges.csv --top 3", ("top",)),
    "pairs-missing": ("predict RUN-link DATA --pairs nowhere.csv", ("nowhere.csv",)),
    "pairs-folder": ("predict RUN-link DATA --pairs DATA", ("folder",)),
    "pairs-without-ends": ("predict RUN-link DATA --pairs SMILES", ("source",)),
    "columns-unknown": ("predict RUN-node DATA --keep banana", ()),
    "to-unknown": ("predict RUN-node DATA --to HERE/x.banana", ("x.banana",)),
    "to-folder": ("predict RUN-node DATA --to HERE", ()),
    "to-null": ("predict RUN-node DATA --to /dev/null", ("/dev/null",)),
    "to-empty": ("predict RUN-node DATA --to=", ()),
    "no-run": ("predict nowhere DATA", ("nowhere",)), "data-as-run": ("predict DATA DATA", ("config.json",)),
    "run-as-data": ("predict RUN-node RUN-node", ()), "file-as-run": ("predict SMILES DATA", ("smiles.csv",)),
    "no-data": ("predict RUN-node nowhere", ("nowhere",)),
    "other-data": ("predict RUN-node SMILES", ()), "molecules-for-tables": ("predict RUN-smiles DATA", ()),
    "many-for-one": ("predict RUN-graph DATA", ()), "device": ("predict RUN-node DATA --device banana", ("banana",)),
    "swapped": ("predict DATA RUN-node", ()),
    "embed-no-to": ("embed RUN-node DATA", ()), "embed-to-file": ("embed RUN-node DATA --to SMILES", ("smiles.csv",)),
    "embed-format": ("embed RUN-node DATA --to HERE/e --format banana", ()),
    "evaluate-other": ("evaluate RUN-node SMILES", ()),
    "evaluate-no-run": ("evaluate nowhere DATA", ("nowhere",)), "settings-unknown": ("settings banana", ("banana",)),
    "settings-preset": ("settings node --preset banana", ("banana",)),
    "datasets-unknown": ("datasets banana", ("banana",)),
    "inspect-target": ("inspect DATA --target banana", ("banana",)),
    "inspect-splits": ("inspect DATA --splits nowhere.csv", ("nowhere.csv",)),
    "inspect-splits-other": ("inspect DATA --splits SMILES", ("smiles.csv",)), "inspect-empty": ("inspect ''", ()),
    "predict-empty-run": ("predict '' DATA", ()), "evaluate-empty": ("evaluate RUN-node ''", ()),
}  # fmt: skip
FINE = {
    "predict": "predict RUN-node DATA", "predict-ids": "predict RUN-node DATA --keep ids",
    "predict-level": "predict RUN-joint DATA --level edge", "predict-to": "predict RUN-edge DATA --to HERE/p.parquet",
    "predict-strict": "predict RUN-node DATA --strict",
    "predict-several": "predict RUN-joint DATA --to HERE/folder", "top": "predict RUN-link DATA --top 3",
    "pairs": "predict RUN-link DATA --pairs DATA/edges.csv", "embed": "embed RUN-node DATA --to HERE/e",
    "embed-csv": "embed RUN-graph MANY --to HERE/e --format csv",
    "evaluate": "evaluate RUN-node DATA", "evaluate-json": "evaluate RUN-graph MANY --json",
    "evaluate-link": "evaluate RUN-link DATA", "settings": "settings edge --preset paper",
    "settings-json": "settings --json", "datasets": "datasets", "datasets-json": "datasets --json",
    "dataset": "datasets karate", "inspect": "inspect DATA --target edge:fee", "inspect-json": "inspect DATA --json",
    "inspect-strict": "inspect MANY --target graph:toxic --strict",
    "inspect-splits": "inspect DATA --splits RUN-node/splits.csv", "version": "--version",
    "inspect-column": "inspect DATA --column age=category", "one-smiles": "predict RUN-smiles CCO",
}  # fmt: skip


def _split(text: str, place: Place) -> list[str]:
    words = [_paths(word) for word in text.split()]
    return ["" if word == "''" else word.replace("HERE", str(place.out)) for word in words]


def _answer(text: str, words: tuple[str, ...], place: Place) -> None:
    """Refused with the word that is wrong; data and runs stay as they are."""
    place.out.mkdir()
    arguments = _split(text, place)
    before = snapshot(home())
    screen = place.command(*arguments)
    assert screen.code == 2, f"it was taken: {screen.text[:200]}"
    if "Usage:" not in screen.err:
        says(place.refusal(screen), *words)
    assert snapshot(home()) == before, "data or a run was changed"


def _fine(text: str, place: Place) -> None:
    place.out.mkdir()
    arguments = _split(text, place)
    before = snapshot(home())
    screen = place.command(*arguments)
    assert screen.code == 0, f"it was refused: {screen.text[:300]}"
    assert snapshot(home()) == before, "data or a run was changed"


COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "twice": (("age=number", "age=category"), ("age",)), "two-sources": (("way=source", "fee=source"), ("source",)),
    "source-and-own": (("way=source",), ()), "role-in-table": (("age=source",), ("age",)),
    "target-as-feature": (("label=number",), ("label",)),
    "smiles-of-none": (("city=smiles",), ()), "two-ids": (("city=id", "age=id"), ()),
    "level-twice": (("nodes.age=number", "age=category"), ("age",)), "number-of-words": (("city=number",), ("city",)),
    "vector-of-words": (("city=vector",), ("city",)),
}  # fmt: skip


def _columns(columns: tuple[str, ...], words: tuple[str, ...], place: Place) -> None:
    """What the user says of columns wins, or is refused; nothing of it is left aside without a word."""
    flags = [part for column in columns for part in ("--column", column)]
    screen = place.command(
        "train",
        data_of("node"),
        "--target",
        "node:label",
        "--out",
        place.out,
        *flags,
        "--set",
        "training.epochs=1",
        "--set",
        "model.hidden=4",
    )
    if screen.code == 2:
        says(place.refusal(screen), *words)
        return
    said = len(columns) == 1 and all(word in screen.err + screen.out for word in words)
    assert said or not words, f"{' '.join(flags)} was taken"
