"""The data of one brokerage slot: jobs that rent from sites whose unit prices fall with the pooled volume.

Letters of the mlBroker paper in brackets. I jobs, R sites, K resources, L price tiers.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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

    worker [n], server [m] (I, K) units; chunk_gb [P], traffic_gb [B] (I,) GB per worker and slot; deploy_usd [c]
    (I,); data_gb [D] (I, R); move_usd, talk_usd [d, twice: weights may differ] (R, R) USD per GB for training data
    and for parameters; deployed [v of the slot before] (I, R); worker_ok, server_ok (I, R) where a job may go;
    most_workers (I,), -1 for no limit; capacity (R, K) units, infinite where a site has no limit.
    """

    worker: Floats
    server: Floats
    chunk_gb: Floats
    traffic_gb: Floats
    deploy_usd: Floats
    data_gb: Floats
    move_usd: Floats
    talk_usd: Floats
    deployed: Bools
    tiers: Tiers
    worker_ok: Bools
    server_ok: Bools
    most_workers: Ints
    capacity: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """(I, R, K)."""
        return (self.worker.shape[0], self.data_gb.shape[1], self.worker.shape[1])

    @property
    def needed(self) -> Ints:
        """[N] (I,): workers that the whole data of a job needs, ceil(sum D / P); 0 without data.

        A quotient within 1e-9 of an integer counts as that integer: 3 x 0.1 GB need three workers of 0.1 GB.
        """
        return np.ceil(self.data_gb.sum(axis=1) / self.chunk_gb - 1e-9).astype(np.int64)

    def only(self, jobs: Ints) -> "Slot":
        """The same slot with these jobs alone."""
        return replace(
            self,
            worker=self.worker[jobs],
            server=self.server[jobs],
            chunk_gb=self.chunk_gb[jobs],
            traffic_gb=self.traffic_gb[jobs],
            deploy_usd=self.deploy_usd[jobs],
            data_gb=self.data_gb[jobs],
            deployed=self.deployed[jobs],
            worker_ok=self.worker_ok[jobs],
            server_ok=self.server_ok[jobs],
            most_workers=self.most_workers[jobs],
        )


def slot(
    *,
    worker: Floats,
    server: Floats,
    chunk_gb: Floats,
    traffic_gb: Floats,
    deploy_usd: Floats,
    data_gb: Floats,
    transfer_usd: Floats,
    price: Tiers,
    deployed: Bools | None = None,
) -> Slot:
    """A slot without limits and with the same price per GB for data and parameters."""
    jobs, sites = data_gb.shape
    return Slot(
        worker=np.ascontiguousarray(worker, dtype=np.float64),
        server=np.ascontiguousarray(server, dtype=np.float64),
        chunk_gb=np.ascontiguousarray(chunk_gb, dtype=np.float64),
        traffic_gb=np.ascontiguousarray(traffic_gb, dtype=np.float64),
        deploy_usd=np.ascontiguousarray(deploy_usd, dtype=np.float64),
        data_gb=np.ascontiguousarray(data_gb, dtype=np.float64),
        move_usd=np.ascontiguousarray(transfer_usd, dtype=np.float64),
        talk_usd=np.ascontiguousarray(transfer_usd, dtype=np.float64),
        deployed=np.zeros((jobs, sites), dtype=np.bool_) if deployed is None else deployed,
        tiers=price,
        worker_ok=np.ones((jobs, sites), dtype=np.bool_),
        server_ok=np.ones((jobs, sites), dtype=np.bool_),
        most_workers=np.full(jobs, -1, dtype=np.int64),
        capacity=np.full((sites, worker.shape[1]), np.inf),
    )
