"""The bound of the whole horizon holds for every run that the audit accepts, also for those that share a slot."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tradewind as tw
from tradewind.model.decision import Decision, Plan, Step
from tradewind.model.job import Rounds
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.units import OPEN
from tradewind.model.view import View
from tradewind.systems.gadget.bound import majorant

ONE_GPU = {"servers": 1, "jobs": 6, "slots": 1, "node_scale": 0.01}


class InTurn:
    """Gives the only GPU to every job in turn, all within the slot."""

    def __init__(self, scenario: Scenario) -> None:
        self._host, self._jobs = scenario.setup.hosts[0], len(scenario.jobs)
        self._part_us = scenario.setup.slot_us // self._jobs

    def decide(self, view: View) -> Decision:
        turn = view.now_us // self._part_us
        plans = [Plan(turn - 1, ())] if turn - 1 in view.active else []
        if turn < self._jobs:
            plans.append(Plan(turn, (Step(view.now_us, OPEN, (self._host,), (1,)),)))
        wake_us = view.now_us + self._part_us if turn + 1 < self._jobs else None
        return Decision(plans=tuple(plans), wake_us=wake_us)

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


@pytest.mark.parametrize("utility", ["sigmoid", "sqrt", "log"])
def test_jobs_that_share_one_slot_do_not_pass_the_bound(utility: str) -> None:
    scenario = tw.generate("gadget", seed=3, utility=utility, **ONE_GPU)
    assert len(scenario.jobs) == 6
    spec = Spec(
        name="in-turn",
        summary="every job in turn",
        factory=lambda setup, params, random: InTurn(scenario),
        works=frozenset({"rounds"}),
    )
    run, whole = tw.run(scenario, spec, bound=True), tw.run(scenario, "gadget", bound=True)
    assert run.bound is not None
    assert 0 < run.value <= run.bound.value * (1 + 1e-9)
    if utility == "sqrt":  # here sharing pays, so that a bound over whole worker-slots would be too low
        assert run.value > 1.5 * whole.value


@pytest.mark.parametrize(
    "more", [{"utility": u} for u in ("sigmoid", "sqrt", "log")] + [{"objective": "energy"}]
)
def test_the_majorant_is_concave_and_nowhere_below_the_utility(more: dict[str, str]) -> None:
    for job in tw.generate("gadget", seed=5, jobs=10, servers=4, slots=10, **more).jobs:
        assert isinstance(job.work, Rounds)
        assert job.utility is not None
        reach = min(job.work.count, 12)
        value, pieces = majorant(job.utility, job.work.rate, reach)
        slopes = [slope for _, slope in pieces]
        assert slopes == sorted(slopes, reverse=True)
        top = max(job.utility.value(job.work.rate * x / 50) for x in range(50 * reach + 1))
        assert value == pytest.approx(job.utility.value(0.0), abs=1e-9)
        for k in range(50 * reach + 1):
            x, line = k / 50, value
            for length, slope in pieces:
                line += slope * min(length, max(0.0, x))
                x -= length
            real = job.utility.value(job.work.rate * k / 50)
            assert real <= line + 1e-9 * top
            assert line <= top * 1.01 + 1e-9
            if k % 50 == 0 and "utility" in more and more["utility"] != "sigmoid":
                assert line == pytest.approx(real, rel=1e-9)


@pytest.mark.parametrize("utility", ["sigmoid", "sqrt"])
def test_the_bound_holds_where_ring_time_acts_on_progress(utility: str) -> None:
    size = {"servers": 8, "jobs": 40, "slots": 12, "family": "vtight", "utility": utility}
    slow, drawn = (tw.generate("gadget", seed=2, ring_time=on, **size) for on in (True, False))
    limit, without = tw.bound(slow), tw.bound(drawn)
    assert limit is not None
    assert without is not None
    for name in ("gadget", "gadget-paper", "ring-fifo", "ring-las"):
        assert 0 < tw.run(slow, name).value <= limit.value * (1 + 1e-9)
    assert limit.value != without.value


def test_one_worker_who_waits_for_nobody_reaches_the_bound_with_ring_time() -> None:
    scenario = tw.generate("gadget", seed=3, ring_time=True, utility="sqrt", servers=1, jobs=1, slots=4)
    (job,) = scenario.jobs
    alone = replace(scenario, jobs=(replace(job, workers_min=1, workers_max=1),))
    run = tw.run(alone, "ring-fifo", bound=True)
    assert run.bound is not None
    assert run.value == pytest.approx(run.bound.value, rel=1e-3)
