"""What a policy sees: events and the current state. Never the future, never private data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from tradewind.model.decision import Charge, Decision, HeldQuote, Plan, Quote
from tradewind.model.estimate import Estimate, Measured
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI

EventKind = Literal[
    "arrived",  # a job arrived
    "finished",  # its work is done
    "left",  # a stream job left
    "released",  # hold="through": its resources were released
    "voided",  # its plan was cancelled: a node or link failed or shrank; value = work kept
    "changed",  # capacity, bandwidth, price, failure; value = row of the scenario's changes
    "measured",  # its ranks measured; value = work done
    "data",  # a stream job's volumes of this slot are known; value = slot
    "slot",  # a slot begins; value = slot
    "timer",  # the policy's wake_us is reached
    "quoted",  # its quote is held for an answer; value = when it expires
    "answered",  # the customer answers a held quote; value = number of the offer or -1, fact = id of the quote
    "expired",  # a held quote expires; value = id of the quote
    "withdrawn",  # limits changed, so a held quote no longer stands; value = id of the quote
    "accepted",  # the customer took an offer; value = number of the offer
    "declined",  # the customer took no offer
    "refused",  # the policy refused the job; value = work done
    "cancelled",  # its owner withdrew the job; value = work done
    "ended",  # the run is over or the job was given up, unfinished; value = work done
]


class Change(NamedTuple):
    """A change of the environment, public from its instant on.

    kind   capacity (node, resource, milli-units) · bandwidth (link, direction, bit/s) · price (node, resource,
           thousandths of the tariff) · egress (source, destination, thousandths) · node_down · node_up · link_down · link_up
    a, b   the indices in brackets; direction 0 = a to b, 1 = b to a, 2 = both; 0 if not used
    of     what the value of a price is divided by: 4000 of 3000 makes 3 USD exactly 4
    """

    at_us: int
    kind: str
    a: int
    b: int
    value: int
    of: int = MILLI

    @property
    def factor(self) -> float:
        """The factor on the tariff (price, egress)."""
        return self.value / self.of


class Event(NamedTuple):
    """Something that happened.

    job    the job concerned, or -1
    value  as listed in EventKind
    fact   what is known from now on: the Job that arrived, the Change, the (node, bytes) volumes of a slot, what was
           measured (the job as a whole first), the id of the quote that is answered. Only the world holds future
           facts: no view has them.
    """

    at_us: int
    kind: EventKind
    job: int = -1
    value: int = 0
    fact: Job | Change | tuple[tuple[int, int], ...] | tuple[Measured, ...] | int | None = None


class View(Protocol):
    """The current state; every look-up is O(1) or linear in what it returns."""

    @property
    def setup(self) -> Setup:
        """What is known before the run."""

    @property
    def now_us(self) -> int: ...

    @property
    def slot(self) -> int:
        """Number of the current slot."""

    @property
    def events(self) -> Sequence[Event]:
        """Events since this policy was last called."""

    @property
    def active(self) -> Mapping[int, Job]:
        """Jobs that arrived and have not finished, left or been refused, in order of arrival."""

    @property
    def held(self) -> Mapping[int, HeldQuote]:
        """Open quotes by id; what they hold is not free."""

    @property
    def answer_by_us(self) -> int:
        """Until when the job being quoted may be answered: now, or the expiry of the quote. A plan begins no earlier."""

    def job(self, job: int) -> Job:
        """The public part of a job that has arrived."""

    def plan(self, job: int) -> Plan | None:
        """The plan in force (None: the job waits)."""

    def data(self, job: int) -> tuple[tuple[int, int], ...]:
        """(node, bytes) of a stream job's volumes in the current slot."""

    def estimate(self, job: Job) -> Estimate:
        """By which factor the declared time of a job is wrong, after what was measured so far, of it and of others."""

    def change(self, row: int) -> Change:
        """The change that a `changed` event names."""

    def is_down(self, node: int) -> bool:
        """Whether the node or one above it is down. Nothing may run there, not even what needs no resource."""

    def capacity(self, node: int, resource: int) -> int:
        """Milli-units now (0 where the node is down)."""

    def free(self, node: int, resource: int, slot: int | None = None) -> int:
        """Milli-units free now, or in a later slot; ancestors' limits included."""

    def link_capacity(self, link: int, direction: int) -> int:
        """Bit/s now, direction 0 = a to b, 1 = b to a (0 where the link is down)."""

    def link_free(
        self, link: int, direction: int, slot: int | None = None, *, pulls_back: bool = False
    ) -> int:
        """Bit/s free now, or in a later slot, for a route in this direction.

        pulls_back: for a job whose routes push in this direction and pull in the other (`Job.pulls_back`).
        """

    def transfer_free(self, slot: int) -> int:
        """Bytes that may still be moved in a slot."""

    def price_factor(self, node: int, resource: int) -> float:
        """Current factor on the rent tariff."""

    def egress_factor(self, source: int, destination: int) -> float:
        """Current factor on the egress tariff."""


class Policy(Protocol):
    """A scheduler. It keeps its own state and learns only from the view and its events."""

    def decide(self, view: View) -> Decision:
        """Decide on the jobs that change; all others continue."""

    def save(self) -> bytes:
        """The whole state; a restored policy continues identically."""

    def restore(self, state: bytes) -> None: ...


class Pricer(Policy, Protocol):
    """A policy of a market: quotes each arriving job. Every offer contains the plan that it sells.

    A quote reserves nothing: the events `accepted`, `declined`, `quoted` and `withdrawn` say what became of it. A job may be
    quoted again.
    """

    def quote(self, view: View, job: Job) -> Quote: ...


class Charger(Policy, Protocol):
    """A policy of a market that charges after the run."""

    def charges(self, view: View) -> tuple[Charge, ...]: ...


class World(Protocol):
    """Carries out decisions and reports events."""

    def wait(self) -> Sequence[Event]:
        """Events of the next instant; empty at the end of the run."""

    def ask(self, quote: Quote) -> int:
        """Number of the offer that the customer takes, -1 for none."""

    def hold(self, held: HeldQuote) -> None:
        """Hand out a quote: report `answered` when its customer answers, and `expired` when it expires unanswered."""

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        """Carry out a decision, once per number."""
