"""Every type of Arrow in every role: ids, ends, features, targets; with gaps and without."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hostile.accepted import sound
from hostile.place import Place, Refusal, says
from hostile.tables import world

ROWS = 24


def _days(number: int) -> dt.date:
    return dt.date(2024, 1, 1) + dt.timedelta(days=number)


def _moment(number: int) -> dt.datetime:
    return dt.datetime(2024, 1, 1, 12) + dt.timedelta(hours=number)


def _number(number: int) -> Any:
    return number


def _text(number: int) -> str:
    return f"k{number}"


# name -> the type, and the value number n of a column that has no two alike
TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int8": (pa.int8(), _number), "int16": (pa.int16(), _number), "int32": (pa.int32(), _number),
    "int64": (pa.int64(), _number), "uint8": (pa.uint8(), _number), "uint16": (pa.uint16(), _number),
    "uint32": (pa.uint32(), _number), "uint64": (pa.uint64(), lambda n: 2**64 - 1 - n),
    "int64-large": (pa.int64(), lambda n: 2**53 + n), "int64-negative": (pa.int64(), lambda n: -n - 1),
    "float32": (pa.float32(), float), "float64": (pa.float64(), lambda n: n + 0.5),
    "float64-whole": (pa.float64(), float),
    "decimal": (pa.decimal128(9, 2), lambda n: decimal.Decimal(n) / 4),
    "decimal256": (pa.decimal256(50, 3), lambda n: decimal.Decimal(n) / 8),
    "string": (pa.string(), _text), "large_string": (pa.large_string(), _text),
    "string-padded": (pa.string(), lambda n: f"{n:03d}"), "string-spaces": (pa.string(), lambda n: " " * n + "x"),
    "binary": (pa.binary(), lambda n: _text(n).encode()),
    "large_binary": (pa.large_binary(), lambda n: bytes([n, 255])),
    "fixed-binary": (pa.binary(4), lambda n: f"{n:04d}".encode()),
    "date32": (pa.date32(), _days), "date64": (pa.date64(), _days),
    "timestamp-s": (pa.timestamp("s"), _moment), "timestamp-ms": (pa.timestamp("ms"), _moment),
    "timestamp-us": (pa.timestamp("us"), _moment), "timestamp-ns": (pa.timestamp("ns"), _moment),
    "timestamp-zone": (pa.timestamp("us", "Europe/Oslo"), lambda n: _moment(n).replace(tzinfo=dt.UTC)),
    "time32": (pa.time32("s"), lambda n: dt.time(n % 24, 5)), "time64": (pa.time64("us"), lambda n: dt.time(n % 24, 5)),
    "duration": (pa.duration("s"), lambda n: dt.timedelta(seconds=n)),
    "list": (pa.list_(pa.float64()), lambda n: [float(n), 1.0]),
    "list-of-int": (pa.list_(pa.int32()), lambda n: [n, 2, 3]),
    "list-ragged": (pa.list_(pa.float64()), lambda n: [1.0] * (n % 3)),
    "list-of-text": (pa.list_(pa.string()), lambda n: [_text(n)]),
    "list-of-list": (pa.list_(pa.list_(pa.int64())), lambda n: [[n], [1]]),
    "large-list": (pa.large_list(pa.float32()), lambda n: [float(n), 2.0]),
    "fixed-list": (pa.list_(pa.float32(), 2), lambda n: [float(n), 2.0]),
    "struct": (pa.struct([("a", pa.int64()), ("b", pa.string())]), lambda n: {"a": n, "b": "x"}),
    "map": (pa.map_(pa.string(), pa.int64()), lambda n: [("a", n)]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), _text),
    "dictionary-of-int": (pa.dictionary(pa.int8(), pa.int64()), _number),
    "bool": (pa.bool_(), lambda n: n % 2 == 0), "null": (pa.null(), lambda n: None),
    "few-words": (pa.string(), lambda n: "abc"[n % 3]), "few-numbers": (pa.int64(), lambda n: n % 3),
    "float16": (pa.float16(), lambda n: n / 4),
}  # fmt: skip
FEW = {"bool", "null", "few-words", "few-numbers", "list-ragged"}  # not ids: values come again


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Each type in each role."""
    for name in TYPES:
        for gaps in (False, True):
            word = f"{name}{'-gaps' * gaps}"
            yield f"feature-{word}", partial(_feature, name, gaps)
            yield f"node-target-{word}", partial(_target, name, gaps, "nodes")
            yield f"edge-target-{word}", partial(_target, name, gaps, "edges")
        if name not in FEW:
            yield f"id-{name}", partial(_id, name, None)
            yield f"id-text-in-edges-{name}", partial(_id, name, "text")
        yield f"split-{name}", partial(_split, name)
        yield f"file-of-edges-{name}", partial(_edges, name)


def _column(name: str, count: int, gaps: bool = False) -> pa.Array:
    kind, value = TYPES[name]
    values = [None if gaps and number % 7 == 3 else value(number) for number in range(count)]
    if pa.types.is_float16(kind):
        import numpy as np

        return pa.array([None if each is None else np.float16(each) for each in values], kind)
    return pa.array(values, kind)


def _tables() -> dict[str, dict[str, Any]]:
    written: dict[str, dict[str, Any]] = {}
    for table, columns in world([str(number) for number in range(ROWS)]).items():
        written[table] = dict(columns)
        for name in ("id", "source", "target", "age", "fraud"):
            if name in columns:
                written[table][name] = [int(cell) for cell in columns[name]]
        for name in ("score", "amount", "fee"):
            if name in columns:
                written[table][name] = [float(cell) for cell in columns[name]]
    return written


def _write(place: Place, tables: dict[str, dict[str, Any]]) -> None:
    for table, columns in tables.items():
        try:
            pq.write_table(pa.table(columns), place.data / f"{table}.parquet")
        except (pa.ArrowException, ValueError) as error:  # Parquet itself has no such type
            raise _NoParquetError from error


class _NoParquetError(Exception):
    pass


def _written(place: Place, tables: dict[str, dict[str, Any]]) -> bool:
    try:
        _write(place, tables)
    except _NoParquetError:
        return False
    return True


def _feature(name: str, gaps: bool, place: Place) -> None:
    """A column nobody asked for never refuses a table: it is a feature, or it is left out with a reason."""
    tables = _tables()
    tables["nodes"]["odd"], tables["edges"]["odd"] = _column(name, ROWS, gaps), _column(name, 2 * ROWS, gaps)
    if not _written(place, tables):
        return
    found = place.load()
    assert not isinstance(found, Refusal), f"a feature of type {name} refuses the table: {found}"
    sound(found)
    for table in ("nodes", "edges"):
        schema = found.schema.table(table)
        assert "odd" in {one.name for one in [*schema.columns, *schema.left_out]}, "the column is not accounted for"
        few = len(found.problems.get(table, {})) < len(tables[table]["odd"]) / 2
        assert few or name == "list-ragged", "most rows are bad by one column"


def _target(name: str, gaps: bool, table: str, place: Place) -> None:
    """A target of any type is learnt, or refused with file and column; labels are never lost without a word."""
    tables, level = _tables(), table.removesuffix("s")
    count = len(next(iter(tables[table].values())))
    tables[table]["odd"] = _column(name, count, gaps)
    if not _written(place, tables):
        return
    made = place.prepare(f"{level}:odd")
    if isinstance(made, Refusal):
        says(made, f"{table}.parquet", "odd")
        assert name not in ("few-words", "few-numbers", "bool", "float64", "int64"), f"refused: {made}"
        return
    sound(made.data)
    labeled = count - tables[table]["odd"].null_count
    rows = sum(len(part) for part in made.splits[level].parts.values())
    assert rows == labeled, f"{rows} rows are in the parts, {labeled} have a label"


def _id(name: str, edges: str | None, place: Place) -> None:
    """Ids of any type join the tables and come back in order; or the type is refused."""
    tables = _tables()
    ids = _column(name, ROWS)
    order = {"source": tables["edges"]["source"], "target": tables["edges"]["target"]}
    tables["nodes"]["id"] = ids
    for end in ("source", "target"):
        try:
            column = ids.take(pa.array(order[end]))
            tables["edges"][end] = column if edges is None else column.cast(pa.string())
        except (pa.ArrowException, NotImplementedError):
            return
    if not _written(place, tables):
        return
    found = place.load()
    if isinstance(found, Refusal):
        says(found, ".parquet")
        spelled = edges is not None and pa.types.is_temporal(ids.type)  # as another library spells a date
        assert pa.types.is_nested(ids.type) or "binary" in name or spelled, f"ids of type {name} are refused: {found}"
        return
    sound(found)
    count = sum(int(row) >= 0 for row in found.rows("node"))
    assert count == ROWS, f"{count} of {ROWS} ids of type {name} are nodes"
    assert len(set(found.rows("node").tolist())) == ROWS, "two ids became one node"
    if edges is not None and not (pa.types.is_integer(ids.type) or pa.types.is_string(ids.type)):
        return  # how another library spells a date is its own
    ends, rows = found.graph.ends, found.rows("edge").tolist()
    for number, row in enumerate(rows):
        assert row >= 0, f"edge {number + 1} names ids that are there: {found.problems['edges'][number]}"
        pair = {order["source"][number], order["target"][number]}
        assert {int(found.rows("node")[end]) for end in pair} == set(ends[:, row].tolist()), "edges join other nodes"


def _split(name: str, place: Place) -> None:
    """A column called split that holds something else is refused, or it is not the split and that is said."""
    tables = _tables()
    tables["nodes"]["split"] = _column(name, ROWS)
    if not _written(place, tables):
        return
    made = place.prepare("node:label")
    if isinstance(made, Refusal):
        says(made, "nodes.parquet", "split")
        return
    notes = " ".join(made.data.notes)
    assert name == "null" or "split" in notes, "the column split is neither used nor named"


def _edges(name: str, place: Place) -> None:
    """One file of edges, its ends and a column of the type."""
    count = 2 * ROWS
    back = _column(name, count).take(pa.array(range(count)[::-1]))
    tables = {"edges": {"source": _column(name, count), "target": back,
                        "odd": _column(name, count)}}  # fmt: skip
    if not _written(place, tables):
        return
    found = place.load(place.data / "edges.parquet")
    if isinstance(found, Refusal):
        says(found, "edges.parquet")
        return
    sound(found)
    assert len(found.rows("edge")) == count
