"""The data of one slot: jobs that rent from sites whose unit prices fall with the pooled volume.

Letters of the mlBroker paper in brackets. I jobs, R sites, K resources, L price tiers.
"""

from dataclasses import dataclass, replace

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints

NO_LIMIT = -1
"""`most_workers` of a job without an upper limit."""
NO_SITE = -1
"""Server site of a job that is not placed."""
NEEDS = ("worker", "server", "chunk", "traffic", "deploy_usd", "data")
"""Fields of :class:`JobArrays`."""
PER_JOB = (*NEEDS, "deployed", "worker_ok", "server_ok", "least_workers", "most_workers")
"""Fields of a slot with one row per job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """Graduated unit prices: units from `start[..., j]` on cost `usd[..., j]` each. All arrays (R, K, L).

    `intercept[..., j]` is e of Eq. (2) for every tier: h units cost the minimum over j of `usd_j h + intercept_j`.
    Prices never rise with the tier, so the cost is concave.
    """

    start: Floats
    usd: Floats
    intercept: Floats


def tiers(start: Floats, usd: Floats) -> Tiers:
    """Tiers from their starts (units) and unit prices (USD per unit and slot), both (R, K, L)."""
    start = np.ascontiguousarray(start, dtype=np.float64)
    usd = np.ascontiguousarray(usd, dtype=np.float64)
    if np.any(start[..., 0] != 0.0) or np.any(np.diff(start, axis=2) <= 0.0):
        raise ValueError("tier starts must begin at 0 and increase")
    if np.any(np.diff(usd, axis=2) > 0.0) or np.any(usd < 0.0):
        raise ValueError("unit prices must be non-negative and must not rise with the tier")
    intercept = np.zeros_like(usd)
    intercept[..., 1:] = np.cumsum(-np.diff(usd, axis=2) * start[..., 1:], axis=2)
    return Tiers(start=start, usd=usd, intercept=intercept)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArrays:
    """What jobs need; fields as in :class:`Slot`."""

    worker: Floats
    server: Floats
    chunk: Floats
    traffic: Floats
    deploy_usd: Floats
    data: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot(JobArrays):
    """The input of one slot's decision. Data is in one unit throughout: GB, or bytes where flows must be whole.

    worker         [n] (I, K) units per worker
    server         [m] (I, K) units per parameter server
    chunk          [P] (I,) data that a worker processes in a slot
    traffic        [B] (I,) data exchanged between a worker and the server in a slot
    deploy_usd     [c] (I,) USD for deploying at a site
    data           [D] (I, R) data at each site
    move_usd       [d] (R, R) USD per unit of training data moved
    traffic_usd    [d] (R, R) USD per unit of parameter traffic; equal to move_usd unless the weights differ
    deployed       (I, R) where a job was in the previous slot [v]
    tiers          rent per unit and slot
    worker_ok      (I, R) where workers may go
    server_ok      (I, R) where the server may go
    least_workers  (I,)
    most_workers   (I,) or NO_LIMIT
    capacity       (R, K) units, infinite where unlimited
    """

    move_usd: Floats
    traffic_usd: Floats
    deployed: Bools
    tiers: Tiers
    worker_ok: Bools
    server_ok: Bools
    least_workers: Ints
    most_workers: Ints
    capacity: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """(I, R, K)."""
        return (self.worker.shape[0], self.data.shape[1], self.worker.shape[1])

    @property
    def needed(self) -> Ints:
        """[N] (I,): workers that a job needs, ceil(sum D / P) and at least `least_workers`; 0 without data.

        Rounding errors do not count: 0.1 + 0.2 GB are three chunks of 0.1 GB.
        """
        total = self.data.sum(axis=1)
        needed: Ints = np.where(
            total > 0.0, np.maximum(chunks(total, self.chunk), self.least_workers), 0
        ).astype(np.int64)
        return needed

    def only(self, jobs: Ints) -> "Slot":
        """The same slot with these jobs alone."""
        return replace(self, **{name: getattr(self, name)[jobs] for name in PER_JOB})


def chunks(amount: Floats, chunk: Floats | float) -> Floats:
    """Workers that process an amount of data, rounded up, but not for an excess within rounding errors."""
    count = np.ceil(amount / chunk)
    count -= (count - 1.0) * chunk >= amount * (1.0 - 8.0 * np.finfo(float).eps)
    return count


def slot_without_limits(jobs: JobArrays, transfer_usd: Floats, price: Tiers) -> Slot:
    """A slot without limits, nothing deployed, with one price per unit of data for training data and parameters."""
    count, sites = jobs.data.shape
    usd = np.ascontiguousarray(transfer_usd, dtype=np.float64)
    return Slot(
        **{name: np.ascontiguousarray(getattr(jobs, name), dtype=np.float64) for name in NEEDS},
        move_usd=usd,
        traffic_usd=usd,
        deployed=np.zeros((count, sites), dtype=np.bool_),
        tiers=price,
        worker_ok=np.ones((count, sites), dtype=np.bool_),
        server_ok=np.ones((count, sites), dtype=np.bool_),
        least_workers=np.ones(count, dtype=np.int64),
        most_workers=np.full(count, NO_LIMIT, dtype=np.int64),
        capacity=np.full((sites, jobs.worker.shape[1]), np.inf),
    )
