"""The policy that all mixed policies are: every slot, plan what is there, commit this slot only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import NOTHING, Certificate, Decision, Plan, Step, Verdict
from tradewind.model.job import Job, Rounds, Stream
from tradewind.model.setup import Setup
from tradewind.model.spec import Factory, Param, Spec
from tradewind.model.units import MICRO, MILLI, OPEN, UNLIMITED
from tradewind.model.view import View
from tradewind.systems.mixed.kernels.market import Answer, Market, post
from tradewind.systems.mixed.shared.books import TINY
from tradewind.systems.mixed.shared.frame import FAR, Frame, Supply
from tradewind.systems.mixed.shared.misses import nearest_miss, outbid
from tradewind.systems.mixed.shared.oracles import ask_of, oracle_of, unpriceable
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.oracles.gang import runtime_us, stays
from tradewind.systems.mixed.shared.purses import cap_words, purses
from tradewind.systems.mixed.shared.track import Tracker

STAY = "stream_stay_slots"
"""Forecast of the setup: how many slots a stream is expected to stay, this one included."""
PARAMS = {
    "look_slots": Param(default=48, doc="slots ahead that are planned", least=1, most=1000),
    "stay_slots": Param(
        default=8,
        doc=f"slots that a stream is expected to stay, unless the forecast has {STAY}",
        least=1,
        most=1000,
    ),
    "unpriced": Param(
        default=10.0,
        doc="a job without a bid counts as worth so many times its list rent",
        least=0.0,
        most=1e6,
    ),
}


class Chosen(NamedTuple):
    """A schedule or None for every job; posted: the market at the prices of capacity, where a policy has any."""

    plan: list[Answer | None]
    certificate: Certificate | None = None
    posted: Market | None = None


class Chooser(Protocol):
    """How a policy plans a market."""

    def __call__(
        self, frame: Frame, asks: Sequence[Ask], market: Market, held: Mapping[str, Floats], slot: int
    ) -> Chosen:
        """Plan these jobs. held: what jobs that keep their places use, by oracle (T, K)."""


class MixedPolicy:
    """Decides at the start of every slot. Jobs that keep their places are base load; streams are expected to stay."""

    def __init__(self, setup: Setup, params: Mapping[str, Any], choose: Chooser) -> None:
        self._setup, self._frame, self._choose = setup, Frame(setup), choose
        self._look, self._unpriced = int(params["look_slots"]), float(params["unpriced"])
        self._stay = int(setup.forecast.get(STAY, params["stay_slots"]))
        self._tracker = Tracker(setup)

    def decide(self, view: View) -> Decision:
        self._tracker.observe(view)
        if view.now_us % self._setup.slot_us:
            return NOTHING
        refused = [Verdict(j, why) for j, job in view.active.items() if (why := unpriceable(job))]
        out = {verdict.job for verdict in refused}
        jobs = [job for j, job in view.active.items() if j in self._tracker.jobs and j not in out]
        if not jobs:
            return Decision(verdicts=tuple(refused))
        supply = self._supply(view, jobs)
        market = self._frame.market(supply)
        held, kept, plans = dict[str, Floats](), set[int](), list[Plan]()
        for job in jobs:
            if self._hold(job, market, supply, held):
                kept.add(job.index)
                self._renew(view, job, supply, plans, refused)
        asks = [self._ask(view, job, supply) for job in jobs if job.index not in kept]
        chosen = self._choose(self._frame, asks, market, held, view.slot)
        for ask, answer in zip(asks, chosen.plan, strict=True):
            if answer is None and chosen.posted is not None:
                tracked = self._tracker.jobs[ask.job.index]
                tracked.outbid = outbid(ask, market, chosen.posted, view.slot) or tracked.outbid
            self._commit(view, ask, answer, supply, plans, refused)
        return Decision(plans=tuple(plans), verdicts=tuple(refused), certificate=chosen.certificate)

    # ------------------------------------------------------------------ what there is
    def _supply(self, view: View, jobs: Sequence[Job]) -> Supply:
        """Limits and prices of now, expected to stay."""
        frame, setup = self._frame, self._setup
        slots = max(1, min(setup.slots_ahead(view.slot), self._look))
        milli = np.array(
            [[view.capacity(n, r) for r in range(len(setup.resources))] for n in range(len(setup.nodes))], dtype=np.float64
        )  # fmt: skip
        units = np.where(milli >= UNLIMITED, FAR, milli / MILLI)
        down = np.array([view.is_down(n) for n in range(len(setup.nodes))])
        units[down] = 0.0
        factor = np.array([view.price_factor(node, r) for node, r in frame.payers])
        pairs = {pair: view.egress_factor(*pair) for pair in setup.egress}
        return Supply(
            first=view.slot,
            units=np.repeat(units[None], slots, axis=0),
            gb=np.full(slots, frame.gb_limit()),
            factor=np.repeat(factor[None], slots, axis=0),
            egress=frame.egress(pairs),
            purse=purses(setup, jobs, self._tracker.spent, slots),
        )

    def _hold(self, job: Job, market: Market, supply: Supply, held: dict[str, Floats]) -> bool:
        """Enter a job that keeps its places as base load, paid by its tenant; False: it may be planned anew."""
        step = self._tracker.jobs[job.index].step
        if step is None:
            return False
        frame, slots = self._frame, len(market.byte_usd)
        left = -(-runtime_us(self._setup, job, self._tracker.jobs[job.index].done) // self._setup.slot_us)
        workers = np.zeros((slots, len(frame.hosts)), dtype=np.int64)
        for node, count in zip(step.nodes, step.workers, strict=True):
            workers[:left, frame.place[node]] = count
        none, gb, needs = (
            np.zeros_like(workers),
            np.zeros(slots),
            (frame.need(job.worker), frame.need(job.server)),
        )
        post(market, *needs, workers, none, gb, 1.0)
        if job.tenant in supply.purse:
            usd = (workers[:, :, None] * needs[0] * frame.listed(market)).sum(axis=(1, 2))
            supply.purse[job.tenant][:] -= np.append(usd, usd.sum())
        kind = oracle_of(job)
        held[kind] = held.get(kind, 0.0) + frame.use(workers, none, gb, needs)[1]
        return True

    def _renew(self, view: View, job: Job, supply: Supply, plans: list[Plan], refused: list[Verdict]) -> None:
        """One more slot for a job that keeps its places and whose tenant has a cap, if it can pay; others have no end."""
        tracked = self._tracker.jobs[job.index]
        if tracked.step is None or tracked.step.until_us == OPEN:
            return
        left = supply.purse[job.tenant]
        if left[0] < -TINY or left[-1] < -TINY:
            words = cap_words(self._setup, job.tenant, self._tracker.spent)
            refused.append(Verdict(job.index, f"going on costs more than its tenant may spend{words}"))
            return
        tracked.step = tracked.step._replace(from_us=view.now_us, until_us=view.now_us + self._setup.slot_us)
        plans.append(Plan(job.index, (tracked.step,)))
        self._pay(job, tracked.step, np.zeros(1), supply)

    def _pay(self, job: Job, step: Step, own: Floats, supply: Supply) -> None:
        """Count what a step of this slot costs at list price for a tenant with a cap."""
        if job.tenant not in supply.purse:
            return
        frame, servers = self._frame, step.servers or (0,) * len(step.nodes)
        needs, listed = (
            (frame.need(job.worker), frame.need(job.server)),
            frame.listed(frame.market(supply))[0],
        )
        usd = float(own[0])
        for node, workers, ps in zip(step.nodes, step.workers, servers, strict=True):
            usd += float((workers * needs[0] + ps * needs[1]) @ listed[frame.place[node]])
        spent = self._tracker.spent
        spent[job.tenant] = spent.get(job.tenant, 0.0) + usd

    def _ask(self, view: View, job: Job, supply: Supply) -> Ask:
        volumes: tuple[tuple[tuple[int, int], ...], ...] = ()
        if isinstance(job.work, Stream):
            volumes = (view.data(job.index),) * min(self._stay, len(supply.gb))
        return ask_of(self._frame, job, self._tracker.known(job.index, volumes), supply, self._unpriced)

    # ------------------------------------------------------------------ what is decided
    def _commit(
        self,
        view: View,
        ask: Ask,
        answer: Answer | None,
        supply: Supply,
        plans: list[Plan],
        refused: list[Verdict],
    ) -> None:
        """The step of this slot, or nothing; refuse what has no chance any more."""
        job, tracked = ask.job, self._tracker.jobs[ask.job.index]
        if answer is not None and (answer.workers[0].any() or answer.servers[0].any()):
            tracked.step = self._step(view.now_us, ask, answer)
            plans.append(Plan(job.index, (tracked.step,)))
            self._pay(job, tracked.step, answer.own, supply)
            return
        words = tracked.outbid + cap_words(self._setup, job.tenant, self._tracker.spent)
        if view.plan(job.index) is not None:
            plans.append(Plan(job.index, ()))
        elif isinstance(job.work, Stream):
            if not job.may_skip_slots and any(size for _, size in view.data(job.index)):
                refused.append(Verdict(job.index, nearest_miss(ask, supply) + words))
        elif answer is None and (why := nearest_miss(ask, supply, only_final=True)):
            refused.append(Verdict(job.index, why + words))

    def _step(self, now_us: int, ask: Ask, answer: Answer) -> Step:
        """This slot of a schedule; open-ended for a job that keeps its places or has less than a worker-slot left."""
        workers, servers, job = answer.workers[0], answer.servers[0], ask.job
        used = np.flatnonzero((workers > 0) | (servers > 0)).tolist()
        rest = isinstance(job.work, Rounds) and job.work.unit == "worker-slot"
        short = rest and (job.work.total or 0) - ask.known.done < MICRO * int(workers.sum())
        ends = ask.purse is not None or not (stays(job) or short)
        return Step(
            now_us,
            now_us + self._setup.slot_us if ends else OPEN,
            tuple(int(self._frame.hosts[h]) for h in used),
            tuple(int(workers[h]) for h in used),
            servers=tuple(int(servers[h]) for h in used) if servers.any() else (),
            flows=ask.flows(answer, 0),
        )

    def save(self) -> bytes:
        return self._tracker.save()

    def restore(self, state: bytes) -> None:
        self._tracker.restore(state)


def mixed_spec(name: str, summary: str, factory: Factory, params: Mapping[str, Param] | None = None) -> Spec:
    """A policy for every kind of work but machines, at concave tariffs."""
    return Spec(
        name=name,
        summary=summary,
        factory=factory,
        works=frozenset(("stream", "dataset", "rounds", "fixed")),
        objectives=frozenset(("welfare_usd", "cost_usd", "utility")),
        triggers=frozenset(("slot",)),
        needs=frozenset(("runtime", "concave tariff")),
        keeps_caps=True,
        params={**PARAMS, **(params or {})},
        system="mixed",
    )
