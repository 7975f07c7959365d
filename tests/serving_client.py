"""A server in this process, its client, and the looks that every answer of it is to have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import censnet
from censnet.serving.app import make_app
from censnet.serving.limits import Limits
from censnet.serving.workers import Plan, Workers

INSIDE = re.compile(r"Traceback|File \"|\.py\b|0x[0-9a-f]{6}|<class|site-packages|pydantic|pyarrow|KeyError|TypeError")
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Service:
    """A server and its processes.

    Args:
        client: of the server.
        workers: its processes.
        paths: name -> directory of a run.
    """

    client: TestClient
    workers: Workers
    paths: Mapping[str, Path]

    def post(self, address: str, body: object = None, content: bytes | None = None, **headers: str) -> Any:
        """An answer, which was looked at."""
        sent = json.dumps(body).encode() if content is None else content
        answer = self.client.post(address, content=sent, headers=JSON | headers)
        self.check(answer)
        return answer

    def predict(self, **body: object) -> Any:
        """The predictions of a request, by level."""
        answer = self.post("/predict", body)
        assert answer.status_code == 200, answer.text
        return answer.json()["predictions"]

    def refused(self, state: int, address: str = "/predict", **body: object) -> str:
        """The line of a refusal."""
        answer = self.post(address, body)
        assert answer.status_code == state, (answer.status_code, answer.text)
        return str(answer.json()["error"])

    def check(self, answer: Any) -> None:
        """An answer is JSON; a refusal is one line, and shows no path and nothing of the inside."""
        assert answer.headers["x-content-type-options"] == "nosniff"
        found = answer.json()
        if answer.status_code == 200:
            return
        assert set(found) == {"error"}, found
        line = found["error"]
        assert 5 < len(line) < 900, line
        assert "\n" not in line, line
        assert INSIDE.search(line) is None, line
        for path in self.paths.values():
            assert str(path.parent) not in line, line


@contextmanager
def started(paths: Mapping[str, Path], limits: Limits, number: int = 1) -> Iterator[Service]:
    """A server of runs, until the end of the block."""
    workers = Workers(Plan(paths, limits, "cpu"), number)
    try:
        app = make_app(workers, workers.start())
        with TestClient(app, raise_server_exceptions=False) as client:
            yield Service(client, workers, paths)
    finally:
        workers.stop()


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server, and its process."""
    command = [sys.executable, "-P", "-m", "censnet", "serve", *map(str, arguments), "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(censnet.__file__).parents[1])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("http://"):
                break
        else:
            raise AssertionError("".join(lines) + process.stderr.read())  # type: ignore[union-attr]
        yield lines[-1].split()[0], process
    finally:
        process.kill()
        process.communicate()
