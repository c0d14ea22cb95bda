"""The HTTP application: routes, errors, metrics, the version of the API."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from tradewind.model.errors import InputError
from tradewind.service import (
    pages,
    pages_records,
    routes_admin,
    routes_change,
    routes_jobs,
    routes_quotes,
    routes_records,
)
from tradewind.service.errors import STATUS, ApiError
from tradewind.service.metrics import Metrics
from tradewind.service.service import Service
from tradewind.version import __version__

API_VERSION = 1
"""Clients of this version are served. Fields are added without a new one; a change that breaks readers makes a new one."""
CODE_OF = {status: code for code, status in reversed(STATUS.items())}


def create_app(service: Service | None = None) -> FastAPI:
    """The application; without a service it can only describe itself."""
    app = FastAPI(
        title="Tradewind",
        version=__version__,
        summary="Submit, quote, accept, run, understand, pay.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.service, app.state.metrics = service, Metrics()
    for router in (
        routes_jobs.routes,
        routes_quotes.routes,
        routes_change.routes,
        routes_records.routes,
        routes_admin.routes,
        routes_admin.health,
        pages.routes,
        pages_records.routes,
    ):
        app.include_router(router)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(InputError, _input_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.middleware("http")(_around)

    @app.get("/metrics", tags=["health"], response_class=Response)
    async def metrics(request: Request) -> Response:
        """Metrics for Prometheus."""
        found = request.app.state
        text = await found.service.read(lambda: found.metrics.text(found.service))
        return Response(text, media_type="text/plain; version=0.0.4")

    return app


async def _around(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuse clients of another version, measure, and say which version this is."""
    begin = time.perf_counter()
    pages.header_from_cookie(request)
    wanted = request.headers.get("tradewind-api", str(API_VERSION))
    if wanted != str(API_VERSION):
        message = f"the server speaks version {API_VERSION} of the API, the client {wanted[:20]}; update the older one"
        response: Response = JSONResponse({"error": {"code": "invalid", "message": message}}, 400)
    else:
        response = await call(request)
    route = getattr(request.scope.get("route"), "path", "other")
    metrics: Metrics = request.app.state.metrics
    metrics.requests.labels(request.method, route, response.status_code).inc()
    metrics.seconds.labels(route).observe(time.perf_counter() - begin)
    response.headers["Tradewind-Api"] = str(API_VERSION)
    response.headers["Tradewind-Version"] = __version__
    return response


def _answer(error: ApiError) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    return JSONResponse(error.document(), error.status, headers)


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return pages.refused(request, error) or _answer(error)


async def _input_error(request: Request, error: Exception) -> Response:
    return _answer(ApiError("unavailable", str(error)))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return _answer(ApiError("invalid", f"{where or 'the request'}: {first['msg']}"))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = CODE_OF.get(error.status_code, "invalid")
    return JSONResponse(
        {"error": {"code": code, "message": str(error.detail)}}, error.status_code, error.headers
    )
