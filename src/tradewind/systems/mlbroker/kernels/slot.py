"""The data of one brokerage slot: jobs that rent from sites whose unit prices fall with the pooled volume.

Letters of the mlBroker paper in brackets. I jobs, R sites, K resources, L price tiers.
"""

from dataclasses import dataclass, replace

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """Graduated unit prices: the units from ``start[..., j]`` on cost ``usd[..., j]`` each. Both (R, K, L).

    ``intercept[..., j]`` is e of Eq. (2) for every tier, so that the price of h units is the least of
    ``usd_j h + intercept_j`` over the tiers: concave, since prices never rise with the tier.
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
class Slot:
    """What is decided on in one slot.

    worker [n], server [m] (I, K) units; chunk [P], traffic [B] (I,) data per worker and slot; deploy_usd [c] (I,);
    data [D] (I, R); move_usd, traffic_usd [d, twice: weights may differ] (R, R) USD per unit of data for training data
    and for parameters. Data is in any one unit (GB; bytes where flows must be whole). deployed [v of the slot
    before] (I, R); worker_ok, server_ok (I, R) where a job may go;
    least_workers, most_workers (I,), -1 for no upper limit; capacity (R, K) units, infinite where a site has no limit.
    """

    worker: Floats
    server: Floats
    chunk: Floats
    traffic: Floats
    deploy_usd: Floats
    data: Floats
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
        """[N] (I,): workers that a job needs, ceil(sum D / P) and at least ``least_workers``; 0 without data.

        The last bits of floating point do not count: 0.1 + 0.2 GB are three chunks of 0.1 GB.
        """
        total = self.data.sum(axis=1)
        count = np.ceil(total / self.chunk)
        count -= (count - 1.0) * self.chunk >= total * (1.0 - 8.0 * np.finfo(float).eps)
        needed: Ints = np.where(total > 0.0, np.maximum(count, self.least_workers), 0).astype(np.int64)
        return needed

    def only(self, jobs: Ints) -> "Slot":
        """The same slot with these jobs alone."""
        return replace(
            self,
            worker=self.worker[jobs],
            server=self.server[jobs],
            chunk=self.chunk[jobs],
            traffic=self.traffic[jobs],
            deploy_usd=self.deploy_usd[jobs],
            data=self.data[jobs],
            deployed=self.deployed[jobs],
            worker_ok=self.worker_ok[jobs],
            server_ok=self.server_ok[jobs],
            least_workers=self.least_workers[jobs],
            most_workers=self.most_workers[jobs],
        )


def slot(
    *,
    worker: Floats,
    server: Floats,
    chunk: Floats,
    traffic: Floats,
    deploy_usd: Floats,
    data: Floats,
    transfer_usd: Floats,
    price: Tiers,
    deployed: Bools | None = None,
) -> Slot:
    """A slot without limits and with the same price per GB for data and parameters."""
    jobs, sites = data.shape
    return Slot(
        worker=np.ascontiguousarray(worker, dtype=np.float64),
        server=np.ascontiguousarray(server, dtype=np.float64),
        chunk=np.ascontiguousarray(chunk, dtype=np.float64),
        traffic=np.ascontiguousarray(traffic, dtype=np.float64),
        deploy_usd=np.ascontiguousarray(deploy_usd, dtype=np.float64),
        data=np.ascontiguousarray(data, dtype=np.float64),
        move_usd=np.ascontiguousarray(transfer_usd, dtype=np.float64),
        traffic_usd=np.ascontiguousarray(transfer_usd, dtype=np.float64),
        deployed=np.zeros((jobs, sites), dtype=np.bool_) if deployed is None else deployed,
        tiers=price,
        worker_ok=np.ones((jobs, sites), dtype=np.bool_),
        server_ok=np.ones((jobs, sites), dtype=np.bool_),
        least_workers=np.ones(jobs, dtype=np.int64),
        most_workers=np.full(jobs, -1, dtype=np.int64),
        capacity=np.full((sites, worker.shape[1]), np.inf),
    )
