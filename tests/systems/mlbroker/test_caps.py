"""Tenants' spend caps: enforced by every mlBroker policy, checked by the audit, an upper bound of every bill."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from tests.systems.mlbroker.test_policy import ALL, made, reasons, with_capacity
from tradewind.engine.fit import mismatch
from tradewind.files.scenario_file import parse
from tradewind.files.scenario_write import document
from tradewind.model.errors import InputError, Refused
from tradewind.model.hash import scenario_hash
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.tenant import SpendCap
from tradewind.registry import policies
from tradewind.systems.mlbroker.explain.bills import shares, tenant_bills
from tradewind.systems.mlbroker.explain.slots import decided_slots
from tradewind.systems.mlbroker.kernels.bills import SPLIT_RULES, list_cost
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.systems.mlbroker.shared.caps import Caps
from tradewind.testing.contract import continues_after_restore, does_not_peek_ahead, passes_the_audit
from tradewind.worlds.simulate import simulate

BUSY: dict[str, Any] = {"family": "narrow", "jobs_per_slot": 6}


def capped(scenario: Scenario, **caps: SpendCap) -> Scenario:
    """`every` stands for *; underscores in names for dashes."""
    named = {"*" if key == "every" else key.replace("_", "-"): cap for key, cap in caps.items()}
    return replace(scenario, setup=replace(scenario.setup, spend_caps=named))


def spend(scenario: Scenario, run: Run) -> dict[str, list[float]]:
    """Tenant -> USD at list price, slot by slot."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0] * scenario.setup.slots)
    for decided in decided_slots(scenario, run):
        for job, usd in zip(
            decided.jobs, list_cost(decided.slot, decided.workers, decided.server), strict=True
        ):
            found[job.tenant][decided.number] += float(usd)
    return found


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_every_policy_enforces_caps_and_gives_reasons_for_refusals(spec: Spec) -> None:
    free = made(**BUSY)
    used = spend(free, simulate(free, spec))["tenant-0"]
    given = capped(free, tenant_0=SpendCap(slot_usd=0.7 * max(used), total_usd=0.5 * sum(used)))
    run = simulate(given, spec)
    kept = spend(given, run)["tenant-0"]
    assert max(kept) <= 0.7 * max(used) * (1 + 1e-9)
    assert sum(kept) <= 0.5 * sum(used) * (1 + 1e-9)
    assert reasons(run)
    assert all("'tenant-0' may spend" in reason and "at list price" in reason for reason in reasons(run))
    turned_away = {given.jobs[int(job)].tenant for job in run.tables["verdicts"]["job"]}
    assert turned_away == {"tenant-0"}


@pytest.mark.parametrize("rule", SPLIT_RULES)
@pytest.mark.parametrize("policy", ["mlbroker", "local"])
def test_no_bill_exceeds_the_spend_at_list_price_whatever_rule_and_margin(policy: str, rule: str) -> None:
    """So a cap at list price also holds for the bill, even of a wasteful policy."""
    given = made(**BUSY)
    for decided in decided_slots(given, simulate(given, policies.find(policy))):
        listed: dict[str, float] = defaultdict(float)
        for job, usd in zip(
            decided.jobs, list_cost(decided.slot, decided.workers, decided.server), strict=True
        ):
            listed[job.tenant] += float(usd)
        for margin in (0.0, 1.0):
            tenants, alone, pooled = shares(decided, rule, margin)
            for tenant, one, share in zip(tenants, alone, pooled, strict=True):
                assert one <= listed[tenant] * (1 + 1e-9)
                assert share <= listed[tenant] * (1 + 1e-9)


def test_nobody_is_refused_while_the_cheapest_plans_fit_the_cap() -> None:
    """The pooled plan costs a tenant more at list price than its cheapest plans; over its cap it gets those."""
    free = made(**BUSY, slots=1, seed=5)
    pooled = spend(free, simulate(free, MLBROKER))
    least = spend(free, simulate(free, policies.find("selfish")))
    tenant = max(pooled, key=lambda name: pooled[name][0] / least[name][0])
    assert pooled[tenant][0] > 1.001 * least[tenant][0]
    given = capped(free, **{tenant: SpendCap(slot_usd=1.0001 * least[tenant][0])})
    run = simulate(given, MLBROKER)
    assert reasons(run) == []
    assert spend(given, run)[tenant] == pytest.approx(least[tenant])
    short = capped(free, **{tenant: SpendCap(slot_usd=0.9999 * least[tenant][0])})
    assert len(reasons(simulate(short, MLBROKER))) == 1


def test_caps_hold_beside_finite_capacity() -> None:
    free = with_capacity(made(**BUSY), 60_000)
    used = spend(free, simulate(free, MLBROKER))
    run = simulate(capped(free, every=SpendCap(slot_usd=0.6 * max(max(s) for s in used.values()))), MLBROKER)
    assert any("may spend" in reason for reason in reasons(run))
    assert run.metrics["jobs_refused"] < run.metrics["jobs"]


def test_weights_in_the_decision_do_not_change_what_counts() -> None:
    free = made(**BUSY)
    used = spend(free, simulate(free, MLBROKER))
    given = capped(free, every=SpendCap(slot_usd=0.8 * max(max(s) for s in used.values())))
    run = simulate(given, MLBROKER, {"weight_transfer": 0.0, "weight_rent": 3.0})
    assert reasons(run)


def test_the_audit_stops_a_policy_that_forgets_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Caps, "excess_reason", lambda *_: "")
    free = made(**BUSY)
    with pytest.raises(Refused, match=r"spend\.slot.*'tenant-1' spends"):
        simulate(capped(free, tenant_1=SpendCap(slot_usd=1.0)), MLBROKER)
    total = 0.5 * sum(spend(free, simulate(free, MLBROKER))["tenant-1"])
    with pytest.raises(Refused, match=r"spend\.total"):
        simulate(capped(free, tenant_1=SpendCap(total_usd=total)), MLBROKER)


@pytest.mark.parametrize("name", ["mlbroker", "local"])
def test_a_policy_restored_in_the_middle_remembers_what_was_spent(name: str) -> None:
    free = made(**BUSY, slots=8)
    total = 0.6 * sum(spend(free, simulate(free, policies.find(name)))["tenant-0"])
    given = capped(free, tenant_0=SpendCap(total_usd=total))
    run = passes_the_audit(policies.find(name), given)
    assert reasons(run)
    continues_after_restore(policies.find(name), given, run, 0.5)
    does_not_peek_ahead(policies.find(name), given, run, 0.5)


def test_policies_that_do_not_know_caps_refuse_the_scenario_before_it_starts() -> None:
    given = capped(made(), every=SpendCap(slot_usd=5.0))
    for name in policies.names():
        spec = policies.find(name)
        why = mismatch(spec, given)
        assert spec.keeps_caps == (why == ""), (name, why)
    stream = replace(policies.find("fifo"), works=frozenset(("stream",)))
    assert "does not enforce" in mismatch(stream, given)


def test_caps_travel_through_files_and_change_the_hash_only_where_there_are_some() -> None:
    free = made()
    given = capped(free, tenant_0=SpendCap(slot_usd=12.5), every=SpendCap(total_usd=99.0))
    again = parse(document(given))
    assert again.setup.spend_caps == given.setup.spend_caps
    assert scenario_hash(again) == scenario_hash(given) != scenario_hash(free)
    assert "spend_caps" not in document(free)


@pytest.mark.parametrize(
    ("caps", "message"),
    [
        ({"nobody": {"slot_usd": 5}}, "without jobs.*'tenant-0', 'tenant-1'"),
        ({"tenant-0": {"slot_usd": -1}}, "slot_usd"),
        ({"tenant-0": {}}, "limits nothing; give slot_usd"),
        ({"tenant-0": {"slot_usd": "lots"}}, "slot_usd"),
        ({"tenant-0": {"week_usd": 3}}, "week_usd"),
    ],
)
def test_bad_caps_are_refused_with_the_place_and_what_is_allowed(caps: object, message: str) -> None:
    with pytest.raises(InputError, match=f"spend_caps.*{message}"):
        parse({**document(made()), "spend_caps": caps})


def test_policies_that_keep_no_caps_refuse_them_for_every_kind_of_job() -> None:
    from tests.builders import job, scenario, setup

    given = scenario([job(0, tenant="a")], where=setup(spend_caps={"a": SpendCap(slot_usd=1.0)}))
    assert "does not enforce" in mismatch(policies.find("fifo"), given)


def test_the_bills_of_a_run_follow_its_split_and_margin() -> None:
    from tradewind import run as tw_run

    given = made(family="narrow", jobs_per_slot=8, tenants=3)
    for rule, margin in (("proportional", 0.0), ("shapley", 0.5)):
        run = tw_run(given, policy="mlbroker", params={"split": rule, "margin": margin})
        expected = tenant_bills(given, run, rule, margin)
        rows = run.tables["bills"]
        pooled = [usd for kind, usd in zip(rows["kind"], rows["usd"], strict=True) if kind == "pooled"]
        assert pooled == [each.pooled_usd for each in expected]
    with pytest.raises(InputError, match="0 to 1"):
        tw_run(given, policy="mlbroker", params={"margin": 2.0})
