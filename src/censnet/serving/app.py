"""The application: its endpoints, and every refusal as one line of JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psutil
from fastapi import Body, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from censnet.errors import first_few, quote
from censnet.serving.bodies import ANSWERED, BoundedBodies, internal_error
from censnet.serving.documentation import documentation_page
from censnet.serving.json_body import read_json
from censnet.serving.limits import WRONG, RefusedError
from censnet.serving.metrics import TYPE, Metrics
from censnet.serving.page import try_page
from censnet.serving.requests import Data, ExplainRequest, PredictRequest, describe_invalid
from censnet.serving.workers import Workers

NOT_FOUND = 404
Descriptions = Mapping[str, Mapping[str, Any]]
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The body is no JSON, or the address has a query."},
    413: {"description": "The body, its rows or its graphs are too large."},
    415: {"description": "The body is no JSON by its type, or compressed."},
    422: {"description": "The data cannot be used; the line says which row and column."},
    503: {"description": "Too many requests wait; `Retry-After` says for how long."},
    504: {"description": "The answer took too long."},
}


class StrictRequest(Request):
    """A request whose JSON is read strictly."""

    async def json(self) -> Any:
        if not hasattr(self, "_strict"):
            self._strict = read_json(await self.body())
        return self._strict


class StrictRoute(APIRoute):
    """A route whose requests are `StrictRequest`s; what a request is refused for is raised as it is."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            request = StrictRequest(request.scope, request.receive)
            if request.method == "POST":
                await request.json()  # outside of FastAPI's reader, which would hide the reason
            return await handle(request)

        return strict


def make_app(workers: Workers, runs: Descriptions) -> FastAPI:
    """The application of runs that processes serve.

    Args:
        workers: the processes, which are started.
        runs: name -> description, as `Workers.start` gives them.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await workers.open()
        try:
            yield
        finally:
            await workers.close()

    app = FastAPI(
        title="censnet", version="1", lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False,
        description="Predictions of trained runs, and why they are so.",
    )  # fmt: skip
    app.router.route_class = StrictRoute
    metrics = Metrics()
    _add_predictions(app, workers, runs)
    _add_pages(app, workers, runs, metrics)
    _add_refusals(app)
    app.add_middleware(BoundedBodies, limits=workers.limits, metrics=metrics)
    return app


def _add_predictions(app: FastAPI, workers: Workers, runs: Descriptions) -> None:
    examples: dict[str, Any] = {
        f"{name}: {what}": {"summary": f"{what}, by the run {name}", "value": found["example"] | more}
        for name, found in runs.items()
        for what, more in _variants(found)
    }
    explained: dict[str, Any] = {
        f"{name}: first row": {"summary": f"by the run {name}", "value": found["example"] | {"rows": [1]}}
        for name, found in runs.items()
        if found["targets"]
    }

    predicts, explains = Body(openapi_examples=examples), Body(openapi_examples=explained)

    async def answer(http: Request, request: Data) -> Response:
        request = choose_run(request, runs)
        http.scope[ANSWERED] = request.run, 0
        found = await workers.answer(request, request.check(workers.limits))
        http.scope[ANSWERED] = request.run, found.rows
        if found.log:
            raise internal_error(found.log)
        return Response(found.body, found.state, media_type="application/json")

    @app.post("/predict", summary="Predict rows", responses=REFUSALS, tags=["answers"])
    async def predict(http: Request, request: PredictRequest = predicts) -> Any:
        """Predictions for each row, in its order, by level: those of `censnet predict`.

        `COLUMN_predicted` and, of classes, `COLUMN_p_CLASS`; with `coverage` also `COLUMN_low` and `COLUMN_high`, or
        `COLUMN_set`. `unlike_training` says why a row is unlike all that the run was trained on, `error` why a row has
        no prediction.
        """
        return await answer(http, request)

    @app.post("/explain", summary="Explain rows", responses=REFUSALS, tags=["answers"])
    async def explain(http: Request, request: ExplainRequest = explains) -> Any:
        """What each edge, node and column adds to the answer for a row, with its fidelity and a drawing (SVG)."""
        return await answer(http, request)


def _variants(found: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    variants: list[tuple[str, dict[str, Any]]] = [("rows" if found["reads"] == "tables" else "SMILES", {})]
    if found["coverages"]:
        coverage = min(found["coverages"], key=lambda one: abs(one - 0.9))
        variants.append((f"with {coverage:.0%} coverage", {"coverage": coverage}))
    if "link" in found["levels"]:
        variants.append(("the likeliest links", {"level": "link", "top": 2}))
    return variants


def choose_run(request: Data, runs: Descriptions) -> Data:
    """The request with the name of its run; names are looked up, and are never part of a path."""
    if request.run is None:
        if len(runs) > 1:
            raise RefusedError(WRONG, f"run is missing, expected one of {first_few(runs)}")
        return request.model_copy(update={"run": next(iter(runs))})
    if request.run not in runs:
        raise RefusedError(NOT_FOUND, f"run is {quote(request.run)}, expected {first_few(runs)}")
    return request


def _add_pages(app: FastAPI, workers: Workers, runs: Descriptions, metrics: Metrics) -> None:
    own, limits = psutil.Process(), workers.limits
    page, policy = try_page(runs, limits)

    @app.get("/", include_in_schema=False)
    async def root() -> HTMLResponse:
        return HTMLResponse(page, headers={"content-security-policy": policy})

    @app.get("/docs", include_in_schema=False)
    async def documentation() -> HTMLResponse:
        text, own_policy = documentation_page(app.openapi(), runs, limits)
        return HTMLResponse(text, headers={"content-security-policy": own_policy})

    @app.get("/runs", summary="List the runs", tags=["server"])
    async def list_runs() -> Any:
        """Each run with its targets, the columns that it reads, and a request that it answers."""
        return JSONResponse({"runs": [{k: v for k, v in found.items() if k != "answered"} for found in runs.values()]})

    @app.get("/health", summary="Whether requests are answered", tags=["server"])
    async def health() -> Any:
        """The names of the runs, and the number of processes that can answer."""
        ready = len(workers.running)
        state = {"status": "ok" if ready else "starting", "runs": list(runs), "workers": ready}
        return JSONResponse(state | {"waiting": len(workers.queue)}, 200 if ready else 503)

    @app.get("/metrics", summary="Counts, for Prometheus", tags=["server"], response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        """Requests by endpoint, run and state, seconds, rows, the queue, and memory."""
        memory = own.memory_info().rss + sum(worker.memory for worker in workers.running.values())
        gauges = {
            "censnet_waiting_requests": ("Requests that wait.", float(len(workers.queue))),
            "censnet_workers": ("Processes that compute.", float(len(workers.running))),
            "censnet_worker_restarts_total": ("Processes that were replaced.", float(workers.restarts)),
            "censnet_batches_total": ("Passes that answered requests.", float(workers.batches)),
            "censnet_batched_requests_total": ("Requests that these answered.", float(workers.batched)),
            "censnet_memory_bytes": ("Memory of the server and its processes.", float(memory)),
        }
        return Response(metrics.text(gauges), media_type=TYPE)


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> JSONResponse:
        headers = {} if error.retry is None else {"retry-after": str(error.retry)}
        return JSONResponse({"error": error.text}, error.state, headers=headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": describe_invalid(error.errors())}, WRONG)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        text = {404: "there is no such address: / is a page, /docs lists what there is",
                405: "the method is not one of this address: /docs lists what there is"}  # fmt: skip
        return JSONResponse(
            {"error": text.get(error.status_code, str(error.detail))}, error.status_code, headers=error.headers
        )
