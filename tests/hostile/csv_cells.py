"""Cells that are not what their column is: one odd cell, a whole column in another notation, labels with signs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from functools import partial

from hostile.accepted import same_ids, sound
from hostile.place import Place, Refusal, heard
from hostile.tables import Dialect, world, write_all

ROWS = 60
IDS = [f"n{number}" for number in range(ROWS)]
SPOILERS = {
    "empty": "", "space": " ", "nan": "NaN", "infinite": "inf", "minus-infinite": "-inf", "too-large": "1e999",
    "word": "abc", "comma": "1,5", "below": "<5", "above": ">5", "list": "[1, 2]", "hexadecimal": "0x10",
    "underscore": "1_000", "arabic": "\u0665", "half": "\u00bd", "minus": "\u22121", "tiny": "1e-400",
    "huge": "x" * 200_000, "formula": "=1+1", "mark": "\ufeff1", "truth": "TRUE", "date": "2024-01-01",
    "space-inside": "1 000", "currency": "$5", "percent": "5%", "unit": "5kg", "apostrophe": "'5", "dashes": "--",
    "question": "?", "n/a": "n/a", "nil": "nil", "escape": "\x1b[31m5", "bell": "5\x07", "markup": "[/x]",
    "braces": "{}", "many-digits": "1" * 400, "line-break": "5\n6", "quote": '5"', "tab": "5\t", "nul": "5\0",
}  # fmt: skip
COLUMNS = (("nodes", "age"), ("nodes", "score"), ("nodes", "label"), ("edges", "amount"), ("edges", "fee"))
TARGETS = {"score": "node:score", "label": "node:label", "fee": "edge:fee"}


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """One odd cell in each column; whole columns in decimal commas; censored labels; dates, lists, truths."""
    rng = random.Random(1)
    for name, cell in SPOILERS.items():
        for table, column in COLUMNS:
            yield f"{name}-in-{column}", partial(_one_cell, table, column, cell, rng.choice((0, 17, -1)))
    for mark in (";", "\t", ","):
        for table, column in COLUMNS[:2] + COLUMNS[3:]:
            word = {";": "semicolon", "\t": "tab", ",": "quoted"}[mark]
            yield f"decimal-commas-{word}-{column}", partial(_commas, table, column, Dialect(mark), 1.0)
            yield f"decimal-commas-some-{word}-{column}", partial(_commas, table, column, Dialect(mark), 0.5)
    for table, column in (("nodes", "score"), ("edges", "fee")):
        yield f"decimal-commas-mixed-{column}", partial(_mixed_commas, table, column)
        for sign in ("<", ">", "<=", ">=", "< ", "> "):
            for count in (1, 9):
                yield (
                    f"censored-{sign.strip()}-{count}-{column}{'-space' * sign.endswith(' ')}",
                    partial(_censored, table, column, sign, count),
                )
    for name, cells in NOTATIONS.items():
        for table in ("nodes", "edges"):
            yield f"column-of-{name}-{table}", partial(_whole_column, table, cells)
    for name, parts in SPLITS.items():
        yield f"split-{name}", partial(_split, parts)


def _one_cell(table: str, column: str, cell: str, where: int, place: Place) -> None:
    """No other row is moved by one odd cell; its own row has a value, none, or an error."""
    written = world(IDS)
    row = where % len(written[table][column])
    plain = list(written[table][column])
    written[table][column][row] = cell
    write_all(place.data, written)
    found = place.load(target=TARGETS.get(column))
    if isinstance(found, Refusal):
        assert "\0" in cell, f"one cell refuses a whole table: {found}"
        return
    sound(found)
    same_ids(found, written)
    bad = {number for number in found.problems.get(table, {}) if number != row}
    assert not bad, f"row {row + 1} makes rows {sorted(bad)[:5]} bad"
    others = found.problems.get("edges" if table == "nodes" else "nodes", {})
    assert not others, f"a cell of {table} makes rows of another table bad: {others}"
    if column in TARGETS:
        values = found.labels(TARGETS[column].partition(":")[0], column).astype("string").fillna("").tolist()
        for number, (one, other) in enumerate(zip(values, plain, strict=True)):
            assert number == row or _alike(one, other), f"row {number + 1}, {column}: {other!r} was read as {one!r}"
        made = place.prepare(TARGETS[column])
        assert not isinstance(made, Refusal) or f"column {column}" in made, f"the column is not named: {made}"


def _alike(one: str, other: str) -> bool:
    try:
        return one == other or float(one) == float(other)
    except ValueError:
        return False


def _commas(table: str, column: str, dialect: Dialect, share: float, place: Place) -> None:
    """Decimal commas are numbers where the whole column agrees, and it is said."""
    written = world(IDS)
    numbers = [float(cell) + (0.5 if "." not in cell else 0) for cell in written[table][column]]
    if share < 1:  # whole numbers have no comma
        numbers = [float(int(value)) if place_ % 2 else value for place_, value in enumerate(numbers)]
    written[table][column] = [f"{value:g}".replace(".", ",") for value in numbers]
    write_all(place.data, written, dialect)
    with heard() as lines:
        found = place.load(target=TARGETS.get(column))
    assert not isinstance(found, Refusal), f"decimal commas are refused: {found}"
    sound(found)
    same_ids(found, written)
    assert not found.problems.get(table), f"numbers with decimal commas are bad rows: {found.problems[table]}"
    if column in TARGETS:
        made = place.prepare(TARGETS[column])
        assert not isinstance(made, Refusal), f"decimal commas are refused: {made}"
        assert made.targets[0].kind == "regression", f"{column} is {made.targets[0].kind}"
        assert "comma" in made.targets[0].reason, "nothing says that commas were read as decimal"
        level = TARGETS[column].partition(":")[0]
        values = made.targets[0].encode(made.data.labels(level, column)) if level == "node" else None
        assert values is None or not bool(values.isnan().any()), "labels with decimal commas are lost"
    else:
        kind = next(one.kind for one in found.schema.table(table).columns if one.name == column)
        assert kind == "number", f"{column} with decimal commas became {kind}"
        assert any("comma" in line for line in [*found.notes, *lines]), "nothing says that commas were read as decimal"


def _mixed_commas(table: str, column: str, place: Place) -> None:
    """Where commas and points are mixed, `inspect` warns of it."""
    written = world(IDS)
    cells = written[table][column]
    written[table][column] = [cell.replace(".", ",") if row % 2 else cell for row, cell in enumerate(cells)]
    write_all(place.data, written, Dialect(";"))
    screen = place.command("inspect", place.data, "--target", TARGETS[column])
    assert screen.code == 2 or ("comma" in screen.text and column in screen.text), "inspect says nothing of commas"


def _censored(table: str, column: str, sign: str, count: int, place: Place) -> None:
    """Labels such as <5 are labels: their rows are in the parts, and their number is said."""
    written = world(IDS)
    for row in range(count):
        written[table][column][3 * row] = sign + written[table][column][3 * row]
    write_all(place.data, written)
    with heard() as lines:
        made = place.prepare(TARGETS[column])
    assert not isinstance(made, Refusal), f"censored labels are refused: {made}"
    same_ids(made.data, written)
    target = made.targets[0]
    assert target.kind == "regression", f"{column} is {target.kind}"
    split = made.splits[target.level]
    rows = sum(len(part) for part in split.parts.values())
    assert rows == len(written[table][column]), f"{rows} rows are in the parts, of {len(written[table][column])}"
    said = " ".join([*lines, *made.data.notes, target.reason])
    assert "censored" in said or "one-sided" in said or "bound" in said, "nothing says that labels are censored"


NOTATIONS: dict[str, list[str]] = {
    "dates": ["2024-01-31", "2023-12-24", "1999-01-01"],
    "german-dates": ["31.01.2024", "24.12.2023"],
    "american-dates": ["01/31/2024", "12/24/2023"],
    "impossible-dates": ["2024-02-30", "2024-13-01"],
    "clock": ["12:00", "23:59"],
    "stamps": ["2024-01-31T12:00:00Z", "2024-01-31T12:00:00+02:00"],
    "lists": ["[1, 2]", "[3, 4]"],
    "ragged-lists": ["[1, 2]", "[3]"],
    "lists-of-words": ["[a, b]", "[c]"],
    "nested-lists": ["[[1], [2]]", "[[3], [4]]"],
    "empty-lists": ["[]", "[]"],
    "lists-with-gaps": ["[1, null]", "[2, 3]"],
    "tuples": ["(1, 2)", "(3, 4)"],
    "objects": ['{"a": 1}', '{"a": 2}'],
    "space-separated": ["1 2 3", "4 5 6"],
    "truths": ["true", "false"],
    "mixed-truths": ["yes", "No", "TRUE", "0"],
    "one-value": ["5", "5"],
    "empty": ["", ""],
    "spaces": [" ", "  "],
    "question-marks": ["?", "?"],
    "percentages": ["5%", "7.5%"],
    "money": ["$5.00", "$1,000.00"],
    "units": ["5 kg", "7 kg"],
    "thousands": ["1,000", "20,000"],
    "swiss": ["1'000", "20'000"],
    "apostrophes": ["'1", "'2"],
    "huge-numbers": ["1e300", "-1e300"],
    "tiny-numbers": ["1e-300", "-1e-300"],
    "infinite": ["inf", "-inf"],
    "integers-beyond-64-bits": ["9" * 30, "8" * 30],
    "hexadecimal": ["0x1F", "0xAB"],
    "hashes": ["d41d8cd98f00b204", "9800998ecf8427e4"],
    "urls": ["https://x.y/z?a=1,2", "http://[::1]/"],
    "controls": ["a\x07b", "a\x1b[0m"],
    "markup": ["[bold]x", "[/]"],
    "zero-width": ["\u200b", "\u2060"],
    "surrogates-as-text": ["\\ud800", "\\x00"],
    "padded-codes": ["01", "02", "10"],
    "unicode-minus": ["\u22121", "\u22122.5"],
}


def _whole_column(table: str, cells: list[str], place: Place) -> None:
    """A column that is no ordinary one is a feature, or left out with a reason; no row and no id suffers."""
    written = world(IDS)
    count = len(next(iter(written[table].values())))
    written[table]["odd"] = [cells[number % len(cells)] for number in range(count)]
    write_all(place.data, written)
    found = place.load()
    assert not isinstance(found, Refusal), f"a column that nobody asked for refuses the table: {found}"
    sound(found)
    same_ids(found, written)
    schema = found.schema.table(table)
    known = {one.name for one in [*schema.columns, *schema.left_out]}
    assert "odd" in known, "the column is neither a feature nor left out"
    every = len(found.problems.get(table, {}))
    assert every < count, "an odd column makes every row of the table bad"
    for width in (found.graph.nodes, found.graph.edges):
        assert math.isfinite(float(width.abs().max())), "features that are not finite"


SPLITS: dict[str, tuple[str, ...]] = {
    "plain": ("train", "validation", "test"),
    "short": ("train", "val", "test"),
    "capitals": ("TRAIN", "Validation", "Test"),
    "valid": ("train", "valid", "test"),
    "spaces": (" train", "validation ", " test "),
    "no-validation": ("train", "train", "test"),
    "no-test": ("train", "validation", "train"),
    "train-alone": ("train", "train", "train"),
    "gaps": ("train", "", "test"),
    "numbers": ("0", "1", "2"),
    "truths": ("true", "false", "true"),
    "unknown-word": ("train", "holdout", "test"),
    "dev": ("train", "dev", "test"),
    "training": ("training", "validation", "testing"),
    "test-alone": ("test", "test", "test"),
}


def _split(words: tuple[str, ...], place: Place) -> None:
    """Rows that are said to be under test are never trained on, whatever the words; or a line says what is expected."""
    written = world(IDS)
    cells = [words[(number // 2) % 3] for number in range(ROWS)]
    written["nodes"]["split"] = cells
    write_all(place.data, written)
    made = place.prepare("node:label")
    if isinstance(made, Refusal):
        assert "split" in made, f"the column is not named: {made}"
        return
    codes = made.splits["node"].codes(ROWS)
    for row, cell in enumerate(cells):
        word = cell.strip().lower()
        if word.startswith(("test", "val", "hold", "dev")) or word == "":
            assert codes[row] != 0, f"row {row + 1} is {cell!r}, and it is trained on"
        if word.startswith("test"):
            assert codes[row] == 2, f"row {row + 1} is {cell!r}, and it is not under test"
