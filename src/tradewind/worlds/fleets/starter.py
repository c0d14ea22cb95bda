"""Starter of one rank on a machine of an engine: runs its supervisor, and ends what is left if the supervisor is killed.

    python -E -S starter.py CONTROL

An engine (Slurm, Ray, Kubernetes) runs this program where the plan puts a rank. Like the supervisor it uses the standard
library only. If the supervisor dies without having recorded an exit, everything that it ran belongs to this process,
which kills it and records that the rank was lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

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
    ctypes.CDLL(None).prctl(tools.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", SUPERVISOR, control], stdin=subprocess.DEVNULL, start_new_session=True
    )
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    child.wait()
    if not os.path.exists(os.path.join(control, "exit")) and _owner(control) == child.pid:
        _clean(tools, control)


def _owner(control: str) -> int:
    """The process that claimed the rank; 0: none, or nobody may."""
    with contextlib.suppress(OSError, ValueError), open(os.path.join(control, "claim")) as file:
        return int(json.load(file)["pid"])
    return 0


def _clean(tools: Any, control: str) -> None:
    """Kill what a lost supervisor left, then record the loss."""
    with open(os.path.join(control, "spec.json")) as file:
        groups = json.load(file)["groups"]
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
