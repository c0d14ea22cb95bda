"""The command line in real processes, forked from one that has imported it: the import is paid once per test process.

    done = tradewind("run", "s.json", "--policy", "fifo", cwd=folder)

A command gets its own process, arguments, folder, environment, output and exit code, as from a shell. Tests of the start
itself, of signals and of what is imported start Python anew.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

ROOT = Path(__file__).parents[1]
IMPORTED = ("tradewind.cli.main", "tradewind.cli.show", "tradewind.api", "tradewind.report.page")
_parents: dict[int, subprocess.Popen[str]] = {}


def tradewind(
    *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a command; an error where it takes longer than `timeout` seconds."""
    with tempfile.TemporaryDirectory(prefix="tradewind-command-") as name:
        out, err = Path(name) / "out", Path(name) / "err"
        place = {"cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
        code = _ask({"args": args, **place, "out": str(out), "err": str(err)}, timeout)
        return subprocess.CompletedProcess(list(args), code, out.read_text(), err.read_text())


def _ask(request: dict[str, Any], timeout: float) -> int:
    parent = _parents.get(os.getpid())
    if parent is None or parent.poll() is not None:
        parent = _parents[os.getpid()] = subprocess.Popen(
            [sys.executable, "-m", "tests.command"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        atexit.register(_end, parent)
    assert parent.stdin is not None
    assert parent.stdout is not None
    late = Timer(timeout, _end, [parent])
    late.start()
    try:
        print(json.dumps(request), file=parent.stdin, flush=True)
        answer = parent.stdout.readline()
    finally:
        late.cancel()
    if not answer:
        raise subprocess.TimeoutExpired(list(request["args"]), timeout)
    return int(answer)


def _end(parent: subprocess.Popen[str]) -> None:
    """Kill it, with the command that may run."""
    with suppress(ProcessLookupError):
        os.killpg(parent.pid, signal.SIGKILL)
    parent.wait()


def _serve() -> None:
    """Fork a process for every line of stdin and print its exit code."""
    for module in IMPORTED:
        importlib.import_module(module)
    from tradewind.registry import policies, workloads

    policies.all()
    workloads.all()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _command(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _command(request: dict[str, Any]) -> None:
    """Become the command; never returns."""
    code = 1
    try:
        for number, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, request["out"], os.O_WRONLY | os.O_CREAT),
            (2, request["err"], os.O_WRONLY | os.O_CREAT),
        ):
            opened = os.open(path, flags)
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = ["tradewind", *request["args"]]
        from tradewind.cli.main import main

        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
