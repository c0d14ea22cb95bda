"""System: everything that one scheduling system adds to Tradewind, declared in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tradewind.model.setup import Objective

Ref = str
"""`package.module:attribute`. It is imported when it is first used, so declaring a system costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What a system offers; every field but name and summary may be left out.

    policies         policy name -> its Spec
    ours             this project's own policies among them; the others are the paper's and its rivals
    workloads        workload name -> its Workload
    bound            offline bound: (scenario) -> Bound, or None where it does not hold for the scenario's data
    bound_for        objectives that it bounds
    bound_of_pools   the bound knows pools; others get the scenario with everything at the lowest rate of its pool
    bound_of_served  the bound takes a second argument, job -> microsecond until which it is served, and then covers the rest
    offline          offline solver: (scenario, effort 1, 2, …) -> Offline, or None where it does not apply; no time limits
    beside           rivals that every comparison of the system's policies includes, with the bound
    study            the paper's figures (lab.study.Study)
    explain          why a job is where it is: (scenario, run, job id, slot) -> object with `lines` and `as_json()`
    bills            rows of a run's `bills` table, or None: (scenario, run) -> Table or None
    remarks          sentences printed below a run: (scenario, run) -> list of str
    reference_policy policy whose profit is the reference of regret curves where a comparison includes it
    reference_sales  what each job pays under the best fixed prices, the reference of regret curves: (scenario) -> array
    """

    name: str
    summary: str
    policies: Mapping[str, Ref] = field(default_factory=dict)
    ours: tuple[str, ...] = ()
    workloads: Mapping[str, Ref] = field(default_factory=dict)
    bound: Ref = ""
    bound_for: frozenset[Objective] = frozenset()
    bound_of_pools: bool = False
    bound_of_served: bool = False
    offline: Ref = ""
    beside: tuple[str, ...] = ()
    study: Ref = ""
    explain: Ref = ""
    bills: Ref = ""
    remarks: Ref = ""
    reference_policy: str = ""
    reference_sales: Ref = ""
