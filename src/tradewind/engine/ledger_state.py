"""What a ledger saves."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.decision import HeldQuote, Plan
from tradewind.model.job import Job
from tradewind.model.view import Change

SlotVolumes = tuple[tuple[int, int], ...]
"""(node, bytes) of a stream job in a slot."""


class LedgerState(NamedTuple):
    """What a ledger saves; capacity in use follows from the plans. Events are beside it, as `to_json` writes them."""

    now_us: int
    first_slot: int
    jobs: tuple[Job, ...]
    active: tuple[int, ...]
    plans: tuple[Plan, ...]
    data: dict[int, tuple[int, SlotVolumes]]
    changes: dict[int, Change]
    limit: tuple[int, ...]
    down_nodes: frozenset[int]
    down_links: frozenset[int]
    price: dict[tuple[int, int], float]
    egress: dict[tuple[int, int], float]
    held: tuple[HeldQuote, ...]
    counts_holds: bool
    expires_us: int
