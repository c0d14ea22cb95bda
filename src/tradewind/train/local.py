"""Environments of the ranks of a job on this machine, for studies and tests; `tradewind live` does more."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tradewind.train.contract import SERVER_MODES


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalJob:
    """A job.

    sites       site of every rank; the first are the servers in modes with servers
    servers     how many they are
    folder      directory of checkpoint and reports
    stop_after  total number of iterations
    data        directory with a directory of data for each site; None: there is no such data
    """

    mode: str
    sites: Sequence[str]
    folder: Path
    seed: int
    stop_after: int
    servers: int = 1
    data: Path | None = None


def report_file(job: LocalJob, rank: int) -> Path:
    """Report file of a rank; one per rank and number of ranks."""
    return job.folder / f"report-{len(job.sites)}-{rank}.jsonl"


def environments(job: LocalJob, port: int) -> list[dict[str, str]]:
    """The environment of every rank."""
    first, world = job.servers if job.mode in SERVER_MODES else 0, len(job.sites)
    return [
        {
            "RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TRADEWIND_ROLE": "ps" if rank < first else "worker",
            "TRADEWIND_SERVERS": str(first),
            "TRADEWIND_SITE": job.sites[rank],
            "TRADEWIND_SITES": ",".join(job.sites),
            "TRADEWIND_RING": "" if first else ",".join(f"{r}@{s}" for r, s in enumerate(job.sites)),
            "TRADEWIND_CHECKPOINT_DIR": str(job.folder / "checkpoint"),
            "TRADEWIND_DATA_SHARD": f"{max(0, rank - first)}/{world - first}",
            "TRADEWIND_REPORT": str(report_file(job, rank)),
            "TRADEWIND_INTERFACE": "lo",
            "TRADEWIND_SEED": str(job.seed),
            "TRADEWIND_STOP_AFTER_ITERATIONS": str(job.stop_after),
            **_site_data(job, rank, first),
        }
        for rank in range(world)
    ]


def _site_data(job: LocalJob, rank: int, first: int) -> dict[str, str]:
    """Where the data of a rank's site is, and which worker there the rank is."""
    if job.data is None:
        return {}
    here = [other for other in range(first, len(job.sites)) if job.sites[other] == job.sites[rank]]
    number = here.index(rank) if rank in here else 0
    return {
        "TRADEWIND_DATA_DIR": str(job.data / job.sites[rank]),
        "TRADEWIND_SITE_SHARD": f"{number}/{max(1, len(here))}",
    }


def free_port() -> int:
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
