"""What an engine lacks is one line, before any work."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from engine_samples import strong, tangled
from samples import quick, shapes

from censnet import train
from censnet.data.tables.files import Tables
from censnet.engines import predict_files
from censnet.errors import RunError
from censnet.runs import Run


def times() -> Tables:
    edges = tangled().frames()["edges"]
    return Tables(edges=edges.assign(when=pd.date_range("2024-01-01", periods=len(edges))))


RUNS: dict[str, tuple[Callable[[], Run], str]] = {
    "links": (lambda: train(tangled(), "link", settings={"training.epochs": 1}), "links"),
    "kernel": (
        lambda: train(tangled(), "node:vip", settings=quick(model__kernel="lanczos", training__epochs=1)),
        "the kernel lanczos",
    ),
    "attention": (
        lambda: train(shapes(20), "graph:ring", settings=quick(model__pool=["attention"], training__epochs=1)),
        "pooling by attention",
    ),
    "positions": (
        lambda: train(
            Tables(edges=tangled().frames()["edges"]), "edge:fraud", settings=strong(model__position_steps=3)
        ),
        "diffusion positions (model.position_steps)",
    ),
    "windows": (
        lambda: train(times(), "edge:fraud", settings=strong(model__windows=True, model__causal=False), time="when"),
        "windows in time (model.windows)",
    ),
    "factors": (
        lambda: train(tangled(), "edge:fee", settings=strong(model__label_factors=True)),
        "factors of known labels (model.label_factors)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUNS))
def test_what_an_engine_lacks_is_said_before_any_work(name: str, tmp_path) -> None:
    make, what = RUNS[name]
    run = make()
    data = tmp_path / "edges.csv"
    data.write_text("not looked at")
    with pytest.raises(RunError) as caught:
        predict_files(run, data, tmp_path / "out.parquet", run.levels[0])
    assert str(caught.value).startswith(f"engine duckdb does not compute {what}")
    assert str(caught.value).endswith(": leave out the engine, and it is computed in memory")
    assert list(tmp_path.iterdir()) == [data]
