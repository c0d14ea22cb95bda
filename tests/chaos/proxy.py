"""A proxy of our own that cuts every connection through it, again and again."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Iterator

from tests.fleets.relay import copy


class Proxy:
    """Joins connections to a port with another port, `target`; `cuts`: how many it has cut so far."""

    def __init__(self, target: int, every_s: float, seed: int) -> None:
        self.target, self._every_s, self._random = target, every_s, random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = self.cuts = 0

    async def serve(self, ready: threading.Event) -> None:
        """Serve, and cut all connections at random times."""
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        while True:
            await asyncio.sleep(self._random.uniform(0.5, 1.5) * self._every_s)
            for writer in tuple(self._writers):
                writer.transport.abort()
                self.cuts += 1

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._writers |= both
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
        self._writers -= both


@contextlib.contextmanager
def cutting(target: int, every_s: float, seed: int = 1) -> Iterator[Proxy]:
    """A proxy before a port, in a thread of its own."""
    proxy, ready, loop = Proxy(target, every_s, seed), threading.Event(), asyncio.new_event_loop()
    task = loop.create_task(proxy.serve(ready))

    def work() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(60)
    yield proxy
    loop.call_soon_threadsafe(task.cancel)
    thread.join(60)
