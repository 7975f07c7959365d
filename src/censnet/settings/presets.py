"""Settings from a preset and what a user changes in it."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from pydantic import BaseModel, ValidationError

from censnet.arguments import check_arguments
from censnet.errors import SettingsError, quote, shorten
from censnet.levels import Level
from censnet.nn.layers import LAYERS
from censnet.settings.schema import (
    LAYER_PATTERN,
    OF_LINKS,
    PRESETS,
    DataSettings,
    ModelSettings,
    Settings,
    TrainingSettings,
)

NAMES = ("data.split_column", "data.split_file")
WORDS = {  # of pydantic -> ours
    f"String should match pattern '{LAYER_PATTERN}'": f"the letters {' and '.join(LAYERS)}, such as NEN",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "more than",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid string": "a word",
    "a valid list": "a list, such as [1, 2]",
    "a valid tuple": "three numbers, such as 0.8,0.1,0.1",
    "a valid dictionary": 'names and values, such as {"steps": 10}',
}


def make_settings(
    preset: str = "strong",
    section: str = "node",
    changes: Mapping[str, object] | None = None,
    seed: int = 0,
    link: bool = False,
) -> Settings:
    """A preset's settings for one kind of task, with a user's changes.

    Args:
        preset: one of `PRESETS`.
        section: the kind of task; a joint training takes that of its first target that is a column.
        changes: `model.hidden` and the like -> value, or the text of one.
        seed: of the initialisation, dropout, the order of batches and, unless `data.split_seed` is set, the split.
        link: whether links are told beside it, as the preset tells them.

    Example:
        >>> settings = make_settings("paper", "node", {"model.hidden": "64"})
        >>> settings.model.layers, settings.model.hidden
        ('NEN', 64)
        >>> make_settings("paper", "node", {"model.widht": "64"})
        Traceback (most recent call last):
        censnet.settings.schema.SettingsError: unknown setting model.widht: ...
    """
    check_arguments(make_settings, {"changes": changes, "seed": seed, "link": link})
    values = _load_preset(preset, section, (changes or {}).get("training.recipe") == "high_label")
    if link:
        alone = _load_preset(preset, "link")
        for group, names in OF_LINKS.items():
            values[group] |= {name: alone[group][name] for name in names if name in alone[group]}
    for name, value in (changes or {}).items():
        group, _, key = name.partition(".")
        known = setting_names()
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.6) or [n for n in known if n.endswith(f".{name}")]
            hint = f"did you mean {near[0]}?" if near else "`censnet settings` lists all"
            raise SettingsError(f"unknown setting {shorten(name)}: {hint}")
        values.setdefault(group, {})[key] = _parse(value, name in NAMES) if isinstance(value, str) else value
    try:
        return Settings.model_validate({**values, "preset": preset, "seed": seed})
    except ValidationError as error:
        raise SettingsError(_first_problem(error)) from None


def parse_changes(texts: Sequence[str]) -> dict[str, str]:
    """`model.hidden=64` and the like, as the command line has them.

    >>> parse_changes(["model.hidden=64", "training.schedule = cosine"])
    {'model.hidden': '64', 'training.schedule': 'cosine'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise SettingsError(f"--set has {text!r}, expected NAME=VALUE, such as model.hidden=64")
        if found.get(name, value) != value:
            raise SettingsError(f"--set has {name}={found[name]} and {name}={value}, expected one of them")
        found[name] = value
    return found


def values_of(settings: Settings, names: Iterable[str]) -> dict[str, object]:
    """What settings say of some of these, by their full names.

    >>> values_of(Settings(), ["model.hidden", "training.max_grad_norm"])
    {'model.hidden': 32, 'training.max_grad_norm': None}
    """
    return {name: getattr(getattr(settings, name.split(".")[0]), name.split(".")[1]) for name in names}


def setting_names() -> list[str]:
    """Every setting that can be changed: `model.layers` and so on."""
    groups: dict[str, type[BaseModel]] = {"model": ModelSettings, "training": TrainingSettings, "data": DataSettings}
    return [f"{group}.{name}" for group, kind in groups.items() for name in kind.model_fields]


def has_network_for_many(preset: str) -> bool:
    """Whether a preset has two networks for nodes, one of them for many labels."""
    return "high_label" in _read_preset(preset).get("node", {})


def _load_preset(preset: str, section: str, many: bool = False) -> dict[str, dict[str, Any]]:
    """The tables [model], [training] and [data] of a preset, overlaid by those of the section, as [graph.model].

    For nodes with many labels these are overlaid by [node.high_label.model] and [node.high_label.training].
    """
    if preset not in PRESETS:
        raise SettingsError(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    if section not in list(Level):
        raise SettingsError(f"the task is {section!r}, expected one of {', '.join(Level)}")
    stated = _read_preset(preset)
    merged: dict[str, dict[str, Any]] = {}
    for source in (
        stated,
        stated.get(section, {}),
        stated.get("node", {}).get("high_label", {}) if many and section == "node" else {},
    ):
        for group in ("model", "training", "data"):
            merged[group] = {**merged.get(group, {}), **source.get(group, {})}
    return merged


def _read_preset(preset: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("censnet.settings").joinpath(f"{preset}.toml").read_text("utf-8"))


def _parse(text: str, is_name: bool = False) -> object:
    """The value that a text stands for: a number, true, false, none, a list or a table as in JSON; else the text."""
    plain = text.strip()
    if plain.lower() in ("none", "null", ""):
        return None
    if is_name:  # of a column or a file, such as 2020 or a,b.csv
        return plain
    try:
        return json.loads(plain.lower() if plain.lower() in ("true", "false") else plain)
    except json.JSONDecodeError:
        return [_parse(part) for part in plain.split(",")] if "," in plain else plain


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][:2])  # then come forms that the value could have
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        of_group = len(first["loc"]) == 1  # the message begins with the name
        return f"{where}{'.' if of_group else ' '}{message}" if where else message
    forms = [_expected(each["msg"]) for each in error.errors() if each["loc"][:2] == first["loc"][:2]]
    value = first["input"]
    found = str(value).lower() if value is None or isinstance(value, bool) else quote(value, 200)
    return f"{where} is {found}, expected {', or '.join(dict.fromkeys(forms))}"


def _expected(message: str) -> str:
    """What pydantic expects, in words of ours.

    >>> _expected("Input should be greater than or equal to 1")
    'at least 1'
    """
    text = message.removeprefix("Input should be ").partition(", unable to ")[0].partition(", got a number with")[0]
    for theirs, ours in WORDS.items():
        text = text.replace(theirs, ours)
    return text
