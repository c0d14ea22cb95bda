"""Whether a policy supports a scenario, checked before a run starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tradewind.model.errors import LookupFailed, Unsupported
from tradewind.model.job import DECLARED, Dataset, Fixed, Job, Rounds
from tradewind.model.job_columns import JobColumns
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.registry import policies


def mismatch(spec: Spec, scenario: Scenario) -> str:
    """Reason why the policy cannot run the scenario, or ""."""
    setup = scenario.setup
    if setup.objective not in spec.objectives:
        known = ", ".join(sorted(spec.objectives))
        return f"the scenario's objective is {setup.objective}; {spec.name} works on {known}"
    jobs = (
        scenario.jobs if not isinstance(scenario.jobs, JobColumns) else (scenario.jobs[0],)
    )  # equal in kind
    if why := next(filter(None, (job_mismatch(spec, job) for job in jobs)), ""):
        return why
    if setup.objective == "profit_usd" and not spec.pricer:
        return (
            f"the scenario's objective is profit_usd; {spec.name} makes no offers, so there are no payments"
        )
    if setup.spend_caps and not spec.keeps_caps:
        return (
            f"the scenario has spend_caps, which {spec.name} does not enforce; remove the caps"
            f"{policies.that(lambda other: other.keeps_caps)}"
        )
    if "horizon" in spec.needs and setup.window_slots is not None:
        return (
            f"{spec.name} plans for a known end of the run; the scenario has window_slots: {setup.window_slots}. "
            "Leave out window_slots"
        )
    if "concave tariff" in spec.needs:
        tariffs = [*setup.rent.values(), *setup.egress.values()]
        if not all(tariff.is_concave for tariff in tariffs):
            return (
                f"{spec.name} needs concave tariffs; a retroactive tariff with several tiers is not concave"
            )
        for pool in setup.pools:
            if not pool.is_concave:
                why = "a free tier" if pool.free_usd else "a retroactive tariff with several tiers"
                return (
                    f"{spec.name} needs concave tariffs; pools[{pool.name}] has {why}, which is not concave"
                )
    if "links" in spec.needs and not setup.links:
        return f"{spec.name} routes traffic; the scenario has no links"
    if "tree" in spec.needs and len(setup.links) != len(setup.nodes) - 1:
        wanted = len(setup.nodes) - 1
        return (
            f"{spec.name} needs a tree: {wanted} links for {len(setup.nodes)} nodes; found {len(setup.links)}"
        )
    if "tree" in spec.needs and not _is_connected(setup):
        return f"{spec.name} needs a tree; the links leave some nodes disconnected and form a cycle elsewhere"
    return ""


def job_mismatch(spec: Spec, job: Job) -> str:
    """Reason why the policy cannot run a job, or ""."""
    kinds = _kinds(job)
    if not kinds & spec.works:
        known = ", ".join(sorted(spec.works))
        able = policies.that(lambda other: bool(kinds & other.works))
        return f"job {job.id} is of kind {max(kinds, key=len)}; {spec.name} works on {known}{able}"
    if job.architecture not in spec.architectures:
        return f"job {job.id} is a {job.architecture} job; {spec.name} handles {', '.join(sorted(spec.architectures))}"
    if "runtime" in spec.needs and isinstance(job.work, Fixed) and job.work.runtime_us is None:
        return f"{spec.name} needs public runtimes; the runtime of job {job.id} is private"
    if "bid" in spec.needs and job.utility is None:
        return f"{spec.name} needs a bid (utility) from every job; job {job.id} has none"
    return ""


def check_tenants(spec: Spec, given: Mapping[str, Any], scenario: Scenario) -> None:
    """Refuse parameters that name a tenant who is not in the scenario."""
    if any(param.tenants for param in spec.params.values()):
        check_named(spec, given, {job.tenant for job in scenario.jobs} | set(scenario.setup.spend_caps))


def check_named(spec: Spec, given: Mapping[str, Any], tenants: Collection[str]) -> None:
    """Refuse parameters that name a tenant who is not among these."""
    for name in (name for name, param in spec.params.items() if param.tenants):
        pairs = [part.partition("=") for part in str(given.get(name, "")).split(",")]
        for tenant in (key.strip() for key, sign, _ in pairs if sign):
            if tenant not in tenants:
                raise LookupFailed(f"tenant (named in {spec.name}.{name})", tenant, tenants)


def _is_connected(setup: Setup) -> bool:
    """Whether every node can be reached from the first, ignoring the direction of links."""
    near: dict[int, list[int]] = {}
    for link in setup.links:
        near.setdefault(link.a, []).append(link.b)
        near.setdefault(link.b, []).append(link.a)
    seen, queue = {0}, [0]
    while queue:
        fresh = [other for other in near.get(queue.pop(), ()) if other not in seen]
        seen.update(fresh)
        queue += fresh
    return len(seen) == len(setup.nodes)


def _kinds(job: Job) -> set[str]:
    """Names under which a policy may support a job: rounds, rounds/ring, …; machines are a kind of their own."""
    if isinstance(job.work, Rounds) and job.work.comm == "machines":
        return {"rounds/machines"}
    return {job.kind, f"{job.kind}/{job.work.comm}"} if isinstance(job.work, Rounds) else {job.kind}


def _unkept(spec: Spec, scenario: Scenario) -> str:
    """Why a policy cannot run datasets that take longer than declared, or "": it would not know what is left."""
    if spec.binding or isinstance(scenario.jobs, JobColumns):
        return ""
    for job, customer in zip(scenario.jobs, scenario.customers, strict=True):
        if customer.pace_milli != DECLARED and isinstance(job.work, Dataset):
            return f"job {job.id} takes another time than it declares; datasets may do so where plans are sold for good"
    return ""


def check_fit(spec: Spec, scenario: Scenario) -> None:
    """Raise Unsupported, with the reason, if the policy cannot run the scenario."""
    if why := mismatch(spec, scenario) or _unkept(spec, scenario):
        raise Unsupported(
            f"{spec.name} cannot run {scenario.name!r}: {why}. `tradewind policies` lists what each policy supports."
        )
