"""Devices: what a device or several processes cannot do is refused before anything is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from accelerate import Accelerator
from samples import payments, quick

from censnet.errors import SettingsError
from censnet.pipeline import train
from censnet.pipeline.prepare import Prepared, prepare
from censnet.training import devices
from censnet.training.ensemble import can_batch_members

CPU = torch.device("cpu")


def prepared(**changes: object) -> Prepared:
    return prepare(payments(), "edge:fraud", "strong", quick(**changes), 0)


def pair() -> Accelerator:
    """What accelerate says of two processes."""
    return cast(Accelerator, SimpleNamespace(num_processes=2, device=torch.device("cpu")))


@pytest.fixture
def module() -> Any:
    """`censnet.pipeline.train`, whose name its function has taken."""
    return sys.modules["censnet.pipeline.train"]


@pytest.fixture
def fresh_answer() -> Any:
    devices.multiplies_bf16.cache_clear()
    yield
    devices.multiplies_bf16.cache_clear()


@pytest.mark.parametrize(("code", "works"), [(0, True), (-4, False), (132, False)])
@pytest.mark.usefixtures("fresh_answer")
def test_a_product_that_ends_its_process_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, works: bool
) -> None:
    asked: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command[-1])
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(devices.subprocess, "run", run)
    assert devices.multiplies_bf16() == works
    assert "bfloat16" in asked[0]
    if not works:
        with pytest.raises(SettingsError, match="precision is bf16, which this CPU says it has and does not: leave it"):
            train(payments(), "edge:fraud", tmp_path / "run", settings=quick(training__precision="bf16"), device="cpu")
        assert not (tmp_path / "run").exists()
    assert len(asked) == 1


def test_several_processes_are_refused_once_it_is_known_what_a_step_sees(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_data = prepared(training__sampling="auto")
    with pytest.raises(SettingsError, match="2 processes would all do the same work"):
        module._check_processes(pair(), task_data)
    monkeypatch.setattr(module, "total_memory", lambda device: 1000)  # a graph that is too big for one step
    module._check_processes(pair(), task_data)


def test_members_are_batched_where_a_step_is_little_work() -> None:
    small, wide = prepared(), prepared(model__hidden=2048)  # 120 rows
    for members in (2, 100):
        assert can_batch_members(small.task_data, small.settings, members, CPU)
        assert not can_batch_members(wide.task_data, wide.settings, members, CPU)
    assert can_batch_members(wide.task_data, wide.settings, 100, torch.device("cuda"))
    assert not can_batch_members(wide.task_data, wide.settings, 10_000, torch.device("cuda"))


def test_trainings_of_one_process_may_differ_in_device_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """accelerate keeps one state for a process, and refuses another: `_reset_state`, which is private, drops it."""
    monkeypatch.setattr(devices, "multiplies_bf16", lambda: True)
    for precision, mixed in (("float32", "no"), ("bf16", "bf16"), ("float32", "no")):
        assert devices.make_accelerator(precision, "cpu").mixed_precision == mixed


def test_a_device_that_is_not_there_is_refused() -> None:
    for make in (devices.find_device, lambda device: devices.make_accelerator(device=device)):
        with pytest.raises(ValueError, match="device is 'banana', expected cpu, cuda or another that torch knows"):
            make("banana")
        if not torch.cuda.is_available():
            with pytest.raises(ValueError, match="device is 'cuda', but what is there is cpu: leave it out, or ask"):
                make("cuda")
    assert devices.find_device("cpu") == CPU
    assert devices.find_device(torch.device("cuda:1")) == torch.device("cuda:1"), "a training has checked it"
