"""Lines of a stream: an event, the label of an earlier event or a node, read as the tables of the run are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from censnet.data.tables.row_encoding import MAX_KNOWN, Row, RowEncoder, TimeReader, read_id
from censnet.data.tables.schema import Schema
from censnet.errors import ArgumentError, DataError, RunError, quote
from censnet.ops.arrays import Array
from censnet.option_names import name_option
from censnet.tasks.label_counts import label_width
from censnet.tasks.targets import Target

NUMBER, LABEL_OF, NODE = "event", "label_of", "node"  # fields of lines that are no columns


class LabelReader:
    """The labels of a row as channels, as `ModelInputs.show` gives them.

    Args:
        targets: whose labels are inputs.
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        self.targets, self.width = targets, sum(map(label_width, targets))
        self._known: dict[object, float] = {}

    def __call__(self, row: Row) -> Array | None:
        """The channels, zeros where a label is not known; None where none is. (width,)"""
        found, at, known = np.zeros(self.width, np.float32), 0, False
        for target in self.targets:
            code = self._encode(target, row.get(target.column))
            if code == code:
                known = True
                if target.is_number:
                    found[at : at + 2] = code, 1
                else:
                    found[at + int(code)] = 1
            at += label_width(target)
        return found if known else None

    def check(self, row: Row) -> Array:
        """The channels of labels that are given, whose classes the run has to know."""
        found = self(row)
        for target in self.targets:
            value, code = row.get(target.column), self._encode(target, row.get(target.column))
            if value is not None and code != code:
                expected = "a number" if target.is_number else " or ".join(map(quote, target.classes[:10]))
                raise DataError(f"has {quote(value)}, expected {expected}", column=target.column)
        if found is None:
            names = ", ".join(target.column for target in self.targets)
            raise DataError(f"the line has no label, expected {names}")
        return found

    def _encode(self, target: Target, value: object) -> float:
        if value is None:
            return np.nan
        if type(value) is float and target.is_number and np.isfinite(value):
            return float(np.float32((value - target.mean) / target.scale))
        try:
            key = target.column, type(value), value
            found = self._known.get(key)
        except TypeError:
            raise DataError(f"has {quote(value)}, expected a label", column=target.column) from None
        if found is None:
            try:
                found = float(target.encode(pd.Series([value]))[0])
            except DataError as error:
                raise DataError(error.found, column=target.column) from None
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = found
        return found


@dataclass(frozen=True, slots=True)
class Event:
    """An edge that happens.

    Args:
        number: None if it is to get one.
        source, target: ids of its nodes.
        time: as a number.
        features: of the edge.
        label: its channels, if it is known already.
    """

    number: int | None
    source: str
    target: str
    time: float
    features: Array
    label: Array | None


class LineReader:
    """Reads lines by the schema of a run.

    Args:
        schema: with a column of times.
        known: the targets whose labels are inputs.
        number: the field with the number of an event.
    """

    def __init__(self, schema: Schema, known: Sequence[Target], number: str = NUMBER) -> None:
        keys = schema.edges.keys
        if schema.time is None or not {"source", "target"} <= keys.keys():
            raise RunError("the run was trained on tensors, expected tables whose columns a line can have")
        self.schema, self.number, self.column = schema, number, schema.time
        self.source, self.target, self.node_id = keys["source"], keys["target"], schema.nodes.keys.get("id", "id")
        self.labels, self._time = LabelReader(known), TimeReader(schema.time)
        self._edge, self._node = RowEncoder(schema.edges, "edges"), RowEncoder(schema.nodes, "nodes")
        used = [*keys.values(), *schema.edges.targets, *(c.name for c in schema.edges.columns if c.width)]
        for name in (number, LABEL_OF):
            if name in [*used, schema.time.name]:
                how = f"give {name_option('--number')} another name" if name == number else "rename the column"
                raise ArgumentError(f"{name} is a column of the edges, and a field of lines of its own: {how}")
        if number == LABEL_OF:
            raise ArgumentError(f"{name_option('--number')} is {number}, which is the field of labels: choose another")

    def event(self, row: Row) -> Event:
        """Read an event."""
        number = None if row.get(self.number) is None else read_number(row[self.number], self.number)
        source, target = read_id(row, self.source), read_id(row, self.target)
        time = self._time(row)
        return Event(number, source, target, time, self._edge(row), self.labels(row) if self.labels.width else None)

    def time(self, row: Row) -> float | None:
        """The time in a line that need not have one."""
        return None if row.get(self.column.name) is None else self._time(row)

    def node(self, row: Row) -> tuple[str, Array]:
        """The id and the features of a node."""
        return read_id(row, self.node_id), self._node(row)

    def unknown_node(self) -> Array:
        """The features of a node that no line has described."""
        return self._node.unknown()


def is_node_line(line: Row) -> bool:
    """Whether a line describes a node, `{"node": {...}}`."""
    return len(line) == 1 and isinstance(line.get(NODE), Mapping)


def read_number(value: object, name: str) -> int:
    """The number of an event.

    >>> read_number(17, "event")
    17
    """
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value < 2**63:
        raise DataError(f"{name} is {quote(value)}, expected the number of an event: a whole one, from 0")
    return value


class Numbers:
    """Numbers of events that were counted, mostly one after the other, as ranges.

    Example:
        >>> numbers = Numbers()
        >>> for number in (1, 2, 3, 7): numbers.add(number)
        >>> numbers.ranges, 2 in numbers, 5 in numbers, numbers.last
        ([[1, 3], [7, 7]], True, False, 7)
    """

    def __init__(self, ranges: Sequence[Sequence[int]] = ()) -> None:
        self.ranges = [list(each) for each in ranges]

    @property
    def last(self) -> int:
        """The highest; 0 if there is none."""
        return self.ranges[-1][1] if self.ranges else 0

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.ranges, number, key=lambda each: each[0]) - 1
        return at >= 0 and number <= self.ranges[at][1]

    def add(self, number: int) -> None:
        """Add a number that is higher than all others."""
        if self.ranges and number == self.last + 1:
            self.ranges[-1][1] = number
        else:
            self.ranges.append([number, number])
            if len(self.ranges) > MAX_RANGES:  # of the oldest ones, those between count as counted
                self.ranges[:2] = [[self.ranges[0][0], self.ranges[1][1]]]


MAX_RANGES = 10_000
