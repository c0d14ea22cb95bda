"""Claims about Eris's bound where sites fail, come back, shrink and grow, also in the middle of a slot."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from tests.builders import node, setup, spec_of
from tests.systems.eris.test_rivals import SLOT, bid, market
from tradewind.engine import bounds
from tradewind.model.decision import Decision, Flow, Plan, Step
from tradewind.model.job import Dataset, Job
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.model.view import Change, View
from tradewind.registry import policies, workloads
from tradewind.systems.eris.offline import offline
from tradewind.systems.mixed.bound.certified import bound as of_mixed_markets
from tradewind.worlds.simulate import simulate

POLICIES = ("eris", "fcfs", "eris-paper", "eris-preemptive", "tiresias", "tiresias-elastic")
SITES, SLOTS = 2, 5


def _data(job: Job) -> Dataset:
    assert isinstance(job.work, Dataset)
    return job.work


def changing(seed: int) -> Scenario:
    """Two sites whose data cannot move, two or three jobs, and changes at any microsecond, some at once."""
    draw = random.Random(seed)
    jobs, at = [], 0
    for index in range(draw.randint(2, 3)):
        chunks = {site: n for site in range(SITES) if (n := draw.randrange(4))} or {0: 1}
        worth = Utility(of="delay_slots", shape="linear", args=(draw.uniform(50, 100), -draw.uniform(0, 15)))
        made = bid(index, chunks, utility=worth, workers_max=draw.choice((2, 1000)))
        work = replace(_data(made), chunk_epochs_per_worker_slot_milli=draw.choice((1000, 2000, 1500)))
        jobs.append(replace(made, arrive_us=at, work=work, traffic_bytes_per_worker_slot=0))
        at += draw.choice((0, 1, SLOT // 3, SLOT, SLOT + 1))
    changes = []
    for _ in range(draw.randint(1, 5)):
        when = draw.choice((0, SLOT, 2 * SLOT - 1, 2 * SLOT, 2 * SLOT + 1, draw.randrange(SLOTS * SLOT)))
        kind, site = draw.choice(("node_down", "node_up", "capacity")), draw.randrange(SITES)
        changes.append(Change(when, kind, site, 0, 1000 * draw.randrange(4) if kind == "capacity" else 0))
    given = market(jobs, gpus=(draw.randint(1, 2), draw.randint(1, 2)), transfer=0, slots=SLOTS)
    return replace(given, changes=tuple(sorted(changes, key=lambda change: change.at_us)))


class Greedy:
    """Plans every job that has no plan, in random order, with all that is free, also from the middle of a slot."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.left: dict[int, dict[int, int]] = {}
        self.plans: dict[int, tuple[Step, ...]] = {}

    def decide(self, view: View) -> Decision:
        made: list[Plan] = []
        taken: dict[tuple[int, int], int] = {}
        for index in self.draw.sample(sorted(view.active), len(view.active)):
            if view.plan(index) is None and self.draw.random() < 0.8:
                job = view.job(index)
                work = _data(job)
                left = self.left.setdefault(index, dict(work.chunks))
                for step in self.plans.pop(index, ()):
                    for flow in step.flows if step.until_us <= view.now_us else ():
                        left[flow.src] -= flow.bytes // work.chunk_bytes
                if steps := tuple(self.steps(view, job, dict(left), taken)):
                    self.plans[index] = steps
                    made.append(Plan(index, steps))
        return Decision(plans=tuple(made))

    def steps(
        self, view: View, job: Job, left: dict[int, int], taken: dict[tuple[int, int], int]
    ) -> Iterator[Step]:
        work = _data(job)
        for slot in range(view.slot, view.setup.slots):
            begin, most = max(view.now_us, slot * SLOT), job.workers_max
            rows = []
            for site in view.setup.hosts:
                room = view.free(site, 0, slot) // 1000 - taken.get((site, slot), 0)
                workers = 0 if view.is_down(site) else min(room, most)
                whole = workers * work.chunk_epochs_per_worker_slot_milli * ((slot + 1) * SLOT - begin)
                chunks = min(left.get(site, 0), whole // (1000 * SLOT))
                if chunks > 0:
                    rows.append((site, workers, chunks))
                    left[site] -= chunks
                    taken[site, slot] = taken.get((site, slot), 0) + workers
                    most -= workers
            if rows:
                yield Step(
                    begin, (slot + 1) * SLOT, tuple(row[0] for row in rows), tuple(row[1] for row in rows),
                    (1, *(0 for _ in rows[1:])),
                    tuple(Flow(site, site, chunks * work.chunk_bytes) for site, _, chunks in rows),
                )  # fmt: skip

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def optimum(given: Scenario) -> float:
    """The most welfare where data stays, by trying everything slot by slot, with what sites have when the slot ends."""
    room: list[tuple[int, ...]] = []
    for slot in range(SLOTS):
        free, down = [each.capacity_milli[0] // 1000 for each in given.setup.nodes], set[int]()
        for change in given.changes:
            if change.at_us < (slot + 1) * SLOT:
                if change.kind == "capacity":
                    free[change.a] = change.value // 1000
                else:
                    (down.add if change.kind == "node_down" else down.discard)(change.a)
        room.append(tuple(0 if site in down else n for site, n in enumerate(free)))

    def needs(job: Job, chunks: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-(-1000 * n // _data(job).chunk_epochs_per_worker_slot_milli) for n in chunks)

    @cache
    def best(slot: int, left: tuple[tuple[int, ...], ...]) -> float:
        if slot == SLOTS:
            return 0.0
        found, ways = 0.0, []
        for job, mine in zip(given.jobs, left, strict=True):
            starts = job.arrive_us // SLOT <= slot
            ways.append([
                each for each in product(*(range(n + 1 if starts else 1) for n in mine))
                if sum(needs(job, each)) <= job.workers_max
            ])  # fmt: skip
        for chosen in product(*ways):
            used = [sum(column) for column in zip(*map(needs, given.jobs, chosen), strict=True)]
            if any(n > most for n, most in zip(used, room[slot], strict=True)):
                continue
            then, usd = [], 0.0
            for job, mine, each in zip(given.jobs, left, chosen, strict=True):
                then.append(tuple(n - take for n, take in zip(mine, each, strict=True)))
                if any(mine) and not any(then[-1]):
                    assert job.utility is not None
                    usd += max(0.0, job.utility.value(slot - job.arrive_us // SLOT))
            found = max(found, usd + best(slot + 1, tuple(then)))
        return found

    def chunks(job: Job) -> tuple[int, ...]:
        return tuple(dict(_data(job).chunks).get(site, 0) for site in range(SITES))

    return best(0, tuple(map(chunks, given.jobs)))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_schedule_through_changes_within_slots_is_worth_more_than_the_bound(first: int) -> None:
    tight = []
    for seed in range(first, first + 20):
        given = changing(seed)
        limit, best = bounds.bound(given), optimum(given)
        assert limit is not None
        assert limit.kind == "certified"
        assert best <= limit.value * (1 + 1e-12), seed
        for again in range(4):
            run = simulate(given, spec_of(Greedy(again)))
            assert run.violations == ()
            assert run.metrics["welfare_usd"] <= best + 1e-9, (seed, again)
        for name in POLICIES:
            assert simulate(given, policies.find(name)).metrics["welfare_usd"] <= best + 1e-9, (seed, name)
        tight.append(best / limit.value if limit.value else 1.0)
    assert sum(tight) / len(tight) > 0.7  # it lets data move, which it cannot here


def test_a_site_that_comes_back_within_a_slot_serves_in_it_and_one_that_is_lost_then_does_not() -> None:
    worth = Utility(of="delay_slots", shape="linear", args=(100.0, -10.0))
    one = bid(0, {0: 1}, utility=worth)
    two = replace(one, work=replace(_data(one), chunk_epochs_per_worker_slot_milli=2000))
    given = market([two], gpus=(1,), transfer=0, slots=4)
    for changes, usd in (
        ((Change(0, "node_down", 0, 0, 0), Change(SLOT // 2, "node_up", 0, 0, 0)), 100.0),
        ((Change(SLOT // 2, "node_down", 0, 0, 0), Change(SLOT, "node_up", 0, 0, 0)), 90.0),
        ((Change(SLOT // 2, "capacity", 0, 0, 0), Change(SLOT, "capacity", 0, 0, 1000)), 90.0),
        ((Change(SLOT, "node_down", 0, 0, 0),), 100.0),
    ):
        each = replace(given, changes=changes)
        limit = bounds.bound(each)
        assert limit is not None
        assert limit.value == pytest.approx(usd)
        assert max(simulate(each, spec_of(Greedy(seed))).metrics["welfare_usd"] for seed in range(5)) == usd


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_tighter_than_the_bound_of_mixed_markets_where_failures_come_with_slots(seed: int) -> None:
    given = workloads.generate("eris", {"sites": 4, "jobs": 8, "slots": 10}, seed)
    slot, host = given.setup.slot_us, given.setup.hosts[seed]
    outage = Change(2 * slot, "node_down", host, 0, 0), Change(5 * slot, "node_up", host, 0, 0)
    given = replace(given, changes=outage)
    ours, theirs = bounds.bound(given), of_mixed_markets(given)
    assert ours is not None
    assert theirs is not None
    run = simulate(given, policies.find("eris-preemptive"))
    assert run.metrics["welfare_usd"] <= ours.value <= theirs.value


def test_what_is_above_a_site_takes_it_down_too() -> None:
    nodes = [node("region", None), node("s0", 2, parent=0), node("s1", 2)]
    where = setup(nodes, slot_us=SLOT, horizon_us=4 * SLOT, objective="welfare_usd")
    given = Scenario(name="tree", setup=replace(where, transfer_bytes_per_slot=0), jobs=(bid(0, {1: 8}),))
    lost = replace(given, changes=(Change(SLOT // 2, "node_down", 0, 0, 0),))
    found = [bounds.bound(each) for each in (given, lost)]
    assert [each.value > 0 for each in found if each is not None] == [True, True]  # its data may move to s1
    both = replace(lost, changes=(*lost.changes, Change(SLOT // 2, "node_down", 2, 0, 0)))
    nothing = bounds.bound(both)
    assert nothing is not None
    assert nothing.value == 0.0


def test_no_plans_of_a_scenario_with_changes_are_called_optimal() -> None:
    given = changing(3)
    assert offline(replace(given, changes=()), 1) is not None
    assert offline(given, 1) is None
