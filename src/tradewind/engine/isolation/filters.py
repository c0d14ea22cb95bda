"""What the kernel forbids a confined process: system calls (seccomp) and files (Landlock). Standard library only.

Both need no privileges, last until the process ends, and cannot be undone by it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
EPERM, ENOSYS = 1, 38
CLONE_THREAD = 0x10000
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine -> (its number in seccomp, its column in the tables below)."""
DENIED = {
    # network, and whatever opens connections on behalf of a process
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "io_uring_setup": (425, 425),
    # other processes: their memory, files, signals and priorities
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kill": (62, 129),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "setpriority": (141, 140),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    # new programs and processes (threads are made by clone, see below)
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, -1), "vfork": (58, -1),
    # memory and messages shared with others
    "shmget": (29, 194), "shmat": (30, 196), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    # the kernel's own large doors
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "open_by_handle_at": (304, 265), "chroot": (161, 51),
}  # fmt: skip
"""Call that fails with EPERM -> its number on each architecture; -1: it does not exist there."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Where a filter finds the call's number, the architecture, and the low halves of the first two arguments."""


def _line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _where(call: int, argument: int, test: int, values: Iterable[int], *, allowed: bool) -> bytes:
    """A call that is allowed, or denied, only where an argument is one of the values (or has one of these bits)."""
    listed, other = (_ALLOW, _ERRNO | EPERM) if allowed else (_ERRNO | EPERM, _ALLOW)
    tests = b"".join(_line(test, v, 0, 1) + _line(_RETURN, listed) for v in values)
    body = _line(_LOAD, argument) + tests + _line(_RETURN, other)
    return _line(_EQUAL, call, 0, len(body) // 8) + body


def program(machine: str, pid: int) -> bytes:
    """The seccomp filter of process `pid`."""
    architecture, column = ARCHITECTURES[machine]
    clone, clone3, prctl, prlimit, tgkill, fcntl, ioctl = (
        (56, 220)[column], 435, (157, 167)[column], (302, 261)[column], (234, 131)[column], (72, 25)[column],
        (16, 29)[column],
    )  # fmt: skip
    lines = [
        _line(_LOAD, _ARCHITECTURE), _line(_EQUAL, architecture, 1, 0), _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
        _line(_AT_LEAST, 0x40000000, 0, 1), _line(_RETURN, _ERRNO | EPERM),  # x86: the same calls by other numbers
    ]  # fmt: skip
    for numbers in DENIED.values():
        if numbers[column] >= 0:
            lines += [_line(_EQUAL, numbers[column], 0, 1), _line(_RETURN, _ERRNO | EPERM)]
    lines += [
        _line(_EQUAL, clone3, 0, 1), _line(_RETURN, _ERRNO | ENOSYS),  # the C library then uses clone
        _where(clone, _FIRST, _ANY_BIT, (CLONE_THREAD,), allowed=True),
        _where(prctl, _FIRST, _EQUAL, (PR_SET_PDEATHSIG,), allowed=False),
        _where(prlimit, _FIRST, _EQUAL, (0, pid), allowed=True),
        _where(tgkill, _FIRST, _EQUAL, (pid,), allowed=True),
        _where(fcntl, _SECOND, _EQUAL, (8, 10, 15), allowed=False),  # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals by files
        _where(ioctl, _SECOND, _EQUAL, (0x8901, 0x8902, 0x5412), allowed=False),  # the same, and typing into a terminal
        _line(_RETURN, _ALLOW),
    ]  # fmt: skip
    return b"".join(lines)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def drop_rights() -> None:
    """Give up all capabilities, for good; both filters need that."""
    libc = _libc()
    _check(libc.capset(struct.pack("=II", 0x20080522, 0), bytes(24)), "capset")
    _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def filter_calls() -> bool:
    """Forbid network, processes and signals; False where this machine's calls are not known."""
    if platform.machine() not in ARCHITECTURES:
        return False
    lines = program(platform.machine(), os.getpid())
    given = _Program(len(lines) // 8, lines)
    _check(_libc().prctl(PR_SET_SECCOMP, 2, ctypes.byref(given), 0, 0), "seccomp")
    return True


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Landlock's version -> all rights on files that it knows."""


def filter_files(readable: Iterable[str], writable: Iterable[str] = ("/dev/null",)) -> bool:
    """Allow only these files and folders, and no look into other processes; False where the kernel has no Landlock."""
    libc = _libc()
    version = libc.syscall(_CREATE, None, 0, 1)
    if version < 1:
        return False
    handled = _RIGHTS[max(v for v in _RIGHTS if v <= version)]
    attributes = ctypes.create_string_buffer(struct.pack("=Q", handled), 8)
    rules = _check(libc.syscall(_CREATE, attributes, 8, 0), "landlock")
    for paths, rights in ((readable, _READ | _LIST | _EXECUTE), (writable, _READ | _WRITE)):
        for path in paths:
            try:
                handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            given = rights if os.path.isdir(path) else rights & (_READ | _WRITE | _EXECUTE)
            rule = ctypes.create_string_buffer(struct.pack("=Qi", given, handle), 12)
            _check(libc.syscall(_ADD, rules, 1, rule, 0), f"landlock {path}")
            os.close(handle)
    _check(libc.syscall(_RESTRICT, rules, 0), "landlock")
    os.close(rules)
    return True
