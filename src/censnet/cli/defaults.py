"""What is assumed where the user does not say: the target of a built-in set, the name of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from censnet.data.datasets.download import DATASETS, is_built_in
from censnet.data.tables.target_spec import parse_targets
from censnet.errors import DataError


def default_targets(data: str) -> list[str]:
    """The target that a built-in set is known for; other data have none of their own.

    >>> default_targets("karate")
    ['node:faction']
    """
    if not is_built_in(data):
        raise DataError(
            "there is no --target, expected node:COLUMN, edge:COLUMN, graph:COLUMN or link "
            f"(censnet inspect {data} shows the columns)"
        )
    targets = DATASETS[data].targets
    level = targets[0].partition(":")[0]
    return [target for target in targets if target.partition(":")[0] == level]


def default_run_dir(data: str, targets: Sequence[str]) -> Path:
    """Where a run goes if nobody says so: `runs/`, the name of the data, and the column.

    >>> str(default_run_dir("tables/payments.csv", ["edge:is_fraud=binary"]))
    'runs/payments-is_fraud'
    >>> str(default_run_dir("tox21", ["graph:NR-AR,NR-AhR", "link"]))
    'runs/tox21-NR-AR-and-2-more'
    """
    try:
        specs, link = parse_targets(targets)
        columns = ["all" if spec.every else spec.column for spec in specs] + ["link"] * link
    except DataError:  # which the training will say, with what the data suggest instead
        columns = list(targets)
    more = f"-and-{len(columns) - 1}-more" if len(columns) > 1 else ""
    name = f"{Path(data).resolve().name.split('.')[0]}-{columns[0]}{more}"
    return Path("runs") / re.sub(r"[^\w.-]+", "_", name)


def parse_overrides(texts: Sequence[str]) -> dict[str, str]:
    """`amount=number` and the like, as the command line has them.

    >>> parse_overrides(["amount=number", "edges.memo=drop"])
    {'amount': 'number', 'edges.memo': 'drop'}
    """
    found: dict[str, str] = {}
    for text in texts:
        column, kind = (part.strip() for part in text.rpartition("=")[::2])
        if not column or not kind:
            raise DataError(f"--column has {text!r}, expected COLUMN=KIND, such as amount=number or memo=drop")
        if column in found:
            raise DataError(f"--column has {column}={found[column]} and {column}={kind}, expected each column once")
        found[column] = kind
    return found
