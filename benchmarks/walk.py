"""How far one command walks through the source: functions that are entered, files, and turns between packages.

`python -m benchmarks.walk` runs `censnet train DIR --target edge:x` and `censnet predict RUN DIR` on a small folder of
two tables, and counts

- the functions of ours that are entered, each once: named functions and methods of three statements or more that are
  called from another file. A helper in the same file is read where it stands, and so are lambdas, comprehensions and
  generated methods. Read by hand, the walk at commit 321ac75 had 187 steps in 68 files with 23 turns; this counts 192,
  78 and 21 there;
- the files that these functions are in;
- the turns straight back: in the order in which functions are first entered, how often one goes from a package to
  another and from there straight back, A > B > A. A package is the first name below `censnet`.

`--source DIR` walks through another checkout's `src`, to compare, and `--list` prints the walk.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

LEAST = 3  # statements of a function that counts, its docstring not among them
INLINE = ("<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--inside", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        _walk(options.source.resolve(), options.inside, options.list)
        return
    with tempfile.TemporaryDirectory() as place:
        folder, run = Path(place, "payments"), Path(place, "run")
        write_tables(folder)
        small = ["--set", "training.epochs=2", "--set", "model.hidden=8"]
        for command in (
            ["train", folder, "--target", "edge:x", "--out", run, *small],
            ["predict", run, folder, "--to", Path(place, "predictions.csv")],
        ):
            listed = ["--list"] if options.list else []
            words = [sys.executable, __file__, "--source", str(options.source), *listed, "--inside", *map(str, command)]
            environment = os.environ | {"PYTHONPATH": str(options.source), "OMP_NUM_THREADS": "1"}
            subprocess.run(words, check=True, env=environment)


def write_tables(folder: Path) -> None:
    """Sixty payments among twelve people, one column of each table a number and one a word."""
    folder.mkdir()
    kinds, towns = ("cash", "card", "wire"), ("york", "bath")
    people = [f"p{n},{20 + 3 * n},{towns[n % 2]}" for n in range(12)]
    pairs = [(n % 12, (5 * n + 1) % 12) for n in range(60)]
    payments = [f"p{a},p{b},{7 * n % 90},{kinds[n % 3]},{n // 3 % 2}" for n, (a, b) in enumerate(pairs) if a != b]
    (folder / "nodes.csv").write_text("\n".join(["id,age,town", *people]) + "\n")
    (folder / "edges.csv").write_text("\n".join(["source,target,amount,kind,x", *payments]) + "\n")


def _walk(source: Path, command: list[str], listed: bool) -> None:
    """Run a command under a profiler of Python's, and print what it entered."""
    steps: dict[CodeType, None] = {}

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(source)):
            caller = frame.f_back
            while caller is not None and caller.f_code.co_name in INLINE:
                caller = caller.f_back
            if caller is not None and caller.f_code.co_filename != frame.f_code.co_filename:
                steps.setdefault(frame.f_code)

    sys.argv = ["censnet", *command]
    try:
        from censnet.cli.app import app
    except ModuleNotFoundError:  # an older checkout
        from censnet.cli import app
    sys.setprofile(enter)
    try:
        app()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    finally:
        sys.setprofile(None)
    sizes: dict[str, dict[int, int]] = {}
    found = []
    for code in steps:
        if code.co_filename not in sizes:
            sizes[code.co_filename] = statements(Path(code.co_filename).read_text())
        if sizes[code.co_filename].get(code.co_firstlineno, 0) >= LEAST:
            found.append((Path(code.co_filename).relative_to(source), code.co_qualname))
    packages = [Path(*file.parts[1:]).parts[0].removesuffix(".py") for file, _ in found]
    rooms = [name for n, name in enumerate(packages) if n == 0 or packages[n - 1] != name]
    back = sum(rooms[n] == rooms[n - 2] for n in range(2, len(rooms)))
    if listed:
        for file, name in found:
            print(f"{file}: {name}")
    files = {file for file, _ in found}
    print(f"{command[0]}: {len(found)} functions in {len(files)} files, {back} turns straight back")


def statements(text: str) -> dict[int, int]:
    """First line of each function, its decorators included -> how many statements it has."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            documented = ast.get_docstring(node) is not None
            inner = sum(isinstance(each, ast.stmt) for each in ast.walk(node)) - 1
            found[line] = inner - documented
    return found


if __name__ == "__main__":
    main()
