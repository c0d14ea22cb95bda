"""What the API answers, typed; the client reads the same models."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Fields may be added in later versions; readers ignore what they do not know."""

    model_config = ConfigDict(extra="ignore")


class JobAnswer(Answer):
    """A job. Times are seconds since 1970."""

    id: str
    tenant: str
    status: str = Field(
        description="submitted, waiting, quoted, scheduled, running, finished, left, declined, refused, cancelled, failed"
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
    options: list[dict[str, Any]] = Field(default_factory=list)
    refused: str = ""
    why: str = ""
    held: bool = False
    taken: int | None = None
    price_list: str = Field(default="", description="hash of the price list")
    policy: str = ""


class Receipt(Answer):
    """What was agreed."""

    quote: QuoteAnswer
    job: JobAnswer
    price_usd: float | None
    payment_rule: str


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


class Why(Answer):
    """Why a job is where it is."""

    id: str
    status: str
    lines: list[str]


class DryRun(Answer):
    """What would become of a job."""

    valid: bool
    lines: list[str]
