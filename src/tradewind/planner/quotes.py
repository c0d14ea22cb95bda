"""What every offer would cost a job that is alone, when it would be done, and what is missing where none fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.machine import Machine, allreduce_us
from tradewind.model.progress import machine_round_us
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MILLI, US_PER_HOUR, US_PER_S
from tradewind.planner.market import Market
from tradewind.planner.wanted import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A job alone on an offer: machines, GPUs, costs, and times from now on. Interruptions of spot are not counted.

    least_usd  what it costs at least, whatever other jobs do: all egress at the lowest tier
    """

    node: int
    machines: int
    gpus: int
    rent_usd: float
    egress_usd: float
    least_usd: float
    start_us: int
    finish_us: int

    @property
    def usd(self) -> float:
        """Rent and egress."""
        return self.rent_usd + self.egress_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """The quotes of a job that keep its deadline and budget, cheapest first, and all of them."""

    job: Wanted
    fitting: tuple[Quote, ...]
    all: tuple[Quote, ...]

    @property
    def least_usd(self) -> float:
        """No plan that serves the job in time and within its budget costs less, whatever the others do.

        At flat prices without limits nothing is gained by waiting, and a job stays where it starts: it is on one offer
        with one number of machines, so that its bill is at least the least of these, limits or not.
        """
        job = self.job
        in_time = (each for each in self.all if each.finish_us <= job.until_us)
        return min(q.least_usd for q in in_time if job.budget_usd is None or q.least_usd <= job.budget_usd)

    def front(self) -> tuple[Quote, ...]:
        """Cost against finish: quotes than which none is both cheaper and earlier, earliest first."""
        found: list[Quote] = []
        for quote in sorted(self.all, key=lambda each: (each.finish_us, each.usd, each.node)):
            if not found or quote.usd < found[-1].usd:
                found.append(quote)
        return tuple(found)


def quotes(market: Market, jobs: Sequence[Wanted]) -> tuple[Quotes, ...]:
    """The quotes of all jobs; raises an error with the nearest miss where a job has none that fits."""
    found = tuple(_quotes(market, job, market.jobs[i]) for i, job in enumerate(jobs))
    refused = [why_not(market, each) for each in found if not each.fitting]
    if refused:
        raise InputError("\n  ".join(refused))
    return found


def _quotes(market: Market, wanted: Wanted, job: Job) -> Quotes:
    all_of = sorted(
        (quote for node in sorted(job.nodes or ()) for quote in _on(market.setup, job, node)),
        key=lambda each: (each.usd, each.finish_us, each.node, each.machines),
    )
    fitting = [
        each
        for each in all_of
        if each.finish_us <= wanted.until_us and (wanted.budget_usd is None or each.usd <= wanted.budget_usd)
    ]
    return Quotes(job=wanted, fitting=tuple(fitting), all=tuple(all_of))


def _on(setup: Setup, job: Job, node: int) -> list[Quote]:
    """The quotes of an offer, one per number of machines."""
    host = setup.nodes[node]
    machine, work = host.machine, job.work
    if machine is None or not isinstance(work, Rounds):
        return []
    lead_us, egress_usd, least_usd = _moved(setup, job, setup.site_of[node])
    found = []
    for machines in sorted({-(-gpus // machine.gpus) for gpus in job.gpus}):
        round_us = machine_round_us(job, machine, machines)
        if not round_us or machines * MILLI > host.capacity_milli[0]:
            continue
        run_us = work.count * round_us
        if host.interruptions_per_hour and job.checkpoint_us:
            run_us = -(-run_us * (setup.slot_us + job.checkpoint_us) // setup.slot_us)
        start_us = job.arrive_us + lead_us
        finish_us = start_us + job.warmup_us + run_us
        hours = (finish_us - start_us) / US_PER_HOUR
        rent_usd = setup.rent[node, 0].usd[0] * machines * hours
        found.append(
            Quote(
                node=node,
                machines=machines,
                gpus=_gpus(job, machine, machines),
                rent_usd=rent_usd,
                egress_usd=egress_usd,
                least_usd=rent_usd + least_usd,
                start_us=start_us,
                finish_us=finish_us,
            )
        )
    return found


def _gpus(job: Job, machine: Machine, machines: int) -> int:
    """The number of GPUs with which a round is shortest."""
    work = job.work
    speed = dict(job.gpu_speeds)[machine.gpu]
    assert isinstance(work, Rounds)
    return min(
        machine.counts(machines, job.gpus),
        key=lambda n: (
            work.compute_us * MILLI / (n * speed) + allreduce_us(machine, machines, n, job.model_bytes)
        ),
    )


def _moved(setup: Setup, job: Job, site: int) -> tuple[int, float, float]:
    """Whole slots, in microseconds, until all parts are at a site; what that costs alone, and at least."""
    lead_us, usd, least = 0, 0.0, 0.0
    spend = dict.fromkeys(range(len(setup.pools)), 0.0)
    for home, size in job.parts:
        if home == site:
            continue
        took_us = -(-8 * size * US_PER_S // setup.direct_bps[home, site])
        lead_us = max(lead_us, -(-took_us // setup.slot_us) * setup.slot_us)
        price = setup.egress[home, site].usd[0] * size / GB
        pool = next((i for i, pool in enumerate(setup.pools) if (home, site) in pool.egress), None)
        if pool is None:
            usd, least = usd + price, least + price
        else:
            spend[pool] += price
    for i, amount in spend.items():
        usd += setup.pools[i].cost(amount)
        least += amount * setup.pools[i].tariff.usd[-1]
    return lead_us, usd, least


def why_not(market: Market, found: Quotes) -> str:
    """Why no offer fits, with the nearest misses."""
    job = found.job
    misses = []
    affordable = [each for each in found.all if job.budget_usd is None or each.usd <= job.budget_usd]
    if affordable:
        near = min(affordable, key=lambda each: (each.finish_us, each.usd, each.node))
        late = (near.finish_us - job.until_us) / US_PER_HOUR
        misses.append(f"{late:.1f} h late on {named(market, near)} ({near.usd:,.0f} USD)")
    in_time = [each for each in found.all if each.finish_us <= job.until_us]
    if in_time and job.budget_usd is not None:
        near = in_time[0]
        misses.append(f"{near.usd - job.budget_usd:,.2f} USD over budget on {named(market, near)}")
    if not misses:
        near = min(found.all, key=lambda each: (each.finish_us, each.usd, each.node))
        late = (near.finish_us - job.until_us) / US_PER_HOUR
        misses.append(
            f"the fastest is {late:.1f} h late and costs {near.usd:,.0f} USD ({named(market, near)})"
        )
    return (
        f"jobs[{job.id}] fits no offer: {'; '.join(misses)}. Give it more time, money, GPUs, types or regions"
    )


def named(market: Market, quote: Quote) -> str:
    """`8 x H100 in aws:us-east-1`."""
    machine = market.offers[quote.node]
    spot = " spot" if market.is_spot(quote.node) else ""
    return f"{quote.gpus} x {machine.gpu}{spot} in {machine.place}"
