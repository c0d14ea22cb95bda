"""Why a job waits: what it needs, against what every site has free. Names nobody else's jobs."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.job import Job
from tradewind.model.units import MILLI, UNLIMITED
from tradewind.service.config import Config
from tradewind.store.board import Row

SAID = {
    "submitted": "it was submitted; the engine takes it at the next instant",
    "waiting": "it waits for room",
    "quoted": "its quote is open: accept or decline it before it expires",
    "scheduled": "it has a plan; its ranks start when the plan says",
    "running": "it runs",
    "suspended": "its owner suspended it; resume lets it go on from its checkpoints",
    "finished": "all its ranks ended with 0",
    "left": "the stream left",
    "declined": "no offer was taken",
    "cancelled": "its owner cancelled it",
    "failed": "its ranks failed too often; the log says why",
    "refused": "the policy refused it",
}


def lines_of(config: Config, job: Job, sites: Sequence[Row], status: str, reason: str = "") -> list[str]:
    """Sentences, the status first."""
    lines = [SAID.get(status, status) + (f": {reason}" if reason else "")]
    if status not in ("submitted", "waiting"):
        return lines
    setup = config.setup
    need = {setup.resources[r]: milli for r, milli in job.worker}
    words = ", ".join(f"{milli / MILLI:g} {name}" for name, milli in need.items())
    count = f"{job.workers_min}" + (f" to {job.workers_max}" if job.workers_max > job.workers_min else "")
    lines.append(f"it needs {count} {'worker' if job.workers_max == 1 else 'workers'} with {words} each")
    allowed = None if job.nodes is None else {setup.nodes[node].name for node in job.nodes}
    fits, most = 0, 0
    hosts = {setup.nodes[node].name for node in setup.hosts}
    for name in dict.fromkeys(row["node"] for row in sites if row["node"] in hosts):
        rows = [row for row in sites if row["node"] == name and row["resource"] in need]
        limited = [row for row in rows if row["capacity_milli"] < UNLIMITED]
        every = job.workers_max if rows and not limited else 0
        if allowed is not None and name not in allowed:
            lines.append(f"{name}: the job may not run there")
            continue
        if any(row["is_down"] for row in rows):
            lines.append(f"{name}: is down")
            continue
        free = [(row["capacity_milli"] - row["used_milli"]) // need[row["resource"]] for row in limited]
        whole = [row["capacity_milli"] // need[row["resource"]] for row in limited]
        now, ever = min(free, default=every), min(whole, default=every)
        fits, most = fits + now, most + ever
        lines.append(f"{name}: room for {now} of its workers, of {ever} at most")
    if sites and most < job.workers_min:
        lines.append(f"all sites together hold at most {most} of its workers: it cannot run as it is")
    elif sites and fits < job.workers_min and status == "waiting":
        lines.append(
            f"it can run when {job.workers_min - fits} more of its workers fit: other jobs hold the rest"
        )
    return lines
