"""What the online policies share: what runs, what was spent, and requests for the jobs that may be planned anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Decision, Flow, Plan, Step, Verdict
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec, Trigger
from tradewind.model.view import Event, View
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.kernels.search import Books
from tradewind.systems.broker.shared.market import Market, accounts_of
from tradewind.systems.broker.shared.options import Prices, Request, build
from tradewind.systems.broker.shared.steps import nearest_miss, plan_of

TRIGGERS: frozenset[Trigger] = frozenset(("slot", "change"))
OVER = frozenset(("finished", "ended", "refused", "cancelled"))
Chooser = Callable[[Market, Problem, Floats], Books]
"""(market, problem, spend before) -> plans."""
Reading = Callable[[Job], Job]
"""What a rule that knows less makes of a job; it then also knows no risk of interruptions."""


@dataclass
class _Tracked:
    """A job that is not over. settled_us: until when its spend is counted."""

    left: int
    steps: tuple[Step, ...] = ()
    staged: frozenset[tuple[int, int]] = frozenset()
    settled_us: int = 0


@dataclass
class _State:
    """Everything that decisions depend on besides the view."""

    jobs: dict[int, _Tracked] = field(default_factory=dict)
    spent: dict[tuple[int, int], float] = field(default_factory=dict)
    factor: list[float] = field(default_factory=list)


class BrokerPolicy:
    """Plans every slot the jobs that neither run nor wait for data; what an interruption stopped is planned anew at once."""

    def __init__(
        self, setup: Setup, choose: Chooser, *, spot: bool = True, reading: Reading | None = None
    ) -> None:
        self._setup, self._market = setup, Market(setup)
        self._choose, self._spot, self._reading = choose, spot, reading
        self._offer = {node: offer for offer, node in enumerate(self._market.nodes)}
        self._state = _State(factor=[1.0] * len(self._market.nodes))

    # ------------------------------------------------------------------ what happened
    def _observe(self, view: View) -> None:
        jobs = self._state.jobs
        for event in view.events:
            if event.kind == "arrived" and isinstance(event.fact, Job):
                jobs[event.job] = _Tracked(left=event.fact.work.total or 0)
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

    def _interrupted(self, job: Job, tracked: _Tracked, event: Event) -> None:
        begun = [step for step in tracked.steps if step.from_us < event.at_us]
        tracked.staged |= {(flow.src, flow.dst) for step in begun for flow in step.flows}
        tracked.left = (job.work.total or 0) - event.value
        tracked.steps = ()

    def _settle(self, tracked: _Tracked, now_us: int) -> None:
        """Count what a job has spent by now in the accounts of pools."""
        slot_us, begin = self._setup.slot_us, tracked.settled_us
        for step in tracked.steps:
            at, until = max(step.from_us, begin), min(step.until_us, now_us)
            if at < until:
                self._count(
                    step, at // slot_us, (until - at) / slot_us, at == step.from_us, self._state.spent
                )
        tracked.settled_us = max(begin, now_us)

    def _count(
        self, step: Step, slot: int, slots: float, first: bool, spent: dict[tuple[int, int], float]
    ) -> None:
        """Add the rent of a step for a part of a slot, and its egress if it begins."""
        offer, at_us = self._offer[step.nodes[0]], slot * self._setup.slot_us
        pool = int(self._market.rent_pool[offer])
        if pool >= 0:
            usd = self._market.list_usd[offer] * self._state.factor[offer] * step.workers[0] * slots
            key = (pool, at_us // self._setup.pools[pool].period_us)
            spent[key] = spent.get(key, 0.0) + float(usd)
        for flow in step.flows if first else ():
            pool = self._market.egress_pool.get((flow.src, flow.dst), -1)
            if pool >= 0:
                key = (pool, at_us // self._setup.pools[pool].period_us)
                spent[key] = spent.get(key, 0.0) + self._setup.egress[flow.src, flow.dst].cost(
                    flow.bytes / 1e9
                )

    # ------------------------------------------------------------------ decisions
    def decide(self, view: View) -> Decision:
        self._observe(view)
        market, slot_us = self._market, self._setup.slot_us
        self._state.factor = [view.price_factor(payer, 0) if payer >= 0 else 1.0 for payer in market.payer]
        slot = -(-view.now_us // slot_us)
        slots = self._setup.slots_ahead(view.slot) - (slot - view.slot)
        free = [j for j in view.active if j in self._state.jobs and self._is_free(j, view)]
        if not free or slots <= 0:
            return Decision()
        read, tracked = self._reading or (lambda job: job), self._state.jobs
        requests = [
            Request(job=read(view.job(j)), left=tracked[j].left, staged=tracked[j].staged) for j in free
        ]
        room, spent = self._others(view, set(free), slot, slots)
        factor = np.repeat(np.array(self._state.factor)[:, None], slots, axis=1)
        accounts = accounts_of(self._setup, slot, slots, spent)
        prices = Prices(
            slot=slot,
            factor=factor,
            room=room,
            accounts=accounts,
            spot=self._spot,
            careful=self._reading is None,
        )
        problem = build(market, requests, prices)
        chosen = self._choose(market, problem, accounts.spent)
        final = not any(view.is_down(node) for node in market.nodes)  # what is down may come back in time
        return self._decision(requests, problem, chosen, slot, final=final)

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
                    if at - slot < slots:
                        room[self._offer[step.nodes[0]], at - slot] -= step.workers[0]
                    self._count(step, at, 1.0, at * slot_us == step.from_us, spent)
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
                tracked.steps = plan.steps
                plans.append(plan)
            elif final and not plan.steps and p.first[j] == p.first[j + 1]:
                verdicts.append(Verdict(request.job.index, nearest_miss(self._market, request, slot)))
        return Decision(plans=tuple(plans), verdicts=tuple(verdicts))

    # ------------------------------------------------------------------ state
    def save(self) -> bytes:
        state = self._state
        jobs = [[i, t.left, t.steps, sorted(t.staged), t.settled_us] for i, t in state.jobs.items()]
        return json.dumps([jobs, [[*k, v] for k, v in state.spent.items()], state.factor]).encode()

    def restore(self, state: bytes) -> None:
        jobs, spent, factor = json.loads(state)
        self._state = _State(
            jobs={
                i: _Tracked(
                    left, tuple(_step(s) for s in steps), frozenset((a, b) for a, b in staged), settled
                )
                for i, left, steps, staged, settled in jobs
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
) -> Spec:
    """A policy for training on machines with a bid that falls with delay."""

    def factory(setup: Setup, given: Mapping[str, Any], rng: np.random.Generator) -> BrokerPolicy:
        del rng
        return BrokerPolicy(setup, choose(given), spot=bool(given["spot"]), reading=reading)

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
