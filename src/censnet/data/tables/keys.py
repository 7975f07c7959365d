"""Key columns, which identify a row: the id of a node, the two ends of an edge, the graph, the SMILES."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from censnet.errors import DataError, name_columns, quote
from censnet.levels import COLUMN_LEVELS, Level

ROLES: dict[str, tuple[str, ...]] = {
    "id": ("id", "node", "node_id", "nodeid", "name"),
    "source": ("source", "src", "from", "source_id", "src_id", "head", "u"),
    "target": ("target", "dst", "to", "target_id", "dst_id", "tail", "v"),
    "graph": ("graph", "graph_id", "graphid"),
    "smiles": ("smiles", "canonical_smiles", "isomeric_smiles", "smile", "mol", "molecule", "structure"),
}
TABLES = tuple(level.table for level in COLUMN_LEVELS)
_SMILES = re.compile(r"(?<![a-z])smiles(?![a-z])")
_LEVEL = "|".join(COLUMN_LEVELS)
_MASK = re.compile(rf"(?:(?:{_LEVEL})_)?(train|val|valid|validation|test)(?:_(?:{_LEVEL}))?_mask")


def find_key(columns: Iterable[str], role: str) -> str | None:
    """The column that plays a role, by its name; the first name of the list that occurs wins.

    >>> find_key(["amount", "src", "dst"], "source"), find_key(["SMILES", "exp"], "smiles")
    ('src', 'SMILES')
    """
    columns = list(columns)
    named = {str(column).strip().lower(): column for column in reversed(columns)}
    found = next((named[name] for name in ROLES[role] if name in named), None)
    if found is None and role == "smiles":
        found = next((column for column in columns if names_smiles(column)), None)
    return found


def names_smiles(column: object) -> bool:
    """Whether the name of a column has SMILES as a word, as `Molecule SMILES` and `parent_smiles` have."""
    return _SMILES.search(str(column).lower()) is not None


def is_split(column: str) -> bool:
    """Whether a column is called `split`, and so says which part each row is in."""
    return column.strip().lower() == "split"


def mask_part(column: str) -> str | None:
    """The part that a column is a mask of by its name, as a split spells it; None if it is no such mask.

    >>> mask_part("train_mask"), mask_part("edge_val_mask"), mask_part("attention_mask")
    ('train', 'val', None)
    """
    found = _MASK.fullmatch(column.strip().lower())
    return None if found is None else found[1]


def says_split(column: str) -> bool:
    """Whether a column says by its name which part each row is in, or whether it is in one."""
    return is_split(column) or mask_part(column) is not None


def find_keys(table: str, columns: Iterable[str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Role -> column of one table, by the user's choice or by the names; a role nobody plays is absent."""
    columns, roles = list(columns), Level.of_table(table).keys
    chosen: dict[str, str] = {}
    for column in columns:
        role = overrides.get(column, "")
        if role in roles or (table == "graphs" and role == "id"):
            if role in chosen:
                raise DataError(f"{chosen[role]} and {column} are both said to be the {role}, expected one", table)
            chosen[role] = column
    free = [column for column in columns if column not in overrides]
    keys = {}
    for role in roles:
        found = chosen.get(role) or find_key(free, role)
        if found is None and table == "graphs" and role == "graph":
            found = chosen.get("id") or find_key(free, "id")
        if found is not None:
            keys[role] = found
    return keys


def check_keys(table: str, keys: Mapping[str, str], columns: Iterable[str], file: str) -> None:
    """Raise unless the columns that say who a row of this table is are there."""
    for role, name in keys.items():
        if name not in columns:
            raise DataError(f"is missing, expected the {role} of each row of {table} as in training", file, column=name)


def table_overrides(
    overrides: Mapping[str, str] | None, columns: Mapping[str, Iterable[str]], kinds: Iterable[str]
) -> dict[str, dict[str, str]]:
    """The overrides of the user by table: `COLUMN` for every table that has it, `TABLE.COLUMN` for one.

    >>> table_overrides({"edges.kind": "category", "memo": "drop"}, {"nodes": ["kind"], "edges": ["kind", "memo"]}, [])
    {'nodes': {}, 'edges': {'kind': 'category', 'memo': 'drop'}}
    """
    allowed = list(dict.fromkeys([*kinds, "drop", *ROLES]))
    decided: dict[str, dict[str, str]] = {table: {} for table in columns}
    for name, kind in (overrides or {}).items():
        if kind not in allowed and list(kinds):
            raise DataError(f"{quote(kind)} is not a kind of column, expected one of {', '.join(allowed)}", column=name)
        table, _, column = name.partition(".")
        table = Level(table).table if table in COLUMN_LEVELS else table
        holders = [t for t in columns if name in list(columns[t])]
        if not holders and column and table in columns and column in list(columns[table]):
            holders, name = [table], column
        if not holders:
            every = [str(column) for names in columns.values() for column in names]
            near = difflib.get_close_matches(name, every, n=1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {name_columns(every)}"
            raise DataError(f"no table has this column: {hint}", column=name)
        for holder in holders:
            if kind == "oriented" and holder != "edges":
                where = f": say edges.{name}=oriented" if "edges" in holders else ""
                what = "is said to be oriented, expected a column of edges, whose two ends can be exchanged"
                raise DataError(f"{what}{where}", holder, column=name)
            if decided[holder].get(name, kind) != kind:
                raise DataError(
                    f"is said to be {decided[holder][name]} and {kind}, expected one of them", holder, column=name
                )
            decided[holder][name] = kind
    return decided
