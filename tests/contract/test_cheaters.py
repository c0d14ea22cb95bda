"""The contract tests can fail: policies that cheat, forget or throw dice are caught."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.builders import ALL, node, plan, run_at, setup
from tradewind.model.decision import NOTHING, Decision, Offer, Plan, Quote
from tradewind.model.job import Customer, Fixed, Job
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.view import View
from tradewind.testing import contended_cluster, contract


class Simple:
    """Starts jobs of one gpu wherever there is room; subclasses cheat."""

    def picks(self, view: View) -> list[int]:
        return [index for index in view.active if view.plan(index) is None]

    def decide(self, view: View) -> Decision:
        plans: list[Plan] = []
        room = {host: view.free(host, 0) // 1000 for host in view.setup.hosts}
        for index in self.picks(view):
            for host, left in room.items():
                if left > 0 and view.job(index).workers_max == 1 and view.free(host, 0) >= 1000:
                    room[host] -= 1
                    plans.append(plan(index, run_at(view.now_us, (host,))))
                    break
        return Decision(plans=tuple(plans)) if plans else NOTHING

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def spec(make: Any, **more: Any) -> Spec:
    facts: dict[str, Any] = {
        "name": "cheater",
        "summary": "",
        "works": frozenset(("fixed",)),
        "triggers": ALL,
    }
    return Spec(**(facts | {"factory": lambda setup, params, random: make()} | more))


def calm() -> Scenario:
    """A cluster without racks and failures, so that simple policies can run it."""
    made = contended_cluster(3, calm=True)
    nodes = [node(f"s{i}", 4, kind="server") for i in range(6)]
    where = setup(nodes, slot_us=made.setup.slot_us, horizon_us=made.setup.horizon_us)
    return Scenario(name="calm", setup=where, jobs=made.jobs, customers=made.customers)


def test_an_honest_simple_policy_keeps_every_contract() -> None:
    given, honest = calm(), spec(Simple)
    run = contract.passes_the_audit(honest, given)
    contract.is_the_same_each_time(honest, given, run)
    contract.continues_after_restore(honest, given, run, 0.5)
    contract.does_not_peek_ahead(honest, given, run, 0.5)
    contract.does_not_see_budgets(honest, given, run)


def test_a_policy_that_knows_what_comes_is_caught_by_the_other_future() -> None:
    given = calm()

    def seer(known: Scenario) -> Spec:
        class Seer(Simple):
            def picks(self, view: View) -> list[int]:
                crowd = sum(view.now_us < j.arrive_us < view.now_us + 20_000 for j in known.jobs)
                return super().picks(view) if crowd % 2 else []

        return spec(Seer)

    # The cheat needs a closure on the scenario that it runs, which a factory never gets: rebuilt for each one here.
    run = contract.passes_the_audit(seer(given), given)
    now = given.jobs[40].arrive_us
    other = contract.another_future(given, run, now)
    again = contract.passes_the_audit(seer(other), other)
    before, after = (contract.decisions_before(s, r, now) for s, r in ((given, run), (other, again)))
    assert before != after


class Pricing(Simple):
    """Sells at half its price to whoever takes it."""

    def price(self, job: Job) -> float:
        return 2.0

    def picks(self, view: View) -> list[int]:
        return []

    def quote(self, view: View, job: Job) -> Quote:
        host = next((h for h in view.setup.hosts if view.free(h, 0) >= 1000 * job.workers_max), -1)
        if host < 0:
            return Quote(job.index, (), "capacity")
        assert isinstance(job.work, Fixed)
        assert job.work.runtime_us is not None
        step = run_at(view.now_us, (host,), (job.workers_max,))
        offer = Offer(self.price(job), view.now_us + job.work.runtime_us, Plan(job.index, (step,)))
        return Quote(job.index, (offer,))


def test_a_price_that_nobody_whispered_keeps_the_contract() -> None:
    given, honest = calm(), spec(Pricing, pricer=True)
    run = contract.passes_the_audit(honest, given)
    assert 0 < run.metrics["jobs_declined"] < run.metrics["jobs"]
    contract.does_not_see_budgets(honest, given, run)


def test_a_policy_that_knows_budgets_is_caught_by_other_budgets() -> None:
    given = calm()
    wallets: list[Sequence[Customer]] = [given.customers]

    class Greedy(Pricing):
        def price(self, job: Job) -> float:
            return wallets[0][job.index].budget_usd or 0.0

    greedy = spec(Greedy, pricer=True)
    run = contract.passes_the_audit(greedy, given)
    assert run.metrics["payments_usd"] == pytest.approx(run.metrics["value_usd"])  # it leaves nobody a cent
    richer = [c.budget_usd * 1.5 for c in given.customers if c.budget_usd is not None]
    wallets[0] = tuple(Customer(budget_usd=usd) for usd in richer)
    with pytest.raises(AssertionError):
        contract.does_not_see_budgets(greedy, given, run)


def test_a_policy_that_forgets_is_caught_by_the_restore() -> None:
    class Forgetful(Simple):
        count = 0

        def picks(self, view: View) -> list[int]:
            self.count += 1
            return super().picks(view) if self.count % 3 else []

    given, forgetful = calm(), spec(Forgetful)
    run = contract.passes_the_audit(forgetful, given)
    with pytest.raises(AssertionError, match="after a restore"):
        contract.continues_after_restore(forgetful, given, run, 0.3)


def test_a_policy_that_throws_its_own_dice_is_caught_by_the_second_run() -> None:
    dice = random.Random(1)

    class Gambler(Simple):
        def picks(self, view: View) -> list[int]:
            return super().picks(view) if dice.random() < 0.5 else []

    given, gambler = calm(), spec(Gambler)
    run = contract.passes_the_audit(gambler, given)
    with pytest.raises(AssertionError):
        contract.is_the_same_each_time(gambler, given, run)
