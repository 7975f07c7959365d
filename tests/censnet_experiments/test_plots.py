"""Figures from synthetic records."""

from __future__ import annotations

from pathlib import Path

import pytest
from record_samples import write_full_results

from censnet_experiments.plots import figure2, save_figure


@pytest.mark.slow
def test_the_figure_has_a_line_for_each_method_and_rate(tmp_path: Path) -> None:
    figure = figure2(write_full_results(tmp_path))
    assert len(figure.axes) == 8
    for panel in figure.axes:
        means = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
        assert list(means) == ["GCN", "CensNet"]
        assert len(panel.lines) == 2 * (3 + 1)
        assert means["GCN"].get_ydata()[5] == pytest.approx(0.55)
    save_figure(figure, tmp_path / "one.svg")
    save_figure(figure2(write_full_results(tmp_path / "again")), tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
