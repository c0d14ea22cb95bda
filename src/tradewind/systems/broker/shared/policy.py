"""What the online policies share: what runs, what was spent, and requests for the jobs that may be planned anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Decision, Flow, Plan, Step, Verdict
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec, Trigger
from tradewind.model.units import GB
from tradewind.model.view import Event, View
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.kernels.search import Books
from tradewind.systems.broker.shared.market import Market, accounts_of
from tradewind.systems.broker.shared.moves import Tracked, moved
from tradewind.systems.broker.shared.options import Prices, build
from tradewind.systems.broker.shared.steps import nearest_miss, plan_of
from tradewind.systems.broker.shared.ways import Request

TRIGGERS: frozenset[Trigger] = frozenset(("slot", "change"))
OVER = frozenset(("finished", "ended", "refused", "cancelled"))
Chooser = Callable[[Market, Problem, Floats], Books]
"""(market, problem, spend before) -> plans."""
Reading = Callable[[Job], Job]
"""What a rule that knows less makes of a job; it then also knows no risk of interruptions."""


@dataclass
class _State:
    """Everything that decisions depend on besides the view."""

    jobs: dict[int, Tracked] = field(default_factory=dict)
    spent: dict[tuple[int, int], float] = field(default_factory=dict)
    factor: list[float] = field(default_factory=list)


class BrokerPolicy:
    """Plans every slot the jobs that neither run nor wait for data; what an interruption stopped is planned anew at once.

    may_move: running jobs that may move do so where that pays, too.
    """

    def __init__(
        self,
        setup: Setup,
        choose: Chooser,
        *,
        spot: bool = True,
        reading: Reading | None = None,
        may_move: bool = False,
    ) -> None:
        self._setup, self._market = setup, Market(setup)
        self._choose, self._spot, self._reading, self._may_move = choose, spot, reading, may_move
        self._offer = {node: offer for offer, node in enumerate(self._market.nodes)}
        self._state = _State(factor=[1.0] * len(self._market.nodes))

    # ------------------------------------------------------------------ what happened
    def _observe(self, view: View) -> None:
        jobs = self._state.jobs
        for event in view.events:
            if event.kind == "arrived" and isinstance(event.fact, Job):
                jobs[event.job] = Tracked(left=event.fact.work.total or 0)
            elif event.job in jobs:
                self._settle(jobs[event.job], event.at_us)
                if event.kind in OVER:
                    del jobs[event.job]
                elif event.kind == "voided":
                    self._interrupted(view.job(event.job), jobs[event.job], event)
        for each in jobs.values():
            self._settle(each, view.now_us)
        pools = self._setup.pools
        over = [key for key in self._state.spent if (key[1] + 1) * pools[key[0]].period_us <= view.now_us]
        for key in over:
            del self._state.spent[key]

    def _interrupted(self, job: Job, tracked: Tracked, event: Event) -> None:
        begun = [step for step in tracked.steps if step.from_us < event.at_us]
        tracked.staged |= {(flow.src, flow.dst) for step in begun for flow in step.flows}
        tracked.left = (job.work.total or 0) - event.value
        tracked.steps = ()

    def _settle(self, tracked: Tracked, now_us: int) -> None:
        """Count what a job has spent by now in the accounts of pools."""
        slot_us, begin = self._setup.slot_us, tracked.settled_us
        for step in tracked.steps:
            at, until = max(step.from_us, begin), min(step.until_us, now_us)
            if at < until:
                first, slots = at == step.from_us, (until - at) / slot_us
                tracked.list_usd += self._count(
                    tracked, step, (at // slot_us, slots, first), self._state.spent
                )
        tracked.settled_us = max(begin, now_us)

    def _count(
        self, tracked: Tracked, step: Step, when: tuple[int, float, bool], spent: dict[tuple[int, int], float]
    ) -> float:
        """Add the rent of a step for a part of a slot, and its egress; when: slot, slots, whether it begins.

        Returns what that costs at list price.
        """
        slot, slots, first = when
        at_us, market, pools, listed = slot * self._setup.slot_us, self._market, self._setup.pools, 0.0

        def add(pool: int, usd: float) -> None:
            if pool >= 0:
                key = (pool, at_us // pools[pool].period_us)
                spent[key] = spent.get(key, 0.0) + usd

        for node, machines in zip(step.nodes, step.workers, strict=True):
            offer = self._offer[node]
            usd = float(market.list_usd[offer]) * machines * slots
            listed += usd
            add(int(market.rent_pool[offer]), usd * self._state.factor[offer])
        moved = [((flow.src, flow.dst), flow.bytes / GB) for flow in (step.flows if first else ())]
        if len(step.nodes) == 2:
            a, b = (self._setup.site_of[node] for node in step.nodes)
            moved += [((a, b), tracked.sync_gb * slots), ((b, a), tracked.sync_gb * slots)]
        for pair, gb in moved:
            usd = self._setup.egress[pair].cost(gb) if pair in self._setup.egress else 0.0
            listed += usd
            add(market.egress_pool.get(pair, -1), usd)
        return listed

    # ------------------------------------------------------------------ decisions
    def decide(self, view: View) -> Decision:
        self._observe(view)
        market, slot_us = self._market, self._setup.slot_us
        self._state.factor = [view.price_factor(payer, 0) if payer >= 0 else 1.0 for payer in market.payer]
        slot = -(-view.now_us // slot_us)
        slots = self._setup.slots_ahead(view.slot) - (slot - view.slot)
        if slots <= 0:
            return Decision()
        free = [j for j in view.active if j in self._state.jobs and self._is_free(j, view)]
        found = self._planned(view, free, slot, slots) if free else Decision()
        moves = self._moves(view, set(free), slot, slots) if self._may_move else ()
        return found._replace(plans=(*found.plans, *moves)) if moves else found

    def _planned(self, view: View, free: list[int], slot: int, slots: int) -> Decision:
        """Plans of the jobs that do not run."""
        market = self._market
        read, tracked = self._reading or (lambda job: job), self._state.jobs
        for j in free:
            tracked[j].staged |= view.job(j).copied_by(view.now_us)
        requests = [
            Request(
                job=read(view.job(j)),
                left=tracked[j].left,
                staged=tracked[j].staged,
                spent_usd=tracked[j].list_usd,
            )
            for j in free
        ]
        prices = self._prices(view, set(free), slot, slots)
        problem = build(market, requests, prices)
        chosen = self._choose(market, problem, prices.accounts.spent)
        final = not any(view.is_down(node) for node in market.nodes)  # what is down may come back in time
        return self._decision(requests, problem, chosen, slot, final=final)

    def _prices(self, view: View, free: set[int], slot: int, slots: int) -> Prices:
        """Prices and room for these jobs beside all others; current prices are taken to last."""
        room, spent = self._others(view, free, slot, slots)
        return Prices(
            slot=slot,
            factor=np.repeat(np.array(self._state.factor)[:, None], slots, axis=1),
            room=room,
            accounts=accounts_of(self._setup, slot, slots, spent),
            spot=self._spot,
            careful=self._reading is None,
        )

    def _moves(self, view: View, free: set[int], slot: int, slots: int) -> Iterable[Plan]:
        """New plans of running jobs that may move and gain by it, one after the other."""
        if view.now_us % self._setup.slot_us:
            return
        for j in view.active:
            tracked = self._state.jobs.get(j)
            if tracked is None or j in free or view.job(j).restarts is not None:
                continue
            if len(tracked.steps) == 1 and tracked.steps[0].from_us < view.now_us < tracked.steps[0].until_us:
                prices = self._prices(view, {j}, slot, slots)
                steps = moved(self._market, view.job(j), tracked, prices)
                if steps:
                    yield Plan(j, steps)

    def _is_free(self, job: int, view: View) -> bool:
        """Whether a job may be planned anew: it does not run and no data is on its way."""
        steps = self._state.jobs[job].steps
        return not steps or (steps[0].from_us >= view.now_us and not steps[0].flows)

    def _others(
        self, view: View, free: set[int], slot: int, slots: int
    ) -> tuple[Floats, dict[tuple[int, int], float]]:
        """(machines that the other jobs leave (O, T), their spend by pool and period, past and planned)."""
        market, slot_us = self._market, self._setup.slot_us
        milli = max((job.worker[0][1] for job in view.active.values()), default=1000)
        limit = [0 if view.is_down(node) else view.capacity(node, 0) for node in market.nodes]
        each = np.array([1e18 if n >= 2**61 else float(n // milli) for n in limit])
        room, spent = np.repeat(each[:, None], slots, axis=1), dict(self._state.spent)
        for index, tracked in self._state.jobs.items():
            for step in tracked.steps if index not in free else ():
                for at in range(max(slot, step.from_us // slot_us), step.until_us // slot_us):
                    for node, machines in zip(step.nodes, step.workers, strict=True):
                        if at - slot < slots:
                            room[self._offer[node], at - slot] -= machines
                    self._count(tracked, step, (at, 1.0, at * slot_us == step.from_us), spent)
        return room, spent

    def _decision(
        self, requests: list[Request], p: Problem, chosen: Books, slot: int, *, final: bool
    ) -> Decision:
        """Plans that change; where `final`, jobs without any option are refused."""
        plans, verdicts = list[Plan](), list[Verdict]()
        for j, request in enumerate(requests):
            tracked = self._state.jobs[request.job.index]
            plan = plan_of(self._market, p, request, chosen.plan[j], slot)
            if plan.steps != tracked.steps:
                tracked.begin(self._setup, request.job, plan.steps)
                plans.append(plan)
            elif final and not plan.steps and p.first[j] == p.first[j + 1]:
                verdicts.append(Verdict(request.job.index, nearest_miss(self._market, request, slot)))
        return Decision(plans=tuple(plans), verdicts=tuple(verdicts))

    # ------------------------------------------------------------------ state
    def save(self) -> bytes:
        state = self._state
        jobs = [
            [i, t.left, t.steps, sorted(t.staged), t.settled_us, t.since_us, t.warm_us, t.list_usd, t.sync_gb]
            for i, t in state.jobs.items()
        ]
        return json.dumps([jobs, [[*k, v] for k, v in state.spent.items()], state.factor]).encode()

    def restore(self, state: bytes) -> None:
        jobs, spent, factor = json.loads(state)
        self._state = _State(
            jobs={
                i: Tracked(left, tuple(_step(s) for s in steps), frozenset((a, b) for a, b in staged), *rest)
                for i, left, steps, staged, *rest in jobs
            },
            spent={(pool, period): usd for pool, period, usd in spent},
            factor=factor,
        )


def _step(row: list[Any]) -> Step:
    begin, until, nodes, workers, _, flows, _, _ = row
    return Step(begin, until, tuple(nodes), tuple(workers), flows=tuple(Flow(*flow) for flow in flows))


SPOT = Param(default=True, doc="whether spot machines may be used")


def broker_spec(
    name: str,
    summary: str,
    choose: Callable[[Mapping[str, Any]], Chooser],
    params: Mapping[str, Param] | None = None,
    *,
    reading: Reading | None = None,
    may_move: bool = False,
) -> Spec:
    """A policy for training on machines with a bid that falls with delay."""

    def factory(setup: Setup, given: Mapping[str, Any], rng: np.random.Generator) -> BrokerPolicy:
        del rng
        spot = bool(given["spot"])
        return BrokerPolicy(setup, choose(given), spot=spot, reading=reading, may_move=may_move)

    return Spec(
        name=name,
        summary=summary,
        factory=factory,
        works=frozenset(("rounds/machines",)),
        objectives=frozenset(("total_usd", "cost_usd", "welfare_usd")),
        triggers=TRIGGERS,
        needs=frozenset(("bid",)),
        params={"spot": SPOT, **(params or {})},
        system="broker",
    )
