"""Columns that are likely to be the two ends of an edge, an id or SMILES although their names do not say so."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa

from censnet.data.tables.columns import as_arrow, as_text
from censnet.data.tables.keys import find_key
from censnet.option_names import column_option

_ROWS, _COLUMNS = 10_000, 40  # that are looked at
_SHARED = 0.2  # of the values of one column that are in another, from which both may name nodes
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_ENDS = (
    ("payer", "payee"), ("sender", "receiver"), ("sender", "recipient"), ("from", "to"), ("source", "target"),
    ("src", "dst"), ("src", "dest"), ("source", "destination"), ("source", "sink"), ("origin", "destination"),
    ("orig", "dest"), ("buyer", "seller"), ("customer", "merchant"), ("customer", "product"), ("user", "item"),
    ("user", "product"), ("user", "movie"), ("rater", "ratee"), ("citing", "cited"), ("follower", "followee"),
    ("follower", "followed"), ("caller", "callee"), ("debtor", "creditor"), ("debit", "credit"), ("giver", "taker"),
    ("lender", "borrower"), ("start", "end"), ("parent", "child"), ("subject", "object"), ("head", "tail"),
    ("trustor", "trustee"), ("author", "paper"), ("drug", "target"), ("left", "right"), ("first", "second"),
    ("a", "b"), ("i", "j"), ("x", "y"), ("1", "2"), ("0", "1"),
)  # fmt: skip


def suggest_ends(frame: pd.DataFrame, known: Mapping[str, str], ids: pd.Series | None = None) -> dict[str, str]:
    """Role -> column for the ends of an edge that are not known, by name or by values; empty if nothing is likely.

    Args:
        frame: the table of edges.
        known: role -> column of the end that is known, if one is.
        ids: of the nodes, if there is a table of them.

    Example:
        >>> table = pd.DataFrame({"amount": [5.0], "payer_account": ["a"], "payee_account": ["b"]})
        >>> suggest_ends(table, {})
        {'source': 'payer_account', 'target': 'payee_account'}
    """
    free = [column for column in frame.columns[:_COLUMNS] if column not in known.values()]
    free = [column for column in free if _may_be_ids(frame[column])]
    own = {role: known[role] for role in ("source", "target") if role in known}
    pairs = list(itertools.combinations(free, 2))
    if own:
        pairs = [(own.get("source", column), own.get("target", column)) for column in free]
    words = {column: _words(column) for pair in pairs for column in pair}
    chosen = next((pair for ends in _ENDS for pair in pairs if _are_named(words[pair[0]], words[pair[1]], ends)), None)
    if chosen is None:
        values = {column: _values(frame[column]) for column in {name for pair in pairs for name in pair}}
        nodes = None if ids is None else _values(ids)
        shared = {pair: _shared(values[pair[0]], values[pair[1]], nodes) for pair in pairs}
        best = max(shared, key=lambda pair: shared[pair], default=None)
        chosen = best if best is not None and shared[best] >= _SHARED else None
    if chosen is None:
        return {}
    return {role: column for role, column in zip(("source", "target"), chosen, strict=True) if role not in own}


def suggest_id(frame: pd.DataFrame, ids: pd.Series) -> str | None:
    """The column of a table of nodes that has these ids, if one has."""
    wanted = _values(ids)
    likely = [column for column in frame.columns[:_COLUMNS] if _may_be_ids(frame[column])]
    shared = {column: _shared(_values(frame[column]), wanted, None) for column in likely}
    best = max(shared, key=lambda column: shared[column], default=None)
    return best if best is not None and shared[best] >= 0.5 else None


def ends_hint(frame: pd.DataFrame, known: Mapping[str, str], ids: pd.Series | None = None) -> str:
    """The end of a sentence on a table whose ends are not known: the option that says which they are."""
    found = suggest_ends(frame, known, ids)
    smiles = next((column for column in frame.columns if "smiles" in column.lower()), None)
    if not found and smiles is not None and not known and find_key(frame.columns, "smiles") is None:
        found = {"smiles": smiles}
    missing = {role: "COLUMN" for role in ("source", "target") if role not in known}
    option = column_option(*((column, role) for role, column in (found or missing).items()))
    return f"(if they have other names: {option})"


def _may_be_ids(series: pd.Series) -> bool:
    kind = as_arrow(series.iloc[:_ROWS]).type
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _are_named(one: Sequence[str], other: Sequence[str], ends: tuple[str, str]) -> bool:
    """Whether two names are the same but for these words, as `payer_account` and `payee_account` are."""
    return ends[0] in one and [ends[1] if word == ends[0] else word for word in one] == other


def _values(series: pd.Series) -> set[str]:
    return set(as_text(as_arrow(series.iloc[:_ROWS])).drop_null().to_pylist())


def _shared(one: set[str], other: set[str], nodes: set[str] | None) -> float:
    """The share of values that two columns have in common, or each of them with the ids of the nodes."""
    few = min(len(one), len(other))
    if few < 3:
        return 0.0
    if nodes is not None:
        return min(len(one & nodes) / len(one), len(other & nodes) / len(other))
    return len(one & other) / few
