"""Claims about the cuts of Eris's bound: whole schedules satisfy them, mixtures violate them."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.eris.kernels.bound import BoundEffort, configuration_bound
from tradewind.systems.eris.kernels.column import Pooled
from tradewind.systems.eris.kernels.cuts import Cut, rounded, violated

SLOTS = 10


def bids(rng: np.random.Generator, jobs: int) -> tuple[list[Pooled], Floats]:
    """Jobs that use one resource and bandwidth, with a server that uses some of it; and the capacity of both."""
    capacity = np.tile((float(rng.integers(5, 12)), float(rng.uniform(1.0, 4.0))), (SLOTS, 1))
    found = []
    for _ in range(jobs):
        traffic, beside = float(rng.choice([0.0, 0.2, 0.7])), int(rng.integers(1, 4))
        start, height = int(rng.integers(0, 6)), float(rng.uniform(1, 2))
        away = int(capacity[0, 1] / traffic) if traffic else 99
        worth = np.where(np.arange(SLOTS) < start, 0.0, height / (1 + np.exp((np.arange(SLOTS) - start) / 3)))
        found.append(
            Pooled(
                use=np.array([1.0, traffic]),
                server=np.array([float(rng.choice([0.0, 0.3]))]),
                beside=beside,
                widest=min(beside + away, int(capacity[0, 0]) - 1),
                units=int(rng.integers(2, 16)),
                start=start,
                worth=worth,
            )
        )
    return found, capacity


def whole_schedules(rng: np.random.Generator, jobs: list[Pooled], capacity: Floats) -> Ints:
    """Completion slots (J,) of a random schedule that fits jobs in one after another; -1: not complete."""
    free, done = capacity.copy(), np.full(len(jobs), -1)
    for i in rng.permutation(len(jobs)).tolist():
        job, trial, left = jobs[i], free.copy(), jobs[i].units
        for t in range(job.start, SLOTS):
            fits = 0
            for n in range(1, min(job.widest, left) + 1):
                takes = np.append(n * job.use[:-1] + job.server, max(0, n - job.beside) * job.use[-1])
                fits = n if (takes <= trial[t] + 1e-12).all() else fits
            n = fits if rng.random() < 0.8 else int(rng.integers(0, fits + 1))
            if n:
                trial[t] -= np.append(n * job.use[:-1] + job.server, max(0, n - job.beside) * job.use[-1])
                left -= n
            if left == 0:
                free, done[i] = trial, t
                break
    return done


def counted(cut: Cut, done: Ints) -> float:
    return float(cut.factor[done[cut.job] == cut.slot].sum())


def test_whole_schedules_satisfy_every_cut_and_the_mixture_it_was_made_for_violates_it() -> None:
    tight, made = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        jobs, capacity = bids(rng, 6)
        shares = np.zeros((len(jobs), SLOTS))
        for i, job in enumerate(jobs):
            shares[i, job.start : job.start + 4] = rng.dirichlet(np.ones(4)) * rng.uniform(0.4, 1.0)
        cuts = violated(jobs, capacity, shares, (0, 1))
        schedules = [whole_schedules(rng, jobs, capacity) for _ in range(80)]
        for cut in cuts:
            assert (cut.factor * shares[cut.job, cut.slot]).sum() > cut.limit
            most = max(counted(cut, done) for done in schedules)
            assert most <= cut.limit + 1e-6
            tight += most > cut.limit - 1e-3
        made += len(cuts)
    assert made > 200
    assert tight > 100  # a smaller limit would be wrong


def test_rounding_is_superadditive_and_never_above_the_value() -> None:
    rng = np.random.default_rng(5)
    for part, a, b in zip(
        rng.uniform(0, 0.97, 2000), rng.uniform(-4, 4, 2000), rng.uniform(-4, 4, 2000), strict=True
    ):
        assert rounded(a, part) + rounded(b, part) <= rounded(a + b, part) + 1e-9
        assert np.floor(a) <= rounded(a, part) <= a + 1e-12


def test_two_jobs_of_which_one_fits_count_as_one() -> None:
    # Each needs 11 of the 20 worker-slots until slot 1: the LP mixes 1.8 of them, whole schedules complete one.
    worth = np.array([0.0, 100.0, 0.0])
    job = Pooled(
        use=np.array([1.0, 0.0]), server=np.zeros(1), beside=10, widest=10, units=11, start=0, worth=worth
    )
    capacity = np.tile((10.0, 1.0), (3, 1))
    loose = configuration_bound([job, job], capacity, BoundEffort(rounds=60)).bound
    assert abs(loose - 2000 / 11) < 0.1
    assert abs(configuration_bound([job, job], capacity, BoundEffort(rounds=60, cuts=8)).bound - 100.0) < 0.1


def test_no_whole_schedules_are_worth_more_than_the_bound_with_cuts_and_it_is_tighter() -> None:
    gained = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        jobs, capacity = bids(rng, 7)
        loose = configuration_bound(jobs, capacity, BoundEffort(rounds=60)).bound
        tight = configuration_bound(jobs, capacity, BoundEffort(rounds=60, cuts=8)).bound
        best = 0.0
        for _ in range(80):
            done = whole_schedules(rng, jobs, capacity)
            best = max(best, sum(float(job.worth[d]) for job, d in zip(jobs, done, strict=True) if d >= 0))
        assert best <= tight * (1 + 1e-9)
        assert tight <= loose * (1 + 1e-9)
        gained.append((loose - tight) / (loose - best + 1e-9))
    assert np.mean(gained) > 0.2
