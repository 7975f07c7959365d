"""Columns that may be the ends of an edge although their names do not say so."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from censnet.data import DataError, load_data
from censnet.data.tables.files import Tables
from censnet.data.tables.suggest_keys import suggest_ends

WHO = ["ann", "bob", "eve", "joe"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["amount", "payer_account", "payee_account"], ("payer_account", "payee_account")),
        (["fromAccount", "toAccount", "fee"], ("fromAccount", "toAccount")),
        (["user_id", "item_id", "stars"], ("user_id", "item_id")),
        (["person1", "person2"], ("person1", "person2")),
        (["memo", "Sender ID", "Receiver ID"], ("Sender ID", "Receiver ID")),
    ],
)
def test_ends_are_suggested_by_their_names(names, expected):
    frame = pd.DataFrame({name: ["x", "y"] for name in names})
    assert suggest_ends(frame, {}) == dict(zip(("source", "target"), expected, strict=True))


def test_ends_are_suggested_by_values_that_both_have():
    frame = pd.DataFrame({"w": [1.0] * 4, "lent by": WHO, "note": list("pqrs"), "lent to whom": WHO[1:] + WHO[:1]})
    assert suggest_ends(frame, {}) == {"source": "lent by", "target": "lent to whom"}
    assert suggest_ends(frame, {"source": "lent by"}) == {"target": "lent to whom"}
    assert suggest_ends(frame[["w", "note"]], {}) == {}


def test_ends_are_suggested_by_the_ids_of_the_nodes():
    nodes = pd.DataFrame({"id": ["ann", "bob", "eve", "tea", "rum", "ale"], "x": range(6)})
    edges = pd.DataFrame({"memo": list("abc"), "drinker": ["ann", "bob", "eve"], "drink": ["tea", "rum", "ale"]})
    with pytest.raises(
        DataError, match=r"edges: has the columns .* overrides={'drinker': 'source', 'drink': 'target'}"
    ):
        load_data(Tables(nodes=nodes, edges=edges))


def test_where_nothing_is_likely_the_option_is_named_all_the_same():
    with pytest.raises(
        DataError, match=r"columns a, b, expected .* overrides={'COLUMN': 'source', 'COLUMN': 'target'}"
    ):
        load_data(pd.DataFrame({"a": [1.5], "b": [2.5]}))
    with pytest.raises(DataError, match=r"overrides={'COLUMN': 'source'"):
        load_data(pd.DataFrame({"compound": ["CCO"], "b": [2.5]}))


def test_a_table_of_nodes_whose_id_has_another_name_says_which_option_would_do():
    edges = pd.DataFrame({"source": WHO, "target": WHO[1:] + WHO[:1]})
    nodes = pd.DataFrame({"x": range(4), "who": WHO})
    with pytest.raises(DataError, match=r"for it has no id \(if one has another name: overrides={'who': 'id'}"):
        load_data(Tables(nodes=nodes, edges=edges))


def test_a_wide_table_is_answered_at_once():
    frame = pd.DataFrame(np.zeros((3, 3000), np.int64)).add_prefix("c")
    start = time.perf_counter()
    with pytest.raises(DataError, match="expected source and target"):
        load_data(frame)
    assert time.perf_counter() - start < 2
