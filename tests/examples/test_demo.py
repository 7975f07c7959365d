"""The demo: both acts are played, and its last words name the files that are there."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import citations
import demo
import numpy as np
import payments
import pytest
from payments import History, Predicted

from censnet.errors import DataError


@pytest.mark.slow
def test_the_last_words_name_the_files_that_are_written(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    def find(name: str) -> dict[str, Path]:
        raise DataError(f"{name} is nowhere to be had")

    def predict_zeros(history: History, name: str) -> Predicted:
        return Predicted(name, np.zeros(len(history.test)), 0.0)

    monkeypatch.setattr(citations, "find", find)
    monkeypatch.setattr(citations, "play", partial(citations.play, epochs=1))
    monkeypatch.setattr(payments, "train_trees", predict_zeros)
    monkeypatch.setattr(payments, "play", partial(payments.play, payments=2_000, epochs=1))
    demo.main(tmp_path)
    said = "".join(capsys.readouterr().out.split())
    closing = said[said.rindex(f"{tmp_path}/citations/has") :]
    one, two = closing.split(f"{tmp_path}/payments/has")
    for act, text in (("citations", one), ("payments", two)):
        written = {path.name for path in (tmp_path / act).iterdir() if not path.name.startswith(".")}
        named = {name for name in written if name in text}
        assert written == named
    assert re.search(r"Thedemotook\d+seconds", closing)
