"""What a run is worth to the library: refused with the reason, a new best, equal or worse."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from tradewind.lab.library.table import Instance
from tradewind.model.result import CLOSED, Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.report.audited import Depth, audit_run
from tradewind.report.bounds import turned_away

Word = Literal["refused", "new best", "equal", "worse"]
SHOWN = 3
"""Violations that a refusal quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on a run.

    reasons  why it is refused
    value    its value of the objective; gap: to the bound
    """

    word: Word
    value: float
    gap: float | None = None
    reasons: tuple[str, ...] = ()


def judge(instance: Instance, scenario: Scenario, run: Run) -> Verdict:
    """Check a run by the audit and hold it against the best known value and the bound."""
    reasons = tuple(_reasons(instance, scenario, run))
    value = run.metrics.get(instance.objective, float("nan"))
    if reasons:
        return Verdict(word="refused", value=value, reasons=reasons)
    gap = instance.gap_of(value)
    if gap is not None and gap < -CLOSED:
        detail = (
            f"its value {value:.12g} is better than the certified bound {instance.bound:.12g}, although the audit finds "
            "nothing: the bound or the audit is wrong, please report both files"
        )
        return Verdict(word="refused", value=value, gap=gap, reasons=(detail,))
    best = instance.value
    if instance.beats(value, best):
        return Verdict(word="new best", value=value, gap=gap)
    assert best is not None
    return Verdict(word="worse" if instance.beats(best, value) else "equal", value=value, gap=gap)


def _reasons(instance: Instance, scenario: Scenario, run: Run) -> list[str]:
    """Why a run does not count; empty if it does."""
    if run.scenario_hash != instance.hash:
        return [
            f"it belongs to the scenario with hash {run.scenario_hash[:12]}…, {instance.name} has "
            f"{instance.hash[:12]}…: `tradewind library generate {instance.name} -o FILE` writes the scenario to solve"
        ]
    if run.world != "simulated":
        return ["its completions were measured; the library takes simulated runs"]
    spec = policies.get(run.policy) if run.policy in policies.entries else None
    # what was sold must be delivered: else a seller could take the money and stop the job
    depth = Depth(binding=instance.objective == "profit_usd")
    found = audit_run(scenario, run, spec, depth).violations
    if found:
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        return [f"the audit finds: {each}" for each in found[:SHOWN]] + more
    if not isfinite(run.value):
        return [f"its {instance.objective} is {run.value}"]
    lost = turned_away(scenario, run) if instance.sense == "min" else 0
    if lost or run.metrics.get("jobs_cancelled", 0):
        return [
            f"it is not complete: {lost or int(run.metrics['jobs_cancelled'])} of {len(scenario.jobs)} jobs were refused, "
            "cancelled or not finished"
        ]
    return []
