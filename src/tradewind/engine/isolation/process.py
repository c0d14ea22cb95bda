"""The confined process of a policy, seen from the parent: start it, ask it, end it. Nothing that it sends is executed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
import weakref
from dataclasses import dataclass
from pathlib import Path

from tradewind.model.errors import InputError, PolicyError

GUARD = str(Path(__file__).with_name("guard.py"))
HEAD = struct.Struct("!cQ")
"""Kind and length of a message."""
ANSWER, STATE, FAILED = b"A", b"S", b"F"
"""Kinds of answers: JSON, the bytes of a saved policy, and what went wrong, as JSON."""
STARTS = ("start", "describe", "make")
INHERITED = (
    "LANG", "LC_ALL", "TZ", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
    "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_CPU_NAME", "PYTHONHASHSEED",
)  # fmt: skip
"""Variables that change numbers or speed; a policy gets no others."""
FIRST_UID, NOBODY = 2_000_000_000, 65_534
"""With root, the user is FIRST_UID + process id, which no other process has; nobody where users end at 65,535."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an isolated policy may use.

    start_s, answer_s  time to load the policy, and for every answer
    answer_bytes       size of a decision, a quote or charges; a saved state may have `state_bytes`
    threads            counted per user, so only with root
    """

    start_s: float = 120.0
    answer_s: float = 60.0
    answer_bytes: int = 16 << 20
    state_bytes: int = 256 << 20
    memory_bytes: int = 4 << 30
    open_files: int = 64
    threads: int = 64


DEFAULT = Limits()


def _uid() -> int | None:
    """The user of the next process; None without root."""
    if os.geteuid() != 0:
        return None
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first <= FIRST_UID and first + count > FIRST_UID + (1 << 22):
            return FIRST_UID
    return NOBODY


def import_path(package: str) -> list[str]:
    """Folders that a policy of the package ("": of ours, or of a file) imports from, which it can therefore read.

    The folder of a script and the current one are left out unless the package is there: files of all kinds lie in them.
    """
    beside = (os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0])))

    def holds(folder: str) -> bool:
        names = (package, f"{package}.py") if package else ()
        return any(os.path.exists(os.path.join(folder, name)) for name in names)

    found = [os.path.abspath(folder) for folder in sys.path]
    kept = [folder for folder in found if folder not in beside or holds(folder)]
    return [*kept, str(Path(__file__).parents[3])]


class Process:
    """One confined process. After any failure it is dead; `error` turns that into what users read."""

    def __init__(self, limits: Limits = DEFAULT, package: str = "") -> None:
        if sys.platform != "linux":
            raise InputError(
                f"isolated policies need Linux (this is {sys.platform}); leave out the isolation"
            )
        self.limits = limits
        control, theirs = socket.socketpair()
        self._data, data = socket.socketpair()
        folder = tempfile.mkdtemp(prefix="tradewind-policy-")
        os.chmod(folder, 0o555)
        with theirs, data:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", GUARD, str(theirs.fileno()), str(data.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), data.fileno()),
                start_new_session=True,
                env={},
            )
        self._control = control
        self._end = weakref.finalize(self, _end, self._guard, control, self._data)
        self._data.setblocking(False)
        control.sendall(json.dumps(self._orders(folder, import_path(package))).encode() + b"\n")
        self._wait_until_confined()

    def _orders(self, folder: str, path: list[str]) -> dict[str, object]:
        uid = _uid()
        if uid == FIRST_UID:
            uid += self._guard.pid
        limits = {
            "AS": self.limits.memory_bytes, "NOFILE": self.limits.open_files, "FSIZE": 0, "CORE": 0,
        }  # fmt: skip
        if uid is not None:
            limits["NPROC"] = self.limits.threads
        keep = {name: os.environ[name] for name in INHERITED if name in os.environ}
        return {
            "parent": os.getpid(), "uid": uid, "folder": folder, "limits": limits,
            "path": path,
            "prefixes": [sys.base_prefix, sys.prefix],
            "environment": {"HOME": folder, "TMPDIR": folder, "PATH": "/usr/bin:/bin", **keep},
        }  # fmt: skip

    def _wait_until_confined(self) -> None:
        """The first line says what failed while the process was being confined; it is empty if nothing did."""
        line, until = b"", time.monotonic() + self.limits.start_s
        while not line.endswith(b"\n"):
            line += self._receive(1, until, "start")
        if line != b"\n":
            self.end()
            raise PolicyError(
                f"the policy cannot be isolated: {line.decode(errors='replace').strip()}. Its process runs as another user "
                "if this one is root: can everybody read the installation?"
            )

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._end.alive

    def ask(self, message: bytes, what: str) -> tuple[bytes, bytes]:
        """Send a message and wait for (kind, content) of the answer; whatever goes wrong ends the process."""
        until = time.monotonic() + self._seconds(what)
        try:
            self._send(HEAD.pack(ANSWER, len(message)) + message, until, what)
            kind, size = HEAD.unpack(self._receive(HEAD.size, until, what))
            most = self.limits.state_bytes if kind == STATE else self.limits.answer_bytes
            if kind not in (ANSWER, STATE, FAILED) or size > most:
                raise PolicyError(
                    f"its process sent {size} bytes of kind {kind!r} in answer to {what}; at most {most} are allowed"
                )
            return kind, self._receive(size, until, what)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """End the process; nothing of it is left when this returns."""
        self._end()

    def _send(self, message: bytes, until: float, what: str) -> None:
        rest = memoryview(message)
        while rest:
            try:
                rest = rest[self._data.send(rest) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, until, what)
            except OSError:
                raise self._ended(what) from None

    def _receive(self, size: int, until: float, what: str) -> bytes:
        pieces, missing = [], size
        while missing:
            try:
                piece = self._data.recv(min(missing, 1 << 20))
            except BlockingIOError:
                self._wait(select.POLLIN, until, what)
                continue
            except OSError:
                piece = b""
            if not piece:
                raise self._ended(what)
            pieces.append(piece)
            missing -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _wait(self, event: int, until: float, what: str) -> None:
        poll = select.poll()
        poll.register(self._data.fileno(), event)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            self.end()
            raise PolicyError(
                f"its process did not answer {what} within {self._seconds(what):g} s, so it was ended"
            )

    def _seconds(self, what: str) -> float:
        return self.limits.start_s if what in STARTS else self.limits.answer_s

    def _ended(self, what: str) -> PolicyError:
        """How the process ended, which the guard tells."""
        how = "for an unknown reason"
        self._control.settimeout(5.0)
        with contextlib.suppress(OSError, ValueError):
            code = int(self._control.recv(100))
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        self.end()
        return PolicyError(f"its process ended {how} before it answered {what}")


def _end(process: subprocess.Popen[bytes], control: socket.socket, data: socket.socket) -> None:
    """Close the sockets, on which the guard kills the policy, and wait for the guard."""
    control.close()
    data.close()
    try:
        process.wait(5.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
