"""What the API answers, typed; the client reads the same models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tradewind.report.bills import Bill, BillLine, BillPayment


class Answer(BaseModel):
    """Fields may be added in later versions; readers ignore what they do not know."""

    model_config = ConfigDict(extra="ignore")


class JobAnswer(Answer):
    """A job. Times are seconds since 1970."""

    id: str
    tenant: str
    status: str = Field(
        description="submitted, waiting, quoted, scheduled, running, suspended, finished, left, declined, refused, "
        "cancelled, failed"
    )
    is_over: bool
    submitted_s: float
    started_s: float | None = None
    ended_s: float | None = None
    price_usd: float | None = Field(default=None, description="what was agreed or paid, in a market")
    reason: str = Field(default="", description="why it was refused")
    places: dict[str, Any] = Field(
        default_factory=dict, description="where it runs: workers and servers by site"
    )
    job: dict[str, Any] = Field(
        default_factory=dict, description="as it was submitted, without its private part"
    )


class JobPage(Answer):
    """Jobs, newest first. next: hand it in as `before` for the page after this one; null at the end."""

    jobs: list[JobAnswer]
    next: int | None = None


class EventAnswer(Answer):
    """Something that happened."""

    number: int
    id: str
    at_s: float
    kind: str
    body: dict[str, Any]


class EventPage(Answer):
    """Events in order. next: hand it in as `after`."""

    events: list[EventAnswer]
    next: int


class Interval(Answer):
    """When something will be, in seconds since 1970: as likely before as after p50, and probably by p90; null: unknown."""

    p50_s: float | None = None
    p90_s: float | None = None


class OptionAnswer(Answer):
    """An option of a menu. The price is binding, so it is expected and the most; other times are wall-clock times."""

    option: int
    plan: str = Field(description="in words: workers by site, server, changes")
    price_usd: float
    expected_usd: float
    maximum_usd: float
    start: Interval
    finish: Interval
    finish_s: float = Field(description="when the plan ends")
    kept: int = Field(description="sold jobs that ended, from whose delays p90 follows")
    alone_usd: float | None = Field(
        default=None, description="its use bought alone at list price; null without list prices"
    )
    saves_usd: float | None = Field(default=None, description="alone_usd - price_usd")
    bound_usd: float | None = Field(
        default=None, description="the least that the same use costs at any site's list"
    )
    gap: float | None = Field(default=None, description="price_usd / bound_usd - 1")
    unit_usd: dict[str, float] = Field(default_factory=dict, description="price of a unit, by resource")
    steps: list[dict[str, Any]] = Field(
        default_factory=list, description="where and when it runs; 100 at most"
    )


class QuoteAnswer(Answer):
    """A quote: options to choose from, or why there are none."""

    id: str
    job: str
    tenant: str
    status: str = Field(
        description="pending, open, accepted, declined, expired, withdrawn, refused, cancelled"
    )
    made_s: float
    expires_s: float
    options: list[OptionAnswer] = Field(default_factory=list)
    refused: Literal["", "capacity", "unsupported", "price"] = Field(
        default="",
        description="why there are no options: no room, not such a job, no price that it could pay",
    )
    why: str = ""
    held: bool = False
    taken: int | None = None
    price_list: str = Field(default="", description="hash of the price list")
    policy: str = Field(default="", description="name and version of the policy")


class Receipt(Answer):
    """What was agreed. certificate: hashes of price list and option, the policy, and what posted prices follow from."""

    quote: QuoteAnswer
    job: JobAnswer
    mode: str = Field(description="queue, brokerage, posted prices or auction")
    price_usd: float | None
    payment_rule: str
    discount_usd: float = Field(description="its share of a pooled discount, which an agreed price has not")
    certificate: dict[str, Any]


class TokenAnswer(Answer):
    """A token, without its secret, except when it is made."""

    id: str
    role: str
    tenant: str
    scopes: list[str]
    name: str
    made_s: float
    expires_s: float | None = None
    used_s: float | None = None
    revoked_s: float | None = None
    state: str = Field(default="valid", description="valid, expired or revoked")
    secret: str | None = Field(default=None, description="only in the answer that makes it")


class ActionAnswer(Answer):
    """A line of the audit log."""

    number: int
    at_s: float
    actor: str
    tenant: str
    action: str
    subject: str
    before: Any = None
    after: Any = None


class TenantAnswer(Answer):
    """A tenant and how many jobs it has by status."""

    name: str
    jobs: dict[str, int]
    commands: list[list[str]]
    any_command: bool


class StatusAnswer(Answer):
    """The service as a whole."""

    name: str
    version: str
    policy: str
    market: str = Field(description="queue, brokerage, posted prices or auction")
    ready: bool
    jobs: dict[str, int]
    record: int


class SiteAnswer(Answer):
    """A resource of a site. price_factor: of the list price that it began with."""

    node: str
    resource: str
    capacity_milli: int = Field(description="thousandths; 2^62: no limit")
    used_milli: int
    price_factor: float
    is_down: bool
    list_usd: float | None = Field(default=None, description="USD per unit-hour, at a factor of 1")


class ReloadAnswer(Answer):
    """What became of CONFIG that was read again."""

    joined: list[str] = Field(description="sites that joined")
    changes: int = Field(description="capacities and prices that changed")
    with_the_next_start: list[str] = Field(description="parts that take effect then")


class Why(Answer):
    """Why a job is where it is; when it would run, if it waits, and at which price, if that keeps it."""

    id: str
    status: str
    rule: str = Field(default="", description="the policy that decides, and how")
    lines: list[str]
    start: Interval = Interval()
    price_usd: float | None = None


class Calibration(Answer):
    """What was measured of a job beside what its declaration predicts, and how wrong the declaration is."""

    iterations: int = Field(description="iterations that were measured; 0: only the whole run time is known")
    predicted_s: float = Field(description="seconds of an iteration by the declaration, where it runs")
    measured_s: float = Field(description="their mean as measured")
    error_s: float | None = Field(default=None, description="its standard error; null: too few iterations")
    factor: float = Field(description="estimated true time over the declared one")
    factor_error: float | None = Field(
        default=None, description="standard deviation of the factor's logarithm"
    )


class Eta(Answer):
    """When a job will start and finish, by simulating the policy forward, and how well earlier forecasts were kept.

    kept: given (jobs that finished after a forecast), by_p50, by_p90 (parts of them that did by then), error_s (median miss)
    """

    id: str
    status: str
    start: Interval
    finish: Interval
    measured: int = Field(description="ended jobs whose run times the forecast is based on")
    calibration: Calibration | None = Field(
        default=None,
        description="of the job itself, which the forecast follows; null: it was not measured yet",
    )
    kept: dict[str, float]


class DryRun(Answer):
    """What would become of a job that is submitted now; nothing was changed."""

    valid: bool
    lines: list[str]
    place: dict[str, Any] = Field(default_factory=dict, description="where it would run first")
    price_usd: float | None = Field(default=None, description="what it would pay, in a market")
    quote: dict[str, Any] = Field(default_factory=dict, description="the menu that it would get, in a market")
    start: Interval = Interval()
    finish: Interval = Interval()


class PricesAnswer(Answer):
    """A price list: rent: node -> resource -> tariff in force; history: when lists came into force, newest first."""

    price_list: str = Field(description="hash of the list")
    rent: dict[str, dict[str, Any]]
    history: list[dict[str, Any]]


class BillLineAnswer(Answer):
    """What a job used of something, and what that costs by itself at list price."""

    job: str
    kind: str = Field(description="rent, transfer, traffic or deploy")
    where: str
    what: str
    amount: float
    unit: str
    usd: float


class BillPaymentAnswer(Answer):
    """A payment or a refund of a job. at_us: when, in the time of the run since the start of the period."""

    job: str
    at_us: int
    usd: float


class BillAnswer(Answer):
    """The bill of a tenant in USD. due_usd: agreed prices less refunds in a market, else list price and discount."""

    tenant: str
    lines: list[BillLineAnswer]
    payments: list[BillPaymentAnswer]
    refunds: list[BillPaymentAnswer]
    list_usd: float
    discount_usd: float = Field(description="its part of what renting together saved; 0 or less")
    due_usd: float

    def bill(self) -> Bill:
        """The bill that this answer says."""
        values = self.model_dump()
        return Bill(
            **{
                **values,
                "lines": tuple(BillLine(**each) for each in values["lines"]),
                "payments": tuple(BillPayment(**each) for each in values["payments"]),
                "refunds": tuple(BillPayment(**each) for each in values["refunds"]),
            }
        )


class BillPage(Answer):
    """Bills of a period."""

    period: str
    from_s: float
    to_s: float
    market: str
    policy: str
    price_list: str = Field(description="hash of the price list in force now")
    bills: list[BillAnswer]


class WhatIfAnswer(Answer):
    """Another policy on a period. runs: recorded, the recorded policy simulated, the other; each with its metrics."""

    period: str
    objective: str
    jobs: int
    runs: list[dict[str, Any]]
    notes: list[str]
    different: list[dict[str, Any]] = Field(description="the jobs that differ most, and why")


class PolicyAnswer(Answer):
    """The policy that decides, and what the one that was asked for would have made of the past week (null: nothing ran)."""

    policy: str
    applied: bool
    whatif: WhatIfAnswer | None
