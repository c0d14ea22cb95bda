"""What every route needs: the service behind it, and the headers of a request."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Header, Request

from tradewind.service.service import Service

Authorization = Annotated[str | None, Header(description="Bearer TOKEN")]
Key = Annotated[
    str, Header(alias="Idempotency-Key", max_length=200, description="the same key gives the same answer")
]


def service_of(request: Request) -> Service:
    """The service that a request is for."""
    return cast(Service, request.app.state.service)
