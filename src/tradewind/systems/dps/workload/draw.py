"""The nine markets of DPS (Zhang et al., Section V) as plain arrays: servers, a stream of jobs, and private budgets.

Units: slots of 300 s, microseconds, bytes, bit/s; money in the paper's normalised units (a unit price lies in [0, 1]).
Runtimes are computed in integers, so that (1) gives the same slots everywhere.
Symbols: S servers, K worker types, M parameter-server types, N jobs, T slots.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.traces.arrivals import DRAWN, recorded_slots
from tradewind.traces.prices import EC2, normalised

SLOT_US = 300_000_000
_US = 1_000_000
SLOTS_PER_DAY = 288


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketKind:
    """What makes one market differ from another; every other number of the generator is shared."""

    load: float = 1.2
    """Worker-slots of all jobs, spread over servers, divided by the worker-slots that exist."""
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
    """Size of a market, and when jobs arrive; the numbers are those of the paper's Section V."""

    slots: int = 10_000
    jobs: int = 10_000
    servers: int = 50
    worker_types: int = 15
    server_types: int = 10
    workers_per_server: int = 30
    servers_per_server: int = 18
    arrivals: str = DRAWN
    prices: str = DRAWN


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketDraw:
    """One market. The fields up to `together` are public; `log_value`, `noise` and `budget` are private."""

    slots: int
    idle_k: Ints
    """(S, K) workers of each type that each server holds when empty."""
    idle_m: Ints
    """(S, M) parameter servers of each type that each server holds when empty."""
    bps_k: Ints
    """(K,) bandwidth h_k that one worker reserves."""
    bps_m: Ints
    """(M,) bandwidth H_m that one parameter server reserves."""
    expected_k: Floats
    """(K,) jobs expected for each worker type: the public forecast n_k of Algorithm 1, not the realised count."""
    expected_m: Floats
    arrive: Ints
    """(N,) slot of arrival, ascending, in [0, T)."""
    k: Ints
    m: Ints
    d_k: Ints
    d_m: Ints
    epochs: Ints
    epoch_us: Ints
    gradient_bytes: Ints
    spread: Ints
    """(N,) runtime tau of (1) in slots with q = 0."""
    together: Ints
    """(N,) runtime tau of (1) in slots with q = 1: everything on one server."""
    log_value: Floats
    """(N,) log of the budget before its noise."""
    noise: Floats
    """(G, 3) groups of customers: share, mean and standard deviation of the log of the noise."""
    budget: Floats
    """(N,) the most that the customer would pay."""


def draw_market(kind: MarketKind, seed: int, size: MarketSize | None = None) -> MarketDraw:
    """Draw a market. Cluster, arrivals, jobs, values and noise have independent random streams."""
    size = MarketSize() if size is None else size
    cluster, clock, work, money, luck = np.random.default_rng(seed).spawn(5)
    idle_k = cluster.integers(0, size.workers_per_server + 1, (size.servers, size.worker_types))
    idle_m = cluster.integers(0, size.servers_per_server + 1, (size.servers, size.server_types))
    bps_k = np.rint(1e9 * np.exp(cluster.uniform(np.log(0.1), np.log(5.0), size.worker_types))).astype(
        np.int64
    )
    bps_m = np.rint(1e9 * cluster.uniform(5.0, 20.0, size.server_types)).astype(np.int64)
    arrive = _arrivals(clock, size)
    share_k = work.dirichlet(np.full(size.worker_types, 4.0))
    share_km = share_k[:, None] * work.dirichlet(np.full(size.server_types, 2.0), size.worker_types)
    k, m, d_k, d_m = _demands(work, kind, share_km, size.jobs)
    epoch_us = np.rint(_US * _lognormal(work, 60.0, 0.5, size.jobs)).astype(np.int64)
    gradient = np.rint(1e9 / 8 * _lognormal(work, 8.0, 0.7, size.jobs)).astype(np.int64)
    round_us = epoch_us + exchange_us(gradient, bps_k[k], bps_m[m], d_k)
    shape = _lognormal(work, 1.0, 0.8, size.jobs)
    epochs = _epochs(shape, round_us, d_k, kind.load * float(idle_k.sum()) * size.slots, size.slots)
    spread = runtime_slots(epochs, round_us)
    asks = (k, m, d_k, d_m, spread)
    log_value = _log_value(money, kind, size, arrive, asks)
    noise = _noise(kind)
    return MarketDraw(
        slots=size.slots,
        idle_k=idle_k,
        idle_m=idle_m,
        bps_k=bps_k,
        bps_m=bps_m,
        expected_k=size.jobs * share_km.sum(axis=1),
        expected_m=size.jobs * share_km.sum(axis=0),
        arrive=arrive,
        k=k,
        m=m,
        d_k=d_k,
        d_m=d_m,
        epochs=epochs,
        epoch_us=epoch_us,
        gradient_bytes=gradient,
        spread=spread,
        together=runtime_slots(epochs, epoch_us),
        log_value=log_value,
        noise=noise,
        budget=_budgets(luck, log_value, noise),
    )


def runtime_slots(epochs: Ints, round_us: Ints) -> Ints:
    """tau of (1) in whole slots, rounded up."""
    return np.asarray(-(-epochs * round_us // SLOT_US))


def exchange_us(gradient_bytes: Ints, bps_k: Ints, bps_m: Ints, d_k: Ints) -> Ints:
    """2 w / b of (1), b = min(h_k, H_m / d_k), rounded up to a microsecond."""
    below = np.minimum(bps_k * d_k, bps_m)
    # Bits times 10^6 would not fit into 64 bits: whole seconds first, then the rest, which is below 2^40.
    whole, rest = np.divmod(2 * 8 * gradient_bytes * d_k, below)
    return np.asarray(whole * _US + -(-rest * _US // below))


def _lognormal(rng: np.random.Generator, median: float, sigma: float, count: int) -> Floats:
    return median * np.exp(sigma * rng.standard_normal(count))


def _arrivals(rng: np.random.Generator, size: MarketSize) -> Ints:
    """Arrival slots (N,): recorded ones, or day and night, quiet weekends, and bursts of 12 slots about every 120 slots."""
    recorded = recorded_slots(size.arrivals, size.jobs, size.slots, SLOT_US, rng)
    if recorded is not None:
        return recorded
    t = np.arange(size.slots)
    rate = 1.0 + 0.6 * np.sin(2 * np.pi * t / SLOTS_PER_DAY)
    rate = rate * np.where((t // SLOTS_PER_DAY) % 7 >= 5, 0.6, 1.0)
    rate = rate * np.where(_bursts(rng, size.slots), 3.0, 1.0)
    slots = rng.choice(size.slots, size=size.jobs, p=rate / rate.sum())
    return np.sort(slots).astype(np.int64)


def _bursts(rng: np.random.Generator, slots: int) -> Bools:
    """(T,) whether a burst is on: geometric stretches of mean 120 slots off and 12 slots on."""
    on = np.zeros(slots, dtype=np.bool_)
    t = 0
    while t < slots:
        t += int(rng.geometric(1 / 120))
        length = int(rng.geometric(1 / 12))
        on[t : t + length] = True
        t += length
    return on


def _demands(
    rng: np.random.Generator, kind: MarketKind, share_km: Floats, jobs: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Types and numbers of workers and parameter servers of each job, all (N,)."""
    pair = rng.choice(share_km.size, size=jobs, p=share_km.ravel())
    k, m = np.divmod(pair, share_km.shape[1])
    d_k = np.clip(np.rint(_lognormal(rng, kind.workers_median, 0.9, jobs)), 1, 150).astype(np.int64)
    d_m = np.maximum(1, np.rint(d_k * rng.uniform(0.15, 0.6, jobs))).astype(np.int64)
    return k, m, d_k, d_m


def _epochs(shape: Floats, round_us: Ints, d_k: Ints, worker_slots: float, horizon: int) -> Ints:
    """Epochs (N,) of the drawn shape, scaled by bisection so that spread runtimes ask for `worker_slots` in total.

    No spread job runs longer than a quarter of the horizon.
    """
    most = np.maximum(1, max(1, horizon // 4) * SLOT_US // round_us)

    def scaled(scale: float) -> Ints:
        return np.asarray(np.clip(np.rint(scale * shape).astype(np.int64), 1, most))

    low, high = 0.0, 1e7
    for _ in range(60):
        scale = (low + high) / 2
        offered = float((d_k * runtime_slots(scaled(scale), round_us)).sum())
        low, high = (scale, high) if offered < worker_slots else (low, scale)
    return scaled(low)


def _log_value(
    rng: np.random.Generator,
    kind: MarketKind,
    size: MarketSize,
    arrive: Ints,
    asks: tuple[Ints, Ints, Ints, Ints, Ints],
) -> Floats:
    """log of (w_k d_k + w_m d_m) x location x xi_km x (tau / median)^g x drift, (N,); asks = k, m, d_k, d_m, spread tau."""
    k, m, d_k, d_m, spread = asks
    w_k = rng.uniform(0.15, 0.7, size.worker_types)
    w_m = rng.uniform(0.15, 0.7, size.server_types)
    if size.prices == EC2:
        w_k, w_m = normalised("worker", size.worker_types), normalised("server", size.server_types)
    xi = np.exp(kind.pair_spread * rng.standard_normal((size.worker_types, size.server_types)))
    drift = 1.0 + kind.drift * np.sin(2 * np.pi * arrive / size.slots)
    runtime = (spread / np.median(spread)) ** kind.runtime_power if len(spread) else np.ones(0)
    value = (w_k[k] * d_k + w_m[m] * d_m) * kind.location * xi[k, m] * runtime * drift
    return np.asarray(np.log(value))


def _noise(kind: MarketKind) -> Floats:
    if kind.bimodal:
        return np.array([(share, np.log(factor), sigma) for share, factor, sigma in MODES])
    return np.array([(1.0, 0.0, kind.noise)])


def _budgets(rng: np.random.Generator, log_value: Floats, noise: Floats) -> Floats:
    """Budgets (N,): location plus noise, drawn job by job in order."""
    group = np.minimum(np.searchsorted(np.cumsum(noise[:, 0]), rng.random(len(log_value))), len(noise) - 1)
    drawn = noise[group, 1] + noise[group, 2] * rng.standard_normal(len(log_value))
    return np.asarray(np.exp(log_value + drawn))
