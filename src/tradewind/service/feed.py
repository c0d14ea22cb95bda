"""Events as they happen: one reader of the table for all who listen, and streams that resume by number."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool

from tradewind.service.process import EngineProcess
from tradewind.store.board import Board, Row

KEEP_S, BATCH, BACKLOG = 15.0, 1000, 10_000
"""A quiet stream sends a comment this often; rows read at once; rows that a slow listener may be behind."""


class Feed:
    """Hands new events to listeners. A listener that is too far behind is cut off, and resumes by number."""

    def __init__(self, board: Board, engine: EngineProcess) -> None:
        self._board, self._engine = board, engine
        self._listeners: set[asyncio.Queue[Row | None]] = set()
        self._last = board.last("board_events")

    async def keep(self) -> None:
        """Read what is new whenever something was written."""
        while True:
            told = self._engine.told
            rows = await run_in_threadpool(self._board.rows, "board_events", after=self._last, most=BATCH)
            for row in rows:
                self._last = row["number"]
                for listener in tuple(self._listeners):
                    if listener.qsize() > BACKLOG:
                        self._listeners.discard(listener)
                        listener.put_nowait(None)
                    else:
                        listener.put_nowait(row)
            if len(rows) < BATCH:
                try:
                    await asyncio.wait_for(told.wait(), 1.0)
                except TimeoutError:
                    continue

    async def stream(self, after: int, equal: dict[str, Any]) -> AsyncIterator[str]:
        """Server-sent events after number `after` whose columns have these values."""
        mine: asyncio.Queue[Row | None] = asyncio.Queue()
        self._listeners.add(mine)
        try:
            yield ": connected\n\n"
            while rows := await run_in_threadpool(
                partial(self._board.rows, "board_events", after=after, most=BATCH, **equal)
            ):
                for row in rows:
                    after = row["number"]
                    yield _message(row)
            while True:
                try:
                    row_or_end = await asyncio.wait_for(mine.get(), KEEP_S)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if row_or_end is None:
                    return
                if row_or_end["number"] > after and all(row_or_end[k] == v for k, v in equal.items()):
                    after = row_or_end["number"]
                    yield _message(row_or_end)
        finally:
            self._listeners.discard(mine)


def document(row: Row) -> dict[str, Any]:
    """An event as people see it."""
    return {**{name: row[name] for name in ("number", "id", "at_s", "kind")}, "body": json.loads(row["body"])}


def _message(row: Row) -> str:
    return f"id: {row['number']}\nevent: {row['kind']}\ndata: {json.dumps(document(row))}\n\n"
