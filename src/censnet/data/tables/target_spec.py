"""A target as the user writes it: the one grammar of `--target`, of Python and of run directories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from censnet.errors import ArgumentError, DataError, quote
from censnet.levels import COLUMN_LEVELS, MOLECULE_LEVELS, Level

TargetKind = Literal["binary", "multiclass", "regression", "oriented"]

SYNONYMS: dict[str, TargetKind] = {"number": "regression", "classes": "multiclass"}
_FORM = "expected node:COLUMN, edge:COLUMN, graph:COLUMN,COLUMN or link"
_KINDS = "binary, multiclass, regression or oriented"
_LEVELS: dict[str, Level] = {**{str(level): level for level in COLUMN_LEVELS}, **MOLECULE_LEVELS}
_WORDS = "|".join((*get_args(TargetKind), *SYNONYMS))
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_KIND = re.compile(r"\s*=\s*([^,:]*?)\s*(?=$|,|:)")
_BARE = re.compile(rf"([^,]*)=\s*({_WORDS})\s*(?=$|,|:)")  # the last = before a kind: a name may have another
_SPECIAL = re.compile(r'[,=:"]|^\s|\s$')


@dataclass(frozen=True)
class TargetSpec:
    """A target as the user asks for it.

    Args:
        level: whose column it is.
        column: its name; `*` for every column that is left, if `every`.
        kind: `binary`, `multiclass`, `regression` or, of edges, `oriented`: a number whose sign follows the order of
            the two ends; found from the labels if None, never as oriented.
        positive: the positive class of a binary target, as it is written in the table; the rarer one if None.
        every: whether it stands for every column that is left.
        without: of those, columns that are no target.
        of_molecules: whether it was written `atom:` or `bond:`, which stand for `node:` and `edge:` of molecules.

    Example:
        >>> TargetSpec("graph", "liver, bile", "binary", "1")
        TargetSpec(graph:"liver, bile"=binary:1)
    """

    level: Level
    column: str
    kind: TargetKind | None = None
    positive: str | None = None
    every: bool = False
    without: tuple[str, ...] = ()
    of_molecules: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", Level.of_column(self.level))
        object.__setattr__(self, "kind", as_kind(self.kind))
        if self.kind == "oriented" and self.level is not Level.EDGE:
            raise DataError(
                f"target {self.name}=oriented is of {self.level.table}, expected one of edges: an oriented number "
                "changes sign where the two ends of an edge are exchanged; ask for regression"
            )

    def __repr__(self) -> str:
        return f"TargetSpec({self.text})"

    @property
    def name(self) -> str:
        """Level and column, as `parse_targets` reads them."""
        return f"{self.word}:{'*' if self.every else quote_name(self.column, alone='*')}"

    @property
    def word(self) -> str:
        """The level as the user writes it: `bond` for edges of molecules."""
        words = {level: word for word, level in MOLECULE_LEVELS.items()}
        return words[self.level] if self.of_molecules else str(self.level)

    @property
    def text(self) -> str:
        """All of it, as `parse_targets` reads it."""
        positive = "" if self.positive is None else f":{quote_name(self.positive)}"
        return self.name + ("" if self.kind is None else f"={self.kind}{positive}")


def as_kind(kind: str | None) -> TargetKind | None:
    """A kind of target by its name; `number` and `classes` are older names.

    >>> as_kind("number"), as_kind("binary")
    ('regression', 'binary')
    """
    return cast(TargetKind | None, SYNONYMS.get(str(kind), kind))


TargetLike = str | TargetSpec | tuple[str, ...]
Targets = TargetLike | Sequence[TargetLike]


def as_items(target: Targets | None) -> list[TargetLike]:
    """One target or several, as a list. `("graph", "a, b")` is one: a level and a column.

    >>> as_items("node:age"), as_items(("graph", "a, b")), as_items(["node:age", "link"])
    (['node:age'], [('graph', 'a, b')], ['node:age', 'link'])
    """
    if target is None:
        return []
    if isinstance(target, str | TargetSpec) or (isinstance(target, tuple) and target and target[0] in _LEVELS):
        return [cast(TargetLike, target)]
    if not isinstance(target, Iterable):
        raise DataError(f"target is {quote(target)}, {_FORM}")
    return list(target)


def as_texts(target: Targets | None) -> list[str]:
    """One target or several as text, as the user wrote it or would write it.

    >>> as_texts([("graph", "a, b"), "link"])
    ['graph:"a, b"', 'link']
    """
    return [item if isinstance(item, str) else parse_targets([item])[0][0].text for item in as_items(target)]


def parse_targets(target: Targets | None, required: bool = True) -> tuple[list[TargetSpec], bool]:
    """The columns to predict, and whether links are; none at all is an error if one is `required`.

    The grammar is `LEVEL:ENTRY,ENTRY...` or `link`, where an entry is `COLUMN`, `COLUMN=KIND` or `COLUMN=binary:CLASS`,
    and `*` is every column that is left. A name with a comma in it, or with what would be taken for a kind, is put in
    quotes, and a quote in it is doubled, as in CSV. Of molecules, `atom` and `bond` stand for `node`
    and `edge`. In Python a target may also be a `TargetSpec`, or a tuple of level, column and, if they are given, kind
    and positive class.

    >>> parse_targets(["node:age=regression,sex", "link"])
    ([TargetSpec(node:age=regression), TargetSpec(node:sex)], True)
    >>> parse_targets('graph:"liver, bile"=binary:1,*')
    ([TargetSpec(graph:"liver, bile"=binary:1), TargetSpec(graph:*)], False)
    """
    items = as_items(target)
    if required and not items:
        raise DataError(f"there is no target, {_FORM}")
    found: list[TargetSpec] = []
    link = False
    for item in items:
        if isinstance(item, TargetSpec):
            found.append(item)
        elif isinstance(item, tuple):
            found.append(_from_tuple(item))
        elif not isinstance(item, str):
            raise ArgumentError(f"target is {quote(item)}, {_FORM}")
        elif item.strip() == "link":
            if link:
                raise DataError("target link is given twice, expected each once")
            link = True
        else:
            level, _, columns = item.strip().partition(":")
            if level not in _LEVELS:
                raise DataError(f"target is {quote(item)}, {_FORM}")
            chemical = level in MOLECULE_LEVELS
            found += [TargetSpec(_LEVELS[level], *entry, (), chemical) for entry in _entries(columns, item)]
    names = [replace(spec, of_molecules=False).name for spec in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"target {twice} is given twice, expected each once")
    return found, link


def _from_tuple(item: tuple[str, ...]) -> TargetSpec:
    """A target from level, column, and perhaps kind and positive class; the column is taken as it is."""
    if not (2 <= len(item) <= 4 and item[0] in _LEVELS and isinstance(item[1], str) and item[1]):
        raise DataError(f"target is {quote(item)}, expected (LEVEL, COLUMN) or (LEVEL, COLUMN, KIND)")
    kind, positive = (*item[2:], None, None)[:2]
    return TargetSpec(
        _LEVELS[item[0]],
        item[1],
        None if kind is None else _kind(kind, item, positive),
        None if positive is None else str(positive),
        every=item[1] == "*",
        of_molecules=item[0] in MOLECULE_LEVELS,
    )


_Entry = tuple[str, TargetKind | None, str | None, bool]


def _entries(text: str, item: str) -> Iterable[_Entry]:
    """Column, kind, positive class and whether it is `*`, of each entry of a list with commas between."""
    rest = text
    while True:
        rest = rest.lstrip()
        quoted = _QUOTED.match(rest)
        if rest.startswith('"') and quoted is None:
            raise DataError(f'target is {quote(item)} with a quote that is not closed, expected graph:"a, b"')
        kind: re.Match[str] | None
        if quoted is not None:
            name, rest = quoted[1].replace('""', '"'), rest[quoted.end() :]
            kind = _KIND.match(rest)
        else:
            kind = _BARE.match(rest)
            name = (rest.partition(",")[0] if kind is None else kind[1]).strip()
        if not name:
            raise DataError(f"target is {quote(item)} with a column that has no name, {_FORM}")
        every = quoted is None and name == "*"
        found, positive = None, None
        if kind is not None:
            word, rest = kind[2] if quoted is None else kind[1], rest[kind.end() :]
            if rest.startswith(":"):
                positive, rest = _read_class(rest[1:], item)
            found = _kind(word, item, positive)
        elif quoted is None:
            rest = rest[len(rest.partition(",")[0]) :]
            if "=" in name:
                _kind(name.rpartition("=")[2].strip(), item, None)
        rest = rest.lstrip()
        if rest and not rest.startswith(","):
            raise DataError(f"target is {quote(item)} with {quote(rest)} behind a name in quotes, expected , or =KIND")
        yield name, found, positive, every
        if not rest:
            return
        rest = rest[1:]


def _read_class(text: str, item: str) -> tuple[str, str]:
    """The positive class, in quotes or up to the next comma, and what is behind it."""
    text = text.lstrip()
    quoted = _QUOTED.match(text)
    if quoted is not None:
        return quoted[1].replace('""', '"'), text[quoted.end() :]
    name = text.partition(",")[0]
    if not name.strip():
        raise DataError(
            f"target is {quote(item)} with no class behind the colon, expected one, as in edge:sign=binary:neg"
        )
    return name.strip(), text[len(name) :]


def _kind(word: object, item: object, positive: object) -> TargetKind:
    """A kind by its word."""
    kind = as_kind(cast(str, word))
    if kind not in get_args(TargetKind):
        raise DataError(
            f"target is {quote(item)} with the kind {quote(word)}, expected {_KINDS}: put a "
            'column with = in its name in quotes, node:"a=b"'
        )
    if positive is not None and kind != "binary":
        raise DataError(f"target is {quote(item)} with the class {quote(positive)}, expected one behind binary alone")
    return cast(TargetKind, kind)


def quote_name(name: str, alone: str = "") -> str:
    """A name as the grammar of targets has it: in quotes where it would be read as something else."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if name == alone or _SPECIAL.search(name) else name
