"""What policies answer: plans made of steps, offers that carry their plan, and decisions, which are deltas.

These are named tuples, not dataclasses: a crowded trace makes hundreds of thousands of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Duplex = Literal["forward", "push-pull"]


class Flow(NamedTuple):
    """Data of a slot: bytes that lie at src and are processed at dst (src == dst: local, nothing moves)."""

    src: int
    dst: int
    bytes: int


class Route(NamedTuple):
    """Reserved bandwidth along a path.

    path    link numbers from src to dst
    duplex  forward: reserved in the direction of travel; push-pull: the way there and back, in turn, so both
            directions of each link are reserved, a shared link once
    """

    src: int
    dst: int
    bps: int
    path: tuple[int, ...]
    duplex: Duplex = "forward"


class Step(NamedTuple):
    """What a job has from from_us until before until_us.

    nodes    in ring order, which is rank order; each node once
    workers  per node
    servers  per node; empty means none
    flows    data processed (stream and dataset jobs; then the step lies within one slot)
    routes   reserved bandwidth
    usd      what the policy says this step costs (0: says nothing)
    """

    from_us: int
    until_us: int
    nodes: tuple[int, ...]
    workers: tuple[int, ...]
    servers: tuple[int, ...] = ()
    flows: tuple[Flow, ...] = ()
    routes: tuple[Route, ...] = ()
    usd: float = 0.0


class Plan(NamedTuple):
    """Replaces the future of a job from now on; no steps = stop."""

    job: int
    steps: tuple[Step, ...]


class Offer(NamedTuple):
    """A price and what it buys.

    unit_usd  (resource, USD per unit) that add up to the payment over the job's demand; empty = a lump sum
    """

    payment_usd: float
    finish_us: int
    plan: Plan
    unit_usd: tuple[tuple[int, float], ...] = ()


class Posted(NamedTuple):
    """The price list of a market, as it is before a bidder buys: any payment can be added up from it (Eris (6)).

    A unit of a resource costs max(floor, gamma^(share in use) - 1) USD per slot at every node, bandwidth so per GB.

    floor_usd  per resource in the setup's order, the last per GB moved
    data_usd   USD per GB of the job's whole data set, however it is carried; -1: only chunks that change site pay
    """

    gamma: float
    floor_usd: tuple[float, ...]
    data_usd: float = -1.0


class Quote(NamedTuple):
    """Answer to an arriving job: offers to choose from, or why there are none ("capacity", "unsupported", "price").

    posted  the price list that payments were added up from; None: there is none
    """

    job: int
    offers: tuple[Offer, ...] = ()
    refused: str = ""
    why: str = ""
    posted: Posted | None = None


class Charge(NamedTuple):
    """What a job pays in the end, where nothing was agreed when it came; why: one line for people."""

    job: int
    usd: float
    why: str = ""


class Verdict(NamedTuple):
    """A job that a policy turns away for good."""

    job: int
    reason: str


class Certificate(NamedTuple):
    """A bound that comes with a decision, and what is needed to check it again."""

    name: str
    value: float
    sense: Literal["min", "max"]
    data: Mapping[str, Any] = {}


class Decision(NamedTuple):
    """An atomic delta: jobs that it does not name go on as they are.

    wake_us  call `decide` again at this time at the latest; replaces the timer set before (None: leaves it)
    why      one line for people
    """

    plans: tuple[Plan, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    wake_us: int | None = None
    certificate: Certificate | None = None
    why: str = ""


NOTHING = Decision()
"""Everything goes on as it is."""
