"""Claims about one slot of one job: workers that train a fraction of a chunk are packed."""

from __future__ import annotations

import numpy as np

from tradewind.systems.eris.kernels.spot import Score, pack, place, units_left
from tradewind.systems.eris.kernels.task import Market, TrainingTask


def task(rate: int, data: list[int], most: int = 1 << 40) -> TrainingTask:
    one = np.array([1000])
    return TrainingTask(
        worker=one, server=np.zeros(1, np.int64), data=np.array(data), rate=rate, need=1000, chunk_bytes=2,
        traffic_bytes=100, most=most,
    )  # fmt: skip


def market(free: list[int], room: int) -> Market:
    sites = len(free)
    return Market(
        usd=np.full((1, sites, 1), 1e-9),
        byte_usd=np.full(1, 1e-15),
        free=np.array(free).reshape(1, sites, 1) * 1000,
        room=np.array([room]),
    )


def test_four_workers_at_a_site_train_more_than_one_at_each_of_four() -> None:
    job, slot = task(1900, [5] * 8), market([4] * 8, 420)
    spread, packed = place(job, slot, units_left(job), False, Score()), pack(job, slot)
    assert spread is not None
    assert packed is not None
    assert sorted(packed.workers.tolist()) == [0] * 6 + [4, 4]  # bandwidth for four away from the server
    assert packed.trained == 14  # each four train 7, and the ten chunks elsewhere are moved there
    assert packed.trained >= spread.trained


def test_packed_workers_keep_to_room_bandwidth_and_the_most_of_a_job() -> None:
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(300):
        free, data = rng.integers(0, 5, 6).tolist(), rng.integers(0, 6, 6).tolist()
        job = task(
            int(rng.choice([400, 700, 1900, 2500])), [*data[:5], data[5] + 1], int(rng.integers(1, 12))
        )
        slot = market(free, int(rng.integers(0, 900)))
        spot = pack(job, slot)
        if spot is None:
            continue
        found += 1
        assert (spot.workers <= np.array(free)).all()
        assert spot.workers.sum() <= job.most
        away = int(spot.workers.sum() - spot.workers[spot.server])
        moved = sum(chunks for source, site, chunks in spot.flows if source != site)
        assert 100 * away + 2 * moved <= slot.room[0]
        assert spot.trained == sum(chunks for _, _, chunks in spot.flows) <= job.data.sum()
    assert found > 200
