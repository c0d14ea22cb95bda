"""The engine's process as the API sees it: started, listened to, started again if it dies, ended with the service."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

AGAIN_S, PATIENCE_S, LAST_S = 0.5, 30.0, 20.0
"""Pause before a new start; how long an engine that never was ready is tried; how long one may take to end."""


class EngineProcess:
    """Keeps one engine running. `told`: set, and replaced, whenever something was written."""

    def __init__(self, config: Path, data: Path) -> None:
        self._command = [sys.executable, "-m", "tradewind.service.engine", str(config), str(data)]
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False
        self.ready, self.failed, self.record, self.starts = False, "", 0, 0
        self.recovered_s, self.begins = 0.0, 0  # begins: times that an engine was ready
        self.told = asyncio.Event()
        self.first = asyncio.Event()  # it is ready for the first time, or given up

    async def keep(self) -> None:
        """Run engines until the service ends."""
        begin, was_ready = time.monotonic(), False
        while not self._stopping:
            self.starts += 1
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            await self._listen(self._process)
            await self._process.wait()
            was_ready, self.ready = was_ready or self.ready, False
            self._tell()
            taken = (
                "another" in self.failed
            )  # the engine of a service that is just ending holds store and state
            if not was_ready and (not taken or time.monotonic() - begin > PATIENCE_S):
                break
            await asyncio.sleep(AGAIN_S)
        self.first.set()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            what = json.loads(line)
            self.record = what.get("record", self.record)
            if "failed" in what:
                self.failed = what["failed"]
            if what.get("ready"):
                self.ready, self.failed, self.recovered_s = True, "", what["recovered_s"]
                self.begins += 1
                self.first.set()
            self._tell()

    def _tell(self) -> None:
        """Wake everybody who waits for news."""
        told, self.told = self.told, asyncio.Event()
        told.set()

    async def stop(self) -> None:
        """Let the engine end: ranks write their checkpoints."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), LAST_S)
            except TimeoutError:  # it is in a decision that takes long; what was answered is on disk
                self._process.kill()
                await self._process.wait()

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid
