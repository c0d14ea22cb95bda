"""What a policy remembers of every job: work done, where it runs, what it was given last."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tradewind.model.decision import Flow, Step
from tradewind.model.job import Dataset, Job, Stream
from tradewind.model.progress import rate
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import View
from tradewind.systems.mixed.shared.frame import Known
from tradewind.systems.mixed.shared.oracles.gang import stays

OVER = frozenset(("finished", "left", "ended", "refused", "cancelled"))


@dataclass
class Tracked:
    """A job that is not over; step: what it was given last, None once it is counted; outbid: the last price too high."""

    done: int = 0
    chunks: dict[int, int] = field(default_factory=dict)
    places: tuple[int, ...] = ()
    step: Step | None = None
    outbid: str = ""


class Tracker:
    """The state of all jobs, learned from events and own decisions."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.jobs: dict[int, Tracked] = {}
        self.spent: dict[str, float] = {}
        """Tenant with a spend cap -> USD at list price that it has committed to."""

    def observe(self, view: View) -> None:
        """Learn from new events; then count what the steps did that are over, or go on."""
        for event in view.events:
            if event.kind == "arrived":
                self.jobs[event.job] = Tracked()
            elif event.kind in OVER:
                self.jobs.pop(event.job, None)
            elif event.kind == "voided" and event.job in self.jobs:
                tracked = self.jobs[event.job]
                tracked.step, tracked.places = None, ()
                if not isinstance(view.job(event.job).work, Dataset | Stream):
                    tracked.done = event.value
        if view.now_us % self._setup.slot_us:
            return
        for index, tracked in self.jobs.items():
            self._count(view.job(index), tracked, view.now_us)

    def _count(self, job: Job, tracked: Tracked, now_us: int) -> None:
        """Count a step up to now; a job that keeps its places goes on."""
        step = tracked.step
        tracked.places = ()
        if step is None:
            return
        end = min(step.until_us, now_us)
        if isinstance(job.work, Dataset):
            for flow in step.flows:
                tracked.chunks[flow.src] = (
                    tracked.chunks.get(flow.src, 0) + flow.bytes // job.work.chunk_bytes
                )
        else:
            num, den = rate(self._setup, job, step)
            tracked.done += (end - step.from_us) * num // den
        tracked.places = step.nodes if end == now_us else ()
        goes_on = stays(job) and (step.until_us == OPEN or self._setup.cap_of(job.tenant) is not None)
        tracked.step = step._replace(from_us=now_us) if goes_on else None

    def known(self, job: int, volumes: tuple[tuple[tuple[int, int], ...], ...] = ()) -> Known:
        """What an oracle needs to know."""
        tracked = self.jobs[job]
        return Known(done=tracked.done, chunks=dict(tracked.chunks), places=tracked.places, volumes=volumes)

    def save(self) -> bytes:
        rows = [
            [i, t.done, sorted(t.chunks.items()), t.places, t.step and list(t.step), t.outbid]
            for i, t in self.jobs.items()
        ]
        return json.dumps([rows, self.spent]).encode()

    def restore(self, state: bytes) -> None:
        rows, self.spent = json.loads(state)
        self.jobs = {
            i: Tracked(done, dict(chunks), tuple(places), None if step is None else _step(step), *outbid)
            for i, done, chunks, places, step, *outbid in rows
        }


def _step(row: list[Any]) -> Step:
    begin, until, nodes, workers, servers, flows, _, _ = row
    return Step(
        begin, until, tuple(nodes), tuple(workers), tuple(servers), tuple(Flow(*flow) for flow in flows)
    )
