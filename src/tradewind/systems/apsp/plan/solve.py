"""The plan of a request: the `apsp` policy's placement, and the next best sites, each placed by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tradewind.model.errors import InputError
from tradewind.model.progress import comm_us
from tradewind.model.scenario import Scenario
from tradewind.model.units import US_PER_S
from tradewind.systems.apsp.kernels.bound import degree_levels
from tradewind.systems.apsp.kernels.network import Net
from tradewind.systems.apsp.kernels.problem import fewest_hops, sinks_that_reach_all, time_of
from tradewind.systems.apsp.kernels.solve import SolveSettings, quick_levels
from tradewind.systems.apsp.plan.request import PlanRequest, scenario_of
from tradewind.systems.apsp.policy import NearExact
from tradewind.systems.apsp.shared.placement import Chosen, JobNetwork, full_bps, job_network, wires_of
from tradewind.systems.apsp.workload.topology import Topology

LIKELY = 4
"""Sites that look best, by bound and by shortest paths each, that are placed for comparison."""
COMPARISON_GAP = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class WanPlan:
    """A placement on the network of a request; bounds hold for the transfer, without latency.

    others      placements at the sites that look best besides
    by_transfer the policy's own placement, where latency makes another site faster
    """

    topology: Topology
    scenario: Scenario
    network: JobNetwork
    chosen: Chosen
    others: tuple[Chosen, ...] = ()
    by_transfer: Chosen | None = None

    @property
    def net(self) -> Net:
        return self.network.net

    def epoch_s(self, chosen: Chosen) -> float:
        """Communication of an epoch with latency, as the simulated world counts it."""
        return comm_us(self.scenario.setup, self.network.job, self.network.step(chosen, 0)) / US_PER_S

    def wait_us(self, arcs: Sequence[int]) -> int:
        """Latency along some arcs."""
        return sum(self.scenario.setup.links[k].latency_us for k in self.net.path_links(arcs))


class Comparison(NearExact):
    """Placements to compare with: good routings matter, tight bounds do not, except where they are cheap."""

    def settings(self, net: Net) -> SolveSettings:
        usual = super().settings(net)
        if net.problem.graph.nodes <= usual.tree_size:
            return usual
        return replace(usual, long=usual.quick, rounds=0, raise_nodes=0)


def solve(request: PlanRequest) -> WanPlan:
    """Place the job of a request like the `apsp` policy, on an empty network."""
    topology = request.read()
    scenario = scenario_of(request, topology)
    setup = scenario.setup
    try:
        network = job_network(setup, scenario.jobs[0], wires_of(setup, full_bps(setup)))
    except ValueError as error:
        raise InputError(f"{error}; give sizes in whole MB", where="plan-wan") from None
    chosen = NearExact(request.gap).choose(network.net, setup.hosts)
    plan = WanPlan(topology=topology, scenario=scenario, network=network, chosen=chosen)
    method = Comparison(max(request.gap, COMPARISON_GAP))
    others = [method.choose(network.net, [v]) for v in _likely(plan)]
    return _with_latency(plan, others)


def _likely(plan: WanPlan) -> list[int]:
    """The sites, besides the chosen one, that look best by bound or by shortest paths."""
    problem = plan.net.problem
    hops, reach = sinks_that_reach_all(problem)
    levels = degree_levels(problem, hops)
    if problem.graph.nodes <= SolveSettings().presort_size:
        levels = quick_levels(problem, reach, SolveSettings().squeezes)
    others = [v for v in plan.chosen.bounds or () if v != plan.chosen.sink]
    plain = {v: float(time_of(problem, fewest_hops(problem, v))) for v in others}
    likely = sorted(others, key=lambda v: (float(levels[v]), v))[:LIKELY]
    likely += sorted(others, key=lambda v: (plain[v], v))[:LIKELY]
    return sorted(set(likely))


def _with_latency(plan: WanPlan, others: Sequence[Chosen]) -> WanPlan:
    """Take another site where latency makes it faster: the policy compares transfers alone, and so do the bounds."""
    best = min((plan.chosen, *others), key=lambda c: (plan.epoch_s(c), c.sink))
    if plan.epoch_s(best) >= plan.epoch_s(plan.chosen):
        return replace(plan, others=tuple(others))
    return replace(
        plan,
        chosen=best._replace(bounds=plan.chosen.bounds),
        others=(plan.chosen, *(c for c in others if c is not best)),
        by_transfer=plan.chosen,
    )
