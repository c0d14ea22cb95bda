"""A fleet on the machines of an engine, which share a directory with the loop.

The engine only starts programs (worlds.fleets.starter) where the plan puts ranks. All else goes through files in the
state directory, which every machine sees at the same path, as checkpoints must be anyway:

    beat                 the loop keeps changing it; ranks end when it stays the same for `patience_s`
    control/LAUNCH/RANK  of a supervisor: spec.json, claim (made once, so no rank starts twice), alive (keeps changing),
                         stop (asks it to stop), exit

So neither a loop nor an engine that is away does any harm: ranks go on, and are found again.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.worlds.fleet import (
    STOPPED,
    Capability,
    Exit,
    Launch,
    LaunchKey,
    LaunchStatus,
    Observations,
    Wanted,
)
from tradewind.worlds.fleets import starter
from tradewind.worlds.fleets.dispatcher import Dispatcher
from tradewind.worlds.fleets.engine import Engine, EngineGang, EngineTask, Machine
from tradewind.worlds.fleets.processes.fleet import noted, prepare
from tradewind.worlds.fleets.processes.handles import read_claim, read_exit
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Launcher, write_spec
from tradewind.worlds.fleets.processes.reports import ReportReader
from tradewind.worlds.fleets.processes.supervisor import SWEEP_S, claim, put, read_bytes
from tradewind.worlds.fleets.sites import Sites

BEAT_EVERY_S = 0.3
LOOK_EVERY_S = 0.05
SILENT_S = 5.0
"""A rank of which nothing is heard for this time is unreachable."""
CLAIMED = b"claimed"
"""What is heard of a rank that has started and whose supervisor has not said anything else yet."""
MARGIN_S = 2.0
"""Time beyond patience and grace after which a rank without a loop is certain to have ended."""


@dataclass(slots=True)
class RemoteRank:
    """What is known of a rank; `beat` is the content of its file `alive`, first seen at `since_s`."""

    control: Path
    exit: Exit | None = None
    beat: bytes = b""
    since_s: float = 0.0

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing has been heard of it for that long."""
        return time.monotonic() - self.since_s > seconds


@dataclass(slots=True)
class RemoteLaunch:
    """A launch that the loop has not closed."""

    launch: Launch
    gang: EngineGang
    ranks: list[RemoteRank]
    readers: list[ReportReader]
    run: bool = True
    is_over: bool = field(default=False)


class SharedFleet:
    """Runs ranks on an engine. `token` marks the run: a new loop with the same token continues it.

    table  node -> machines, where names and labels do not say
    """

    capabilities: frozenset[Capability] = frozenset({"node_inventory"})

    def __init__(
        self, state: Path, setup: Setup, options: ExecutionOptions, token: str, engine: Engine,
        table: Mapping[str, Sequence[str]],
    ) -> None:  # fmt: skip
        self._options, self._setup = options, setup
        self.launcher = Launcher(state, setup, options, token)
        self._kept = state / "machines"
        self._sites = Sites(setup, table, self._known_machines(engine))
        self._keep_machines()
        self._prefix, self._beat = f"tw-{token[:12]}-", state / "beat"
        self._me, self._beats, self._beat_s = secrets.token_hex(4), 0, -BEAT_EVERY_S
        self.running: dict[LaunchKey, RemoteLaunch] = {}
        self._is_new = True
        self._lease_s = options.patience_s + options.grace_s + SWEEP_S + MARGIN_S
        self._keep_alive()
        self._dispatcher = Dispatcher(engine, self._prefix, _unstarted)

    # ------------------------------------------------------------------ what should run
    def reconcile(self, wanted: Collection[Wanted]) -> None:
        """Have ranks started and stopped (worlds.fleet)."""
        self._keep_alive()
        named = {each.launch.key for each in wanted}
        if self._is_new:
            self._is_new = False
            for control in self.launcher.unfinished([each.launch for each in wanted]):
                _stop(control)
        for key in [key for key in self.running if key not in named]:
            for rank in self.running.pop(key).ranks:
                if rank.exit is None:
                    _stop(rank.control)
        for launch, run, _ in wanted:
            if launch.key not in self.running:
                self.running[launch.key] = self._take_over(launch, run)
            mine = self.running[launch.key]
            if not run and mine.run:
                mine.run = False
                for rank in mine.ranks:
                    _stop(rank.control)
        self._dispatch()

    def _dispatch(self) -> None:
        self._dispatcher.want(
            {each.gang.name: each.gang for each in self.running.values() if not each.is_over}
        )

    def _take_over(self, launch: Launch, run: bool) -> RemoteLaunch:
        """Write what supervisors need, unless they run already; the dispatcher has them started."""
        launcher = self.launcher
        settings, broken = prepare(launcher, launch)
        machines = self._sites.place(launch)
        ranks, tasks = [], []
        for number, rank in enumerate(launch.ranks):
            control = launcher.control(launch, number, 0)
            if not broken and read_claim(control) is None:
                spec = launcher.spec(launch, number, control, settings.port)
                spec |= {"beat": str(self._beat), "cpus": []}
                spec["env"]["MASTER_ADDR"] = machines[0].address
                spec["meet"] = "" if machines[0].address else str(control.parent / "address")
                write_spec(control, spec)
            ranks.append(
                RemoteRank(control, Exit(None, how=broken) if broken else None, since_s=time.monotonic())
            )
            demand = launch.job.server if rank.role == "ps" else launch.job.worker
            names, has = self._setup.resources, machines[number].capacity
            named = tuple((names[r], milli) for r, milli in demand if names[r] in has)
            argv = (sys.executable, "-E", "-S", starter.__file__, str(control))
            tasks.append(EngineTask(machines[number].name, argv, named))
        name = f"{self._prefix}{launch.job.index}-{launch.number}"
        gang = EngineGang(name, tuple(tasks), str(launcher.control(launch, 0, 0).parent), launch.job.tenant)
        home, limit = launcher.job_folder(launch.job), self._options.limits.report_bytes
        readers = [ReportReader(home, rank, offset, limit) for rank, offset in enumerate(settings.offsets)]
        return RemoteLaunch(launch, gang, ranks, readers, is_over=bool(broken))

    # ------------------------------------------------------------------ what runs
    def observe(self, timeout_s: float = 0.0) -> Observations:
        """What is known now; waits until a rank ends or reports, or time is up."""
        until = time.monotonic() + timeout_s
        while True:
            self._keep_alive()
            found = {key: self._status(each) for key, each in self.running.items()}
            ended = any(each.is_over != found[key].is_over for key, each in self.running.items())
            for key, each in self.running.items():
                each.is_over = found[key].is_over
            if ended or any(status.reports for status in found.values()) or time.monotonic() >= until:
                break
            time.sleep(max(0.0, min(LOOK_EVERY_S, until - time.monotonic())))
        if ended:
            self._dispatch()
        down = self._down()
        limits = {key: has for key, has in self._limits().items() if key[0] not in down}
        return Observations(found, down_nodes=down, limits=limits)

    def _status(self, running: RemoteLaunch) -> LaunchStatus:
        silent = set()
        for number, rank in enumerate(running.ranks):
            if rank.exit is None and self._is_silent(running, number):
                silent.add(number)
        is_over = all(rank.exit is not None for rank in running.ranks)
        reports = tuple(
            (number, report)
            for number, reader in enumerate(running.readers)
            for report in (reader.drain() if is_over else reader.read())
        )
        notes = [reader.note for reader in running.readers] or [""] * len(running.ranks)
        exits = tuple(
            noted(rank.exit, note, self._options) for rank, note in zip(running.ranks, notes, strict=True)
        )
        return LaunchStatus(exits, frozenset(silent), reports, self._waiting(running))

    def _is_silent(self, running: RemoteLaunch, number: int) -> bool:
        """Look at a rank: it may have ended; return whether it has started and nothing is heard of it."""
        rank = running.ranks[number]
        rank.exit = read_exit(rank.control)
        if rank.exit is not None:
            return False
        owner = read_claim(rank.control)
        if owner is None:
            return False
        if not owner:
            rank.exit = Exit(STOPPED, asked=True)
            return False
        if (beat := read_bytes(str(rank.control / "alive")) or CLAIMED) != rank.beat:
            rank.beat, rank.since_s = beat, time.monotonic()
        if rank.is_silent(self._lease_s) and self._has_lost(running, number):
            _stop(rank.control)  # should it come back after all
            rank.exit = Exit(None, how=f"was lost: nothing was heard of it for {self._lease_s:.0f} s")
        return rank.exit is None and rank.is_silent(SILENT_S)

    def _waiting(self, running: RemoteLaunch) -> str:
        """Why ranks of a launch have not been started yet; empty where all have."""
        if not running.run or all(rank.beat or rank.exit is not None for rank in running.ranks):
            return ""
        state, name = self._dispatcher.state, running.gang.name
        found = state.refused.get(name) or state.waiting.get(name) or state.problem
        return found or "the cluster has not started it yet, and does not say why"

    def _has_lost(self, running: RemoteLaunch, number: int) -> bool:
        """Whether the engine does not have a rank any more either: it is gone, or its machine is down."""
        state, machine = self._dispatcher.state, running.gang.tasks[number].machine
        if state.gangs is None or state.problem:
            return False
        is_up = any(each.is_up for each in state.machines if each.name == machine)
        ranks = state.gangs.get(running.gang.name, ())
        return (ranks is not None and number not in ranks) or not is_up

    def _down(self) -> frozenset[int]:
        """Nodes all of whose machines are down, unless something of ours is heard there."""
        if self._sites.update(self._dispatcher.state.machines):
            self._keep_machines()
        return self._sites.down() - {node for node, _ in self._heard()}

    def _limits(self) -> Mapping[tuple[int, int], int]:
        """What nodes have, where that is less than the setup says; what is heard on a machine that is down goes on."""
        closed = {machine.name for machine in self._sites.machines if not machine.is_up}
        in_use = Counter[tuple[int, str]]()
        for node, task in self._heard():
            if task.machine in closed:
                in_use.update({(node, name): milli for name, milli in task.demand})
        return self._sites.limits(in_use)

    def _heard(self) -> Iterator[tuple[int, EngineTask]]:
        """Nodes and programs of the ranks that are heard of."""
        for each in self.running.values():
            for number, rank in enumerate(each.ranks):
                if rank.exit is None and rank.beat and not rank.is_silent(SILENT_S):
                    yield each.launch.ranks[number].node, each.gang.tasks[number]

    def _known_machines(self, engine: Engine) -> Sequence[Machine]:
        """The machines that this run knew last, so that an engine that is away does not keep a loop from starting."""
        if self._kept.exists():
            return [Machine(**each) for each in json.loads(self._kept.read_text())]
        return engine.machines()

    def _keep_machines(self) -> None:
        with contextlib.suppress(OSError):
            put(str(self._kept.parent), self._kept.name, [asdict(each) for each in self._sites.machines])

    def _keep_alive(self) -> None:
        """Tell ranks that a loop is there."""
        now = time.monotonic()
        if now - self._beat_s >= BEAT_EVERY_S:
            self._beat_s, self._beats = now, self._beats + 1
            with contextlib.suppress(OSError):  # a full disk; ranks are patient
                self._beat.write_text(f"{self._me} {self._beats}")

    def logs(self, job: Job, rank: int) -> str:
        """What a rank of a job wrote."""
        return self.launcher.read_log(job, rank)

    def close(self) -> None:
        """Let go of it: ranks go on, for the next loop."""
        self._dispatcher.close()
        self.running = {}


def _unstarted(gang: EngineGang) -> list[int]:
    """Ranks that have never been started, and may be."""
    return [rank for rank, task in enumerate(gang.tasks) if read_claim(Path(task.argv[-1])) is None]


def _stop(control: Path) -> None:
    """Ask a supervisor to stop its rank; if it was never started, it never will be."""
    if control.is_dir() and not (control / "exit").exists():
        with contextlib.suppress(OSError):
            put(str(control), "stop", True)
            claim(str(control), 0)
