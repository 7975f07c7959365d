"""Files that are broken, re-encoded, shuffled or absurd: each gives a valid data set or one readable line."""

from __future__ import annotations

import io
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from censnet import Graph
from censnet.data import DataError, Dataset, Tables, load_data
from censnet.data.load import read_data
from censnet.ops.graph_set import GraphSet

ROUNDS = int(os.environ.get("CENSNET_HOSTILE", "200"))
ABSURD = [
    *("", " ", "NaN", "nan", "inf", "-inf", "1e999", "1e-320", "-1", "+5", "1.5", "0007", "0x10", "1_000", "1" * 400),
    *(
        "99999999999999999999999",
        "-9223372036854775808",
        "true",
        "2024-02-30",
        "2024-01-31",
        "[1, 2]",
        "[",
        "None",
        "NULL",
    ),
    *("é", "🙂", "\ufeff", "\x00", "'", '"', '""', "a,b", "a\nb", ";", "\t", "=1+1", "x" * 5000),
]


def healthy(rng: random.Random) -> dict[str, str]:
    """A folder as users have: ids of three kinds, numbers with gaps, categories, dates, lists and text."""
    size, many = rng.randint(2, 12), rng.random() < 0.4
    style = rng.choice(["{}", "acct-{}", "{:04d}"])
    ids = [style.format(number) for number in range(size)]
    home = [rng.randint(0, 2) for _ in ids]
    nodes = {
        "id": ids,
        "age": [rng.choice(["", str(rng.randint(1, 99))]) for _ in ids],
        "city": [rng.choice(["Oslo", "Rome"]) for _ in ids],
        "x": [f"[{rng.random()}, {rng.random()}]" for _ in ids],
        "label": [rng.choice("ab") for _ in ids],
    }
    pairs = [(rng.randrange(size), rng.randrange(size)) for _ in range(rng.randint(0, 25))]
    pairs = [(u, v) for u, v in pairs if not many or home[u] == home[v]]
    edges = {
        "source": [ids[u] for u, _ in pairs],
        "target": [ids[v] for _, v in pairs],
        "amount": [str(round(rng.gauss(0, 9), 3)) for _ in pairs],
        "when": ["2024-01-31"] * len(pairs),
        "memo": [rng.choice(["rent, may", 'said "hi"', "bread"]) for _ in pairs],
    }
    files = {"nodes.csv": nodes, "edges.csv": edges}
    if many:
        nodes["graph"] = [f"g{number}" for number in home]
        edges["graph"] = [f"g{home[u]}" for u, _ in pairs]
        files["graphs.csv"] = {"graph": ["g0", "g1", "g2"], "toxic": ["0", "1", ""]}
    if rng.random() < 0.2:
        del files["nodes.csv"]
    return {name: pd.DataFrame(columns).to_csv(index=False) for name, columns in files.items()}


def mutate(text: str, rng: random.Random) -> bytes:
    """One or two things go wrong with a file."""
    data = text.encode()
    for _ in range(rng.randint(1, 2)):
        data = rng.choice(MUTATIONS)(data, rng)
    return data


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _encode(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace").replace("Oslo", "Orléans")
    return text.encode(rng.choice(["latin-1", "utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037"]), "replace")


def _frame(data: bytes) -> pd.DataFrame | None:
    try:
        return pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
    except (ValueError, UnicodeError):
        return None


def _absurd_cells(data: bytes, rng: random.Random) -> bytes:
    frame = _frame(data)
    if frame is None or frame.empty:
        return data
    for _ in range(rng.randint(1, 4)):
        frame.iat[rng.randrange(len(frame)), rng.randrange(frame.shape[1])] = rng.choice(ABSURD)
    return frame.to_csv(index=False).encode()


def _columns(data: bytes, rng: random.Random) -> bytes:
    frame = _frame(data)
    if frame is None:
        return data
    names = list(frame.columns)
    what = rng.choice(["shuffle", "rename", "twice", "drop", "extra", "index"])
    if what == "shuffle":
        frame = frame[rng.sample(names, len(names))]
    elif what == "rename":
        names[rng.randrange(len(names))] = rng.choice([*ABSURD, "ID", "weight"])
        frame.columns = names
    elif what == "twice":
        frame.columns = [names[0]] * len(names)
    elif what == "drop" and len(names) > 1:
        frame = frame.drop(columns=rng.choice(names))
    elif what == "extra":
        frame["extra"] = rng.choice(ABSURD)
    return frame.to_csv(index=what == "index").encode()


def _rows(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    what = rng.choice(["twice", "none", "shuffle", "ragged", "header", "blank", "crlf", "long"])
    if what == "twice":
        lines = lines[:1] + lines[1:] * 2
    elif what == "none":
        lines = lines[:1]
    elif what == "shuffle":
        rng.shuffle(lines)
    elif what == "ragged":
        lines.insert(rng.randint(1, max(len(lines) - 1, 1)), b",".join([b"1"] * rng.randint(1, 9)))
    elif what == "header":
        lines = lines[1:]
    elif what == "blank":
        lines.insert(rng.randint(0, len(lines)), b"")
    elif what == "long":
        lines.insert(rng.randint(1, max(len(lines) - 1, 1)), b"z" * rng.choice([200_000, 5_000_000]))
    return (b"\r\n" if what == "crlf" else b"\n").join(lines)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        place = rng.randint(0, len(changed))
        changed[place:place] = rng.choice([b"\0", b'"', b"'", b",", b"\n", b"\xff", b"\r", b";", rng.randbytes(3)])
    return bytes(changed)


MUTATIONS = [_truncate, _encode, _absurd_cells, _absurd_cells, _columns, _columns, _rows, _rows, _bytes]


def check(dataset: Dataset) -> None:
    """What holds of every data set: finite tensors, every row accounted for, a result for each row in order."""
    graph = dataset.graph
    assert isinstance(graph, Graph | GraphSet)
    assert bool(torch.isfinite(graph.nodes).all())
    assert bool(torch.isfinite(graph.edges).all())
    assert dataset.schema.from_json(dataset.schema.to_json()) == dataset.schema
    for level, table in (("node", "nodes"), ("edge", "edges"), ("graph", "graphs")):
        frame, rows = dataset.tables.frames().get(table), dataset.rows(level)
        if frame is None:
            continue
        assert len(rows) == len(frame)
        bad = {int(row) for row in (rows < 0).nonzero()}
        assert bad == set(dataset.problems.get(table, {}))
        assert len(rows) == 0 or int(rows.max()) < dataset.count(level)
        result = dataset.results(level, pd.DataFrame({"value": np.arange(dataset.count(level))}))
        assert len(result) == len(frame)
        assert ("error" in result.columns) == bool(bad)


def some_rows(dataset: Dataset) -> dict[str, torch.Tensor]:
    """Every second row that can be used, of each level."""
    good = {level: (dataset.rows(level) >= 0).nonzero().squeeze(1)[::2] for level in ("node", "edge", "graph")}
    return {level: rows for level, rows in good.items() if len(rows)}


def load_or_explain(data: object, **options: Any) -> Dataset | None:
    """Load, or get the one line that says why not; anything else fails the test."""
    try:
        typed = read_data(data, **options)
        dataset = typed.encode()
    except DataError as error:
        line = str(error)
    else:
        check(dataset)
        check(typed.encode(some_rows(dataset)))
        return dataset
    assert 10 < len(line) < 600
    assert "\n" not in line
    assert "Traceback" not in line
    return None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_mutated_files_give_data_or_one_readable_line(part: int, tmp_path: Path) -> None:
    loaded = 0
    for number in range(part, ROUNDS, 4):
        rng = random.Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        files = healthy(rng)
        victim = rng.choice(sorted(files))
        for name, text in files.items():
            (folder / name).write_bytes(mutate(text, rng) if name == victim else text.encode())
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        start = time.perf_counter()
        target = rng.choice([None, "node:label", "edge:amount"])
        try:
            loaded += load_or_explain(folder, target=target) is not None
            load_or_explain(folder, strict=True)
        except Exception as error:
            raise AssertionError(f"round {number}, {victim}: {before[victim][:300]!r}") from error
        assert time.perf_counter() - start < 5, f"round {number} hangs"
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert 0.2 * ROUNDS / 4 < loaded < ROUNDS / 4  # a fuzzer that breaks everything, or nothing, tests nothing


@pytest.mark.parametrize("part", range(2))
def test_mutated_parquet_gives_data_or_one_readable_line(part: int, tmp_path: Path) -> None:
    for number in range(part, ROUNDS // 5, 2):
        rng = random.Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in healthy(rng).items():
            frame = pd.read_csv(io.StringIO(text))
            path = folder / name.replace(".csv", ".parquet")
            frame.to_parquet(path)
            if name == "edges.csv":
                path.write_bytes(rng.choice([_truncate, _bytes])(path.read_bytes(), rng))
        load_or_explain(folder)


lists = st.lists(st.floats(width=32), max_size=3)
times = st.dates() | st.datetimes()
numbers = st.integers(-(2**70), 2**70) | st.floats() | st.decimals(allow_nan=False)
anything = st.none() | st.booleans() | numbers | st.text(max_size=6) | times | lists | st.binary(max_size=4)
extremes = st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324])
kinds = (anything, st.floats(), st.integers(), st.text(max_size=3), lists, st.booleans(), st.datetimes(), extremes,
         st.sampled_from(["1", "2", "a", ""]))  # fmt: skip
columns = st.one_of(*(st.lists(kind, min_size=6, max_size=6) for kind in kinds))


@pytest.mark.slow
@settings(max_examples=max(ROUNDS // 4, 20), deadline=5000, suppress_health_check=list(HealthCheck))
@given(source=columns, target=columns, node=columns, feature=columns, attribute=columns, graph=st.none() | columns)
def test_frames_of_anything_give_data_or_one_readable_line(source, target, node, feature, attribute, graph) -> None:
    def series(values: list[object]) -> pd.Series:
        return pd.Series(values, dtype=object) if len({type(value) for value in values}) > 1 else pd.Series(values)

    edges = pd.DataFrame({"source": series(source), "target": series(target), "w": series(attribute)})
    nodes = pd.DataFrame({"id": series(node), "f": series(feature)})
    load_or_explain(edges)
    load_or_explain(edges, target="edge:w")
    nodes["id"] = series([*source[:3], *node[:3]])
    if graph is not None:
        nodes["graph"] = edges["graph"] = series(graph)
    load_or_explain(Tables(nodes, edges))


@pytest.mark.parametrize(
    "text", ["smiles,y", "smiles,y\n", '"smiles";"y"', "source,target", "source,target,w\n\n", "smiles"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_header_without_rows_or_even_a_line_break_is_told_so(tmp_path, text, encoding):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=r"^table\.csv: has names of columns and no row below them, expected at least"):
        load_data(path)


def test_nodes_without_rows_are_refused_and_edges_without_rows_are_no_edges(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,y")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    with pytest.raises(DataError, match=r"^nodes\.csv: has names of columns and no row"):
        load_data(tmp_path)
    (tmp_path / "nodes.csv").write_text("id,y\n1,0.5\n2,1.5\n")
    (tmp_path / "edges.csv").write_text("source,target,w")
    data = load_data(tmp_path)
    assert (data.graph.num_nodes, data.graph.num_edges) == (2, 0)
