"""Rings for a launcher: hosts in rank order, the iteration time by equation (1), the bottleneck link."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.engine.instants import instants
from tradewind.engine.menu import check_slot
from tradewind.model.decision import Step
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import comm_us
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import US_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class RankList:
    """A ring in rank order.

    hosts           name of the host of every rank
    iteration_us    by (1): all-reduce plus compute
    bottleneck      link with the least bandwidth on the ring; "" on one host
    bottleneck_bps  its bandwidth
    """

    job: str
    hosts: tuple[str, ...]
    iteration_us: int
    bottleneck: str
    bottleneck_bps: int

    def as_json(self) -> dict[str, object]:
        """As JSON: the host of every rank, seconds per iteration, the narrowest link (null on one host)."""
        return {
            "job": self.job,
            "ranks": list(self.hosts),
            "iteration_s": self.iteration_us / US_PER_S,
            "bottleneck": self.bottleneck or None,
            "bottleneck_bps": self.bottleneck_bps if self.bottleneck else None,
        }

    def hostfile(self) -> str:
        """One line per host in ring order, in the format of mpirun: `name slots=k`."""
        slots: dict[str, int] = {}
        for host in self.hosts:
            slots[host] = slots.get(host, 0) + 1
        return "".join(f"{host} slots={count}\n" for host, count in slots.items())

    def rankfile(self) -> str:
        """One line per rank, in the format of Open MPI's rankfile: `rank r=name slot=n`."""
        lines, seen = [], dict.fromkeys(self.hosts, 0)
        for rank, host in enumerate(self.hosts):
            lines.append(f"rank {rank}={host} slot={seen[host]}\n")
            seen[host] += 1
        return "".join(lines)


def _ring_work(job: Job) -> Rounds:
    """The work of a ring job; raises for other jobs."""
    if not isinstance(job.work, Rounds) or job.work.comm != "ring":
        raise InputError(f"job {job.id} is not a ring job; only rings have a rank order")
    return job.work


def rank_list(setup: Setup, job: Job, step: Step) -> RankList:
    """The rank list of a step; workers on one host have consecutive ranks."""
    work = _ring_work(job)
    hosts = tuple(
        setup.nodes[node].name
        for node, count in zip(step.nodes, step.workers, strict=True)
        for _ in range(count)
    )
    name, least = "", 0
    for route in step.routes:
        at = route.src
        for number in route.path:
            link = setup.links[number]
            forward = link.a == at
            bps, end = (link.ab_bps, link.b) if forward else (link.ba_bps, link.a)
            if not name or bps < least:
                name, least = f"{setup.nodes[at].name} -> {setup.nodes[end].name}", bps
            at = end
    return RankList(
        job=job.id, hosts=hosts, iteration_us=work.compute_us + comm_us(setup, job, step), bottleneck=name,
        bottleneck_bps=least,
    )  # fmt: skip


def ranks_at(scenario: Scenario, run: Run, at_us: int) -> list[RankList]:
    """Rank lists of all rings that are in place at an instant of a run."""
    steps: dict[int, Step] = {}
    for instant in instants(scenario, run.tables):
        if instant.at_us > at_us:
            break
        for event in (*instant.events, *instant.after):
            if event.kind in ("finished", "voided", "refused", "cancelled", "ended"):
                steps.pop(event.job, None)
        for plan in instant.decision.plans if instant.decision is not None else ():
            if plan.steps:
                steps[plan.job] = plan.steps[0]
            else:
                steps.pop(plan.job, None)
    return [rank_list(scenario.setup, scenario.jobs[job], step) for job, step in sorted(steps.items())]


def ranks_in(scenario: Scenario, run: Run, slot: int, job: str = "") -> list[RankList]:
    """Rank lists of the rings of a slot, or of one job in it."""
    jobs = {each.id: each for each in scenario.jobs}
    if job and job not in jobs:
        raise LookupFailed("job", job, jobs)
    check_slot(scenario, slot)
    for each in (jobs[job],) if job else scenario.jobs:
        _ring_work(each)
    found = ranks_at(scenario, run, slot * scenario.setup.slot_us)
    mine = [each for each in found if not job or each.job == job]
    if job and not mine:
        running = ", ".join(each.job for each in found[:10]) or "none"
        raise InputError(f"job {job} has no ring in slot {slot}; jobs with a ring: {running}")
    return mine
