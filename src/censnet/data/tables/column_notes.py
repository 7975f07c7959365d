"""Notes on columns: those left out, numbers in a doubtful notation, values that are clipped, categories never seen."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from censnet.data.tables.columns import as_arrow, read_numbers
from censnet.data.tables.feature_encoding import FARTHEST, Column
from censnet.data.tables.files import Tables
from censnet.data.tables.keys import says_split
from censnet.data.tables.notes import Note
from censnet.data.tables.number_notation import EXPONENT, NUMBER, find_notation, is_ambiguous, matches
from censnet.data.tables.schema import Schema
from censnet.errors import first_few, location, quote
from censnet.levels import COLUMN_LEVELS, Level
from censnet.ops.graph import Graph
from censnet.ops.graph_set import GraphSet
from censnet.option_names import column_option
from censnet.text import count, plural

logger = logging.getLogger(__name__)

MAX_COLUMNS = 5  # that are named one by one
NEARLY_ALL = 0.9  # of the values look like numbers, where those that are none are taken for a mistake
_PLAIN = "write plain numbers such as -1234.5"
_SAMPLE = 10_000  # values that are looked at for a doubtful notation
_MONEY = r"(?:[$€£¥₹₽]|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|kr\.?|zł)"
_GAP = r"[\s\x{00a0}\x{202f}\x{2009}]"
_DIGITS = rf"(?:[0-9]{{1,3}}(?:(?:[.,'_]|{_GAP})[0-9]{{3}})+|[0-9]+)(?:[.,][0-9]+)?|[.,][0-9]+"
_OTHER = rf"^\(?[+-]?{_GAP}*(?:{_MONEY}{_GAP}*)?[+-]?(?:{_DIGITS}){EXPONENT}{_GAP}*(?:{_MONEY}|%|‰)?{_GAP}*[-]?\)?$"
_SIGNS = (
    (r"[%‰]", "a percent sign"),
    (_MONEY, "a currency sign"),
    (r"[\s\xa0\u202f\u2009]", "digits grouped by spaces"),
    (r"['_]", "digits grouped by marks"),
    (r"^\(|\)$", "parentheses"),
    (r"-$", "a minus behind it"),
    (r",", "a comma"),
    (r"\..*\.", "several points"),
)
_MIXED_LIST = r"^[\[\(].*[0-9],[0-9].*[\]\)]$"


def column_notes(tables: Tables, schema: Schema) -> list[Note]:
    """Notes on the columns that are left out, and on default features where none is left."""
    notes = list[Note]()
    for level, fitted in schema.tables.items() if schema.smiles is None else ():
        if not level.takes_columns:
            continue
        file = tables.name(level.table)
        left_out = [column for column in fitted.left_out if not _may_be_split(column)]
        if left_out:
            notes.append(Note("column", f"{file}: left out {_by_reason(left_out)}"))
        notes += [Note("values", f"{file}: {sentence}") for sentence in _of_values(fitted.columns)]
        if fitted.structure != "none":
            default = "its degree and a constant" if fitted.structure == "degree" else "a constant"
            notes.append(Note("column", f"{file}: no column gives a feature, so each {level} has {default}"))
    unused = [
        column.name
        for column in schema.graphs.columns
        if column.name not in schema.graph_columns and not (column.kind == "drop" or _may_be_split(column))
    ]
    if unused:
        columns = first_few(unused)
        whole = "a graph is described by its nodes and edges"
        if schema.smiles is not None:
            whole = "a molecule is described by its atoms and bonds"
        alone = "and the columns that were chosen" if schema.graph_columns else "alone"
        notes.append(Note("column", f"{tables.name('graphs')}: {columns} not used: {whole} {alone}"))
    return notes + [
        Note("values", f"{tables.name('graphs')}: {sentence}") for sentence in _of_values(schema.of_graphs.columns)
    ]


def _by_reason(columns: Sequence[Column]) -> str:
    """The number of columns if there are many, and for each reason the first few of them."""
    reasons: dict[str, list[str]] = {}
    for column in columns:
        reasons.setdefault(column.reason, []).append(column.name)
    said = first_few((f"{first_few(names)} ({reason})" for reason, names in reasons.items()), 8)
    return said if len(columns) <= 8 else f"{len(columns):,} columns: {said}"


def _of_values(columns: Sequence[Column]) -> list[str]:
    """Sentences on columns with decimal commas, and on those with statistics of all rows."""
    commas = [column.name for column in columns if column.notation == "comma" and column.width]
    silent = [column.name for column in columns if column.statistics == "all"]
    sentences = []
    if commas:
        sentences.append(f"{_count(commas)}: a comma stands before decimals, so 1.175,36 is 1175.36")
    if silent:
        sentences.append(
            f"{_count(silent)}: no two different values in training rows, so statistics are those of all rows"
        )
    return sentences


def _count(names: Sequence[str]) -> str:
    return f"column {names[0]}" if len(names) == 1 else f"{len(names):,} columns ({first_few(names)})"


def _may_be_split(column: Column) -> bool:
    """Whether a column may state the split, which the training reports itself."""
    return column.kind == "id" and says_split(column.name)


def notation_notes(tables: Tables, schema: Schema) -> list[Note]:
    """Notes on the first few features and targets in doubt: an example, how it is read, what to do."""
    found, names = list[Note](), list[str]()
    for table, name, column in _text_columns(tables, schema):
        frame = tables.frames()[table]
        doubt = _doubt(as_arrow(frame[name]), name, column)
        if doubt is not None:
            found.append(Note("notation", location(tables.name(table), column=name) + doubt))
            names.append(name)
    if len(found) > MAX_COLUMNS + 1:
        others = f"{len(found) - MAX_COLUMNS:,} more columns have numbers in a doubtful notation"
        return [*found[:MAX_COLUMNS], Note("notation", f"{others}: {first_few(names[MAX_COLUMNS:])}")]
    return found


def _text_columns(tables: Tables, schema: Schema) -> Iterator[tuple[str, str, Column | None]]:
    """Table and name of each column of text on whose notation something depends; a target comes without a column."""
    for table, frame in tables.frames().items():
        fitted = schema.features_of(table)
        columns: dict[str, Column | None] = dict.fromkeys(set(fitted.targets) - set(fitted.notations))
        columns |= {column.name: column for column in fitted.columns if not column.chosen}
        for name in sorted(frame.columns, key=lambda name: name not in fitted.targets):  # these first
            if name in columns and pa.types.is_string(as_arrow(frame[name].iloc[:1000]).type):
                yield table, name, columns[name]


def _doubt(values: pa.ChunkedArray, name: str, column: Column | None) -> str | None:
    """A doubt on how a column is read, and what to do about it; None where there is none."""
    if column is not None and column.kind == "vector":
        listed = _find_doubtful_list(values, len(column.mean))
        if listed is None:
            return None
        return (
            f"{quote(listed)} is read as {len(column.mean)} numbers in a list: for a comma before decimals write a "
            "point, and for a negative number a minus"
        )
    if column is not None and column.kind == "date":
        return None
    if is_ambiguous(values):
        example = next(value for value in values.to_pylist() if value is not None and "," in value).strip()
        read = example.replace(",", "")
        if len(read_numbers(values, "point").bad) <= (1 - NEARLY_ALL) * len(values):
            decimals, number = (column_option((name, kind)) for kind in ("decimal-comma", "number"))
            return (
                f"{quote(example)} is read as {read}, its comma grouping digits: if it stands before decimals, give "
                f"{decimals}, and if not, {number}"
            )
    other = _find_other_notation(values)
    if other is None or other[2] < NEARLY_ALL:
        return None
    sign, example, _ = other
    notation = find_notation(values)
    unread = len(read_numbers(values, notation).bad)
    if unread <= (1 - NEARLY_ALL) * (len(values) - values.null_count) and notation != "mixed":
        return None  # read as numbers; where some are not, their rows say so
    became: str = "classes" if column is None else column.kind
    if column is not None and column.kind == "number":
        became = f"numbers, {unread:,} of which cannot be read"
    if notation == "mixed":
        what = "some values have a comma before decimals and some a point or commas between digits"
        return f"{what}, such as {quote(example)}, so they are taken for {became}: {_PLAIN}"
    return f"values look like numbers with {sign}, such as {quote(example)}, and are taken for {became}: {_PLAIN}"


def _find_other_notation(text: pa.ChunkedArray) -> tuple[str, str, float] | None:
    """Values that look like numbers but cannot be read as such: in what way, one of them, and their share.

    >>> _find_other_notation(pa.chunked_array([["12 %", "3.5 %", "8 %"]]))
    ('a percent sign', '12 %', 1.0)
    """
    text = text.drop_null()
    if len(text) > _SAMPLE:
        text = text.take(pa.array(np.linspace(0, len(text) - 1, _SAMPLE).astype(np.int64)))
    text = pc.utf8_trim_whitespace(text)
    like = matches(text, _OTHER)
    odd = like & ~matches(text, f"^{NUMBER}$")
    if not odd.any():
        return None
    example = text.filter(pa.array(odd))[0].as_py()
    sign = next((what for pattern, what in _SIGNS if re.search(pattern, example)), "another notation")
    return sign, example, float(like.mean())


def _find_doubtful_list(text: pa.ChunkedArray, width: int) -> str | None:
    """A list that may be something else, or None.

    Where numbers are separated by two different marks, a comma may stand before decimals; and one number in parentheses
    may be a negative one.
    """
    text = pc.utf8_trim_whitespace(text.drop_null().slice(0, _SAMPLE))
    odd = matches(text, _MIXED_LIST) & matches(text, r"[0-9]\s*;|[0-9]\s+[+-]?[0-9]")
    odd |= matches(text, r"^\(") & (width == 1)
    return text.filter(pa.array(odd))[0].as_py() if odd.any() else None


def clipping_notes(graph: Graph | GraphSet, tables: Tables, schema: Schema) -> list[Note]:
    """One sentence for each table with clipped values: how many there are, and in which columns.

    >>> ends = torch.tensor([[0], [1]])
    >>> far = Graph(torch.tensor([[0.5], [1e6]]), torch.zeros(1, 0), ends)
    >>> column = {"name": "age", "kind": "number", "mean": [40.0], "scale": [10.0]}
    >>> clipping_notes(far, Tables(), Schema.model_validate({"nodes": {"columns": [column]}}))
    ['nodes: values beyond 1,000,000 standard deviations are clipped, in age (1 row)']
    """
    said = list[Note]()
    for level in COLUMN_LEVELS:
        features, columns = level.features(graph), schema.features_of(level.table).columns
        columns = [*columns, *(schema.descriptors.columns if level is Level.GRAPH else ())]
        widths = [column.width for column in columns]
        if features is None or features.layout != torch.strided or sum(widths) != features.shape[1]:
            continue
        if features.numel() == 0 or max(map(abs, map(float, features.aminmax()))) < FARTHEST:
            continue
        if graph.odd_width and level is Level.EDGE:  # back to the order of the columns
            features = features[:, torch.tensor(schema.edges.feature_order).argsort()]
        blocks = zip(columns, torch.split(features, widths, dim=1), strict=True)
        counts = {column.name: int((block.abs() >= FARTHEST).sum()) for column, block in blocks}
        found = [f"{name} ({count(number, 'row')})" for name, number in counts.items() if number]
        more = f" and {len(found) - MAX_COLUMNS:,} more columns" if len(found) > MAX_COLUMNS else ""
        far = f"values beyond {FARTHEST:,.0f} standard deviations are clipped"
        said.append(Note("clipped", f"{tables.name(level.table)}: {far}, in {', '.join(found[:MAX_COLUMNS])}{more}"))
    return said


def warn_unseen_categories(tables: Tables, schema: Schema) -> list[Note]:
    """Notes on the first few columns with categories that no training row had; they are logged as warnings, too."""
    said, others = list[Note](), list[str]()
    for table, frame in tables.frames().items():
        for column in schema.features_of(table).columns:
            if not column.categories_complete or column.name not in frame:
                continue
            words = column.find_unseen(as_arrow(frame[column.name]))
            if len(words) and len(said) >= MAX_COLUMNS:
                others.append(column.name)
            elif len(words):
                where = location(tables.name(table), column=column.name)
                has, they = plural(len(words), "has"), plural(len(words), "it counts", "they count")
                rows = f"{len(words):,} of {count(len(frame), 'row')} {has} a word that no training row had"
                sentence = f"{where}{rows}, such as {quote(words[0].as_py())}: {they} as an average row"
                said.append(Note("unseen", sentence))
    if others:
        more = plural(len(others), "more column has", "more columns have")
        said.append(Note("unseen", f"{len(others):,} {more} words that no training row had: {first_few(others)}"))
    for note in said:
        logger.warning("%s", note)
    return said
