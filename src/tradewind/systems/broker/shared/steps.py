"""Plans of the kernels as steps, and why a job cannot be served."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.decision import Flow, Plan, Step
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.shared.market import Market
from tradewind.systems.broker.shared.ways import FAR, Request, alone


def plan_of(market: Market, p: Problem, request: Request, chosen: Ints, slot: int) -> Plan:
    """The plan that a row of the kernels stands for; no steps where the job is not served."""
    job, option = request.job, int(chosen[0])
    if option < 0:
        return Plan(job.index, ())
    offer, other, slot_us = int(p.offer[option]), int(p.other[option]), market.setup.slot_us
    nodes: tuple[int, ...] = (market.nodes[offer],)
    machines: tuple[int, ...] = (int(p.machines[option]),)
    if other >= 0:
        nodes, machines = (*nodes, market.nodes[other]), (*machines, int(p.others[option]))
    site, sites = int(market.site[offer]), {market.setup.site_of[node] for node in nodes}
    flows = tuple(
        Flow(source, site, size)
        for source, size in job.parts
        if size and source not in sites and (source, site) not in request.staged
    )
    steps = []
    for run in range(int(chosen[1])):
        begin, length = int(chosen[2 + 2 * run]), int(chosen[3 + 2 * run])
        from_us, until_us = (slot + begin) * slot_us, (slot + begin + length) * slot_us
        steps.append(Step(from_us, until_us, nodes, machines, flows=flows if run == 0 else ()))
    return Plan(job.index, tuple(steps))


def nearest_miss(market: Market, request: Request, slot: int) -> str:
    """Why no offer serves a job: what comes nearest, and by how much it is too late or too dear."""
    setup, job = market.setup, request.job
    fits = [gpu for gpu, _ in job.gpu_speeds if any(machine.gpu == gpu for machine in market.machines)]
    if not fits:
        return f"no offer has a GPU type that it can use ({', '.join(gpu for gpu, _ in job.gpu_speeds)})"
    ways = alone(market, request, spot=True)
    room = np.array([setup.nodes[node].capacity_milli[0] for node in market.nodes])[ways.offer]
    known = (ways.machines * job.worker[0][1] <= room) & (ways.earliest < FAR)
    if not known.any():
        return "no allowed offer has enough machines of a type that it can use, or its data cannot be moved to one"
    took = job.warmup_us + ways.need_us
    ends = slot + ways.earliest + -(-took // setup.slot_us) - 1 - job.arrive_us // setup.slot_us

    def named(i: int) -> str:
        machine, node = market.machines[ways.offer[i]], setup.nodes[market.nodes[ways.offer[i]]]
        return f"{ways.machines[i]} x {machine.gpus} {machine.gpu} at {node.name}"

    in_time = known & np.array([job.utility is None or job.utility.value(float(end)) > 0 for end in ends])
    if job.spend_cap_usd is not None and in_time.any():
        spend = (
            request.spent_usd + took / setup.slot_us * ways.machines * market.list_usd[ways.offer] + ways.usd
        )
        i = int(np.where(in_time, spend, np.inf).argmin())
        return f"{spend[i] - job.spend_cap_usd:,.2f} USD over its cap on {named(i)}"
    i = int(np.where(known, ends, FAR).argmin())
    return (
        f"worth nothing when it ends: the fastest, {named(i)}, takes it to slot {ends[i]} after its arrival"
    )
