"""Every bound is kept, each refusal is one line with its state, and the server goes on after all of them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving_client import Service, started

from censnet.errors import RunError
from censnet.serving.limits import Limits
from censnet.serving.workers import Plan, Workers

pytestmark = pytest.mark.slow
CCO: dict[str, Any] = {"run": "molecules", "smiles": ["CCO"]}
EDGE = {"source": "a", "target": "b", "amount": 1, "way": "card"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b'{"smiles": ["CCO"]}x', "no JSON"),
        (b'{"run": "molecules", "smiles": ["CCO"], "coverage": NaN}', "the number NaN"),
        (b'{"run": "molecules", "smiles": ["CCO"], "coverage": 1e999}', "the number 1e999"),
        (b'{"run": "molecules", "run": "molecules"}', "'run' twice"),
        (b'{"run": "\xff"}', "not UTF-8 at byte 9"),
        (b'{"run": "\\ud800"}', "half of a surrogate pair"),
        (b"[" * 100_000, "deeper than 12"),
        (b'{"smiles":' * 30 + b"1" + b"}" * 30, "deeper than 12"),
        (b'{"top": ' + b"1" * 5000 + b"}", "5,000 characters"),
        ('{"run": "molecules"}'.encode("utf-16"), "not UTF-8"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(service: Service, content: bytes, words: str) -> None:
    answer = service.post("/predict", content=content)
    assert (answer.status_code, words in answer.json()["error"]) == (400, True), answer.text


@pytest.mark.parametrize(
    ("body", "state", "words"),
    [
        ({"smiles": ["CCO"]}, 422, "run is missing, expected one of contacts, many, molecules, payments"),
        ({"run": "other", "smiles": ["CCO"]}, 404, "run is 'other', expected contacts"),
        ({"run": "../molecules", "smiles": ["CCO"]}, 404, "run is '../molecules'"),
        (CCO | {"smile": 1}, 422, "smile is no field"),
        (CCO | {"coverage": "0.9"}, 422, "coverage is '0.9', expected a valid number"),
        (CCO | {"coverage": 1}, 422, "coverage is 1, expected less than 1"),
        (CCO | {"strict": 1}, 422, "strict is 1, expected a valid boolean"),
        (CCO | {"level": "vertex"}, 422, "level is 'vertex', expected 'node'"),
        (CCO | {"level": "node"}, 422, "level is 'node', expected graph"),
        (CCO | {"top": 2}, 422, "level is 'link', expected graph"),
        ({"run": "molecules", "smiles": []}, 422, "smiles is [], "),
        ({"run": "molecules", "smiles": [7]}, 422, "smiles[0] is 7, expected a valid string"),
        ({"run": "molecules"}, 422, "smiles and tables are both given, or neither"),
        (CCO | {"graphs": [{"smiles": "CCO"}]}, 422, "both given, or neither"),
        ({"run": "payments", "smiles": ["CCO"]}, 422, "was not trained on SMILES"),
        ({"run": "payments", "edges": []}, 422, "edges: has no row"),
        ({"run": "payments", "edges": [EDGE, 3]}, 422, "edges: row 2 is 3, expected an object"),
        ({"run": "payments", "edges": [EDGE | {"amount": {"eur": 1}}]}, 422, "edges, row 1, column amount: is {'eur'"),
        ({"run": "payments", "edges": [{"from_": "a"}]}, 422, "column source"),
        ({"run": "payments", "edges": "source,target\n"}, 422, "no row"),
        ({"run": "payments", "edges": 'source,target\n"a'}, 422, "edges.csv"),
        (CCO | {"strict": True, "smiles": ["C1CC"]}, 422, "unclosed ring"),
        ({"run": "payments", "edges": [EDGE] * 201}, 413, "the request has 201 rows, expected at most 200"),
        ({"run": "molecules", "smiles": ["C" * 40] * 200}, 413, "8,000 characters together, expected at most 6,000"),
        ({"run": "molecules", "smiles": ["C" * 30] * 190}, 413, "5,700 nodes and 5,510 edges, expected at most 3,000"),
        (
            {"run": "payments", "edges": [EDGE | {f"x{n}": n for n in range(30)}]},
            413,
            "34 columns, expected at most 20",
        ),
        ({"run": "contacts", "edges": [{"source": 1, "target": 2, "hours": 1}], "top": 900}, 413, "top is 900"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(
    service: Service, body: dict[str, Any], state: int, words: str
) -> None:
    assert words in service.refused(state, **body)


def test_explanations_are_bounded_and_need_rows(service: Service) -> None:
    many = {"run": "molecules", "smiles": ["CCO"] * 6, "target": "size"}
    assert "6 rows are to be explained" in service.refused(413, "/explain", **many, top=6)
    assert "6 rows have these ids" in service.refused(413, "/explain", **many, rows=["CCO"])
    assert "both missing" in service.refused(422, "/explain", **many)
    assert "no row has the id 'CCN'" in service.refused(422, "/explain", **many, rows=["CCN"])
    links = {"run": "contacts", "edges": [{"source": 1, "target": 2, "hours": 1}], "rows": [1]}
    (link,) = service.client.post("/explain", json=links).json()["explanations"]
    assert (link["id"], link["target"], link["class"]) == ("1,2", "link", "link")
    assert "no pair of nodes" in service.refused(422, "/explain", **links | {"rows": ["1,3"]})


def test_the_head_of_a_request_is_looked_at_first(service: Service) -> None:
    client, body = service.client, json.dumps(CCO).encode()
    for headers, state, words in (
        ({"content-type": "text/plain"}, 415, "expected application/json"),
        ({"content-type": "application/json; charset=latin-1"}, 415, "expected JSON in UTF-8"),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415, "not compressed"),
        ({"content-type": "application/json", "content-length": "999999999"}, 413, "too large"),
    ):
        answer = client.post("/predict", content=body, headers=headers)
        service.check(answer)
        assert (answer.status_code, words in answer.json()["error"]) == (state, True), answer.text
    assert service.post("/predict", content=gzip.compress(body)).status_code == 400
    assert service.post("/predict?run=molecules", CCO).status_code == 400
    assert service.post("/predict", content=b" " * 300_001).status_code == 413
    for method, address, state in (("GET", "/predict", 405), ("PUT", "/predict", 405), ("GET", "/runs/molecules", 404),
                                   ("GET", "/../etc/passwd", 404), ("GET", "/%2e%2e/config.json", 404)):  # fmt: skip
        answer = client.request(method, address)
        service.check(answer)
        assert answer.status_code == state, (address, answer.text)


def test_a_body_in_pieces_is_counted_as_it_comes(service: Service) -> None:
    def pieces() -> Any:
        for _ in range(400):
            yield b" " * 1000

    answer = service.client.post("/predict", content=pieces(), headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_requests_beyond_the_queue_are_told_when_to_come_again(service: Service) -> None:
    limits = Limits(queue=2, seconds=20)
    with started({"molecules": service.paths["molecules"]}, limits) as small, ThreadPoolExecutor(12) as threads:
        slow = {"smiles": ["C" * 100], "rows": [1], "target": "size", "drawing": False}
        answers = list(threads.map(lambda _: small.post("/explain", slow), range(12)))
        states = sorted(answer.status_code for answer in answers)
        assert set(states) == {200, 503}
        full = next(answer for answer in answers if answer.status_code == 503)
        assert int(full.headers["retry-after"]) >= 1
        assert "requests wait, which is the most" in full.json()["error"]
        assert small.predict(smiles=["CCO"])


def test_what_takes_too_long_is_ended_and_what_ends_is_started_again(service: Service) -> None:
    limits = Limits(seconds=0.5)
    with started({"molecules": service.paths["molecules"]}, limits) as quick:
        slow = {"smiles": ["C" * 900] * 5, "rows": [*range(1, 6)], "target": "size", "drawing": False}
        assert "took more than 0.5 s" in quick.refused(504, "/explain", **slow)
        assert quick.workers.restarts == 1
        assert quick.predict(smiles=["CCO"])
        (worker,) = quick.workers.running.values()
        os.kill(worker.process.pid, signal.SIGKILL)
        assert quick.predict(smiles=["CCO"])
        assert quick.workers.restarts == 2
        assert quick.client.get("/health").json()["status"] == "ok"


def test_a_run_that_changed_on_the_disk_is_not_served_beside_the_old_one(service: Service, tmp_path: Path) -> None:
    import shutil

    run = tmp_path / "molecules"
    shutil.copytree(service.paths["molecules"], run)
    with started({"molecules": run}, Limits()) as one:
        config = json.loads((service.paths["many"] / "config.json").read_text())
        shutil.rmtree(run)
        shutil.copytree(service.paths["many"], run)
        assert config["files"]
        (worker,) = one.workers.running.values()
        worker.stop()
        assert "cannot compute at the moment" in one.refused(503, smiles=["CCO"])


def test_a_directory_without_a_run_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run"):
        Workers(Plan({"none": tmp_path / "none"}, Limits()), 1).start()


def test_nothing_that_is_logged_or_held_is_answered(
    service: Service, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def broken(*_: object) -> Any:
        raise KeyError("/secret/place")

    monkeypatch.setattr(type(service.workers), "answer", broken)
    answer = service.post("/predict", CCO)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    name = answer.json()["error"].split()[-1]
    logged = capfd.readouterr().err
    assert name in logged
    assert "/secret/place" in logged


def test_every_state_is_counted(service: Service) -> None:
    def value(line: Callable[[str], bool]) -> float:
        text = service.client.get("/metrics").text
        return sum(float(each.split()[-1]) for each in text.splitlines() if line(each))

    refused = value(lambda line: line.startswith("censnet_requests_total") and 'status="413"' in line)
    service.post("/predict", content=b" " * 300_001)
    assert value(lambda line: line.startswith("censnet_requests_total") and 'status="413"' in line) == refused + 1
    rows = value(lambda line: line == "" or line.startswith('censnet_rows_total{run="molecules"}'))
    service.predict(**CCO)
    assert value(lambda line: line.startswith('censnet_rows_total{run="molecules"}')) == rows + 1
    began = time.monotonic()
    assert value(lambda line: line.startswith("censnet_memory_bytes")) > 1e7
    assert time.monotonic() - began < 5
