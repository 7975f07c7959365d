"""Every dtype of pandas in every role, and frames with odd indexes, names and cells."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from censnet.data import Tables
from hostile.accepted import sound
from hostile.place import Place, Refusal, says

ROWS = 24


def _objects(values: list[Any]) -> pd.Series[Any]:
    made = np.empty(len(values), dtype=object)
    for number, value in enumerate(values):
        made[number] = value
    return pd.Series(made, dtype=object)


def _dtypes(count: int) -> dict[str, pd.Series[Any]]:
    n = np.arange(count)
    day = pd.Timestamp("2024-01-01")
    found: dict[str, Any] = {
        f"numpy-{kind}": n.astype(kind)
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float16", "float32", "float64")
    }
    found |= {
        f"masked-{kind}": pd.array([None if k % 7 == 3 else k for k in n.tolist()], dtype=kind)
        for kind in ("Int8", "Int64", "UInt16", "Float32", "Float64")
    }
    found |= {
        "bool": n % 2 == 0,
        "boolean": pd.array([None if k % 7 == 3 else bool(k % 2) for k in n], dtype="boolean"),
        "complex": n + 1j,
        "string-python": pd.array([f"k{k}" for k in n], dtype="string[python]"),
        "string-arrow": pd.array([f"k{k}" for k in n], dtype="string[pyarrow]"),
        "object-text": [f"k{k}" for k in n],
        "category": pd.Categorical([f"k{k}" for k in n]),
        "category-few": pd.Categorical(["abc"[k % 3] for k in n], categories=list("cbaz"), ordered=True),
        "category-of-int": pd.Categorical(n % 3),
        "category-of-interval": pd.cut(n, 3),
        "datetime": day + pd.to_timedelta(n, "D"),
        "datetime-zone": (day + pd.to_timedelta(n, "h")).tz_localize("Asia/Tokyo"),
        "datetime-gaps": pd.Series(day + pd.to_timedelta(n, "D")).where(n % 7 != 3),
        "timedelta": pd.to_timedelta(n, "h"),
        "period": pd.period_range("2024-01", periods=count, freq="M"),
        "interval": pd.interval_range(0, count),
        "sparse": pd.arrays.SparseArray(np.where(n % 5 == 0, n, 0)),
        "sparse-float": pd.arrays.SparseArray(np.where(n % 5 == 0, 1.5, np.nan)),
        "float-nan": np.where(n % 7 == 3, np.nan, n.astype(float)),
        "float-infinite": np.where(n == 3, np.inf, n.astype(float)),
        "arrow-int": pd.array(n, dtype=pd.ArrowDtype(pa.int16())),
        "arrow-decimal": pd.array([decimal.Decimal(int(k)) for k in n], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
        "arrow-list": pd.Series([[1.0, float(k)] for k in n], dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
        "arrow-struct": pd.Series([{"a": int(k)} for k in n], dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())]))),
        "arrow-dictionary": pd.Series([f"k{k}" for k in n], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        "structured": [tuple(each) for each in zip(n.tolist(), n.tolist(), strict=True)],
    }
    cells: dict[str, Callable[[int], Any]] = {
        "mixed": lambda k: k if k % 2 else f"k{k}", "int-and-float": lambda k: k if k % 2 else k + 0.5,
        "none": lambda k: None, "some-none": lambda k: None if k % 7 == 3 else f"k{k}", "na": lambda k: pd.NA,
        "nat": lambda k: pd.NaT, "bytes": lambda k: b"k%d" % k, "decimal": decimal.Decimal,
        "decimal-nan": lambda k: decimal.Decimal("NaN") if k % 7 == 3 else decimal.Decimal(k),
        "fraction": lambda k: fractions.Fraction(k, 3), "uuid": lambda k: uuid.UUID(int=k),
        "path": lambda k: PurePosixPath(f"k{k}"),
        "list": lambda k: [1.0, float(k)], "ragged": lambda k: [1.0] * (k % 3), "array": lambda k: np.array([1.0, k]),
        "matrix": lambda k: np.eye(2) * k, "tuple": lambda k: (1, k), "set": lambda k: {k}, "dict": lambda k: {"a": k},
        "frame": lambda k: pd.DataFrame({"a": [k]}), "series": lambda k: pd.Series([k, 1]),
        "date": lambda k: dt.date(2024, 1, 1 + k % 28),
        "time": lambda k: dt.time(k % 24), "numpy-scalars": np.int64, "numpy-floats": lambda k: np.float32(k / 2),
        "huge-int": lambda k: 10**30 + k, "function": lambda k: len, "object": lambda k: object(),
        "surrogate": lambda k: f"\ud800{k}", "nul": lambda k: f"a\0{k}", "truths": lambda k: bool(k % 2),
        "numpy-truths": lambda k: np.bool_(k % 2), "text-numbers": str, "text-floats": lambda k: f"{k}.50",
        "complex-cells": lambda k: complex(k, 1),
        "zero-and-minus-zero": lambda k: (-1) ** k * 0.0, "nan-and-none": lambda k: float("nan") if k % 2 else None,
        "long-text": lambda k: "x" * 100_000, "enum-like": lambda k: "abc"[k % 3],
    }  # fmt: skip
    made = {name: values if isinstance(values, pd.Series) else pd.Series(values) for name, values in found.items()}
    return made | {f"cells-{name}": _objects([value(int(k)) for k in n]) for name, value in cells.items()}


NAMES = list(_dtypes(ROWS))


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Each dtype as a feature, a target, and ids; then odd frames."""
    for name in NAMES:
        yield f"feature-{name}", partial(_feature, name)
        yield f"target-{name}", partial(_target, name)
        yield f"id-{name}", partial(_id, name)
    for name, change in ODD.items():
        yield f"frame-{name}", partial(_odd_frame, change)
    for name, value in NO_DATA.items():
        yield f"data-{name}", partial(_no_data, value)


def _tables(count: int = ROWS) -> Tables:
    n = np.arange(count)
    nodes = pd.DataFrame({"id": n, "age": n % 13, "label": np.where(n % 2, "a", "b")})
    ends = np.concatenate([n, n]), np.concatenate([(n + 1) % count, (n + 2) % count])
    edges = pd.DataFrame({"source": ends[0], "target": ends[1], "amount": np.arange(2 * count) / 3})
    return Tables(nodes, edges)


def _feature(name: str, place: Place) -> None:
    """A column that nobody asked for never refuses the data."""
    tables = _tables()
    data = Tables(tables.nodes.assign(odd=_dtypes(ROWS)[name]), tables.edges.assign(odd=_dtypes(2 * ROWS)[name]))
    before = data.nodes.copy(), data.edges.copy()
    found = place.load(data)
    assert not isinstance(found, Refusal), f"a feature of dtype {name} refuses the data: {found}"
    sound(found)
    for table, frame in (("nodes", data.nodes), ("edges", data.edges)):
        schema = found.schema.table(table)
        assert "odd" in {one.name for one in [*schema.columns, *schema.left_out]}, "the column is not accounted for"
        assert len(found.problems.get(table, {})) < len(frame) / 2, "most rows are bad by one column"
    assert data.nodes.drop(columns="odd").equals(before[0].drop(columns="odd")), "the user's frame was changed"


def _target(name: str, place: Place) -> None:
    """Learnt, or refused with the column; a missing label is missing, and none other."""
    tables = _tables()
    column = _dtypes(ROWS)[name]
    made = place.prepare("node:odd", Tables(tables.nodes.assign(odd=column), tables.edges))
    if isinstance(made, Refusal):
        says(made, "odd")
        assert not name.startswith(("numpy-", "bool", "category-", "masked-I", "arrow-int")), f"refused: {made}"
        return
    sound(made.data)
    labeled = int(column.notna().sum())
    rows = sum(len(part) for part in made.splits["node"].parts.values())
    assert rows == labeled, f"{rows} rows are in the parts, {labeled} have a label"


def _id(name: str, place: Place) -> None:
    """As many nodes as different ids, and edges between those that they name; or a line."""
    tables = _tables()
    ids = _dtypes(ROWS)[name]
    edges = tables.edges.assign(
        **{end: ids.iloc[tables.edges[end]].reset_index(drop=True) for end in ("source", "target")}
    )
    data = Tables(tables.nodes.assign(id=ids), edges)
    found = place.load(data)
    if isinstance(found, Refusal):
        says(found, "id")
        return
    sound(found)
    good = [row for row in found.rows("node").tolist() if row >= 0]
    assert len(set(good)) == len(good), "two rows became one node"
    numbers = found.rows("node").tolist()
    for line, row in enumerate(found.rows("edge").tolist()):
        pair = {numbers[int(tables.edges[end].iloc[line])] for end in ("source", "target")}
        if row >= 0 and -1 not in pair:
            assert set(found.graph.ends[:, row].tolist()) == pair, f"edges, row {line + 1} joins other nodes"
    back = found.results("node", pd.DataFrame({"value_": range(found.count("node"))}), "ids")
    assert len(back) == ROWS


def _named(name: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.rename(columns={"amount": name})


ODD: dict[str, Callable[[pd.DataFrame], Any]] = {
    "empty": lambda frame: frame.iloc[:0], "no-columns": lambda frame: frame[[]],
    "one-row": lambda frame: frame.iloc[:1],
    "index-of-text": lambda frame: frame.set_axis([f"r{k}" for k in range(len(frame))]),
    "index-twice": lambda frame: frame.set_axis([0] * len(frame)), "index-backwards": lambda frame: frame.iloc[::-1],
    "index-of-two": lambda frame: frame.set_index(["source", "target"], drop=False),
    "index-dropped": lambda frame: frame.set_index("source"),
    "columns-of-two": lambda frame: pd.concat({"a": frame}, axis=1),
    "columns-twice": lambda frame: pd.concat([frame, frame], axis=1), "transposed": lambda frame: frame.T,
    "named-columns": lambda frame: frame.rename_axis(columns="x"), "number-as-name": _named(7),
    "none-as-name": _named(None),
    "nan-as-name": _named(float("nan")), "tuple-as-name": _named(("a", "b")), "empty-name": _named(""),
    "space-as-name": _named(" "),
    "newline-in-name": _named("a\nb"), "escape-in-name": _named("\x1b[31m"), "markup-in-name": _named("[/x]"),
    "long-name": _named("x" * 100_000), "flags": lambda frame: frame.set_flags(allows_duplicate_labels=False),
    "read-only": lambda frame: _read_only(frame), "a-view": lambda frame: frame[::2],
    "a-series": lambda frame: frame["source"],
    "grouped": lambda frame: frame.groupby("source"),
    "sparse": lambda frame: frame.astype(pd.SparseDtype("float64", 0)),
    "categories-of-both": lambda frame: frame.astype("category"), "attributes": lambda frame: _with_attrs(frame),
    "ends-as-float": lambda frame: frame.astype({"source": float}),
    "ends-as-text": lambda frame: frame.astype({"source": str}),
    "ends-with-gaps": lambda frame: frame.assign(source=frame["source"].where(frame["source"] != 3)),
}  # fmt: skip


def _read_only(frame: pd.DataFrame) -> pd.DataFrame:
    values = frame.to_numpy()
    values.flags.writeable = False
    return pd.DataFrame(values, columns=frame.columns, copy=False)


def _with_attrs(frame: pd.DataFrame) -> pd.DataFrame:
    frame.attrs["x"] = object()
    return frame


def _odd_frame(change: Callable[[pd.DataFrame], Any], place: Place) -> None:
    """Read with a row for each row, whatever the index; or refused."""
    frame = change(_tables().edges.copy())
    found = place.load(frame)
    if isinstance(found, Refusal):
        return
    sound(found)
    back = found.results("edge", pd.DataFrame({"value_": range(found.count("edge"))}))
    assert len(back) == len(frame)
    assert (
        back["source"].astype("string").fillna("").tolist()
        == pd.Series(frame["source"].to_numpy()).astype("string").fillna("").tolist()
    )


NO_DATA: dict[str, Any] = {
    "none": None, "number": 3, "text": "", "space": " ", "bytes": b"x", "list": [], "texts": ["a"], "dict": {},
    "dict-of-frames": {"edges": 1},
    "array": np.eye(3), "set": {1}, "function": len, "class": int, "path": Path(), "no-tables": Tables(), "tuple": (),
    "nan": float("nan"),
    "generator": (each for each in ()), "series": pd.Series([1, 2]), "index": pd.Index([1]),
    "arrow": pa.table({"source": [1], "target": [2]}),
    "nodes-alone": Tables(nodes=pd.DataFrame({"id": [1, 2]})),
    "no-rows": Tables(nodes=pd.DataFrame({"id": []}), edges=pd.DataFrame({"source": [], "target": []})),
    "tables-of-none": Tables(None, None, None), "tables-of-text": Tables(nodes="x"), "true": True,
}  # fmt: skip


def _no_data(value: Any, place: Place) -> None:
    """What is no data is said to be none; nothing is made of it."""
    found = place.load(value)
    assert isinstance(found, Refusal) or value is NO_DATA["nodes-alone"], f"{value!r} became {found}"
