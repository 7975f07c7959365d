"""Train the plans of bundles and add their records, on a machine without the datasets.

    python -m censnet_experiments bundles/table1-cora.safetensors --results results --method gcn --method censnet

Needs no rdkit. `runner.write_bundles` writes the bundles.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from censnet_experiments.runner import train_bundle


def main(
    bundles: Annotated[list[Path], typer.Argument(help="Files written by `write_bundles`.")],
    results: Annotated[Path, typer.Option(help="Directory of records.")] = Path("results"),
    cell: Annotated[list[str] | None, typer.Option(help="All of the dataset by default.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="All of the bundle by default.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; that of the plan by default.")] = None,
    first: Annotated[int | None, typer.Option(help="The first seed; that of the plan by default.")] = None,
    device: Annotated[str | None, typer.Option(help="A GPU if there is one, by default.")] = None,
    batched: Annotated[int | None, typer.Option(help="Networks trained as one batch; all on a GPU by default.")] = None,
    capture: Annotated[bool, typer.Option(help="Run each epoch of Table 1 as one CUDA graph.")] = False,
) -> None:
    """Train the plans of bundles and add the records that are missing."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    for path in bundles:
        train_bundle(
            path, results, cells=cell, methods=method, seeds=seeds, first=first,
            device=device, batched=batched, capture=capture,
        )  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
