"""The runs whose files `tests.audit.edits` changes: of all systems, live, with held quotes, cancellations, refunds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tradewind as tw
from tests.builders import job, node, scenario, setup
from tests.worlds.live_scenarios import S, broker, market, rings
from tests.worlds.test_live_data import DataCase, with_data
from tradewind import api
from tradewind.audit import Audit
from tradewind.engine.accounts import settle
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.quotes import QuoteTerms
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.decision import Decision, HeldQuote
from tradewind.model.job import Customer, Data, Fixed, Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change, Event
from tradewind.registry import policies, workloads
from tradewind.systems.eris.study.lies import tiny
from tradewind.testing.fleet_fake import FakeCluster, FakeTime, MemoryStore
from tradewind.testing.fleet_programs import program
from tradewind.testing.scenarios import contended_cluster
from tradewind.worlds.assembled import unsettled
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, drive
from tradewind.worlds.simulate import make_policy
from tradewind.worlds.simulated import SimulatedWorld

SMALL = {"jobs": 10, "slots": 6, "servers": 5, "sites": 4, "jobs_per_slot": 3.0, "epochs": 2000}
"""Parameters that keep a scenario small; each workload takes those that it has."""
RUNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "apsp": ("apsp", "apsp", {}),
    "apsp-changing": ("apsp", "shortest-path", {"transport": "cut-through", "hours": 3.0, "vary": 0.5}),
    "broker": ("broker", "broker", {"regions": 3, "slots": 48}),
    "broker-interrupted": ("broker", "skypilot-rule", {"regions": 3, "slots": 48, "interruptions": True}),
    "cluster": ("cluster", "fifo", {}),
    "dps": ("dps", "dps", {}),
    "dps-top": ("dps", "top", {}),
    "eris": ("eris", "eris", {}),
    "eris-paper": ("eris", "eris-paper", {}),
    "eris-preemptive": ("eris", "eris-preemptive", {}),
    "eris-critical": ("eris", "eris-preemptive payments=critical", {}),
    "gadget": ("gadget", "gadget", {}),
    "gadget-failing": ("gadget", "ring-las", {"failing": 0.1}),
    "mixed": ("mixed", "mixed", {}),
    "mixed-failing": ("mixed", "mixed-line", {"slots": 12, "failures": 2}),
    "mlbroker": ("mlbroker", "mlbroker", {}),
    "mlbroker-tenants": ("mlbroker", "mlbroker", {"tenants": 2, "family": "deploy"}),
}
"""Name -> workload, policy (with its own parameters) and parameters of a small run."""


class Case(NamedTuple):
    """A run, its scenario, and its file as plain data."""

    name: str
    scenario: Scenario
    document: dict[str, Any]


def cases(only: str = "") -> Iterator[Case]:
    """The runs that are edited."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        for name, (workload, policy, params) in RUNS.items():
            if name.startswith(only):
                known = workloads.find(workload).params
                small = {key: value for key, value in SMALL.items() if key in known}
                scenario = tw.generate(workload, seed=3, **(small | params))
                called, *words = policy.split()
                own = dict(word.split("=") for word in words)
                yield _case(name, scenario, tw.run(scenario, called, params=own, seed=3, bound=True), path)
        if "failures".startswith(only):
            scenario = contended_cluster(4)
            yield _case("failures", scenario, tw.run(scenario, "las", seed=3, bound=True), path)
        lived = (live_batch, live_broker, live_rings, live_streams, live_sets)
        for make in (*lived, held_quotes, cancellations, refunds, paces):
            if make.__name__.startswith(only):
                yield _case(make.__name__, *make(), path)


def _case(name: str, scenario: Scenario, run: Run, path: Path) -> Case:
    tw.save(run, path)
    assert api.audit(scenario, tw.load_run(path)).violations == ()  # what is noticed later is the edit
    return Case(name, scenario, json.loads(path.read_text()))


# ---------------------------------------------------------------------- live runs
def live_batch() -> tuple[Scenario, Run]:
    """Rounds and fixed jobs whose completion is measured; ranks fail, jobs are given up, a node is lost and found."""
    where = setup([node("a", 2), node("b", 1)], slot_us=S, horizon_us=60 * S, objective="jct_mean_s")
    work: list[Any] = [Rounds(count=8, compute_us=10), Fixed(runtime_us=4 * S)]
    programs = [
        program("count", 8, 0.5),
        program("count", 6, 0.4),
        program("fail", 3),
        program("count", 30, 0.3),
    ]
    jobs = [
        job(i, arrive_us=i * S, work=work[i % 2], command=each)
        for i, each in enumerate((*programs, *programs))
    ]
    given = scenario(jobs, where=where)
    return given, _live(
        given, "fifo", {5: lambda cluster: cluster.lose(1), 9: lambda cluster: cluster.restore(1)}
    )


def live_broker() -> tuple[Scenario, Run]:
    """Streams on a fleet: costs, data, parameter servers."""
    given, policy = broker(program("sleep"))
    return given, _live(given, policy, {})


def live_rings() -> tuple[Scenario, Run]:
    """Rings that report iterations, on a cluster that the run names."""
    given, policy = rings(program("count", 40, 0.3))
    run = _live(given, policy, {})
    assert len(run.tables["measurements"]["job"]) > 2
    return given, replace(run, fleet="a cluster")


def live_streams() -> tuple[Scenario, Run]:
    """Streams whose data is moved, slot by slot."""
    return _with_data(*broker(program("sleep")))


def live_sets() -> tuple[Scenario, Run]:
    """A market of data sets that are moved as planned."""
    return _with_data(*market(program("sleep")))


def _with_data(given: Scenario, policy: str) -> tuple[Scenario, Run]:
    given = with_data(given, Data(source="noise", record_bytes=10))
    with tempfile.TemporaryDirectory() as folder:
        run = DataCase(given, policy, Path(folder)).run()
    assert run.tables["shards"]["job"]
    return given, run


def _live(given: Scenario, policy: str, faults: dict[int, Any]) -> Run:
    """A live run on a fake fleet, so that its bytes are the same each time; faults: slot -> what happens to the cluster."""
    time = FakeTime()
    cluster, left = FakeCluster(time), dict(faults)
    request = LiveRequest(
        scenario=given, spec=policies.find(policy), seed=1, state=Path("/nowhere"), time=time,
        options=ExecutionOptions(backoff_s=0.1, retries=2),
    )  # fmt: skip

    def observe(session: Any, world: Any) -> None:
        for slot in [slot for slot in left if world.clock.now_us() >= slot * S]:
            left.pop(slot)(cluster)

    return drive(request, MemoryStore(), lambda token: cluster.fleet(), observe)


# ---------------------------------------------------------------------- held quotes
class _Thinking(SimulatedWorld):
    """Customers who take their best offer after a while; every third never answers."""

    def hold(self, held: HeldQuote) -> None:
        super().hold(held)
        if held.quote.job % 3:
            self.answer((held.at_us + held.expires_us) // 2, held, self.ask(held.quote))


class _Fickle(SimulatedWorld):
    """Every second customer who bought withdraws its job two slots later."""

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        for plan in decision.plans:
            if plan.job % 2:
                self.cancel(plan.steps[0].from_us + 2 * self._scenario.setup.slot_us + 7, plan.job)
        return super().apply(number, decision)


def held_quotes() -> tuple[Scenario, Run]:
    """A market in which every customer thinks about its quote."""
    given = tiny(3, jobs=10)
    return given, _unscripted(given, _Thinking, QuoteTerms(lambda job: given.setup.slot_us // 4))


def cancellations() -> tuple[Scenario, Run]:
    """A market in which customers withdraw jobs that they paid for."""
    given = tiny(3, jobs=10)
    run = _unscripted(given, _Fickle, QuoteTerms())
    assert "cancelled" in run.tables["events"]["kind"]
    return given, run


def refunds() -> tuple[Scenario, Run]:
    """A market with failures after which a payment is refunded."""
    given = tiny(0, jobs=10)
    slot = given.setup.slot_us
    down = Change(5 * slot // 2, "node_down", 0, 0, 0), Change(4 * slot, "node_up", 0, 0, 0)
    given = replace(given, changes=(*down, Change(5 * slot, "node_down", 1, 0, 0)))
    run = tw.run(given, "eris", seed=3, bound=True)
    sold: Any = run.tables["events"]["kind"]
    assert len(run.tables["payments"]["job"]) < sold.count("accepted")
    return given, run


def paces() -> tuple[Scenario, Run]:
    """Jobs that take other times than they declare, and a policy that learns of it."""
    given = contended_cluster(4)
    told = (
        Customer(runtime_us=each.runtime_us, pace_milli=500 + 400 * i)
        for i, each in enumerate(given.customers)
    )
    given = replace(given, customers=tuple(told))
    run = tw.run(given, "srtf", params={"estimates": "measured"}, seed=3)
    assert run.tables["estimates"]["job"]
    return given, run


def _unscripted(given: Scenario, make: type[SimulatedWorld], terms: QuoteTerms) -> Run:
    """A run of Eris in a world that does more than the scenario says."""
    spec = policies.find("eris")
    world = make(given, slots=True, unscripted=True)
    audit = Audit(given.setup, given, binding=spec.binding)
    state = RunState(Ledger(given.setup), audit, Journal())
    policy, params = make_policy(given, spec, {}, 3)
    Loop(world, Session(state, policy, spec, world.ask, terms)).run()
    assert audit.close().violations == ()
    return settle(given, unsettled(given, spec, params, 3, state.journal))
