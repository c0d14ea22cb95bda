"""Plans of a whole scenario that know all arrivals and data, with a certified bound."""

from __future__ import annotations

from tradewind.model.decision import Plan, Step
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.systems.mixed.bound.whole import uncovered, whole
from tradewind.systems.mixed.kernels.market import Answer
from tradewind.systems.mixed.shared.exchange import Effort, exchange
from tradewind.systems.mixed.shared.oracles.ask import Ask
from tradewind.systems.mixed.shared.oracles.stream import Streaming
from tradewind.systems.mixed.shared.prices import ROUNDS

REPLIES = (150, 600, 2_400)
"""Replies of ruin and recreate per job, by effort."""


def offline(scenario: Scenario, effort: int) -> Offline | None:
    """The best plans found; None where the bound does not cover the scenario or limits change, or tenants have caps."""
    if uncovered(scenario) or scenario.setup.spend_caps or any(c.kind != "price" for c in scenario.changes):
        return None
    found = whole(scenario)
    if not found.asks:
        return Offline(bound=found.sunk_usd)
    level = Effort(rounds=ROUNDS, replies=REPLIES[min(effort, len(REPLIES)) - 1])
    done = exchange(found.frame, found.asks, found.market, level, (1,))
    plans: dict[int, list[Plan]] = {}
    for ask, answer in zip(found.asks, done.books.plan, strict=True):
        if answer is None:
            continue
        steps = steps_of(ask, answer)
        if isinstance(ask, Streaming):  # a stream is planned slot by slot
            for step in steps:
                plans.setdefault(step.from_us, []).append(Plan(ask.job.index, (step,)))
        else:
            plans.setdefault(ask.job.arrive_us, []).append(Plan(ask.job.index, tuple(steps)))
    return Offline(plans=plans, bound=done.priced.bound + found.sunk_usd)


def steps_of(ask: Ask, answer: Answer) -> list[Step]:
    """A schedule as steps of one slot."""
    slot_us, found = ask.frame.setup.slot_us, []
    for t in range(ask.slots):
        used = ((answer.workers[t] > 0) | (answer.servers[t] > 0)).nonzero()[0].tolist()
        if used:
            begin = (ask.supply.first + t) * slot_us
            servers = tuple(int(answer.servers[t, h]) for h in used) if answer.servers[t].any() else ()
            nodes = tuple(int(ask.frame.hosts[h]) for h in used)
            workers = tuple(int(answer.workers[t, h]) for h in used)
            found.append(Step(begin, begin + slot_us, nodes, workers, servers, ask.flows(answer, t)))
    return found
