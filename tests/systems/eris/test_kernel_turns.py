"""Claims about slots allocated by level: turns are exact, and more room never trains less."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.systems.eris.cases import small
from tradewind.model.arrays import Ints
from tradewind.systems.eris.kernels.spot import unit
from tradewind.systems.eris.kernels.task import TrainingTask
from tradewind.systems.eris.kernels.turns import BidTable, is_alive, reserved, serve, workers_of


def alone(task: TrainingTask, top: int = 1 << 30) -> BidTable:
    """A table of one bid, in units that train at least a chunk."""
    size = unit(task)
    one = {
        "size": size, "per_unit": size * task.rate // task.need, "chunks": int(task.data.sum()),
        "chunk_bytes": task.chunk_bytes, "rate": task.rate, "need": task.need, "traffic_bytes": task.traffic_bytes,
        "top": top, "first": 0, "last": 9, "level": 0,
    }  # fmt: skip
    return BidTable(
        worker=task.worker[None] * size,
        server=task.server[None],
        allowed=np.ones((1, len(task.data)), dtype=np.bool_),
        share=np.array([2.5]),
        **{name: np.array([value]) for name, value in one.items()},
    )


def most_trained(bids: BidTable, free: Ints, room: int, left: int) -> int:
    """By trying every number of units at every site with the server at every site."""
    best, each, size = 0, int(bids.per_unit[0]), int(bids.size[0])
    wide = min(int(bids.top[0]), -(-left // each))
    for units in product(range(wide + 1), repeat=len(free)):
        if sum(units) > wide:
            continue
        for server in range(len(free)):
            need = np.array(units)[:, None] * bids.worker[0]
            need[server] += bids.server[0]
            spare = room - (sum(units) - units[server]) * size * int(bids.traffic_bytes[0])
            if (need <= free).all() and spare >= 0:
                best = max(best, min(left, each * sum(units), spare // int(bids.chunk_bytes[0])))
    return best


@pytest.mark.parametrize("fractional", [False, True])
def test_a_turn_trains_as_much_as_possible_within_free_capacity(fractional: bool) -> None:
    served = 0
    for seed in range(250):
        task, market, _ = small(seed, fractional=fractional)
        bids, left = alone(task, top=4), int(task.data.sum())
        free, room, chunks = market.free[0], int(market.room[0]), np.zeros(len(task.data), dtype=np.int64)
        server, trained = serve(bids, 0, left, free, room, chunks)
        assert trained == chunks.sum() == most_trained(bids, free, room, left)
        if server < 0:
            continue
        served += 1
        workers = workers_of(bids, 0, chunks)
        need = workers[:, None] * task.worker
        need[server] += task.server
        assert (need <= free).all()
        assert (task.rate * workers >= task.need * chunks).all()
        assert reserved(bids, 0, server, chunks) <= room
    assert served > 50


def test_more_room_never_trains_less() -> None:
    rng = np.random.default_rng(7)
    more = 0
    for seed in range(400):
        task, market, _ = small(seed, fractional=bool(seed % 2))
        bids, left = alone(task), int(task.data.sum())
        out = np.zeros(len(task.data), dtype=np.int64)
        free, room = market.free[0], int(market.room[0])
        before = serve(bids, 0, left, free, room, out)[1]
        wider = free + rng.integers(0, 3, free.shape) * 1000
        after = serve(bids, 0, left, wider, room + int(rng.integers(0, 200_000_000)), out)[1]
        assert after >= before
        more += after > before
    assert more > 20


def test_a_job_is_given_up_when_not_even_the_whole_network_could_complete_it_in_time() -> None:
    task, _, _ = small(1)
    bids = alone(task)._replace(chunks=np.array([10]), last=np.array([5]))
    assert is_alive(bids, 0, 3, 10)  # three slots alone: 3, 4 and 5
    assert not is_alive(bids, 0, 4, 10)
    assert is_alive(bids, 0, 5, 4)
    assert not is_alive(bids, 0, 6, 1)
    assert not is_alive(bids, 0, 3, 0)
