"""The market of a plan: the regions, offers, links, egress prices and tiers that its jobs can use, as a setup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tradewind.files.jobs_file import SpotFile
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.job import Job, Rounds
from tradewind.model.machine import Machine
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.pool import Pool
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import MILLI, UNLIMITED, US_PER_HOUR
from tradewind.planner.wanted import Wanted
from tradewind.prices.listing import ListedMachine, PriceList
from tradewind.prices.places import means
from tradewind.prices.wan import Wan

GBIT: Final = 10**9
LATE: Final = 2
"""The run goes on for this many times the last deadline, so that rules that know no deadline end and have a bill."""
MONTH_US: Final = 720 * US_PER_HOUR
FAST_BUS: Final = frozenset(("V100", "V100-32GB", "A100", "A100-80GB", "H100", "H200", "B200", "B300"))
FAST_BUS_GBPS, BUS_GBPS = 1200, 128
"""Between the GPUs of a machine: with NVLink, over PCIe."""
LARGE_NETWORK_GBPS, NETWORK_GBPS = 100, 25
"""Between machines: with eight or more GPUs, with fewer. No price list has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """A setup, the jobs without their worth, and the listed machine of every offer (by node)."""

    setup: Setup
    jobs: tuple[Job, ...]
    offers: Mapping[int, ListedMachine]
    notes: tuple[str, ...]

    def is_spot(self, node: int) -> bool:
        """Whether an offer is a spot one."""
        return self.setup.nodes[node].interruptions_per_hour > 0


def market(
    jobs: Sequence[Wanted], prices: PriceList, wan: Wan, *, slot_us: int, spot: SpotFile | None
) -> Market:
    """The market for jobs; raises an error that names the pairs of regions without price or bandwidth."""
    parts = [{_place(name, prices, job): size for name, size in job.parts.items()} for job in jobs]
    homes = sorted({place for each in parts for place in each})
    wanted = {m.place for m in prices.machines for job in jobs if _fits(job, m)}
    known = {*prices.egress.places} & {*wan.places}
    apart = frozenset({*wanted, *homes} - known)
    sold = _sold(jobs, parts, prices, apart)
    places = sorted({machine.place for machine in sold} | set(homes))
    number = {place: i for i, place in enumerate(places)}
    nodes = [Node(name=place, capacity_milli=(UNLIMITED,)) for place in places]
    rent: dict[tuple[int, int], Tariff] = {}
    offers: dict[int, ListedMachine] = {}
    for machine in sold:
        for as_spot in (False, True):
            usd = machine.spot_usd_per_hour if as_spot else machine.usd_per_hour
            if usd is None or (as_spot and spot is None):
                continue
            offers[len(nodes)] = machine
            rent[len(nodes), 0] = Tariff(usd=(usd,))
            nodes.append(_node(machine, number[machine.place], spot if as_spot else None))
    needed = {
        (home, machine.place)
        for job, mine in zip(jobs, parts, strict=True)
        for machine in sold
        if _fits(job, machine) and _reaches(mine, machine.place, apart)
        for home in {*mine} - {machine.place}
    }
    _check_known(sorted(needed), prices, wan)
    pairs = [
        (a, b)
        for a in homes
        for b in places
        if a != b and not apart & {a, b} and (a, b) in prices.egress.prices and (a, b) in wan.paths
    ]
    egress = {(number[a], number[b]): Tariff(usd=(prices.egress.price(a, b).usd_per_gb,)) for a, b in pairs}
    setup = Setup(
        resources=("machine",),
        nodes=tuple(nodes),
        links=_links(pairs, number, wan),
        rent=rent,
        egress=egress,
        slot_us=slot_us,
        horizon_us=LATE * max(job.until_us for job in jobs),
        objective="total_usd",
        pools=tuple(_tiers(places, egress, prices)),
    )
    made = tuple(
        _job(
            i,
            job,
            {number[place]: size for place, size in parts[i].items()},
            setup,
            [
                node
                for node, sale in offers.items()
                if _fits(job, sale) and _reaches(parts[i], sale.place, apart)
            ],
        )
        for i, job in enumerate(jobs)
    )
    return Market(setup=setup, jobs=made, offers=offers, notes=(_no_moves(apart),) if homes and apart else ())


def _check_known(pairs: Sequence[tuple[str, str]], prices: PriceList, wan: Wan) -> None:
    """Raise an error that names all pairs of regions which jobs need and a table lacks."""
    tables = (
        ("egress price", prices.egress.prices, "src, dst, usd_per_gb and give it with --egress"),
        ("bandwidth", wan.paths, "src, dst, gbps (and rtt_ms) and give it with --wan"),
    )
    unknown = []
    for what, table, columns in tables:
        missing = [f"from {a} to {b}" for a, b in pairs if (a, b) not in table]
        if missing:
            them = "the pair" if len(missing) == 1 else f"the {len(missing)} pairs"
            unknown.append(
                f"no {what} is known {', '.join(missing)}; add {them} to a CSV file with the columns {columns}"
            )
    if unknown:
        raise InputError("\n  ".join([*unknown, "or say with `regions` of a job where it may run"]))


def _no_moves(apart: Iterable[str]) -> str:
    names = ", ".join(sorted(apart))
    return (
        f"no data moves to or from {names}: egress or bandwidth is not known (--egress and --wan take yours)"
    )


def _place(name: str, prices: PriceList, job: Wanted) -> str:
    """`aws:us-east-1` for itself or `us-east-1`."""
    known = sorted({*prices.places, *prices.egress.places})
    found = [place for place in known if name in (place, place.partition(":")[2])]
    if len(found) != 1:
        names = [place.partition(":")[2] for place in known]
        raise InputError(
            f"jobs[{job.id}].data: {LookupFailed('region of the price list', name, found or names)}"
        )
    return found[0]


def _sold(
    jobs: Sequence[Wanted], parts: Sequence[Mapping[str, int]], prices: PriceList, apart: frozenset[str]
) -> list[ListedMachine]:
    """The cheapest machine per region, GPU type, number of GPUs and their memory, of those that a job can use."""
    for job in jobs:
        for word in job.regions:
            if not any(means(word, place) for place in prices.places):
                names = [place.partition(":")[2] for place in prices.places]
                raise InputError(
                    f"jobs[{job.id}].regions: {LookupFailed('region of the price list', word, names)}"
                )
    best: dict[tuple[str, str, int, float], ListedMachine] = {}
    for job, mine in zip(jobs, parts, strict=True):
        listed = [m for m in prices.machines if _fits(job, m)]
        usable = [m for m in listed if _reaches(mine, m.place, apart)]
        if not usable:
            where = f" with {job.gpu_gb:g} GB on a GPU" if job.gpu_gb else ""
            where += f" in {' or '.join(job.regions)}" if job.regions else ""
            if listed:
                where += f" that its data can reach; {_no_moves(apart)}"
            raise InputError(
                f"jobs[{job.id}] cannot run: no machine with {' or '.join(job.speeds)} is listed{where}"
            )
        for machine in usable:
            key = (machine.place, machine.gpu, machine.gpus, machine.gpu_gb or 0.0)
            if key not in best or machine.usd_per_hour < best[key].usd_per_hour:
                best[key] = machine
    return [best[key] for key in sorted(best)]


def _fits(job: Wanted, machine: ListedMachine) -> bool:
    """Whether a job can use the GPUs of a machine, which have the memory it needs, and may run in its region."""
    return (
        machine.gpu in job.speeds
        and (not job.gpu_gb or (machine.gpu_gb or 0.0) >= job.gpu_gb)
        and (not job.regions or any(means(word, machine.place) for word in job.regions))
    )


def _reaches(parts: Iterable[str], place: str, apart: frozenset[str]) -> bool:
    """Whether data lies in a region or can be moved there."""
    return {*parts} <= {place} or not apart & {place, *parts}


def _node(machine: ListedMachine, site: int, spot: SpotFile | None) -> Node:
    return Node(
        name=f"{machine.place}/{machine.machine}{'-spot' if spot else ''}",
        kind="server",
        parent=site,
        capacity_milli=(spot.machines * MILLI if spot else UNLIMITED,),
        machine=Machine(
            gpu=machine.gpu,
            gpus=machine.gpus,
            bus_bps=(FAST_BUS_GBPS if machine.gpu in FAST_BUS else BUS_GBPS) * GBIT,
            network_bps=(LARGE_NETWORK_GBPS if machine.gpus >= 8 else NETWORK_GBPS) * GBIT,
        ),
        interruptions_per_hour=spot.interruptions_per_hour if spot else 0.0,
    )


def _links(moves: Iterable[tuple[str, str]], number: Mapping[str, int], wan: Wan) -> tuple[Link, ...]:
    """Links between the regions where data lies and all others; without bandwidth in a direction that is not known."""
    found = []
    for a, b in sorted({(min(pair), max(pair)) for pair in moves}):
        known = {pair: wan.paths[pair] for pair in ((a, b), (b, a)) if pair in wan.paths}
        bps = {pair: round(path.gbps * GBIT) for pair, path in known.items()}
        found.append(
            Link(
                a=number[a],
                b=number[b],
                ab_bps=bps.get((a, b), 0),
                ba_bps=bps.get((b, a), 0),
                latency_us=round(500 * (next(iter(known.values())).rtt_ms or 0.0)),
            )
        )
    return tuple(found)


def _tiers(
    places: Sequence[str], egress: Mapping[tuple[int, int], Tariff], prices: PriceList
) -> Iterable[Pool]:
    """Tiers of egress to other clouds, per source region, price and month."""
    groups: dict[tuple[int, float], list[tuple[int, int]]] = {}
    for a, b in sorted(egress):
        cloud = places[a].partition(":")[0]
        usd = egress[a, b].usd[0]
        if cloud in prices.egress.tiers and places[b].partition(":")[0] != cloud and usd > 0:
            groups.setdefault((a, usd), []).append((a, b))
    for (a, usd), pairs in groups.items():
        tiers = prices.egress.tiers[places[a].partition(":")[0]]
        yield Pool(
            name=f"{places[a]} egress at {usd:g}",
            egress=tuple(pairs),
            period_us=MONTH_US,
            tariff=Tariff(
                starts=tuple(tier.from_gb * usd for tier in tiers), usd=tuple(tier.factor for tier in tiers)
            ),
        )


def _job(index: int, job: Wanted, parts: Mapping[int, int], setup: Setup, offers: Iterable[int]) -> Job:
    nodes = frozenset(node for node in offers if job.spot or not setup.nodes[node].interruptions_per_hour)
    return Job(
        index=index,
        id=job.id,
        tenant=job.tenant,
        arrive_us=job.after_us,
        work=Rounds(count=job.rounds, compute_us=job.compute_us, comm="machines"),
        worker=((0, MILLI),),
        workers_max=job.gpus[-1],
        gpus=job.gpus,
        gpu_speeds=tuple((gpu, max(1, round(MILLI * speed))) for gpu, speed in job.speeds.items()),
        model_bytes=job.model_bytes,
        parts=tuple(sorted((site, size) for site, size in parts.items() if size)),
        warmup_us=job.warmup_us,
        checkpoint_us=job.checkpoint_us,
        restarts=job.pauses,
        sync_every=job.sync_every,
        spend_cap_usd=job.budget_usd,
        nodes=nodes,
        command=job.command,
        env=job.env,
    )
