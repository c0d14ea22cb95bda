"""A policy that tries what it should not, and reports what came of it by raising an error. Run by the tests as a file."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tradewind.model.decision import NOTHING, Decision
from tradewind.model.spec import Param, Spec
from tradewind.model.view import View


class Report(Exception):
    """What a deed came to."""


def tried(deed: Callable[[], Any]) -> str:
    """What a call returned, or the class of its error."""
    try:
        return f"did {deed()!r}"
    except BaseException as error:
        return type(error).__name__


def frames(_: str) -> Any:
    """Look for a Scenario in every frame and among all objects."""
    seen, frame = 0, sys._getframe()
    while frame is not None:
        values = [*frame.f_locals.values()]
        values += [item for value in values for item in getattr(value, "__dict__", {}).values()]
        seen += sum(type(value).__name__ == "Scenario" for value in values)
        frame = frame.f_back  # type: ignore[assignment]
    return seen + sum(type(item).__name__ == "Scenario" for item in gc.get_objects())


def surroundings(_: str) -> Any:
    """What a process inherits."""
    return {
        "environment": sorted(os.environ),
        "uid": os.getuid(),
        "groups": os.getgroups(),
        "folder": os.listdir("."),
        "arguments": sys.argv[1:],
        "descriptors": [n for n in range(256) if os.path.exists(f"/proc/self/fd/{n}")],
        "processes": sorted(n for n in _listed("/proc") if n.isdecimal()),
        "threads": threading.active_count(),
    }


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def read(path: str) -> Any:
    with open(path, "rb") as file:
        return len(file.read())


def write(path: str) -> Any:
    with open(path, "wb") as file:
        return file.write(b"x")


def connect(where: str) -> Any:
    host, _, port = where.partition(":")
    return socket.create_connection((host, int(port)), 2).getpeername()


def connect_unix(where: str) -> Any:
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect(where)


def kill(pid: str) -> Any:
    return os.kill(int(pid), signal.SIGTERM)


def kill_by_thread(pid: str) -> Any:
    """The call behind pthread_kill, with another process."""
    number = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, int(pid), int(pid), int(signal.SIGTERM)):
        raise OSError(ctypes.get_errno(), "tgkill")
    return 0


def outlive(_: str) -> Any:
    """Ask not to be ended with the parent."""
    return ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)


def fork(_: str) -> Any:
    return os.fork()


def program(_: str) -> Any:
    return subprocess.run(["/bin/true"], check=True).returncode


def threads(_: str) -> Any:
    """Start threads until it fails."""
    count = 0
    with contextlib.suppress(RuntimeError):
        while count < 5000:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            count += 1
    return count


def memory(_: str) -> Any:
    return len(bytearray(8 << 30))


def sleep(_: str) -> Any:
    time.sleep(3600)


def loop(_: str) -> Any:
    while True:
        pass


def leave(_: str) -> Any:
    os._exit(3)


def system_exit(_: str) -> Any:
    sys.exit(4)


def crash(_: str) -> Any:
    return ctypes.string_at(0)


def _channel() -> int:
    """The descriptor on which it answers."""
    return next(n for n in range(3, 4096) if os.path.exists(f"/proc/self/fd/{n}") and _is_socket(n))


def _is_socket(number: int) -> bool:
    return os.readlink(f"/proc/self/fd/{number}").startswith("socket")


def _answer(kind: bytes, size: int, content: bytes) -> Any:
    with contextlib.suppress(OSError), socket.socket(fileno=_channel()) as channel:
        channel.setblocking(True)
        channel.sendall(struct.pack("!cQ", kind, size) + content)
    time.sleep(3600)


def garbage(_: str) -> Any:
    return _answer(b"?", 12, b"not a message")


def enormous(_: str) -> Any:
    return _answer(b"A", 1 << 60, b"[")


def long(_: str) -> Any:
    """More than is allowed, sent as such."""
    return _answer(b"A", 17 << 20, b" " * (17 << 20))


def deep(_: str) -> Any:
    return _answer(b"A", 200_000, b"[" * 200_000)


def executable(_: str) -> Any:
    """A pickle that runs a program where it is read."""

    class Bomb:
        def __reduce__(self) -> Any:
            return os.system, ("touch /tmp/tradewind-was-here",)

    data = pickle.dumps(Bomb())
    return _answer(b"A", len(data), data)


def state_for_decision(_: str) -> Any:
    return _answer(b"S", 3, b"abc")


def sent(text: str) -> Any:
    """Any JSON as the decision."""
    return _answer(b"A", len(text.encode()), text.encode())


def error_for_error(_: str) -> Any:
    text = json.dumps(["X", 7]).encode()
    return _answer(b"F", len(text), text)


DEEDS: dict[str, Callable[[str], Any]] = {
    each.__name__: each
    for each in (
        frames, surroundings, read, write, connect, connect_unix, kill, kill_by_thread, outlive, fork, program, threads,
        memory, sleep, loop, leave, system_exit, crash, garbage, enormous, long, deep, executable, state_for_decision, sent,
        error_for_error,
    )
}  # fmt: skip
RAW = ("sleep", "loop", "leave", "system_exit", "crash")


class Hostile:
    def __init__(self, deed: str, target: str, moment: str) -> None:
        self.deed, self.target, self.moment = deed, target, moment

    def at(self, moment: str) -> None:
        if moment == self.moment and self.deed:
            if self.deed in RAW:
                DEEDS[self.deed](self.target)
            raise Report(tried(lambda: DEEDS[self.deed](self.target)))

    def decide(self, view: View) -> Decision:
        self.at("decide")
        return NOTHING

    def save(self) -> bytes:
        self.at("save")
        return b"state"

    def restore(self, state: bytes) -> None:
        self.at("restore")


def make(setup: Any, params: Mapping[str, Any], random: Any) -> Hostile:
    made = Hostile(params["deed"], params["target"], params["moment"])
    made.at("make")
    return made


HOSTILE = Spec(
    name="hostile",
    summary="Tries what it should not.",
    factory=make,
    works=frozenset({"fixed"}),
    params={
        "deed": Param(default="", doc="what to try"),
        "target": Param(default="", doc="on what"),
        "moment": Param(default="decide", doc="when", choices=("decide", "save", "restore", "make")),
    },
)
