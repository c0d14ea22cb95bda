"""What policies return: plans made of steps, offers with their plan, and decisions, which are deltas.

These are named tuples, not dataclasses: a busy trace creates hundreds of thousands of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Duplex = Literal["forward", "push-pull"]


class Flow(NamedTuple):
    """Data processed in a step: bytes stored at src and processed at dst (src == dst: local, nothing moves)."""

    src: int
    dst: int
    bytes: int


class Route(NamedTuple):
    """Reserved bandwidth along a path.

    path    link numbers from src to dst
    duplex  forward: reserved from src to dst, and back while the job pulls, if it does (`Job.pulls_back`); push-pull:
            both directions of each link are reserved all the time, a shared link once
    """

    src: int
    dst: int
    bps: int
    path: tuple[int, ...]
    duplex: Duplex = "forward"


class Step(NamedTuple):
    """What a job has during [from_us, until_us).

    nodes    in ring order, which is rank order; each node once
    workers  per node
    servers  per node; empty means none
    flows    data processed (stream and dataset jobs; then the step lies within one slot)
    routes   reserved bandwidth
    usd      cost of the step as the policy states it (0: not stated)
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
    """Replaces the future of a job from now on; no steps: the job stops."""

    job: int
    steps: tuple[Step, ...]


class Offer(NamedTuple):
    """A price and the plan it buys.

    unit_usd  (resource, USD per unit) that add up to the payment over the job's demand; empty: a lump sum
    """

    payment_usd: float
    finish_us: int
    plan: Plan
    unit_usd: tuple[tuple[int, float], ...] = ()


class Posted(NamedTuple):
    """The price list of a market before a bidder buys; every payment follows from it (Eris (6)).

    A unit of a resource costs max(floor, gamma^(share in use) - 1) USD per slot at every node; bandwidth likewise, per GB.

    floor_usd  per resource in the setup's order; the last one per GB moved
    data_usd   USD per GB of the job's whole data set; -1: only chunks that change site are charged
    """

    gamma: float
    floor_usd: tuple[float, ...]
    data_usd: float = -1.0


class Quote(NamedTuple):
    """Answer to an arriving job: offers to choose from, or why there are none ("capacity", "unsupported", "price").

    posted  the price list from which the payments follow; None: there is none
    """

    job: int
    offers: tuple[Offer, ...] = ()
    refused: str = ""
    why: str = ""
    posted: Posted | None = None


class HeldQuote(NamedTuple):
    """A quote that the customer may answer until it expires.

    Until then it holds, for every resource and slot, the most that any of its offers needs.

    id       0 for the first held quote of a run, 1 for the next, …
    at_us    when it was made
    """

    id: int
    quote: Quote
    at_us: int
    expires_us: int


class Charge(NamedTuple):
    """What a job pays after the run, where no price was agreed on arrival; why: one line for people."""

    job: int
    usd: float
    why: str = ""


class Verdict(NamedTuple):
    """A job that a policy refuses for good."""

    job: int
    reason: str


class Certificate(NamedTuple):
    """A bound that comes with a decision, and the data needed to check it."""

    name: str
    value: float
    sense: Literal["min", "max"]
    data: Mapping[str, Any] = {}


class Decision(NamedTuple):
    """An atomic delta: jobs that it does not name continue unchanged.

    wake_us  call `decide` again at this time at the latest; replaces the earlier timer (None: keeps it)
    why      one line for people
    """

    plans: tuple[Plan, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    wake_us: int | None = None
    certificate: Certificate | None = None
    why: str = ""


NOTHING = Decision()
"""Changes nothing."""
