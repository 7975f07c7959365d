"""Pages ask nothing of a network, their examples are answered, and OpenAPI says the same."""

from __future__ import annotations

import re

import pytest
from serving_client import Service

pytestmark = pytest.mark.slow


def test_pages_are_whole_by_themselves(service: Service) -> None:
    for address in ("/", "/docs"):
        answer = service.client.get(address)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        found = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
        assert all(link.startswith(("/", "data:", "#")) for link in found), found
        assert "http://HOST" in answer.text or address == "/"


def test_every_example_of_openapi_is_answered(service: Service) -> None:
    schema = service.client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/predict", "/explain", "/runs", "/health", "/metrics"}
    asked = 0
    for path in ("/predict", "/explain"):
        body = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for name, example in body["examples"].items():
            value = example["value"]
            if path == "/explain":
                value = value | {"target": _first_target(service, value["run"])}
            answer = service.post(path, value)
            assert answer.status_code == 200, (path, name, answer.text)
            asked += 1
    assert asked >= 9


def _first_target(service: Service, run: str) -> str:
    found = service.client.get("/runs").json()["runs"]
    return next(str(each["targets"][0]["column"]) for each in found if each["name"] == run)


def test_runs_say_what_they_read_and_nothing_of_where_they_are(service: Service) -> None:
    text = service.client.get("/runs").text
    found = {each["name"]: each for each in service.client.get("/runs").json()["runs"]}
    assert found["molecules"]["reads"] == "smiles"
    assert found["payments"]["tables"]["edges"]["keys"] == {"source": "source", "target": "target"}
    assert [target["column"] for target in found["many"]["targets"]] == ["ring", "warm", "length"]
    assert not any(str(path.parent) in text for path in service.paths.values())
    assert str(next(iter(service.paths.values())).parent) not in service.client.get("/docs").text
