"""`python -m benchmarks.chemprop`: chemprop by its defaults on our splits of molecules, as records beside our own.

    python -m benchmarks.chemprop                  all three steps here: 4 cells, 5 seeds each
    python -m benchmarks.chemprop write FOLDER     the files that chemprop is trained from
    python -m benchmarks.chemprop collect FOLDER   its results -> results/molecules/CELL/chemprop.jsonl

Between the two, `benchmarks/peers/chemprop_splits.py` may run wherever chemprop is. Here CENSNET_CHEMPROP names the
python of an environment that has it, else it is `.bench-chemprop`, made by `make bench`. Seeds that have a line in
FOLDER are not trained again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from rich.console import Console

from censnet_experiments.external import add_results, write_cells

PEER = Path(__file__).parent / "peers" / "chemprop_splits.py"
console = Console(width=120)


def run(cell: Path, device: str) -> None:
    """Train chemprop on one cell, in its own environment."""
    python = os.environ.get("CENSNET_CHEMPROP", ".bench-chemprop/bin/python")
    lines = cell.with_name(cell.name.replace(".json.gz", ".jsonl"))
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, str(PEER), str(cell), "--to", str(lines), "--device", device]
    subprocess.run(command, check=True, env=own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", nargs="?", choices=("all", "write", "collect"), default="all")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs/chemprop"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    if options.step != "collect":
        for cell in write_cells(options.folder, range(options.seeds)):
            console.print(f"{cell}: {cell.stat().st_size:,} bytes")
            if options.step == "all":
                run(cell, options.device)
    if options.step != "write":
        for lines in sorted(options.folder.glob("*.jsonl")):
            new = add_results(options.results, "chemprop", lines)
            console.print(f"{lines}: {len(new)} new records")


if __name__ == "__main__":
    main()
