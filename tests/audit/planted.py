"""One decision per rule that breaks it, the violation expected, and a similar decision that is valid."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests import offers
from tests.builders import SLOT, decision, job, link, node, plan, run_at, scenario, setup
from tradewind.model.decision import Decision, Flow, Plan, Route, Step, Verdict
from tradewind.model.job import Customer, Dataset, Fixed, Rounds, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.tenant import SpendCap
from tradewind.model.view import Change

LONG = Fixed(runtime_us=900)


@dataclass(frozen=True, kw_only=True)
class Planted:
    """At `at` us, after the decisions in `before`, `bad` breaks `rule` as described and `good` breaks none."""

    rule: str
    bad: Decision
    good: Decision
    given: Scenario
    job: str = "j0"
    node: str = ""
    slot: int = 0
    amount: float = 0.0
    at: int = 0
    before: dict[int, Decision] = field(default_factory=dict)
    note: str = ""


def plain(**more: Any) -> Scenario:
    return scenario([job(0, work=LONG, **more), job(1, work=LONG, arrive_us=50)])


def rolling(window: int) -> Scenario:
    found = plain()
    return replace(found, setup=replace(found.setup, window_slots=window))


def form() -> list[Planted]:
    """Rules of form, time, workers."""
    good = decision(plan(0, run_at(0)))
    nodes = [node("rack", 8, kind="rack"), node("s1", parent=0, kind="server"), node("s2", parent=0)]
    racks = scenario([job(0, work=LONG)], where=setup(nodes))

    def case(rule: str, step: Step, **more: Any) -> Planted:
        facts: dict[str, Any] = {"good": good, "given": plain(workers_max=3)}
        return Planted(rule=rule, bad=decision(plan(0, step)), **(facts | more))

    bound = run_at(0, until=SLOT)
    return [
        case("form.lengths", run_at(0, (0, 1), (1,))),
        case("form.lengths", run_at(0, (0,), (1,), servers=(0, 0)), note="servers"),
        case("form.node", run_at(0, (2,))),
        case("form.node", run_at(0, (-1,)), note="negative"),
        case("form.node", run_at(0, ("a",))),  # type: ignore[arg-type] # a policy's mistake, on purpose
        case(
            "form.node",
            run_at(0, (0,)),
            node="rack",
            given=racks,
            good=decision(plan(0, run_at(0, (1,)))),
            note="rack",
        ),
        case("form.node_once", run_at(0, (0, 0), (1, 1))),
        case("form.count", run_at(0, (0, 1), (2, -1))),
        case("form.count", run_at(0, (0,), (1.0,))),  # type: ignore[arg-type] # a policy's mistake, on purpose
        case("form.count", run_at(0, (0,), (True,)), note="bool"),
        case("form.flow", run_at(0, flows=(Flow(0, 0, 5),)), note="no data"),
        case("form.usd", run_at(0, usd=float("nan"))),
        case("time.order", run_at(-1)),
        case("time.order", run_at(0.0), note="float"),  # type: ignore[arg-type] # a policy's mistake, on purpose
        case("time.order", run_at(0, until=0), note="empty"),
        Planted(
            rule="time.order",
            given=plain(),
            good=decision(plan(0, bound)),
            bad=decision(plan(0, run_at(0, until=200), run_at(100, until=300))),
            note="overlap",
        ),
        case("time.grid", run_at(30, until=100)),
        case("time.grid", run_at(0, until=130), note="end"),
        case("time.grid", run_at(100), note="open-ended later"),
        case("time.horizon", run_at(0, until=10_100)),
        case("time.window", run_at(0, until=5 * SLOT), given=rolling(4), good=decision(plan(0, run_at(0, until=4 * SLOT)))),
        case("time.horizon", run_at(0, until=10_100), given=rolling(400), note="and a window"),
        case("workers.range", run_at(0, (0,), (4,)), amount=1),
        case("workers.range", run_at(0), given=plain(workers_min=2, workers_max=3), amount=-1, note="few",
             good=decision(plan(0, run_at(0, (0,), (2,))))),
        case("workers.none", run_at(0, (0,), (0,))),
        case("servers.number", run_at(0, servers=(1,)), amount=1, note="ring"),
        case("workers.none", run_at(200, (), (), until=300), slot=2, note="no place"),
    ]  # fmt: skip


def places() -> list[Planted]:
    """Servers, allowed places, capacity of nodes."""
    ps = scenario([job(0, work=LONG, architecture="ps", servers=2, server=((0, 500),))])
    nodes = [node("rack", 3, kind="rack"), node("s1", parent=0), node("s2", parent=0)]
    racks = scenario([job(0, work=LONG, workers_max=4)], where=setup(nodes))
    pair = scenario([job(0, work=LONG, workers_max=4), job(1, work=LONG, workers_max=4, arrive_us=50)])
    stop = Change(70, "node_down", 0, 0, 0)
    failing = scenario([job(0, work=LONG), job(1, work=LONG, arrive_us=50)], changes=[stop])
    return [
        Planted(
            rule="servers.number",
            given=ps,
            amount=-1,
            bad=decision(plan(0, run_at(0, servers=(1,)))),
            good=decision(plan(0, run_at(0, servers=(2,)))),
        ),
        Planted(
            rule="places.allowed",
            given=plain(nodes=frozenset((1,))),
            node="a",
            bad=decision(plan(0, run_at(0))),
            good=decision(plan(0, run_at(0, (1,)))),
        ),
        Planted(
            rule="places.up",
            given=failing,
            at=70,
            node="a",
            bad=decision(plan(0, run_at(70))),
            good=decision(plan(0, run_at(70, (1,)))),
        ),
        Planted(
            rule="capacity.node",
            given=pair,
            at=50,
            job="j1",
            node="a",
            amount=1,
            before={0: decision(plan(0, run_at(0, (0,), (3,))))},
            bad=decision(plan(1, run_at(50, (0,), (2,)))),
            good=decision(plan(1, run_at(50, (0,), (1,)))),
        ),
        Planted(
            rule="capacity.node",
            given=pair,
            at=50,
            job="j1",
            node="a",
            slot=3,
            amount=2,
            before={0: decision(plan(0, run_at(300, (0,), (3,), until=400)))},
            bad=decision(plan(1, run_at(50, (0,), (3,)))),
            good=decision(plan(1, run_at(50, (0,), (3,), until=300))),
            note="open-ended over a booking",
        ),
        Planted(
            rule="capacity.node",
            given=pair,
            at=50,
            job="j1",
            node="b",
            slot=4,
            amount=3,
            before={0: decision(plan(0, run_at(0, (1,), (3,))))},
            bad=decision(plan(1, run_at(400, (1,), (4,), until=500))),
            good=decision(plan(1, run_at(400, (1,), (1,), until=500))),
            note="booking over an open-ended step",
        ),
        Planted(
            rule="capacity.node",
            given=racks,
            node="rack",
            amount=1,
            bad=decision(plan(0, run_at(0, (1, 2), (2, 2)))),
            good=decision(plan(0, run_at(0, (1, 2), (1, 2)))),
            note="ancestor",
        ),
    ]


def data() -> list[Planted]:
    """Streams and datasets."""
    stream = scenario(
        [job(0, work=Stream(bytes_per_worker_slot=10), workers_max=9, data_nodes=frozenset((0, 1)))],
        where=setup([node("a"), node("b"), node("c")]),
        customers=[Customer(runtime_us=800)],
        volumes=[(0, 0, 0, 20), (0, 0, 2, 10)],
    )
    free = scenario(
        [job(0, work=Stream(bytes_per_worker_slot=10), workers_max=9)],
        customers=[Customer(runtime_us=800)],
        volumes=[(0, 0, 0, 20)],
    )

    def step(*flows: tuple[int, int, int], until: int = SLOT, workers: tuple[int, int] = (2, 1)) -> Step:
        return Step(0, until, (0, 1), workers, flows=tuple(Flow(*f) for f in flows))

    valid = decision(plan(0, step((0, 0, 20), (2, 1, 10))))
    work = Dataset(chunks=((0, 4), (1, 1)), chunk_bytes=10, epochs=3, chunk_epochs_per_worker_slot_milli=6000)
    chunks = scenario([job(0, work=work, workers_max=4), job(1, arrive_us=50)])
    senseless = scenario([job(0, work=replace(work, chunks=((0, 4), (1, 0))), workers_max=4), job(1)])
    tight = scenario([job(0, work=work, workers_max=4)], where=setup(transfer_bytes_per_slot=19))

    def moved(*flows: tuple[int, int, int], at: int = 0, until: int = SLOT, n: int = 1) -> Decision:
        return decision(plan(0, Step(at, until, (0,), (n,), flows=tuple(Flow(*f) for f in flows))))

    return [
        Planted(rule="data.stream", given=stream, node="c", amount=10, bad=decision(plan(0, step((0, 0, 20)))), good=valid),
        Planted(rule="data.stream", given=stream, amount=30, bad=decision(plan(0)), good=valid, note="stop"),
        Planted(rule="data.stream", given=free, node="a", amount=-1, note="too much",
                bad=decision(plan(0, step((0, 0, 21), workers=(3, 1)))),
                good=decision(plan(0, step((0, 0, 20))))),
        Planted(rule="data.stream_slot", given=free, bad=decision(plan(0, step((0, 0, 20), until=200))),
                good=decision(plan(0, step((0, 0, 20))))),
        Planted(rule="data.workers", given=stream, node="b", amount=10, good=valid,
                bad=decision(plan(0, step((0, 0, 20), (2, 1, 10), workers=(2, 0))))),
        Planted(rule="places.residency", given=stream, node="c", good=valid,
                bad=decision(plan(0, step((0, 0, 20), (2, 2, 10))))),
        Planted(rule="form.flow", given=stream, good=valid, bad=decision(plan(0, step((0, 0, 20), (7, 1, 10))))),
        Planted(rule="data.chunks", given=chunks, node="a", bad=moved((0, 0, 15)), good=moved((0, 0, 10))),
        Planted(rule="data.dataset", given=chunks, node="b", amount=1, bad=moved((1, 0, 20)), good=moved((1, 0, 10))),
        Planted(rule="data.dataset", given=chunks, node="a", amount=1, at=100, note="done before",
                slot=1, before={0: moved((0, 0, 20))}, bad=moved((0, 0, 30), at=100, until=200, n=2),
                good=moved((0, 0, 20), at=100, until=200)),
        Planted(rule="data.dataset_slot", given=chunks, bad=moved((0, 0, 10), until=200), good=moved((0, 0, 10))),
        Planted(rule="data.workers", given=chunks, node="a", amount=3, bad=moved((0, 0, 30)), good=moved((0, 0, 20)),
                note="chunks"),
        Planted(rule="data.workers", given=chunks, node="a", amount=3, at=50, note="half a slot",
                bad=moved((0, 0, 20), at=50), good=moved((0, 0, 10), at=50)),
        Planted(rule="data.unservable", given=senseless, bad=moved((0, 0, 20)), good=decision(plan(1, run_at(0)))),
        Planted(rule="capacity.transfer", given=tight, amount=1, note="data",
                bad=decision(plan(0, Step(0, SLOT, (1,), (1,), flows=(Flow(0, 1, 20),)))),
                good=decision(plan(0, Step(0, SLOT, (1,), (1,), flows=(Flow(0, 1, 10), Flow(1, 1, 10)))))),
    ]  # fmt: skip


def spend() -> list[Planted]:
    """Tenants' caps: a gpu costs 1 USD per slot at list price, 10 bytes between sites 1 USD, deployment 3 USD."""
    gpu = Tariff(starts=(0.0, 1.0), usd=(3.6e7, 1.8e7))  # the second tier does not count
    where: dict[str, Any] = {
        "rent": {(0, 0): gpu, (1, 0): gpu},
        "egress": {(0, 1): Tariff(usd=(1e8,)), (1, 0): Tariff(usd=(1e8,))},
    }
    work = Stream(bytes_per_worker_slot=10)
    jobs = [job(i, work=work, workers_max=9, tenant="t", deploy_usd=3.0) for i in range(2)]
    jobs += [job(2, work=work, workers_max=9, tenant="free", deploy_usd=3.0)]

    def given(cap: SpendCap) -> Scenario:
        rows = [(i, slot, 0, 10) for slot in range(2) for i in range(3)]
        return scenario(
            jobs,
            where=setup(spend_caps={"t": cap}, **where),
            customers=[Customer(runtime_us=200)] * 3,
            volumes=rows,
        )

    def at(slot: int, *workers: int, away: bool = False) -> Decision:
        site = int(away)
        steps = [
            Step(slot * SLOT, (slot + 1) * SLOT, (site,), (n,), flows=(Flow(0, site, 10),)) for n in workers
        ]
        return decision(*(plan(i, step) for i, step in enumerate(steps)))

    slot, total = given(SpendCap(slot_usd=8.5)), given(SpendCap(slot_usd=9.0, total_usd=10.0))
    return [
        Planted(rule="spend.slot", given=slot, job="j1", amount=0.5, bad=at(0, 1, 2, 1), good=at(0, 1, 1, 1)),
        Planted(rule="spend.slot", given=slot, job="j1", amount=1.5, note="data moved",
                bad=at(0, 1, 1, 1, away=True), good=at(0, 1, 1, 1)),
        Planted(rule="spend.slot", given=slot, job="j1", amount=1.5, at=SLOT, slot=1, before={0: at(0, 1, 1, 1)},
                note="deployed anew", bad=at(1, 1, 1, 1, away=True), good=at(1, 1, 1, 1)),
        Planted(rule="spend.total", given=total, job="j1", amount=1.0, at=SLOT, slot=1, before={0: at(0, 1, 1, 1)},
                bad=at(1, 1, 2, 1), good=at(1, 1, 1, 1)),
    ]  # fmt: skip


def network() -> list[Planted]:
    """Routes and rings."""
    nodes = [node("a"), node("b"), node("c")]
    links = (link(0, 1, 100, 50), link(1, 2, 100, 100, shared=True), link(0, 2, 100))
    where = setup(nodes, links=links)
    ps: Any = {
        "architecture": "ps",
        "servers": 1,
        "server": ((0, 1000),),
        "model_bytes": 1,
        "workers_max": 2,
        "workers_min": 2,
    }
    pinned = Rounds(count=99, compute_us=9, comm="flows", pinned=((0, 1), (1, 1)))
    apsp = scenario([job(0, work=pinned, **ps)], where=where)

    def flows(*routes: Route, workers: Any = (1, 1, 0), servers: Any = (0, 0, 1)) -> Decision:
        return decision(plan(0, run_at(0, (0, 1, 2), workers, servers=servers, routes=routes)))

    two_heads = scenario([job(0, work=pinned, **(ps | {"servers": 2}))], where=where)
    first, second = Route(0, 2, 60, (2,)), Route(1, 2, 60, (1,))
    valid = flows(first, second)

    def bad(rule: str, what: Decision, **more: Any) -> Planted:
        facts: dict[str, Any] = {"good": valid, "given": apsp}
        return Planted(rule=rule, bad=what, **(facts | more))

    ring: Any = {
        "work": Rounds(count=99, compute_us=9, comm="ring"),
        "workers_max": 4,
        "ring_bps": 40,
        "model_bytes": 1,
    }
    rings = scenario([job(0, **ring)], where=where)
    hops = (Route(0, 1, 40, (0,)), Route(1, 2, 40, (1,)), Route(2, 0, 40, (2,)))

    def circle(*routes: Route, workers: Any = (1, 1, 1)) -> Decision:
        return decision(plan(0, run_at(0, (0, 1, 2), workers, routes=routes)))

    closed = circle(*hops)
    fixed = scenario([job(0, work=LONG, workers_max=3)], where=where)
    alone = decision(plan(0, run_at(0)))
    failing = scenario(
        [job(0, work=LONG, workers_max=3)], where=where, changes=[Change(40, "node_down", 1, 0, 0)]
    )
    around = Route(0, 2, 5, (0, 1))
    return [
        bad("routes.bandwidth", flows(first._replace(bps=0), second)),
        bad("routes.bandwidth", decision(plan(0, run_at(0, routes=(first._replace(bps=-5),)))), given=fixed, good=alone,
            note="negative, of a job that needs no route"),
        bad("routes.duplex", flows(first._replace(duplex="both"), second)),  # type: ignore[arg-type] # on purpose
        bad("routes.path", flows(first._replace(path=(9,)), second)),
        bad("routes.path", flows(first._replace(path=(1,)), second), node="a", note="gap"),
        bad("routes.path", flows(first._replace(path=(0,)), second), node="b", note="ends early"),
        bad("routes.path", flows(first._replace(path=(0, 1, 2)), second), node="a", note="circle"),
        bad("routes.server", flows(first, second, servers=(1, 0, 1)), given=two_heads,
            good=flows(first, second, servers=(0, 0, 2))),
        bad("routes.one_each", flows(first)),
        bad("routes.one_each", flows(first, second, second), note="twice"),
        bad("workers.pinned", flows(first, second, workers=(2, 0, 0))),
        bad("routes.up", decision(plan(0, run_at(40, routes=(around,)))), given=failing, at=40, node="a",
            good=decision(plan(0, run_at(40, routes=(first,)))), note="through a dead node"),
        bad("capacity.link", flows(first._replace(bps=30), Route(1, 2, 60, (0, 2))), node="b -> a", amount=10, note="way"),
        bad("capacity.link", flows(Route(0, 2, 50, (0, 1)), second), node="b -> c", amount=10, note="shared"),
        bad("capacity.link", flows(Route(0, 2, 60, (0, 1)), Route(1, 2, 20, (1,))), node="b -> a", amount=10,
            note="pulled back"),
        bad("capacity.link", flows(Route(0, 2, 60, (0, 1), "push-pull"), Route(1, 2, 20, (1,))), node="b -> a", amount=10,
            note="push-pull"),
        bad("ring.members", circle(*hops, workers=(2, 0, 1)), given=rings, good=closed),
        bad("ring.hops", circle(*hops[:2]), given=rings, good=closed),
        bad("ring.hops", circle(hops[1], hops[0], hops[2]), given=rings, good=closed, note="order"),
        bad("ring.bandwidth", circle(*hops[:2], hops[2]._replace(bps=41)), given=rings, good=closed),
    ]  # fmt: skip


def work() -> list[Planted]:
    """Caps, and the frame of a decision."""
    slots = Rounds(count=3, unit="worker-slot")
    left = scenario([job(0, work=slots, workers_max=4), job(1, arrive_us=100)])
    capped = scenario([job(0, work=Rounds(count=9, unit="worker-slot"), workers_max=4, caps=((0, 2500),))])
    small = scenario([job(0, work=slots, workers_max=4, caps=((0, 2500),))])
    two = decision(plan(0, run_at(0, (0,), (2,), until=100)))
    good = decision(plan(0, run_at(0)))
    refuse = Decision(verdicts=(Verdict(0, "no"),))
    three = decision(plan(0, run_at(0, (0,), (3,), until=100)))
    return [
        Planted(rule="work.left", given=left, amount=1, bad=decision(plan(0, run_at(0, (0,), (2,), until=200))), good=two),
        Planted(rule="work.left", given=left, amount=1, at=100, slot=1, before={0: two}, note="done before",
                bad=decision(plan(0, run_at(100, (0,), (2,), until=200))),
                good=decision(plan(0, run_at(100, until=200)))),
        Planted(rule="work.cap", given=capped, amount=0.5, bad=three, good=two),
        Planted(rule="work.cap", given=small, amount=0.5, bad=decision(plan(0, run_at(0, (0,), (2,)))), good=two,
                note="open-ended"),
        Planted(rule="plan.job", given=plain(), job="", slot=-1, bad=decision(plan(1, run_at(0))), good=good, note="early"),
        Planted(rule="plan.job", given=plain(), job="", slot=-1, bad=decision(plan(0, run_at(0)), plan(0)), good=good),
        Planted(rule="plan.job", given=plain(), job="", slot=-1, good=good, note="no number",
                bad=decision(Plan("j0", (run_at(0),)))),  # type: ignore[arg-type] # a policy's mistake, on purpose
        Planted(rule="plan.verdict", given=plain(), bad=Decision(plans=good.plans, verdicts=refuse.verdicts), good=refuse),
        Planted(rule="plan.verdict", given=plain(), bad=Decision(verdicts=refuse.verdicts * 2), good=refuse, note="twice"),
        Planted(rule="plan.verdict", given=plain(), at=50, before={0: good}, bad=refuse, good=decision(plan(0))),
        Planted(rule="plan.wake", given=plain(), job="", slot=-1, bad=Decision(wake_us=0), good=Decision(wake_us=1)),
    ]  # fmt: skip


def machines() -> list[Planted]:
    """Jobs that rent machines: GPU types, numbers of machines, data that must be there, starts."""
    split = offers.market([offers.training(parts=((offers.EAST, 50), (offers.WEST, 120)), restarts=1)])
    copied = offers.market([replace(split.jobs[0], copies=((offers.WEST, offers.EAST, 110),))])
    here = offers.market([offers.training(restarts=1, workers_max=8)])
    only_a = offers.market([offers.training(gpu_speeds=(("A", 1000),), parts=())])
    east, west = offers.EAST_8A, offers.WEST_1B
    good = decision(plan(0, offers.on(east, 0, 300)))
    parts, across = (
        ((offers.EAST, 50), (offers.WEST, 50)),
        decision(plan(0, Step(0, 400, (east, west), (1, 2)))),
    )
    two_sites = offers.market([offers.training(parts=parts, gpus=(4,), sync_every=10)])
    three_parts = offers.with_north(
        [offers.training(parts=(*parts, (offers.NORTH, 7)), gpus=(4,), sync_every=10)]
    )
    moved = decision(plan(0, offers.on(east, 200, 400, moved=[(offers.WEST, 120)])))

    def case(rule: str, *steps: Step, **more: Any) -> Planted:
        facts: dict[str, Any] = {"given": here, "good": good}
        return Planted(rule=rule, bad=decision(plan(0, *steps)), **(facts | more))

    return [
        case("workers.machine", Step(0, 300, (east, offers.EAST_SPOT), (1, 1))),
        case("workers.machines", offers.on(west, 0, 300), given=only_a, node="west/1B", note="type"),
        case("workers.machines", offers.on(east, 0, 300, machines=3), node="east/8A", note="3 machines"),
        case("data.missing", offers.on(east, 200, 400), given=split, good=moved, node="west", slot=2, amount=120),
        case("data.lead", offers.on(east, 100, 400, moved=[(offers.WEST, 120)]), given=split, good=moved, node="west",
             slot=1, amount=20e-6),
        case("data.missing", offers.on(east, 100, 400), given=copied, good=decision(plan(0, offers.on(east, 200, 400))),
             node="west", slot=1, amount=120, note="copied later"),
        case("data.lead", offers.on(east, 100, 400, moved=[(offers.WEST, 120)]), given=copied, good=moved, node="west",
             slot=1, amount=10e-6, note="on its way"),
        case("data.parts", offers.on(east, 200, 400, moved=[(offers.WEST, 60)]), given=split, good=moved, node="west",
             slot=2),
        case("data.parts", Step(200, 400, (east,), (1,), flows=(Flow(offers.WEST, offers.WEST, 120),)), given=split,
             good=moved, slot=2, note="elsewhere"),
        case("data.parts", offers.on(east, 200, 400, moved=[(offers.WEST, 120)]),
             offers.on(east, 500, 700, moved=[(offers.WEST, 120)]), given=split, good=moved, node="west", slot=5,
             note="twice"),
        case("workers.machine", Step(0, 300, (east, west), (1, 1)), note="two sites, one allowed"),
        case("workers.machines", Step(0, 400, (east, west), (1, 3)), given=two_sites, good=across, node="east/8A",
             note="split by data"),
        case("workers.machines", Step(0, 400, (east, offers.EAST_SPOT), (1, 1)), given=two_sites, good=across,
             node="east/8A", note="two offers of one site"),
        case("data.missing", Step(0, 400, (east, west), (1, 2)), given=three_parts, node="north", amount=7,
             good=decision(plan(0, Step(100, 500, (east, west), (1, 2), flows=(Flow(offers.NORTH, offers.EAST, 7),))))),
        case("plan.restarts", offers.on(east, 0, 100), offers.on(east, 200, 300), offers.on(east, 400, 500), slot=4,
             amount=1),
        case("plan.restarts", offers.on(east, 200, 300), offers.on(east, 400, 500), at=200, slot=4, amount=1,
             before={0: decision(plan(0, offers.on(east, 0, 100)))}, note="ran before",
             good=decision(plan(0, offers.on(east, 200, 400)))),
        case("plan.moves", offers.on(east, 0, 100), offers.on(east, 100, 300, machines=2), slot=1),
        case("plan.moves", offers.on(offers.EAST_SPOT, 100, 300), at=100, slot=1,
             before={0: decision(plan(0, offers.on(east, 0, 100)))}, note="ran before",
             good=decision(plan(0, offers.on(east, 100, 300)))),
    ]  # fmt: skip


PLANTED = [*form(), *places(), *data(), *spend(), *network(), *work(), *machines()]
