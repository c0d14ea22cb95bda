"""Starts a service: its engine at once, the application while the engine recovers; then both until a signal.

Little is imported here: what the API needs takes as long to import as the engine takes to start.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tradewind.model.errors import InputError, StoreError
from tradewind.service.process import EngineProcess

LEASE_S = 0.5
"""How often a standby looks whether it is its turn."""
QUIET_S = 4.0
"""After this time without an engine it is said that it still starts."""


async def serve(config: Path, data: Path, port: int, standby: bool = False, browse: bool = False) -> None:
    """Serve until SIGINT or SIGTERM. standby: first wait until nobody else writes to the store."""
    if standby:
        await _turn(config, data)
    engine = EngineProcess(config, data)
    keeping = asyncio.create_task(engine.keep())
    try:
        starting = asyncio.create_task(asyncio.to_thread(_load))
        await _first(engine)
        if not engine.ready:
            raise InputError(engine.failed or "the engine did not start")
        await starting
        from tradewind.service.server import listen

        await listen(config, data, port, engine, browse)
    finally:
        await engine.stop()
        await keeping


async def _first(engine: EngineProcess) -> None:
    """Wait for the first sign of the engine; say so where that takes long."""
    waiting = asyncio.create_task(engine.first.wait())
    if not (await asyncio.wait({waiting}, timeout=QUIET_S))[0]:
        print(
            "still starting (the first start of a policy compiles its kernels, which can take a minute) …",
            file=sys.stderr,
            flush=True,
        )
    await waiting


def _load() -> None:
    """Import what the API needs."""
    import tradewind.service.app
    import tradewind.service.server  # noqa: F401


async def _turn(path: Path, data: Path) -> None:
    """Wait until the store is free: the lock of its writer ends with its process or connection."""
    _load()  # it is not needed before, and should not take time then
    from tradewind.service import config as configs
    from tradewind.service.current import prepare, store_address
    from tradewind.store.store import Store

    config = configs.load(path)
    prepare(config, data)
    print(f"{config.file.name}: stands by", file=sys.stderr, flush=True)
    while True:
        try:
            (await asyncio.to_thread(Store.open, store_address(config, data), write=True)).close()
            return
        except StoreError:  # taken, or not there for now
            await asyncio.sleep(LEASE_S)


def run(config: Path, data: Path, port: int, standby: bool = False, browse: bool = False) -> None:
    """Serve, from a program without an event loop."""
    asyncio.run(serve(config, data, port, standby, browse))
