"""Every setting with values it cannot have, and with some it can: refused by its name, or read as it was written."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from censnet.pipeline import train
from censnet.settings.presets import make_settings, parse_changes, setting_names, values_of
from hostile.place import Place, Refusal, says
from hostile.runs import IDS, QUICK
from hostile.tables import world, write_all

VALUES = (
    "-1", "0", "1", "0.5", "64.5", "1e9", "1e30", "1e999", "nan", "-inf", "true", "yes", "banana", "[]", "[1,2]", "{}",
    '{"a": 1}', '"8"', "8 ", "0x10", "None", "a,b", "-0", "9" * 50, "[[[[1]]]]", "\u0661",
    "\x1b[31m", "[/x]", "x" * 5000, "{", "1e-400", "1,5",
)  # fmt: skip
TYPED: tuple[Any, ...] = (
    True,
    3.0,
    3.5,
    -1,
    10**30,
    float("nan"),
    float("inf"),
    b"8",
    [8],
    {"a": 1},
    object(),
    (1, 2),
    {1},
    "8",
    complex(1),
    len,
)
TEXTS = (
    "", "=", "model.hidden", "model.hidden=", "=8", "model=8", "hidden=8", "model.hiden=8", "MODEL.hidden=8",
    "model.hidden==8", "model.hidden.x=8", "model..hidden=8", ".hidden=8", "model.=8", "seed=3", "preset=paper",
    "settings.model.hidden=8", "model.__class__=1", "model.hidden=8=9", " model.hidden = 8 ",
    "model.hidden=8;model.heads=2", "model.hidden=8,model.heads=2", "model-hidden=8", "model.hidden:8", "\x1b[31m=1",
    "[/x]=1", "x" * 5000 + "=1",
)  # fmt: skip
TOGETHER: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "split-file-alone": ({"data.split_file": "x.csv"}, ("data.split_file",)),
    "split-column-alone": ({"data.split_column": "age"}, ("data.split_column",)),
    "file-without-name": ({"data.split": "file"}, ("data.split_file",)),
    "column-without-name": ({"data.split": "column"}, ("split",)),
    "time-without-name": ({"data.split": "time"}, ("data.split_column",)),
    "scaffold-of-no-molecules": ({"data.split": "scaffold"}, ("scaffold",)),
    "no-such-file": ({"data.split": "file", "data.split_file": "nowhere.csv"}, ("nowhere.csv",)),
    "no-such-column": ({"data.split": "column", "data.split_column": "nowhere"}, ("nowhere",)),
    "descriptors-of-no-molecules": ({"data.descriptors": True}, ("descriptors",)),
    "fractions-beyond-one": ({"data.fractions": [0.9, 0.9, 0.9]}, ("fractions",)),
    "fractions-negative": ({"data.fractions": [-1, 1, 1]}, ("fractions",)),
    "fractions-nothing": ({"data.fractions": [0, 0, 0]}, ("fractions",)),
    "fractions-nan": ({"data.fractions": [float("nan")] * 3}, ("fractions",)),
    "split-seed-negative": ({"data.split_seed": -1}, ("data.split_seed", "-1")),
    "heads-that-do-not-divide": ({"model.hidden": 8, "model.heads": 3}, ("heads",)),
    "unknown-kernel": ({"model.kernel": "banana"}, ("kernel",)),
    "kernel-options-of-another": ({"model.kernel": "hop", "model.kernel_options": {"steps": 3}}, ("kernel",)),
    "unknown-activation": ({"model.activation": "banana"}, ("activation",)),
    "unknown-monitor": ({"training.monitor": "banana"}, ("monitor",)),
    "unknown-preset": ({"preset": "banana"}, ("preset",)),
}  # fmt: skip
HUGE = {
    "model.hidden": 10**9,
    "model.layers": "NE" * 10**6,
    "training.batch_size": 10**15,
    "model.pre_layers": 10**9,
    "model.head": [10**9],
    "model.latent": 10**9,
    "model.heads": 10**9,
}


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Texts and values of each setting, settings that do not go together, and sizes that no machine has."""
    rng = random.Random(2)
    for name in setting_names():
        for value in rng.sample(VALUES, 5):
            yield f"{name}={ascii(value)[1:-1][:38]}", partial(_text, name, value)
        number = rng.randrange(len(TYPED))
        yield f"{name}-typed-{number}", partial(_typed, name, TYPED[number])
    for text in TEXTS:
        yield f"text-{ascii(text)[1:-1][:38]}", partial(_whole_text, text)
    for name, (changes, words) in TOGETHER.items():
        yield f"together-{name}", partial(_together, changes, words)
    for name, value in HUGE.items():
        yield f"huge-{name}", partial(_huge, name, value)
    for number, value in enumerate(
        (
            None,
            [],
            ["model.hidden=8"],
            "model.hidden=8",
            3,
            {"model.hidden"},
            {3: 4},
            {None: 1},
            {"model": {"hidden": 8}},
            object(),
        )
    ):
        yield f"settings-{number}-{type(value).__name__}", partial(_mapping, value)


def _expected(text: str) -> Any:
    try:
        return json.loads(text.strip().lower() if text.strip().lower() in ("true", "false") else text.strip())
    except json.JSONDecodeError:
        return text.strip()


def _same(found: Any, written: Any) -> bool:
    """Whether a value is what was written, and not another that was made of it."""
    if isinstance(found, bool):
        return written is found or written in ("yes", "no", "on", "off", "true", "false", "0", "1", 0, 1)
    if isinstance(found, int | float) and isinstance(written, int | float) and not isinstance(written, bool):
        return float(found) == float(written)
    if isinstance(found, list | tuple):
        parts = written.split(",") if isinstance(written, str) and "," in written else written
        parts = parts if isinstance(parts, list | tuple) else [parts]
        return len(parts) == len(found) and all(_same(one, other) for one, other in zip(found, parts, strict=True))
    if found is None:
        return str(written).lower() in ("none", "null", "")
    if isinstance(found, int | float) and isinstance(written, str | bytes):
        return (written.decode() if isinstance(written, bytes) else written.strip('"')) == f"{found:g}"
    return found == written or str(found).lower() == str(written).lower()


def _text(name: str, value: str, place: Place) -> None:
    for section in ("node", "graph", "link"):
        made = place.attempt(
            lambda section=section: make_settings("strong", section, parse_changes([f"{name}={value}"]))
        )
        if isinstance(made, Refusal):
            says(made, name)
            continue
        found = values_of(made, [name])[name]
        assert found == value or _same(found, _expected(value)), f"{name}={value!r} became {found!r}"


def _typed(name: str, value: Any, place: Place) -> None:
    made = place.attempt(lambda: make_settings("strong", "edge", {name: value}))
    if isinstance(made, Refusal):
        says(made, name)
        return
    found = values_of(made, [name])[name]
    read = _expected(value) if isinstance(value, str) else value
    assert _same(found, read), f"{name}={value!r} became {found!r}"


def _whole_text(text: str, place: Place) -> None:
    made = place.attempt(lambda: make_settings("strong", "node", parse_changes([text])))
    if isinstance(made, Refusal):
        return
    assert text.replace(" ", "") in ("model.hidden=8", "model.hidden="), f"{text!r} was taken"


def _together(changes: dict[str, Any], words: tuple[str, ...], place: Place) -> None:
    """Settings that need one another, or that nothing would read, are refused before anything is trained."""
    write_all(place.data, world(IDS))
    made = place.prepare("node:label", None, changes)
    if not isinstance(made, Refusal):  # some are read by the network alone
        made = place.attempt(lambda: train(place.data, "node:label", settings=QUICK | changes, device="cpu"))
    says(made, *words)


def _huge(name: str, value: Any, place: Place) -> None:
    """What no machine can hold is refused at once, with the setting to lower; nothing is made."""
    write_all(place.data, world(IDS))
    text = json.dumps(value) if not isinstance(value, str) else value
    level = "link" if name == "model.latent" else "node:label"
    quick = [
        part
        for key, each in QUICK.items()
        if key != name and key.startswith("training.epochs")
        for part in ("--set", f"{key}={each}")
    ]
    screen = place.command(
        "train", place.data, "--target", level, "--out", place.out, "--set", f"{name}={text}", *quick, "--quiet"
    )
    if screen.code == 0:
        assert name == "training.batch_size", f"{name}={text[:40]} was trained"
        return
    says(place.refusal(screen), name.partition(".")[2])


def _mapping(value: Any, place: Place) -> None:
    write_all(place.data, world(IDS))
    made = place.prepare("node:label", None, value)
    if isinstance(made, Refusal):
        assert "setting" in made or "changes" in made, f"settings are not named: {made}"
        return
    assert value is None, f"settings={value!r} was taken"
