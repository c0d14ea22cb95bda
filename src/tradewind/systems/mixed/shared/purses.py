"""Spend caps of tenants: what each may still spend at list price (docs/decisions/005), for every kind of job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job
from tradewind.model.setup import Setup


def purses(setup: Setup, jobs: Iterable[Job], spent: Mapping[str, float], slots: int) -> dict[str, Floats]:
    """Tenant with a cap -> (T + 1,) USD that it may spend in each of the next slots, and in all."""
    found: dict[str, Floats] = {}
    for tenant in dict.fromkeys(job.tenant for job in jobs):
        cap = setup.cap_of(tenant)
        if cap is not None:
            found[tenant] = np.full(slots + 1, np.inf if cap.slot_usd is None else cap.slot_usd)
            found[tenant][-1] = np.inf if cap.total_usd is None else cap.total_usd - spent.get(tenant, 0.0)
    return found


def cap_words(setup: Setup, tenant: str, spent: Mapping[str, float]) -> str:
    """The caps of a tenant, for people; "" where it has none."""
    cap = setup.cap_of(tenant)
    if cap is None:
        return ""
    parts = [] if cap.slot_usd is None else [f"{cap.slot_usd:g} USD per slot"]
    if cap.total_usd is not None:
        parts.append(f"{cap.total_usd:g} USD in total, of which {spent.get(tenant, 0.0):.2f} are spent")
    return f"; {f'tenant {tenant!r}' if tenant else 'jobs without a tenant'} may spend {' and '.join(parts)} at list price"
