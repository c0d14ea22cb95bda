"""Fork server: starts many short-lived processes from one process that has already loaded their libraries.

Loading PyTorch takes two seconds of CPU; forking a process that has loaded it takes a millisecond. `ForkServer` runs
such a process (`python -m tradewind.worlds.forkserver MODULE…`), asks it to start children and waits for them. A child
can run in a network namespace. When the server is closed, or its parent dies, its children are killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from tradewind.model.errors import TradewindError

CLONE_NEWNET = 0x40000000
START_S = 120.0
"""Time limit for loading the libraries; generous, because the machine may be busy."""


class ForkServer:
    """Client of a fork server process. Use as a context manager."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tradewind.worlds.forkserver", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._buffer = b""
        self._ended: dict[int, int] = {}
        self._receive("ready", START_S)

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
        self, entry: str, argument: Any, *, environment: Mapping[str, str], namespace: str = "", log: Path
    ) -> int:
        """Run `module:function` on a JSON-serialisable argument and return the process id.

        The function returns the exit code. The child's output is appended to `log`.
        """
        self._send(
            {
                "entry": entry,
                "argument": argument,
                "environment": dict(environment),
                "namespace": namespace,
                "log": str(log),
            }
        )
        return int(self._receive("started", 10.0)["started"])

    def wait(self, pid: int, timeout_s: float) -> int:
        """Wait for a child; return its exit code (negative: the signal that killed it)."""
        limit = time.monotonic() + timeout_s
        while pid not in self._ended:
            self._receive("ended", limit - time.monotonic())
        return self._ended.pop(pid)

    def wait_all(self, pids: Sequence[int], timeout_s: float) -> list[int]:
        """Wait for all children within one time limit; return their exit codes."""
        limit = time.monotonic() + timeout_s
        return [self.wait(pid, limit - time.monotonic()) for pid in pids]

    def close(self) -> None:
        """Stop the server; it kills its remaining children."""
        if self._server.stdin is not None:
            with suppress(OSError):
                self._server.stdin.close()
        try:
            self._server.wait(10.0)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        if self._server.stdout is not None:
            self._server.stdout.close()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        try:
            self._server.stdin.write(json.dumps(request).encode() + b"\n")
            self._server.stdin.flush()
        except OSError:
            raise TradewindError("the fork server died") from None

    def _receive(self, key: str, timeout_s: float) -> dict[str, Any]:
        """Return the next message that has this key; record children that ended on the way."""
        assert self._server.stdout is not None
        limit = time.monotonic() + timeout_s
        while True:
            while b"\n" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\n")
                message: dict[str, Any] = json.loads(line)
                if "ended" in message:
                    self._ended[message["ended"]] = message["code"]
                if key in message:
                    return message
            ready, _, _ = select.select([self._server.stdout], [], [], max(0.0, limit - time.monotonic()))
            if not ready:
                raise TradewindError(f"the fork server did not report {key!r} within {timeout_s:.0f} s")
            data = os.read(self._server.stdout.fileno(), 65536)
            if not data:
                raise TradewindError("the fork server died")
            self._buffer += data


def enter(namespace: str) -> None:
    """Move this process into a network namespace."""
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), namespace)
    finally:
        os.close(handle)


# --- server side ---


def _emit(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def _child(request: dict[str, Any]) -> int:
    """Runs in the fork: redirect output, set environment and namespace, call the function."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, handle in ((0, null), (1, log), (2, log)):
        os.dup2(handle, target)
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["namespace"]:
        enter(request["namespace"])
    module, _, function = request["entry"].partition(":")
    return int(getattr(import_module(module), function)(request["argument"]))


def _fork(request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = _child(request)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _reap(children: set[int]) -> None:
    for pid in sorted(children):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            children.discard(pid)
            _emit({"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def serve(modules: Sequence[str]) -> None:
    """Load the modules, then fork a child per request on standard input until it is closed."""
    for module in modules:
        import_module(module)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _emit({"ready": True})
    children: set[int] = set()
    rest = b""
    while True:
        ready, _, _ = select.select([0, reader], [], [])
        if reader in ready:
            with suppress(BlockingIOError):
                os.read(reader, 4096)
            _reap(children)
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                pid = _fork(json.loads(line))
                children.add(pid)
                _emit({"started": pid})
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    os._exit(0)  # skip the orderly teardown of large libraries, which takes seconds


if __name__ == "__main__":
    serve(sys.argv[1:])
