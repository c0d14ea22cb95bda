"""The keeper of one rank: a small program of its own that starts the rank's command and stays beside it.

    python -I -S keeper.py CONTROL

CONTROL/spec.json says what to run. The keeper outlives the loop that started it: it passes SIGTERM on, kills what does
not end in time, keeps the log small, holds the rank to its share of the CPU, and writes down how it ended where the
next loop finds it. It uses the standard library alone, so that it starts in a few hundredths of a second.

Files in CONTROL: `claim` (who runs this rank; made once, by a hard link, so that it can be taken only once), `child`
(process id of the command), `exit` (how it ended; written last, by rename).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, CLONE_NEWNET = 1, 36, 0x40000000
LEASE_EVERY_S = 1.0
CPU_EVERY_S = 0.1
LIMITS = {
    "memory_bytes": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "file_bytes": resource.RLIMIT_FSIZE,
    "cpu_seconds": resource.RLIMIT_CPU,
    "processes": resource.RLIMIT_NPROC,
}


def start_ticks(pid: int) -> int:
    """When a process was started, in clock ticks since boot; with its id this names it for good."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[19])


def put(control: str, name: str, value: Any) -> None:
    """Writes a file whole, replacing what was there."""
    path = os.path.join(control, name)
    with open(path + ".tmp", "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)


def claim(control: str, pid: int) -> bool:
    """Takes this launch for `pid` (0: nobody shall have it); False where somebody took it before."""
    temporary = os.path.join(control, f"claim.{os.getpid()}")
    with open(temporary, "w") as file:
        json.dump({"pid": pid, "start": start_ticks(pid) if pid else 0}, file)
    try:
        os.link(temporary, os.path.join(control, "claim"))
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


class Log:
    """A file that never grows beyond its cap: the older half goes to `.1`, what was there before is dropped."""

    def __init__(self, path: str, cap: int) -> None:
        self._path, self._half = path, max(1, cap // 2)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = os.fstat(self._file).st_size
        self.turned = 0

    def write(self, data: bytes) -> None:
        """Appends; turns the log over when it is half full."""
        while data:
            if self._size >= self._half:
                os.close(self._file)
                os.replace(self._path, self._path + ".1")
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                self._size = 0
                self.turned += 1
            piece, data = data[: self._half - self._size], data[self._half - self._size :]
            self._size += os.write(self._file, piece)


def become(spec: dict[str, Any], pipe: int) -> None:
    """In the child: its own session, network, limits, user and directory; then the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    null = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((null, 0), (pipe, 1), (pipe, 2)):
        os.dup2(here, there)
    os.setsid()
    if spec["namespace"]:
        handle = os.open(f"/run/netns/{spec['namespace']}", os.O_RDONLY)
        if libc.setns(handle, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter network namespace {spec['namespace']}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, which in LIMITS.items():
        if spec["limits"].get(name):
            resource.setrlimit(which, (spec["limits"][name],) * 2)
    if spec["cpus"]:
        os.sched_setaffinity(0, spec["cpus"])
    if spec["uid"] is not None:
        os.setgroups([])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the change of user, which clears it
    os.umask(0o077)
    os.chdir(spec["cwd"])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.closerange(3, 256)
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])


def begin(spec: dict[str, Any]) -> tuple[int, int]:
    """Starts the command; returns its process id and the end of the pipe that it writes to."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(spec, write)
        except BaseException as error:  # whatever it is, no second keeper may go on
            os.write(2, f"cannot start {spec['argv'][0]!r}: {error}\n".encode())
        os._exit(127)
    os.close(write)
    os.set_blocking(read, False)
    return pid, read


class Keeper:
    """Watches over one command until it and all its offspring are gone."""

    def __init__(self, control: str, spec: dict[str, Any]) -> None:
        self.control, self.spec = control, spec
        self.log = Log(spec["log"], spec["limits"]["log_bytes"])
        self.asked = self.killed = self.stopped = False
        self.deadline = self.alone_since = 0.0
        self.tick_s = CPU_EVERY_S if spec["cpu_milli"] else LEASE_EVERY_S
        self.used_s, self.budget_s, self.then = 0.0, 0.0, time.monotonic()
        self.ears, ear = socket.socketpair()
        self.ears.setblocking(False)
        ear.setblocking(False)
        signal.set_wakeup_fd(ear.fileno(), warn_on_full_buffer=False)
        self._ear = ear
        signal.signal(signal.SIGTERM, lambda *_: self.ask())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.log.write(spec["head"].encode())
        self.child, self.pipe = begin(spec)
        put(control, "child", {"pid": self.child})
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    # ------------------------------------------------------------------ signals
    def signal(self, number: int) -> None:
        """To the command and everything in its group; it is not waited for yet, so its number is still its own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.child, number)
            except ProcessLookupError:  # it has been forked but has no group of its own yet
                os.kill(self.child, number)

    def ask(self) -> None:
        """Asks the command to end; what has not ended after the time of grace is killed."""
        if not self.asked:
            self.asked, self.deadline = True, time.monotonic() + self.spec["grace_s"]
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)
            self.stopped = False

    def is_alone(self) -> bool:
        """Whether the loop that started this rank is gone: then nobody holds its lock."""
        try:
            handle = os.open(self.spec["lock"], os.O_RDONLY)
        except OSError:
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    # ------------------------------------------------------------------ watching
    def watch(self) -> int:
        """Waits for the command to end; returns its wait status."""
        poll = select.poll()
        handle = os.pidfd_open(self.child)
        for each in (handle, self.pipe, self.ears.fileno()):
            poll.register(each, select.POLLIN)
        checked = time.monotonic()
        while True:
            left = self.deadline - time.monotonic() if self.asked and not self.killed else self.tick_s
            ready = dict(poll.poll(max(0.0, min(left, self.tick_s)) * 1000))
            if self.pipe in ready and not self.read():
                poll.unregister(self.pipe)
            if self.ears.fileno() in ready:
                self.ears.recv(4096)
            now = time.monotonic()
            if self.asked and now >= self.deadline:
                self.killed = True
                self.signal(signal.SIGKILL)
            if handle in ready:
                return os.waitpid(self.child, 0)[1]
            if now - checked >= LEASE_EVERY_S:
                checked = now
                self.alone_since = (self.alone_since or now) if self.is_alone() else 0.0
                if self.alone_since and now - self.alone_since >= self.spec["patience_s"]:
                    self.ask()
            if self.spec["cpu_milli"] and not self.asked:
                self.hold_back(now)

    def read(self) -> bool:
        """Takes what the command wrote into the log; False when nobody can write any more."""
        try:
            data = os.read(self.pipe, 1 << 16)
        except BlockingIOError:
            return True
        self.log.write(data)
        return bool(data)

    def hold_back(self, now: float) -> None:
        """Lets the group run while it is within its share of the CPU: stopped when ahead, continued when behind."""
        share = self.spec["cpu_milli"] / 1000
        # what was not used is not saved up for longer than one period
        self.budget_s = min(self.budget_s + share * (now - self.then), self.used_s + share * self.tick_s)
        self.then = now
        self.used_s = self.cpu_s()
        ahead = self.used_s > self.budget_s
        if ahead != self.stopped:
            self.stopped = ahead
            self.signal(signal.SIGSTOP if ahead else signal.SIGCONT)

    def cpu_s(self) -> float:
        """CPU seconds of the command with all its threads and the children it waited for."""
        with open(f"/proc/{self.child}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def sweep(self) -> None:
        """Kills whatever the command left behind, in its group or elsewhere, and waits until it is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child, signal.SIGKILL)
        while True:
            for pid in children(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        for _ in range(64):  # what is still in the pipe; nobody is left to write more
            try:
                data = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                break
            self.log.write(data)


def children(pid: int) -> list[int]:
    """Processes whose parent this is."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rsplit(b")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
    return found


def main(control: str) -> None:
    """Runs one rank from claim to exit; from the claim on, a signal waits until there is a rank to pass it on to."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    if not claim(control, os.getpid()):
        return
    with open(os.path.join(control, "spec.json")) as file:
        spec = json.load(file)
    keeper = Keeper(control, spec)
    status = keeper.watch()
    keeper.sweep()
    code = os.waitstatus_to_exitcode(status)
    keeper.log.write(f"--- ended with {code}\n".encode())
    result = {
        "code": code, "asked": keeper.asked, "killed": keeper.killed, "turned": keeper.log.turned, "at": time.time(),
    }  # fmt: skip
    put(control, "exit", result)


if __name__ == "__main__":
    main(sys.argv[1])
