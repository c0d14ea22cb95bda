"""What every policy must keep, as functions of a policy and a scenario; each raises where it is broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tests.builders import loop_of
from tradewind.api import check
from tradewind.engine.journal import instants
from tradewind.model.job import Customer, Fixed, Job, Stream
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.spec import Spec
from tradewind.worlds.simulate import make_policy, simulate

SEED = 5


def fresh(spec: Spec, given: Scenario) -> Any:
    """The policy as simulate() makes it."""
    return make_policy(given, spec, {}, SEED)[0]


def passes_the_audit(spec: Spec, given: Scenario) -> Run:
    """The run is lawful, also when it is checked again from its tables alone."""
    run = simulate(given, spec, seed=SEED)
    assert run.violations == ()
    assert check(given, run) == ()
    assert run.metrics["jobs"] == len(given.jobs)
    return run


def is_the_same_each_time(spec: Spec, given: Scenario, run: Run) -> None:
    """Same scenario, parameters and seed: the same tables, number by number."""
    assert simulate(given, spec, seed=SEED) == run


def continues_after_restore(spec: Spec, given: Scenario, run: Run, share: float) -> None:
    """Saved after a share of the instants and restored into a new object, it goes on as if nothing had happened."""
    loop = loop_of(given, spec, fresh(spec, given))
    times = sorted(set(run.tables["events"]["at_us"]))  # type: ignore[type-var] # a column of ints
    change_over = times[int(share * (len(times) - 1))]
    changed = False
    while events := loop.world.wait():
        loop.cycle(events)
        if not changed and events[0].at_us >= change_over:  # type: ignore[operator] # a column of ints
            state = loop.policy.save()
            assert isinstance(state, bytes)
            loop.policy = fresh(spec, given)
            loop.policy.restore(state)
            changed = True
    assert changed
    loop.charge()
    journal = {
        name: loop.journal.tables[name]
        for name in ("events", "decisions", "plans", "steps", "places", "flows", "charges")
    }
    for name, table in journal.items():
        assert table == run.tables[name], f"{name} differs after a restore at {change_over} us"


def decisions_before(given: Scenario, run: Run, until_us: int) -> list[Any]:
    return [instant for instant in instants(given, run.tables) if instant.at_us < until_us]


def another_future(given: Scenario, run: Run, now_us: int) -> Scenario:
    """The same until `now_us`, and something else from then on: later jobs gone or other, other budgets, other data."""
    finish = dict(zip(run.tables["outcomes"]["job"], run.tables["outcomes"]["finish_us"], strict=True))
    jobs: list[Job] = []
    customers: list[Customer] = []
    for job, customer in zip(given.jobs, given.customers, strict=True):
        if job.arrive_us >= now_us:
            if job.index % 2:
                continue
            work = job.work
            if isinstance(work, Fixed) and work.runtime_us is not None:
                work = Fixed(runtime_us=work.runtime_us * 3)
            job = replace(job, index=len(jobs), work=work)
            customer = _other(customer)
        elif customer.runtime_us is not None and isinstance(job.work, Stream | Fixed):
            ends: Any = finish[job.index]
            if ends < 0 or ends > now_us:
                customer = replace(customer, runtime_us=customer.runtime_us * 2)
        jobs.append(job)
        customers.append(customer)
    rows, known = given.volumes, sum(job.arrive_us < now_us for job in given.jobs)
    keep = (rows.slot * given.setup.slot_us < now_us) | (rows.job < known)
    later = rows.slot[keep] * given.setup.slot_us >= now_us
    size = np.where(later, rows.bytes[keep] // 2, rows.bytes[keep])
    early = rows.job[keep] < known
    volumes = Volumes(
        job=rows.job[keep][early], slot=rows.slot[keep][early], node=rows.node[keep][early], bytes=size[early]
    )
    changes = tuple(c for c in given.changes if c.at_us < now_us)
    return replace(given, jobs=tuple(jobs), customers=tuple(customers), volumes=volumes, changes=changes)


def _other(customer: Customer) -> Customer:
    budget = None if customer.budget_usd is None else customer.budget_usd * 1.7
    return replace(customer, budget_usd=budget)


def does_not_peek_ahead(spec: Spec, given: Scenario, run: Run, share: float) -> None:
    """Two scenarios that are equal until some time lead to equal decisions until then."""
    times: list[Any] = sorted(set(run.tables["events"]["at_us"]))
    now = max(times[int(share * (len(times) - 1))], 1)
    other = another_future(given, run, now)
    again = simulate(other, spec, seed=SEED)
    assert decisions_before(given, run, now) == decisions_before(other, again, now)


def does_not_see_budgets(spec: Spec, given: Scenario, run: Run) -> None:
    """Budgets that lead to the same answers lead to the same decisions."""
    answers: Mapping[Any, Any] = dict(
        zip(run.tables["answers"]["job"], run.tables["answers"]["taken"], strict=True)
    )
    customers = []
    for index, customer in enumerate(given.customers):
        budget = customer.budget_usd
        if budget is not None:
            # whoever bought has more, whoever declined less: everybody answers as before
            budget *= 1.5 if answers.get(index, 0) >= 0 else 0.5
        customers.append(replace(customer, budget_usd=budget))
    again = simulate(replace(given, customers=tuple(customers)), spec, seed=SEED)
    for name in ("events", "decisions", "plans", "steps", "places", "offers", "answers"):
        assert again.tables[name] == run.tables[name], name
