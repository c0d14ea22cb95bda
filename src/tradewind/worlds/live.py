"""Runs a policy live: a fleet, a clock, and a store from which an interrupted run continues."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from tradewind.audit import Audit, compare
from tradewind.engine.accounts import settle
from tradewind.engine.fit import check_fit, check_tenants
from tradewind.engine.ledger import Ledger
from tradewind.engine.live import DiskJournal, LiveLoop, LiveSession, Store
from tradewind.engine.state import RunState
from tradewind.model.codec import plain, read
from tradewind.model.decision import Step
from tradewind.model.errors import InputError
from tradewind.model.hash import scenario_hash
from tradewind.model.job import NO_PRIVATE_DATA, Dataset, Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.tables import INTERRUPTED
from tradewind.store import store as database
from tradewind.store.database import FILE
from tradewind.version import __version__
from tradewind.worlds.assembled import timed, unsettled
from tradewind.worlds.clock import Clock, SystemTime, TimeSource
from tradewind.worlds.data.depot import Depot
from tradewind.worlds.data.opening import check_data, has_data, open_depot
from tradewind.worlds.fleet import Fleet
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets import PROCESSES, open_fleet
from tradewind.worlds.fleets.processes.launch import PROGRAMS, ExecutionOptions, uid_of
from tradewind.worlds.fleets.processes.users import FIRST_UID, USERS, later_uid
from tradewind.worlds.simulate import make_policy
from tradewind.worlds.tables import live_tables

Observer = Callable[[LiveSession, FleetWorld], None]
"""Called regularly with the session and the world, for a live view."""
VERSION = 4
"""Version of the records."""
TRAINER = "tradewind.train"
NEEDED = ("tradewind", "torch")
"""Modules without which the trainer cannot run."""
ANSWER_S = 20.0
"""Time that a Python has to say which modules it finds."""
LOCK_WAIT_S = 2.0
"""Users of jobs if the loop is root: numbers that no distribution gives to people or services for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRequest:
    """A live run.

    state         directory of logs, checkpoints and, unless `store` says otherwise, of the store
    store         address of the store ("": store.db in the state directory); the run that it holds is continued
    slot_seconds  wall-clock seconds per slot (0: as in the scenario)
    speed         factor by which slots pass faster than that
    fleet         where ranks run (worlds.fleets)
    sites         node -> machines of the fleet's cluster; others are found by name or label
    data_scale    bytes of files per byte of the scenario's data
    time          where time comes from; tests inject their own
    """

    scenario: Scenario
    spec: Spec
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    state: Path
    store: str = ""
    slot_seconds: float = 0.0
    speed: float = 1.0
    options: ExecutionOptions = field(default_factory=ExecutionOptions)
    fleet: str = PROCESSES
    sites: Mapping[str, Sequence[str]] = field(default_factory=dict)
    data_scale: float = 1.0
    time: TimeSource = field(default_factory=SystemTime)

    @property
    def cluster(self) -> str:
        """The kind of cluster on which ranks run; empty: processes of this machine."""
        kind = self.fleet.partition(":")[0]
        return "" if kind == PROCESSES else kind

    @property
    def pace(self) -> float:
        """Scenario microseconds per wall-clock second."""
        slot_us = self.scenario.setup.slot_us
        return slot_us / (self.slot_seconds or slot_us / 1e6) * self.speed


def live(request: LiveRequest, observer: Observer | None = None) -> Run:
    """Run a policy on real machines until the scenario ends or Ctrl-C; continue the run that the store holds, if any."""
    if sys.platform != "linux":
        raise InputError(
            f"live runs need Linux (this is {sys.platform}): they use its process control, namespaces and limits"
        )
    _check(request)
    request = replace(request, options=_with_users(request))
    if request.fleet == PROCESSES:
        _check_programs(request)
        check_trainer(request.scenario, request.options)
    create_state(request.state, request.options.first_uid is not None)

    def make_fleet(token: str) -> Fleet:
        setup = request.scenario.setup
        return open_fleet(request.fleet, request.state, setup, request.options, token, request.sites)

    address = request.store or request.state / FILE
    depot = (
        open_depot(request.state, request.scenario.setup, request.options, request.data_scale)
        if has_data(request.scenario)
        else None
    )
    with locked(request.state), database.Store.open(address, write=True) as store:
        return drive(request, store, make_fleet, observer, depot)


def drive(
    request: LiveRequest, store: Store, make_fleet: Callable[[str], Fleet], observer: Observer | None = None,
    depot: Depot | None = None,
) -> Run:  # fmt: skip
    """Run a policy on any fleet, with any store of records; continue the run that the store holds, if any.

    make_fleet gets the token that marks everything which belongs to the run. depot: where the data of jobs is, if anywhere.
    """
    _check(request)
    begin = perf_counter()
    loop, world, params = _assemble(request, store, make_fleet, observer, depot)
    try:
        with _stop_on_signals(world):
            loop.run()
    finally:
        world.fleet.close()
        if depot is not None:
            depot.close()
    session = loop.session
    return timed(_result(request, session, world, params), perf_counter() - begin, session.decide_s)


def _check(request: LiveRequest) -> None:
    check_fit(request.spec, request.scenario)
    check_tenants(request.spec, request.params, request.scenario)
    if not request.spec.online:
        raise InputError(
            f"{request.spec.name} decides in hindsight, so it cannot run live; choose an online policy"
        )
    if request.pace <= 0:
        raise InputError(
            f"--slot-seconds {request.slot_seconds} --speed {request.speed}: slots must take a positive time; use "
            "--slot-seconds 0 (as in the scenario) or more, and a --speed above 0"
        )
    check_commands(request.scenario)
    check_data(request.scenario, request.data_scale)


def _assemble(
    request: LiveRequest, store: Store, make_fleet: Callable[[str], Fleet], observer: Observer | None,
    depot: Depot | None,
) -> tuple[LiveLoop, FleetWorld, dict[str, Any]]:  # fmt: skip
    """Create world and loop, and bring them to the state of the store."""
    scenario, spec = request.scenario, request.spec
    records = store.read()
    policy, params = make_policy(scenario, spec, request.params, request.seed)
    header = _header(request, params)
    if records:
        _check_header(records[0], header, request.state)
    else:
        records = [
            {"kind": "header", **header, "token": secrets.token_hex(16), **_script(scenario, request.cluster)}
        ]
        store.append("header", records[0])
    clock = Clock(request.pace, scenario.setup.slot_us, request.time)

    def write(kind: str, record: dict[str, Any]) -> None:
        if kind == "alarm":
            session.alarms.append(record)
        store.append(kind, record)

    fleet = make_fleet(records[0]["token"])
    world = FleetWorld(
        scenario, fleet, clock, write, slots="slot" in spec.triggers, options=request.options, depot=depot
    )
    audit = Audit(scenario.setup, scenario, measured=True, binding=spec.binding)
    state = RunState(Ledger(scenario.setup), audit, DiskJournal(), tolerant=True)
    session = LiveSession(state, policy, spec, world.ask, store)
    loop = LiveLoop(world, session, request.time.wall)
    clock.set(_replay(session, world, records))
    world.resume()
    if observer is not None:
        world.on_poll = partial(observer, session)
    return loop, world, params


def _replay(session: LiveSession, world: FleetWorld, records: list[dict[str, Any]]) -> int:
    """Replay the records of a store; return the last instant that it names, from which the clock continues."""
    last_us = 0
    for record in records[1:]:
        match record.pop("kind"):
            case "instant":
                session.replay(record, world)
            case "attempt":
                world.replay_attempt(record, read(Step, record["step"], "attempt.step"))
            case "over":
                world.replay_end(record)
            case "data":
                world.data.replay(record)
            case "alarm":
                session.alarms.append(record)
        last_us = max(last_us, record.get("at_us", 0), record.get("ended_us", 0))
    session.finish_replay()
    for held in session.ledger.held.values():
        world.hold(held)
    return last_us


def _result(request: LiveRequest, session: LiveSession, world: FleetWorld, params: Mapping[str, Any]) -> Run:
    """The finished run, with all violations that the audit found."""
    scenario = request.scenario
    run = unsettled(scenario, request.spec, params, request.seed, session.journal)
    now_us = session.ledger.now_us
    stopped = world.stopped and now_us < scenario.setup.horizon_us
    alarms = [*session.alarms, *([{"at_us": now_us, "job": -1, "text": INTERRUPTED}] if stopped else [])]
    tables = {**run.tables, **live_tables(scenario, world, run, alarms, request.pace)}
    run = settle(scenario, replace(run, world="processes", fleet=request.cluster, tables=tables))
    report = session.audit.close()
    unprocessed = world.data.violations(is_interrupted=stopped)
    found = (*session.violations, *unprocessed, *report.violations, *compare(report.metrics, run.metrics))
    return replace(run, violations=found)


def _header(request: LiveRequest, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": VERSION, "by": __version__, "scenario": scenario_hash(request.scenario),
        "policy": request.spec.name, "params": dict(params), "seed": request.seed, "pace": request.pace,
        **({"data_scale": request.data_scale} if has_data(request.scenario) else {}),
    }  # fmt: skip


def _script(scenario: Scenario, cluster: str) -> dict[str, Any]:
    """What the records of instants leave out: name, setup and customers, so that a store can be read on its own."""
    private = {job: plain(each) for job, each in enumerate(scenario.customers) if each != NO_PRIVATE_DATA}
    return {
        "name": scenario.name, "world": "processes", "fleet": cluster, "setup": plain(scenario.setup), "customers": private,
    }  # fmt: skip


def _check_header(old: Mapping[str, Any], new: Mapping[str, Any], state: Path) -> None:
    """Check that a store belongs to the same run."""
    for name, value in new.items():
        if name != "by" and old.get(name) != value:
            raise InputError(
                f"it belongs to a run with {name} {old.get(name)!r}; this run has {value!r}. To continue it, use the same "
                "scenario, policy, parameters, seed and speed; to start a new run, use another --state.",
                where=str(state),
            )


def _with_users(request: LiveRequest) -> ExecutionOptions:
    """Options of a run; a loop that is root gives every job a user of its own, unless told otherwise."""
    options = request.options
    if os.geteuid() != 0 or options.as_root or options.first_uid is not None:
        return options
    later = later_uid()
    if len(request.scenario.jobs) > USERS and later is None:
        raise InputError(
            f"it has {len(request.scenario.jobs)} jobs, and there are {USERS} users for them; choose the first of as many "
            "with --first-uid, or run jobs as root with --as-root",
            where=request.scenario.name,
        )
    return replace(options, first_uid=FIRST_UID, users=USERS, later_uid=later)


def create_state(state: Path, separate_users: bool) -> None:
    """Make the state directory, or take one that exists as it is; jobs that are other users must be able to reach it."""
    try:
        if not state.is_dir():
            state.mkdir(parents=True)
            state.chmod(0o711)  # users of jobs may traverse it, but not list it
        if separate_users and (closed := _closed(state)):
            raise InputError(
                f"every job runs as a user of its own, and none can reach it, because {closed} is closed to others; use "
                f"another --state, allow it (chmod o+x {closed}), or run jobs as root with --as-root",
                where=str(state),
            )
        if (state / "journal").exists():
            raise InputError(
                "it holds a run of an earlier version (a file called journal), which cannot be continued; use another one",
                where=str(state),
            )
    except OSError as error:
        raise InputError(
            f"cannot use it as the state directory: {error.strerror}", where=str(state)
        ) from None


def _closed(path: Path) -> Path | None:
    """The first of a path and the directories above it that other users cannot pass or execute."""
    return next((each for each in (path, *path.parents) if not each.stat().st_mode & 0o001), None)


def _check_programs(request: LiveRequest) -> None:
    """Check that users of jobs can execute their programs, where that can be seen."""
    for job in request.scenario.jobs if request.options.first_uid is not None else ():
        found = shutil.which(job.command[0], path=PROGRAMS)
        if found is not None and (closed := _closed(Path(found).resolve())):
            raise InputError(
                f"jobs[{job.id}] runs {Path(found).resolve()} as a user of its own, which cannot reach it, because {closed} "
                f"is closed to others; allow it (chmod o+x {closed}), or run jobs as root with --as-root"
            )


@contextmanager
def locked(state: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold the lock of the state directory. Supervisors use it to see whether a loop is running."""
    handle = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.fchmod(handle, 0o600)  # who can open it can hold it
    until = time.monotonic() + wait_s
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # a supervisor may be testing the lock
                if time.monotonic() > until:
                    raise InputError(
                        "another live run uses this state directory; stop it first", where=str(state)
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def check_trainer(scenario: Scenario, options: ExecutionOptions) -> None:
    """Say before anything starts that a Python which is to run the reference trainer lacks what it needs."""
    lacks: dict[str, list[str]] = {}
    for job in scenario.jobs:
        if TRAINER not in job.command:
            continue
        program = shutil.which(job.command[0], path=PROGRAMS) or job.command[0]
        if program not in lacks:
            lacks[program] = _lacking(program, job, options)
        if lacks[program]:
            raise InputError(
                f"jobs[{job.id}] runs {TRAINER}, which needs PyTorch; {program} has no {' and no '.join(lacks[program])}. "
                "Run `make install EXTRAS=train`, pip install 'tradewind[train]' with that Python, or name another one."
            )


def _lacking(program: str, job: Job, options: ExecutionOptions) -> list[str]:
    """Modules that the trainer needs and a Python does not find, asked as the job's user; none where it cannot be asked."""
    if Path(program).parent == Path(sys.executable).parent and not job.env:
        return [name for name in NEEDED if find_spec(name) is None]
    if not Path(program).name.startswith("python"):
        return []
    code = f"from importlib.util import find_spec; print(*[n for n in {NEEDED} if find_spec(n) is None])"
    uid = uid_of(options, job)
    user: Any = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    environment = {"PATH": PROGRAMS, **dict(job.env)}
    try:
        said = subprocess.run(
            [program, "-c", code], cwd="/", env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=ANSWER_S, check=True, **user,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    return [name for name in NEEDED if name in said.stdout.split()]


def check_commands(scenario: Scenario) -> None:
    """Check that every job has a command, and a parameter server where its plans need one."""
    for job in scenario.jobs:
        if not job.command:
            raise InputError(
                f"jobs[{job.id}] has no command, so it cannot be started. Add command: [program, argument, …] "
                "(docs/jobs.md), or use `tradewind run` to simulate."
            )
        if isinstance(job.work, Dataset) and job.servers == 0 and job.architecture == "ps":
            raise InputError(f"jobs[{job.id}] has architecture ps but no parameter server. Set servers to 1.")


@contextmanager
def _stop_on_signals(world: FleetWorld) -> Iterator[None]:
    """On Ctrl-C or SIGTERM, end the run properly: ranks write checkpoints, the run file is written."""

    def stop(*_: object) -> None:
        world.interrupt()

    old = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in old.items():
            signal.signal(number, before)
