"""Starts a service: store, engine, application, and the address where it listens."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from tradewind.model.errors import InputError, StoreError, TradewindError
from tradewind.service import config as configs
from tradewind.service.changes import of_config
from tradewind.service.config import Config
from tradewind.service.current import current_config, store_address
from tradewind.service.process import EngineProcess
from tradewind.service.service import Service
from tradewind.service.tokens import FILE
from tradewind.store.store import Store

PORT, LEASE_S = 8642, 0.5
"""Where it listens by default; how often a standby looks whether it is its turn."""


def prepare(config: Config, data: Path) -> None:
    """Make the data directory and the store."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        data.chmod(0o711)  # users of jobs may pass it, but not list it
    except OSError as error:
        raise InputError(f"cannot be the data directory: {error.strerror}", where=str(data)) from None
    address = store_address(config, data)
    if "://" in address or not Path(address).exists():
        with contextlib.suppress(InputError), Store.open(address, write=True):
            pass  # made, or brought to this version; the engine says what is wrong with it


async def serve(config: Config, data: Path, port: int, standby: bool = False) -> None:
    """Serve until SIGINT or SIGTERM. standby: first wait until nobody else writes to the store."""
    prepare(config, data)
    if standby:
        print(f"{config.file.name}: stands by", file=sys.stderr, flush=True)
        await _turn(store_address(config, data))
    engine = EngineProcess(config.path, data)
    keeping = asyncio.create_task(engine.keep())
    try:
        create_app = await asyncio.to_thread(_application)  # while the engine starts
        await engine.first.wait()
        if not engine.ready:
            raise InputError(engine.failed or "the engine did not start")
        service = Service(current_config(config.path, data), data, engine)
        try:
            await _listen(service, create_app(service), port)
        finally:
            await engine.stop()
            service.close()
    finally:
        await engine.stop()
        await keeping


async def _turn(address: str) -> None:
    """Wait until the store is free: the lock of its writer ends with its process or connection."""
    while True:
        try:
            (await asyncio.to_thread(Store.open, address, write=True)).close()
            return
        except StoreError:  # taken, or not there for now
            await asyncio.sleep(LEASE_S)


def _application() -> Callable[[Service], FastAPI]:
    """What makes the application; it takes a while to import."""
    from tradewind.service.app import create_app

    return create_app


async def _listen(service: Service, app: FastAPI, port: int) -> None:
    """Answer requests until a signal."""
    config, data = service.config, service.data
    service.tokens.make_admin(data / FILE)
    listen = config.file.listen
    check_address(listen.host, service)
    server = _Server(
        uvicorn.Config(
            app, host=listen.host, port=port, log_level="warning", access_log=False,
            ssl_certfile=listen.certificate or None, ssl_keyfile=listen.key or None, timeout_graceful_shutdown=2,
            server_header=False, lifespan="off",
        )
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.end)
    loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(_reload(service)))
    server.said = _greeting(config, data, port)
    feeding = asyncio.create_task(service.feed.keep())
    try:
        await server.serve()
    finally:
        feeding.cancel()


async def _reload(service: Service) -> None:
    """Read CONFIG again; where it is wrong, what was before goes on."""
    try:
        before, wanted = service.config, configs.load(service.config.path)
        kept = await service.read(service.reload)
        rows = await service.read(lambda: service.board.rows("board_sites", most=100_000))
        changes = of_config(before, wanted, rows)
        if changes:
            token = next(each for each in service.tokens.all() if each.role == "admin")
            await service.ask_engine("sites", "CONFIG", token, {"changes": changes})
        text = f"read again: {len(changes)} changes of capacities and prices" + (
            f"; {', '.join(kept)} take effect with the next start" if kept else ""
        )
    except TradewindError as error:
        text = f"not read again: {error}"
    print(f"{service.config.file.name}: {text}", file=sys.stderr, flush=True)


class _Server(uvicorn.Server):
    """Leaves signals to us, and greets when it listens."""

    said = ""

    def end(self) -> None:
        """Stop; a second time without waiting for open streams."""
        self.force_exit = self.should_exit
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Nothing: `serve` handles signals."""
        yield

    async def startup(self, sockets=None) -> None:  # type: ignore[no-untyped-def]
        """Listen, then say where."""
        await super().startup(sockets)
        if self.started:
            print(self.said, file=sys.stderr, flush=True)


def check_address(host: str, service: Service) -> None:
    """Refuse to listen beyond this machine while nobody but the first admin has a token."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and len([token for token in service.tokens.all() if token.revoked_s is None]) < 2:
        raise InputError(
            f"listen.host is {host}, which others can reach, and there are no tokens but the first admin's; start it on "
            "127.0.0.1, make tokens (tradewind tokens make), then listen elsewhere"
        )


def _greeting(config: Config, data: Path, port: int) -> str:
    scheme = "https" if config.file.listen.certificate else "http"
    return (
        f"{config.file.name}: {scheme}://{config.file.listen.host}:{port}  (policy {config.spec.name}; "
        f"token of the admin: {data / FILE}; Ctrl-C ends it, the same command goes on)"
    )


def run(config: Config, data: Path, port: int, standby: bool = False) -> None:
    """Serve, from a program without an event loop."""
    asyncio.run(serve(config, data, port, standby))
