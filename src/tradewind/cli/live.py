"""`tradewind live`: a policy drives real processes; a view of it while it runs, files and a report at the end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tradewind.cli.show import number
from tradewind.engine.costs import cost_table
from tradewind.engine.intervals import effective
from tradewind.engine.live import LiveLoop
from tradewind.engine.statefile import read_records
from tradewind.files import documents
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import parse_bytes
from tradewind.worlds.live import Look, Request, live
from tradewind.worlds.live_tables import places
from tradewind.worlds.processes.launching import Limits, Place, Rules
from tradewind.worlds.processes.world import ProcessWorld
from tradewind.worlds.simulate import unsettled
from tradewind.worlds.testbed import network as testbed

REFRESH_S = 0.25
MOST_ALARMS = 5


def run(request: Request) -> Run:
    """Runs with a view on stderr: a table that is redrawn on a terminal, plain lines elsewhere."""
    with _view(request.scenario) as look:
        return live(request, look)


def limits(given: Mapping[str, str]) -> Limits:
    """`{"memory_bytes": "2 GB"}` as limits of a rank."""
    known = {each.name: each.default for each in fields(Limits)}
    found: dict[str, int] = {}
    for name, text in given.items():
        if name not in known:
            raise LookupFailed("limit", name, known)
        try:
            found[name] = parse_bytes(text) if not text.isdecimal() else int(text)
        except ValueError:
            raise InputError(
                f"--limit {name}={text}: write a whole number, or bytes with a unit like 2 GB"
            ) from None
    return Limits(**found)


def read_places(path: Path | None) -> dict[str, Place]:
    """Site -> network namespace, address and interface, from a JSON or YAML file."""
    if path is None:
        return {}
    raw = documents.read(path)
    if not isinstance(raw, dict):
        raise InputError("it must hold an object: site -> {namespace, address, interface}", where=str(path))
    found = {}
    for site, place in raw.items():
        if not isinstance(place, dict) or set(place) - {"namespace", "address", "interface"}:
            raise InputError(
                f"{site!r} is {place!r}; allowed are the fields namespace, address and interface",
                where=str(path),
            )
        found[str(site)] = Place(**{str(name): str(value) for name, value in place.items()})
    return found


def places_in_testbed(name: str) -> dict[str, Place]:
    """The sites of a testbed that is up (`tradewind testbed up`)."""
    if not name:
        return {}
    bed = testbed.find(name)
    return {
        site: Place(namespace=bed.namespace(i), address=bed.address(i), interface=testbed.INTERFACE)
        for i, site in enumerate(bed.wan.sites)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How ranks are run, as the command line gives it."""

    limits: Mapping[str, str]
    places: Path | None
    testbed: str
    first_uid: int
    grace_s: float
    retries: int
    stall_s: float

    def rules(self) -> Rules:
        """Checked, as the world wants it."""
        if self.first_uid and os.geteuid() != 0:
            raise InputError(
                "--first-uid starts jobs as other users, which only root may do; run as root or leave it out"
            )
        return Rules(
            limits=limits(self.limits), places=places_in_testbed(self.testbed) | read_places(self.places),
            first_uid=self.first_uid or None, grace_s=self.grace_s, retries=self.retries, stall_s=self.stall_s,
        )  # fmt: skip


# ---------------------------------------------------------------------- the view
@contextmanager
def _view(scenario: Scenario) -> Iterator[Look]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(scenario).look
        return
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        shown = _Screen(scenario, screen)
        yield shown.look


def cost_so_far(scenario: Scenario, loop: LiveLoop) -> float:
    """USD until now, by the same accounts as at the end."""
    so_far = unsettled(scenario, loop.spec, {}, 0, loop.journal)
    usd: Any = cost_table(scenario, so_far, effective(so_far, max(1, loop.ledger.now_us)))["usd"]
    return float(sum(usd))


class _Lines:
    """One line per slot, and every alarm once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._slot, self._alarms = -1, 0

    def look(self, loop: LiveLoop, world: ProcessWorld) -> None:
        """Says what is new."""
        for alarm in loop.alarms[self._alarms :]:
            print(f"alarm: {_who(self._scenario, alarm)}{alarm['text']}", file=sys.stderr, flush=True)
        self._alarms = len(loop.alarms)
        slot = loop.ledger.slot
        if slot == self._slot:
            return
        self._slot = slot
        running = [crew for crew in world.crews.values() if crew.watches]
        ranks = sum(len(crew.ranks) for crew in running)
        usd = cost_so_far(self._scenario, loop)
        where = "; ".join(
            f"{crew.job.id} {places(self._scenario.setup, crew.attempts[-1])}{_pace(crew.reports.last)}"
            for crew in running
        )
        print(
            f"slot {slot}: {len(running)} jobs, {ranks} ranks, {usd:.4g} USD  {where}",
            file=sys.stderr,
            flush=True,
        )


def _pace(last: Any) -> str:
    return "" if last is None else f" it {last.iteration} {last.seconds:.3g} s loss {last.loss:.4g}"


def _who(scenario: Scenario, alarm: Mapping[str, Any]) -> str:
    return f"{scenario.jobs[alarm['job']].id}: " if alarm["job"] >= 0 else ""


class _Screen:
    """Jobs, sites, cost and the last alarms, redrawn in place."""

    def __init__(self, scenario: Scenario, screen: Live) -> None:
        self._scenario, self._screen = scenario, screen
        self._last, self._cost_at, self._cost = 0.0, -1, 0.0

    def look(self, loop: LiveLoop, world: ProcessWorld) -> None:
        """Draws, not too often; the cost is counted once per instant."""
        now = time.monotonic()
        if now - self._last < REFRESH_S:
            return
        self._last = now
        if loop.ledger.now_us != self._cost_at:
            self._cost_at, self._cost = loop.ledger.now_us, cost_so_far(self._scenario, loop)
        self._screen.update(self.draw(loop, world), refresh=True)

    def draw(self, loop: LiveLoop, world: ProcessWorld) -> Group:
        """The whole view."""
        setup = self._scenario.setup
        head = Text(
            f"slot {loop.ledger.slot} of {setup.slots}   cost so far {self._cost:.4f} USD", style="bold"
        )
        lines = [
            Text(f"! {_who(self._scenario, alarm)}{alarm['text']}", style="yellow")
            for alarm in loop.alarms[-MOST_ALARMS:]
        ]
        return Group(head, self._jobs(loop, world), self._sites(loop, world), *lines)

    def _jobs(self, loop: LiveLoop, world: ProcessWorld) -> Table:
        table = Table("job", "state", "ranks", "iteration", "s/iteration", "loss", "attempts")
        for index, crew in sorted(world.crews.items()):
            last = crew.reports.last
            state = "stopping" if crew.stopping and crew.watches else "runs" if crew.watches else "waits"
            if index not in loop.ledger.active:
                state = "given up" if crew.given_up else "over"
            where = places(self._scenario.setup, crew.attempts[-1]) if crew.watches else ""
            figures = (
                ("", "", "")
                if last is None
                else (str(last.iteration), f"{last.seconds:.3g}", f"{last.loss:.4g}")
            )
            table.add_row(crew.job.id, state, where, *figures, str(len(crew.attempts)))
        return table

    def _sites(self, loop: LiveLoop, world: ProcessWorld) -> Table:
        setup = self._scenario.setup
        counts = dict.fromkeys(setup.hosts, 0)
        for crew in world.crews.values():
            for rank in crew.ranks:
                counts[rank.node] = counts.get(rank.node, 0) + 1
        table = Table("site", "ranks", *setup.resources)
        for node, ranks in counts.items():
            free = [
                f"{number(loop.ledger.free(node, r) / 1000)} of {number(loop.ledger.capacity(node, r) / 1000)} free"
                if loop.ledger.capacity(node, r) < 2**61
                else "unlimited"
                for r in range(len(setup.resources))
            ]
            table.add_row(setup.nodes[node].name, str(ranks), *free)
        return table


# ---------------------------------------------------------------------- the command
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks for."""

    policy: str
    params: Mapping[str, str]
    seed: int
    slot_seconds: float
    speed: float
    state: Path | None
    output: Path | None
    report: Path | None
    as_json: bool


def command(scenario: Scenario, asked: Asked, options: Options) -> bool:
    """The whole command; says whether the audit found something."""
    from tradewind import api
    from tradewind.cli import show
    from tradewind.registry import policies
    from tradewind.report import page as report

    if asked.report is not None and asked.report.suffix not in (".html", ".htm"):
        raise InputError(f"--report {asked.report}: the report is an HTML file; end its name in .html")
    if asked.output is not None:
        documents.check_suffix(asked.output)
    state = asked.state or Path("out") / "live" / time.strftime("%Y%m%d-%H%M%S")
    spec = policies.get(asked.policy)
    result = run(
        Request(
            scenario=scenario, spec=spec, params=asked.params, seed=asked.seed,
            state=state.resolve(), slot_seconds=asked.slot_seconds, speed=asked.speed, rules=options.rules(),
        )
    )  # fmt: skip
    result = api.with_bills(scenario, result, spec)
    if asked.output is not None:
        api.save(result, asked.output)
    if asked.report is not None:
        report.write(asked.report, scenario, [result])
    show.run(result, scenario, as_json=asked.as_json, saved=asked.output)
    if not asked.as_json:
        _summary(scenario, result)
        print(f"logs, checkpoints, journal: {state}")
        if read_records(state / "journal")[-1]["kind"] != "closed":
            print(f"stopped before the end; the same command with --state {state} goes on from here")
        if asked.report is not None:
            print(f"report: {asked.report}")
    return bool(result.violations)


def _summary(scenario: Scenario, result: Run) -> None:
    """Attempts with measured beside predicted times, then alarms."""
    console = Console()
    table = Table("job", "slot", "ranks", "ended", "iterations", "measured s", "predicted s", "loss")
    names = ("job", "slot", "places", "why", "iterations", "measured_s", "predicted_s", "loss")
    columns: Any = [result.tables["attempts"][name] for name in names]
    for row in zip(*columns, strict=True):
        job, slot, where, why, count, seconds, model, loss = row
        figures = [
            f"{seconds:.4g}" if count else "–",
            f"{model:.4g}" if model else "–",
            f"{loss:.4g}" if count else "–",
        ]
        table.add_row(scenario.jobs[job].id, str(slot), str(where), str(why), str(count), *figures)
    (console if console.is_terminal else Console(width=140)).print(table)
    said: Any = result.tables["alarms"]
    for at_us, job, text in zip(said["at_us"], said["job"], said["text"], strict=True):
        print(f"alarm at {at_us / 1e6:.1f} s: {scenario.jobs[job].id + ': ' if job >= 0 else ''}{text}")
    for violation in result.violations:
        print(f"audit: {violation}")
