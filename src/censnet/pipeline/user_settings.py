"""Targets and settings as a user gives them, in any of their forms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from censnet.data.tables.target_spec import TargetLike, Targets, TargetSpec, parse_targets
from censnet.errors import ArgumentError
from censnet.levels import Level, main_level
from censnet.settings.presets import Changes, dotted, make_settings, values_of
from censnet.settings.schema import MOLECULE, ORIENTED, Settings
from censnet.tasks.targets import Target

TargetsLike = Targets | Target | Sequence[TargetLike | Target]  # as users write them, or of another run


def as_specs(target: TargetsLike) -> Targets:
    """Targets, with a `TargetSpec` of the same level, column, kind and positive class for each fitted `Target`.

    >>> as_specs(Target(level="edge", column="fraud", kind="binary", classes=["no", "yes"]))
    [TargetSpec(edge:fraud=binary:yes)]
    """
    items = [target] if isinstance(target, str | TargetSpec | Target) else list(target)
    if not any(isinstance(item, Target) for item in items):
        return cast(Targets, target)
    return [
        TargetSpec(item.level, item.column, item.kind, item.classes[1] if item.kind == "binary" else None)
        if isinstance(item, Target)
        else item
        for item in items
    ]


def read_settings(
    settings: Changes | None, target: Targets, preset: str, seed: int
) -> tuple[dict[str, object], str, int]:
    """A user's settings as changes of a preset by dotted names, the preset, and the seed.

    A `Settings` object brings its own preset and seed; its changes are the fields that were set and differ from the
    preset.

    Args:
        settings: as given to `train`.
        target: decides the section of the preset.
        preset, seed: as given to `train`.
    """
    changes = dotted(settings)
    if not isinstance(settings, Settings):
        return changes, preset, seed
    for name, given, default, own in (("preset", preset, "strong", settings.preset), ("seed", seed, 0, settings.seed)):
        if given not in (default, own):
            raise ArgumentError(f"{name} is {given!r}, and that of settings is {own!r}, expected one of them")
    specs, link = parse_targets(target)
    usual = values_of(make_settings(settings.preset, section_of(specs), None, settings.seed, link), changes)
    return {name: value for name, value in changes.items() if value != usual[name]}, settings.preset, settings.seed


def section_of(specs: Collection[TargetSpec], overrides: Mapping[str, str] | None = None) -> str:
    """The section of a preset for some targets: that of `main_level`, or oriented where a target or a column is."""
    if any(spec.kind == "oriented" for spec in specs) or "oriented" in (overrides or {}).values():
        return ORIENTED
    if any(spec.of_molecules for spec in specs) and next(iter(specs)).level != Level.GRAPH:
        return MOLECULE
    return main_level(spec.level for spec in specs)
