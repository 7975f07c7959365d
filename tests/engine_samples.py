"""Tables on a disk, and predictions of an engine beside those in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from samples import payments

from censnet.data.tables.files import Tables, read_table, write_table
from censnet.engines import predict_files
from censnet.runs import Run

TOLERANCE = 1e-5


def strong(**changes: object) -> dict[str, object]:
    """Settings of a short training by the default recipe; `model__layers="ENE"` is model.layers."""
    small = {"training.epochs": 2, "training.checkpoint_seconds": 1000, "model.hidden": 8, "model.triangles": False}
    return {**small, "model.position_steps": 0, **{name.replace("__", "."): value for name, value in changes.items()}}


def tangled() -> Tables:
    """Payments with loops, several edges between two accounts, and accounts without any."""
    tables = payments(25, 120)
    edges, nodes = tables.frames()["edges"].copy(), tables.frames()["nodes"]
    edges.loc[10:13, "target"] = edges.loc[10:13, "source"]
    edges.loc[20:22, ["source", "target"]] = edges.loc[20, ["source", "target"]].tolist()
    edges.loc[23, ["source", "target"]] = edges.loc[20, ["target", "source"]].tolist()
    alone = nodes.iloc[:2].assign(id=["lone1", "lone2"])
    return Tables(pd.concat([nodes, alone], ignore_index=True), edges)


def with_gaps(tables: Tables) -> Tables:
    """The same with labels that are missing, a category that training did not have, and a gap among numbers."""
    edges, nodes = tables.frames()["edges"].copy(), tables.frames()["nodes"].copy()
    for frame, columns in ((edges, ("fraud", "fee", "sort")), (nodes, ("vip", "wealth"))):
        for column in columns:
            frame[column] = frame[column].astype(object).where(frame.index % 3 > 0, None)
    edges.loc[5, "way"], edges.loc[7, "amount"] = "cheque", None
    return Tables(nodes, edges)


def with_bad_rows(tables: Tables) -> Tables:
    """The same with values that are no numbers, ids that are unknown, missing, or there twice."""
    edges, nodes = tables.frames()["edges"].copy(), tables.frames()["nodes"].copy()
    edges["amount"], nodes["age"] = edges["amount"].astype(str), nodes["age"].astype(str)
    edges.loc[3, "amount"], edges.loc[9, "target"], edges.loc[11, "source"] = "lots", "nobody", None
    nodes.loc[4, "age"] = "old"
    return Tables(pd.concat([nodes, nodes.iloc[[2]]], ignore_index=True), edges)


def each_twice(tables: Tables) -> Tables:
    """The same with the reverse of each edge, in any order."""
    edges = tables.frames()["edges"]
    back = edges.rename(columns={"source": "target", "target": "source"})
    every = pd.concat([edges[edges.source != edges.target], back[back.source != back.target]], ignore_index=True)
    return tables.with_frames({"edges": every.sample(frac=1, random_state=0).reset_index(drop=True)})


def write(tables: Tables, folder: Path, form: str = "csv") -> Path:
    """Write tables to a new folder."""
    folder.mkdir(parents=True)
    for name, frame in tables.frames().items():
        write_table(frame, folder / f"{name}.{form}")
    return folder


def check_equal(run: Run, data: Path, to: Path, **options: object) -> pd.DataFrame:
    """Check that an engine predicts what the run does in memory. -> the predictions"""
    engine = {name: options.pop(name) for name in ("engine", "master") if name in options}
    predict_files(run, data, to, **engine, **options)  # type: ignore[arg-type]
    expected = run.predict(str(data), **options)  # type: ignore[arg-type]
    found = (
        pd.concat(map(read_table, sorted(to.glob("*.parquet"))), ignore_index=True) if to.is_dir() else read_table(to)
    )
    assert list(found.columns) == list(expected.columns)
    assert len(found) == len(expected)
    for name in expected.columns:
        one, other = found[name], expected[name]
        if pd.api.types.is_float_dtype(other.dtype) and name != "error":
            numbers = [np.asarray(column.astype("float64")) for column in (one, other)]
            np.testing.assert_allclose(*numbers, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)
        else:
            texts = [[None if pd.isna(value) else str(value) for value in column] for column in (one, other)]
            assert texts[0] == texts[1], name
    return found
