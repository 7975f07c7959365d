"""Demo in two acts, run by `make demo`: nodes of Cora beside a GCN, and fraudulent payments beside boosted trees."""

from __future__ import annotations

import logging
import time
import warnings
from pathlib import Path

import citations
import payments

from censnet.console import Console

OUT = Path("runs/demo")


def main(out: Path = OUT) -> None:
    """Run both acts, and say what they wrote."""
    start, console = time.monotonic(), Console()
    console.rule("Act one: papers, 3 % of them with a label")
    citations.play(out / "citations", console)
    console.print()
    console.rule("Act two: payments, a graph whose edges carry data")
    payments.play(out / "payments", console)
    console.print()
    console.print(
        f"{out}/citations/ has learning_curves.png, scores.csv, and the runs paper/ and strong/. "
        f"{out}/payments/ has embeddings.png, scores.csv, the predictions of all methods for the test payments in "
        "predictions.csv, the embeddings nodes.csv and edges.csv, and the run they are from, run/. "
        f"The demo took {time.monotonic() - start:.0f} seconds."
    )


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Sparse")  # torch: sparse tensors are in beta
    logging.getLogger("censnet").setLevel(logging.ERROR)
    main()
