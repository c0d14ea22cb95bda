"""Work on what is recorded that takes long: in a process of its own, so that neither requests nor decisions wait for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, TypeVar

from tradewind.model.errors import InputError, TradewindError
from tradewind.service.errors import ApiError

T = TypeVar("T")
WAIT_S = 300.0
KEPT = 32
"""Answers that are kept while nothing new is recorded."""


def _end_with_parent() -> None:
    """Let this process end when the server's does, also if that was killed: its queue would be waited on for ever."""
    if (parent := parent_process()) is not None:
        Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(0)


class Clerk:
    """Carries out tasks (module-level functions) one after the other; the same task on the same records once."""

    def __init__(self, first: str | None = None) -> None:
        self._first = first  # module that the process imports at its start
        self._pool: ProcessPoolExecutor | None = None
        self._known: dict[tuple[Any, ...], Any] = {}
        self._alone = asyncio.Lock()

    async def do(self, record: int, task: Callable[..., T], *args: Any) -> T:
        """The result of a task on the first `record` records; ApiError says what is wrong with it."""
        key = (record, task.__name__, *map(repr, args))
        async with self._alone:
            if key not in self._known:
                found = await self._run(task, args)
                self._known = {k: v for k, v in list(self._known.items())[-KEPT:] if k[0] == record}
                self._known[key] = found
        return self._known[key]  # type: ignore[no-any-return]

    def start(self) -> ProcessPoolExecutor:
        """Let the process be there before it is needed."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_end_with_parent)
            if self._first is not None:
                self._pool.submit(import_module, self._first)
        return self._pool

    async def _run(self, task: Callable[..., T], args: tuple[Any, ...]) -> T:
        try:
            future = self.start().submit(task, *args)
            return await asyncio.wait_for(asyncio.wrap_future(future), WAIT_S)
        except InputError as error:
            raise ApiError("invalid", str(error)) from None
        except TradewindError as error:
            raise ApiError("conflict", str(error)) from None
        except (TimeoutError, BrokenProcessPool):
            self.close()
            raise ApiError(
                "unavailable", "this takes too long or its process ended; name a shorter period"
            ) from None

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
