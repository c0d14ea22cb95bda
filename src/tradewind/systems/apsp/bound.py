"""A certified bound on the epoch in hindsight.

The bound gives every job the whole network with every link at its widest ever, so no run can do better. It ignores latency,
which only lowers it, and counts whole microseconds as rounds do.
"""

from __future__ import annotations

from tradewind.model.job import Job, Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import US_PER_S
from tradewind.systems.apsp.kernels.network import Net, Wire, make_net, place, settings_for

GAP = 0.01


def network_of(scenario: Scenario, job: Job) -> Net:
    """The job's gathering problem on links that are as wide as they ever are; parallel links are joined into one."""
    assert isinstance(job.work, Rounds)
    links = scenario.setup.links
    widest = [[link.ab_bps, link.ba_bps] for link in links]
    for change in scenario.changes:
        if change.kind == "bandwidth":
            for direction in (0, 1) if change.b == 2 or links[change.a].shared else (change.b,):
                widest[change.a][direction] = max(widest[change.a][direction], change.value)
    joined: dict[tuple[int, int], Wire] = {}
    for link, each in zip(links, widest, strict=True):
        ends = (min(link.a, link.b), max(link.a, link.b))
        known = joined.get(ends)
        if known is None:
            joined[ends] = Wire(link.a, link.b, min(each), min(each), link.shared)
        else:
            bps = known.ab_bps + min(each)
            joined[ends] = known._replace(ab_bps=bps, ba_bps=bps, shared=known.shared and link.shared)
    wires = list(joined.values())
    sources = {node: job.bytes_of(node) for node, _ in job.work.pinned}
    return make_net(len(scenario.setup.nodes), wires, sources, scenario.setup.transport)


def bound(scenario: Scenario) -> Bound | None:
    """Least mean epoch time in seconds; None for other objectives or jobs, or if exact numbers are too large."""
    if scenario.setup.objective != "epoch_s" or not scenario.jobs:
        return None
    if not all(isinstance(job.work, Rounds) and job.work.comm == "flows" for job in scenario.jobs):
        return None
    try:
        least = min(_least_epoch_s(scenario, job) for job in scenario.jobs)
    except ValueError:  # bytes times bit/s exceed 64 bits, or a job has nothing to send
        return None
    return Bound(value=least, sense="min", kind="certified")


def _least_epoch_s(scenario: Scenario, job: Job) -> float:
    net = network_of(scenario, job)
    hosts = [v for v in scenario.setup.hosts if job.nodes is None or v in job.nodes]
    return net.epoch_us(place(net, settings_for(net.problem, GAP), hosts).bound) / US_PER_S
