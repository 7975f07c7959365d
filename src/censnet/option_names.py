"""Options as messages name them: arguments in Python, flags on the command line.

>>> token = FLAGS.set(True)
>>> column_option(("amount", "drop")), setting_option("model.hidden", 64)
('--column amount=drop', '--set model.hidden=64')
>>> FLAGS.reset(token)
>>> column_option(("amount", "drop")), setting_option("model.hidden", 64)
("overrides={'amount': 'drop'}", "settings={'model.hidden': 64}")
"""

from __future__ import annotations

import os
import shlex
from contextvars import ContextVar

ARGUMENTS = {
    "--out": "out",
    "--resume": "if_exists='resume'",
    "--overwrite": "if_exists='overwrite'",
    "--directed": "directed=True",
    "--undirected": "directed=False",
    "--no-known-labels": "known_labels=False",
    "--time": "time",
    "--label-delay": "label_delay",
    "--pairs": "pairs",
    "--row": "rows",
    "--top": "top",
    "--coverage": "coverage",
    "--cost": "cost",
    "--recall": "recall",
    "--history": "history",
    "--number": "number",
    "--state": "state",
    "--memory-limit": "memory_limit",
    "--spill": "spill",
}
FLAGS = ContextVar("flags", default=False)  # whether messages are for the command line


def name_option(flag: str) -> str:
    """A flag, or the argument that it is in Python.

    >>> name_option("--overwrite")
    "if_exists='overwrite'"
    """
    return flag if FLAGS.get() else ARGUMENTS[flag]


def column_option(*said: tuple[str, str]) -> str:
    """Columns, and what the user says that each is.

    >>> column_option(("paid by", "source"), ("payee", "target"))
    "overrides={'paid by': 'source', 'payee': 'target'}"
    """
    argument = ", ".join(f"{column!r}: {kind!r}" for column, kind in said)
    flags = " ".join(f"--column {shlex.quote(f'{column}={kind}')}" for column, kind in said)
    return flags if FLAGS.get() else f"overrides={{{argument}}}"


def setting_option(name: str, value: object) -> str:
    """A setting and its value.

    >>> setting_option("model.hidden", 64)
    "settings={'model.hidden': 64}"
    """
    return f"--set {name}={value}" if FLAGS.get() else f"settings={{{name!r}: {value!r}}}"


def time_option(column: str) -> str:
    """The column of times.

    >>> time_option("paid at")
    "time='paid at'"
    """
    return f"--time {shlex.quote(column)}" if FLAGS.get() else f"time={column!r}"


def target_option(target: str) -> str:
    """A target.

    >>> target_option("edge:flow=oriented")
    "target='edge:flow=oriented'"
    """
    return f"--target {target}" if FLAGS.get() else f"target={target!r}"


def resume_option(run_dir: str | os.PathLike[str], finish: bool = False) -> str:
    """The call, or the command, that resumes an unfinished training or closes it.

    >>> resume_option("runs/a")
    "censnet.pipeline.resume_run('runs/a')"
    """
    folder = os.fspath(run_dir)
    if FLAGS.get():
        return f"censnet train {'--finish' if finish else '--resume'} --out {shlex.quote(folder)}"
    return f"censnet.pipeline.resume_run({folder!r}{', finish=True' if finish else ''})"
