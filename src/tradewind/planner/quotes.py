"""What every offer would cost a job that is alone, when it would be done, and what is missing where none fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from tradewind.model.errors import InputError
from tradewind.model.job import Job, Rounds
from tradewind.model.machine import Machine, allreduce_us
from tradewind.model.progress import across_round_us, machine_round_us, site_pairs, split_gpus
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MILLI, US_PER_HOUR, US_PER_S
from tradewind.planner.market import Market
from tradewind.planner.wanted import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A job alone on an offer, or on two in regions that hold parts of its data. Interruptions of spot are not counted.

    nodes, machines  one or two offers and machines of each; gpus: of all
    list_usd         what counts for its budget: egress without tiers
    least_usd        what it costs at least, whatever other jobs do: all egress at the lowest tier
    late_usd         what its delay costs; times count from now on
    """

    nodes: tuple[int, ...]
    machines: tuple[int, ...]
    gpus: int
    rent_usd: float
    egress_usd: float
    list_usd: float
    least_usd: float
    late_usd: float
    start_us: int
    finish_us: int

    @property
    def usd(self) -> float:
        """Rent and egress."""
        return self.rent_usd + self.egress_usd

    @property
    def all_usd(self) -> float:
        """Rent, egress and what its delay costs."""
        return self.usd + self.late_usd


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
        (or one pair) with one number of machines, so that its bill is at least the least of these, limits or not.
        """
        job = self.job
        in_time = (each for each in self.all if each.finish_us <= job.until_us)
        return min(q.least_usd + q.late_usd for q in in_time if not is_over(job, q))

    def front(self) -> tuple[Quote, ...]:
        """Cost against finish: quotes than which none is both cheaper and earlier, earliest first."""
        found: list[Quote] = []
        for quote in sorted(self.all, key=lambda each: (each.finish_us, each.usd, each.nodes)):
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


def is_over(job: Wanted, quote: Quote) -> bool:
    """Whether a quote is over the budget, which counts list prices (decision 005)."""
    return job.budget_usd is not None and quote.list_usd > job.budget_usd


def _quotes(market: Market, wanted: Wanted, job: Job) -> Quotes:
    ways = [_Way((node,), *each) for node in sorted(job.nodes or ()) for each in _on(market.setup, job, node)]
    if job.sync_every:
        ways += _across(market.setup, job)
    all_of = sorted(
        (_quote(market.setup, wanted, job, way) for way in ways),
        key=lambda each: (each.all_usd, each.finish_us, each.nodes, each.machines),
    )
    fitting = [each for each in all_of if each.finish_us <= wanted.until_us and not is_over(wanted, each)]
    return Quotes(job=wanted, fitting=tuple(fitting), all=tuple(all_of))


class _Way(NamedTuple):
    """Offers, machines of each, GPUs of all, and the time of a round."""

    nodes: tuple[int, ...]
    machines: tuple[int, ...]
    gpus: int
    round_us: int


def _on(setup: Setup, job: Job, node: int) -> Iterable[tuple[tuple[int, ...], int, int]]:
    """(machines, GPUs, time of a round) on an offer, one per number of machines."""
    host = setup.nodes[node]
    for machines in sorted({-(-gpus // host.machine.gpus) for gpus in job.gpus}) if host.machine else ():
        round_us = machine_round_us(job, host.machine, machines)
        if round_us and host.machine and machines * MILLI <= host.capacity_milli[0]:
            yield (machines,), _gpus(job, host.machine, machines), round_us


def _across(setup: Setup, job: Job) -> Iterable[_Way]:
    """Pairs of offers in two regions that hold parts, with the number of GPUs that is fastest on these machines."""
    parts = {site: size for site, size in job.parts if size}
    at = {site: [node for node in sorted(job.nodes or ()) if setup.site_of[node] == site] for site in parts}
    for a, b in site_pairs(job):
        found: dict[tuple[tuple[int, int], tuple[int, int]], list[tuple[int, int]]] = {}
        for gpus in (n for n in job.gpus if n > 1):
            shares = split_gpus(gpus, parts[b], sum(parts.values()))
            for nodes in product(at[a], at[b]):
                hosts = [setup.nodes[node] for node in nodes]
                kinds = [host.machine for host in hosts if host.machine]
                if len(kinds) < 2:
                    continue
                m, n = (-(-share // machine.gpus) for share, machine in zip(shares, kinds, strict=True))
                fits = m * MILLI <= hosts[0].capacity_milli[0] and n * MILLI <= hosts[1].capacity_milli[0]
                round_us = across_round_us(setup, replace(job, gpus=(gpus,)), nodes, (m, n))
                if fits and round_us:
                    found.setdefault((nodes, (m, n)), []).append((round_us, gpus))
        for (nodes, machines), ways in found.items():
            round_us, gpus = min(ways)
            yield _Way(nodes, machines, gpus, round_us)


def _quote(setup: Setup, wanted: Wanted, job: Job, way: _Way) -> Quote:
    work, hosts = job.work, [setup.nodes[node] for node in way.nodes]
    assert isinstance(work, Rounds)
    run_us = work.count * way.round_us
    if job.checkpoint_us and any(host.interruptions_per_hour for host in hosts):
        run_us = -(-run_us * (setup.slot_us + job.checkpoint_us) // setup.slot_us)
    egress = _moved(setup, job, tuple(setup.site_of[node] for node in way.nodes))
    start_us = job.arrive_us + egress.lead_us
    finish_us = start_us + job.warmup_us + run_us
    hours = (finish_us - start_us) / US_PER_HOUR
    a_hour = sum(
        setup.rent[node, 0].usd[0] * count for node, count in zip(way.nodes, way.machines, strict=True)
    )
    late = max(0, -(-finish_us // setup.slot_us) - wanted.due_us // setup.slot_us)
    return Quote(
        nodes=way.nodes,
        machines=way.machines,
        gpus=way.gpus,
        rent_usd=a_hour * hours,
        egress_usd=egress.usd,
        list_usd=a_hour * hours + egress.list_usd,
        least_usd=a_hour * hours + egress.least_usd,
        late_usd=late * wanted.late_usd * setup.slot_us / US_PER_HOUR,
        start_us=start_us,
        finish_us=finish_us,
    )


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


class _Egress(NamedTuple):
    """Whole slots, in microseconds, until the data has arrived; what it costs alone, at list price, and at least."""

    lead_us: int
    usd: float
    list_usd: float
    least_usd: float


def _moved(setup: Setup, job: Job, sites: tuple[int, ...]) -> _Egress:
    """What moves to the first site, and between two that exchange parameters."""
    lead_us, usd, listed, least = 0, 0.0, 0.0, 0.0
    spend, work = dict.fromkeys(range(len(setup.pools)), 0.0), job.work
    amounts: list[tuple[tuple[int, int], float]] = []
    for home, size in job.parts:
        if home not in sites:
            took_us = -(-8 * size * US_PER_S // setup.direct_bps[home, sites[0]])
            lead_us = max(lead_us, -(-took_us // setup.slot_us) * setup.slot_us)
            amounts.append(((home, sites[0]), size))
    if len(sites) == 2 and isinstance(work, Rounds):
        exchanged = work.count * job.model_bytes / job.sync_every
        amounts += [((sites[0], sites[1]), exchanged), ((sites[1], sites[0]), exchanged)]
    for pair, amount_bytes in amounts:
        price = setup.egress[pair].usd[0] * amount_bytes / GB
        listed += price
        pool = next((i for i, pool in enumerate(setup.pools) if pair in pool.egress), None)
        if pool is None:
            usd, least = usd + price, least + price
        else:
            spend[pool] += price
    for i, amount in spend.items():
        usd += setup.pools[i].cost(amount)
        least += amount * setup.pools[i].tariff.usd[-1]
    return _Egress(lead_us, usd, listed, least)


def why_not(market: Market, found: Quotes) -> str:
    """Why no offer fits, with the nearest misses."""
    job = found.job
    misses = []
    affordable = [each for each in found.all if not is_over(job, each)]
    if affordable:
        near = min(affordable, key=lambda each: (each.finish_us, each.usd, each.nodes))
        late = (near.finish_us - job.until_us) / US_PER_HOUR
        misses.append(f"{late:.1f} h late on {named(market, near)} ({near.usd:,.0f} USD)")
    in_time = [each for each in found.all if each.finish_us <= job.until_us]
    if in_time and job.budget_usd is not None:
        near = min(in_time, key=lambda each: (each.list_usd, each.finish_us, each.nodes))
        misses.append(f"{near.list_usd - job.budget_usd:,.2f} USD over budget on {named(market, near)}")
    if not misses:
        near = min(found.all, key=lambda each: (each.finish_us, each.usd, each.nodes))
        late = (near.finish_us - job.until_us) / US_PER_HOUR
        misses.append(
            f"the fastest is {late:.1f} h late and costs {near.usd:,.0f} USD ({named(market, near)})"
        )
    return (
        f"jobs[{job.id}] fits no offer: {'; '.join(misses)}. Give it more time, money, GPUs, types or regions"
    )


def named(market: Market, quote: Quote) -> str:
    """`8 x H100 in aws:us-east-1`, `8 x H100 in aws:us-east-1 and gcp:us-east4`."""
    places = []
    for node in quote.nodes:
        machine = market.offers[node]
        places.append((f"{machine.gpu}{' spot' if market.is_spot(node) else ''}", machine.place))
    kinds = dict.fromkeys(kind for kind, _ in places)
    return f"{quote.gpus} x {' and '.join(kinds)} in {' and '.join(place for _, place in places)}"
