"""Sources of labels of atoms and bonds: a long table beside the molecules, or columns of lists in their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from censnet.data.tables.expand_targets import expand_targets
from censnet.data.tables.files import MOLECULES, Tables, check_names
from censnet.data.tables.keys import find_key, is_split
from censnet.data.tables.notes import Note
from censnet.data.tables.schema import Schema
from censnet.data.tables.target_spec import TargetSpec
from censnet.errors import DataError, name_columns
from censnet.levels import Level

LEVELS = {Level.NODE: "atom", Level.EDGE: "bond"}
FILES = {Level.NODE: "atoms", Level.EDGE: "bonds"}  # the names of long tables
# role -> names of its column in a long table, in lower case; the first that occurs is taken
INDEX: dict[str, tuple[str, ...]] = {
    "atom_index": ("atom_index", "atom_idx", "atom"),
    "bond_index": ("bond_index", "bond_idx", "bond"),
    "atom_1": ("atom_1", "atom1", "atom_1_index"),
    "atom_2": ("atom_2", "atom2", "atom_2_index"),
}
OF_LEVEL = {Level.NODE: ("atom_index",), Level.EDGE: ("bond_index", "atom_1", "atom_2")}
IDENTITY = {  # the columns of answers that say which atom or bond it is
    Level.NODE: ("row", "molecule", "atom_index", "element"),
    Level.EDGE: ("row", "molecule", "bond_index", "atom_1", "atom_2", "begin_atom", "end_atom", "bond_type"),
}


@dataclass(frozen=True, eq=False)
class LongTable:
    """A table with a row for each labeled atom or bond.

    Args:
        frame: the table.
        file: its name.
        keys: role -> column: `molecule`, `row`, `bond_index`, `atom_1`, `atom_2`, `atom_index`.
    """

    frame: pd.DataFrame
    file: str
    keys: Mapping[str, str]

    @property
    def others(self) -> list[str]:
        """The columns that are no key."""
        return [str(name) for name in self.frame.columns if name not in self.keys.values()]


@dataclass(frozen=True, eq=False)
class LabelSources:
    """The places of the labels of atoms and bonds.

    Args:
        targets: level -> the columns that are predicted.
        tables: level -> its long table, if there is one.
        lists: level -> columns of the table of molecules that hold a list of labels for each.
    """

    targets: Mapping[Level, Sequence[str]] = field(default_factory=dict)
    tables: Mapping[Level, LongTable] = field(default_factory=dict)
    lists: Mapping[Level, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Taken:
    """Tables of molecules without those of labels, and the labels.

    Args:
        tables: the molecules alone.
        specs: the targets, one for each column; those of graphs are not expanded yet.
        labels: where labels of atoms and bonds are; None if none are asked for.
        notes: for the user.
    """

    tables: Tables
    specs: list[TargetSpec]
    labels: LabelSources | None
    notes: list[Note]


def are_molecules(tables: Tables, roles: Mapping[str, str], specs: Sequence[TargetSpec] = ()) -> bool:
    """Whether the tables are molecules, with long tables of atoms or bonds or without.

    Args:
        tables: what was read.
        roles: column -> its role, as the user or a schema says.
        specs: the targets; beside SMILES, `bond:` says that a table without `source` and `target` is one of bonds.
    """
    frames = tables.frames()
    long = {level: frames[level.table] for level in LEVELS if level.table in frames}
    if not long:
        return True
    named = {spec.level for spec in specs if spec.of_molecules}
    if not all(_is_long(tables, level, frame, level in named) for level, frame in long.items()):
        return False
    if "graphs" not in frames:
        return any(_stem(tables, level) == FILES[level] for level in long)
    columns = frames["graphs"].columns
    return find_key(columns, "smiles") is not None or any(roles.get(str(name)) == "smiles" for name in columns)


def find_long_tables(tables: Tables, specs: Sequence[TargetSpec], schema: Schema | None) -> Tables:
    """The same tables; where the one table of SMILES has a row for each bond or atom that is predicted, it is long."""
    frames = tables.frames()
    if frames.keys() != {"graphs"}:
        return tables
    for level in LEVELS:
        named = [spec.column for spec in specs if spec.level is level]
        wanted = named if schema is None else schema.table(level.table).targets
        if wanted and _has_index(level, frames["graphs"].drop(columns=wanted, errors="ignore")):
            file = {level.table: tables.name("graphs")}
            return tables.with_frames({level.table: frames["graphs"]}, file).only(level)
    return tables


def take_labels(
    tables: Tables, specs: Sequence[TargetSpec], schema: Schema | None, overrides: Mapping[str, str] | None
) -> Taken:
    """Find the labels of atoms and bonds that targets, or the schema of a run, ask for.

    Args:
        tables: molecules, with long tables or without.
        specs: the targets.
        schema: of the run that reads the data; then labels are optional.
        overrides: as in `load_data`.
    """
    frames = tables.frames()
    long = {level: frames[level.table] for level in LEVELS if level.table in frames}
    tables = _with_molecules(tables)
    alone = tables.only(Level.GRAPH)
    if schema is not None:
        asked = {level: schema.table(level.table).targets for level in LEVELS}
        if not any(asked.values()):
            return Taken(alone, list(specs), None, [])
        columns = list(tables.frames()["graphs"].columns)
        found = {level: _read_long(tables, level) for level in long}
        lists = {
            level: [name for name in names if name in columns and not (level in found and name in found[level].others)]
            for level, names in asked.items()
        }
        return Taken(alone, list(specs), LabelSources(asked, found, lists), [])
    chosen = [spec for spec in specs if spec.level in LEVELS]
    if specs and not chosen:
        unread = [
            Note("source", f"{tables.name(level.table)} is not read: no {LEVELS[level]} is a target") for level in long
        ]
        return Taken(alone, list(specs), None, unread)
    if not specs and not long:
        return Taken(alone, [], None, [])
    found = {level: _read_long(tables, level) for level in long}
    every, notes = list[TargetSpec](), list[Note]()
    lists = {level: list[str]() for level in LEVELS}
    for spec in specs:
        if spec.level not in LEVELS:
            every.append(spec)
            continue
        some, said = _expand(spec, specs, tables, found.get(spec.level), overrides)
        notes += said
        every += some
        table = found.get(spec.level)
        lists[spec.level] += [one.column for one in some if table is None or one.column not in table.others]
    targets = {level: [spec.column for spec in every if spec.level == level] for level in LEVELS}
    taken = [name for names in lists.values() for name in names]
    twice = next((name for name in taken if any(s.level is Level.GRAPH and s.column == name for s in every)), None)
    if twice is not None:
        raise DataError("is a target of molecules and of their parts, expected one", tables.name("graphs"), None, twice)
    return Taken(alone, every, LabelSources(targets, found, lists), notes)


def chemical_name(name: str) -> str:
    """A target in the words of chemistry.

    >>> chemical_name("edge:bde"), chemical_name("graph:logp")
    ('bond:bde', 'graph:logp')
    """
    level, _, column = name.partition(":")
    return f"{LEVELS.get(Level(level), level)}:{column}"


def rename_table(column: str) -> str:
    """A column with its table by level, as `edges.bde` for `bonds.bde`.

    >>> rename_table("bonds.bde"), rename_table("bond.bde"), rename_table("bde")
    ('edges.bde', 'edges.bde', 'bde')
    """
    table, point, rest = column.partition(".")
    known = MOLECULES.get(table.lower().removesuffix("s") + "s") if point else None
    return column if known is None else f"{known}.{rest}"


def without_lists(tables: Tables, labels: LabelSources | None) -> Tables:
    """The tables without the columns of molecules that are lists of labels."""
    names = [] if labels is None else [name for lists in labels.lists.values() for name in lists]
    return tables.with_frames({"graphs": tables.frames()["graphs"].drop(columns=names)}) if names else tables


def refuse_chemical_words(specs: Sequence[TargetSpec]) -> None:
    """Raise for `atom:` and `bond:` where there are no molecules."""
    for spec in specs:
        if spec.of_molecules:
            expected = replace(spec, of_molecules=False).name
            raise DataError(f"target is {spec.name}, expected {expected}: atom: and bond: are for tables of SMILES")


def _expand(
    spec: TargetSpec,
    specs: Sequence[TargetSpec],
    tables: Tables,
    table: LongTable | None,
    overrides: Mapping[str, str] | None,
) -> tuple[list[TargetSpec], list[Note]]:
    """A target for each column that one stands for; a column that is nowhere, or no list, raises."""
    molecules, file = tables.frames()["graphs"], tables.name("graphs")
    here = table is not None and spec.column in table.others
    if not spec.every and spec.column in molecules.columns:
        if here and table is not None:
            raise DataError(f"is in {table.file}, too, expected labels in one of them", file, column=spec.column)
        return [spec], []
    if table is None:
        stem = FILES[spec.level]
        wanted = f"expected a list for each molecule in {file}, or a table {stem}.csv beside it, in one folder"
        there = f"{file} has {name_columns(molecules.columns)}"
        raise DataError(f"target is {spec.name}, but there is no such column: {wanted} ({there})")
    if spec.column in IDENTITY[spec.level] or spec.column in table.keys.values():
        raise DataError(f"says which {LEVELS[spec.level]} it is, expected labels", table.file, column=spec.column)
    values = table.frame[table.others]
    if spec.every:
        named = {other.column for other in specs if other.level == spec.level and not other.every}
        split = [name for name in table.others if is_split(name) or name.strip().lower() == "set"]
        spec = replace(spec, without=(*spec.without, *split, *named))
    alone = tables.only(Level.GRAPH).with_frames({spec.level.table: values})
    columns = [*map(str, values.columns), *map(str, molecules.columns)]
    decided = {name: kind for name, kind in (overrides or {}).items() if name.rpartition(".")[2] in columns}
    return expand_targets([spec], alone, decided)


def _read_long(tables: Tables, level: Level) -> LongTable:
    """A long table and the roles of its columns; one that does not say which atom or bond a row is raises."""
    frame, file = tables.frames()[level.table], tables.name(level.table)
    check_names(frame.columns, file)
    named = {str(column).strip().lower(): str(column) for column in reversed(list(frame.columns))}
    keys: dict[str, str] = {}
    for role in OF_LEVEL[level]:
        column = next((named[name] for name in INDEX[role] if name in named), None)
        keys |= {} if column is None else {role: column}
    if "row" in named:
        keys["row"] = named["row"]
    molecule = _molecule_column(tables, frame, level)
    if molecule is not None:
        keys["molecule"] = molecule
    there = name_columns(frame.columns)
    if not {"row", "molecule"} & keys.keys():
        raise DataError(f"has the columns {there}, expected molecule (a SMILES or an id) or row", file)
    if "atom_index" not in keys and "bond_index" not in keys and not {"atom_1", "atom_2"} <= keys.keys():
        pair = " or the pair atom_1 and atom_2" if level is Level.EDGE else ""
        raise DataError(f"has the columns {there}, expected {LEVELS[level]}_index{pair}", file)
    return LongTable(frame, file, keys)


def _molecule_column(tables: Tables, frame: pd.DataFrame, level: Level) -> str | None:
    """The column that says which molecule a row belongs to: `molecule`, SMILES, or the id of the molecules."""
    columns = [str(name) for name in frame.columns]
    plain = next((name for name in columns if name.strip().lower() == "molecule"), None)
    graphs = tables.frames().get("graphs")
    shared = None
    if graphs is not None:
        own = find_key(graphs.columns, "graph") or find_key(graphs.columns, "id")
        shared = own if own in columns else None
    return plain or shared or find_key(columns, "smiles") or find_key(columns, "graph") or find_key(columns, "id")


def _with_molecules(tables: Tables) -> Tables:
    """The same tables; where there is no table of molecules, each text of the long tables is one."""
    if "graphs" in tables.frames():
        return tables
    found: dict[str, None] = {}
    for level in LEVELS:
        frame = tables.frames().get(level.table)
        if frame is not None:
            column = _molecule_column(tables, frame, level)
            if column is None:
                there = name_columns(frame.columns)
                raise DataError(f"has the columns {there}, expected molecule, a SMILES", tables.name(level.table))
            found |= dict.fromkeys(str(text) for text in frame[column].dropna().unique())
    files = " and ".join(tables.name(level.table) for level in LEVELS if level.table in tables.frames())
    made = pd.DataFrame({"smiles": pd.Series(list(found), dtype=object)})
    return tables.with_frames({"graphs": made}, {"graphs": f"the molecules of {files}"})


def _is_long(tables: Tables, level: Level, frame: pd.DataFrame, named: bool) -> bool:
    """Whether a table is one of labels: by the name of its file, or by its columns, or as a target names it."""
    if _stem(tables, level) == FILES[level]:
        return True
    if level is Level.EDGE and find_key(frame.columns, "source") and find_key(frame.columns, "target"):
        return False
    return named or _has_index(level, frame)


def _has_index(level: Level, frame: pd.DataFrame) -> bool:
    """Whether the columns of a table say which atom or bond of a molecule a row is."""
    named = {str(column).strip().lower() for column in frame.columns}
    roles = {role for role in OF_LEVEL[level] if named & set(INDEX[role])}
    return bool(roles & {"atom_index", "bond_index"}) or {"atom_1", "atom_2"} <= roles


def _stem(tables: Tables, level: Level) -> str:
    return tables.name(level.table).split(".")[0].lower().removesuffix("s") + "s"
