"""Spark gives the same predictions as memory does, also where an executor is killed under way."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from engine_samples import check_equal, strong, tangled, with_bad_rows, write

from censnet import train
from censnet.engines import predict_files
from censnet.errors import MissingDependencyError, RunError

EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.fixture(scope="module")
def run():
    return train(tangled(), "edge:fee", settings=strong(model__layers="NE", model__known_labels=False))


def test_without_java_there_is_one_line(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write(tangled(), tmp_path / "data")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        RunError, match="engine spark needs Java, which is not there: install Java 17, or set JAVA_HOME"
    ):
        predict_files(run, data, tmp_path / "out.parquet", engine="spark")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(("engine", "module"), [("spark", "pyspark"), ("duckdb", "duckdb")])
def test_an_engine_that_is_not_installed_is_one_line(
    run, engine: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tangled(), tmp_path / "data")
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"not installed: pip install censnet\[{engine}\]"):
        predict_files(run, data, tmp_path / "out.parquet", engine=engine)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "java"]


def kill_an_executor(folder: Path, killed: list[int], stop: threading.Event) -> None:
    """Wait until a layer is being computed, and kill a process of Spark that does."""
    while not stop.is_set() and not list(folder.glob(".censnet-*/tables/m0_*")):
        time.sleep(0.1)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may have ended by itself
            if not stop.is_set() and any(EXECUTOR in word for word in process.cmdline()):
                process.kill()
                killed.append(process.pid)
                return


@pytest.mark.slow
def test_a_killed_executor_changes_nothing(run, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    data = write(with_bad_rows(tangled()), tmp_path / "data", "parquet")
    killed, stop = list[int](), threading.Event()
    watch = threading.Thread(target=kill_an_executor, args=(tmp_path, killed, stop))
    watch.start()
    try:
        found = check_equal(run, data, tmp_path / "out.parquet", engine="spark", master="local-cluster[2,1,1024]")
    finally:
        stop.set()
        watch.join()
    assert killed, "an executor was killed under way"
    assert found["error"].notna().sum() == 3
