"""The process that works on records ends with the server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_S = 60.0
PROGRAM = """
import asyncio, os, signal
from tradewind.service.clerk import Clerk

if __name__ == "__main__":
    print(asyncio.run(Clerk().do(1, os.getpid)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_it_ends_when_the_server_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], stdout=subprocess.PIPE, timeout=PATIENCE_S * 5
    )
    process, end = int(done.stdout), time.monotonic() + PATIENCE_S
    assert process != os.getpid()
    while _lives(process):
        assert time.monotonic() < end, "it goes on without the server"
        time.sleep(0.1)
