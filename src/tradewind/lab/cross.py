"""The cross-table: every scenario family against every policy that can run it, as a share of the family's bound.

The share is value / bound where more is better and bound / value where less is, so that 1 is the bound and less is worse,
whatever the objective. A family is a generator of this house, or one of them seen through another system's eyes: DPS's
jobs in a queue, a cluster's jobs as rings, mlBroker's sites with finite capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

from tradewind.engine import bounds
from tradewind.engine.fit import mismatch
from tradewind.lab.drawing import heat_table
from tradewind.lab.study import Chart, Effort, Finding, PaperFigure, Part, Pieces, Row, Study
from tradewind.model.job import Customer, Fixed, Rounds
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE
from tradewind.model.units import MILLI
from tradewind.registry import policies, workloads
from tradewind.report.figures.theme import Theme
from tradewind.report.summary import estimate
from tradewind.systems.gadget.workload.trace import GADGET_TRACE, as_rings
from tradewind.worlds.simulate import simulate

Make = Callable[[Effort, int], Scenario]
"""(effort, seed) -> scenario."""


# ------------------------------------------------------------------ families
def _cluster(effort: Effort, seed: int, **more: Any) -> Scenario:
    size = effort.pick({"jobs": 400, "servers": 8}, {"jobs": 4000, "servers": 20})
    return workloads.generate("cluster", {**size, **more}, seed)


def cluster(effort: Effort, seed: int) -> Scenario:
    """Jobs of a GPU cluster with public runtimes, mean completion time."""
    return _cluster(effort, seed)


def cluster_private(effort: Effort, seed: int) -> Scenario:
    """The same jobs, whose runtimes nobody knows beforehand."""
    return _cluster(effort, seed, runtime="private")


def _racks(effort: Effort, seed: int) -> Scenario:
    size = effort.pick({"jobs": 150}, {"jobs": 2000})
    return _cluster(effort, seed, racks=2, slot_s=300.0, **size)


def cluster_rings(effort: Effort, seed: int) -> Scenario:
    """The cluster's jobs as rings of all their GPUs, all or none, on the same servers with links between them."""
    given = {name: param.default for name, param in GADGET_TRACE.params.items()}
    return as_rings(_racks(effort, seed), given)


def _market(effort: Effort, seed: int, kind: str, **more: Any) -> Scenario:
    size = effort.pick({"jobs": 800, "slots": 800}, {"jobs": 10_000, "slots": 10_000})
    return workloads.generate("dps", {**size, "market": kind, **more}, seed)


def market(effort: Effort, seed: int) -> Scenario:
    """DPS's balanced market, profit."""
    return _market(effort, seed, "balanced")


def market_saturated(effort: Effort, seed: int) -> Scenario:
    """DPS's saturated market, profit."""
    return _market(effort, seed, "saturated")


def market_queue(effort: Effort, seed: int) -> Scenario:
    """DPS's jobs that fit the servers, without prices: they wait in line, mean completion time."""
    given = _market(replace(effort, quick=True), seed, "saturated", servers=12)
    hosts = [given.setup.nodes[h].capacity_milli for h in given.setup.hosts]
    total = [sum(column) for column in zip(*hosts, strict=True)]
    fitting = [
        job
        for job in given.jobs
        if all(milli * job.workers_max <= total[r] // 2 for r, milli in job.worker)
        and all(milli * job.servers <= total[r] // 2 for r, milli in job.server)
    ][: effort.pick(150, 1000)]
    jobs = tuple(replace(job, index=i) for i, job in enumerate(fitting))
    setup = replace(given.setup, objective="jct_mean_s", horizon_us=given.setup.horizon_us * 20)
    return Scenario(
        name=f"{given.name}-queue",
        setup=setup,
        jobs=jobs,
        origin={"workload": "dps as a queue", "seed": seed},
    )


def queue_floor(effort: Effort, seed: int) -> Scenario:
    """The queue's jobs as fixed jobs that run as fast as they ever can: without communication."""
    given = market_queue(effort, seed)
    jobs = []
    for job in given.jobs:
        assert isinstance(job.work, Rounds)
        slots = -(-job.work.count * job.work.compute_us // given.setup.slot_us)
        fixed = Fixed(runtime_us=max(1, slots * given.setup.slot_us))
        jobs.append(
            replace(
                job, work=fixed, servers=0, server=(), model_bytes=0, worker_bps=0, server_bps=0, hold="until"
            )
        )
    return replace(given, jobs=tuple(jobs), customers=tuple(Customer() for _ in jobs))


def _auction(effort: Effort, seed: int, size: str, jobs: int) -> Scenario:
    return workloads.generate("eris", {"size": size, **effort.pick({"jobs": jobs}, {})}, seed)


def auction(effort: Effort, seed: int) -> Scenario:
    """Eris's testbed, welfare."""
    return _auction(effort, seed, "testbed", 10)


def auction_contended(effort: Effort, seed: int) -> Scenario:
    """Eris's bids where resources are short, welfare."""
    return _auction(effort, seed, "contended", 150)


def _rings(effort: Effort, seed: int, **more: Any) -> Scenario:
    size = effort.pick({"servers": 15, "slots": 25, "jobs": 60}, {"servers": 50, "slots": 200, "jobs": 1500})
    return workloads.generate("gadget", {**size, **more}, seed)


def rings(effort: Effort, seed: int) -> Scenario:
    """GADGET's published workload with concave utility."""
    return _rings(effort, seed, utility="sqrt")


def rings_tight(effort: Effort, seed: int) -> Scenario:
    """GADGET's rings where links are short and jobs run whole or not at all."""
    return _rings(effort, seed, family="tight", utility="gang")


def _broker(effort: Effort, seed: int, family: str) -> Scenario:
    size = effort.pick(
        {"sites": 6, "slots": 8, "jobs_per_slot": 8.0}, {"sites": 15, "slots": 50, "jobs_per_slot": 20.0}
    )
    return workloads.generate("mlbroker", {**size, "family": family}, seed)


def broker(effort: Effort, seed: int) -> Scenario:
    """mlBroker's published workload, cost."""
    return _broker(effort, seed, "paper")


def broker_narrow(effort: Effort, seed: int) -> Scenario:
    """mlBroker where placement decides who reaches a discount, cost."""
    return _broker(effort, seed, "narrow")


SHARE_OF_ALL = 0.3
"""Capacity of each site as a share of what all jobs together could ask for at once."""


def broker_finite(effort: Effort, seed: int) -> Scenario:
    """mlBroker's narrow family on sites of finite capacity: no site can take everything."""
    given = broker_narrow(effort, seed)
    need = _peak(given)
    nodes = tuple(
        replace(node, capacity_milli=tuple(min(c, n) for c, n in zip(node.capacity_milli, need, strict=True)))
        for node in given.setup.nodes
    )
    return replace(
        given,
        setup=replace(given.setup, nodes=nodes),
        origin={"workload": "mlbroker on finite sites", "seed": seed},
    )


def _peak(given: Scenario) -> list[int]:
    """SHARE_OF_ALL of the most that any slot's data asks for, per resource, with one server per job on top."""
    rows, found = given.volumes, [0] * len(given.setup.resources)
    for slot in range(given.setup.slots):
        asked = [0] * len(found)
        here = rows.slot == slot
        for job in given.jobs:
            size = int(rows.bytes[here & (rows.job == job.index)].sum())
            if size:
                rate: Any = job.work
                workers = -(-size // rate.bytes_per_worker_slot) + len(given.setup.hosts)
                for r, milli in job.worker:
                    asked[r] += milli * workers
                for r, milli in job.server:
                    asked[r] += milli * job.servers
        found = [max(a, b) for a, b in zip(found, asked, strict=True)]
    return [int(SHARE_OF_ALL * n) // MILLI * MILLI for n in found]


def wan(effort: Effort, seed: int) -> Scenario:
    """APSP's B4 with ResNet50, mean epoch."""
    return workloads.generate("apsp", {"topology": "b4"}, seed)


def wan_internet2(effort: Effort, seed: int) -> Scenario:
    """APSP's Internet2 with ResNet50, mean epoch."""
    return workloads.generate("apsp", {"topology": "internet2"}, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A column: its scenarios, and scenarios whose bound holds for them where they have none of their own."""

    name: str
    make: Make
    floor: Make | None = None


FAMILIES = (
    Family(name="mlbroker", make=broker),
    Family(name="mlbroker narrow", make=broker_narrow),
    Family(name="mlbroker finite", make=broker_finite, floor=broker_narrow),
    Family(name="dps", make=market),
    Family(name="dps saturated", make=market_saturated),
    Family(name="dps queue", make=market_queue, floor=queue_floor),
    Family(name="apsp b4", make=wan),
    Family(name="apsp internet2", make=wan_internet2),
    Family(name="eris testbed", make=auction),
    Family(name="eris contended", make=auction_contended),
    Family(name="gadget", make=rings),
    Family(name="gadget tight", make=rings_tight),
    Family(name="cluster", make=cluster),
    Family(name="cluster private", make=cluster_private),
    Family(name="cluster rings", make=cluster_rings, floor=_racks),
)


# ------------------------------------------------------------------ cells
def _seeds(effort: Effort) -> range:
    return range(1, 1 + min(effort.seeds, effort.pick(2, 10)))


@lru_cache(maxsize=64)
def _made(make: Make, effort: Effort, seed: int) -> Scenario:
    """A scenario, kept for the policies that follow."""
    return make(effort, seed)


def why_not(family: Family, policy: str, effort: Effort) -> str:
    """The reason why a policy cannot run a family; empty where it can."""
    return mismatch(policies.find(policy), _made(family.make, effort, 1))


def cell(effort: Effort, make: Make, policy: str) -> list[Row]:
    """Value, and jobs that were turned away, for each seed."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        given = _made(make, effort, seed)
        run = simulate(given, policies.find(policy), _hurried(effort, given, policy), seed=seed)
        away = sum(run.metrics[f"jobs_{word}"] for word in ("refused", "declined", "unfinished"))
        rows.append({"seed": float(seed), "value": run.value, "away": away})
    return rows


def _hurried(effort: Effort, given: Scenario, policy: str) -> Mapping[str, Any]:
    """Prices in hindsight by a short search, for a quick table; otherwise the policy finds its own."""
    if not effort.quick or policy not in ("bfp", "bfp-tau"):
        return {}
    from tradewind.systems.dps.bound import best_prices
    from tradewind.systems.dps.kernels.fixed import QUICK

    return best_prices(given, with_runtime=policy == "bfp-tau", search=QUICK)


def floors(effort: Effort, make: Make) -> list[Row]:
    """The bound of each seed."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        found = bounds.bound(_made(make, effort, seed))
        assert found is not None, make.__name__
        rows.append({"seed": float(seed), "bound": found.value, "kind": found.kind})
    return rows


@cache
def parts(effort: Effort) -> tuple[Part, ...]:
    """The bounds of all families, and every cell that exists."""
    found = [Part(name=f"{f.name}: bound", rows=partial(floors, make=f.floor or f.make)) for f in FAMILIES]
    for family in FAMILIES:
        able = [policy for policy in policies.names() if not why_not(family, policy, effort)]
        found += [_part(family, policy) for policy in able]
    return tuple(found)


def _part(family: Family, policy: str) -> Part:
    return Part(name=f"{family.name}: {policy}", rows=partial(cell, make=family.make, policy=policy))


def join(effort: Effort, rows: Sequence[Sequence[Row]]) -> list[Row]:
    """One row per family and policy: its share of the bound with a 95% interval, or why there is none."""
    known = {part.name: found for part, found in zip(parts(effort), rows, strict=True)}
    table: list[Row] = []
    for family in FAMILIES:
        limits = known[f"{family.name}: bound"]
        for policy in policies.names():
            own = known.get(f"{family.name}: {policy}")
            table.append(_row(family, policy, effort, (own, limits)))
    return table


def _row(
    family: Family, policy: str, effort: Effort, found: tuple[Sequence[Row] | None, Sequence[Row]]
) -> Row:
    own, limits = found
    setup = _made(family.make, effort, 1).setup
    row: dict[str, str | float] = {
        "policy": policy, "family": family.name, "share": "", "low": "", "high": "", "n": 0.0,
        "objective": setup.objective, "value": "", "bound": estimate([float(r["bound"]) for r in limits]).mean,
        "kind of bound": str(limits[0]["kind"]), "why not": "",
    }  # fmt: skip
    if own is None:
        return {**row, "why not": f"cannot run: {why_not(family, policy, effort)}"}
    row |= {"value": estimate([float(r["value"]) for r in own]).mean, "n": float(len(own))}
    away = sum(float(r["away"]) for r in own)
    if away and SENSE[setup.objective] == "min":
        said = f"no ratio: {away / len(own):.0f} jobs per run were turned away or not finished, and the bound holds for all"
        return {**row, "why not": said}
    share = estimate([_share(setup.objective, o, b) for o, b in zip(own, limits, strict=True)])
    half = share.half if share.half == share.half else 0.0
    return {**row, "share": share.mean, "low": share.mean - half, "high": share.mean + half}


def _share(objective: Any, own: Row, limit: Row) -> float:
    value, bound = float(own["value"]), float(limit["bound"])
    above, below = (value, bound) if SENSE[objective] == "max" else (bound, value)
    return above / below if below else 1.0


def rows(effort: Effort) -> list[Row]:
    """The whole table."""
    return join(effort, [part.rows(effort) for part in parts(effort)])


def judge(table: Sequence[Row]) -> Finding:
    """Who is best where; nothing here is a paper's claim."""
    best = []
    for family in dict.fromkeys(str(r["family"]) for r in table):
        mine = [
            (float(r["share"]), str(r["policy"])) for r in table if r["family"] == family and r["share"] != ""
        ]
        best.append(f"{family}: {max(mine)[1]} {max(mine)[0]:.3f}")
    ran = sum(r["share"] != "" for r in table)
    none = sum(str(r["why not"]).startswith("no ratio") for r in table)
    said = (
        f"{ran} of {len(table)} pairs have a share of the bound, {none} ran without serving every job, "
        f"{len(table) - ran - none} cannot run (each with its reason). Best of each family: {', '.join(best)}."
    )
    return Finding(word="not tested", reason=said)


def paint(table: Sequence[Row], theme: Theme, width: float) -> Any:
    """The heat map: policies that run anywhere by families, those that run the same families together, the best first."""
    families = list(dict.fromkeys(str(r["family"]) for r in table))
    shares = {(str(r["policy"]), str(r["family"])): float(r["share"]) for r in table if r["share"] != ""}

    def rank(policy: str) -> tuple[list[bool], float, str]:
        mine = [shares[policy, f] for f in families if (policy, f) in shares]
        return [(policy, f) not in shares for f in families], -sum(mine) / len(mine), policy

    order = sorted({policy for policy, _ in shares}, key=rank)
    cells = [(policy, f, shares.get((policy, f), float("nan"))) for policy in order for f in families]
    return heat_table(cells, theme, width)


STUDY = Study(
    system="cross",
    title="The cross-table: every family against every policy",
    figures=(
        PaperFigure(
            name="table",
            title="Share of the bound, by scenario family and policy",
            claim="None: no paper runs another's workload.",
            rows=rows,
            judge=judge,
            chart=Chart(x="family", y="share", series="policy", low="low", high="high", kind="bar"),
            pieces=Pieces(parts=parts, join=join),
            paint=paint,
        ),
    ),
    remarks=(
        "A share of 1 is the bound; it is value / bound where more is better and bound / value where less is. DPS's bound "
        "knows the law of the budgets and no budget, so that prices chosen in hindsight can lie above it.",
        "mlbroker finite: the narrow family on sites that hold 30% of the most that all jobs ask for at once, held against "
        "the bound without capacity. dps queue: DPS's jobs without prices, held against the same jobs running without "
        "communication. cluster rings: the cluster's jobs as rings, held against the bound of the cluster's fixed jobs.",
        "A dot in the map means that the policy cannot run the family; the reasons are in the table and in the CSV.",
    ),
)
