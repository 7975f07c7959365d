"""The records of a comparison: one for each method and seed, saved in `comparison.json` as they come."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from censnet.errors import RunError
from censnet.files import atomic_write, read_regular
from censnet.option_names import name_option
from censnet.tasks.metrics import METRICS, MONITORS

FILE = "comparison.json"
MOST_BYTES = 64 * 2**20
NUM_METRICS = 3  # of each target: that which selects, and two more


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Compared(_Stored):
    """One target of a comparison.

    Args:
        level: node, edge, graph or link.
        column: its name; `link` for links.
        kind: binary, multiclass, regression, oriented or link.
        metrics: its metrics; the first decides.
    """

    level: str
    column: str
    kind: str
    metrics: list[str]

    @property
    def name(self) -> str:
        """As the user writes it: `edge:is_fraud`, `link`."""
        return self.column if self.kind == "link" else f"{self.level}:{self.column}"

    @classmethod
    def of(cls, level: str, column: str, kind: str, monitor: str) -> Compared:
        """The target with the metrics of its kind, the one that selects first.

        >>> Compared.of("edge", "is_fraud", "binary", "ap").metrics
        ['ap', 'auc', 'accuracy']
        """
        known = METRICS[kind]
        first = monitor if monitor in known else MONITORS[kind]
        return cls(level=level, column=column, kind=kind,
                   metrics=[first, *(name for name in known if name != first)][:NUM_METRICS])  # fmt: skip


class Record(_Stored):
    """What one method did from one seed.

    Args:
        method: its key in `methods.METHODS`.
        seed: of the split and the method.
        seconds: of fitting and predicting.
        scores: part -> level -> metric -> value; empty if it was skipped.
        skipped: why; empty if it was not.
    """

    method: str
    seed: int
    seconds: float
    scores: dict[str, dict[str, dict[str, float]]] = Field(default_factory=dict)
    skipped: str = ""


class Start(_Stored):
    """What a comparison is of; it can be resumed with the same alone.

    Args:
        data: their name or path.
        target_specs: the targets as the user wrote them.
        preset, changes: of the training.
        overrides: column -> kind or role.
        strict: whether a row that cannot be used is an error.
    """

    data: str
    target_specs: list[str]
    preset: str
    changes: dict[str, object]
    overrides: dict[str, str]
    strict: bool


class Stored(_Stored):
    """The content of `comparison.json`.

    Args:
        start: what is compared.
        fingerprints: seed -> that of its data, labels and split.
        split: where the split came from.
        one_split: whether all seeds have the same, so that they vary the initialization alone.
        targets: what is predicted.
        records: in the order in which they came.
        table, sentence: computed from the records, for readers of the file.
    """

    start: Start
    fingerprints: dict[int, str] = Field(default_factory=dict)
    split: str = ""
    one_split: bool = False
    targets: list[Compared] = Field(default_factory=list)
    records: list[Record] = Field(default_factory=list)
    table: list[dict[str, object]] = Field(default_factory=list)
    sentence: str = ""

    def find(self, method: str, seed: int) -> Record | None:
        """The record of a method and a seed."""
        return next((one for one in self.records if (one.method, one.seed) == (method, seed)), None)


def read_stored(folder: Path) -> Stored:
    """Read `comparison.json` of a folder."""
    path = folder / FILE
    try:
        return Stored.model_validate_json(read_regular(path, MOST_BYTES))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RunError(f"{path} is not a comparison: {place + ': ' if place else ''}{first['msg']}") from None


def write_stored(folder: Path, stored: Stored) -> None:
    """Write it, complete or not at all."""
    content = json.dumps(stored.model_dump(mode="json"), indent=1, ensure_ascii=False)
    atomic_write(folder / FILE, (content + "\n").encode())


def check_same_start(folder: Path, stored: Start, asked: Start) -> None:
    """Raise where a comparison is resumed with something else than it was started with."""
    for name in Start.model_fields:
        before, now = getattr(stored, name), getattr(asked, name)
        if before != now:
            raise RunError(
                f"{folder} was started with {name} {before}, and now it is {now}: choose another "
                f"{name_option('--out')}, or {name_option('--overwrite')}"
            )
