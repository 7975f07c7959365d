"""Run directories changed by somebody who knows how they are sealed: every field of config and schema, every file."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from censnet import load_run
from censnet.runs.directory import dump_with_checksum, load_with_checksum
from hostile.place import Place, Refusal, says
from hostile.runs import copied, data_of, trained

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    "",
    "x",
    "x" * 10**5,
    [],
    [[]] * 100,
    {},
    {"a": {"b": 1}},
    [1, "2", None],
    "\x1b[31m",
    "../x",
)


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Fields that are gone or of another type; numbers that are none; files of absurd size."""
    rng = random.Random(3)
    for file, count in (("config.json", 65), ("schema.json", 45)):
        for number in range(count):
            yield f"{file}-gone-{number}", partial(_field, file, number, _GONE)
            yield f"{file}-other-{number}", partial(_field, file, number, rng.choice(VALUES))
    for name in WEIGHTS:
        yield f"weights-{name}", partial(_weights, name)
    for name in TEXTS:
        yield f"text-{name}", partial(_file, name)
    for name, change in TARGETS.items():
        for run in ("node", "number"):
            yield f"target-{name}-{run}", partial(_target, run, change)


_GONE = object()


@cache
def _content(file: str) -> Any:
    place = trained("number").path / file
    return load_with_checksum(place.read_bytes(), place) if file == "config.json" else json.loads(place.read_bytes())


def _places(file: str) -> list[tuple[Any, ...]]:
    """The way to each field; of lists the first entry alone."""
    found: list[tuple[Any, ...]] = []

    def walk(value: Any, where: tuple[Any, ...]) -> None:
        if where:
            found.append(where)
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, (*where, key))
        elif isinstance(value, list) and value:
            walk(value[0], (*where, 0))

    walk(_content(file), ())
    settings = [where for where in found if where[:1] == ("settings",)]
    rng = random.Random(4)
    return [where for where in found if where not in settings] + rng.sample(settings, min(25, len(settings)))


def _reseal(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    config = load_with_checksum((run / "config.json").read_bytes(), run / "config.json")
    change(config)
    (run / "config.json").write_bytes(dump_with_checksum(config))


def _put(run: Path, name: str, text: bytes) -> None:
    (run / name).write_bytes(text)
    _reseal(run, lambda config: config["files"].update({name: hashlib.sha256(text).hexdigest()}))


def _judge(place: Place, run: Path, name: str = "number") -> None:
    """Refused with the name of the run; or it answers for each row, with finite numbers, or says why not."""
    found = place.attempt(lambda: load_run(run))
    if isinstance(found, Refusal):
        says(found, run.name)
        return
    answers = place.attempt(lambda: found.predict(data_of(name)))
    if isinstance(answers, Refusal):
        return
    assert len(answers) == len(trained(name).predict(data_of(name))), "rows are lost"
    for column in answers.select_dtypes("number"):
        bad = answers[column].isin([float("inf"), float("-inf")]) | (
            answers[column].isna() & answers.get("error", answers[column]).isna()
        )
        assert not bool(bad.any()) or "error" in answers, f"{column} is not finite"
    screen = place.command("evaluate", run, data_of(name))
    assert screen.code in (0, 2)


def _field(file: str, number: int, value: Any, place: Place) -> None:
    places = _places(file)
    where = places[number % len(places)]
    run = copied("number", place.folder / "run")

    def change(content: Any) -> None:
        for key in where[:-1]:
            content = content[key]
        if value is _GONE:
            del content[where[-1]]
        else:
            content[where[-1]] = value

    if file == "config.json":
        _reseal(run, change)
    else:
        content = json.loads((run / file).read_bytes())
        change(content)
        _put(run, file, json.dumps(content).encode())
    try:
        _judge(place, run)
    except AssertionError as error:
        what = "gone" if value is _GONE else repr(value)[:40]
        raise AssertionError(f"{'.'.join(map(str, where))} is {what}: {error}") from None


def _one_nan(value: Tensor) -> Tensor:
    one = value.clone()
    one.view(-1)[0] = torch.nan
    return one


CHANGED: dict[str, Callable[[Tensor], Tensor]] = {  # a weight to what it is changed to
    "nan": lambda value: value * torch.nan,
    "one-nan": _one_nan,
    "infinite": lambda value: value + torch.inf,
    "zeros": lambda value: value * 0,
    "double": Tensor.double,
    "half": Tensor.half,
    "int": Tensor.long,
    "empty": lambda value: value[:0],
    "transposed": lambda value: value.t().contiguous(),
    "flat": lambda value: value.reshape(-1),
}
WEIGHTS = (*CHANGED, "renamed", "extra", "none")


def _weights(name: str, place: Place) -> None:
    """Weights that are no finite numbers of the right shape are refused with the file."""
    run = copied("number", place.folder / "run")
    tensors = load((run / "model.safetensors").read_bytes())
    first = next(key for key in sorted(tensors) if tensors[key].dim() == 2 and tensors[key].is_floating_point())
    value = tensors[first]
    if name in CHANGED:
        tensors[first] = CHANGED[name](value)
    elif name == "renamed":
        tensors["x"] = tensors.pop(first)
    elif name == "extra":
        tensors["x"] = torch.zeros(10**6)
    else:
        tensors = {}
    _put(run, "model.safetensors", save(tensors))
    found = place.attempt(lambda: load_run(run))
    if name == "zeros" or (name == "transposed" and value.shape[0] == value.shape[1]):
        _judge(place, run)
        return
    says(found, "model.safetensors")


TEXTS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "history-many-columns": (
        "history.csv",
        lambda: b",".join(b"c%d" % k for k in range(200_000)) + b"\n" + b",".join([b"1"] * 200_000),
    ),
    "history-many-rows": ("history.csv", lambda: b"epoch\n" + b"1\n" * 3_000_000),
    "history-one-field": ("history.csv", lambda: b"epoch\n" + b"9" * 10**7),
    "history-quotes": ("history.csv", lambda: b'"' * 10**6),
    "history-nul": ("history.csv", lambda: b"epoch\n\0\0\0\n"),
    "history-ragged": ("history.csv", lambda: b"a,b\n1\n1,2,3\n"),
    "history-empty": ("history.csv", lambda: b""),
    "history-utf-16": ("history.csv", lambda: "epoch\n1\n".encode("utf-16")),
    "splits-many-columns": ("splits.csv", lambda: b",".join(b"c%d" % k for k in range(200_000)) + b"\n"),
    "splits-empty": ("splits.csv", lambda: b""),
    "splits-other": ("splits.csv", lambda: b"table,row,split\nnodes,1,banana\n"),
    "splits-beyond": ("splits.csv", lambda: b"table,row,split\nnodes,99999999,train\n"),
    "splits-negative": ("splits.csv", lambda: b"table,row,split\nnodes,-1,train\n"),
    "splits-no-columns": ("splits.csv", lambda: b"\n\n\n"),
    "metrics-deep": ("metrics.json", lambda: b"[" * 10**5),
    "metrics-long": (
        "metrics.json",
        lambda: b'{"test": {"node": {' + b",".join(b'"m%d": 1' % k for k in range(300_000)) + b"}}}",
    ),
    "metrics-text": ("metrics.json", lambda: b'{"test": {"node": {"rmse": "good"}}}'),
    "metrics-nan": ("metrics.json", lambda: b'{"test": {"node": {"rmse": NaN}}}'),
    "metrics-huge-number": ("metrics.json", lambda: b'{"test": {"node": {"rmse": ' + b"9" * 10**5 + b"}}}"),
    "metrics-controls": ("metrics.json", lambda: b'{"test": {"node": {"\\u001b[31m": 1.0}}}'),
    "metrics-list": ("metrics.json", lambda: b"[]"),
    "predictions-many-columns": ("predictions.csv", lambda: b",".join(b"c%d" % k for k in range(200_000)) + b"\n"),
    "predictions-binary": ("predictions.csv", lambda: bytes(range(256))),
    "predictions-empty": ("predictions.csv", lambda: b""),
    "schema-deep": ("schema.json", lambda: b'{"nodes":' * 10**5),
    "schema-empty-object": ("schema.json", lambda: b"{}"),
    "schema-list": ("schema.json", lambda: b"[]"),
    "schema-null": ("schema.json", lambda: b"null"),
    "schema-number": ("schema.json", lambda: b"9" * 10**5),
    "schema-twice": ("schema.json", lambda: b"{}{}"),
    "schema-long": ("schema.json", lambda: b'{"x": "' + b"x" * 10**7 + b'"}'),
}


def _file(name: str, place: Place) -> None:
    file, make = TEXTS[name]
    run = copied("number", place.folder / "run")
    _put(run, file, make())
    _judge(place, run)


TARGETS: dict[str, dict[str, Any]] = {
    "scale-zero": {"scale": 0.0}, "scale-negative": {"scale": -1.0}, "scale-tiny": {"scale": 1e-320},
    "scale-huge": {"scale": 1e308}, "mean-huge": {"mean": 1e308}, "level": {"level": "edge"},
    "level-unknown": {"level": "banana"},
    "classes-none": {"classes": []}, "classes-twice": {"classes": ["a", "a"]},
    "classes-many": {"classes": [str(k) for k in range(1000)]}, "kind": {"kind": "classes"},
    "kind-unknown": {"kind": "banana"}, "column-empty": {"column": ""},
    "column-other": {"column": "nope"}, "column-controls": {"column": "\x1b[31m"}, "form": {"form": "banana"},
    "extra": {"extra": 1},
}  # fmt: skip


def _target(name: str, change: dict[str, Any], place: Place) -> None:
    run = copied(name, place.folder / "run")
    _reseal(run, lambda config: config["targets"][0].update(change))
    if change.get("scale") == 0.0 and name == "number":
        says(place.attempt(lambda: load_run(run)), "scale")
        return
    _judge(place, run, name)
