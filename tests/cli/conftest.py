"""Data and trained runs of the tests of commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import SMILES, epochs, succeed


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Payments with two bad rows and one without a label, molecules with a bad one, and trained runs."""
    place = tmp_path_factory.mktemp("cli")
    rng, payments = np.random.default_rng(0), place / "payments"
    payments.mkdir()
    ids = [f"acct-{number}" for number in range(30)]
    pd.DataFrame({"id": ids, "age": rng.integers(18, 90, 30) + 0.5}).to_csv(payments / "nodes.csv", index=False)
    ends = rng.choice(ids, (2, 120)).tolist()
    amount, fraud = [f"{value:.2f}" for value in rng.lognormal(3, 1, 120)], rng.choice(["yes", "no"], 120).tolist()
    ends[1][90], amount[17], fraud[5] = "acct-4000", "lots", None
    columns = {"source": ends[0], "target": ends[1], "amount": amount, "is_fraud": fraud}
    pd.DataFrame(columns).to_csv(payments / "edges.csv", index=False)
    smiles = [*SMILES, *(text.replace("O", "N") for text in SMILES), "C1CC"]
    wet = np.arange(len(smiles)) % 2
    pd.DataFrame({"smiles": smiles, "size": range(21), "wet": wet}).to_csv(place / "molecules.csv", index=False)
    pd.DataFrame({"source": [0, 3], "target": [9, 99]}).to_csv(place / "pairs.csv", index=False)
    targets = ["--target", "edge:is_fraud", "--target", "node:age"]
    succeed("train", payments, *targets, "--out", place / "joint", *epochs(3), "--quiet")
    graphs = ["--target", "graph:size=number,wet"]
    succeed("train", place / "molecules.csv", *graphs, "--out", place / "graphs", *epochs(2), "--quiet")
    succeed("train", "karate", "--target", "link", "--out", place / "links", *epochs(2), "--quiet")
    return place
