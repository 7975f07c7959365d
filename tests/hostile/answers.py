"""Data to predict, embed and evaluate that are not as in training: each row keeps its answer, or says what it lacks."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pandas as pd

from hostile.place import Place, Refusal, heard, says
from hostile.runs import IDS, data_of, trained
from hostile.tables import COMMA, DIALECTS, Dialect, Table, world, write_all

RUNS = {"node": ("nodes", "label"), "number": ("nodes", "score"), "edge": ("edges", "fraud"), "fee": ("edges", "fee")}
KEYS = {"nodes": ("id",), "edges": ("source", "target")}
Change = Callable[[dict[str, Table]], None]


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Changes that may move nothing; changes that make single rows bad; changes that refuse; dialects; evaluation."""
    for run in RUNS:
        for name, change in HARMLESS.items():
            yield f"same-{name}-{run}", partial(_same, run, change)
        for name, (table, row, change) in BAD.items():
            yield f"bad-{name}-{run}", partial(_bad, run, table, row, change)
        for name, (change, words) in REFUSED.items():
            yield f"refused-{name}-{run}", partial(_refused, run, change, words)
    for number, dialect in enumerate(DIALECTS):
        run = list(RUNS)[number % 4]
        yield f"dialect-{dialect.name}-{dialect.end}-{run}", partial(_dialect, run, dialect)
    for run in ("node", "number", "edge", "fee", "graph", "smiles", "link", "joint"):
        if run != "link":  # which is judged on links that were hidden from it
            yield f"known-rows-{run}", partial(_known, run)
        yield f"embed-{run}", partial(_embed, run)
    for name, change in HARMLESS.items():
        yield f"evaluate-{name}", partial(_evaluate, change)


@cache
def _reference(run: str) -> pd.DataFrame:
    return trained(run).predict(data_of(run), keep="ids")


def _numbers(frame: pd.DataFrame, column: str) -> list[list[float]]:
    names = [name for name in frame.columns if name.startswith(f"{column}_p")]
    return [
        [float(value) for value in frame[name]]
        for name in names
        if frame[name].dtype != object and not pd.api.types.is_string_dtype(frame[name])
    ]


def _predicted(place: Place, run: str, written: dict[str, Table], dialect: Dialect = COMMA) -> Any:
    write_all(place.data, written, dialect)
    return place.attempt(lambda: trained(run).predict(place.data, keep="ids"))


def _check(run: str, found: pd.DataFrame, written: dict[str, Table], skip: set[int] = frozenset()) -> None:  # type: ignore[assignment]
    """Ids as written and in order, and the answers of training's own rows, but for those to skip."""
    table, column = RUNS[run]
    assert len(found) == len(written[table][KEYS[table][0]]), f"{len(found)} rows"
    for key in KEYS[table]:
        assert found[key].astype("string").fillna("").tolist() == list(written[table][key]), (
            f"{key} came back otherwise"
        )
    rows = [row for row in range(len(_reference(run))) if row not in skip]
    for one, other in zip(_numbers(found, column), _numbers(_reference(run), column), strict=True):
        for row in rows:
            assert abs(one[row] - other[row]) < 1e-5, f"row {row + 1} answers {one[row]}, not {other[row]}"


def _labels(tables: dict[str, Table], change: Callable[[list[str]], list[str]]) -> None:
    for table, column in RUNS.values():
        tables[table][column] = change(tables[table][column])


def _add(tables: dict[str, Table], table: str, column: str, cell: str) -> None:
    tables[table][column] = [cell] * len(next(iter(tables[table].values())))


def _more(tables: dict[str, Table], table: str, row: dict[str, str]) -> None:
    for column, cells in tables[table].items():
        cells.append(row.get(column, cells[0]))


def _pair(tables: dict[str, Table]) -> None:
    for name in ("far", "off"):
        _more(tables, "nodes", {"id": name})
    _more(tables, "edges", {"source": "far", "target": "off"})


HARMLESS: dict[str, Change] = {
    "nothing": lambda t: None, "extra-column": lambda t: _add(t, "nodes", "new", "x"),
    "extra-edge-column": lambda t: _add(t, "edges", "new", "5"), "extra-table-graphs": lambda t: None,
    "columns-reversed": lambda t: t.update({name: dict(reversed(table.items())) for name, table in t.items()}),
    "unconnected-node": lambda t: _more(t, "nodes", {"id": "far"}),
    "unconnected-pair": lambda t: _pair(t),
    "error-column": lambda t: _add(t, "nodes", "error", "x"),
    "split-column": lambda t: _add(t, "nodes", "split", "train"),
    "predicted-column": lambda t: _add(t, "nodes", "label_predicted", "x"),
    "escape-column": lambda t: _add(t, "nodes", "\x1b[31m", "x"),
}  # fmt: skip
BAD: dict[str, tuple[str, int, Change]] = {
    "word-for-number": ("nodes", 4, lambda t: t["nodes"]["age"].__setitem__(4, "old")),
    "infinite": ("nodes", 4, lambda t: t["nodes"]["age"].__setitem__(4, "inf")),
    "word-for-amount": ("edges", 4, lambda t: t["edges"]["amount"].__setitem__(4, "?")),
    "unknown-end": ("edges", 4, lambda t: t["edges"]["target"].__setitem__(4, "nobody")),
    "missing-end": ("edges", 4, lambda t: t["edges"]["target"].__setitem__(4, "")),
    "comma-number": ("edges", 4, lambda t: t["edges"]["amount"].__setitem__(4, "1,5")),
    "id-twice": ("nodes", 30, lambda t: _more(t, "nodes", {"id": "n3"})),
    "missing-id": ("nodes", 30, lambda t: _more(t, "nodes", {"id": ""})),
    "unknown-category": ("nodes", 4, lambda t: t["nodes"]["city"].__setitem__(4, "Atlantis")),
}  # fmt: skip
REFUSED: dict[str, tuple[Change, tuple[str, ...]]] = {
    "no-age": (lambda t: t["nodes"].pop("age"), ("nodes.csv", "age")),
    "no-amount": (lambda t: t["edges"].pop("amount"), ("edges.csv", "amount")),
    "no-id": (lambda t: t["nodes"].pop("id"), ("nodes.csv", "id")),
    "no-source": (lambda t: t["edges"].pop("source"), ("edges.csv", "source")),
    "no-edges": (lambda t: t.pop("edges"), ()), "no-nodes": (lambda t: t.pop("nodes"), ()),
    "other-ids": (lambda t: t["nodes"].update(id=[f"x{k}" for k in range(len(IDS))]), ("edges.csv",)),
    "age-renamed": (lambda t: t["nodes"].update(Age=t["nodes"].pop("age")), ("nodes.csv", "age")),
}  # fmt: skip


def _same(run: str, change: Change, place: Place) -> None:
    written = world(IDS)
    change(written)
    found = _predicted(place, run, written)
    assert not isinstance(found, Refusal), f"refused: {found}"
    _check(run, found, written)


def _bad(run: str, table: str, row: int, change: Change, place: Place) -> None:
    """A bad row is a row with an error that names it; the rows of the other table and its own order stay."""
    written = world(IDS)
    change(written)
    found = _predicted(place, run, written)
    assert not isinstance(found, Refusal), f"one bad row refuses all: {found}"
    mine = RUNS[run][0]
    assert len(found) == len(written[mine][KEYS[mine][0]])
    for key in KEYS[mine]:
        assert found[key].astype("string").fillna("").tolist() == list(written[mine][key]), f"{key} came back otherwise"
    errors = found["error"] if "error" in found else pd.Series([None] * len(found), dtype=object)
    bad = {int(number) for number in errors.notna().to_numpy().nonzero()[0]}
    assert bad <= {row}, f"rows {sorted(bad)[:5]} are bad by row {row + 1}"
    if mine == table and bad:
        line = str(errors.iloc[row])
        assert f"{table}.csv, row {row + 1}, column" in line, f"the place is not named: {line}"
    strict = place.attempt(lambda: trained(run).predict(place.data, strict=True))
    if bad:
        says(strict, f"{table}.csv", f"row {row + 1}")


def _refused(run: str, change: Change, words: tuple[str, ...], place: Place) -> None:
    """What the run reads and the data lack is named with its file; or rows say so."""
    written = world(IDS)
    change(written)
    found = _predicted(place, run, written)
    if isinstance(found, Refusal):
        says(found, *words)
        return
    assert not words or found["error"].notna().all(), f"it was answered without {words}"


def _dialect(run: str, dialect: Dialect, place: Place) -> None:
    """The same data in another dialect have the same answers."""
    written = world(IDS)
    found = _predicted(place, run, written, dialect)
    assert not isinstance(found, Refusal), f"refused: {found}"
    _check(run, found, written)


def _known(run: str, place: Place) -> None:
    """`evaluate` says how many rows are known from training, part by part or in a line; `predict` repeats none."""
    with heard() as lines:
        screen = place.command("evaluate", trained(run).path, data_of(run))
    assert screen.code == 0, f"refused: {screen.text[:300]}"
    assert "train" in screen.text or any("train" in line for line in lines), "nothing says which rows were trained on"


def _embed(run: str, place: Place) -> None:
    """An embedding for each row, behind its id."""
    screen = place.command("embed", trained(run).path, data_of(run), "--to", place.out, "--format", "csv")
    assert screen.code == 0, f"refused: {screen.text[:300]}"
    for path in place.out.iterdir():
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        numbers = [cell for row in rows[1:] for cell in row[-1:]]
        assert all(float(cell) == float(cell) for cell in numbers), f"{path.name} holds what is no number"
        if path.stem == "nodes" and run in RUNS:
            place_ = rows[0].index("id")
            assert [row[place_] for row in rows[1:]] == IDS, "ids came back otherwise"


def _evaluate(change: Change, place: Place) -> None:
    written = world(IDS)
    change(written)
    write_all(place.data, written)
    screen = place.command("evaluate", trained("node").path, place.data)
    assert screen.code == 0, f"refused: {screen.text[:300]}"
    assert "train" in screen.text, "nothing says which rows were trained on"
