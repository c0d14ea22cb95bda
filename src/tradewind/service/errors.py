"""Errors of the API: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from typing import Any

from tradewind.model.errors import TradewindError

STATUS = {
    "invalid": 422,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "price_moved": 409,
    "too_large": 413,
    "too_many": 429,
    "unavailable": 503,
}


class ApiError(TradewindError):
    """An answer that says why not. data: what helps, such as a fresh quote."""

    def __init__(self, code: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data, self.status = code, data, STATUS[code]

    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        found: dict[str, Any] = {"code": self.code, "message": str(self)}
        return {"error": found if self.data is None else {**found, "data": self.data}}
