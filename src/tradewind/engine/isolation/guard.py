"""Guard of an isolated policy: a standalone program that confines a fork of itself and ends it when its parent ends.

    python -I guard.py CONTROL DATA

The parent sends one line of JSON over CONTROL, a socket: the folders to import from, the user, the limits and the empty
working directory. The fork gives up everything but DATA, a socket, and then serves the policy (serve.py). The guard waits:
when CONTROL is closed, by the parent or by its death, it kills the fork. Standard library only, so that nothing of another
package runs before the process is confined.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import site
import socket
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import filters  # type: ignore[import-not-found] # beside this file; the package is not importable yet

sys.path.pop(0)
PR_SET_PDEATHSIG, MS_BIND, MS_REC, MS_PRIVATE = 1, 0x1000, 0x4000, 0x40000
NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET = 0x20000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
SYSTEM = (
    "/usr", "/lib", "/lib64", "/bin", "/etc", "/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo", "/proc/self",
    "/dev/null", "/dev/urandom",
)  # fmt: skip
"""What Python and compiled kernels read, beside the folders that modules are imported from."""


def separate(*, root: bool) -> bool:
    """Put the next fork into namespaces of its own; False where the machine does not allow it."""
    flags = NEW_PIDS | NEW_NET | NEW_IPC | (NEW_MOUNTS if root else NEW_USER)
    return bool(ctypes.CDLL(None).unshare(flags) == 0)


def rearrange(readable: list[str]) -> None:
    """Runs in the fork of root, in mounts of its own: hide all other processes, and open the way to folders to import from.

    A folder may lie in one that other users cannot enter, as Python in the home of root does. Such a home is replaced by
    an empty one that has only these folders.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
        if libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()):
            number = ctypes.get_errno()
            raise OSError(number, f"mount {target}: {os.strerror(number)}")

    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", 0)
    closed: dict[str, list[tuple[str, int]]] = {}
    for path in filter(os.path.isdir, readable):
        if any(
            path.startswith(f"{known}/") or path == known for found in closed.values() for known, _ in found
        ):
            continue
        steps = path.split("/")[1:]
        above = ["/" + "/".join(steps[:i]) for i in range(1, len(steps))]
        if first := next((each for each in above if not os.stat(each).st_mode & 0o001), ""):
            closed.setdefault(first, []).append((path, os.open(path, os.O_PATH)))
    for folder, inside in closed.items():
        mount("none", folder, "tmpfs", 0, "mode=755")
        for path, handle in inside:
            os.makedirs(path, exist_ok=True)
            mount(f"/proc/self/fd/{handle}", path, "", MS_BIND)
            os.close(handle)


def confine(given: dict[str, Any], data: int, separated: bool) -> None:
    """Runs in the fork: give up descriptors, rights, files, network and processes, in this order."""
    libc = ctypes.CDLL(None)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, data)
    os.closerange(data + 1, 1 << 16)
    os.setsid()
    readable = [*given["prefixes"], *given["path"], given["folder"]]
    if separated and given["uid"] is not None:
        rearrange(readable)
    os.environ.clear()
    os.environ.update(given["environment"])
    os.chdir(given["folder"])
    os.umask(0o077)
    for number, action in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.SIG_DFL)):
        signal.signal(number, action)
    for name, value in given["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    if given["uid"] is not None:
        os.setgroups([])
        os.setresgid(given["uid"], given["uid"], given["uid"])
        os.setresuid(given["uid"], given["uid"], given["uid"])
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the change of user, which resets it
    filters.drop_rights()
    filters.filter_files((*SYSTEM, *readable))
    if not filters.filter_calls() and not separated:
        raise OSError(
            "this machine has neither seccomp nor network namespaces, so the network cannot be closed"
        )


def serve(given: dict[str, Any], data: int, separated: bool) -> None:
    """Runs in the fork: confine it, then serve the policy. The first line tells the parent whether it is confined."""
    with socket.socket(fileno=data) as channel:
        try:
            confine(given, data, separated)
            sys.path[:] = given["path"]
            for folder in given["path"]:
                if folder.endswith("-packages"):
                    site.addsitedir(folder)  # packages that are installed as links
            from tradewind.engine.isolation.serve import main
        except BaseException as error:
            channel.sendall(f"{type(error).__name__}: {error}\n".replace("\n", " ").encode()[:4000] + b"\n")
            return
        channel.sendall(b"\n")
        main(channel)


def watch(control: socket.socket, pid: int, folder: str) -> None:
    """Wait until the fork ends or the parent does; then nothing is left of either."""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(control.fileno(), select.POLLIN)
    ready = dict(poll.poll())
    if handle not in ready:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def main(control: socket.socket, data: int) -> None:
    """Read what to do, start the confined fork and watch it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = b""
    while not line.endswith(b"\n"):
        piece = control.recv(1 << 16)
        if not piece:
            return
        line += piece
    given = json.loads(line)
    separated = separate(root=given["uid"] is not None)
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            serve(given, data, separated)
        finally:
            os._exit(0)
    os.close(data)

    def stop(*_: object) -> None:
        os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, stop)
    ctypes.CDLL(None).prctl(
        PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0
    )  # where a fork of the parent keeps CONTROL open
    if os.getppid() != given["parent"]:
        stop()
    watch(control, pid, given["folder"])


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
