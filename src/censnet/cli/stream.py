"""`censnet stream`: a line of JSON in, a line of JSON out, and a state that outlives the process."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from censnet.cli.options import Coverage, RunDir, Strict, named_path
from censnet.errors import RunError
from censnet.text import count

if TYPE_CHECKING:
    from censnet.runs.stream import Stream

logger = logging.getLogger("censnet.stream")
LONGEST = 2**20  # bytes of a line
ENCODER = json.JSONEncoder(check_circular=False)
TIDY = 4096  # lines after which what is there is taken from the garbage collector once more
BOM = b"\xef\xbb\xbf"


def stream(
    run: RunDir,
    state: Annotated[
        Path | None,
        typer.Option(parser=named_path, metavar="DIR", help="Keep the state here, and go on from the one that is."),
    ] = None,
    history: Annotated[
        str | None, typer.Option(metavar="DATA", help="The edges before the first event, with labels that are known.")
    ] = None,
    number: Annotated[str, typer.Option(metavar="FIELD", help="The field with the number of an event.")] = "event",
    save_every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Save the state so often, and at the end; 0: at each line.")
    ] = 10.0,
    coverage: Coverage = None,
    strict: Strict = False,
) -> None:
    """Score events as they come: a JSON object on each line of stdin, the answer to it on stdout at once."""
    from threadpoolctl import threadpool_limits

    from censnet.cli.predict import open_run
    from censnet.runs.stream_directory import has_state, lock_state

    with nullcontext() if state is None else lock_state(state):
        trained = open_run(run)
        goes_on = state is not None and has_state(state)
        with threadpool_limits(1):  # of a matrix by a vector, threads cost more than they save
            fed = trained.open_stream(state, history, number=number, coverage=coverage)
            logger.info("%s", describe(fed, state, goes_on, history))
            gc.collect()
            gc.freeze()  # what is there stays: no collection need look at it again
            errors = feed_lines(fed, sys.stdin.buffer, sys.stdout.buffer, save_every, strict)
    if errors:
        logger.warning("%s could not be used: see the `error` in the output", count(errors, "line"))


def describe(fed: Stream, state: Path | None, goes_on: bool, history: str | None) -> str:
    """The position of a stream when it is opened."""
    position = fed.position
    if not position.events:
        return "the stream is empty" + (f", and its state is saved to {state}" if state is not None else "")
    where = f"{state} holds" if goes_on else f"{history} has"
    have = f"{where} {count(position.events, 'event')}, the last with number {position.event}"
    return f"{have} at {fed.reader.column.show(position.now)}: resume at the line after it, or at any line before"


def feed_lines(fed: Stream, lines: BinaryIO, answers: BinaryIO, save_every: float = 10.0, strict: bool = False) -> int:
    """Answer line after line, and save the state in between; the number of lines that could not be used.

    Args:
        fed: the stream; its state is saved where it has a directory.
        lines, answers: one JSON object on each line.
        save_every: seconds between two savings, or more where they take long.
        strict: whether the first line that cannot be used is an error.
    """
    from censnet.runs.stream_saver import StreamSaver

    errors, frozen = 0, bool(gc.get_freeze_count())
    with _Stop() as stop, nullcontext() if fed.path is None else StreamSaver(fed, save_every) as saver:
        try:
            for line in stop.lines(lines):
                answer = answer_line(fed, line)
                if "error" in answer:
                    errors += 1
                    if strict:
                        raise RunError(f"line {fed.position.lines}: {answer['error']}")
                answers.write(ENCODER.encode(answer).encode() + b"\n")
                answers.flush()
                if saver is not None:
                    saver.save_if_due()
                if frozen and fed.position.lines % TIDY == 0:
                    gc.collect(1)  # the state grows, and a collection of all of it would stop the stream for long
                    gc.freeze()
        except _Stopped:  # just when a line had come, which is not answered and not counted
            pass
        except BrokenPipeError:  # nobody reads: the events whose answers were not read are fed again
            _forget_output()
    return errors


def answer_line(fed: Stream, line: bytes) -> dict[str, Any]:
    """The answer to a line."""
    try:
        if len(line) > LONGEST:
            raise ValueError(f"it has more than {LONGEST:,} bytes")
        content = json.loads(line.removeprefix(BOM).decode())
    except (ValueError, RecursionError) as error:
        fed.position.lines += 1
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        return fed.refuse(f"line {fed.position.lines} is no JSON object: {why}")
    return fed.feed(content)


class _Stop:
    """SIGTERM and Ctrl-C end a stream between two lines, never within one."""

    def __init__(self) -> None:
        self.asked, self.reading = False, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Stop:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self.reading:
            raise _Stopped

    def lines(self, source: BinaryIO) -> Iterator[bytes]:
        """The lines of a file as they come, without those that are blank; of one that is too long a part."""
        while not self.asked:
            self.reading = True
            try:
                line = b"" if self.asked else source.readline(LONGEST + 1)
                rest = line
                while len(rest) > LONGEST and not rest.endswith(b"\n"):
                    rest = source.readline(LONGEST + 1)
            except _Stopped:
                return
            finally:
                self.reading = False
            if not line:
                return
            if line.strip():
                yield line


class _Stopped(BaseException):
    """Raised in a read that waits, when the stream is to end."""


def _forget_output() -> None:
    """So that closing stdout does not fail once more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
