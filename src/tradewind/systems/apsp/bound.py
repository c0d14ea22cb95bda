"""A certified bound on the epoch in hindsight.

The bound gives every job the whole network with every link at its widest ever, so no run can do better. It ignores latency,
which only lowers it.
"""

from __future__ import annotations

from tradewind.model.job import Job, Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.systems.apsp.kernels.network import Net, make_net, place, settings_for
from tradewind.systems.apsp.shared.placement import wires_of

GAP = 0.01


def network_of(scenario: Scenario, job: Job) -> Net:
    """The job's gathering problem on links that are as wide as they ever are."""
    assert isinstance(job.work, Rounds)
    widest = [[link.ab_bps, link.ba_bps] for link in scenario.setup.links]
    for change in scenario.changes:
        if change.kind == "bandwidth":
            for direction in (0, 1) if change.b == 2 else (change.b,):
                widest[change.a][direction] = max(widest[change.a][direction], change.value)
    wires = wires_of(scenario.setup, lambda k, direction: widest[k][direction])
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
    return net.seconds(place(net, settings_for(net.problem, GAP), hosts).bound)
