"""Jobs of several ranks on the loopback interface; ranks are forked from a process that has loaded PyTorch."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tradewind.train import checkpoint
from tradewind.train.local import LocalJob, environments, free_port, report_file
from tradewind.worlds.forkserver import ForkServer

MODULES = ("torch._dynamo", "tradewind.train.ring", "tradewind.train.server_async", "tests.train.writer")
PATIENCE_S = 100.0
SIZE = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is trained, and the site of every rank (the first are the servers in modes with servers)."""

    mode: str
    sites: Sequence[str]
    iterations: int = 12
    seed: int = 1
    arguments: Sequence[str] = ()
    servers: int = 1
    data: Path | None = None


class Ranks:
    """The running ranks of a job."""

    def __init__(self, fork_server: ForkServer, folder: Path, job: Job) -> None:
        self._fork_server, self._folder = fork_server, folder
        self.world = len(job.sites)
        folder.mkdir(parents=True, exist_ok=True)
        self._local = LocalJob(
            mode=job.mode, sites=job.sites, folder=folder, seed=job.seed, stop_after=job.iterations,
            servers=job.servers, data=job.data,
        )  # fmt: skip
        arguments = [
            "--mode",
            job.mode,
            "--size",
            str(SIZE),
            "--batch",
            "24",
            "--samples",
            "240",
            *job.arguments,
        ]
        self.pids = [
            fork_server.start(
                "tradewind.train.__main__:rank", arguments, environment=environment, log=folder / "log"
            )
            for environment in environments(self._local, free_port())
        ]

    def report(self, rank: int) -> list[dict[str, Any]]:
        path = report_file(self._local, rank)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def losses(self, rank: int = 0) -> list[float]:
        return [line["loss"] for line in self.report(rank)]

    def wait(self) -> list[int]:
        codes = self._fork_server.wait_all(self.pids, PATIENCE_S)
        log = (self._folder / "log").read_text()
        print(log)  # shown by pytest where a test fails
        return codes

    def until(self, iteration: int) -> None:
        """Wait until rank 0 has done this many iterations."""
        limit = time.monotonic() + PATIENCE_S
        while not any(line["iteration"] >= iteration for line in self.report(0)):
            assert time.monotonic() < limit, "the job makes no progress"
            time.sleep(0.02)

    def stop(self) -> list[int]:
        for pid in self.pids:
            os.kill(pid, signal.SIGTERM)
        return self.wait()

    def saved_iteration(self) -> int:
        import torch

        found = torch.load(self._folder / "checkpoint" / checkpoint.NAME, weights_only=True)
        return int(found["iteration"])
