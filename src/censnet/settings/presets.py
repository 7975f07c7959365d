"""Settings from a preset and the changes of a user."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from pydantic import ValidationError

from censnet.arguments import check_arguments
from censnet.errors import SettingsError, quote, shorten
from censnet.levels import Level
from censnet.nn.layers import letters
from censnet.settings.model_settings import LAYER_PATTERN
from censnet.settings.schema import MOLECULE, OF_LINKS, ORIENTED, PRESETS, Settings

Changes = Settings | Mapping[str, object]  # an object, or nested or dotted names -> value

TEXTS = ("data.split_column", "data.split_file", "data.time")  # never read as a number or a list
RENAMED = {  # a setting of an earlier version -> its name now
    "model.lift": "model.pre_layers",
    "model.lift_edges": "model.edge_pre_layer",
    "model.readers": "model.gate_init",
    "model.linear_end": "model.last_layer_is_head",
    "model.within": "model.clip_to_label_range",
    "model.read_ends": "model.edge_head_reads_nodes",
    "model.walks": "model.diffusion_steps",
    "model.pool_over": "model.pool_from",
    "training.averaging": "training.ema_decay",
    "training.warm_up": "training.warmup",
    "training.clip": "training.max_grad_norm",
    "training.penalty": "training.lp_penalty",
    "training.penalty_power": "training.lp_power",
    "training.epoch_steps": "training.max_steps_per_epoch",
    "training.unlabelled": "training.pseudo_label_weights",
    "training.rounds": "training.self_training_rounds",
    "training.labels": "training.recipe",
    "training.mask": "training.edge_mask_ratio",
    "training.negatives": "training.negative_ratio",
    "training.weight_decay_of": "training.weight_decay_by_name",
}
_LETTERS = f"{' and '.join(letters())}, such as NEN, or {' and '.join(letters(causal=True))} alone"
EXPECTED = {  # words of pydantic -> those of our errors
    f"String should match pattern '{LAYER_PATTERN}'": f"the letters {_LETTERS}",
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
    changes: Changes | None = None,
    seed: int = 0,
    link: bool = False,
) -> Settings:
    """Settings of a preset for one kind of task, with the changes of a user.

    Args:
        preset: one of `PRESETS`.
        section: the kind of task; several targets have that of edges where nodes and edges are predicted, else that of
            the first which is not a link, ``"oriented"`` where a target or a column is, and ``"molecule"`` where the
            first is of atoms or bonds.
        changes: dotted names, such as `{"model.hidden": 64}`, or nested ones, `{"model": {"hidden": 64}}`; a value may
            be a text, as on the command line. A `Settings` object brings its own preset and seed.
        seed: of initialization, dropout, batches and, unless `data.split_seed` is set, the split.
        link: whether links are predicted beside it, by the settings of the preset for links.

    Example:
        >>> settings = make_settings("paper", "node", {"model": {"hidden": 64}})
        >>> settings.model.layers, settings.model.hidden
        ('NEN', 64)
        >>> make_settings("paper", "node", {"model.widht": "64"})
        Traceback (most recent call last):
        censnet.errors.SettingsError: unknown setting model.widht: ...
    """
    check_arguments(make_settings, {"changes": changes, "seed": seed, "link": link})
    if isinstance(changes, Settings):
        preset, seed = changes.preset, changes.seed
    values = _load_preset(preset, section)
    changed = dotted(changes)
    if changed.get("training.recipe") == "high_label":
        values = _load_preset(preset, section, "high_label")
    if link:
        of_links = _load_preset(preset, "link")
        for group, names in OF_LINKS.items():
            values[group] |= {name: of_links[group][name] for name in names if name in of_links[group]}
    known = setting_names() if changed else []
    for name, value in changed.items():
        if name not in known:
            raise SettingsError(f"unknown setting {shorten(name)}: {_hint(name, known)}")
        group, _, key = name.partition(".")
        values[group][key] = _parse(value, name in TEXTS) if isinstance(value, str) else value
    try:
        return Settings.model_validate({**values, "preset": preset, "seed": seed})
    except ValidationError as error:
        raise SettingsError(_first_problem(error)) from None


def dotted(changes: Changes | None) -> dict[str, object]:
    """Changes by their dotted names; those of a `Settings` object are the fields that it was made with.

    >>> dotted({"model": {"hidden": 64}, "training.epochs": 5})
    {'model.hidden': 64, 'training.epochs': 5}
    >>> dotted(Settings(model={"hidden": 64}))
    {'model.hidden': 64}
    """
    if isinstance(changes, Settings):
        groups = {group: getattr(changes, group) for group in ("model", "training", "data")}
        return {
            f"{group}.{name}": getattr(section, name)
            for group, section in groups.items()
            for name in type(section).model_fields
            if name in section.model_fields_set
        }
    found: dict[str, object] = {}
    for name, value in (changes or {}).items():
        nested = isinstance(value, Mapping) and "." not in name
        for full, one in ({f"{name}.{key}": each for key, each in value.items()} if nested else {name: value}).items():  # type: ignore[attr-defined]
            if full in found:
                raise SettingsError(f"settings has {full} twice, expected it once")
            found[full] = one
    return found


def parse_changes(texts: Sequence[str]) -> dict[str, str]:
    """Parse `model.hidden=64` and the like, as `--set` has them.

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
    """The values of some settings, by their dotted names.

    >>> values_of(Settings(), ["model.hidden", "training.max_grad_norm"])
    {'model.hidden': 32, 'training.max_grad_norm': None}
    """
    return {name: getattr(getattr(settings, name.split(".")[0]), name.split(".")[1]) for name in names}


def setting_names() -> list[str]:
    """Dotted names of all settings: `model.layers` and so on."""
    groups = {group: Settings.model_fields[group].annotation for group in ("model", "training", "data")}
    return [f"{group}.{name}" for group, kind in groups.items() for name in kind.model_fields]  # type: ignore[union-attr]


def has_high_label_recipe(preset: str) -> bool:
    """Whether a preset has a second recipe for nodes, for many labels."""
    return "high_label" in _read_preset(preset).get("node", {})


def of_directed_links(preset: str) -> dict[str, Any]:
    """The settings [link.directed.model] of a preset, which overlay those of [link.model] where links are directed."""
    return dict(_read_preset(preset).get("link", {}).get("directed", {}).get("model", {}))


def of_ego_marks(preset: str) -> dict[str, object]:
    """The settings [node.ego_marks] of a preset by their dotted names, which overlay others where nodes are marked."""
    overlay = _read_preset(preset).get("node", {}).get("ego_marks", {})
    return {f"{group}.{name}": value for group, values in overlay.items() for name, value in values.items()}


def of_causal(preset: str) -> dict[str, object]:
    """The settings [causal] of a preset by their dotted names, which overlay others where layers are causal."""
    overlay = _read_preset(preset).get("causal", {})
    return {f"{group}.{name}": value for group, values in overlay.items() for name, value in values.items()}


def _load_preset(preset: str, section: str, recipe: str = "low_label") -> dict[str, dict[str, Any]]:
    """The tables [model], [training] and [data] of a preset, overlaid by those of the section, as [graph.model].

    The recipe high_label overlays these by [node.high_label.model] and [node.high_label.training].
    """
    if preset not in PRESETS:
        raise SettingsError(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    if section not in (*Level, ORIENTED, MOLECULE):
        raise SettingsError(f"the task is {section!r}, expected one of {', '.join(Level)}")
    stated = _read_preset(preset)
    of_section = stated.get(section, stated.get(Level.EDGE, {}) if section in (ORIENTED, MOLECULE) else {})
    merged: dict[str, dict[str, Any]] = {}
    for source in (stated, of_section, of_section.get(recipe, {})):
        for group in ("model", "training", "data"):
            merged[group] = {**merged.get(group, {}), **source.get(group, {})}
    return merged


@cache
def _read_preset(preset: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("censnet.settings").joinpath(f"{preset}.toml").read_text("utf-8"))


def _hint(name: str, known: Sequence[str]) -> str:
    """The hint for an unknown name: the new name of a renamed setting, or a similar one."""
    if name in RENAMED:
        return f"it is now {RENAMED[name]}"
    near = difflib.get_close_matches(name, known, 1, 0.6) or [one for one in known if one.endswith(f".{name}")]
    return f"did you mean {near[0]}?" if near else "`censnet settings` lists all"


def _parse(text: str, is_text: bool = False) -> object:
    """The value that a text stands for: a number, true, false, none, a list or a table as in JSON; else the text."""
    plain = text.strip()
    if plain.lower() in ("none", "null", ""):
        return None
    if is_text:  # the name of a column or a file, such as 2020 or a,b.csv
        return plain
    try:
        return json.loads(plain.lower() if plain.lower() in ("true", "false") else plain)
    except json.JSONDecodeError:
        return [_parse(part) for part in plain.split(",")] if "," in plain else plain


def _first_problem(error: ValidationError) -> str:
    """The first problem of a validation, as one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][:2])  # the rest are alternatives of the type
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        of_group = len(first["loc"]) == 1  # the message begins with the name
        return f"{where}{'.' if of_group else ' '}{message}" if where else message
    forms = [_expected(each["msg"]) for each in error.errors() if each["loc"][:2] == first["loc"][:2]]
    value = first["input"]
    found = str(value).lower() if value is None or isinstance(value, bool) else quote(value, 200)
    return f"{where} is {found}, expected {', or '.join(dict.fromkeys(forms))}"


def _expected(message: str) -> str:
    """The expectation of a pydantic message, in our words.

    >>> _expected("Input should be greater than or equal to 1")
    'at least 1'
    """
    text = message.removeprefix("Input should be ").partition(", unable to ")[0].partition(", got a number with")[0]
    for theirs, ours in EXPECTED.items():
        text = text.replace(theirs, ours)
    return text
