"""Does a quote under a false name pay? Hold it until a rival has been turned away, let it expire, and buy.

`python -m tradewind.systems.eris.study.holds 1000` plays 1,000 pairs of markets for each mechanism: one as it is, and one in
which the buyer also asks for a quote under a false name just before a rival, thinks, and never answers.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tradewind.audit import Audit
from tradewind.engine.accounts import settle
from tradewind.engine.intervals import ints, texts
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.quotes import QuoteTerms
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.decision import HeldQuote
from tradewind.model.errors import Refused
from tradewind.model.job import Customer, Job
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.registry import policies
from tradewind.systems.eris.study.lies import payoffs, tiny
from tradewind.worlds.assembled import unsettled
from tradewind.worlds.simulate import make_policy
from tradewind.worlds.simulated import SimulatedWorld

TIGHT = {"sites": 2, "jobs": 6, "slots": 16, "last_arrival": 4, "gpu": 2.0}
"""Two sites, so that one quote can hold most of the room."""
FALSE = "false"
"""Id of the job that is quoted under a false name."""


class Pair(NamedTuple):
    """What a false quote changes for the buyer, in USD, and whether the rival's payoff changed."""

    gain: float
    rival_lost: bool
    held: bool


class _Customers(SimulatedWorld):
    """Customers take their best offer, after some time if it is held; whoever asks under a false name never answers."""

    def hold(self, held: HeldQuote) -> None:
        super().hold(held)
        if self._scenario.jobs[held.quote.job].id != FALSE:
            self.answer((held.at_us + held.expires_us) // 2, held, self.ask(held.quote))


def play(scenario: Scenario, spec: Spec, params: Mapping[str, Any], *, slow: bool) -> dict[str, float]:
    """Payoffs in an audited market; all others answer at once, or (slow) think for a while too."""
    world = _Customers(scenario, slots=True, unscripted=True)
    state = RunState(Ledger(scenario.setup), Audit(scenario.setup, binding=True), Journal())
    policy, values = make_policy(scenario, spec, params, 0)
    some_us = scenario.setup.slot_us // (8 if slow else 2)

    def hold_us(job: Job) -> int:
        return some_us if slow or job.id == FALSE else 0

    session = Session(state, policy, spec, world.ask, QuoteTerms(hold_us))
    Loop(world, session).run()
    if found := state.audit.close().violations:
        raise Refused(found)
    run = settle(scenario, unsettled(scenario, spec, values, 0, state.journal))
    quoted = ints(run, "events", "job")[texts(run, "events", "kind") == "quoted"]
    return payoffs(scenario, run) | {f"{scenario.jobs[job].id} quoted": 1.0 for job in quoted.tolist()}


def try_pair(seed: int, params: Mapping[str, Any], *, serial: bool, slow: bool = False) -> Pair:
    """A buyer, and a rival that arrives before it; the false quote asks for as much as the market's largest bid."""
    rng = np.random.default_rng((seed, 16))
    scenario = tiny(seed, **TIGHT)
    spec = replace(policies.find("eris"), serial_quotes=serial)
    jobs = scenario.jobs
    rival, buyer = sorted(rng.choice(len(jobs), 2, replace=False).tolist())
    honest = play(scenario, spec, params, slow=slow)
    fooled = play(_with_false_quote(scenario, jobs[rival], rng), spec, params, slow=slow)
    gain = fooled.get(jobs[buyer].id, 0.0) - honest.get(jobs[buyer].id, 0.0)
    lost = fooled.get(jobs[rival].id, 0.0) < honest.get(jobs[rival].id, 0.0) - 1e-6
    return Pair(gain, lost, f"{FALSE} quoted" in fooled)


def _with_false_quote(scenario: Scenario, rival: Job, rng: np.random.Generator) -> Scenario:
    """The market with one more bid, just before the rival's, that is worth so much that every offer is shown to it."""
    model = scenario.jobs[int(rng.integers(len(scenario.jobs)))]
    assert model.utility is not None
    height, steep, middle = model.utility.args
    bid = replace(model.utility, args=(height * 100.0, steep, middle))
    false = replace(model, id=FALSE, tenant=FALSE, arrive_us=rival.arrive_us, utility=bid)
    jobs = [*scenario.jobs[: rival.index], false, *scenario.jobs[rival.index :]]
    numbered = tuple(replace(job, index=i) for i, job in enumerate(jobs))
    return replace(scenario, jobs=numbered, customers=(Customer(),) * len(numbered))


def main(count: int) -> None:
    """Print one line per mechanism."""
    for title, gamma, serial, slow in (
        ("quotes hold, nobody waits", 1.0, False, False),
        ("quotes hold, nobody waits, gamma 1000", 1000.0, False, False),
        ("serial quotes", 1.0, True, False),
        ("serial quotes, gamma 1000", 1000.0, True, False),
        ("serial quotes, rivals think too", 1.0, True, True),
        ("serial quotes, rivals think too, gamma 1000", 1000.0, True, True),
    ):
        params = {"floor": "none", "gamma": gamma}
        found = [try_pair(seed, params, serial=serial, slow=slow) for seed in range(count)]
        gains = [pair.gain for pair in found]
        print(
            f"{title}: {sum(gain > 1e-6 for gain in gains)} of {count} pairs gain, at most {max(gains):.6g} USD; "
            f"{sum(pair.held for pair in found)} false quotes were made, "
            f"{sum(pair.rival_lost for pair in found)} rivals lost",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
