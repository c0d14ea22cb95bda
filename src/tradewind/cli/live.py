"""`tradewind live`: runs jobs as real processes, with a view while they run, then files and a report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tradewind.cli.show import number
from tradewind.cli.show_placements import measured_table
from tradewind.cli.terminal import open_console, say
from tradewind.engine.costs import cost_table
from tradewind.engine.intervals import effective
from tradewind.engine.live import LiveSession
from tradewind.files import documents
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.text import shown
from tradewind.model.units import UNLIMITED, dollars, parse_bytes
from tradewind.worlds.assembled import unsettled
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets import PROCESSES
from tradewind.worlds.fleets.processes.fleet import networks_of_testbed
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Limits, SiteNetwork
from tradewind.worlds.gang import Gang
from tradewind.worlds.live import LiveRequest, Observer, live
from tradewind.worlds.tables import given_up, placement

REFRESH_S = 0.25
ALARMS_SHOWN = 5
FAILED, STOPPED = 1, 130
"""Exit codes: a job was given up, or the audit found a violation; the run was stopped before its end."""


def run(request: LiveRequest) -> Run:
    """Run with a view on stderr: a live table on a terminal, plain lines elsewhere."""
    with _view(request.scenario) as observer:
        return live(request, observer)


def limits(given: Mapping[str, str]) -> Limits:
    """Limits of a rank from `{"memory_bytes": "2 GB"}`."""
    known = {each.name: each.default for each in fields(Limits)}
    found: dict[str, int] = {}
    for name, text in given.items():
        if name not in known:
            raise LookupFailed("limit", name, known)
        try:
            found[name] = parse_bytes(text) if not text.isdecimal() else int(text)
        except ValueError:
            raise InputError(
                f"--limit {name}={text}: not a number; write a whole number, or bytes with a unit such as 2 GB"
            ) from None
    return Limits(**found)


def read_networks(path: Path | None) -> dict[str, SiteNetwork]:
    """Read the network of each site from a JSON or YAML file (--places)."""
    if path is None:
        return {}
    raw = documents.read(path)
    if not isinstance(raw, dict):
        raise InputError(
            f"expected an object, site -> {{namespace, address, interface}}; found {type(raw).__name__}",
            where=str(path),
        )
    found = {}
    for site, network in raw.items():
        if not isinstance(network, dict) or set(network) - {"namespace", "address", "interface"}:
            raise InputError(
                f"{site!r} is {network!r}; allowed are the fields namespace, address and interface",
                where=str(path),
            )
        found[str(site)] = SiteNetwork(**{str(name): str(value) for name, value in network.items()})
    return found


def read_sites(path: Path | None) -> dict[str, list[str]]:
    """Read which machines of a cluster are which nodes of a scenario, from a JSON or YAML file (--sites)."""
    if path is None:
        return {}
    raw = documents.read(path)
    table = raw if isinstance(raw, dict) else {"": raw}
    for node, machines in table.items():
        if not isinstance(machines, list) or not all(isinstance(each, str) for each in machines):
            raise InputError(
                f"expected an object, node -> [machine, …]; found {node!r}: {machines!r}", where=str(path)
            )
    return {str(node): machines for node, machines in table.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """Command-line options on how ranks are run."""

    limits: Mapping[str, str]
    places: Path | None
    testbed: str
    first_uid: int
    as_root: bool
    grace_s: float
    retries: int
    stall_s: float

    def checked(self) -> ExecutionOptions:
        """The same, checked and parsed."""
        if self.first_uid and os.geteuid() != 0:
            raise InputError(
                "--first-uid starts jobs as other users, which needs root: run as root or omit it"
            )
        if self.first_uid and self.as_root:
            raise InputError("--first-uid starts jobs as other users, --as-root as root: use one of them")
        return ExecutionOptions(
            limits=limits(self.limits), networks=networks_of_testbed(self.testbed) | read_networks(self.places),
            testbed=self.testbed,
            first_uid=self.first_uid or None, as_root=self.as_root, grace_s=self.grace_s,
            retries=self.retries, stall_s=self.stall_s,
        )  # fmt: skip


# ---------------------------------------------------------------------- view
@contextmanager
def _view(scenario: Scenario) -> Iterator[Observer]:
    console = open_console(stderr=True)
    if not console.is_terminal:
        yield _Lines(scenario).update
        return
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        yield _Screen(scenario, screen).update


def cost_so_far(scenario: Scenario, session: LiveSession) -> float:
    """Cost in USD until now, computed as for the final result."""
    so_far = unsettled(scenario, session.spec, {}, 0, session.journal)
    usd: Any = cost_table(scenario, so_far, effective(so_far, max(1, session.ledger.now_us)))["usd"]
    return float(sum(usd))


class _Lines:
    """Prints a line per slot, and each alarm once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._slot, self._alarms = -1, 0

    def update(self, session: LiveSession, world: FleetWorld) -> None:
        """Print what is new."""
        for alarm in session.alarms[self._alarms :]:
            say(f"alarm: {_who(self._scenario, alarm)}{alarm['text']}", file=sys.stderr)
        self._alarms = len(session.alarms)
        slot = session.ledger.slot
        if slot == self._slot:
            return
        self._slot = slot
        running = [gang for gang in world.gangs.values() if gang.current is not None]
        ranks = sum(len(gang.ranks) for gang in running)
        usd = cost_so_far(self._scenario, session)
        where = "; ".join(
            f"{gang.job.id} {placement(self._scenario.setup, gang.attempts[-1])}{_pace(gang.last)}"
            for gang in running
        )
        say(
            f"slot {slot}: {len(running)} jobs, {ranks} ranks, {dollars(usd)} USD  {where}",
            file=sys.stderr,
        )


def _pace(last: Any) -> str:
    if last is None:
        return ""
    loss = f" loss {last.loss:.4g}" if last.loss else ""
    return f" it {last.iteration} {last.seconds:.3g} s{loss}"


def _loss(value: float) -> str:
    return f"{value:.4g}" if value else "–"


def _who(scenario: Scenario, alarm: Mapping[str, Any]) -> str:
    return f"{scenario.jobs[alarm['job']].id}: " if alarm["job"] >= 0 else ""


def _state(gang: Gang, active: bool) -> str:
    """State of a job, in a word."""
    if not active:
        return "given up" if gang.given_up else "over"
    if gang.current is None:
        return "waiting"
    return "stopping" if gang.stopping else "running"


class _Screen:
    """Shows jobs, sites, cost and the last alarms on a terminal."""

    def __init__(self, scenario: Scenario, screen: Live) -> None:
        self._scenario, self._screen = scenario, screen
        self._last, self._cost_at, self._cost = 0.0, -1, 0.0

    def update(self, session: LiveSession, world: FleetWorld) -> None:
        """Redraw at most every REFRESH_S; compute the cost once per instant."""
        now = time.monotonic()
        if now - self._last < REFRESH_S:
            return
        self._last = now
        if session.ledger.now_us != self._cost_at:
            self._cost_at, self._cost = session.ledger.now_us, cost_so_far(self._scenario, session)
        self._screen.update(self.draw(session, world), refresh=True)

    def draw(self, session: LiveSession, world: FleetWorld) -> Group:
        """The whole view."""
        setup = self._scenario.setup
        head = Text(
            f"slot {session.ledger.slot} of {setup.slots}   cost so far {self._cost:.4f} USD", style="bold"
        )
        lines = [
            Text(shown(f"! {_who(self._scenario, alarm)}{alarm['text']}"), style="yellow")
            for alarm in session.alarms[-ALARMS_SHOWN:]
        ]
        return Group(head, self._jobs(session, world), self._sites(session, world), *lines)

    def _jobs(self, session: LiveSession, world: FleetWorld) -> Table:
        table = Table("job", "state", "ranks", "iteration", "s/iteration", "loss", "attempts")
        for index, gang in sorted(world.gangs.items()):
            last = gang.last
            where = placement(self._scenario.setup, gang.attempts[-1]) if gang.current is not None else ""
            figures = (
                ("", "", "")
                if last is None
                else (str(last.iteration), f"{last.seconds:.3g}", _loss(last.loss))
            )
            table.add_row(
                gang.job.id,
                _state(gang, index in session.ledger.active),
                where,
                *figures,
                str(len(gang.attempts)),
            )
        return table

    def _sites(self, session: LiveSession, world: FleetWorld) -> Table:
        setup = self._scenario.setup
        counts = dict.fromkeys(setup.hosts, 0)
        for gang in world.gangs.values():
            for rank in gang.ranks:
                counts[rank.node] = counts.get(rank.node, 0) + 1
        table = Table("site", "ranks", *setup.resources)
        for node, ranks in counts.items():
            free = [
                f"{number(session.ledger.free(node, r) / 1000)} of {number(session.ledger.capacity(node, r) / 1000)} free"
                if session.ledger.capacity(node, r) < UNLIMITED
                else "unlimited"
                for r in range(len(setup.resources))
            ]
            table.add_row(setup.nodes[node].name, str(ranks), *free)
        return table


# ---------------------------------------------------------------------- command
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """Command-line options on what is run and where results go."""

    policy: str
    params: Mapping[str, str]
    seed: int
    slot_seconds: float
    speed: float
    state: Path | None
    store: str
    output: Path | None
    report: Path | None
    as_json: bool
    isolate: bool = False
    fleet: str = PROCESSES
    sites: Path | None = None
    data_scale: float = 1.0


def command(scenario: Scenario, options: LiveOptions, rank_options: RankOptions) -> int:
    """Run, save, report and print; return the exit code."""
    from tradewind import api
    from tradewind.cli import show
    from tradewind.engine.isolation.policy import isolated
    from tradewind.registry import policies
    from tradewind.report import page as report

    if options.report is not None and options.report.suffix not in (".html", ".htm"):
        raise InputError(f"--report {options.report}: reports are HTML files; use a name that ends in .html")
    if options.output is not None:
        documents.check_suffix(options.output)
    state = options.state or Path("out") / "live" / time.strftime("%Y%m%d-%H%M%S")
    spec = isolated(options.policy) if options.isolate else policies.get(options.policy)
    result = run(
        LiveRequest(
            scenario=scenario, spec=spec, params=options.params, seed=options.seed,
            state=state.resolve(), store=options.store,
            slot_seconds=options.slot_seconds, speed=options.speed, options=rank_options.checked(),
            fleet=options.fleet, sites=read_sites(options.sites), data_scale=options.data_scale,
        )
    )  # fmt: skip
    result = api.with_bills(scenario, result, spec)
    is_closed = _is_closed(options.store or state)
    if options.output is not None:
        api.save(result, options.output)
    if options.report is not None:
        report.write(options.report, scenario, [result])
    show.run(result, scenario, as_json=options.as_json, saved=options.output)
    if not options.as_json:
        _summary(scenario, result)
        say(f"logs, checkpoints{'' if options.store else ', store'}: {state}")
        if not is_closed:
            say(f"stopped before the end; to continue, repeat the command with --state {state}")
        if options.report is not None:
            say(f"report: {options.report}")
    if not is_closed:
        return STOPPED
    return FAILED if result.violations or given_up(result) else 0


def _is_closed(address: str | Path) -> bool:
    """Whether the run of a store has come to its end."""
    from tradewind.store.store import Store

    with Store.open(address) as store:
        return any(record.kind == "closed" for record in store.records(after=max(0, store.head.number - 1)))


def _data_table(scenario: Scenario, result: Run) -> Table:
    """Data per job and pair of sites: planned, as files, carried, and how much of the plan was processed."""
    names = ("job", "src", "dst", "planned_bytes", "bytes", "sent_bytes", "processed_us")
    columns: Any = [result.tables["shards"][name] for name in names]
    sums: dict[tuple[int, int, int], list[int]] = {}
    for job, src, dst, planned, size, sent, processed_us in zip(*columns, strict=True):
        found = sums.setdefault((job, src, dst), [0, 0, 0, 0, 0])
        for i, value in enumerate((1, planned, size, sent, planned if processed_us >= 0 else 0)):
            found[i] += value
    table = Table("job", "from", "to", "shards", "planned bytes", "bytes", "carried", "processed")
    nodes = scenario.setup.nodes
    for (job, src, dst), (count, planned, size, sent, processed) in sorted(sums.items()):
        share = f"{processed / planned:.1%}" if planned else "–"
        cells = (str(value) for value in (count, planned, size, sent))
        table.add_row(scenario.jobs[job].id, nodes[src].name, nodes[dst].name, *cells, share)
    return table


def _summary(scenario: Scenario, result: Run) -> None:
    """Print attempts with measured and predicted times, then alarms and violations."""
    table = Table("job", "slot", "ranks", "ended", "iterations", "measured s", "predicted s", "loss")
    names = ("job", "slot", "places", "why", "iterations", "measured_s", "predicted_s", "loss")
    columns: Any = [result.tables["attempts"][name] for name in names]
    for row in zip(*columns, strict=True):
        job, slot, where, why, count, seconds, model, loss = row
        figures = [
            f"{seconds:.4g}" if count else "–",
            f"{model:.4g}" if model else "–",
            _loss(loss),
        ]
        table.add_row(scenario.jobs[job].id, str(slot), str(where), str(why), str(count), *figures)
    open_console().print(table)
    if "measurements" in result.tables:
        open_console().print(measured_table(scenario, result))
    if "shards" in result.tables:
        open_console().print(_data_table(scenario, result))
    alarms: Any = result.tables["alarms"]
    for at_us, job, text in zip(alarms["at_us"], alarms["job"], alarms["text"], strict=True):
        say(f"alarm at {at_us / 1e6:.1f} s: {scenario.jobs[job].id + ': ' if job >= 0 else ''}{text}")
    for violation in result.violations:
        say(f"audit: {violation}")
