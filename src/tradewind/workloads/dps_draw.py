"""The nine markets of DPS (Zhang et al., Section V) as plain arrays: a cluster, a stream of jobs, and private budgets.

Units: slots of 300 s, Gbit and Gbit/s, money in the paper's normalised units (a unit price lies in [0, 1]).
Symbols: S servers, K worker types, M parameter-server types, N jobs, T slots.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SLOT_SECONDS = 300.0
SLOTS_PER_DAY = 288


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketKind:
    """What makes one market differ from another; every other number of the generator is shared."""

    load: float = 1.2
    """Offered worker-slots, were every job taken and spread over servers, over the worker-slots that exist."""
    workers_median: float = 16.0
    location: float = 1.0
    noise: float = 0.4
    """Standard deviation of the log of a budget, given the job."""
    pair_spread: float = 0.0
    """Standard deviation of log xi_km, the factor of one (worker type, server type) pair."""
    runtime_power: float = 0.0
    drift: float = 0.0
    """Amplitude of one sine over the horizon that multiplies every budget."""
    bimodal: bool = False


KINDS: Mapping[str, MarketKind] = MappingProxyType(
    {
        "light": MarketKind(load=0.3, workers_median=8.0),
        "balanced": MarketKind(),
        "saturated": MarketKind(load=2.5, workers_median=24.0),
        "km": MarketKind(pair_spread=0.5),
        "sat-runtime": MarketKind(load=2.5, workers_median=24.0, runtime_power=0.5),
        "loose": MarketKind(location=1.2, noise=0.7),
        "tight": MarketKind(location=0.6, noise=0.25),
        "drift": MarketKind(drift=0.5),
        "bimodal": MarketKind(bimodal=True),
    }
)

# The two groups of customers of the bimodal market: share, factor, standard deviation of the log.
MODES = ((0.6, 0.6, 0.15), (0.4, 1.6, 0.15))


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketSize:
    """How large a market is drawn; the defaults are the paper's Section V."""

    slots: int = 10_000
    jobs: int = 10_000
    servers: int = 50
    worker_types: int = 15
    server_types: int = 10
    workers_per_server: int = 30
    servers_per_server: int = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketDraw:
    """One market. The fields up to `together` are public; `log_value`, `law` and `budget` are the customers' own."""

    slots: int
    idle_k: Ints
    """(S, K) workers of each type that each server holds when empty."""
    idle_m: Ints
    """(S, M) parameter servers of each type that each server holds when empty."""
    gbps_k: Floats
    """(K,) bandwidth h_k that one worker reserves."""
    gbps_m: Floats
    """(M,) bandwidth H_m that one parameter server reserves."""
    arrive: Ints
    """(N,) slot of arrival, ascending, in [1, T]."""
    k: Ints
    m: Ints
    d_k: Ints
    d_m: Ints
    epochs: Ints
    epoch_seconds: Floats
    gradient_gbit: Floats
    spread: Ints
    """(N,) runtime tau of (1) in slots with q = 0."""
    together: Ints
    """(N,) runtime tau of (1) in slots with q = 1: everything on one server."""
    log_value: Floats
    """(N,) log of the budget before its noise."""
    law: Floats
    """(G, 3) groups of customers: share, mean and standard deviation of the log of the noise."""
    budget: Floats
    """(N,) what the customer would pay at most."""


def draw_market(kind: MarketKind, seed: int, size: MarketSize | None = None) -> MarketDraw:
    """One market of a kind. Cluster, arrivals, jobs and budgets have random streams of their own."""
    size = MarketSize() if size is None else size
    cluster, clock, work, money, noise = np.random.default_rng(seed).spawn(5)
    idle_k = cluster.integers(0, size.workers_per_server + 1, (size.servers, size.worker_types))
    idle_m = cluster.integers(0, size.servers_per_server + 1, (size.servers, size.server_types))
    gbps_k = np.exp(cluster.uniform(np.log(0.1), np.log(5.0), size.worker_types))
    gbps_m = cluster.uniform(5.0, 20.0, size.server_types)
    arrive = _arrivals(clock, size)
    k, m, d_k, d_m = _demands(work, kind, size)
    epoch_seconds = _lognormal(work, 60.0, 0.5, size.jobs)
    gradient = _lognormal(work, 8.0, 0.7, size.jobs)
    bandwidth = np.minimum(gbps_k[k], gbps_m[m] / d_k)
    spread_seconds = epoch_seconds + 2.0 * gradient / bandwidth
    shape = _lognormal(work, 1.0, 0.8, size.jobs)
    epochs = _epochs(shape, spread_seconds, d_k, kind.load * float(idle_k.sum()) * size.slots, size.slots)
    spread = runtime_slots(epochs, spread_seconds, size.slots)
    log_value = _log_value(money, kind, size, arrive, k, m, d_k, d_m, spread)
    law = _law(kind)
    return MarketDraw(
        slots=size.slots,
        idle_k=idle_k,
        idle_m=idle_m,
        gbps_k=gbps_k,
        gbps_m=gbps_m,
        arrive=arrive,
        k=k,
        m=m,
        d_k=d_k,
        d_m=d_m,
        epochs=epochs,
        epoch_seconds=epoch_seconds,
        gradient_gbit=gradient,
        spread=spread,
        together=runtime_slots(epochs, epoch_seconds, size.slots),
        log_value=log_value,
        law=law,
        budget=_budgets(noise, log_value, law),
    )


def redraw_budgets(market: MarketDraw, seed: int) -> MarketDraw:
    """The same jobs with fresh budgets from the same law."""
    budget = _budgets(np.random.default_rng(seed), market.log_value, market.law)
    return replace(market, budget=budget)


def first_jobs(market: MarketDraw, count: int) -> MarketDraw:
    """The market's first `count` jobs, everything else as it was."""
    jobs = len(market.arrive)
    cut = {
        f.name: getattr(market, f.name)[:count]
        for f in fields(market)
        if f.name not in ("law", "slots") and getattr(market, f.name).shape == (jobs,)
    }
    return replace(market, **cut)


def runtime_slots(epochs: Ints, seconds_per_epoch: Floats, horizon: int) -> Ints:
    """tau of (1) rounded up to slots, and never more than a quarter of the horizon."""
    slots = np.ceil(epochs * seconds_per_epoch / SLOT_SECONDS).astype(np.int64)
    return np.clip(slots, 1, max(1, horizon // 4))


def _lognormal(rng: np.random.Generator, median: float, sigma: float, count: int) -> Floats:
    return median * np.exp(sigma * rng.standard_normal(count))


def _arrivals(rng: np.random.Generator, size: MarketSize) -> Ints:
    """Arrival slots (N,): day and night, quiet weekends, and bursts (mean 12 slots) every 120 slots or so."""
    t = np.arange(size.slots)
    rate = 1.0 + 0.6 * np.sin(2 * np.pi * t / SLOTS_PER_DAY)
    rate = rate * np.where((t // SLOTS_PER_DAY) % 7 >= 5, 0.6, 1.0)
    rate = rate * np.where(_bursts(rng, size.slots), 3.0, 1.0)
    slots = rng.choice(size.slots, size=size.jobs, p=rate / rate.sum())
    return np.sort(slots).astype(np.int64) + 1


def _bursts(rng: np.random.Generator, slots: int) -> NDArray[np.bool_]:
    """(T,) whether a burst is on: geometric stretches of mean 120 slots off and 12 slots on."""
    on = np.zeros(slots, dtype=np.bool_)
    t = 0
    while t < slots:
        t += int(rng.geometric(1 / 120))
        length = int(rng.geometric(1 / 12))
        on[t : t + length] = True
        t += length
    return on


def _demands(rng: np.random.Generator, kind: MarketKind, size: MarketSize) -> tuple[Ints, Ints, Ints, Ints]:
    """Types and numbers of workers and parameter servers of each job, all (N,)."""
    share_k = rng.dirichlet(np.full(size.worker_types, 4.0))
    share_m = rng.dirichlet(np.full(size.server_types, 2.0), size.worker_types)
    k = rng.choice(size.worker_types, size=size.jobs, p=share_k)
    ladder = np.cumsum(share_m, axis=1)
    m = np.minimum((rng.random(size.jobs)[:, None] > ladder[k]).sum(axis=1), size.server_types - 1)
    d_k = np.clip(np.rint(_lognormal(rng, kind.workers_median, 0.9, size.jobs)), 1, 150).astype(np.int64)
    d_m = np.maximum(1, np.rint(d_k * rng.uniform(0.15, 0.6, size.jobs))).astype(np.int64)
    return k, m, d_k, d_m


def _epochs(shape: Floats, seconds: Floats, d_k: Ints, worker_slots: float, horizon: int) -> Ints:
    """Epochs (N,) with the drawn shape whose spread runtimes offer `worker_slots` in total (by bisection)."""
    low, high = 0.0, 1e7
    for _ in range(60):
        scale = (low + high) / 2
        epochs = np.maximum(1, np.rint(scale * shape)).astype(np.int64)
        offered = float((d_k * runtime_slots(epochs, seconds, horizon)).sum())
        low, high = (scale, high) if offered < worker_slots else (low, scale)
    return np.maximum(1, np.rint(low * shape)).astype(np.int64)


def _log_value(
    rng: np.random.Generator,
    kind: MarketKind,
    size: MarketSize,
    arrive: Ints,
    k: Ints,
    m: Ints,
    d_k: Ints,
    d_m: Ints,
    spread: Ints,
) -> Floats:
    """log of (w_k d_k + w_m d_m) x location x xi_km x (tau / median)^g x drift, (N,)."""
    w_k = rng.uniform(0.15, 0.7, size.worker_types)
    w_m = rng.uniform(0.15, 0.7, size.server_types)
    xi = np.exp(kind.pair_spread * rng.standard_normal((size.worker_types, size.server_types)))
    drift = 1.0 + kind.drift * np.sin(2 * np.pi * arrive / size.slots)
    runtime = (spread / np.median(spread)) ** kind.runtime_power if len(spread) else np.ones(0)
    value = (w_k[k] * d_k + w_m[m] * d_m) * kind.location * xi[k, m] * runtime * drift
    return np.asarray(np.log(value))


def _law(kind: MarketKind) -> Floats:
    if kind.bimodal:
        return np.array([(share, np.log(factor), sigma) for share, factor, sigma in MODES])
    return np.array([(1.0, 0.0, kind.noise)])


def _budgets(rng: np.random.Generator, log_value: Floats, law: Floats) -> Floats:
    """Budgets (N,) from the law; a job's budget depends on the stream's position of that job only."""
    group = np.minimum(np.searchsorted(np.cumsum(law[:, 0]), rng.random(len(log_value))), len(law) - 1)
    noise = law[group, 1] + law[group, 2] * rng.standard_normal(len(log_value))
    return np.asarray(np.exp(log_value + noise))
