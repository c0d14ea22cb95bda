"""Starts ranks: their environment, directories, limits and supervisors (contract: docs/jobs.md)."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import stat
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
from tradewind.worlds.data.folders import DataFolders
from tradewind.worlds.data.shards import data_node
from tradewind.worlds.fleet import Launch
from tradewind.worlds.fleets.processes import supervisor
from tradewind.worlds.fleets.processes.groups import groups
from tradewind.worlds.fleets.processes.reports import FOLDER, file_name
from tradewind.worlds.fleets.processes.users import LATER_USERS
from tradewind.worlds.gang import RetryOptions

PORTS_KEPT = 1000
"""A port is not given to one of this many next launches."""
PROGRAMS = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
"""Where programs are searched."""
INHERITED = ("LANG", "LC_ALL", "TZ")
"""Variables that a rank inherits from the control loop; `environment` sets all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of one rank; 0 = no limit.

    processes     processes and threads at a time; needs control groups, or one user per job, which then counts all ranks
    report_bytes  of one launch; what a rank reports beyond is ignored
    cpu_milli     thousandths of a CPU; a job's demand of a resource called `cpu` takes precedence
    """

    memory_bytes: int = 0
    open_files: int = 1024
    file_bytes: int = 0
    cpu_seconds: int = 0
    processes: int = 1024
    cpu_milli: int = 0
    log_bytes: int = 4_000_000
    report_bytes: int = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNetwork:
    """Network of a site: its namespace ("" = the machine's own), its address there, the interface for gloo."""

    namespace: str = ""
    address: str = "127.0.0.1"
    interface: str = "lo"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions(RetryOptions):
    """How commands are run, and started again when they fail (RetryOptions).

    networks    network of each site by node name; others use the machine's own
    testbed     name of the testbed that these are; it carries out the routes of plans
    first_uid   job i runs as user first_uid + i (needs root); None: as the user of the control loop, unless it is root
    users       number of such users; 0: one for every job
    later_uid   user of the job after these, job `users`, and so on; None: later jobs use the first ones again
    as_root     if the loop is root, jobs are too; without it they get users of their own
    grace_s     time between SIGTERM and SIGKILL
    patience_s  a rank without a control loop is terminated after this time
    """

    limits: Limits = field(default_factory=Limits)
    networks: Mapping[str, SiteNetwork] = field(default_factory=dict)
    testbed: str = ""
    first_uid: int | None = None
    users: int = 0
    later_uid: int | None = None
    as_root: bool = False
    grace_s: float = 10.0
    patience_s: float = 60.0


def uid_of(options: ExecutionOptions, job: Job) -> int | None:
    """User of a job; None: that of the control loop."""
    first, users, later = options.first_uid, options.users, options.later_uid
    if first is None or not users or job.home < users:
        return None if first is None else first + job.home
    return first + job.home % users if later is None else later + (job.home - users) % LATER_USERS


class LaunchSettings(NamedTuple):
    """What is fixed when a launch begins: a port for its ranks, and the size of each rank's report file."""

    port: int
    offsets: tuple[int, ...]


def folder_name(job: Job) -> str:
    """Directory name of a job, safe for any id."""
    return folder_of(job.home, job.id)


def folder_of(index: int, name: str) -> str:
    """Directory name of the job with this number and id."""
    return f"{index:04d}-{re.sub(r'[^A-Za-z0-9._-]', '_', name)[:60]}"


def log_path(state: Path, index: int, name: str, rank: int) -> Path:
    """Where the output of a rank is."""
    return state / "logs" / folder_of(index, name) / f"rank-{rank}.log"


class Launcher:
    """Creates directories, environments and supervisors. `token` marks all processes of one state directory."""

    def __init__(self, state: Path, setup: Setup, options: ExecutionOptions, token: str) -> None:
        self._state, self._setup, self.options, self._token = state, setup, options, token
        self._data = DataFolders(state, setup, options.first_uid)
        self._resource = setup.resource_index.get("cpu")
        self._next_cpu = 0
        self.own_network: Callable[[Job, SiteNetwork], SiteNetwork] = lambda _, network: network
        """Network of a job at a site, where each has its own."""
        self._ports: deque[int] = deque(maxlen=PORTS_KEPT)
        self._own()
        for name, mode in (("jobs", 0o711), ("logs", 0o700), ("control", 0o700)):
            (state / name).mkdir(exist_ok=True, mode=mode)

    def _own(self) -> None:
        """Take a state directory for this run; refuse one with files of another, whose exits would be taken for ours."""
        mine = self._state / "run"
        if not mine.exists() and not any((self._state / name).exists() for name in ("jobs", "control")):
            supervisor.put(str(self._state), mine.name, self._token)
        if not mine.is_file() or mine.read_bytes() != json.dumps(self._token).encode():
            raise InputError(
                "it holds the files of another run; use another --state, or the --store with which that run was started",
                where=str(self._state),
            )

    # ------------------------------------------------------------------ paths
    def job_folder(self, job: Job) -> Path:
        """Directory owned by the job's user."""
        return self._state / "jobs" / folder_name(job)

    def report(self, job: Job, rank: int) -> Path:
        """File to which a rank appends its progress."""
        return self.job_folder(job) / "report" / file_name(rank)

    def log(self, job: Job, rank: int) -> Path:
        """Output of a rank."""
        return log_path(self._state, job.home, job.id, rank)

    def read_log(self, job: Job, rank: int) -> str:
        """Output of a rank: the log before the last rotation, then the log."""
        path = self.log(job, rank)
        found = [each for each in (path.with_name(path.name + ".1"), path) if each.exists()]
        return "".join(each.read_text(errors="replace") for each in found)

    def _folder(self, launch: Launch) -> Path:
        return self._state / "control" / f"{folder_of(launch.job.index, launch.job.id)}-{launch.number}"

    def control(self, launch: Launch, rank: int, attempt: int) -> Path:
        """Directory with the spec of a supervisor and the files it writes."""
        return self._folder(launch) / f"{rank}-{attempt}"

    def tries(self, launch: Launch, rank: int) -> int:
        """Number of the last try to start a rank; -1 if there was none."""
        tries = -1
        while self.control(launch, rank, tries + 1).is_dir():
            tries += 1
        return tries

    def unfinished(self, known: Sequence[Launch]) -> list[Path]:
        """Control directories of ranks of other launches that are not known to have ended."""
        names = {self._folder(launch).name for launch in known}
        others = (each for each in (self._state / "control").iterdir() if each.name not in names)
        return [
            spec.parent
            for each in others
            for spec in each.glob("*/spec.json")
            if not (spec.parent / "exit").exists()
        ]

    def prepare(self, launch: Launch) -> LaunchSettings:
        """Create the job's directories, readable by its own user only, and choose a port, once per launch."""
        job, ranks = launch.job, len(launch.ranks)
        self.log(job, 0).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make_folders(job, ("checkpoint", "report", *(f"rank-{i}" for i in range(ranks))))
        folder = self._folder(launch)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            port, *sizes = json.loads((folder / "settings").read_text())
        except FileNotFoundError:
            port, sizes = free_port(self._ports), [_size(self.report(job, rank)) for rank in range(ranks)]
            supervisor.put(str(folder), "settings", [port, *sizes])
        self._ports.append(port)
        return LaunchSettings(port, tuple(sizes))

    def _make_folders(self, job: Job, names: Sequence[str]) -> None:
        """Make a job's directories. What the job put in their place is removed; no link is followed."""
        parents = [os.open(self._state / "jobs", FOLDER)]
        try:
            _make_folder(folder_name(job), parents[0], self.uid(job))
            parents.append(os.open(folder_name(job), FOLDER, dir_fd=parents[0]))
            for name in names:
                _make_folder(name, parents[1], self.uid(job))
        finally:
            for parent in parents:
                os.close(parent)

    def uid(self, job: Job) -> int | None:
        """User of a job; None: that of the control loop."""
        return uid_of(self.options, job)

    # ------------------------------------------------------------------ environment
    def network(self, node: int) -> SiteNetwork:
        """Network of a node: its own, else that of the nearest ancestor."""
        while node >= 0:
            if (found := self.options.networks.get(self._setup.nodes[node].name)) is not None:
                return found
            node = self._setup.nodes[node].parent
        return SiteNetwork()

    def environment(self, launch: Launch, number: int, port: int) -> dict[str, str]:
        """Complete environment of a rank: the contract, the job's `env` and a few inherited variables."""
        job, ranks, nodes = launch.job, launch.ranks, self._setup.nodes
        rank = ranks[number]
        home = self.job_folder(job)
        workers = [i for i, r in enumerate(ranks) if r.role == "worker"]
        shard = f"{workers.index(number)}/{len(workers)}" if rank.role == "worker" else f"0/{len(workers)}"
        here = [i for i in workers if ranks[i].node == rank.node]
        site_shard = f"{here.index(number)}/{len(here)}" if rank.role == "worker" else f"0/{len(here)}"
        ring = "" if job.servers else ",".join(f"{i}@{nodes[r.node].name}" for i, r in enumerate(ranks))
        cpu = self._cpu_milli(job, rank.role)
        env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        env |= {
            "PATH": PROGRAMS,
            "HOME": str(home / f"rank-{number}"),
            "TMPDIR": str(home / f"rank-{number}"),
            "OMP_NUM_THREADS": str(math.ceil(cpu / MILLI) if cpu else 1),
        }
        env |= dict(job.env)
        env |= {
            "RANK": str(number),
            "WORLD_SIZE": str(len(ranks)),
            "LOCAL_RANK": str(rank.local),
            "MASTER_ADDR": self.own_network(job, self.network(ranks[0].node)).address,
            "MASTER_PORT": str(port),
            "TRADEWIND_ROLE": rank.role,
            "TRADEWIND_SERVERS": str(len(ranks) - len(workers)),
            "TRADEWIND_SITE": nodes[rank.node].name,
            "TRADEWIND_SITES": ",".join(nodes[r.node].name for r in ranks),
            "TRADEWIND_RING": ring,
            "TRADEWIND_CHECKPOINT_DIR": str(home / "checkpoint"),
            "TRADEWIND_DATA_SHARD": shard,
            "TRADEWIND_SITE_SHARD": site_shard,
            "TRADEWIND_JOB": job.id,
            "TRADEWIND_SLOT": str(launch.slot),
            "TRADEWIND_REPORT": str(self.report(job, number)),
            "TRADEWIND_INTERFACE": self.own_network(job, self.network(rank.node)).interface,
            "TRADEWIND_SEED": str(job.seed),
            "TRADEWIND_TOKEN": self._token,
        }
        if job.data is not None:
            site = self._data.site(data_node(self._setup, job, rank.node))
            env["TRADEWIND_DATA_DIR"] = str(site / folder_name(job))
        if isinstance(job.work, Rounds) and job.work.unit == "round":
            env.setdefault("TRADEWIND_STOP_AFTER_ITERATIONS", str(job.work.count))
        return env

    def _cpu_milli(self, job: Job, role: str) -> int:
        """Thousandths of a CPU that a rank may use; 0: no limit."""
        demand = dict(job.server if role == "ps" else job.worker)
        own = demand.get(self._resource, 0) if self._resource is not None else 0
        return own or self.options.limits.cpu_milli

    def spec(self, launch: Launch, number: int, control: Path, port: int) -> dict[str, Any]:
        """What the supervisor of a rank needs to know."""
        job, rank = launch.job, launch.ranks[number]
        limits = asdict(self.options.limits)
        limits["processes"] *= len(launch.ranks) if self.uid(job) is not None else 0
        group = f"tradewind-{self._token[:32]}-{job.index}-{launch.number}-{control.name}"
        cpus = sorted(os.sched_getaffinity(0))
        milli = self._cpu_milli(job, rank.role)
        some = min(len(cpus), math.ceil(milli / MILLI)) or len(cpus)
        first, self._next_cpu = self._next_cpu, (self._next_cpu + some) % len(cpus)
        site = self._setup.nodes[rank.node].name
        head = f"--- attempt {launch.number}, slot {launch.slot}: {rank.role} {number} of {len(launch.ranks)} at {site}\n"
        return {
            "argv": list(job.command),
            "env": self.environment(launch, number, port),
            "cwd": str(self.job_folder(job) / f"rank-{number}"),
            "log": str(self.log(job, number)),
            "head": head,
            "limits": limits,
            "groups": groups(group),
            "group_processes": self.options.limits.processes,
            "uid": self.uid(job),
            "site_groups": self._site_groups(job, rank.node),
            "namespace": self.network(rank.node).namespace,
            "cpus": [cpus[(first + i) % len(cpus)] for i in range(some)] if some < len(cpus) else [],
            "cpu_milli": milli if milli < some * MILLI else 0,
            "grace_s": self.options.grace_s,
            "patience_s": self.options.patience_s,
            "lock": str(self._state / "lock"),
            "beat": "",
        }

    def _site_groups(self, job: Job, node: int) -> list[int]:
        """Groups of a rank beside that of its job: the group of its site, where it has data."""
        group = self._data.group(data_node(self._setup, job, node)) if job.data is not None else None
        return [] if group is None else [group]

    # ------------------------------------------------------------------ starting
    def start(self, launch: Launch, number: int, control: Path, port: int) -> subprocess.Popen[bytes]:
        """Start the supervisor of a rank, which starts the command."""
        write_spec(control, self.spec(launch, number, control, port))
        with open(control / "complaint", "wb") as errors:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(control)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env={"TRADEWIND_TOKEN": self._token, "PATH": PROGRAMS},
            )


def write_spec(control: Path, spec: Mapping[str, Any]) -> None:
    """Write what a supervisor needs to know into its control directory; one that starts now sees all of it, or what was."""
    control.mkdir(parents=True, exist_ok=True, mode=0o700)
    written = control / "spec.json.tmp"
    written.write_text(json.dumps(spec))
    written.replace(control / "spec.json")


def _size(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _make_folder(name: str, parent: int, uid: int | None) -> None:
    """Make a directory in an open one, in place of anything else."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            os.mkdir(name, 0o700, dir_fd=parent)
    if uid is not None:
        os.chown(name, uid, uid, dir_fd=parent, follow_symlinks=False)


def free_port(taken: Collection[int]) -> int:
    """A free port that no recent launch was given."""
    while True:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
