"""What a policy may know: events, and a window on the present. Never the future, never a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from tradewind.model.decision import Charge, Decision, Plan, Quote
from tradewind.model.job import Job
from tradewind.model.setup import Setup

EventKind = Literal[
    "arrived",  # a job came
    "finished",  # its work is done
    "left",  # a stream job went away
    "released",  # hold="through": its resources came free
    "voided",  # its plan was cancelled: a node or link failed or shrank; value = work kept
    "changed",  # capacity, bandwidth, price, failure; value = row of the scenario's changes
    "data",  # a stream job's volumes of this slot are known; value = slot
    "slot",  # a slot begins; value = slot
    "timer",  # the policy's own wake_us
    "accepted",  # the customer took an offer; value = number of the offer
    "declined",  # the customer refused the price
    "refused",  # the policy turned the job away; value = work done
    "ended",  # the run is over and the job was still there; value = work done
]


class Change(NamedTuple):
    """A change of the surroundings, public from its instant on.

    kind   capacity (node, resource, milli-units) · bandwidth (link, direction, bit/s) · price (node, resource,
           thousandths of the tariff) · egress (source, destination, thousandths) · node_down · node_up · link_down · link_up
    a, b   the indices named in brackets; direction 0 = a to b, 1 = b to a, 2 = both; 0 where not needed
    """

    at_us: int
    kind: str
    a: int
    b: int
    value: int


class Event(NamedTuple):
    """Something that happened.

    job    -1 where no job is concerned
    value  as listed in EventKind
    fact   what is known from now on: the Job that arrived, the Change, the (node, bytes) volumes of a slot.
           Nobody but the world holds facts of the future, so no policy can reach them.
    """

    at_us: int
    kind: EventKind
    job: int = -1
    value: int = 0
    fact: Job | Change | tuple[tuple[int, int], ...] | None = None


class View(Protocol):
    """A window on the present; all look-ups are O(1) or as long as what they return."""

    @property
    def setup(self) -> Setup:
        """What was known beforehand."""

    @property
    def now_us(self) -> int: ...

    @property
    def slot(self) -> int:
        """Number of the current slot."""

    @property
    def events(self) -> Sequence[Event]:
        """What happened since this policy was last called."""

    @property
    def active(self) -> Mapping[int, Job]:
        """Jobs that arrived and neither finished, left nor were turned away, in order of arrival."""

    def job(self, job: int) -> Job:
        """The public part of a job that has arrived."""

    def plan(self, job: int) -> Plan | None:
        """The plan in force (None: the job waits)."""

    def data(self, job: int) -> tuple[tuple[int, int], ...]:
        """(node, bytes) of a stream job's volumes in the current slot."""

    def change(self, row: int) -> Change:
        """The change that a `changed` event names."""

    def capacity(self, node: int, resource: int) -> int:
        """Milli-units now (0 where the node is down)."""

    def free(self, node: int, resource: int, slot: int | None = None) -> int:
        """Milli-units free now, or in a later slot; ancestors' limits included."""

    def link_capacity(self, link: int, direction: int) -> int:
        """Bit/s now, direction 0 = a to b, 1 = b to a (0 where the link is down)."""

    def link_free(self, link: int, direction: int, slot: int | None = None) -> int:
        """Bit/s free now, or in a later slot."""

    def transfer_free(self, slot: int) -> int:
        """Bytes that may still be moved in a slot."""

    def price_factor(self, node: int, resource: int) -> float:
        """Current factor on the rent tariff."""

    def egress_factor(self, source: int, destination: int) -> float:
        """Current factor on the egress tariff."""


class Policy(Protocol):
    """Own state lives in the policy; facts come only from the view and its new events."""

    def decide(self, view: View) -> Decision:
        """A delta: only the jobs that change."""

    def save(self) -> bytes:
        """The whole state, so that a restored policy continues identically."""

    def restore(self, state: bytes) -> None: ...


class Pricer(Policy, Protocol):
    """Only for markets: called on arrival; each offer carries the plan that would be carried out."""

    def quote(self, view: View, job: Job) -> Quote: ...


class Charger(Policy, Protocol):
    """Only for markets that settle afterwards: called once, when the run is over."""

    def charges(self, view: View) -> tuple[Charge, ...]: ...


class World(Protocol):
    """Where decisions come true."""

    def wait(self) -> Sequence[Event]:
        """Everything that happens at the next instant; empty at the end."""

    def ask(self, quote: Quote) -> int:
        """Which offer the customer takes; -1 for none."""

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        """Carries a decision out, once per number."""
