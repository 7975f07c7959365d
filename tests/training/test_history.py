"""The history: a row for each epoch and member, written as soon as the epoch is over."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from samples import RecordWeights, payments, quick, untrained_model

from censnet.pipeline import train
from censnet.pipeline.prepare import prepare
from censnet.training.history import HistoryFile, history_csv, history_table
from censnet.training.trainer import fit


def test_history_grows_with_each_epoch(tmp_path):
    sizes = []

    class Reader(RecordWeights):
        def on_epoch_end(self, rows, best):
            sizes.append(len((tmp_path / "history.csv").read_text().splitlines()))

    prepared = prepare(payments(), "node:vip", "strong", quick(), 0)
    model, record = untrained_model(prepared), HistoryFile(tmp_path / "history.csv")
    fit_result = fit(
        model, prepared.task_data, prepared.settings.training, callbacks=[Reader(model)], history_file=record
    )
    assert sizes == [2, 3, 4, 5, 6, 7]
    frame = history_table(fit_result.history, fit_result.monitor)
    assert (tmp_path / "history.csv").read_bytes() == history_csv(frame)
    back = pd.read_csv(tmp_path / "history.csv")
    pd.testing.assert_frame_equal(back, frame, check_exact=True)


@pytest.mark.slow
def test_history_of_members_one_after_the_other_is_that_of_the_run(tmp_path):
    grown = []

    def train_two(folder: Path) -> None:
        settings = quick(training__validate_every=4, training__sampling="neighbors")  # which is never batched
        run = train(payments(), "edge:fraud", folder, settings=settings, ensemble=2)
        grown.append((folder / "history.csv").read_bytes())
        assert list(run.history.columns)[:2] == ["member", "epoch"]
        assert run.history.groupby("member").size().tolist() == [6, 6]
        assert run.history["validation_auc"].notna().tolist() == [False, False, False, True, False, True] * 2

    train_two(tmp_path / "a")
    train_two(tmp_path / "b")
    assert grown[0] == grown[1]
