"""The process that computes: it reads the runs once, and answers batches of requests until it is ended."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import torch

import censnet.runs.explained_rows  # noqa: F401 - read before the first request, not by it
from censnet.errors import CensNetError, MissingDependencyError, RunError
from censnet.serving.answers import to_json
from censnet.serving.describe import describe
from censnet.serving.limits import FAILED, TOO_LARGE, WRONG, Limits, RefusedError
from censnet.serving.requests import Data, ExplainRequest, PredictRequest
from censnet.serving.served_run import ServedRun
from censnet.training.interrupt import is_out_of_memory

MISSING = 501
TOO_GREAT = "the request needs more memory than there is: send fewer rows"


@dataclass(frozen=True)
class Started:
    """The first word of a process: the runs it serves, or why it serves none."""

    runs: Mapping[str, Mapping[str, Any]]
    digests: Mapping[str, str]
    error: str = ""


@dataclass(frozen=True)
class Answered:
    """The answer to one request: an HTTP state and JSON. `log` is for the operator alone."""

    state: int
    body: bytes
    rows: int = 0
    log: str = ""


@dataclass(frozen=True)
class Report:
    """The answers of a batch, and the bytes of memory that the process has then."""

    answers: Sequence[Answered]
    memory: int


def work(connection: Connection, paths: Mapping[str, Path], limits: Limits, device: str | None, threads: int) -> None:
    """Serve runs over a connection until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its processes
    torch.set_num_threads(threads)
    pa.set_cpu_count(threads)
    try:
        runs = {name: ServedRun.open(name, path, device) for name, path in paths.items()}
        described = {name: _described(served, limits) for name, served in runs.items()}
    except Exception as error:
        connection.send(Started({}, {}, str(error) if isinstance(error, CensNetError) else repr(error)))
        return
    connection.send(Started(described, {name: served.digest for name, served in runs.items()}))
    own = psutil.Process()
    while True:
        try:
            batch: Sequence[Data] = connection.recv()
        except (EOFError, OSError):
            return
        answers = answer_batch(batch, runs, limits)
        connection.send(Report(answers, own.memory_info().rss))


def _described(served: ServedRun, limits: Limits) -> dict[str, Any]:
    """The description of a run, with the answer to its example; without one that it does not answer."""
    found = describe(served)
    answer = answer_one(PredictRequest.model_validate(found["example"]), served, limits)
    found["answered"] = answer.body.decode() if answer.state == 200 else None
    return found


def answer_batch(batch: Sequence[Data], runs: Mapping[str, ServedRun], limits: Limits) -> list[Answered]:
    """The answers to requests; several are predictions that can be computed together."""
    predictions = [request for request in batch if isinstance(request, PredictRequest)]
    together: Sequence[dict[str, Any] | None] = [None] * len(batch)
    served = runs[batch[0].run or next(iter(runs))]
    if len(predictions) == len(batch) > 1:
        found = _attempt(lambda: served.predict_together(predictions, limits))
        together = together if isinstance(found, Answered) else found
    return [
        answer_one(request, served, limits) if answer is None else Answered(200, to_json(answer), _count_rows(answer))
        for request, answer in zip(batch, together, strict=True)
    ]


def answer_one(request: Data, served: ServedRun, limits: Limits) -> Answered:
    """The answer to one request; what the library refuses is said, what it does not expect goes to the log alone."""
    if isinstance(request, PredictRequest):
        found = _attempt(lambda: served.predict(request, limits))
    else:
        assert isinstance(request, ExplainRequest)
        found = _attempt(lambda: served.explain(request, limits))
    return found if isinstance(found, Answered) else Answered(200, to_json(found), _count_rows(found))


def _count_rows(answer: Mapping[str, Any]) -> int:
    if "explanations" in answer:
        return len(answer["explanations"])
    return sum(map(len, answer["predictions"].values()))


def _attempt(compute: Callable[[], Any]) -> Any:
    """What a computation gives, or the answer that says why it gives nothing."""
    try:
        return compute()
    except RefusedError as error:
        return _refused(error.state, error.text)
    except MissingDependencyError as error:
        return _refused(MISSING, str(error))
    except RunError as error:
        return _refused(WRONG, str(error))
    except CensNetError as error:
        return _refused(WRONG, str(error))
    except Exception as error:
        if is_out_of_memory(error):
            return _refused(TOO_LARGE, TOO_GREAT)
        return Answered(FAILED, b"", log="".join(traceback.format_exception(error)))


def _refused(state: int, text: str) -> Answered:
    return Answered(state, to_json({"error": " ".join(text.split("\n"))}))
