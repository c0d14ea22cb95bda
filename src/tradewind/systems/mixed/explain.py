"""Bills of tenants: what each job would pay by itself, and its share of the pooled cost."""

from __future__ import annotations

from tradewind.engine.costs import job_costs, rows_alone
from tradewind.engine.intervals import effective, end_us
from tradewind.model.result import Run, Table
from tradewind.model.scenario import Scenario


def bills(scenario: Scenario, run: Run) -> Table | None:
    """The `bills` table of a run, two rows per tenant; None where there are not several tenants.

    Of every line of the bill a tenant pays in proportion to what it used: as tariffs fall with use, never more than alone,
    and all together what the broker pays.
    """
    if len({job.tenant for job in scenario.jobs}) < 2:
        return None
    intervals = effective(run, end_us(run))
    alone: dict[str, float] = {}
    pooled: dict[str, float] = {}
    for job, rows in rows_alone(scenario, run, intervals).items():
        tenant = scenario.jobs[job].tenant
        alone[tenant] = alone.get(tenant, 0.0) + sum(row[5] for row in rows)
    for job, usd in job_costs(scenario, run, intervals).items():
        tenant = scenario.jobs[job].tenant
        pooled[tenant] = pooled.get(tenant, 0.0) + usd
    return {
        "tenant": [tenant for tenant in sorted(alone) for _ in range(2)],
        "kind": ["alone", "pooled"] * len(alone),
        "usd": [usd for tenant in sorted(alone) for usd in (alone[tenant], pooled[tenant])],
    }
