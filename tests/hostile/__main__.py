"""Run the corpus: `python -m hostile [--only KIND] [--case NAME] [--list]`."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hostile.corpus import KINDS, Outcome, cases, run_case

MAX_MEMORY = 12 << 30


def main() -> int:
    """Run what was asked for; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m hostile", description=__doc__)
    parser.add_argument("--only", action="append", choices=KINDS, help="kinds of cases; all if not given")
    parser.add_argument("--case", action="append", help="single cases, by name")
    parser.add_argument("--list", action="store_true", help="print the names, and stop")
    parser.add_argument("--to", type=Path, help="a file for what is wrong, a line for each case")
    asked = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))  # a case that asks for more fails, and no other
    chosen = [case for kind in asked.only or KINDS for case in cases(kind) if not asked.case or case.name in asked.case]
    if not chosen:
        console.print(Text(f"there is no case {', '.join(asked.case)}: --list shows the names"))
        return 2
    if asked.list:
        for case in chosen:
            console.print(Text(case.name))
        return 0
    started, outcomes = time.monotonic(), list[Outcome]()
    for case in chosen:
        outcomes.append(run_case(case))
        if outcomes[-1].wrong:
            console.print(Text(f"{case.name}: {outcomes[-1].wrong}\n    again: make hostile CASE={case.name!r}"))
    wrong = [outcome for outcome in outcomes if outcome.wrong]
    console.print(_table(outcomes))
    console.print(Text(f"{len(outcomes):,} cases, {len(wrong):,} wrong, {time.monotonic() - started:.0f} s"))
    if asked.to is not None:
        asked.to.write_text("".join(f"{each.case.name}\t{' '.join(each.wrong.split())}\n" for each in wrong))
    return int(bool(wrong))


def _table(outcomes: list[Outcome]) -> Table:
    """How many cases of each kind, how many wrong, how long, and the slowest."""
    table = Table("kind", "cases", "wrong", "seconds", "slowest", box=None, pad_edge=False)
    for kind in KINDS:
        mine = [outcome for outcome in outcomes if outcome.case.kind == kind]
        if mine:
            slowest = max(mine, key=lambda each: each.seconds)
            seconds = sum(each.seconds for each in mine)
            count = sum(bool(each.wrong) for each in mine)
            last = f"{slowest.seconds:.1f} ({slowest.case.name.partition('/')[2]})"
            table.add_row(kind, f"{len(mine):,}", f"{count:,}", f"{seconds:.0f}", last)
    return table


if __name__ == "__main__":
    sys.exit(main())
