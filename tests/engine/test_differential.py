"""World, ledger, accounts and audit are separate code: under random valid decisions they must always agree."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from tests.builders import SLOT, link, node, scenario, setup
from tradewind.audit import Audit, compare
from tradewind.engine.accounts import settle
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.model.decision import Decision, Flow, Plan, Route, Step, Verdict
from tradewind.model.hash import scenario_hash
from tradewind.model.job import Customer, Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.units import OPEN
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.worlds.environment import Environment
from tradewind.worlds.progress import Progress
from tradewind.worlds.simulated import SimulatedWorld

TIERS = Tariff(starts=(0.0, 2.0), usd=(9e6, 4e6))


def random_job(draw: random.Random, index: int, at: int) -> tuple[Job, Customer]:
    facts: dict[str, Any] = {"workers_min": 1, "workers_max": draw.choice((1, 3, 5))}
    customer = Customer()
    kind = draw.choice(("fixed", "fixed", "round", "colocated", "ring", "slots", "stream", "dataset"))
    match kind:
        case "fixed":
            work: Any = Fixed(runtime_us=draw.randrange(20, 900))
        case "round":
            work = Rounds(
                count=draw.randrange(1, 30), compute_us=draw.randrange(1, 40), whole_slots=draw.random() < 0.4
            )
        case "colocated":
            work = Rounds(count=draw.randrange(1, 30), compute_us=3, comm="colocated")
            facts |= {
                "architecture": "ps",
                "servers": 1,
                "server": ((0, 500),),
                "worker_bps": 9**7,
                "server_bps": 7**8,
            }
            facts |= {
                "model_bytes": draw.randrange(1, 40),
                "traffic_bytes_per_worker_slot": draw.randrange(0, 10**9),
            }
        case "ring":
            work = Rounds(count=draw.randrange(1, 30), compute_us=7, comm="ring", rate=0.3)
            facts |= {
                "ring_bps": 3_000_000,
                "model_bytes": draw.randrange(1, 90),
                "reduce_bps": draw.choice((0, 7**8)),
            }
        case "slots":
            work = Rounds(count=draw.randrange(2, 20), unit="worker-slot")
            facts |= {"utility": Utility(of="progress", shape="log1p", args=(3.0, 2.0))}
        case "stream":
            work = Stream(bytes_per_worker_slot=10**9)
            facts |= {"workers_max": 9}
            customer = Customer(runtime_us=draw.randrange(50, 900))
        case _:
            work = Dataset(
                chunks=((0, 3), (1, 2)), chunk_bytes=10**8, epochs=1, chunk_epochs_per_worker_slot_milli=1500
            )
            facts |= {"utility": Utility(of="delay_slots", shape="linear", args=(20.0, -1.0))}
    facts |= {"restart_us": draw.choice((0, 0, 35, 130)), "deploy_usd": draw.choice((0.0, 2.5))}
    facts |= {"hold": draw.choice(("until", "through"))}
    return Job(index=index, id=f"j{index}", arrive_us=at, work=work, worker=((0, 1000),), **facts), customer


def random_scenario(draw: random.Random) -> Scenario:
    nodes = [
        node("x", 9),
        node("y", 6),
        node("x1", 5, parent=0, kind="server"),
        node("x2", 5, parent=0, kind="server"),
    ]
    nodes.append(node("y1", 5, parent=1, kind="server"))
    where = setup(
        nodes,
        links=(link(2, 3, 7_000_000, usd_per_gb=1e4), link(3, 4, 5_000_000, shared=True, usd_per_gb=1e5)),
        rent={(0, 0): TIERS, (4, 0): TIERS},
        egress={(0, 1): TIERS, (1, 0): Tariff(usd=(1e6,))},
        horizon_us=draw.choice((2500, 2570)),
    )
    times = sorted(draw.randrange(0, 1500) for _ in range(12))
    pairs = [random_job(draw, i, at) for i, at in enumerate(times)]
    kinds = ("node_down", "node_up", "capacity", "capacity", "bandwidth", "price", "link_down", "link_up")
    changes = []
    for at in sorted(draw.randrange(0, 2500) for _ in range(14)):
        kind = draw.choice(kinds)
        match kind:
            case "capacity":
                changes.append(Change(at, kind, draw.randrange(5), 0, 1000 * draw.randrange(10)))
            case "bandwidth":
                changes.append(
                    Change(at, kind, draw.randrange(2), draw.randrange(3), 10**6 * draw.randrange(8))
                )
            case "price":
                changes.append(
                    Change(at - at % SLOT, kind, 0, 0, draw.randrange(3000), draw.choice((1000, 7)))
                )
            case _:
                changes.append(Change(at, kind, draw.randrange(2 if "link" in kind else 5), 0, 0))
    streams = [job.index for job, _ in pairs if isinstance(job.work, Stream)]
    volumes = {
        (i, slot, draw.randrange(2, 5)): draw.randrange(1, 2 * 10**9) for i in streams for slot in range(25)
    }
    return scenario(
        [job for job, _ in pairs],
        where=where,
        customers=[customer for _, customer in pairs],
        changes=sorted(changes, key=lambda c: c.at_us),
        volumes=[(*key, size) for key, size in volumes.items()],
    )


class Monkey:
    """Proposes anything that looks like a plan; the audit decides which plans are valid."""

    def __init__(self, draw: random.Random, view: Ledger) -> None:
        self.draw, self.view = draw, view

    def step(self, job: Job, begin: int, until: int) -> Step:
        draw = self.draw
        nodes = tuple(draw.sample((2, 3, 4), draw.choice((1, 1, 2))))
        workers = tuple(draw.randrange(1, 4) for _ in nodes)
        if isinstance(job.work, Stream):
            data = self.view.data(job.index)
            return Step(
                begin,
                until,
                (nodes[0],),
                (max(1, sum(b for _, b in data) // 10**9 + 1),),
                flows=tuple(Flow(n, nodes[0], b) for n, b in data),
            )
        if isinstance(job.work, Dataset):
            flows = tuple(Flow(draw.randrange(2), nodes[0], 10**8) for _ in range(draw.randrange(1, 3)))
            return Step(begin, until, nodes, workers, flows=flows)
        servers = tuple(int(i == 0) for i in range(len(nodes))) if job.servers else ()
        routes: tuple[Route, ...] = ()
        if isinstance(job.work, Rounds) and job.work.comm == "ring" and len(nodes) == 2:
            paths = {(2, 3): (0,), (3, 4): (1,), (2, 4): (0, 1)}
            there = paths.get(nodes) or tuple(reversed(paths[nodes[1], nodes[0]]))
            routes = (
                Route(nodes[0], nodes[1], job.ring_bps, there),
                Route(nodes[1], nodes[0], job.ring_bps, tuple(reversed(there))),
            )
        return Step(begin, until, nodes, workers, servers, routes=routes)

    def plan(self, job: Job) -> Plan:
        now, draw = self.view.now_us, self.draw
        next_slot = (now // SLOT + 1) * SLOT
        if isinstance(job.work, Stream):
            return Plan(job.index, (self.step(job, now, next_slot),))
        if draw.random() < 0.1:
            return Plan(job.index, ())
        if draw.random() < 0.5 and not isinstance(job.work, Dataset):
            return Plan(job.index, (self.step(job, now, OPEN),))
        steps, at = [], draw.choice((now, next_slot, next_slot + SLOT))
        for _ in range(draw.randrange(1, 4)):
            until = next_slot if at == now and now % SLOT else at + SLOT
            steps.append(self.step(job, at, until))
            at = until + draw.choice((0, 0, SLOT))
        return Plan(job.index, tuple(steps))


def assert_same(ledger: Ledger, audit: Audit) -> None:
    """The ledger behind the view and the audit's capacity ledger agree; plans that wait to be booked go on waiting."""
    ledger = copy.copy(ledger)
    ledger._used, ledger._unbooked = list(ledger._used), dict(ledger._unbooked)
    ledger._booked = {row: dict(slots) for row, slots in ledger._booked.items()}
    ledger._reserved = dict(ledger._reserved)
    ledger._book_all()
    assert ledger._used == audit._capacity.open
    booked = [
        {(row, slot): n for row, slots in rows.items() for slot, n in slots.items() if n}
        for rows in (ledger._booked, audit._capacity.booked)
    ]
    assert booked[0] == booked[1]


@pytest.mark.parametrize("seed", range(60))
def test_ledgers_agree_under_random_valid_decisions(seed: int) -> None:
    draw = random.Random(seed)
    given = random_scenario(draw)
    world, ledger, audit, journal = (
        SimulatedWorld(given, slots=True),
        Ledger(given.setup),
        Audit(given.setup, given),
        Journal(),
    )
    monkey = Monkey(draw, ledger)
    number, valid, waited = 0, 0, 0
    while events := world.wait():
        assert audit.take(events) == ()
        ledger.take(events)
        journal.events(events)
        decision = Decision()
        for index, job in list(ledger.active.items()):
            stream = isinstance(job.work, Stream)
            if ledger.now_us >= given.setup.horizon_us or (not stream and draw.random() < 0.6):
                continue
            trial = Decision(plans=(*decision.plans, monkey.plan(job)), verdicts=decision.verdicts)
            if _passes(audit, ledger.now_us, trial):
                decision = trial
            elif stream and ledger.data(index) and ledger.plan(index) is None:
                decision = decision._replace(verdicts=(*decision.verdicts, Verdict(index, "no room")))
        if decision == Decision():
            continue
        assert audit.check(ledger.now_us, decision) == ()
        valid += len(decision.plans)
        number += 1
        after = world.apply(number, decision)
        ledger.commit(decision)
        journal.decision(ledger.now_us, decision)
        assert audit.take(after) == ()
        ledger.take(after)
        journal.events(after)
        ledger.clear_events()
        assert_same(ledger, audit)
        if number % 3 < seed % 3:  # somebody asks what is free: plans of one or several instants are booked
            ledger._book_all()
        waited = max(waited, len(ledger._unbooked))
    assert_same(ledger, audit)
    assert valid > 5
    assert waited > 0 or seed % 3 == 2
    report = audit.close()
    assert report.violations == ()
    bare = Run(
        scenario_hash=scenario_hash(given), scenario_name="", policy="monkey", params={}, seed=seed, version="",
        objective="cost_usd", metrics={}, violations=(), tables=journal.tables,
    )  # fmt: skip
    assert compare(report.metrics, settle(given, bare).metrics) == ()


def _passes(audit: Audit, now_us: int, trial: Decision) -> bool:
    """Whether the audit would accept it; leaves the audit unchanged."""
    found: list[Any] = []
    for plan in trial.plans:
        audit._check_plan(audit._records[plan.job], plan, now_us, found)
    if found:
        return False
    capacity, plans = audit._capacity, trial.plans
    for plan in plans:
        capacity.remove(audit._records[plan.job].claims)
    claims: list[Any] = []
    over = None
    for plan in plans:
        for step in plan.steps:
            over = over or capacity.enter(audit._records[plan.job].job, step, claims)
    capacity.remove(claims)
    for plan in plans:
        capacity.add(audit._records[plan.job].claims)
    return over is None


@pytest.mark.parametrize("bug", ["_mark", "_restart", "victims", "_release"])
def test_a_planted_bug_is_found_within_these_seeds(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match bug:
        case "_mark":  # failures take nothing back
            monkeypatch.setattr(Progress, "_mark", lambda self, live, now: None)
        case "_restart":  # moving costs no time
            monkeypatch.setattr(Progress, "_restart", lambda self, live, step, now: 0)
        case "victims":  # nothing is ever cancelled
            monkeypatch.setattr(Environment, "cancelled", lambda self, now, running: [])
        case _:  # the ledger forgets to free what a job had
            monkeypatch.setattr(Ledger, "_release", lambda self, job: None)
    with pytest.raises(AssertionError):
        _all_seeds()


def _all_seeds() -> None:
    for seed in range(60):
        test_ledgers_agree_under_random_valid_decisions(seed)
