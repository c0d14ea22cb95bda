"""Plans of the kernels as steps, and why a job cannot be served."""

from __future__ import annotations

from tradewind.model.arrays import Ints
from tradewind.model.decision import Flow, Plan, Step
from tradewind.model.progress import machine_round_us
from tradewind.model.units import MICRO, US_PER_S
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.shared.market import Market
from tradewind.systems.broker.shared.options import Request


def plan_of(market: Market, p: Problem, request: Request, chosen: Ints, slot: int) -> Plan:
    """The plan that a row of the kernels stands for; no steps where the job is not served."""
    job, option = request.job, int(chosen[0])
    if option < 0:
        return Plan(job.index, ())
    offer, machines = int(p.offer[option]), int(p.machines[option])
    node, site, slot_us = market.nodes[offer], int(market.site[offer]), market.setup.slot_us
    flows = tuple(
        Flow(source, site, size)
        for source, size in job.parts
        if size and source != site and (source, site) not in request.staged
    )
    steps = []
    for run in range(int(chosen[1])):
        begin, length = int(chosen[2 + 2 * run]), int(chosen[3 + 2 * run])
        from_us, until_us = (slot + begin) * slot_us, (slot + begin + length) * slot_us
        steps.append(Step(from_us, until_us, (node,), (machines,), flows=flows if run == 0 else ()))
    return Plan(job.index, tuple(steps))


def nearest_miss(market: Market, request: Request, slot: int) -> str:
    """Why no offer serves a job: what comes nearest, and by how much it is too late."""
    setup, job = market.setup, request.job
    fits = [gpu for gpu, _ in job.gpu_speeds if any(machine.gpu == gpu for machine in market.machines)]
    if not fits:
        return f"no offer has a GPU type that it can use ({', '.join(gpu for gpu, _ in job.gpu_speeds)})"
    best, where = 0, ""
    for offer, machine in enumerate(market.machines):
        node = setup.nodes[market.nodes[offer]]
        if job.nodes is not None and market.nodes[offer] not in job.nodes:
            continue
        for count in sorted({-(-gpus // machine.gpus) for gpus in job.gpus}):
            round_us = machine_round_us(job, machine, count)
            if not round_us or not job.workers_min <= count <= job.workers_max:
                continue
            if count * job.worker[0][1] > node.capacity_milli[0]:
                continue
            lead_us = _lead_us(market, request, int(market.site[offer]))
            if lead_us is None:
                continue
            took = slot * setup.slot_us + lead_us + job.warmup_us + request.left * round_us // MICRO
            if not where or took < best:
                best, where = took, f"{count} x {machine.gpus} {machine.gpu} at {node.name}"
    if not where:
        return "no allowed offer has enough machines of a type that it can use, or its data cannot be moved to one"
    end = (best - 1) // setup.slot_us - job.arrive_us // setup.slot_us
    return f"worth nothing when it ends: the fastest, {where}, takes it to slot {end} after its arrival"


def _lead_us(market: Market, request: Request, site: int) -> int | None:
    """Time to move the data to a site; None where it cannot be moved."""
    lead = 0
    for source, size in request.job.parts:
        if source != site and size and (source, site) not in request.staged:
            bps = market.setup.direct_bps.get((source, site), 0)
            if not bps or (request.job.data_nodes is not None and site not in request.job.data_nodes):
                return None
            lead = max(lead, -(-8 * size * US_PER_S // bps))
    return lead
