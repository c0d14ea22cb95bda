"""The policy that all mixed policies are: every slot, plan what is there, commit this slot only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import NOTHING, Certificate, Decision, Plan, Step, Verdict
from tradewind.model.job import Job, Rounds, Stream
from tradewind.model.setup import Setup
from tradewind.model.spec import Factory, Param, Spec
from tradewind.model.units import MICRO, MILLI, OPEN, UNLIMITED
from tradewind.model.view import View
from tradewind.systems.mixed.kernels.market import Answer, Market, post
from tradewind.systems.mixed.shared.frame import FAR, Frame, Supply
from tradewind.systems.mixed.shared.misses import nearest_miss
from tradewind.systems.mixed.shared.oracles import ask_of, oracle_of, unpriceable
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.oracles.gang import runtime_us, stays
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


class Chooser(Protocol):
    """How a policy plans a market."""

    def __call__(
        self, frame: Frame, asks: Sequence[Ask], market: Market, held: Mapping[str, Floats], slot: int
    ) -> tuple[list[Answer | None], Certificate | None]:
        """A schedule or None for every job. held: what jobs that keep their places use, by oracle (T, K)."""


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
        supply = self._supply(view)
        market = self._frame.market(supply)
        held, kept = dict[str, Floats](), set[int]()
        for job in jobs:
            if self._hold(job, market, held):
                kept.add(job.index)
        asks = [self._ask(view, job, supply) for job in jobs if job.index not in kept]
        answers, certificate = self._choose(self._frame, asks, market, held, view.slot)
        plans: list[Plan] = []
        for ask, answer in zip(asks, answers, strict=True):
            self._commit(view, ask, answer, supply, plans, refused)
        return Decision(plans=tuple(plans), verdicts=tuple(refused), certificate=certificate)

    # ------------------------------------------------------------------ what there is
    def _supply(self, view: View) -> Supply:
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
        )

    def _hold(self, job: Job, market: Market, held: dict[str, Floats]) -> bool:
        """Enter a job that keeps its places as base load; False: it may be planned anew."""
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
        kind = oracle_of(job)
        held[kind] = held.get(kind, 0.0) + frame.use(workers, none, gb, needs)[1]
        return True

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
            return
        if view.plan(job.index) is not None:
            plans.append(Plan(job.index, ()))
        elif isinstance(job.work, Stream):
            if not job.may_skip_slots and any(size for _, size in view.data(job.index)):
                refused.append(Verdict(job.index, nearest_miss(ask, supply)))
        elif answer is None and (why := nearest_miss(ask, supply, only_final=True)):
            refused.append(Verdict(job.index, why))

    def _step(self, now_us: int, ask: Ask, answer: Answer) -> Step:
        """This slot of a schedule; open-ended for a job that keeps its places or has less than a worker-slot left."""
        workers, servers, job = answer.workers[0], answer.servers[0], ask.job
        used = np.flatnonzero((workers > 0) | (servers > 0)).tolist()
        rest = isinstance(job.work, Rounds) and job.work.unit == "worker-slot"
        short = rest and (job.work.total or 0) - ask.known.done < MICRO * int(workers.sum())
        return Step(
            now_us,
            OPEN if stays(job) or short else now_us + self._setup.slot_us,
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
        objectives=frozenset(("welfare_usd",)),
        triggers=frozenset(("slot",)),
        needs=frozenset(("runtime", "concave tariff")),
        params={**PARAMS, **(params or {})},
        system="mixed",
    )
