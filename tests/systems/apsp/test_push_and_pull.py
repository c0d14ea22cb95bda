"""One model of push and pull: what the audit accepts, what policies plan and what bounds allow, on random tiny networks.

Links have two bandwidths, are shared or parallel, change and are used by several jobs; models are so small that rounds are
a few microseconds. A search over servers, paths and rates asks the audit itself what fits.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.builders import job, link, node, scenario, setup
from tradewind.api import check
from tradewind.audit.capacity import CapacityLedger
from tradewind.engine.instants import instants, read_steps
from tradewind.engine.ledger import Ledger
from tradewind.model.decision import Decision, Plan, Route, Step
from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.progress import comm_us
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup, transport_fraction
from tradewind.model.spec import Spec
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event
from tradewind.report.bounds import Bounds
from tradewind.systems.apsp.bound import bound
from tradewind.systems.apsp.paper import APSP_PAPER
from tradewind.systems.apsp.policy import APSP
from tradewind.systems.apsp.rivals import LOAD_BALANCING, MOST_CONNECTED, RANDOM_PS, SHORTEST_PATH
from tradewind.worlds.simulate import simulate

ALL = (APSP, APSP_PAPER, RANDOM_PS, MOST_CONNECTED, SHORTEST_PATH, LOAD_BALANCING)
SECOND = 1_000_000
TRANSPORTS = ("store-and-forward", "cut-through", "chunks:3")


def training(index: int, sites: list[int], size: int, arrive_us: int = 0, count: int = 9) -> Job:
    return job(
        index, arrive_us=arrive_us, work=Rounds(count=count, comm="flows", pinned=tuple((v, 1) for v in sites)),
        architecture="ps", servers=1, workers_min=len(sites), workers_max=len(sites), model_bytes=size,
    )  # fmt: skip


def network(links: list[Link], nodes: int, transport: str = "store-and-forward") -> Setup:
    return setup(
        [node(f"n{v}", None) for v in range(nodes)], links=tuple(links), objective="epoch_s",
        slot_us=SECOND, horizon_us=60 * SECOND, transport=transport,
    )  # fmt: skip


def random_links(rng: np.random.Generator, nodes: int) -> list[Link]:
    """A connected network; bandwidths differ by direction, and some links are shared or parallel."""
    ends = [(int(rng.integers(v)), v) for v in range(1, nodes)]
    ends += [(int(a), int(b)) for a, b in rng.integers(nodes, size=(2, 2)) if a != b]
    found = []
    for a, b in ends:
        low, high = (
            int(n) for n in rng.integers(1, 40, size=2) * int(rng.choice([1, 1_000_003, 50_000_000]))
        )
        shared = bool(rng.random() < 0.2)
        found.append(link(b, a, low, low if shared or rng.random() < 0.2 else high, shared=shared))
    return found


def instance(seed: int) -> Scenario:
    """Up to three jobs on a random network, and links whose bandwidth changes."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 5))
    links = random_links(rng, nodes)
    jobs = []
    for index in range(int(rng.integers(1, 4))):
        sites = sorted(rng.choice(nodes, size=int(rng.integers(2, nodes + 1)), replace=False).tolist())
        size = int(rng.choice([1, 7, 175, 1003, 2_000_000]))
        jobs.append(training(index, sites, size, 3 * SECOND * index, 1 << int(rng.integers(1, 24))))
    changes = [
        Change(int(at) * SECOND, "bandwidth", int(rng.integers(len(links))), int(rng.integers(3)), int(bps))
        for at, bps in zip(sorted(rng.integers(1, 9, size=2)), rng.integers(0, 10**9, size=2), strict=True)
    ]
    where = network(links, nodes, str(rng.choice(TRANSPORTS)))
    return scenario(jobs, where=where, changes=changes if rng.random() < 0.5 else [])


def paths(links: tuple[Link, ...], src: int, dst: int) -> list[tuple[int, ...]]:
    """Every path between two nodes that visits none twice."""
    found: list[tuple[int, ...]] = []
    stack: list[tuple[int, tuple[int, ...], frozenset[int]]] = [(src, (), frozenset((src,)))]
    while stack:
        at, path, seen = stack.pop()
        if at == dst:
            found.append(path)
            continue
        for number, each in enumerate(links):
            if at in (each.a, each.b) and (other := each.a + each.b - at) not in seen:
                stack.append((other, (*path, number), seen | {other}))
    return found


def fastest_us(where: Setup, who: Job, ledger: CapacityLedger) -> int | None:
    """Least communication time over servers, paths and whole rates that fit into the audit's ledger; None if none does."""
    assert isinstance(who.work, Rounds)
    sites, best = [v for v, _ in who.work.pinned], None
    for sink in range(len(where.nodes)):
        senders = [v for v in sites if v != sink]
        for pick in product(*(paths(where.links, v, sink) for v in senders)):
            low, high = 0, (1 << 44 if best is None else best)
            while low < high:  # the least time in which the slowest possible rates fit
                middle = (low + high) // 2
                step = at_pace(where, who, sink, dict(zip(senders, pick, strict=True)), middle)
                if step is not None and fits(ledger, who, step):
                    high = middle
                else:
                    low = middle + 1
            if high < (1 << 44 if best is None else best):
                best = high
    return best


def at_pace(
    where: Setup, who: Job, sink: int, routing: dict[int, tuple[int, ...]], limit_us: int
) -> Step | None:
    """The step in which every flow has the least rate that takes at most this long; None where none does."""
    assert isinstance(who.work, Rounds)
    workers = dict(who.work.pinned)
    nodes = tuple(sorted({*workers, sink}))
    servers = tuple(int(v == sink) for v in nodes)
    plain = Step(0, OPEN, nodes, tuple(workers.get(v, 0) for v in nodes), servers)
    routes: list[Route] = []
    for src, path in routing.items():
        weight, whole = transport_fraction(where.transport, len(path))
        # a push of up to limit / 2 + 0.5 us is counted as limit / 2; at exactly a half that holds for even numbers alone
        bps = max(1, -(-2 * weight * 8 * who.model_bytes * SECOND // (whole * (2 * (limit_us // 2) + 1))))
        tries = [plain._replace(routes=(Route(src, sink, bps + n, path),)) for n in range(2)]
        quick = next((step for step in tries if comm_us(where, who, step) <= limit_us), None)
        if quick is None:
            return None
        routes += quick.routes
    return plain._replace(routes=tuple(routes))


def fits(ledger: CapacityLedger, who: Job, step: Step) -> bool:
    claims = ledger.claims(who, step)
    ledger.add(claims)
    over = ledger.exceeded(claims)
    ledger.remove(claims)
    return over is None


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_every_policy_passes_the_audit_and_none_beats_the_bound(spec: object) -> None:
    for seed in range(25):
        given = instance(seed)
        run = simulate(given, spec, seed=seed)  # type: ignore[arg-type]
        assert run.violations == (), seed
        assert check(given, run) == (), seed
        least = bound(given)
        if least is not None and run.tables["steps"]["plan"]:
            assert run.metrics["epoch_s"] >= least.value, seed
        found = Bounds(given).attach(run).bound
        assert found is None or found.ratio >= 1, seed


def test_no_search_over_servers_paths_and_rates_beats_the_bound() -> None:
    tight = 0
    for seed in range(100, 140):
        rng = np.random.default_rng(seed)
        nodes = int(rng.integers(2, 4))
        where = network(random_links(rng, nodes), nodes, TRANSPORTS[seed % 3])
        sites = sorted(rng.choice(nodes, size=int(rng.integers(2, nodes + 1)), replace=False).tolist())
        who = training(0, sites, int(rng.choice([1, 20, 175, 5000])))
        least = bound(scenario([who], where=where))
        best = fastest_us(where, who, CapacityLedger(where))
        if least is not None and best is not None:
            assert round(least.value * SECOND) <= best, seed
            tight += round(least.value * SECOND) == best
    assert tight >= 15


def test_certificates_hold_beside_other_jobs() -> None:
    """The bound that comes with the plan of a second job holds on what the first one leaves, in each direction."""
    seen = 0
    for seed in range(200, 240):
        rng = np.random.default_rng(seed)
        nodes = 3
        where = network(
            [link(a, b, *rng.integers(5, 60, size=2).tolist()) for a, b in ((0, 1), (2, 1), (0, 2))], nodes
        )
        first = training(0, [0, 1], 500, count=10**6)
        second = training(1, [0, 1, 2], int(rng.integers(1, 900)), SECOND, count=10**6)
        given = scenario([first, second], where=where)
        run = simulate(given, APSP)
        assert check(given, run) == ()
        ledger = CapacityLedger(where)
        for each in instants(given, run.tables):
            for plan in each.decision.plans if each.decision is not None else ():
                claimed = next((c for c in run.certificates if c["at_us"] == each.at_us), None)
                who = given.jobs[plan.job]
                if claimed is not None and len(each.decision.plans) == 1:  # type: ignore[union-attr]
                    best = fastest_us(where, who, ledger)
                    assert best is not None
                    assert round(claimed["value"] * SECOND) <= best, seed
                    seen += plan.job == 1
                for step in plan.steps:
                    ledger.add(ledger.claims(who, step))
    assert seen >= 10


def test_what_is_pushed_must_fit_on_the_way_back_summed_over_jobs() -> None:
    where = network([link(0, 1, 100, 40)], 2)
    ledger, view = CapacityLedger(where), Ledger(where)
    jobs = [training(n, [0, 1], 10) for n in range(2)]
    view.take([Event(0, "arrived", n, fact=each) for n, each in enumerate(jobs)])
    there = Step(0, OPEN, (0, 1), (1, 1), (0, 1), (), (Route(0, 1, 25, (0,)),))
    assert [view.link_free(0, way, pulls_back=True) for way in (0, 1)] == [40, 40]
    assert ledger.enter(jobs[0], there, []) is None
    view.commit(Decision(plans=(Plan(0, (there,)),)))
    assert [view.link_free(0, way, pulls_back=True) for way in (0, 1)] == [15, 40]
    assert [view.link_free(0, way) for way in (0, 1)] == [75, 15]
    assert ledger.free_bps(()) == [[15, 40]]
    found = ledger.enter(jobs[1], there, [])
    assert found is not None
    broken = ledger.describe(found, "j1")
    assert (broken.rule, broken.node, broken.amount) == ("capacity.link", "n1 -> n0", 10)


def test_nothing_is_free_on_links_below_a_region_that_is_down_though_it_has_no_capacity() -> None:
    nodes = [node("region", None), node("a", None, parent=0), node("b", None)]
    ledger = CapacityLedger(setup(nodes, links=(link(1, 2, 100, 40),)))
    assert ledger.free_bps(()) == [[40, 40]]
    ledger.change(Change(0, "node_down", 0, 0, 0))
    assert ledger.free_bps(()) == [[0, 0]]


def test_a_ring_and_a_pull_share_the_way_back() -> None:
    where = network([link(0, 1, 100, 100)], 2)
    ledger = CapacityLedger(where)
    server = training(0, [0, 1], 10)
    ring = job(1, work=Rounds(count=9, comm="ring"), workers_max=2, ring_bps=70, model_bytes=1)
    hops = (Route(0, 1, 70, (0,)), Route(1, 0, 70, (0,)))
    assert ledger.enter(ring, Step(0, OPEN, (0, 1), (1, 1), routes=hops), []) is None
    one_way = job(2, work=Rounds(count=9, comm="ring"), workers_max=2)
    ledger = CapacityLedger(where)
    assert ledger.enter(one_way, Step(0, OPEN, (0, 1), (1, 1), routes=hops[1:]), []) is None
    over = ledger.enter(server, Step(0, OPEN, (0, 1), (1, 1), (0, 1), (), (Route(0, 1, 60, (0,)),)), [])
    assert over is not None
    assert ledger.describe(over, "j0").amount == 30


def test_a_round_of_a_few_microseconds_is_not_faster_than_its_bound() -> None:
    """175 bytes over 1 Gbit/s take 1.4 us each way, counted as 1."""
    given = scenario([training(0, [0, 1], 175)], where=network([link(0, 1, 10**9)], 2))
    found = Bounds(given).attach(simulate(given, APSP)).bound
    assert found is not None
    assert found.value == 2e-6
    assert found.ratio == 1.0


def test_an_exact_half_is_rounded_as_the_world_rounds_it() -> None:
    """x.5 us are rounded to even; the bound follows."""
    for size in range(1, 40):
        given = scenario([training(0, [0, 1], size)], where=network([link(0, 1, 16 * 10**6)], 2))
        found = Bounds(given).attach(simulate(given, APSP)).bound
        assert found is not None
        assert found.ratio == 1.0, size


def test_a_remainder_of_one_bit_per_second_beside_gigabits_ends_no_run() -> None:
    given = instance(1311)
    run = simulate(given, RANDOM_PS, seed=1311)
    assert check(given, run) == ()


def busiest(run: Run, where: Setup) -> float:
    """The most that the first plans have of a link if all push and pull at the same time, as part of its rate."""
    used: dict[tuple[int, int], int] = {}
    for step in (each for each in read_steps(run.tables) if each.from_us == 0):
        for route in step.routes:
            for number in route.path:
                for way in (0,) if where.links[number].shared else (0, 1):
                    used[number, way] = used.get((number, way), 0) + route.bps
    rates = [(each.ab_bps, each.ba_bps) for each in where.links]
    return max((bps / rates[number][way] for (number, way), bps in used.items()), default=0.0)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_what_is_reserved_always_fits_both_ways_and_what_is_reserved_by_phases_need_not(spec: Spec) -> None:
    found = {}
    for reserve in ("phases", "always"):
        loads = []
        for seed in range(12):
            drawn = instance(seed)
            at_once = tuple(replace(each, arrive_us=0) for each in drawn.jobs)
            made = replace(drawn, jobs=at_once, changes=())
            run = simulate(made, spec, {"reserve": reserve})
            assert not check(made, run)
            loads.append(busiest(run, made.setup))
        found[reserve] = max(loads)
    assert 0 < found["always"] <= 1 < found["phases"]
