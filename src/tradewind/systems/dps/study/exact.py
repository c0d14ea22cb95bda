"""The exact optimum of tiny markets for a seller that knows every budget: problem (2) as a mixed-integer program.

An option is a job at a start and either on one host, at the runtime of (1) with q = 1, or spread over hosts, with integers
that say how many items each host gives. A job holds its items through slot start + tau. Problem (2) starts jobs when they
arrive; `delay` allows later starts, which must then finish within the run, as the audit demands.
"""

from __future__ import annotations

from collections import defaultdict

from tradewind.solvers.highs import Entry, Program, quiet_solver
from tradewind.systems.dps.bound import MarketArrays

Use = dict[tuple[int, int, int], list[Entry]]
"""(host, row of the type, slot) -> what it gives away."""


def optimum(it: MarketArrays, slots: int, delay: int = 0) -> float:
    """The most that could be earned with every payment equal to the budget; starts up to `delay` slots after arrival."""
    stream, hosts = it.stream, it.cluster.idle_k.shape[1]
    program = Program()
    use: Use = defaultdict(list)
    for j, budget in enumerate(it.budget.tolist()):
        arrive, mine = int(stream.arrive[j]), []
        for host in (*range(hosts), -1):
            tau = int(stream.spread[j] if host < 0 else stream.together[j])
            for start in range(arrive, arrive + delay + 1):
                if start == arrive or start + tau <= slots:
                    option = program.column(budget, 1.0, whole=True)
                    mine.append(option)
                    _take(program, use, it, (j, option, host), range(start, min(slots, start + tau + 1)))
        program.row(0.0, 1.0, [(option, 1.0) for option in mine])
    kinds_k = len(it.cluster.idle_k)
    for (host, kind, _), entries in use.items():
        idle = it.cluster.idle_k[kind] if kind < kinds_k else it.cluster.idle_m[kind - kinds_k]
        program.row(0.0, float(idle[host]), entries)
    found = program.solve(quiet_solver(seed=7, mip_rel_gap=0.0, mip_abs_gap=0.0), maximise=True)
    if not found.optimal:
        raise RuntimeError("HiGHS did not prove the optimum of a tiny market")
    return found.value


def _take(program: Program, use: Use, it: MarketArrays, which: tuple[int, int, int], span: range) -> None:
    """Enter what an option (job, column, host or -1) takes from each host in each slot of `span`."""
    j, option, home = which
    kinds_k, hosts = len(it.cluster.idle_k), it.cluster.idle_k.shape[1]
    for kind, items in (
        (int(it.stream.k[j]), int(it.stream.d_k[j])),
        (kinds_k + int(it.stream.m[j]), int(it.stream.d_m[j])),
    ):
        if home >= 0:
            given = [(home, (option, float(items)))]
        else:
            parts = [program.column(0.0, float(items), whole=True) for _ in range(hosts)]
            program.row(0.0, 0.0, [(option, float(items)), *((part, -1.0) for part in parts)])
            given = [(host, (part, 1.0)) for host, part in enumerate(parts)]
        for host, entry in given:
            for slot in span:
                use[host, kind, slot].append(entry)
