"""The contract of a policy: what the audit, determinism, recovery and an unknown future ask of it.

Each check is a function of a policy and a scenario that raises CheckFailed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np

from tradewind.api import check
from tradewind.audit import Audit
from tradewind.engine.instants import Instant, instants
from tradewind.engine.journal import Journal
from tradewind.engine.ledger import Ledger
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.engine.state import RunState
from tradewind.model.errors import LookupFailed, TradewindError, Unsupported
from tradewind.model.job import Customer, Fixed, Job, Stream
from tradewind.model.result import Run, Table
from tradewind.model.scenario import Scenario, Volumes
from tradewind.model.spec import Spec
from tradewind.testing.disturbed import disturbed_run
from tradewind.testing.scenarios import fitting_scenarios, unsupported_scenario
from tradewind.worlds.simulate import make_policy, simulate
from tradewind.worlds.simulated import SimulatedWorld

SEED = 5
"""Seed of the policy in every check."""
SHARES = (0.0, 0.4, 0.7)
"""Where a run is interrupted or given another future, as shares of its instants."""
Tables = Mapping[str, Table]
JOURNAL = ("events", "decisions", "plans", "steps", "places", "flows", "charges")
"""Tables that hold what a policy did."""


class CheckFailed(AssertionError):
    """A policy broke its contract."""


class CheckResult(NamedTuple):
    """One check on one scenario; detail: what went wrong, or empty."""

    check: str
    scenario: str
    detail: str

    @property
    def ok(self) -> bool:
        return not self.detail


def check_policy(
    spec: Spec, scenarios: Sequence[Scenario] | None = None, seeds: Sequence[int] = (1, 2)
) -> None:
    """Runs every check and raises CheckFailed with all that failed.

    scenarios: what to run; by default small generated scenarios that the policy supports, for each of `seeds`.
    """
    failed = [result for result in run_checks(spec, scenarios, seeds) if not result.ok]
    if failed:
        lines = [f"  {r.check} on {r.scenario}: {r.detail}" for r in failed]
        raise CheckFailed(f"{spec.name} failed {len(failed)} checks:\n" + "\n".join(lines))


def run_checks(
    spec: Spec, scenarios: Sequence[Scenario] | None = None, seeds: Sequence[int] = (1, 2)
) -> list[CheckResult]:
    """Every check on every scenario, in order."""
    if scenarios is None:
        scenarios = [made for seed in seeds for made in islice(fitting_scenarios(spec, seed), 1)]
    if not scenarios:
        detail = "no generated scenario fits; give your own scenarios (works, objectives and needs of the Spec decide)"
        return [CheckResult("finds a scenario", spec.name, detail)]
    found = [
        _result("refuses what it does not support", spec.name, lambda: refuses_what_it_does_not_support(spec))
    ]
    for given in scenarios:
        found += _on(spec, given)
    return found


def _on(spec: Spec, given: Scenario) -> list[CheckResult]:
    """All checks on one scenario; without a sound run the others make no sense."""
    runs: list[Run] = []
    first = _result("passes the audit", given.name, lambda: runs.append(passes_the_audit(spec, given)))
    if not runs:
        return [first]
    run = runs[0]
    calls: list[tuple[str, Callable[[], None]]] = [
        ("runs something", lambda: runs_something(run)),
        ("gives the same run twice", lambda: is_the_same_each_time(spec, given, run)),
        ("refuses an unknown parameter", lambda: refuses_an_unknown_parameter(spec, given)),
    ]
    for share in SHARES:
        name = f"continues after save and restore at {share:.0%}"
        calls.append((name, partial(continues_after_restore, spec, given, run, share)))
    if spec.online:
        for share in SHARES[1:]:
            name = f"decides the same when the future changes at {share:.0%}"
            calls.append((name, partial(does_not_peek_ahead, spec, given, run, share)))
        calls.append(("does not see budgets", lambda: does_not_see_budgets(spec, given, run)))
        calls.append(("handles cancellations and failures", lambda: handles_unscripted_events(spec, given)))
        calls.append(("plans in a rolling window", lambda: plans_in_a_window(spec, given)))
    return [first, *(_result(name, given.name, call) for name, call in calls)]


def _result(name: str, scenario: str, call: Callable[[], object]) -> CheckResult:
    """Runs a check; whatever a policy raises is its failure."""
    try:
        call()
    except CheckFailed as error:
        return CheckResult(name, scenario, str(error))
    except Exception as error:  # a policy may fail in any way
        return CheckResult(name, scenario, f"{type(error).__name__}: {error}")
    return CheckResult(name, scenario, "")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CheckFailed(message)


def fresh(spec: Spec, given: Scenario) -> Any:
    """The policy as `simulate` makes it."""
    return make_policy(given, spec, {}, SEED)[0]


def passes_the_audit(spec: Spec, given: Scenario) -> Run:
    """The run breaks no rule, also when it is checked again from its tables alone."""
    run = simulate(given, spec, seed=SEED)
    found = check(given, run, spec)
    _require(not found, f"the audit of the finished run found {found[0] if found else ''}")
    _require(run.metrics["jobs"] == len(given.jobs), "the run lost jobs")
    return run


def runs_something(run: Run) -> None:
    """At least one job gets a worker."""
    _require(bool(run.tables["steps"]["plan"]), "not a single job ever ran")


def is_the_same_each_time(spec: Spec, given: Scenario, run: Run) -> None:
    """Same scenario, parameters and seed: the same tables, number by number."""
    again = simulate(given, spec, seed=SEED)
    _require(
        again == run,
        f"a second run differs in {_first_difference(run.tables, again.tables, tuple(run.tables))}",
    )


def continues_after_restore(spec: Spec, given: Scenario, run: Run, share: float) -> None:
    """Saved after a share of the instants and restored into a new object, it goes on as if nothing had happened."""
    world = SimulatedWorld(given, slots="slot" in spec.triggers)
    audit = Audit(given.setup, given, binding=spec.binding)
    state = RunState(Ledger(given.setup), audit, Journal())
    session = Session(state, fresh(spec, given), spec, world.ask)
    loop = Loop(world, session)
    times = sorted(set(cast(list[int], run.tables["events"]["at_us"])))
    change_over = times[int(share * (len(times) - 1))]
    restored = False
    while events := loop.world.wait():
        loop.cycle(events)
        if not restored and events[0].at_us >= change_over:
            saved = session.policy.save()
            _require(
                isinstance(saved, bytes), f"save() returned {type(saved).__name__}; it must return bytes"
            )
            session.policy = fresh(spec, given)
            session.policy.restore(saved)
            restored = True
    session.charge()
    where = _first_difference(run.tables, session.journal.tables, JOURNAL)
    _require(
        not where, f"{where} differs after a restore at {change_over} us; save() must hold the whole state"
    )


def _first_difference(one: Tables, other: Tables, tables: Sequence[str]) -> str:
    """The first table that differs, with its row; empty where none does."""
    for name in tables:
        if one[name] != other[name]:
            for column, values in one[name].items():
                others = other[name][column]
                for row, (a, b) in enumerate(zip(values, others, strict=False)):
                    if a != b:
                        return f"table {name}, row {row}: {column} is {b!r} instead of {a!r}; it"
            return f"the number of rows of table {name}"
    return ""


def refuses_an_unknown_parameter(spec: Spec, given: Scenario) -> None:
    """An unknown parameter is an error before the policy is made."""
    try:
        simulate(given, replace(spec, factory=_never), {"no-such-parameter": 1})
    except LookupFailed:
        return
    raise CheckFailed("an unknown parameter was accepted")


def refuses_what_it_does_not_support(spec: Spec) -> None:
    """A scenario with another kind of work is refused before the policy is made."""
    given = unsupported_scenario(spec)
    if given is None:
        return
    try:
        simulate(given, replace(spec, factory=_never))
    except Unsupported:
        return
    raise CheckFailed("a scenario with another kind of work was accepted")


def handles_unscripted_events(spec: Spec, given: Scenario, seeds: Sequence[int] = (1, 2)) -> None:
    """Under cancellations and failures that no script has it breaks no rule and continues identically after a restore."""
    calm = replace(given, changes=())
    for seed in seeds:
        tables = disturbed_run(spec, calm, lambda: fresh(spec, calm), seed)
        count = len(set(tables["events"]["at_us"]))
        again = disturbed_run(spec, calm, lambda: fresh(spec, calm), seed, restore_after=count // 2)
        where = _first_difference(tables, again, JOURNAL)
        _require(
            not where, f"{where} differs after a restore amid cancellations; save() must hold the whole state"
        )


def plans_in_a_window(spec: Spec, given: Scenario, window_slots: int = 3) -> None:
    """With a rolling window it breaks no rule, and does the same in a session that drops jobs that are over.

    A policy that needs a known end of the run refuses the scenario.
    """
    rolling = replace(given, setup=replace(given.setup, window_slots=window_slots))
    if "horizon" in spec.needs:
        try:
            simulate(rolling, replace(spec, factory=_never))
        except Unsupported:
            return
        raise CheckFailed(
            "a scenario with a window was accepted, but the policy needs a known end of the run"
        )
    run = simulate(rolling, spec, seed=SEED)
    state = RunState(
        Ledger(rolling.setup),
        Audit(rolling.setup, rolling, binding=spec.binding),
        Journal(),
        forget=lambda _: None,
    )
    world = SimulatedWorld(rolling, slots="slot" in spec.triggers)
    session = Session(state, fresh(spec, rolling), spec, world.ask)
    Loop(world, session).run()
    where = _first_difference(run.tables, session.journal.tables, JOURNAL)
    _require(not where, f"{where} differs in a session that drops jobs that are over")
    continues_after_restore(spec, rolling, run, SHARES[1])
    handles_unscripted_events(spec, rolling, seeds=(3,))


def _never(*_: Any) -> Any:
    raise CheckFailed("the policy was made although it cannot run")


def decisions_before(given: Scenario, run: Run, until_us: int) -> list[Instant]:
    """What was decided before an instant."""
    return [instant for instant in instants(given, run.tables) if instant.at_us < until_us]


def another_future(given: Scenario, run: Run, now_us: int) -> Scenario:
    """The same until `now_us`; from then on jobs are missing or different, with other budgets and other data."""
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
            ends = cast(int, finish[job.index])
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
    times = sorted(set(cast(list[int], run.tables["events"]["at_us"])))
    now = max(times[int(share * (len(times) - 1))], 1)
    other = another_future(given, run, now)
    again = simulate(other, spec, seed=SEED)
    before, after = decisions_before(given, run, now), decisions_before(other, again, now)
    at = next((a.at_us for a, b in zip(before, after, strict=False) if a != b), now)
    _require(before == after, f"what happens from {now} us on changed a decision at {at} us")


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
    try:
        again = simulate(replace(given, customers=tuple(customers)), spec, seed=SEED)
    except TradewindError as error:
        raise CheckFailed(f"with other budgets the run fails: {error}") from error
    tables = ("events", "decisions", "plans", "steps", "places", "offers", "answers")
    where = _first_difference(run.tables, again.tables, tables)
    _require(not where, f"{where} depends on budgets")
