"""A plan: each job at its cheapest quote, what that costs beside other ways, and the scenario that says the same.

Machines on demand are unlimited, so jobs meet only in tiers of egress and on scarce spot machines, which are given out
by deadline; the certified bound says how much is lost by that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from tradewind.api import run
from tradewind.engine.costs import job_costs
from tradewind.engine.intervals import effective, end_us
from tradewind.files.jobs_file import PlanFile
from tradewind.files.profile_file import ProfileFile
from tradewind.model.decision import Flow, Step
from tradewind.model.decision import Plan as JobPlan
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.job import Job
from tradewind.model.result import Offline, Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import GB, MILLI, US_PER_HOUR
from tradewind.model.utility import Utility
from tradewind.planner.joint import OTHERS, as_quotes, improved, missed
from tradewind.planner.market import Market, market
from tradewind.planner.quotes import Quote, Quotes, named, quotes
from tradewind.planner.wanted import Wanted, wanted
from tradewind.prices.builtin import positions
from tradewind.prices.listing import PriceList
from tradewind.prices.wan import Wan
from tradewind.worlds.planned import planned

MOST_SLOTS: Final = 20_000
"""Of a plan: two years of hours."""
WORTH: Final = 10.0
"""A job without a budget is worth this many times its cheapest plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the command line says instead of the file; None: as the file says."""

    until_us: int | None = None
    spot: bool = True
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A way to run a job, in words and hours from now on."""

    what: str
    region: str
    start_h: float
    finish_h: float
    rent_usd: float
    egress_usd: float
    usd: float
    why_not: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan of a job; `next_best` is the cheapest plan elsewhere or on another GPU type."""

    id: str
    tenant: str
    work: str
    region: str
    what: str
    start_h: float
    finish_h: float
    until_h: float
    slack_h: float
    moved: str
    usd: float
    next_best: str
    fitting: int
    options: tuple[Option, ...]
    front: tuple[Option, ...]
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of all jobs: an audited run of a scenario.

    usd        the bill of the run; late_usd: what is lost by delays
    least_usd  certified: no plan that serves all jobs costs less, delays included
    tenants    tenant -> its part of the bill; empty where no job has one
    """

    scenario: Scenario
    run: Run
    usd: float
    late_usd: float
    least_usd: float
    jobs: tuple[Planned, ...]
    tenants: Mapping[str, float]
    compared: tuple[str, ...]
    notes: tuple[str, ...]
    prices: PriceList
    wan: Wan

    @property
    def gap_percent(self) -> float:
        """How much more than the certified bound the plan costs at most."""
        return 100 * ((self.usd + self.late_usd) / self.least_usd - 1) if self.least_usd else 0.0

    @property
    def by_tenant(self) -> str:
        """The bill by tenant in words; empty where no job has one."""
        bills = ", ".join(
            f"{name or 'without a tenant'} {usd:,.2f} USD" for name, usd in self.tenants.items()
        )
        return f"by tenant: {bills}" if bills else ""

    def of(self, job: str) -> Planned:
        """The plan of a job."""
        found = {row.id: row for row in self.jobs}
        if job not in found:
            raise LookupFailed("job", job, found)
        return found[job]

    def as_json(self) -> dict[str, Any]:
        """The plan as plain data, with the hashes of what it was made of."""
        rows = [{key: value for key, value in asdict(row).items() if key != "options"} for row in self.jobs]
        return {
            "usd": self.usd,
            "late_usd": self.late_usd,
            "least_usd": self.least_usd,
            "jobs": rows,
            "tenants": dict(self.tenants),
            "compared": list(self.compared),
            "notes": list(self.notes),
            "prices": {"list": self.prices.name, "date": self.prices.date, "hash": self.prices.hash},
            "wan": {"table": self.wan.name, "date": self.wan.date, "hash": self.wan.hash},
            "scenario": self.run.scenario_hash,
            "audit": [str(violation) for violation in self.run.violations],
        }


def make(
    file: PlanFile, profiles: Mapping[str, ProfileFile], prices: PriceList, wan: Wan, overrides: Overrides
) -> Plan:
    """Plan the jobs of a file; raises an error with the nearest miss where a job or the budget does not fit."""
    memory: dict[str, float | None] = {machine.gpu: None for machine in prices.machines}
    for machine in prices.machines:
        if machine.gpu_gb is not None:
            memory[machine.gpu] = max(machine.gpu_gb, memory[machine.gpu] or 0.0)
    jobs = [_with(job, overrides, file.slot) for job in wanted(file, profiles, memory)]
    jobs.sort(key=lambda job: job.after_us)
    spot = file.spot if overrides.spot else None
    place = market(jobs, prices, wan, slot_us=file.slot, spot=spot)
    found = quotes(place, jobs)
    chosen = _chosen(place, found)
    scenario = Scenario(
        name=file.name,
        setup=place.setup,
        jobs=tuple(
            _valued(job, each, place.setup.slot_us) for job, each in zip(place.jobs, found, strict=True)
        ),
        origin={
            "plan": file.name,
            "prices": prices.hash,
            "wan": wan.hash,
            "positions": _positions(place, chosen),
        },
    )
    result, least_usd = improved(
        scenario, run(scenario, planned("plan", Offline(plans=_plans(scenario, chosen))))
    )
    chosen = as_quotes(scenario, result, found)
    usd = result.metrics["cost_usd"]
    if overrides.budget_usd is not None and usd > overrides.budget_usd:
        raise InputError(
            f"the cheapest plan costs {usd:,.2f} USD, {usd - overrides.budget_usd:,.2f} USD over budget; give more time, "
            "GPU types or regions, or leave out a job",
            where="--budget",
        )
    return Plan(
        scenario=scenario,
        run=result,
        usd=usd,
        late_usd=max(0.0, result.metrics["total_usd"] - usd),
        least_usd=max(least_usd, sum(each.least_usd for each in found)),
        jobs=tuple(_row(place, each, quote) for each, quote in zip(found, chosen, strict=True)),
        tenants=_by_tenant(scenario, result),
        compared=(*_compared(place, found, usd), *_by_others(scenario, usd)),
        notes=place.notes,
        prices=prices,
        wan=wan,
    )


def _by_tenant(scenario: Scenario, result: Run) -> dict[str, float]:
    """Tenant -> the costs of its jobs, with what tiers that jobs reach together save."""
    if not any(job.tenant for job in scenario.jobs):
        return {}
    found: dict[str, float] = dict.fromkeys(sorted({job.tenant for job in scenario.jobs}), 0.0)
    for job, usd in job_costs(scenario, result, effective(result, end_us(result))).items():
        found[scenario.jobs[job].tenant] += usd
    return found


def _positions(place: Market, chosen: Sequence[Quote]) -> dict[str, list[float]]:
    """Latitude and longitude of the regions and of the offers in use, where they are known."""
    known, nodes = positions(), place.setup.nodes
    shown = [node for node, each in enumerate(nodes) if each.parent < 0] + [
        node for q in chosen for node in q.nodes
    ]
    sites = {node: nodes[place.setup.site_of[node]].name for node in shown}
    return {nodes[node].name: list(known[site]) for node, site in sites.items() if site in known}


def _with(job: Wanted, overrides: Overrides, slot_us: int) -> Wanted:
    """The job as the command line changes it, its times in whole slots."""
    after_us = -(-job.after_us // slot_us) * slot_us
    until_us = (overrides.until_us or job.until_us) // slot_us * slot_us
    if until_us <= after_us:
        raise InputError(
            f"jobs[{job.id}] has no whole slot of {slot_us / US_PER_HOUR:g} h before its deadline; give it more time, or a "
            "shorter slot"
        )
    if until_us // slot_us > MOST_SLOTS:
        raise InputError(
            f"jobs[{job.id}] has {until_us // slot_us:,} slots of {slot_us / US_PER_HOUR:g} h before its deadline; a plan "
            f"has {MOST_SLOTS:,} at most: give it less time, or a longer slot"
        )
    due_us = min(job.due_us, until_us) // slot_us * slot_us if job.late_usd else until_us
    spot = job.spot and overrides.spot
    return replace(
        job, after_us=after_us, until_us=until_us, due_us=max(due_us, after_us + slot_us), spot=spot
    )


def _chosen(place: Market, found: Sequence[Quotes]) -> list[Quote]:
    """The cheapest quote of each job; scarce machines are given out by deadline."""
    slot_us = place.setup.slot_us
    used: Counter[tuple[int, int]] = Counter()
    chosen: dict[int, Quote] = {}
    for i in sorted(range(len(found)), key=lambda i: (found[i].job.until_us, i)):
        for quote in found[i].fitting:
            slots = range(quote.start_us // slot_us, -(-quote.finish_us // slot_us))
            pairs = list(zip(quote.nodes, quote.machines, strict=True))
            limit = {node: place.setup.nodes[node].capacity_milli[0] // MILLI for node in quote.nodes}
            if all(used[node, slot] + n <= limit[node] for node, n in pairs for slot in slots):
                used.update({(node, slot): n for node, n in pairs for slot in slots})
                chosen[i] = quote
                break
        else:
            raise InputError(
                f"jobs[{found[i].job.id}] would run on spot machines that jobs with earlier deadlines take; "
                "give it more budget, time or regions"
            )
    return [chosen[i] for i in range(len(found))]


def _valued(job: Job, found: Quotes, slot_us: int) -> Job:
    """The job with a bid: ten times its cheapest plan if done by the due date, less until the deadline, then nothing."""
    wanted = found.job
    slots, due = ((us - job.arrive_us) // slot_us for us in (wanted.until_us, wanted.due_us))
    lost = (slots - due) * wanted.late_usd * slot_us / US_PER_HOUR
    worth = WORTH * found.fitting[0].usd + lost
    late = (float(slots - 1), worth - lost) if due < slots else ()
    args = (float(due - 1), worth, *late, float(slots), 0.0)
    return replace(job, utility=Utility(of="delay_slots", shape="piecewise", args=args))


def _plans(scenario: Scenario, chosen: Sequence[Quote]) -> dict[int, tuple[JobPlan, ...]]:
    """Instant -> plans made then: each job's when it arrives, so that its data is on the way from then on."""
    setup, found = scenario.setup, defaultdict[int, list[JobPlan]](list)
    for job, quote in zip(scenario.jobs, chosen, strict=True):
        sites = tuple(setup.site_of[node] for node in quote.nodes)
        until_us = -(-quote.finish_us // setup.slot_us) * setup.slot_us
        flows = tuple(Flow(home, sites[0], size) for home, size in job.parts if home not in sites)
        step = Step(quote.start_us, until_us, quote.nodes, quote.machines, flows=flows, usd=quote.usd)
        found[job.arrive_us].append(JobPlan(job.index, (step,)))
    return {at: tuple(plans) for at, plans in found.items()}


def _gb(size: int) -> str:
    """Whole GB, or three digits of less than 10."""
    return f"{size / GB:,.0f}" if size >= 10 * GB else f"{size / GB:.3g}"


def _row(place: Market, found: Quotes, quote: Quote) -> Planned:
    job = found.job
    other = next((q for q in found.fitting if _differs(place, q, quote)), None)
    better = "" if other is None else f"{other.all_usd - quote.all_usd:+,.2f} USD: {named(place, other)}"
    sites = {place.setup.site_of[node] for node in quote.nodes}
    moved = [(home, size) for home, size in place.jobs[_index(place, job)].parts if home not in sites]
    sources = ", ".join(place.setup.nodes[home].name for home, _ in moved)
    return Planned(
        id=job.id,
        tenant=job.tenant,
        work=job.work,
        region=_region(place, quote),
        what=_what(place, quote),
        start_h=quote.start_us / US_PER_HOUR,
        finish_h=quote.finish_us / US_PER_HOUR,
        until_h=job.until_us / US_PER_HOUR,
        slack_h=(job.until_us - quote.finish_us) / US_PER_HOUR,
        moved=f"{_gb(sum(size for _, size in moved))} GB from {sources}" if moved else "–",
        usd=quote.usd,
        next_best=better or "none fits",
        fitting=len(found.fitting),
        options=tuple(_option(place, job, each) for each in found.all),
        front=tuple(_option(place, job, each) for each in found.front()),
        assumed=job.assumed,
    )


def _index(place: Market, job: Wanted) -> int:
    return next(each.index for each in place.jobs if each.id == job.id)


def _differs(place: Market, a: Quote, b: Quote) -> bool:
    """Whether two quotes are in different regions, on different GPU types, or one is spot."""
    one, two = (
        {(place.offers[node].place, place.offers[node].gpu, place.is_spot(node)) for node in quote.nodes}
        for quote in (a, b)
    )
    return one != two


def _region(place: Market, quote: Quote) -> str:
    return " + ".join(place.offers[node].place for node in quote.nodes)


def _what(place: Market, quote: Quote) -> str:
    machines = [place.offers[node] for node in quote.nodes]
    rented = " + ".join(
        f"{count} x {machine.machine}{' spot' if place.is_spot(node) else ''}"
        for node, count, machine in zip(quote.nodes, quote.machines, machines, strict=True)
    )
    return f"{rented}, {quote.gpus} {' and '.join(dict.fromkeys(machine.gpu for machine in machines))}"


def _option(place: Market, job: Wanted, quote: Quote) -> Option:
    late = (quote.finish_us - job.until_us) / US_PER_HOUR
    over = 0.0 if job.budget_usd is None else quote.list_usd - job.budget_usd
    why = [f"{late:.1f} h late"] if late > 0 else []
    return Option(
        what=_what(place, quote),
        region=_region(place, quote),
        start_h=quote.start_us / US_PER_HOUR,
        finish_h=quote.finish_us / US_PER_HOUR,
        rent_usd=quote.rent_usd,
        egress_usd=quote.egress_usd,
        usd=quote.usd,
        why_not=", ".join([*why, *([f"{over:,.2f} USD over budget"] if over > 0 else [])]),
    )


def _compared(place: Market, found: Sequence[Quotes], usd: float) -> Iterable[str]:
    """The bill beside those of simpler ways, each at its cheapest."""
    best: dict[str, list[float]] = defaultdict(list)
    for each in found:
        for region in {_region(place, quote) for quote in each.fitting if len(quote.nodes) == 1}:
            best[region].append(next(q.usd for q in each.fitting if _region(place, q) == region))
    whole = {region: sum(bills) for region, bills in best.items() if len(bills) == len(found)}
    if whole and len(found) > 1:
        region = min(whole, key=lambda name: (whole[name], name))
        yield beside(f"all jobs in one region, {region}", whole[region], usd)
    elif len(found) > 1:
        yield "no region fits all jobs"
    if any(place.is_spot(node) for node in place.offers):
        sure = [
            next((q.usd for q in each.fitting if not any(map(place.is_spot, q.nodes))), None)
            for each in found
        ]
        if None not in sure:
            yield beside("without spot machines", sum(bill or 0.0 for bill in sure), usd)
    still = [_without_moving(place, each) for each in found]
    if None not in still:
        yield beside("every job where its largest part of data lies", sum(bill or 0.0 for bill in still), usd)


def _by_others(scenario: Scenario, usd: float) -> Iterable[str]:
    """The bill beside those of policies that plan every job alone."""
    for policy, words in OTHERS.items():
        result = run(scenario, policy)
        bill = result.metrics["cost_usd"]
        if missed(result):  # a bill for less work is no comparison
            yield f"{words}: {bill:,.2f} USD; {missed(result)} of {len(scenario.jobs)} jobs late or not served"
        else:
            yield beside(words, bill, usd)


def _without_moving(place: Market, found: Quotes) -> float | None:
    parts = place.jobs[_index(place, found.job)].parts
    if not parts:
        return found.fitting[0].usd
    home = max(parts, key=lambda part: part[1])[0]
    still = (q.usd for q in found.fitting if len(q.nodes) == 1 and place.setup.site_of[q.nodes[0]] == home)
    return next(still, None)


def beside(what: str, other: float, usd: float) -> str:
    """Another bill, and how much dearer it is."""
    percent = round(100 * (other / usd - 1), 1) + 0.0  # never -0.0
    return f"{what}: {other:,.2f} USD, {percent:+.1f}%"
