"""The door of the server: bodies are read within bounds of bytes and time before anything looks at them."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
import uuid
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from censnet.errors import quote
from censnet.serving.answers import to_json
from censnet.serving.limits import BAD, BUSY, FAILED, TOO_LARGE, Limits, RefusedError
from censnet.serving.metrics import Metrics

TIMEOUT, UNSUPPORTED, GONE = 408, 415, 499
ANSWERED = "censnet.answered"  # of the scope: the run of a request, and the rows of its answer
ENDPOINTS = ("/predict", "/explain", "/runs", "/health", "/metrics", "/", "/docs", "/openapi.json")
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}


class BoundedBodies:
    """ASGI middleware that reads the body of a request, or refuses it.

    A body is JSON, not compressed, in at most `Limits.body` bytes and `Limits.seconds`; all bodies together have at
    most `Limits.waiting_bytes` until they are answered.

    Args:
        app: what answers.
        limits: of bodies.
        metrics: that count every request.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics) -> None:
        self.app, self.limits, self.metrics, self.bytes = app, limits, metrics, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, state, held = time.monotonic(), 0, 0

        async def sending(message: Message) -> None:
            nonlocal state
            state = message.get("status", state)
            await send(_with_headers(message))

        try:
            check_request(Headers(scope=scope), scope, self.limits)
            body = bytearray()
            async with asyncio.timeout(self.limits.seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    piece = message.get("body", b"")
                    self.bytes, held = self.bytes + len(piece), held + len(piece)
                    if held > self.limits.body:
                        raise _too_large(self.limits)
                    if self.bytes > self.limits.waiting_bytes:
                        raise RefusedError(BUSY, "requests of too many bytes wait: try again later", 1)
                    body += piece
                    more = message.get("more_body", False)
            await self.app(scope, _replay(bytes(body), receive), sending)
        except TimeoutError:
            await refuse(
                sending, RefusedError(TIMEOUT, f"the body did not come within {self.limits.seconds:g} s"), close=True
            )
        except RefusedError as error:
            await refuse(sending, error, close=True)
        except Exception as error:
            if state:
                raise
            await refuse(sending, internal_error("".join(traceback.format_exception(error))), close=True)
        finally:
            self.bytes -= held
            run, rows = scope.get(ANSWERED, ("", 0))
            endpoint = scope["path"] if scope["path"] in ENDPOINTS else "other"
            self.metrics.count(endpoint, run, state or GONE, time.monotonic() - began, rows)


def check_request(headers: Headers, scope: Scope, limits: Limits) -> None:
    """Raise for a request whose head shows already that it is not read."""
    if scope.get("query_string"):
        raise RefusedError(BAD, "the address has a query, expected none: what is asked is in the body")
    length = headers.get("content-length", "0")
    if length.isdecimal() and length.isascii() and (len(length) > 18 or int(length) > limits.body):
        raise _too_large(limits)
    coding = headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise RefusedError(UNSUPPORTED, f"the body is encoded as {quote(coding)}, expected one that is not compressed")
    if scope["method"] == "POST":
        check_type(headers.getlist("content-type"))


def check_type(types: Sequence[str]) -> None:
    """Raise unless the body is declared as JSON in UTF-8.

    >>> check_type(["application/json; charset=utf-8"])
    """
    kind, _, rest = types[0].partition(";") if len(types) == 1 else ("", "", "")
    if kind.strip().lower() != "application/json":
        found = quote(types[0]) if types else "missing"
        raise RefusedError(UNSUPPORTED, f"the content-type is {found}, expected application/json")
    name, _, value = rest.strip().partition("=")
    if rest.strip() and (name.strip().lower(), value.strip().strip('"').lower()) not in {
        ("charset", "utf-8"),
        ("charset", "utf8"),
    }:
        raise RefusedError(UNSUPPORTED, f"the content-type is {quote(types[0])}, expected JSON in UTF-8")


def say(text: str) -> None:
    """Write to the log of the operator."""
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.stderr.flush()


async def refuse(send: Send, error: RefusedError, close: bool = False) -> None:
    """Answer with the reason of a refusal."""
    body = to_json({"error": error.text})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"retry-after", str(error.retry).encode())] if error.retry is not None else []
    headers += [(b"connection", b"close")] if close else []
    await send({"type": "http.response.start", "status": error.state, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def internal_error(log: str) -> RefusedError:
    """The answer where the server itself is wrong: the reason is in its log alone, under a name that the answer has."""
    name = uuid.uuid4().hex[:12]
    say(f"censnet serve: error {name}\n{log}")
    return RefusedError(FAILED, f"the server made a mistake; its log has the reason under {name}")


def _too_large(limits: Limits) -> RefusedError:
    return RefusedError(TOO_LARGE, f"the body is too large, expected at most {limits.body:,} bytes: send fewer rows")


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes."""
    first = True

    async def again() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def _with_headers(message: Message) -> Message:
    """The message with the headers that every answer has."""
    if message["type"] != "http.response.start":
        return message
    headers = MutableHeaders(raw=list(message.get("headers", [])))
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    return {**message, "headers": headers.raw}
