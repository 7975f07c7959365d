"""Wrong Python types for every argument of the public functions: refused by name, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from censnet import load_run, train
from censnet.data import load_data
from censnet.pipeline import resume_run
from hostile.place import Place, Refusal
from hostile.runs import QUICK, data_of, trained

ODD: dict[str, Any] = {
    "none": None, "int": 3, "minus": -1, "float": 1.5, "nan": float("nan"), "text": "banana", "bytes": b"x",
    "ints": [1, 2], "dict": {"a": 1}, "object": object(), "array": np.eye(2), "tensor": torch.ones(3),
    "frame": pd.DataFrame({"a": [1]}),
    "true": True, "path": Path("nowhere"), "huge": 10**30, "empty": "",
}  # fmt: skip
# argument of `train` -> those of ODD that it may have
TRAIN: dict[str, set[str]] = {
    "target": set(), "out": {"none"}, "preset": set(), "settings": {"none", "empty"}, "seed": {"int"},
    "ensemble": {"int"}, "device": {"none"}, "strict": {"true"}, "overrides": {"none", "empty"},
    "if_exists": set(), "progress": {"true"}, "tensorboard": set(),
}  # fmt: skip
FLAGS = {"strict", "progress", "tensorboard"}  # whatever is true or not may be given
PREDICT: dict[str, set[str]] = {
    "level": {"none"},
    "keep": set(),
    "pairs": {"none"},
    "top": {"none"},
    "device": {"none"},
}
LOAD: dict[str, set[str]] = {
    "schema": {"none"},
    "target": {"none", "empty"},
    "train_rows": {"none", "empty"},
    "features": set(),
    "overrides": {"none", "empty"},
}


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Each argument with each odd value."""
    for argument, fine in TRAIN.items():
        for name in ODD:
            if name not in fine and argument not in FLAGS:
                yield f"train-{argument}-{name}", partial(_train, argument, name)
    for argument, fine in PREDICT.items():
        for name in ODD:
            if name not in fine:
                yield f"predict-{argument}-{name}", partial(_predict, argument, name)
    for argument, fine in LOAD.items():
        for name in ODD:
            if name not in fine:
                yield f"load-{argument}-{name}", partial(_load, argument, name)
    for function in ("load_run", "resume_run", "predict", "evaluate", "embed", "train"):
        for name in ODD:
            yield f"{function}-first-{name}", partial(_first, function, name)


def _named(found: Any, argument: str, name: str) -> None:
    assert isinstance(found, Refusal), f"{argument}={ODD[name]!r} was taken: {found!r}"[:300]
    words = {
        "train_rows": ("train_rows", "rows"),
        "settings": ("setting", "changes"),
        "overrides": ("overrides", "column"),
        "keep": ("keep",),
        "pairs": ("pairs", "table", "columns"),
    }
    names = words.get(argument, (argument,))
    value = str(ODD[name])[:20]
    assert any(word in found for word in names) or (value and value in found), f"{argument} is not named: {found}"


def _train(argument: str, name: str, place: Place) -> None:
    arguments: dict[str, Any] = {"target": "node:label", "settings": dict(QUICK), "device": "cpu", argument: ODD[name]}
    if argument == "out" and name in ("text", "path", "bytes", "empty"):
        return  # names of directories, which the places have
    found = place.attempt(lambda: train(data_of("node"), **arguments))
    _named(found, argument, name)


def _predict(argument: str, name: str, place: Place) -> None:
    if argument == "top" and name in ("int", "huge"):
        return
    run = "link" if argument in ("pairs", "top") else "node"
    found = place.attempt(lambda: trained(run).predict(data_of(run), **{argument: ODD[name]}))
    _named(found, argument, name)


def _load(argument: str, name: str, place: Place) -> None:
    arguments: dict[str, Any] = {"target": "node:label", argument: ODD[name]}
    if argument == "train_rows" and name == "ints":
        return
    found = place.attempt(lambda: load_data(data_of("node"), **arguments))
    _named(found, argument, name)


def _first(function: str, name: str, place: Place) -> None:
    """The first argument is a run or data; anything else is refused in a line that says what was given."""
    calls: dict[str, Callable[[Any], Any]] = {
        "load_run": load_run,
        "resume_run": resume_run,
        "predict": trained("node").predict,
        "evaluate": trained("node").evaluate,
        "embed": trained("node").embed,
        "train": lambda data: train(data, "node:label", settings=dict(QUICK), device="cpu"),
    }
    found = place.attempt(lambda: calls[function](ODD[name]))
    assert isinstance(found, Refusal), f"{function}({ODD[name]!r}) gave {found!r}"[:300]
