"""Random instances after Sec. 6.1 of the mlBroker paper, as plain arrays.

The ranges of prices, thresholds, demands, speeds and traffic are the paper's. What the paper leaves open is fixed here:
durations, arrivals, how the data of a job spreads over its sources and how it drifts.
"""

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.units import US_PER_HOUR
from tradewind.traces.arrivals import DRAWN, recorded_slots
from tradewind.traces.prices import EC2, site_prices

FAMILIES = ("paper", "cpu", "narrow", "trap", "deploy")
RESOURCES = ("gpu", "vcpu", "mem", "disk")

# One row per resource (Sec. 6.1): USD per unit and day at list price, threshold in units.
LIST_PRICE_RANGE = np.array([[1.2, 9.6], [0.13, 0.24], [0.01, 0.1], [0.01, 0.1]])
THRESHOLD_RANGE = np.array([[500.0, 600.0], [800.0, 1000.0], [1000.0, 1050.0], [1000.0, 1050.0]])
DISCOUNT_RANGE = (0.7, 0.8)
WORKER_LOW, WORKER_HIGH = (0, 1, 2, 5), (4, 10, 32, 10)
SERVER_LOW, SERVER_HIGH = (0, 1, 2, 5), (0, 10, 32, 10)
DAYS_PER_SLOT = 0.5
SLOT_US = 12 * US_PER_HOUR
EXCHANGES_PER_SLOT = 144
"""Exchanges of all parameters between a worker and the server: 30-575 MB become 4.32-82.8 GB of traffic."""
DURATION_SLOTS = (3, 20)
HIGH_OVER_LOW, HIGH_SHARE, LEAVE_HIGH = 4.0, 0.25, 0.3
"""Arrivals: rate of the high state over the low one, share of time in it, probability per slot of leaving it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings:
    """What to draw. `active`: mean number of jobs present in a slot; `data_gb`: per job and slot."""

    family: str = "paper"
    sites: int = 15
    slots: int = 50
    active: float = 20.0
    data_gb: float = 500.0
    threshold_scale: float = 1.0
    deploy_scale: float = 1.0
    tiers: int = 2
    chunk_gb: tuple[float, float] = (16.0, 66.0)
    rotating: bool = False
    arrivals: str = DRAWN
    prices: str = DRAWN


@dataclass(frozen=True, slots=True, kw_only=True)
class MlbrokerDraw:
    """One instance. J jobs, R sites, K resources, L price tiers, N rows of (job, slot) with data.

    tier_start        (R, K, L) units
    tier_usd          (R, K, L) USD per unit and slot
    transfer_usd      (R, R) USD per GB, symmetric
    arrive, depart    (J,) slots; a job is present in [arrive, depart)
    worker, server    (J, K) units
    chunk_gb          (J,) GB that a worker can process in a slot
    traffic_gb        (J,) GB between a worker and the server in a slot
    parameters_gb     (J,)
    deploy_usd        (J,)
    row_job, row_slot (N,)
    data_gb           (N, R)
    """

    tier_start: Floats
    tier_usd: Floats
    transfer_usd: Floats
    arrive: Ints
    depart: Ints
    worker: Floats
    server: Floats
    chunk_gb: Floats
    traffic_gb: Floats
    parameters_gb: Floats
    deploy_usd: Floats
    row_job: Ints
    row_slot: Ints
    data_gb: Floats


def draw(settings: DrawSettings, seed: int) -> MlbrokerDraw:
    """Draw one instance; it depends on settings and seed alone."""
    if settings.family not in FAMILIES:
        raise ValueError(f"family is {settings.family!r}; it must be one of {', '.join(FAMILIES)}")
    rng = np.random.default_rng(seed)
    tier_start, tier_usd = draw_prices(settings, rng)
    transfer = np.triu(rng.uniform(0.01, 0.02, (settings.sites, settings.sites)), 1)
    arrive, depart = draw_presence(settings, rng)
    jobs = len(arrive)
    worker = rng.integers(WORKER_LOW, np.array(WORKER_HIGH) + 1, (jobs, 4)).astype(float)
    server = rng.integers(SERVER_LOW, np.array(SERVER_HIGH) + 1, (jobs, 4)).astype(float)
    if settings.family in ("cpu", "deploy"):
        worker[:, 0] = 0.0
    parameters = rng.uniform(0.03, 0.575, jobs)
    deploy = rng.uniform(0.05, 0.1, jobs) * (rng.uniform(2.0, 10.0, jobs) + parameters)
    row_job, row_slot, data = draw_data(settings, arrive, depart, rng)
    return MlbrokerDraw(
        tier_start=tier_start,
        tier_usd=tier_usd,
        transfer_usd=transfer + transfer.T,
        arrive=arrive,
        depart=depart,
        worker=worker,
        server=server,
        chunk_gb=rng.uniform(*settings.chunk_gb, jobs),
        traffic_gb=EXCHANGES_PER_SLOT * parameters,
        parameters_gb=parameters,
        deploy_usd=deploy * settings.deploy_scale * (20.0 if settings.family == "deploy" else 1.0),
        row_job=row_job,
        row_slot=row_slot,
        data_gb=data,
    )


def draw_prices(settings: DrawSettings, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Tier starts and unit prices (R, K, L) of every site; each further tier is another 20-30% cheaper."""
    low, high = LIST_PRICE_RANGE[:, 0], LIST_PRICE_RANGE[:, 1]
    shape = (settings.sites, len(RESOURCES))
    first = rng.uniform(low, high, shape)
    spread = {"narrow": 0.10, "trap": rng.uniform(0.02, 0.03)}.get(settings.family)
    if spread is not None:
        first = rng.uniform(low, high, shape[1:]) * rng.uniform(1.0, 1.0 + spread, shape)
    if settings.prices == EC2:  # all but disk
        first[:, :3] = 24.0 * site_prices(settings.sites)
    usd = np.empty((*shape, settings.tiers))
    start = np.zeros((*shape, settings.tiers))
    usd[..., 0] = first * DAYS_PER_SLOT
    for tier in range(1, settings.tiers):
        usd[..., tier] = usd[..., tier - 1] * rng.uniform(*DISCOUNT_RANGE, shape)
        step = rng.uniform(THRESHOLD_RANGE[:, 0], THRESHOLD_RANGE[:, 1], shape) * settings.threshold_scale
        start[..., tier] = start[..., tier - 1] + step
    return start, usd


def draw_presence(settings: DrawSettings, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Slots of arrival and departure: two-state Markov-modulated Poisson arrivals or recorded ones, uniform durations.

    The process starts the longest duration before slot 0, so the first slot already has `active` jobs on average; a
    job that began earlier arrives in slot 0 with its remaining duration. Recorded arrivals replace the instants of as
    many jobs, which keep their durations.
    """
    shortest, longest = DURATION_SLOTS
    mean_rate = settings.active / ((shortest + longest) / 2.0)
    low_rate = mean_rate / (1.0 - HIGH_SHARE + HIGH_OVER_LOW * HIGH_SHARE)
    enter_high = LEAVE_HIGH * HIGH_SHARE / (1.0 - HIGH_SHARE)
    high = bool(rng.random() < HIGH_SHARE)
    begin: list[int] = []
    stay: list[int] = []
    for slot in range(-longest, settings.slots):
        count = int(rng.poisson(low_rate * (HIGH_OVER_LOW if high else 1.0)))
        begin += [slot] * count
        stay += rng.integers(shortest, longest + 1, count).tolist()
        high = bool(rng.random() >= LEAVE_HIGH) if high else bool(rng.random() < enter_high)
    recorded = recorded_slots(
        settings.arrivals, len(begin), longest + settings.slots, SLOT_US, rng.spawn(1)[0]
    )
    start = np.array(begin, dtype=np.int64) if recorded is None else recorded - longest
    end = start + np.array(stay, dtype=np.int64)
    here = end > 0
    return np.maximum(start, 0)[here], np.minimum(end, settings.slots)[here]


def draw_data(
    settings: DrawSettings, arrive: Ints, depart: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints, Floats]:
    """Rows (job, slot, GB per site): volume within 30% of the mean, on a few sources whose shares drift."""
    few, many = (1, 3) if settings.family == "trap" else (3, 8)
    jobs: list[int] = []
    slots: list[int] = []
    rows: list[Floats] = []
    for job in range(len(arrive)):
        count = min(int(rng.integers(few, many + 1)), settings.sites)
        sources = rng.choice(settings.sites, count, replace=False)
        share = rng.dirichlet(np.full(count, 2.0))
        for slot in range(int(arrive[job]), int(depart[job])):
            if settings.rotating and slot > arrive[job]:
                sources = (sources + 1) % settings.sites
            share = share * np.exp(0.15 * rng.standard_normal(count))
            share = share / share.sum()
            row = np.zeros(settings.sites)
            row[sources] = share * settings.data_gb * rng.uniform(0.7, 1.3)
            jobs.append(job)
            slots.append(slot)
            rows.append(row)
    table = np.array(rows) if rows else np.zeros((0, settings.sites))
    return np.array(jobs, dtype=np.int64), np.array(slots, dtype=np.int64), table
