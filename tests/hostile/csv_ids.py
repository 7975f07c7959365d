"""Ids that a reader of numbers, dates or truths would rewrite or merge, among the first lines and far beyond them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from hostile.accepted import all_used, same_ids, sound
from hostile.place import Place, Refusal
from hostile.tables import DIALECTS, PLAIN, Dialect, Table, world, write_all

STYLES = {  # name -> ids, parted by |
    "padded": "7|007|07|0007",
    "zeros": "0|00|000|-0|+0",
    "hexadecimal": "13|0x0D|0x0d|0XD|0x13",
    "octal-and-binary": "0o7|0b1|7|1",
    "space-before": "1| 1|  1|2",
    "space-after": "1|1 |1  |2",
    "no-break-space": "1|1\u00a0|\u00a01|\u30001",
    "zero-width": "1|1\u200b|\ufeff1|1\u2060",
    "plus": "1|+1|+2|2",
    "minus": "1|-1|\u22121|--1",
    "fractions": "1|1.0|1.00|1.|01.0",
    "halves": "0.5|.5|0.50|5e-1",
    "exponents": "100000|1e5|1E5|1e+5|10e4",
    "truths": "true|True|TRUE|false|1|0",
    "yes-and-no": "yes|Yes|no|NO|y",
    "dates": "2024-01-31|2024-1-31|31.01.2024|20240131|2024-01-31T00:00",
    "dates-alone": "2024-01-31|2024-02-29|2023-12-24|1999-01-01",
    "times": "12:00|12:00:00|00:12:00|12.00",
    "clock": "2024-01-31 12:00:00|2024-01-31 12:00:00.000|2024-01-31T12:00:00Z",
    "beyond-2-to-53": "9007199254740992|9007199254740993|9007199254740994",
    "beyond-2-to-63": "9223372036854775807|9223372036854775808|-9223372036854775808",
    "beyond-2-to-64": "18446744073709551615|18446744073709551616|18446744073709551617",
    "forty-digits": f"{'1' * 40}|{'1' * 39}2|{'1' * 41}",
    "infinite": "inf|Inf|INF|-inf|Infinity|1e999",
    "not-a-number": "x|NaN|nan|-nan|NAN",
    "missing-words": "x|NA|null|None|N/A|n/a|<NA>|NULL|nil|-",
    "underscores": "1000|1_000|10_00",
    "thousands": "1000|1,000|1.000|1 000|1'000",
    "full-width": "12|\uff11\uff12|1\uff12",
    "other-digits": "12|\u0661\u0662|\u0967\u0968|\u2460",
    "letters-twice": "caf\u00e9|cafe\u0301|cafe|Cafe",
    "case": "a|A|\u00df|ss|SS",
    "look-alike": "a|\u0430|\uff41|\U0001d41a",
    "emoji": "\U0001f469|\U0001f469\u200d\U0001f4bb|\U0001f1eb\U0001f1f7|\u2764|\u2764\ufe0f",
    "right-to-left": "\u05d0\u05d1|\u05d1\u05d0|\u200f1|1",
    "quotes": 'a"b|a""b|"a"|\'a\'|a',
    "commas": "a,b|a, b|a;b|a\tb|,",
    "line-breaks": "a\nb|a\r\nb|ab|a\n",
    "percent": "10%|10|%10|0.1",
    "currency": "$10|10$|\u20ac10|10",
    "formulas": "=1+1|2|@x|'1|1",
    "markup": "[red]x[/red]|x|[/x]|{x}|%s|{0}",
    "controls": "a\x1b[31m|a\x07|a\x7f|a|a\x85",
    "paths": "../x|/x|x|./x|C:\\x",
    "lists": "[1, 2]|[1,2]|1|(1, 2)|{}",
    "uuids": "6F9619FF-8B86-D011-B42D-00CF4FC964FF|6f9619ff-8b86-d011-b42d-00cf4fc964ff",
    "addresses": "10.0.0.1|10.0.0.01|10.0|10",
    "versions": "1.10|1.1|1.100|1",
    "long": f"{'x' * 5000}|{'x' * 4999}y|x",
    "one-letter": "a|b|c|d|e|f|g|h",
    "comment-signs": "#1|//1|1|--",
    "unit-numbers": "1kg|1 kg|1|1m",
    "letter-numbers": "1d|1f|1L|1|1e",
    "roman-and-fractions": "\u00bd|1/2|0.5|\u2160",
}
MANY = 3000  # rows before the odd ids, so that these lie beyond what is sampled


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Each style in several dialects, at the start and late, in both tables, in one, and within many graphs."""
    rng = random.Random(0)
    for style, text in STYLES.items():
        ids = text.split("|")
        for dialect in rng.sample(DIALECTS, 2):
            yield f"{style}-first-{dialect.name}", partial(_first, ids, dialect)
        yield f"{style}-late", partial(_late, ids)
        yield f"{style}-edges-alone", partial(_edges_alone, ids, rng.choice(DIALECTS))
        yield f"{style}-many-graphs", partial(_graphs, ids)
        yield f"{style}-mixed-types", partial(_other_type, ids)
    for style in ("padded", "space-before"):
        yield f"{style}-beyond-a-block", partial(_late, STYLES[style].split("|"), before=250_000)
    for dialect in DIALECTS:
        yield f"plain-{dialect.name}-{dialect.end}", partial(_plain, dialect)


def _check(place: Place, written: dict[str, Table], data: object = None) -> None:
    """Accepted, with every id as it is written."""
    found = place.load(data)
    assert not isinstance(found, Refusal), f"valid ids were refused: {found}"
    sound(found)
    same_ids(found, written)


def _first(ids: list[str], dialect: Dialect, place: Place) -> None:
    written = world([*ids, *PLAIN[:8]])
    write_all(place.data, written, dialect)
    _check(place, written)


def _late(ids: list[str], place: Place, before: int = MANY) -> None:
    written = world([*(str(10_000 + number) for number in range(before)), *ids])
    if before > MANY:
        for table in written.values():
            for name in [name for name in table if name not in ("id", "source", "target")]:
                del table[name]
        written["edges"] = {name: values[-1000:] for name, values in written["edges"].items()}
    write_all(place.data, written)
    _check(place, written)


def _edges_alone(ids: list[str], dialect: Dialect, place: Place) -> None:
    written = {"edges": world([*PLAIN[:8], *ids])["edges"]}
    path = dialect.write(place.data, "edges", written["edges"])
    _check(place, written, path)


def _graphs(ids: list[str], place: Place) -> None:
    """The odd ids name graphs."""
    written = world(many=True)
    names = dict(zip((f"g{number}" for number in range(8)), [*ids, *PLAIN], strict=False))
    for table in written.values():
        table["graph"] = [names[name] for name in table["graph"]]
    write_all(place.data, written)
    _check(place, written)


def _other_type(ids: list[str], place: Place) -> None:
    """Nodes have the odd ids beside plain ones, edges name plain ones alone: one column is text, the other numbers."""
    written = world(PLAIN)
    written["nodes"] = {name: [*values, *values[: len(ids)]] for name, values in written["nodes"].items()}
    written["nodes"]["id"] = [*PLAIN, *ids[: len(PLAIN)]]
    write_all(place.data, written)
    _check(place, written)


def _plain(dialect: Dialect, place: Place) -> None:
    written = world()
    write_all(place.data, written, dialect)
    found = place.load()
    assert not isinstance(found, Refusal), f"a valid table was refused: {found}"
    sound(found)
    all_used(found)
    same_ids(found, written)
    assert found.labels("edge", "amount").tolist() == [float(cell) for cell in written["edges"]["amount"]]
