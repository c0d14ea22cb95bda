"""Checks of jobs that run on machines, and of names and numbers of any job."""

from __future__ import annotations

from itertools import pairwise

from tradewind.model.errors import ScenarioError
from tradewind.model.job import MOST_RANKS, Job, Rounds
from tradewind.model.setup import Setup
from tradewind.model.units import LARGEST


def check_gpus(job: Job) -> None:
    """A job on machines has numbers of GPUs, speeds, and rounds to do."""
    where, work = f"jobs[{job.id}]", job.work
    if not isinstance(work, Rounds) or work.comm != "machines" or work.unit != "round" or work.pinned:
        raise ScenarioError(
            f"{where} has gpus or gpu_speeds; they need work of kind rounds with comm 'machines', unit 'round', not pinned"
        )
    if not work.compute_us:
        raise ScenarioError(f"{where}.work.compute_us is 0; give the time of a round on the reference GPU")
    if not job.gpus or any(b <= a for a, b in pairwise((0, *job.gpus))) or job.gpus[-1] > MOST_RANKS:
        raise ScenarioError(
            f"{where}.gpus are {list(job.gpus)}; give positive numbers of GPUs, rising, at most {MOST_RANKS}"
        )
    names = [name for name, _ in job.gpu_speeds]
    if not names or len(set(names)) < len(names) or any(not 0 < s <= LARGEST for _, s in job.gpu_speeds):
        raise ScenarioError(f"{where}.gpu_speeds must give each GPU type once, with a positive speed")


def check_parts(setup: Setup, job: Job) -> None:
    """Parts lie at sites, and every site where the job may run can be reached from them at a known price."""
    where = f"jobs[{job.id}].parts"
    check_once(where, job.parts)
    hosts = setup.host_set if job.nodes is None else job.nodes
    sites = {setup.site_of[node] for node in hosts} if job.parts else set()
    for node, size in job.parts:
        check_node(setup, where, node)
        name = setup.nodes[node].name
        if setup.nodes[node].parent >= 0:
            raise ScenarioError(f"{where} names {name!r}, which is inside a site; name the site")
        counts(f"{where}[{name}]", bytes=size)
        for site in sites - {node} if size else ():
            other = setup.nodes[site].name
            if (node, site) not in setup.direct_bps:
                raise ScenarioError(
                    f"{where}: there is no link {name}->{other}; add it to links, or name nodes"
                )
            if (node, site) not in setup.egress:
                raise ScenarioError(
                    f"{where}: egress has no price for {name}->{other}; add it, 0 if it is free"
                )
    for node, site, left_us in job.copies:
        where = f"jobs[{job.id}].copies"
        check_node(setup, where, node)
        check_node(setup, where, site)
        counts(where, left_us=left_us)
        if not dict(job.parts).get(node) or (node, site) not in setup.direct_bps:
            pair = f"{setup.nodes[node].name}->{setup.nodes[site].name}"
            raise ScenarioError(
                f"{where}: found {pair}; name a part that the job has and a site with a link from there"
            )


def check_node(setup: Setup, where: str, node: int) -> None:
    if not 0 <= node < len(setup.nodes):
        raise ScenarioError(f"{where} names node {node}; there are {len(setup.nodes)} nodes")


def check_once(where: str, pairs: tuple[tuple[int, int], ...]) -> None:
    nodes = [node for node, _ in pairs]
    if len(set(nodes)) != len(nodes):
        raise ScenarioError(f"{where} names a node twice; merge the entries")


def positive(where: str, most: int = LARGEST, **values: int) -> None:
    for name, value in values.items():
        if not 0 < value <= most:
            raise ScenarioError(f"{where}.{name} is {value}; it must be positive (at most {most})")


def counts(where: str, **values: int) -> None:
    """Counts may be 0 in a file: such a bid is refused when it arrives (Job.unservable_reason)."""
    for name, value in values.items():
        if not 0 <= value <= LARGEST:
            raise ScenarioError(f"{where}.{name} is {value}; it must lie between 0 and {LARGEST}")
