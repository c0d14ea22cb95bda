"""The API of a service: the application, the address where it listens, and signals."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import sys
import webbrowser
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from tradewind.model.errors import InputError, TradewindError
from tradewind.service import config as configs
from tradewind.service.app import create_app
from tradewind.service.config import Config
from tradewind.service.current import current_config
from tradewind.service.errors import ApiError
from tradewind.service.process import EngineProcess
from tradewind.service.protocol import BoundedProtocol
from tradewind.service.reload import reload
from tradewind.service.service import Service
from tradewind.service.tokens import FILE, own_token

WAITING = 2048
"""Connections that may wait to be taken."""


async def listen(path: Path, data: Path, port: int, engine: EngineProcess, browse: bool = False) -> None:
    """Answer requests of an engine that is ready, until a signal; browse: open a browser."""
    service = Service(current_config(path, data), data, engine)
    try:
        await _listen(service, create_app(service), port, browse)
    finally:
        await engine.stop()
        service.close()


async def _listen(service: Service, app: FastAPI, port: int, browse: bool) -> None:
    """Answer requests until a signal."""
    config, data = service.config, service.data
    service.tokens.make_admin(data / FILE)
    listen = config.file.listen
    check_address(listen.host, service)
    bound = bind(listen.host, port)
    server = _Server(
        uvicorn.Config(
            app, host=listen.host, port=port, log_level="warning", access_log=False,
            ssl_certfile=listen.certificate or None, ssl_keyfile=listen.key or None, timeout_graceful_shutdown=2,
            server_header=False, lifespan="off", http=BoundedProtocol,
        )
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.end)
    loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(_reload(service)))
    server.said, server.opens = _greeting(config, data, port), _address(config, port) if browse else ""
    feeding = asyncio.create_task(service.feed.keep())
    if set(configs.load(config.path).setup.node_index) - set(config.setup.node_index):
        joining = asyncio.create_task(_reload(service))  # CONFIG names sites that the store does not have
        feeding.add_done_callback(lambda _: joining.cancel())
    try:
        await server.serve([bound])
    finally:
        feeding.cancel()


async def _reload(service: Service) -> None:
    """Read CONFIG again; where it is wrong, what was before goes on."""
    try:
        found = await reload(service, own_token())
        parts = [f"{len(found.joined)} sites joined"] if found.joined else []
        parts.append(f"{found.changes} changes of capacities and prices")
        if found.with_the_next_start:
            parts.append(f"{', '.join(found.with_the_next_start)} take effect with the next start")
        text = f"read again: {'; '.join(parts)}"
    except (TradewindError, ApiError) as error:
        text = f"not read again: {error}"
    print(f"{service.config.file.name}: {text}", file=sys.stderr, flush=True)


class _Server(uvicorn.Server):
    """Leaves signals to us, and greets when it listens."""

    said = opens = ""

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
            if self.opens:
                webbrowser.open(self.opens)


def bind(host: str, port: int) -> socket.socket:
    """The socket where the service listens; its connections send small answers at once."""
    try:
        bound = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=WAITING
        )
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another --port, or end the program that has it"
        ) from None


def check_address(host: str, service: Service) -> None:
    """Refuse to listen beyond this machine while nobody but the first admin has a token."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and sum(token.state == "valid" for token in service.tokens.all()) < 2:
        raise InputError(
            f"listen.host is {host}, which others can reach, and there are no tokens but the first admin's; start it on "
            "127.0.0.1, make tokens (tradewind tokens make), then listen elsewhere"
        )


def _address(config: Config, port: int) -> str:
    scheme = "https" if config.file.listen.certificate else "http"
    return f"{scheme}://{config.file.listen.host}:{port}"


def _greeting(config: Config, data: Path, port: int) -> str:
    return (
        f"{config.file.name}: {_address(config, port)}  (policy {config.spec.name}; "
        f"token of the admin: {data / FILE}; Ctrl-C ends it, the same command goes on)"
    )
