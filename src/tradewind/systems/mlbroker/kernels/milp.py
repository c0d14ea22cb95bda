"""The exact mixed-integer program over one slot or a whole horizon, for small instances.

Problem (8) of the mlBroker paper in corrected form:

- (8c)-(8e) by tiers, each with its own smallest M
- v >= s and v >= y / N instead of (8g)
- v <= y + s, so that a site that a job leaves is no longer deployed
- g_rr' >= y_r - N (1 - s_r') instead of (8i)-(8j), so that every worker pays its traffic to the server
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.highs import Entry, Program, quiet_solver
from tradewind.systems.mlbroker.kernels.prices import chord_slopes
from tradewind.systems.mlbroker.kernels.slot import NO_LIMIT, Slot

NEW = -1
"""Stands for the previous index of a job that was not in the previous slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactResult:
    """Whether it is proven optimal; cost and dual bound in USD; workers (I, R) and servers (I,) of each slot."""

    optimal: bool
    cost: float
    bound: float
    workers: tuple[Ints, ...]
    servers: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """Columns of one job in one slot: workers y, server s, presence v, each (R,); its spend as (column, list price)."""

    y: Ints
    s: Ints
    v: Ints
    spend: list[Entry]


def _job(program: Program, slot: Slot, i: int) -> _Job:
    """Columns and rows of job i alone: (8a), (8b), (8f), the tightened (8g), traffic to the server."""
    inf = float("inf")
    need = int(slot.needed[i])
    sites = slot.shape[1]
    ok = slot.worker_ok[i]
    y = np.array([program.column(0.0, need if ok[r] else 0, whole=True) for r in range(sites)])
    s = np.array(
        [program.column(0.0, 1.0 if slot.server_ok[i, r] else 0.0, whole=True) for r in range(sites)]
    )
    v = np.array([program.column(0.0, 1.0, whole=True) for _ in range(sites)])
    program.row(1.0, 1.0, [(c, 1.0) for c in s])
    most = inf if slot.most_workers[i] == NO_LIMIT else float(slot.most_workers[i])
    program.row(float(need), most, [(c, 1.0) for c in y])
    listed = slot.tiers.usd[:, :, 0]
    spend = list(zip(y.tolist(), (listed @ slot.worker[i]).tolist(), strict=True))
    spend += zip(s.tolist(), (listed @ slot.server[i]).tolist(), strict=True)
    into = _flows(program, slot, i, ok)
    spend += sorted((c, program.cost[c]) for flow in into for c, _ in flow)
    for r in range(sites):
        if into[r]:
            program.row(0.0, inf, [(int(y[r]), 1.0), *into[r]])
        program.row(0.0, inf, [(int(v[r]), 1.0), (int(s[r]), -1.0)])
        program.row(0.0, inf, [(int(v[r]), float(max(need, 1))), (int(y[r]), -1.0)])
        program.row(-inf, 0.0, [(int(v[r]), 1.0), (int(y[r]), -1.0), (int(s[r]), -1.0)])
    spend += [(c, program.cost[c]) for c in _traffic(program, slot, i, y, s)]
    return _Job(y, s, v, spend)


def _flows(program: Program, slot: Slot, i: int, ok: Bools) -> list[list[Entry]]:
    """Flows from each source of job i to the sites that are `ok` (R,), with (8b); the inflow of each site, negative."""
    sites = slot.shape[1]
    into: list[list[Entry]] = [[] for _ in range(sites)]
    chunk = float(slot.chunk[i])  # count data in chunks: bytes would leave the program badly scaled
    for r in np.flatnonzero(slot.data[i] > 0.0).tolist():
        amount = float(slot.data[i, r]) / chunk
        flow = [
            program.column(float(slot.move_usd[r, q]) * chunk, amount if ok[q] else 0.0) for q in range(sites)
        ]
        program.row(amount, amount, [(c, 1.0) for c in flow])
        for q in range(sites):
            into[q].append((flow[q], -1.0))
    return into


def _traffic(program: Program, slot: Slot, i: int, y: Ints, s: Ints) -> list[int]:
    """Connections g_rr' >= 0 that add up to y_r with g_rr' <= N s_r': every worker connects to the server's site."""
    need = float(slot.needed[i])
    sites = slot.shape[1]
    found: list[int] = []
    for r in range(sites) if need else ():
        g = [program.column(float(slot.traffic[i] * slot.traffic_usd[r, q]), need) for q in range(sites)]
        found += g
        program.row(0.0, 0.0, [(int(y[r]), -1.0), *((c, 1.0) for c in g)])
        for q in range(sites):
            program.row(-float("inf"), 0.0, [(g[q], 1.0), (int(s[q]), -need)])
    return found


def _rent(program: Program, slot: Slot, jobs: Sequence[_Job]) -> None:
    """Rent of the pooled usage: one tier t is reached (u_t integer), and usage in tier t is at most H u_t."""
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
            part = [program.column(float(price.usd[r, k, t]), inf) for t in tiers]
            program.row(0.0, 0.0, [(c, 1.0) for c in part] + used)
            reached = [
                program.column(float(price.intercept[r, k, t]), 1.0, whole=len(tiers) > 1) for t in tiers
            ]
            program.row(-inf, 1.0, [(c, 1.0) for c in reached])
            for c, u in zip(part, reached, strict=True):
                program.row(-inf, 0.0, [(c, 1.0), (u, -most)])


Cap = tuple[Sequence[tuple[int, int]], float]
"""Jobs as (slot, index in it), and the most that they may spend together at list price, USD."""


def solve_exactly(
    slots: Sequence[Slot],
    follows: Sequence[Ints] | None = None,
    nodes: int = 200_000,
    gap: float = 1e-6,
    caps: Sequence[Cap] = (),
) -> ExactResult:
    """Minimise the cost of all slots together with at most `nodes` of branch and bound.

    `follows[t]` (I_t,): index of each job of slot t in slot t - 1, or NEW. New jobs and those of the first slot start
    from `slots[t].deployed`.
    """
    program = Program()
    inf = float("inf")
    jobs: list[list[_Job]] = []
    for t, slot in enumerate(slots):
        mine = [_job(program, slot, i) for i in range(slot.shape[0])]
        _rent(program, slot, mine)
        for i, job in enumerate(mine):
            last = int(follows[t][i]) if follows is not None and t > 0 else NEW
            for r in range(slot.shape[1]):
                if last == NEW:
                    program.cost[job.v[r]] = 0.0 if slot.deployed[i, r] else float(slot.deploy_usd[i])
                    job.spend.append((int(job.v[r]), program.cost[job.v[r]]))
                else:
                    z = program.column(float(slot.deploy_usd[i]), 1.0)
                    job.spend.append((z, float(slot.deploy_usd[i])))
                    program.row(
                        0.0, inf, [(z, 1.0), (int(job.v[r]), -1.0), (int(jobs[t - 1][last].v[r]), 1.0)]
                    )
        jobs.append(mine)
    for members, usd in caps:
        program.row(-inf, usd, [entry for t, i in members for entry in jobs[t][i].spend])
    return _run(program, jobs, nodes, gap)


def relaxed_horizon(slots: Sequence[Slot], follows: Sequence[Ints]) -> float:
    """Optimum of the relaxed problem P_f (9) over all slots, USD, in the relaxation of the fractional step.

    Rent at the chord of each slot, (8g) as (N + 1) v >= y + s, (8i) and (8j) as printed, all variables continuous.
    `follows` as in :func:`solve_exactly`.
    """
    program = Program()
    inf = float("inf")
    last: list[Ints] = []
    for t, slot in enumerate(slots):
        price = chord_slopes(slot)
        now = []
        for i in range(slot.shape[0]):
            y, s, v = _relaxed_job(program, slot, i, price)
            need = float(slot.needed[i])
            before = int(follows[t][i]) if t > 0 else NEW
            for r in range(slot.shape[1]):
                program.row(0.0, inf, [(int(v[r]), need + 1.0), (int(y[r]), -1.0), (int(s[r]), -1.0)])
                if before == NEW:
                    program.cost[v[r]] = float(slot.deploy_usd[i])
                else:
                    z = program.column(float(slot.deploy_usd[i]), inf)
                    program.row(0.0, inf, [(z, 1.0), (int(v[r]), -1.0), (int(last[before][r]), 1.0)])
            now.append(v)
        last = now
    return _run(program, [], 1, 1e-6).cost


def _relaxed_job(program: Program, slot: Slot, i: int, price: Floats) -> tuple[Ints, Ints, Ints]:
    """Columns y, s, v (R,) of one job in the relaxation, with (8a), (8b), (8f), (8i), (8j)."""
    inf, sites = float("inf"), slot.shape[1]
    need = float(slot.needed[i])
    worker_usd, server_usd = price @ slot.worker[i], price @ slot.server[i]
    y = np.array([program.column(float(worker_usd[r]), inf) for r in range(sites)])
    s = np.array([program.column(float(server_usd[r]), 1.0) for r in range(sites)])
    v = np.array([program.column(0.0, 1.0) for _ in range(sites)])
    program.row(1.0, 1.0, [(int(c), 1.0) for c in s])
    into = _flows(program, slot, i, np.ones(sites, dtype=np.bool_))
    linked: list[list[Entry]] = [[] for _ in range(sites)]
    for r in range(sites):
        program.row(0.0, inf, [(int(y[r]), 1.0), *into[r]])
        g = [program.column(float(slot.traffic[i] * slot.traffic_usd[r, q]), inf) for q in range(sites)]
        program.row(0.0, 0.0, [(int(y[r]), -1.0), *((c, 1.0) for c in g)])
        for q in range(sites):
            linked[q].append((g[q], 1.0))
    for q in range(sites):
        program.row(0.0, inf, [(int(s[q]), -need), *linked[q]])
    return y, s, v


def _run(program: Program, jobs: Sequence[Sequence[_Job]], nodes: int, gap: float) -> ExactResult:
    """Solve the program and read the plans back."""
    found = program.solve(quiet_solver(mip_max_nodes=nodes, mip_rel_gap=gap))
    if not found.columns.size:
        return ExactResult(optimal=False, cost=found.value, bound=found.bound, workers=(), servers=())
    x = found.columns
    return ExactResult(
        optimal=found.optimal,
        cost=found.value,
        bound=found.bound,
        workers=tuple(np.array([np.rint(x[job.y]) for job in mine]).astype(np.int64) for mine in jobs),
        servers=tuple(np.array([int(np.argmax(x[job.s])) for job in mine]) for mine in jobs),
    )
