"""Rules on the network: paths, routes to the parameter server, rings."""

from __future__ import annotations

from tradewind.audit.record import Case
from tradewind.model.decision import Route
from tradewind.model.job import Rounds
from tradewind.model.result import Violation


def walk(case: Case, route: Route) -> Violation | None:
    """A route runs from src to dst over links, one after the other, visiting no node twice (APSP (2), GADGET (7))."""
    links, at, seen = case.setup.links, route.src, {route.src}
    if type(route.bps) is not int or route.bps <= 0:
        return case.broken(
            "routes.bandwidth", f"a route reserves {route.bps!r} bit/s; it must be a positive whole number"
        )
    if route.duplex not in ("forward", "push-pull"):
        return case.broken("routes.duplex", f"duplex is {route.duplex!r}; allowed are forward and push-pull")
    for number in route.path:
        if type(number) is not int or not 0 <= number < len(links):
            return case.broken("routes.path", f"link {number!r} does not exist")
        link = links[number]
        if at not in (link.a, link.b):
            return case.broken(
                "routes.path", f"link {number} does not continue from the previous node", node=at
            )
        at = link.b if at == link.a else link.a
        if at in seen:
            return case.broken("routes.path", "the path visits a node twice", node=at)
        seen.add(at)
    if at != route.dst:
        return case.broken("routes.path", "the path does not end at its destination", node=at)
    return None


def every_site_reaches_the_server(case: Case) -> Violation | None:
    """Exactly one route from every worker site to the parameter server's site (APSP (2): sum_p x_fp = 1)."""
    for step in case.plan.steps:
        servers = [n for n, s in zip(step.nodes, step.servers or (0,) * len(step.nodes), strict=True) if s]
        if len(servers) != 1:
            return case.broken(
                "routes.server",
                f"{len(servers)} nodes with parameter servers; exactly one is required",
                at_us=step.from_us,
            )
        wanted = {n for n, w in zip(step.nodes, step.workers, strict=True) if w} - set(servers)
        sources = [route.src for route in step.routes if route.path]
        if (
            set(sources) != wanted
            or len(sources) != len(wanted)
            or any(r.dst != servers[0] for r in step.routes)
        ):
            return case.broken(
                "routes.one_each",
                f"routes from {sources}; one from each of {sorted(wanted)} is required, to the server",
            )
    return None


def ring_is_closed(case: Case) -> Violation | None:
    """Hops join neighbours in ring order and the last with the first, each reserving b (GADGET (7), (9) corrected).

    One node: no hop. Two nodes: two hops, there and back. Each node once is checked by form.node_once.
    """
    job = case.record.job
    work = job.work
    if not case.setup.links or not isinstance(work, Rounds) or work.comm != "ring":
        return None
    for step in case.plan.steps:
        nodes = step.nodes
        if any(not w for w in step.workers):
            return case.broken("ring.members", "a node of the ring has no workers", at_us=step.from_us)
        wanted = [] if len(nodes) < 2 else [(n, nodes[(i + 1) % len(nodes)]) for i, n in enumerate(nodes)]
        hops = [(route.src, route.dst) for route in step.routes]
        if hops != wanted:
            return case.broken(
                "ring.hops", f"hops are {hops}; the ring requires {wanted}", at_us=step.from_us
            )
        for route in step.routes:
            if route.bps != job.ring_bps or route.duplex != "forward":
                return case.broken(
                    "ring.bandwidth",
                    f"a hop reserves {route.bps} bit/s ({route.duplex}); {job.ring_bps} bit/s forward are required",
                )
    return None
