"""What a scheduler of ring jobs chooses every slot, and what it knows about a job when it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tradewind.model.decision import Certificate
from tradewind.model.job import Job
from tradewind.model.spec import EVERY_SLOT, Trigger
from tradewind.systems.gadget.kernels.slot import Rings, Slot, no_rings

WORKS = frozenset(("rounds/ring",))
ARCHITECTURES = frozenset(("ring",))
TRIGGERS: frozenset[Trigger] = EVERY_SLOT
Sight = Literal["slot", "envelope", "ahead"]
"""How far gains look: the slot alone, the concave envelope of the utility, or the envelope less what can wait."""
Ring = tuple[tuple[int, ...], tuple[int, ...]]
"""Servers in ring order, and the workers on each."""


@dataclass(slots=True)
class RingRecord:
    """State of a job.

    done      work done, millionths of a worker-slot
    since_us  from when its ring does work that is not in `done` yet; without a ring, from when it waits
    servers   of its ring, by number in the fabric; empty: it does not run
    workers   on each of them
    last      servers where it last ran
    attained  worker-slots it has had, lost ones included
    """

    done: int = 0
    since_us: int = 0
    servers: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    attained: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RingChoice:
    """Rings for a slot, and a bound on their worth where there is one."""

    rings: Rings
    certificate: Certificate | None = None


class Chooser(Protocol):
    """What differs between the schedulers: the rings of a slot."""

    sight: Sight

    def choose(
        self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord], number: int
    ) -> RingChoice:
        """Choose rings for jobs in order of arrival; the records hold their rings of the slot before."""


def rings_before(slot: Slot, records: Sequence[RingRecord]) -> Rings:
    """The rings that the jobs have now."""
    rings = no_rings(slot)
    for i, record in enumerate(records):
        count = len(record.servers)
        if count and count <= rings.server.shape[1]:
            rings.server[i, :count], rings.workers[i, :count] = record.servers, record.workers
            rings.size[i] = sum(record.workers)
    return rings
