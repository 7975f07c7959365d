"""Words of categories that training rows did not have."""

from __future__ import annotations

import logging

from censnet.data.tables.columns import as_arrow
from censnet.data.tables.files import Tables
from censnet.data.tables.schema import Schema
from censnet.errors import first_few, place, quote
from censnet.text import count, plural

logger = logging.getLogger("censnet")

MOST_COLUMNS = 5


def warn_unseen_categories(tables: Tables, schema: Schema) -> list[str]:
    """For each of the first few columns with such words, in how many rows, and one of them; it is logged, too."""
    said, others, frames = list[str](), list[str](), tables.frames()
    for table, fitted in (("nodes", schema.nodes), ("edges", schema.edges), ("graphs", schema.of_graphs)):
        if table not in frames:
            continue
        frame = frames[table]
        for column in fitted.columns:
            if not column.categories_complete or column.name not in frame:
                continue
            words = column.find_unseen(as_arrow(frame[column.name]))
            if len(words) and len(said) >= MOST_COLUMNS:
                others.append(column.name)
            elif len(words):
                where = place(tables.name(table), column=column.name)
                has, they = plural(len(words), "has"), plural(len(words), "it counts", "they count")
                rows = f"{len(words):,} of {count(len(frame), 'row')} {has} a word that no training row had"
                said.append(f"{where}{rows}, such as {quote(words[0].as_py())}: {they} as an average row")
    if others:
        more = plural(len(others), "more column has", "more columns have")
        said.append(f"{len(others):,} {more} words that no training row had: {first_few(others)}")
    for sentence in said:
        logger.warning("%s", sentence)
    return said
