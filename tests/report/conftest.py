"""Runs of every kind, trained for two or three epochs, and their pages."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from samples import payments, quick, shapes, smiles

from censnet.pipeline import train
from censnet.report import report_page
from censnet.runs.run import Run

SHORT = quick(training__epochs=3)


@pytest.fixture(scope="package")
def fraud(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A run on payments in a folder, and that folder."""
    home = tmp_path_factory.mktemp("report")
    tables = payments(accounts=40, rows=400)
    (home / "payments").mkdir()
    assert tables.nodes is not None
    assert tables.edges is not None
    tables.nodes.to_csv(home / "payments" / "nodes.csv", index=False)
    tables.edges.drop(columns=["sort", "fee"]).to_csv(home / "payments" / "edges.csv", index=False)
    run = train(str(home / "payments"), "edge:fraud", home / "fraud", settings=SHORT)
    return run, home


@pytest.fixture(scope="package")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """An ensemble on molecules with two targets, one row of which is none."""
    home = tmp_path_factory.mktemp("molecules")
    frame = pd.concat([smiles(60), pd.DataFrame({"smiles": ["C1CC"], "acid": [0], "size": [1.0]})])
    frame.to_csv(home / "molecules.csv", index=False)
    targets = ["graph:size=regression", "graph:acid"]
    run = train(
        str(home / "molecules.csv"),
        targets,
        home / "run",
        settings=SHORT | {"data.fractions": [0.5, 0.3, 0.2]},
        ensemble=2,
    )
    return run, home


@pytest.fixture(scope="package")
def links(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that predicts links."""
    settings = quick(training__epochs=2)
    return train("karate", "link", tmp_path_factory.mktemp("links") / "run", settings=settings)


@pytest.fixture(scope="package")
def many(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on many graphs that are no molecules, with targets of three levels, in memory."""
    tables = shapes()
    targets = ["graph:ring", "node:warm", "edge:length"]
    return train(tables, targets, tmp_path_factory.mktemp("many") / "run", settings=SHORT)


@pytest.fixture(scope="package")
def fraud_page(fraud: tuple[Run, Path]) -> str:
    """The page of the run on payments."""
    return report_page(fraud[0], explain=2)


@pytest.fixture(scope="package")
def molecule_page(molecules: tuple[Run, Path]) -> str:
    """The page of the run on molecules."""
    return report_page(molecules[0], explain=2)
