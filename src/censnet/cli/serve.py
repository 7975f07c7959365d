"""`censnet serve`."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from censnet.cli.messages import echo, show_notes
from censnet.cli.options import Device
from censnet.errors import ArgumentError, MissingDependencyError, RunError, quote
from censnet.text import count, format_bytes

BACKLOG = 2048  # connections that are not taken yet
NAME = re.compile(r"[^\W_][\w .+-]{0,62}[^\W_]|[^\W_]")


def serve(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN...]", help="Run directories; each is called as its folder is.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="NAME=RUN", help="A run by another name; repeatable.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; 0.0.0.0 is every one.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes that compute; one for each core if not given.")
    ] = None,
    max_body: Annotated[int, typer.Option(min=1_000, help="Bytes of one request.")] = 4_000_000,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows, SMILES or pairs of one request.")] = 10_000,
    max_size: Annotated[
        int, typer.Option(min=1, help="Nodes and edges, or atoms and bonds, of one request.")
    ] = 100_000,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="That one request may be computed for.")] = 30.0,
    max_waiting: Annotated[int, typer.Option(min=1, help="Requests that wait; further ones are refused.")] = 256,
    device: Device = None,
) -> None:
    """Serve runs over HTTP: predictions and explanations as JSON, a page to try them on, documentation, metrics."""
    paths = named_runs(runs or (), name or ())
    show_notes()
    try:
        import uvicorn

        from censnet.serving.app import make_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise MissingDependencyError(
            "serving needs fastapi and uvicorn, which are not installed: pip install 'censnet[serve]'"
        ) from None
    from censnet.runs.directory import read_config
    from censnet.serving.limits import Limits
    from censnet.serving.workers import Plan, Workers

    for path in paths.values():
        read_config(path)
    limits = Limits(body=max_body, rows=max_rows, size=max_size, seconds=max_seconds, queue=max_waiting)
    listening = listen(host, port)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    number = workers or cores
    pool = Workers(
        Plan({key: path.resolve() for key, path in paths.items()}, limits, device, max(1, cores // number)), number
    )
    try:
        described = pool.start()
        app = make_app(pool, described)
        for key, found in described.items():
            targets = ", ".join(f"{one['level']}:{one['column']}" for one in found["targets"]) or "link"
            echo(f"{key}: {targets}")
        where = f"[{host}]" if ":" in host else host
        said = f"{count(number, 'process')}, at most {format_bytes(max_body)} and {max_rows:,} rows a request"
        echo(f"http://{where}:{listening.getsockname()[1]}/ ({said}; Ctrl-C stops)")
        config = uvicorn.Config(
            app, log_level="error", access_log=False, server_header=False, lifespan="on", ws="none",
            timeout_keep_alive=10, timeout_graceful_shutdown=5, backlog=BACKLOG,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        echo("stopped")
    finally:
        pool.stop()
        listening.close()


def named_runs(runs: Sequence[Path], names: Sequence[str]) -> dict[str, Path]:
    """The runs by the names that requests call them.

    >>> named_runs([Path("runs/fraud")], ["solubility=runs/b"])
    {'fraud': PosixPath('runs/fraud'), 'solubility': PosixPath('runs/b')}
    """
    pairs = [(path.resolve().name, path) for path in runs]
    for text in names:
        key, equals, place = text.partition("=")
        if not equals or not place.strip():
            raise ArgumentError(f"--name is {quote(text)}, expected NAME=RUN, such as fraud=runs/fraud")
        pairs.append((key, Path(place)))
    if not pairs:
        raise ArgumentError("there is no run, expected RUN or --name NAME=RUN, such as runs/fraud")
    found: dict[str, Path] = {}
    for key, path in pairs:
        if NAME.fullmatch(key) is None:
            raise ArgumentError(
                f"{quote(key)} is no name of a run, expected letters, digits and .+-_ or spaces: "
                f"give another one by --name NAME=RUN"
            )
        if key in found:
            raise ArgumentError(f"two runs are called {quote(key)}: give one of them a name by --name NAME=RUN")
        found[key] = path
    return found


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, before any run is read."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"--host {host} --port {port} cannot be listened on: {why}: choose another --port") from None
    return found
