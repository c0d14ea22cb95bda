"""The HTTP application: routes, errors, metrics, the version of the API."""

from __future__ import annotations

import time

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tradewind.model.errors import InputError
from tradewind.service import (
    pages,
    pages_charts,
    pages_operate,
    pages_records,
    routes_admin,
    routes_change,
    routes_jobs,
    routes_quotes,
    routes_records,
    routes_sites,
)
from tradewind.service.errors import STATUS, ApiError
from tradewind.service.metrics import Metrics
from tradewind.service.service import Service
from tradewind.version import __version__

API_VERSION = 1
"""Clients of this version are served. Fields are added without a new one; a change that breaks readers makes a new one."""
VERSIONS = ((b"tradewind-api", str(API_VERSION).encode()), (b"tradewind-version", __version__.encode()))
"""Headers of every answer."""
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
        routes_sites.routes,
        routes_records.routes,
        routes_admin.routes,
        routes_admin.health,
        pages.routes,
        pages_charts.routes,
        pages_operate.routes,
        pages_records.routes,
    ):
        app.include_router(router)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(InputError, _input_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(Around)

    @app.get("/metrics", tags=["health"], response_class=Response)
    async def metrics(request: Request) -> Response:
        """Metrics for Prometheus."""
        found = request.app.state
        text = await found.service.read(lambda: found.metrics.text(found.service))
        return Response(text, media_type="text/plain; version=0.0.4")

    return app


class Around:
    """Refuses clients of another version, measures, and says which version this is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status, size = time.perf_counter(), 500, 0
        pages.header_from_cookie(Request(scope))
        service, headers = scope["app"].state.service, Headers(scope=scope)
        wanted, most = headers.get("tradewind-api", str(API_VERSION)), service.config.file.limits.body_bytes
        too_large = ApiError("too_large", f"the request has more than {most} bytes; send less")

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise too_large
            return message

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *VERSIONS]
            await send(message)

        app = self._app
        if wanted != str(API_VERSION):
            text = f"the server speaks version {API_VERSION} of the API, the client {wanted[:20]}; update the older one"
            app = JSONResponse({"error": {"code": "invalid", "message": text}}, 400)
        try:
            if int(headers.get("content-length", 0)) > most:
                raise too_large
            with service.tokens.opened(headers.get("authorization")):
                await app(scope, bounded, answer)
        except ApiError as error:
            await _answer(error)(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            scope["app"].state.metrics.answered(scope["method"], route, status, time.perf_counter() - begin)


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
