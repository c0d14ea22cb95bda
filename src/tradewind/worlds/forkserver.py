"""Starts many short-lived processes from one that has loaded their libraries already.

Loading PyTorch takes two seconds of CPU; a fork of a process that has loaded it takes a millisecond. `Nursery` runs such a
process (`python -m tradewind.worlds.forkserver MODULE…`), asks it for children, and learns when they end. A child may
live in a network namespace. When the nursery is closed, or its parent dies, its children are killed.
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
"""How long loading the libraries may take on a busy machine."""


class Nursery:
    """The parent's side. Use as a context manager."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tradewind.worlds.forkserver", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._rest = b""
        self._ended: dict[int, int] = {}
        self._hear("ready", START_S)

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
        self, entry: str, argument: Any, *, environment: Mapping[str, str], namespace: str = "", log: Path
    ) -> int:
        """Run `module:function` on an argument that JSON can carry; returns the process id.

        The function returns the exit code. The child's output is appended to `log`.
        """
        self._say(
            {
                "entry": entry,
                "argument": argument,
                "environment": dict(environment),
                "namespace": namespace,
                "log": str(log),
            }
        )
        return int(self._hear("started", 10.0)["started"])

    def wait(self, pid: int, timeout_s: float) -> int:
        """Exit code of a child (negative: the signal that killed it)."""
        limit = time.monotonic() + timeout_s
        while pid not in self._ended:
            self._hear("ended", limit - time.monotonic())
        return self._ended.pop(pid)

    def wait_all(self, pids: Sequence[int], timeout_s: float) -> list[int]:
        limit = time.monotonic() + timeout_s
        return [self.wait(pid, limit - time.monotonic()) for pid in pids]

    def close(self) -> None:
        """Kill the children that are left, and the nursery."""
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

    def _say(self, request: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        try:
            self._server.stdin.write(json.dumps(request).encode() + b"\n")
            self._server.stdin.flush()
        except OSError:
            raise TradewindError("the process that starts ranks has died") from None

    def _hear(self, word: str, timeout_s: float) -> dict[str, Any]:
        """The next message with this word in it; ends of children are kept on the way."""
        assert self._server.stdout is not None
        limit = time.monotonic() + timeout_s
        while True:
            while b"\n" in self._rest:
                line, _, self._rest = self._rest.partition(b"\n")
                message: dict[str, Any] = json.loads(line)
                if "ended" in message:
                    self._ended[message["ended"]] = message["code"]
                if word in message:
                    return message
            ready, _, _ = select.select([self._server.stdout], [], [], max(0.0, limit - time.monotonic()))
            if not ready:
                raise TradewindError(f"no process {word} within {timeout_s:.0f} s")
            heard = os.read(self._server.stdout.fileno(), 65536)
            if not heard:
                raise TradewindError("the process that starts ranks has died")
            self._rest += heard


def enter(namespace: str) -> None:
    """Move this process into a network namespace."""
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), namespace)
    finally:
        os.close(handle)


# --- the nursery's own side ---


def _tell(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def _child(request: dict[str, Any]) -> int:
    """In the fork: output to the log, environment and namespace as asked, then the function."""
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
            _tell({"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def serve(modules: Sequence[str]) -> None:
    """Load the modules, then start children as asked on standard input until it ends."""
    for module in modules:
        import_module(module)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _tell({"ready": True})
    children: set[int] = set()
    rest = b""
    while True:
        ready, _, _ = select.select([0, reader], [], [])
        if reader in ready:
            with suppress(BlockingIOError):
                os.read(reader, 4096)
            _reap(children)
        if 0 in ready:
            heard = os.read(0, 65536)
            if not heard:
                break
            *lines, rest = (rest + heard).split(b"\n")
            for line in lines:
                pid = _fork(json.loads(line))
                children.add(pid)
                _tell({"started": pid})
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    os._exit(0)  # taking large libraries down in order takes seconds and serves nobody


if __name__ == "__main__":
    serve(sys.argv[1:])
