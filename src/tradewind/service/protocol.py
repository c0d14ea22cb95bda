"""HTTP connections of strangers: what comes before a request is known is limited in bytes and in time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 1 << 16
"""Request line and headers of a request at most; some more where they come at once."""
HEAD_S = 30.0
"""How long they may take from the beginning of a connection or request."""


class BoundedProtocol(HttpToolsProtocol):
    """Ends connections whose requests do not begin as they should."""

    _timer: asyncio.TimerHandle | None = None  # while request line and headers are awaited
    _bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Await the first request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Await nothing."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes before a request is known."""
        super().data_received(data)
        if self._timer is not None:
            self._bytes += len(data)
            if self._bytes > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The request line and headers are too long.")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        if self._timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """A request is known; its body is limited by the application."""
        self._stop()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._bytes = 0
        self._timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
