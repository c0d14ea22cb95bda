"""Supervisor of one rank: a small standalone program that starts the rank's command and watches it.

    python -I -S supervisor.py CONTROL

CONTROL/spec.json says what to run. The supervisor outlives the control loop that started it. It forwards SIGTERM, kills
what does not end in time, rotates the log, enforces the rank's CPU share, and records the exit code for the next loop.
It is started by path and imports only the standard library, so that it starts in a few hundredths of a second.

On another machine than its loop it is reached through a shared directory: `beat` in its specification names a file that the
loop keeps changing, CONTROL/stop asks it to stop, and CONTROL/alive changes while it runs.

Files in CONTROL: `claim` (process that runs this rank; created by a hard link, which can succeed only once), `child`
(process id of the command), `exit` (how it ended; written last, by rename; its space is taken at the start, so that a
full disk loses no exit code).
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
LEASE_EVERY_S, MAIL_EVERY_S, CPU_EVERY_S, MEET_EVERY_S = 1.0, 0.2, 0.1, 0.05
SWEEP_S = 10.0
"""What cannot be killed in this time is left behind, and said."""
EXIT_BYTES = 1024
LIMITS = {
    "memory_bytes": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "file_bytes": resource.RLIMIT_FSIZE,
    "cpu_seconds": resource.RLIMIT_CPU,
    "processes": resource.RLIMIT_NPROC,
}


def start_ticks(pid: int) -> int:
    """Start time of a process in clock ticks since boot; together with the process id it is unique."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[19])


def put(control: str, name: str, value: Any) -> None:
    """Write a JSON file atomically."""
    path = os.path.join(control, name)
    with open(path + ".tmp", "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)


def put_exit(control: str, value: Any) -> None:
    """Write the exit in the space that is reserved for it; also reserves it."""
    path = os.path.join(control, "exit")
    handle = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(handle, json.dumps(value).ljust(EXIT_BYTES).encode(), 0)
        os.fsync(handle)
    finally:
        os.close(handle)
    if value is not None:
        os.replace(path + ".tmp", path)


def kill_group(group: str) -> None:
    """Kill everything in a control group."""
    with contextlib.suppress(OSError):
        if os.path.exists(os.path.join(group, "cgroup.kill")):
            write(os.path.join(group, "cgroup.kill"), "1")
            return
        write(os.path.join(group, "pids.max"), "0")  # from here on nothing in it can fork
        with open(os.path.join(group, "cgroup.procs")) as file:
            for line in file:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(line), signal.SIGKILL)


def make_groups(spec: dict[str, Any]) -> None:
    """Make the control groups of the rank; leave out of the specification what cannot be made."""
    made = []
    for group in spec["groups"]:
        bound = os.path.join(group, "pids.max")
        with contextlib.suppress(OSError):
            os.mkdir(group)
            made.append(group)
            if spec["group_processes"] and os.path.exists(bound):
                write(bound, str(spec["group_processes"]))
                spec["limits"]["processes"] = 0  # which would count all processes of the user
    spec["groups"] = made


def write(path: str, text: str) -> None:
    """Write to a file that exists."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def read_bytes(path: str) -> bytes:
    """What is in a small file; empty if it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def claim(control: str, pid: int) -> bool:
    """Claim this launch for `pid` (0: block it for everybody); return False if it was already claimed."""
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
    """A log with a size limit: when half full it becomes `.1`, replacing the previous `.1`.

    What cannot be written is dropped; `dropped` says where and why.
    """

    def __init__(self, path: str, cap: int) -> None:
        self._path, self._half = path, max(1, cap // 2)
        self._file, self._size = -1, 0
        self.rotations, self.dropped = 0, ""

    def write(self, data: bytes) -> None:
        """Append; rotate when half full."""
        try:
            self._append(data)
        except OSError as error:
            self.dropped = f"{self._path[-EXIT_BYTES // 4 :]}: {error.strerror}"

    def _append(self, data: bytes) -> None:
        while data:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                self._size = os.fstat(self._file).st_size
            if self._size >= self._half:
                handle, self._file = self._file, -1
                os.close(handle)
                os.replace(self._path, self._path + ".1")
                self.rotations += 1
                continue
            written = os.write(self._file, data[: self._half - self._size])
            self._size, data = self._size + written, data[written:]


def become(spec: dict[str, Any], pipe: int) -> None:
    """Runs in the child: set session, network, limits, user and directory, then exec the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    null = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((null, 0), (pipe, 1), (pipe, 2)):
        os.dup2(here, there)
    os.setsid()
    for group in spec["groups"]:
        with contextlib.suppress(OSError):
            write(os.path.join(group, "cgroup.procs"), str(os.getpid()))
    if spec.get("meet"):
        meet(spec)
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
    with contextlib.suppress(OSError):  # where memory runs out, ranks end before loops and supervisors
        write("/proc/self/oom_score_adj", "1000")
    if spec["uid"] is not None:
        os.setgroups(spec["site_groups"])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the change of user, which resets it
    os.umask(0o077)
    os.chdir(spec["cwd"])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.closerange(3, 256)
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])


def meet(spec: dict[str, Any]) -> None:
    """Wait until all ranks are there; rank 0, whose address is known only then, tells it to the others."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(75))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    folder, name = os.path.split(spec["meet"])
    if spec["env"]["RANK"] == "0":
        ranks = range(int(spec["env"]["WORLD_SIZE"]))
        while not all(os.path.exists(f"{folder}/{rank}-0/claim") for rank in ranks):
            time.sleep(MEET_EVERY_S)
        put(folder, name, os.environ["TRADEWIND_ADDRESS"])
    while not (found := read_bytes(spec["meet"])):
        time.sleep(MEET_EVERY_S)
    spec["env"]["MASTER_ADDR"] = json.loads(found)


def spawn(spec: dict[str, Any]) -> tuple[int, int]:
    """Start the command; return its process id and the read end of its output pipe."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(spec, write)
        except BaseException as error:  # the fork must never continue as a second supervisor
            os.write(2, f"cannot start {spec['argv'][0]!r}: {error}\n".encode())
        os._exit(127)
    os.close(write)
    os.set_blocking(read, False)
    return pid, read


class Supervisor:
    """Runs one command until it and all its descendants are gone."""

    def __init__(self, control: str, spec: dict[str, Any]) -> None:
        self.control, self.spec = control, spec
        self.log = Log(spec["log"], spec["limits"]["log_bytes"])
        self.asked = self.killed = self.stopped = False
        self.deadline = self.orphaned_since = 0.0
        self.tick_s = CPU_EVERY_S if spec["cpu_milli"] else MAIL_EVERY_S if spec["beat"] else LEASE_EVERY_S
        self.beat, self.beats = b"", 0
        self.used_s, self.budget_s, self.then = 0.0, 0.0, time.monotonic()
        self.wake_reader, self._wake_writer = socket.socketpair()
        self.wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: self.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the watch
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.log.write(spec["head"].encode())
        self.child, self.pipe = spawn(spec)
        with contextlib.suppress(OSError):  # a full disk
            put(control, "child", {"pid": self.child})
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    # ------------------------------------------------------------------ signals
    def signal(self, number: int) -> None:
        """Signal the command's process group, until the command is reaped and its process id no longer valid."""
        if not self.child:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.child, number)
            except ProcessLookupError:  # forked, but has no process group of its own yet
                os.kill(self.child, number)

    def terminate(self) -> None:
        """Send SIGTERM; whatever is left after the grace period is killed."""
        if not self.asked:
            self.asked, self.deadline = True, time.monotonic() + self.spec["grace_s"]
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)
            self.stopped = False

    def is_orphaned(self) -> bool:
        """Whether no control loop holds the lock of the state directory, or keeps changing its file."""
        if self.spec["beat"]:
            before, self.beat = self.beat, read_bytes(self.spec["beat"])
            return self.beat == before
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
        """Wait for the command to end; return its wait status."""
        poll = select.poll()
        handle = os.pidfd_open(self.child)
        for each in (handle, self.pipe, self.wake_reader.fileno()):
            poll.register(each, select.POLLIN)
        checked = time.monotonic()
        while True:
            left = self.deadline - time.monotonic() if self.asked and not self.killed else self.tick_s
            ready = dict(poll.poll(max(0.0, min(left, self.tick_s)) * 1000))
            if self.pipe in ready and not self.read():
                poll.unregister(self.pipe)
            if self.wake_reader.fileno() in ready:
                self.wake_reader.recv(4096)
            now = time.monotonic()
            if self.asked and now >= self.deadline:
                self.killed = True
                self.signal(signal.SIGKILL)
            self.reap()
            if handle in ready:
                self.group, self.child = self.child, 0
                return os.waitpid(self.group, 0)[1]
            if self.spec["beat"] and os.path.exists(os.path.join(self.control, "stop")):
                self.terminate()
            if now - checked >= LEASE_EVERY_S:
                checked = now
                if self.spec["beat"]:
                    self.show_life()
                self.orphaned_since = (self.orphaned_since or now) if self.is_orphaned() else 0.0
                if self.orphaned_since and now - self.orphaned_since >= self.spec["patience_s"]:
                    self.terminate()
            if self.spec["cpu_milli"] and not self.asked:
                self.throttle(now)

    def show_life(self) -> None:
        """Change the file by which a loop on another machine sees that this supervisor runs."""
        self.beats += 1
        with contextlib.suppress(OSError), open(os.path.join(self.control, "alive"), "w") as file:
            file.write(str(self.beats))

    def read(self) -> bool:
        """Copy the command's output to the log; return False when the pipe is closed."""
        try:
            data = os.read(self.pipe, 1 << 16)
        except BlockingIOError:
            return True
        self.log.write(data)
        return bool(data)

    def throttle(self, now: float) -> None:
        """Enforce the CPU share: stop the process group while it is ahead of its share."""
        share = self.spec["cpu_milli"] / 1000
        # unused time is carried over for one period at most
        self.budget_s = min(self.budget_s + share * (now - self.then), self.used_s + share * self.tick_s)
        self.then = now
        self.used_s = self.cpu_s()
        ahead = self.used_s > self.budget_s
        if ahead != self.stopped:
            self.stopped = ahead
            self.signal(signal.SIGSTOP if ahead else signal.SIGCONT)

    def cpu_s(self) -> float:
        """CPU seconds of the command, with all its threads and the children that it has waited for."""
        with open(f"/proc/{self.child}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def reap(self) -> None:
        """Wait for all descendants that have ended and whose parents have; the command itself is left to `watch`."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if found.si_pid == self.child:
                    return
                os.waitpid(found.si_pid, 0)

    def sweep(self) -> bool:
        """Kill all remaining descendants, in the process group or outside, and wait for them; True if all are gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, signal.SIGKILL)
        until, rounds = time.monotonic() + SWEEP_S, 0
        while (left := children(os.getpid())) and time.monotonic() < until:
            rounds += 1
            for group in self.spec["groups"]:
                kill_group(group)
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self.reap()
            if rounds % 100 == 0:  # faster than a chain of forks, but not at all costs
                time.sleep(0.002)
        for group in self.spec["groups"]:
            with contextlib.suppress(OSError):
                os.rmdir(group)
        self.drain()
        return not left

    def drain(self) -> None:
        """Copy what is left in the pipe to the log."""
        for _ in range(64):
            try:
                data = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                break
            if not data:
                break
            self.log.write(data)


def children(pid: int) -> list[int]:
    """Direct children of a process that has one thread."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return list(map(int, file.read().split()))
    found = []  # a kernel without that file
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rsplit(b")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
    return found


def main(control: str) -> None:
    """Run one rank from claim to exit. SIGTERM stays blocked until there is a command to forward it to."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    if not claim(control, os.getpid()):
        return
    with open(os.path.join(control, "spec.json")) as file:
        spec = json.load(file)
    found = os.environ.get("TRADEWIND_INTERFACE")  # by a starter
    spec["env"] |= {"TRADEWIND_INTERFACE": found} if found else {}
    with contextlib.suppress(OSError):  # a full disk; there may be space at the end
        put_exit(control, None)
    make_groups(spec)
    supervisor = Supervisor(control, spec)
    status = supervisor.watch()
    is_swept = supervisor.sweep()
    code = os.waitstatus_to_exitcode(status)
    supervisor.log.write(f"--- ended with {code}\n".encode())
    asked = supervisor.asked or os.path.exists(os.path.join(control, "stop"))  # an engine may signal ranks
    result = {
        "code": code, "asked": asked, "killed": supervisor.killed, "turned": supervisor.log.rotations,
        "dropped": supervisor.log.dropped, "left": not is_swept,
    }  # fmt: skip
    until = time.monotonic() + spec["patience_s"]
    while True:
        try:
            return put_exit(control, result)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1])
