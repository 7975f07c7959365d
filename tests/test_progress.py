"""Progress of a training in a terminal and elsewhere."""

from __future__ import annotations

import io
import re

from rich.console import Console

from censnet.console import Bar, LineProgress
from censnet.training.callbacks import Callback


def _train(callback: Callback, last: int) -> None:
    callback.on_train_begin(5, 0, 2, "auc")
    for epoch in range(1, last + 1):
        callback.on_step_end()
        callback.on_step_end()
        callback.on_epoch_end([{"epoch": epoch, "loss": 0.5, "validation_auc": epoch / 10}], [0.9])
    callback.on_train_end()


def test_the_bar_shows_metric_and_time_on_one_line_of_a_narrow_terminal() -> None:
    file = io.StringIO()
    _train(Bar(Console(file=file, force_terminal=True, width=80, color_system=None)), 3)
    last = [line for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", file.getvalue())) if line][-1]
    assert re.fullmatch(r"epoch 3/5 .{12} loss 0\.5000  auc 0\.3000 \(best 0\.9000\) 0:00:0\d *", last)
    assert len(last) <= 80


def test_lines_are_few_and_the_last_epoch_is_always_said() -> None:
    file = io.StringIO()
    _train(LineProgress(Console(file=file, width=20)), 3)
    assert file.getvalue() == "epoch 3/5  loss 0.5000  auc 0.3000 (best 0.9000)\n"
    _train(LineProgress(Console(file=file), seconds=0.0), 2)
    assert re.search(r"\nepoch 2/5 .* \d+ s left\n$", file.getvalue())
