"""Runs of plain jobs without the loop: a policy's compiled path writes the journal, the audit checks it in columns."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from tradewind.audit import compare
from tradewind.audit.columnar import audit_columns
from tradewind.engine.accounts import settle
from tradewind.model.errors import Refused, Unsupported
from tradewind.model.job_columns import JobColumns, columns_of
from tradewind.model.params import check_seed, recorded, resolve_params
from tradewind.model.result import Run, Table
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.registry import load, policies
from tradewind.worlds.assembled import assembled, timed

LARGE = 20_000
"""Jobs from which on the compiled path is taken where nobody says otherwise; the result is the same."""


def why_not(scenario: Scenario, spec: Spec) -> str:
    """Why a run has to go through the loop, or "": what the compiled path does not carry."""
    setup = scenario.setup
    if not spec.compiled:
        return f"{spec.name} has no compiled path{policies.that(lambda other: bool(other.compiled))}"
    if policies.has(spec.name) and policies.find(spec.name).factory is not spec.factory:
        return f"this {spec.name} is not the registered policy, whose compiled path it names"
    parts = {
        "changes, such as failures,": scenario.changes,
        "stream data": len(scenario.volumes),
        "links": setup.links,
        "prices": setup.rent or setup.egress or setup.pools,
        "spend caps": setup.spend_caps,
        "a limit of data moved": setup.transfer_bytes_per_slot is not None,
    }
    if there := next((name for name, part in parts.items() if part), ""):
        return f"the scenario has {there.strip(',')}"
    found = columns_of(scenario.jobs, scenario.customers)
    return found if isinstance(found, str) else ""


def simulate_compiled(scenario: Scenario, spec: Spec, params: Mapping[str, Any], *, seed: int = 0) -> Run:
    """The run that the loop would give, audited; Unsupported with the reason where it is not carried."""
    check_seed(seed)
    values = resolve_params(spec.name, spec.params, params)
    if why := why_not(scenario, spec):
        raise Unsupported(_refusal(scenario, spec, why))
    begin, jobs = perf_counter(), scenario.columns
    assert jobs is not None
    journal = _journal(scenario, spec, jobs, values)
    run = settle(scenario, assembled(scenario, spec, recorded(spec.params, values), seed, journal))
    report = audit_columns(scenario.setup, jobs, run.tables)
    if found := report.violations or compare(report.metrics, run.metrics):
        raise Refused(found)
    return timed(run, perf_counter() - begin, ())


def _journal(scenario: Scenario, spec: Spec, jobs: JobColumns, values: Mapping[str, Any]) -> dict[str, Table]:
    try:
        tables: dict[str, Table] = load(spec.compiled)(scenario, jobs, values)
    except Unsupported as error:
        raise Unsupported(_refusal(scenario, spec, str(error))) from None
    return tables


def _refusal(scenario: Scenario, spec: Spec, why: str) -> str:
    return f"the compiled path of {spec.name} cannot run {scenario.name!r}: {why}. Leave out --fast: the loop runs it"
