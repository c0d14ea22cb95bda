"""The exact mixed-integer program of the brokerage, over one slot or a whole horizon, for small instances.

Problem (8) of the mlBroker paper in corrected form: (8c)-(8e) by tiers, each with its own smallest M; v >= s and
v >= y / N instead of (8g); v <= y + s, so that a site that is left is no longer deployed; every worker pays its
traffic to the server, g_rr' >= y_r - N (1 - s_r') instead of (8i)-(8j).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import Entry, Program, quiet_solver
from tradewind.systems.mlbroker.kernels.prices import chord_slopes
from tradewind.systems.mlbroker.kernels.slot import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactResult:
    """Result: optimal or not, cost and dual bound in USD; workers and servers per slot, (I, R) and (I,)."""

    optimal: bool
    cost: float
    bound: float
    workers: tuple[Ints, ...]
    servers: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """Columns of one job in one slot: workers y, server s, presence v, each (R,); its spend as (column, list USD)."""

    y: Ints
    s: Ints
    v: Ints
    spend: list[Entry]


def _job(out: Program, slot: Slot, i: int) -> _Job:
    """Columns and rows of job i alone: (8a), (8b), (8f), (8g) tightened, traffic to the server."""
    inf = float("inf")
    need = int(slot.needed[i])
    sites = slot.shape[1]
    ok = slot.worker_ok[i]
    y = np.array([out.column(0.0, need if ok[r] else 0, whole=True) for r in range(sites)])
    s = np.array([out.column(0.0, 1.0 if slot.server_ok[i, r] else 0.0, whole=True) for r in range(sites)])
    v = np.array([out.column(0.0, 1.0, whole=True) for _ in range(sites)])
    out.row(1.0, 1.0, [(c, 1.0) for c in s])
    most = float(slot.most_workers[i]) if slot.most_workers[i] >= 0 else inf
    out.row(float(need), most, [(c, 1.0) for c in y])
    listed = slot.tiers.usd[:, :, 0]
    spend = list(zip(y.tolist(), (listed @ slot.worker[i]).tolist(), strict=True))
    spend += zip(s.tolist(), (listed @ slot.server[i]).tolist(), strict=True)
    into: list[list[Entry]] = [[] for _ in range(sites)]
    chunk = float(slot.chunk[i])  # data in chunks: bytes would leave the program badly scaled
    for r in np.flatnonzero(slot.data[i] > 0.0).tolist():
        amount = float(slot.data[i, r]) / chunk
        flow = [
            out.column(float(slot.move_usd[r, q]) * chunk, amount if ok[q] else 0.0) for q in range(sites)
        ]
        out.row(amount, amount, [(c, 1.0) for c in flow])
        spend += [(c, out.cost[c]) for c in flow]
        for q in range(sites):
            into[q].append((flow[q], -1.0))
    for r in range(sites):
        if into[r]:
            out.row(0.0, inf, [(int(y[r]), 1.0), *into[r]])
        out.row(0.0, inf, [(int(v[r]), 1.0), (int(s[r]), -1.0)])
        out.row(0.0, inf, [(int(v[r]), float(max(need, 1))), (int(y[r]), -1.0)])
        out.row(-inf, 0.0, [(int(v[r]), 1.0), (int(y[r]), -1.0), (int(s[r]), -1.0)])
    spend += [(c, out.cost[c]) for c in _traffic(out, slot, i, y, s)]
    return _Job(y, s, v, spend)


def _traffic(out: Program, slot: Slot, i: int, y: Ints, s: Ints) -> list[int]:
    """g_rr' >= 0 connections with sum over r' = y_r and g_rr' <= N s_r': every worker talks to the one server."""
    need = float(slot.needed[i])
    sites = slot.shape[1]
    found: list[int] = []
    for r in range(sites) if need else ():
        g = [out.column(float(slot.traffic[i] * slot.traffic_usd[r, q]), need) for q in range(sites)]
        found += g
        out.row(0.0, 0.0, [(int(y[r]), -1.0), *((c, 1.0) for c in g)])
        for q in range(sites):
            out.row(-float("inf"), 0.0, [(g[q], 1.0), (int(s[q]), -need)])
    return found


def _rent(out: Program, slot: Slot, jobs: Sequence[_Job]) -> None:
    """Pooled usage split over tiers, one of which is reached: u_t whole, usage in tier t at most H u_t."""
    inf = float("inf")
    _, sites, kinds = slot.shape
    price = slot.tiers
    total = slot.worker * slot.needed[:, None] + slot.server
    for r in range(sites):
        for k in range(kinds):
            most = min(float(total[:, k].sum()), float(slot.capacity[r, k]))
            used = [(int(job.y[r]), -float(slot.worker[i, k])) for i, job in enumerate(jobs)]
            used += [(int(job.s[r]), -float(slot.server[i, k])) for i, job in enumerate(jobs)]
            used = [(c, a) for c, a in used if a != 0.0]
            if not used:
                continue
            tiers = [t for t in range(price.usd.shape[2]) if t == 0 or price.start[r, k, t] < most]
            part = [out.column(float(price.usd[r, k, t]), inf) for t in tiers]
            out.row(0.0, 0.0, [(c, 1.0) for c in part] + used)
            reached = [out.column(float(price.intercept[r, k, t]), 1.0, whole=len(tiers) > 1) for t in tiers]
            out.row(-inf, 1.0, [(c, 1.0) for c in reached])
            for c, u in zip(part, reached, strict=True):
                out.row(-inf, 0.0, [(c, 1.0), (u, -most)])


Cap = tuple[Sequence[tuple[int, int]], float]
"""Jobs as (slot, place in it), and the most that they may spend together at list price, USD."""


def solve_exactly(
    slots: Sequence[Slot],
    follows: Sequence[Ints] | None = None,
    nodes: int = 200_000,
    gap: float = 1e-6,
    caps: Sequence[Cap] = (),
) -> ExactResult:
    """Minimise the cost of all slots together; ``nodes`` of branch and bound at most.

    ``follows[t]`` (I_t,): the index of each job of slot t in slot t - 1, or -1 when it is new; a new job starts
    from ``slots[t].deployed``, and so do the jobs of the first slot.
    """
    out = Program()
    inf = float("inf")
    jobs: list[list[_Job]] = []
    for t, slot in enumerate(slots):
        mine = [_job(out, slot, i) for i in range(slot.shape[0])]
        _rent(out, slot, mine)
        for i, job in enumerate(mine):
            last = int(follows[t][i]) if follows is not None and t > 0 else -1
            for r in range(slot.shape[1]):
                if last < 0:
                    out.cost[job.v[r]] = 0.0 if slot.deployed[i, r] else float(slot.deploy_usd[i])
                    job.spend.append((int(job.v[r]), out.cost[job.v[r]]))
                else:
                    z = out.column(float(slot.deploy_usd[i]), 1.0)
                    job.spend.append((z, float(slot.deploy_usd[i])))
                    out.row(0.0, inf, [(z, 1.0), (int(job.v[r]), -1.0), (int(jobs[t - 1][last].v[r]), 1.0)])
        jobs.append(mine)
    for members, usd in caps:
        out.row(-inf, usd, [entry for t, i in members for entry in jobs[t][i].spend])
    return _run(out, jobs, nodes, gap)


def relaxed_horizon(slots: Sequence[Slot], follows: Sequence[Ints]) -> float:
    """Optimum of the relaxed problem P_f (9) over all slots, USD, in the relaxation that the fractional step uses.

    Rent at the chord of each slot, (8g) as (N + 1) v >= y + s, (8i) and (8j) as printed; all variables continuous. It
    separates per job, but is solved in one go.
    """
    out = Program()
    inf = float("inf")
    last: list[Ints] = []
    for t, slot in enumerate(slots):
        price = chord_slopes(slot)
        now = []
        for i in range(slot.shape[0]):
            y, s, v = _relaxed_job(out, slot, i, price)
            need = float(slot.needed[i])
            before = int(follows[t][i]) if t > 0 else -1
            for r in range(slot.shape[1]):
                out.row(0.0, inf, [(int(v[r]), need + 1.0), (int(y[r]), -1.0), (int(s[r]), -1.0)])
                if before < 0:
                    out.cost[v[r]] = float(slot.deploy_usd[i])
                else:
                    z = out.column(float(slot.deploy_usd[i]), inf)
                    out.row(0.0, inf, [(z, 1.0), (int(v[r]), -1.0), (int(last[before][r]), 1.0)])
            now.append(v)
        last = now
    return _run(out, [], 1, 1e-6).cost


def _relaxed_job(out: Program, slot: Slot, i: int, price: Floats) -> tuple[Ints, Ints, Ints]:
    """Columns y, s, v (R,) of one job in the relaxation, with (8a), (8b), (8f), (8i), (8j)."""
    inf, sites = float("inf"), slot.shape[1]
    need, chunk = float(slot.needed[i]), float(slot.chunk[i])
    wage, serve = price @ slot.worker[i], price @ slot.server[i]
    y = np.array([out.column(float(wage[r]), inf) for r in range(sites)])
    s = np.array([out.column(float(serve[r]), 1.0) for r in range(sites)])
    v = np.array([out.column(0.0, 1.0) for _ in range(sites)])
    out.row(1.0, 1.0, [(int(c), 1.0) for c in s])
    into: list[list[Entry]] = [[] for _ in range(sites)]
    for r in np.flatnonzero(slot.data[i] > 0.0).tolist():
        amount = float(slot.data[i, r]) / chunk
        flow = [out.column(float(slot.move_usd[r, q]) * chunk, amount) for q in range(sites)]
        out.row(amount, amount, [(c, 1.0) for c in flow])
        for q in range(sites):
            into[q].append((flow[q], -1.0))
    linked: list[list[Entry]] = [[] for _ in range(sites)]
    for r in range(sites):
        out.row(0.0, inf, [(int(y[r]), 1.0), *into[r]])
        g = [out.column(float(slot.traffic[i] * slot.traffic_usd[r, q]), inf) for q in range(sites)]
        out.row(0.0, 0.0, [(int(y[r]), -1.0), *((c, 1.0) for c in g)])
        for q in range(sites):
            linked[q].append((g[q], 1.0))
    for q in range(sites):
        out.row(0.0, inf, [(int(s[q]), -need), *linked[q]])
    return y, s, v


def _run(out: Program, jobs: Sequence[Sequence[_Job]], nodes: int, gap: float) -> ExactResult:
    """Hand the program to HiGHS and read the plan back."""
    answer = out.solve(quiet_solver(mip_max_nodes=nodes, mip_rel_gap=gap))
    if not answer.columns.size:
        return ExactResult(optimal=False, cost=answer.value, bound=answer.bound, workers=(), servers=())
    x = answer.columns
    return ExactResult(
        optimal=answer.optimal,
        cost=answer.value,
        bound=answer.bound,
        workers=tuple(np.array([np.rint(x[job.y]) for job in mine]).astype(np.int64) for mine in jobs),
        servers=tuple(np.array([int(np.argmax(x[job.s])) for job in mine]) for mine in jobs),
    )
