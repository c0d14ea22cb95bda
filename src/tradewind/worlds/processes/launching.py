"""Ranks as programs: who they are, what they are told, how they are started (the contract: docs/jobs.md)."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from tradewind.model.decision import Step
from tradewind.model.job import Job, Rounds
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
from tradewind.worlds.processes import supervisor as keeper

KEPT = ("LANG", "LC_ALL", "TZ")
"""What a rank inherits of the loop's environment; everything else it has is written by `environment`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one rank may use; 0 = no limit.

    processes  counts all processes of the rank's user, so it is useful where jobs have users of their own
    cpu_milli  thousandths of a CPU; a job's own demand of a resource called `cpu` goes before
    """

    memory_bytes: int = 0
    open_files: int = 1024
    file_bytes: int = 0
    cpu_seconds: int = 0
    processes: int = 0
    cpu_milli: int = 0
    log_bytes: int = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How a site is reached: a network namespace ("" = the machine's own), an address in it, an interface for gloo."""

    namespace: str = ""
    address: str = "127.0.0.1"
    interface: str = "lo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How commands are run.

    first_uid   job number i runs as user first_uid + i, who owns nothing else (needs root); None: as the loop's user
    grace_s     time between SIGTERM and SIGKILL
    patience_s  a rank whose loop has been gone for so long ends by itself
    retries     how often in a row a job may fail without progress before it is given up
    backoff_s   pause before the first retry; doubles each time
    stall_s     a job that has reported before and says nothing for so long counts as hung; 0: never
    """

    limits: Limits = field(default_factory=Limits)
    places: Mapping[str, Place] = field(default_factory=dict)
    first_uid: int | None = None
    grace_s: float = 10.0
    patience_s: float = 60.0
    retries: int = 3
    backoff_s: float = 0.5
    stall_s: float = 300.0


class Rank(NamedTuple):
    """One process of a job: its role, its node, and its number among the job's ranks on that node."""

    role: str
    node: int
    local: int


def ranks_of(job: Job, step: Step) -> tuple[Rank, ...]:
    """Rank 0 is the parameter server where there is one; workers follow in the order of the step's nodes.

    A parameter server alone trains nothing: without workers no rank is started.
    """
    if not any(step.workers):
        return ()
    ranks: list[Rank] = []
    seen: dict[int, int] = {}
    for role, counts in (("ps", step.servers), ("worker", step.workers)):
        for node, count in zip(step.nodes, counts or (0,) * len(step.nodes), strict=True):
            for _ in range(count):
                ranks.append(Rank(role, node, seen.get(node, 0)))
                seen[node] = seen.get(node, 0) + 1
    return tuple(ranks)


class Launch(NamedTuple):
    """One start of a job's ranks: `number` counts the attempts of the job."""

    job: Job
    number: int
    slot: int
    ranks: tuple[Rank, ...]
    port: int


def folder_name(job: Job) -> str:
    """A directory for a job, whatever its id is made of."""
    return f"{job.index:04d}-{re.sub(r'[^A-Za-z0-9._-]', '_', job.id)[:60]}"


class Launcher:
    """Makes directories, environments and keepers. `token` marks every process of one state directory."""

    def __init__(self, state: Path, setup: Setup, rules: Rules, token: str) -> None:
        self._state, self._setup, self.rules, self._token = state, setup, rules, token
        self._path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
        self._resource = setup.resource_index.get("cpu")
        self._next_cpu = 0
        for name, mode in (("jobs", 0o711), ("logs", 0o700), ("control", 0o700)):
            (state / name).mkdir(exist_ok=True, mode=mode)

    # ------------------------------------------------------------------ places on disk
    def job_folder(self, job: Job) -> Path:
        """Everything that belongs to the job's own user."""
        return self._state / "jobs" / folder_name(job)

    def report(self, job: Job, rank: int) -> Path:
        """Where a rank says how far it is."""
        return self.job_folder(job) / "report" / f"rank-{rank}.jsonl"

    def log(self, job: Job, rank: int) -> Path:
        """What a rank printed."""
        return self._state / "logs" / folder_name(job) / f"rank-{rank}.log"

    def control(self, launch: Launch, rank: int, attempt: int) -> Path:
        """Where a keeper finds its orders and leaves its answers."""
        name = f"{rank}-{attempt}"
        return self._state / "control" / f"{folder_name(launch.job)}-{launch.number}" / name

    def _prepare(self, job: Job, ranks: int) -> None:
        """Directories of a job: 0700 and its own, so that no other job's user can look into them."""
        home, uid = self.job_folder(job), self._uid(job)
        self.log(job, 0).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        wanted = [home, home / "checkpoint", home / "report", *(home / f"rank-{i}" for i in range(ranks))]
        for folder in wanted:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if uid is not None:
                os.chown(folder, uid, uid, follow_symlinks=False)

    def _uid(self, job: Job) -> int | None:
        return None if self.rules.first_uid is None else self.rules.first_uid + job.index

    # ------------------------------------------------------------------ what a rank is told
    def place(self, node: int) -> Place:
        """How a node is reached; a node without a place of its own uses its site's."""
        while node >= 0:
            if (found := self.rules.places.get(self._setup.nodes[node].name)) is not None:
                return found
            node = self._setup.nodes[node].parent
        return Place()

    def environment(self, launch: Launch, number: int) -> dict[str, str]:
        """The whole environment of a rank: names of the contract, the job's own additions, and little else."""
        job, ranks, nodes = launch.job, launch.ranks, self._setup.nodes
        me = ranks[number]
        home = self.job_folder(job)
        workers = [i for i, rank in enumerate(ranks) if rank.role == "worker"]
        shard = f"{workers.index(number)}/{len(workers)}" if me.role == "worker" else f"0/{len(workers)}"
        ring = "" if job.servers else ",".join(f"{i}@{nodes[r.node].name}" for i, r in enumerate(ranks))
        cpu = self._cpu_milli(job, me.role)
        env = {name: os.environ[name] for name in KEPT if name in os.environ}
        env |= {
            "PATH": self._path,
            "HOME": str(home / f"rank-{number}"),
            "TMPDIR": str(home / f"rank-{number}"),
            "OMP_NUM_THREADS": str(math.ceil(cpu / MILLI) if cpu else 1),
        }
        env |= dict(job.env)
        env |= {
            "RANK": str(number),
            "WORLD_SIZE": str(len(ranks)),
            "LOCAL_RANK": str(me.local),
            "MASTER_ADDR": self.place(ranks[0].node).address,
            "MASTER_PORT": str(launch.port),
            "TRADEWIND_ROLE": me.role,
            "TRADEWIND_SITE": nodes[me.node].name,
            "TRADEWIND_SITES": ",".join(nodes[rank.node].name for rank in ranks),
            "TRADEWIND_RING": ring,
            "TRADEWIND_CHECKPOINT_DIR": str(home / "checkpoint"),
            "TRADEWIND_DATA_SHARD": shard,
            "TRADEWIND_JOB": job.id,
            "TRADEWIND_SLOT": str(launch.slot),
            "TRADEWIND_REPORT": str(self.report(job, number)),
            "TRADEWIND_INTERFACE": self.place(me.node).interface,
            "TRADEWIND_SEED": str(job.seed),
            "TRADEWIND_TOKEN": self._token,
        }
        if isinstance(job.work, Rounds) and job.work.unit == "round":
            env.setdefault("TRADEWIND_STOP_AFTER_ITERATIONS", str(job.work.count))
        return env

    def _cpu_milli(self, job: Job, role: str) -> int:
        """Thousandths of a CPU that a rank may use; 0: all there is."""
        demand = dict(job.server if role == "ps" else job.worker)
        own = demand.get(self._resource, 0) if self._resource is not None else 0
        return own or self.rules.limits.cpu_milli

    def _spec(self, launch: Launch, number: int) -> dict[str, object]:
        job, me = launch.job, launch.ranks[number]
        cpus = sorted(os.sched_getaffinity(0))
        milli = self._cpu_milli(job, me.role)
        some = min(len(cpus), math.ceil(milli / MILLI)) or len(cpus)
        first, self._next_cpu = self._next_cpu, (self._next_cpu + some) % len(cpus)
        site = self._setup.nodes[me.node].name
        head = f"--- attempt {launch.number}, slot {launch.slot}: {me.role} {number} of {len(launch.ranks)} at {site}\n"
        return {
            "argv": list(job.command),
            "env": self.environment(launch, number),
            "cwd": str(self.job_folder(job) / f"rank-{number}"),
            "log": str(self.log(job, number)),
            "head": head,
            "limits": asdict(self.rules.limits),
            "uid": self._uid(job),
            "namespace": self.place(me.node).namespace,
            "cpus": [cpus[(first + i) % len(cpus)] for i in range(some)] if some < len(cpus) else [],
            "cpu_milli": milli if milli < some * MILLI else 0,
            "grace_s": self.rules.grace_s,
            "patience_s": self.rules.patience_s,
            "lock": str(self._state / "lock"),
        }

    # ------------------------------------------------------------------ starting
    def prepare(self, launch: Launch) -> None:
        """What must be there before the first rank starts."""
        self._prepare(launch.job, len(launch.ranks))

    def start(self, launch: Launch, number: int, control: Path) -> subprocess.Popen[bytes]:
        """Starts the keeper of a rank; the keeper starts the rank."""
        control.mkdir(parents=True, exist_ok=True, mode=0o700)
        (control / "spec.json").write_text(json.dumps(self._spec(launch, number)))
        with open(control / "complaint", "wb") as complaint:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, str(control)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaint,
                start_new_session=True,
                env={"TRADEWIND_TOKEN": self._token, "PATH": self._path},
            )


def free_port(taken: Sequence[int]) -> int:
    """A port that nobody listens on now and that no other job was given."""
    while True:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
