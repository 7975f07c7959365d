"""One thread, and examples that are the same each time."""

from __future__ import annotations

import importlib.util

import torch

torch.set_num_threads(1)

if importlib.util.find_spec("hypothesis") is not None:  # a GPU machine may have pytest alone
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "censnet", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("censnet")
