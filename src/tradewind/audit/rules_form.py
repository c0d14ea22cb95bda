"""Rules on form, time and place that hold for every plan."""

from __future__ import annotations

from math import isfinite

from tradewind.audit.record import Case
from tradewind.audit.rules_network import walk
from tradewind.model.decision import Step
from tradewind.model.job import Dataset, Stream
from tradewind.model.result import Violation
from tradewind.model.units import OPEN


def _is_int(value: object) -> bool:
    return type(value) is int


def is_plainly_sound(case: Case) -> bool:
    """Fast path: whether a plan of at most one open-ended step from now meets all rules of rules.PLAIN.

    False decides nothing; the rules are then checked one by one.
    """
    steps = case.plan.steps
    if not steps:
        return True
    if len(steps) > 1 or case.down_nodes or case.down_links:
        return False
    begin, until, nodes, workers, servers, flows, routes, usd = steps[0]
    if begin != case.now_us or type(begin) is not int or until != OPEN or len(nodes) != len(workers):
        return False
    if servers or flows or routes or usd:
        return False
    hosts, total = case.setup.host_set, 0
    for node, count in zip(nodes, workers, strict=True):
        if type(node) is not int or type(count) is not int or count < 0 or node not in hosts:
            return False
        total += count
    job = case.record.job
    return job.workers_min <= total <= job.workers_max and (len(nodes) == 1 or len(set(nodes)) == len(nodes))


def form_is_sound(case: Case) -> Violation | None:
    """Counts are whole and not negative, lists are of one length, every node is a host and appears once.

    y_s, z_s in {0, 1, 2, …} for every node s (mlBroker (8k), DPS (2h), Eris (2h), GADGET (4))
    """
    nodes_total, hosts = len(case.setup.nodes), case.setup.host_set
    for step in case.plan.steps:
        nodes, workers, servers = step.nodes, step.workers, step.servers
        if len(workers) != len(nodes) or (servers and len(servers) != len(nodes)):
            return case.broken(
                "form.lengths", f"{len(nodes)} nodes, {len(workers)} workers, {len(servers)} servers"
            )
        for node in nodes:
            if not _is_int(node) or not 0 <= node < nodes_total:
                return case.broken("form.node", f"node {node!r} does not exist")
            if node not in hosts:
                return case.broken("form.node", "this node cannot run workers or servers", node=node)
        if len(nodes) > 1 and len(set(nodes)) != len(nodes):
            return case.broken("form.node_once", f"a node is listed twice: {nodes}")
        for count in workers + servers:
            if not _is_int(count) or count < 0:
                return case.broken("form.count", f"{count!r} is not a whole number of workers or servers")
        if (step.flows or step.routes or step.usd) and (broken := _extras_are_sound(case, step)) is not None:
            return broken
    return None


def _extras_are_sound(case: Case, step: Step) -> Violation | None:
    """Flows belong to jobs with data, routes are paths, the cost is a number."""
    nodes_total = len(case.setup.nodes)
    for flow in step.flows:
        if not case.record.job.parts and not isinstance(case.record.job.work, Stream | Dataset):
            return case.broken("form.flow", "the step has flows, but the job has no data", at_us=step.from_us)
        fine = len(flow) == 3 and all(_is_int(v) and v >= 0 for v in flow)
        if not fine or flow.src >= nodes_total or flow.dst >= nodes_total:
            return case.broken("form.flow", f"{flow} is not a valid flow", at_us=step.from_us)
    for route in step.routes:
        if (broken := walk(case, route)) is not None:
            return broken
    if not isfinite(step.usd):
        return case.broken("form.usd", f"the step costs {step.usd} USD; it must be a finite number")
    return None


def time_is_sound(case: Case) -> Violation | None:
    """Steps follow each other, none lies in the past or before arrival; bounded steps lie on the slot grid.

    y[t] = 0 for t < a (Eris (2g), GADGET (6)); from_k < until_k <= from_(k+1); until_k <= end of the window
    """
    now, slot = case.now_us, case.setup.slot_us
    before = now
    for step in case.plan.steps:
        begin, until = step.from_us, step.until_us
        if not _is_int(begin) or not _is_int(until) or begin < before or until <= begin:
            return case.broken(
                "time.order", f"a step from {begin!r} until {until!r} us; it must begin at {before} or later"
            )
        if begin != now and (begin % slot or until == OPEN):
            return case.broken(
                "time.grid",
                f"a future step from {begin} us; it must begin at the start of a slot and have an end",
            )
        if until != OPEN and until % slot:
            return case.broken(
                "time.grid", f"a bounded step until {until} us; it must end at the end of a slot of {slot} us"
            )
        if until != OPEN and until > (now // slot + case.setup.slots_ahead(now // slot)) * slot:
            window = case.setup.window_slots
            if window is None or until > case.setup.slots * slot:
                limit = f"the run ends at {case.setup.horizon_us}"
                return case.broken("time.horizon", f"a step until {until} us; {limit}")
            return case.broken(
                "time.window",
                f"a step until {until} us; plans made now may use {window} slots from this one on",
            )
        before = until
    return None


def workers_are_in_range(case: Case) -> Violation | None:
    """workers_min <= sum_s y_s <= workers_max in every step with workers (GADGET (2), DPS (2d))."""
    job = case.record.job
    for step in case.plan.steps:
        total = sum(step.workers)
        if step.servers and not job.servers and any(step.servers):
            return case.broken(
                "servers.number",
                f"{sum(step.servers)} parameter servers; the job has none",
                at_us=step.from_us,
                amount=sum(step.servers),
            )
        if total and not job.workers_min <= total <= job.workers_max:
            return case.broken(
                "workers.range",
                f"{total} workers; allowed are {job.workers_min} to {job.workers_max}",
                at_us=step.from_us,
                amount=total - job.workers_max if total > job.workers_max else total - job.workers_min,
            )
        if not total and not any(step.servers):
            return case.broken(
                "workers.none", "a step without workers and servers; leave it out", at_us=step.from_us
            )
    return None


def servers_are_in_number(case: Case) -> Violation | None:
    """sum_s z_s = servers in every step (mlBroker (8f), DPS (2e), APSP (1), Eris (2c) where there are workers)."""
    job = case.record.job
    for step in case.plan.steps:
        if sum(step.servers) != job.servers:
            return case.broken(
                "servers.number",
                f"{sum(step.servers)} parameter servers; {job.servers} are required",
                at_us=step.from_us,
                amount=sum(step.servers) - job.servers,
            )
    return None


def places_are_allowed(case: Case) -> Violation | None:
    """Workers and servers only at nodes in job.nodes, data only processed in job.data_nodes (residency)."""
    job = case.record.job
    for step in case.plan.steps:
        for node in step.nodes:
            if job.nodes is not None and node not in job.nodes:
                return case.broken(
                    "places.allowed", "the job may not run here", node=node, at_us=step.from_us
                )
        for flow in step.flows:
            if job.data_nodes is not None and flow.dst not in job.data_nodes:
                return case.broken(
                    "places.residency",
                    "the job's data may not be processed here",
                    node=flow.dst,
                    at_us=step.from_us,
                )
    return None


def nodes_are_up(case: Case) -> Violation | None:
    """No step uses a node that is down (or below one that is), or a link that is down or ends at such a node."""
    if not case.down_nodes and not case.down_links:
        return None
    above = case.setup.ancestry
    for step in case.plan.steps:
        for node in step.nodes:
            if case.down_nodes.intersection(above[node]):
                return case.broken("places.up", "the node is down", node=node, at_us=step.from_us)
        for route in step.routes:
            for number in route.path:
                link = case.setup.links[number]
                ends = {*above[link.a], *above[link.b]}
                if number in case.down_links or ends & case.down_nodes:
                    return case.broken(
                        "routes.up", f"link {number} is down", node=route.src, at_us=step.from_us
                    )
    return None


def pinned_workers_stay(case: Case) -> Violation | None:
    """Workers are exactly where the job pins them (APSP's worker sites)."""
    pinned = getattr(case.record.job.work, "pinned", ())
    if not pinned:
        return None
    wanted = dict(pinned)
    for step in case.plan.steps:
        found = {n: w for n, w in zip(step.nodes, step.workers, strict=True) if w}
        if found != wanted:
            return case.broken(
                "workers.pinned", f"workers are at {found}; they are pinned at {wanted}", at_us=step.from_us
            )
    return None
