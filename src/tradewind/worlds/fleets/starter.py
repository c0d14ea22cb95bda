"""Starter of one rank on a machine of an engine: runs its supervisor, and ends what is left if the supervisor is killed.

    python -E -S starter.py CONTROL

An engine (Slurm, Ray, Kubernetes) runs this program where the plan puts a rank. Like the supervisor it uses the standard
library only. If the supervisor dies without having recorded an exit, everything that it ran belongs to this process,
which kills it and records that the rank was lost. A rank of the same user may stop its supervisor: it is continued, and
killed if it does not end its rank in time.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any

SIOCGIFADDR = 0x8915
CHECK_EVERY_S = 1.0
SUPERVISOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "processes", "supervisor.py")


def _load() -> Any:
    """The functions of the supervisor, without the package that it is part of."""
    spec = importlib.util.spec_from_file_location("supervisor", SUPERVISOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(control: str) -> None:
    """Run a rank; end when it is over, or at once if it has been started before."""
    tools = _load()
    with open(os.path.join(control, "spec.json")) as file:
        spec = json.load(file)
    ctypes.CDLL(None).prctl(tools.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    near = os.environ.get("TRADEWIND_ADDRESS") or spec["env"]["MASTER_ADDR"]
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", SUPERVISOR, control], stdin=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "TRADEWIND_INTERFACE": _interface(near)},
    )  # fmt: skip
    mine = {"pid": child.pid, "start": tools.start_ticks(child.pid)}
    handle = os.pidfd_open(child.pid)
    signal.signal(signal.SIGTERM, lambda *_: _send(handle, signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    stop = os.path.join(control, "stop")
    _watch(child.pid, handle, stop, spec["grace_s"] + tools.SWEEP_S + 2 * CHECK_EVERY_S)
    child.wait()
    if not os.path.exists(os.path.join(control, "exit")) and _owner(control) == mine:
        _clean(tools, control, spec["groups"])


def _send(handle: int, number: int) -> None:
    """Signal the supervisor; nothing happens if it is over, also while what it left is being ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, number)


def _watch(pid: int, handle: int, stop: str, patience_s: float) -> None:
    """Wait until the supervisor ends: continue it where it was stopped, kill it where it does not stop its rank in time."""
    poll, asked_s = select.poll(), 0.0
    poll.register(handle, select.POLLIN)
    while not poll.poll(CHECK_EVERY_S * 1000):
        now = time.monotonic()
        if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None:
            _send(handle, signal.SIGCONT)
        if not asked_s and os.path.exists(stop):
            asked_s = now
        if asked_s and now - asked_s > patience_s:
            _send(handle, signal.SIGKILL)


def _owner(control: str) -> Any:
    """The process that claimed the rank, also told from one in another container with the same number; None: nobody."""
    with contextlib.suppress(OSError, ValueError), open(os.path.join(control, "claim")) as file:
        return json.load(file)
    return None


def _interface(address: str) -> str:
    """The interface from which an address is reached; empty: unknown."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect((address, 9))  # sends nothing
        mine = socket.inet_aton(probe.getsockname()[0])
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                if fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()))[20:24] == mine:
                    return name
    return ""


def _clean(tools: Any, control: str, groups: list[str]) -> None:
    """Kill what a lost supervisor left, then record the loss."""
    until = time.monotonic() + tools.SWEEP_S
    while (left := tools.children(os.getpid())) and time.monotonic() < until:
        for group in groups:
            tools.kill_group(group)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)
    for group in groups:
        with contextlib.suppress(OSError):
            os.rmdir(group)
    asked = os.path.exists(os.path.join(control, "stop"))
    result = {"code": None, "asked": asked, "killed": False, "turned": 0, "dropped": "", "left": bool(left)}
    tools.put_exit(control, result)


if __name__ == "__main__":
    main(sys.argv[1])
