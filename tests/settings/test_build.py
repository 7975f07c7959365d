"""Settings that describe no model are refused, with what they could be."""

from __future__ import annotations

import pytest

from censnet.errors import SettingsError
from censnet.nn.kernels import PageRank
from censnet.settings.build import build_kernel
from censnet.settings.schema import ModelSettings


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("chebyshev", {"teleport": 0.2}, "has 'teleport' for the kernel chebyshev, expected order$"),
        ("lanczos", {"order": 2}, "has 'order' for the kernel lanczos, expected steps or scales$"),
        ("hop", {"steps": 2}, "has 'steps' for the kernel hop, expected none: it has no options$"),
        ("pagerank", {"teleport": 3}, "teleport is 3, expected a probability from 0 to 1$"),
    ],
)
def test_options_of_another_kernel_name_the_kernel_and_its_own(
    kernel: str, options: dict[str, int | float | list[int]], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        build_kernel(ModelSettings(kernel=kernel, kernel_options=options))


def test_options_of_a_kernel_reach_it() -> None:
    kernel = build_kernel(ModelSettings(kernel="pagerank", kernel_options={"steps": 4, "teleport": 0.3}))
    assert isinstance(kernel, PageRank)
    assert (kernel.steps, kernel.teleport) == (4, 0.3)
