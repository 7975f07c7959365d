"""Runs of every kind, trained for two or three epochs, and a server of them in one process that computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from samples import payments, quick, shapes, smiles
from serving_client import Service, started

from censnet.data.tables.files import Tables
from censnet.pipeline import train
from censnet.serving.limits import Limits

SHORT = quick(training__epochs=3)
LIMITS = Limits(body=300_000, rows=200, columns=20, size=3_000, seconds=20.0)


def contacts(seed: int) -> Tables:
    """People who meet each other, each pair once."""
    rng = np.random.default_rng(seed)
    edges = pd.DataFrame({"source": rng.integers(0, 20, 90), "target": rng.integers(20, 40, 90)})
    return Tables(edges=edges.drop_duplicates().assign(hours=1.5).reset_index(drop=True))


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: payments with two levels, molecules with two targets by an ensemble, many graphs, links."""
    home = tmp_path_factory.mktemp("served")
    tables = payments(accounts=120, rows=600)
    assert tables.edges is not None
    tables = tables.with_frames({"edges": tables.edges.drop(columns=["sort", "fee"])})
    train(tables, ["edge:fraud", "node:wealth"], home / "payments", settings=SHORT)
    frame = pd.concat([smiles(60), pd.DataFrame({"smiles": ["C1CC"], "acid": [0], "size": [1.0]})])
    options: dict[str, Any] = {"data.fractions": [0.5, 0.3, 0.2]}
    targets = ["graph:size=regression", "graph:acid"]
    train(frame, targets, home / "molecules", settings=SHORT | options, ensemble=2)
    train(shapes(), ["graph:ring", "node:warm", "edge:length"], home / "many", settings=SHORT)
    train(contacts(1), "link", home / "contacts", settings=quick(training__epochs=2))
    return home


@pytest.fixture(scope="package")
def service(home: Path) -> Iterator[Service]:
    """A server of all of them."""
    with started({path.name: path for path in sorted(home.iterdir())}, LIMITS) as service:
        yield service
