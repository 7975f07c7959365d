"""Processes that compute requests: a bounded queue, batches of small requests, limits of time and memory, restarts."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from censnet.errors import CensNetError, RunError
from censnet.isolated import safe_path
from censnet.serving.bodies import say
from censnet.serving.limits import BUSY, FAILED, SLOW, Limits, RefusedError
from censnet.serving.requests import Data, ExplainRequest, PredictRequest
from censnet.serving.worker import Answered, Report, Started, work

STARTING = 300.0  # seconds in which a process has read its runs
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PRELOADED = ["censnet.serving.worker", "rdkit.Chem", "captum.attr"]
GROWN = 1.5  # times its memory at the start and `SPARE` more, from which a process is replaced by a fresh one
SPARE = 500_000_000


class EndedError(CensNetError):
    """A process that ended before it answered."""


@dataclass(frozen=True)
class Plan:
    """What every process serves.

    Args:
        paths: name of a run -> its directory.
        limits: of requests.
        device: to compute on; the best there is if None.
        threads: of each process.
    """

    paths: Mapping[str, Path]
    limits: Limits
    device: str | None = None
    threads: int = 1


class Worker:
    """One process, and the connection to it. Its methods wait, and are called from threads."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.connection, theirs = multiprocessing.Pipe()
        context: Any = multiprocessing.get_context(METHOD)
        if METHOD == "forkserver":
            context.set_forkserver_preload(PRELOADED)
        arguments = (theirs, dict(plan.paths), plan.limits, plan.device, plan.threads)
        self.process = context.Process(target=work, args=arguments, daemon=True)
        with safe_path():
            self.process.start()
        theirs.close()
        first = self._receive(STARTING)
        if not isinstance(first, Started) or first.error:
            self.stop()
            raise RunError(getattr(first, "error", "") or "a process did not start")
        self.started = first
        self.first_memory = self.memory

    @property
    def memory(self) -> int:
        """Bytes of memory of the process."""
        try:
            return int(psutil.Process(self.process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def answer(self, batch: Sequence[Data]) -> Report:
        """The answers to a batch; `TimeoutError` where they take too long, `EndedError` where the process ended."""
        try:
            self.connection.send(list(batch))
        except OSError:
            raise EndedError("a process ended") from None
        found = self._receive(self.plan.limits.seconds)
        assert isinstance(found, Report)
        return found

    def has_grown(self, report: Report) -> bool:
        """Whether the process has so much more memory than at its start that a fresh one is to take its place."""
        return report.memory > GROWN * self.first_memory + SPARE

    def stop(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join(10)
        self.connection.close()

    def _receive(self, seconds: float) -> object:
        try:
            if not self.connection.poll(seconds):
                raise TimeoutError
            return self.connection.recv()
        except (EOFError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise EndedError("a process ended") from None


@dataclass(eq=False)
class Job:
    """A request that waits for its answer."""

    request: Data
    rows: int
    answer: asyncio.Future[Answered]
    entered: float = field(default_factory=time.monotonic)
    alone: bool = False  # it was in a batch that took too long, or whose process ended

    @property
    def companions(self) -> tuple[object, ...] | None:
        """Jobs of equal values may be computed together."""
        return self.request.companions if isinstance(self.request, PredictRequest) and not self.alone else None


class Workers:
    """Several processes and the queue before them.

    Args:
        plan: what they serve.
        number: of processes.
    """

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan, self.number = plan, number
        self.queue = deque[Job]()
        self.explaining, self.restarts, self.batches, self.batched = 0, 0, 0, 0
        self.running = dict[int, Worker]()
        self.seconds = 0.05  # that a batch takes, as a moving average
        self._threads: ThreadPoolExecutor | None = None
        self._tasks = list[asyncio.Task[None]]()
        self._changed: asyncio.Condition | None = None
        self._stopping = False

    @property
    def limits(self) -> Limits:
        return self.plan.limits

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        """Start all processes, and wait until they have read the runs. -> name -> description"""
        first = Worker(self.plan)
        self.running[0] = first
        self.digests = first.started.digests
        for place in range(1, self.number):
            self.running[place] = self._fresh()
        return first.started.runs

    def _fresh(self) -> Worker:
        """A further process, which serves the same runs as the first one did."""
        found = Worker(self.plan)
        if found.started.digests != self.digests:
            found.stop()
            raise RunError("a run was changed while it was served: start the server again")
        return found

    async def open(self) -> None:
        """Let the processes take requests, in the loop that is running."""
        self._changed = asyncio.Condition()
        self._threads = ThreadPoolExecutor(self.number, thread_name_prefix="censnet-worker")
        self._tasks = [asyncio.create_task(self._serve(place)) for place in range(self.number)]

    async def close(self) -> None:
        """End all processes; what waits is refused."""
        self._stopping = True
        for job in self.queue:
            if not job.answer.done():
                job.answer.set_exception(RefusedError(BUSY, "the server is being stopped", 5))
        for task in self._tasks:
            task.cancel()
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """End all processes."""
        for worker in self.running.values():
            worker.stop()
        self.running.clear()

    async def answer(self, request: Data, rows: int) -> Answered:
        """The answer to a request, or a `RefusedError` where too many wait or it takes too long."""
        assert self._changed is not None, "open() comes first"
        if len(self.queue) >= self.limits.queue:
            raise RefusedError(
                BUSY, f"{len(self.queue):,} requests wait, which is the most: try again later", self.retry
            )
        job = Job(request, rows, asyncio.get_running_loop().create_future())
        async with self._changed:
            self.queue.append(job)
            self._changed.notify()
        return await job.answer

    @property
    def retry(self) -> int:
        """Seconds in which half of the queue may be answered."""
        return max(1, math.ceil(self.seconds * len(self.queue) / 2 / max(self.number, 1)))

    async def _serve(self, place: int) -> None:
        """Answer batches by one process, which is replaced when it ends, takes too long or grows."""
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._take()
            explains = isinstance(batch[0].request, ExplainRequest)
            began = time.monotonic()
            try:
                if place not in self.running:
                    self.running[place] = await loop.run_in_executor(self._threads, self._fresh)
                worker = self.running[place]
                report = await loop.run_in_executor(self._threads, worker.answer, [job.request for job in batch])
            except (TimeoutError, EndedError, RunError) as error:
                await self._failed(place, batch, error)
            else:
                for job, answered in zip(batch, report.answers, strict=True):
                    self._finish(job, answered)
                self.seconds += 0.1 * (time.monotonic() - began - self.seconds)
                self.batches, self.batched = self.batches + 1, self.batched + len(batch)
                if worker.has_grown(report):
                    await self._restart(place)
            finally:
                self.explaining -= explains
                if explains:
                    async with self._changed:  # type: ignore[union-attr]
                        self._changed.notify()  # type: ignore[union-attr]

    async def _take(self) -> list[Job]:
        """The next batch: the first request that may run now, with those that can be computed together with it."""
        assert self._changed is not None
        async with self._changed:
            while True:
                self._drop_late()
                first = next((job for job in self.queue if self._may_run(job)), None)
                if first is not None:
                    break
                await self._changed.wait()
            batch = [first]
            if first.companions is not None:
                rows = first.rows
                for job in self.queue:
                    if job is not first and job.companions == first.companions and rows + job.rows <= self.limits.batch:
                        batch.append(job)
                        rows += job.rows
            taken = set(map(id, batch))
            self.queue = deque(job for job in self.queue if id(job) not in taken)
            self.explaining += isinstance(first.request, ExplainRequest)
            return batch

    def _may_run(self, job: Job) -> bool:
        """Explanations take long: where there are several processes, one of them is always left for predictions."""
        return not isinstance(job.request, ExplainRequest) or self.explaining < max(1, self.number - 1)

    def _drop_late(self) -> None:
        """Refuse what has waited for too long."""
        now = time.monotonic()
        while self.queue and now - self.queue[0].entered > self.limits.seconds:
            job = self.queue.popleft()
            text = f"the request has waited for more than {self.limits.seconds:g} s: try again later"
            if not job.answer.done():
                job.answer.set_exception(RefusedError(BUSY, text, self.retry))

    def _finish(self, job: Job, answered: Answered) -> None:
        if not job.answer.done():
            job.answer.set_result(answered)

    async def _failed(self, place: int, batch: Sequence[Job], error: Exception) -> None:
        """Replace a process; each request of a batch is tried once more by itself, so that one cannot spoil others."""
        await self._restart(place)
        if isinstance(error, RunError):
            say(f"censnet serve: {error}")
        for job in batch:
            if job.answer.done():
                continue
            if len(batch) > 1 or (isinstance(error, EndedError) and not job.alone):
                job.alone, job.entered = True, time.monotonic()
                self.queue.append(job)
            elif isinstance(error, TimeoutError):
                text = f"the request took more than {self.limits.seconds:g} s: send fewer rows"
                job.answer.set_exception(RefusedError(SLOW, text))
            elif isinstance(error, RunError):
                job.answer.set_exception(RefusedError(BUSY, "the server cannot compute at the moment", 30))
            else:
                job.answer.set_result(Answered(FAILED, b"", log="a process ended while it computed a request"))

    async def _restart(self, place: int) -> None:
        """End a process; the next batch starts another one in its place."""
        self.restarts += 1
        worker = self.running.pop(place, None)
        if worker is not None:
            await asyncio.get_running_loop().run_in_executor(self._threads, worker.stop)
