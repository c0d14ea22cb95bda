"""Requests to a service as values: what is sent, and as what the answer is read. Both clients send them."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from tradewind.files import documents
from tradewind.model.errors import InputError, TradewindError
from tradewind.service.models import (
    ActionAnswer,
    BillPage,
    DryRun,
    Eta,
    EventPage,
    JobAnswer,
    JobPage,
    PolicyAnswer,
    PricesAnswer,
    QuoteAnswer,
    Receipt,
    ReloadAnswer,
    SiteAnswer,
    StatusAnswer,
    TenantAnswer,
    TokenAnswer,
    WhatIfAnswer,
    Why,
)

T = TypeVar("T")
API_VERSION = 1
"""Version of the API that this client speaks. A server serves clients of its own version and refuses others."""
SERVER = "http://127.0.0.1:8642"


class ServiceError(TradewindError):
    """A service said no. code: invalid, forbidden, price_moved, …; data: what helps, such as a fresh quote."""

    def __init__(self, status: int, code: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.status, self.code, self.data = status, code, data


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request."""

    method: str
    path: str
    answer: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    def read(self, status: int, text: str) -> T:
        """The answer; ServiceError where it is an error."""
        check(status, text)
        found: T = TypeAdapter(self.answer).validate_json(text)
        return found


def check(status: int, text: str) -> None:
    """Raise ServiceError if an answer says no."""
    if status < 400:
        return
    try:
        found = json.loads(text)["error"]
        error = ServiceError(status, found["code"], found["message"], found.get("data"))
    except (ValueError, KeyError, TypeError):
        error = ServiceError(status, "unavailable", f"the server answered {status}: {text[:200]}")
    raise error


CONFIG = Path(".config") / "tradewind" / "client.yaml"
"""In the home directory; TRADEWIND_CLIENT names another file. It has `server` and `token_file`."""


def settings(server: str | None, token: str | None, token_file: str | Path | None) -> tuple[str, str]:
    """Address and token: what is given, else what TRADEWIND_SERVER and TRADEWIND_TOKEN_FILE say, else the client's file."""
    own = _own()
    address = server or os.environ.get("TRADEWIND_SERVER") or own.get("server") or SERVER
    if token:
        return address, token
    path = token_file or os.environ.get("TRADEWIND_TOKEN_FILE") or own.get("token_file")
    if not path:
        raise InputError(
            "no token: set TRADEWIND_TOKEN_FILE to the file that has it (out/serve/admin.token for `make serve`), or "
            f"token_file in ~/{CONFIG}"
        )
    path = Path(path).expanduser()
    try:
        return address, Path(path).read_text().strip()
    except OSError as error:
        raise InputError(f"the token cannot be read ({error.strerror})", where=str(path)) from None


def _own() -> dict[str, str]:
    """What the client's file says."""
    named = os.environ.get("TRADEWIND_CLIENT")
    path = Path(named) if named else Path.home() / CONFIG
    if not named and not path.exists():
        return {}
    found = documents.read(path)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InputError("it must be an object with server and token_file, each a text", where=str(path))
    if wrong := [name for name in found if name not in ("server", "token_file")]:
        raise InputError(f"has {wrong[0]!r}; server and token_file are known", where=str(path))
    return found


def headers(token: str) -> dict[str, str]:
    """Headers of every request."""
    return {"Authorization": f"Bearer {token}", "Tradewind-Api": str(API_VERSION)}


def _key(given: str | None) -> dict[str, str]:
    """Every change has a key, so that a repeated request changes nothing twice."""
    return {"Idempotency-Key": given or secrets.token_hex(16)}


def _some(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def submit(job: Mapping[str, Any], tenant: str | None, key: str | None) -> Call[JobAnswer]:
    """Submit a job."""
    return Call(
        method="POST",
        path="/v1/jobs",
        answer=JobAnswer,
        params=_some(tenant=tenant),
        headers=_key(key),
        body=dict(job),
    )


def quote(job: Mapping[str, Any], tenant: str | None, key: str | None) -> Call[QuoteAnswer]:
    """Ask for a price."""
    return Call(
        method="POST", path="/v1/quotes", answer=QuoteAnswer, params=_some(tenant=tenant), headers=_key(key),
        body=dict(job),
    )  # fmt: skip


def get_quote(id_: str) -> Call[QuoteAnswer]:
    """Look at a quote."""
    return Call(method="GET", path=f"/v1/quotes/{id_}", answer=QuoteAnswer)


def quotes(status: str | None, limit: int) -> Call[list[QuoteAnswer]]:
    """Quotes, newest first."""
    params = _some(status=status, limit=limit)
    return Call(method="GET", path="/v1/quotes", answer=list[QuoteAnswer], params=params)


def accept(id_: str, option: int) -> Call[Receipt]:
    """Take an option of a quote."""
    return Call(method="POST", path=f"/v1/quotes/{id_}/accept", answer=Receipt, body={"option": option})


def decline(id_: str) -> Call[QuoteAnswer]:
    """Take no option of a quote."""
    return Call(method="POST", path=f"/v1/quotes/{id_}/decline", answer=QuoteAnswer)


def jobs(status: str | None, tenant: str | None, before: int | None, limit: int) -> Call[JobPage]:
    """A page of jobs."""
    params = _some(status=status, tenant=tenant, before=before, limit=limit)
    return Call(method="GET", path="/v1/jobs", answer=JobPage, params=params)


def job(id_: str, wait_s: float) -> Call[JobAnswer]:
    """One job."""
    return Call(
        method="GET", path=f"/v1/jobs/{id_}", answer=JobAnswer, params={"wait_s": wait_s} if wait_s else {}
    )


def cancel(id_: str) -> Call[JobAnswer]:
    """Cancel a job."""
    return Call(method="POST", path=f"/v1/jobs/{id_}/cancel", answer=JobAnswer, headers=_key(None))


def why(id_: str) -> Call[Why]:
    """Why a job is where it is."""
    return Call(method="GET", path=f"/v1/jobs/{id_}/why", answer=Why)


def events(id_: str, after: int) -> Call[EventPage]:
    """What happened to a job."""
    return Call(method="GET", path=f"/v1/jobs/{id_}/events", answer=EventPage, params={"after": after})


def status() -> Call[StatusAnswer]:
    """The service as a whole."""
    return Call(method="GET", path="/v1/status", answer=StatusAnswer)


def sites() -> Call[list[SiteAnswer]]:
    """Sites, their capacity and use."""
    return Call(method="GET", path="/v1/sites", answer=list[SiteAnswer])


def join_sites(sites: Mapping[str, Any]) -> Call[list[SiteAnswer]]:
    """Let sites join that the service does not know."""
    return Call(method="POST", path="/v1/sites", answer=list[SiteAnswer], body=dict(sites))


def reload() -> Call[ReloadAnswer]:
    """Let the service read CONFIG again."""
    return Call(method="POST", path="/v1/reload", answer=ReloadAnswer)


def prices() -> Call[PricesAnswer]:
    """The price list in force."""
    return Call(method="GET", path="/v1/prices", answer=PricesAnswer)


def tenants() -> Call[list[TenantAnswer]]:
    """Tenants."""
    return Call(method="GET", path="/v1/tenants", answer=list[TenantAnswer])


def tokens() -> Call[list[TokenAnswer]]:
    """All tokens."""
    return Call(method="GET", path="/v1/tokens", answer=list[TokenAnswer])


def make_token(
    role: str, tenant: str, name: str, valid_s: float | None, scopes: Sequence[str] = ()
) -> Call[TokenAnswer]:  # fmt: skip
    """Make a token; without scopes it has all."""
    body = _some(role=role, tenant=tenant, name=name, valid_s=valid_s, scopes=list(scopes))
    return Call(method="POST", path="/v1/tokens", answer=TokenAnswer, body=body)


def revoke_token(id_: str) -> Call[TokenAnswer]:
    """Revoke a token."""
    return Call(method="DELETE", path=f"/v1/tokens/{id_}", answer=TokenAnswer)


def actions(limit: int) -> Call[list[ActionAnswer]]:
    """The audit log."""
    return Call(method="GET", path="/v1/actions", answer=list[ActionAnswer], params={"limit": limit})


def bills(tenant: str | None, period: str | None) -> Call[BillPage]:
    """Bills of a period."""
    return Call(method="GET", path="/v1/bills", answer=BillPage, params=_some(tenant=tenant, period=period))


def export(period: str | None, part: str) -> Call[dict[str, Any]]:
    """A period as a scenario or a run file."""
    params = _some(period=period, part=part)
    return Call(method="GET", path="/v1/export", answer=dict[str, Any], params=params)


def whatif(policy: str, params: Mapping[str, Any], period: str | None) -> Call[WhatIfAnswer]:
    """Another policy on what happened."""
    values = _some(policy=policy, params=json.dumps(dict(params)), period=period)
    return Call(method="GET", path="/v1/whatif", answer=WhatIfAnswer, params=values)


def dry_run(job: Mapping[str, Any], tenant: str | None) -> Call[DryRun]:
    """Ask what would become of a job."""
    params = _some(tenant=tenant, dry_run=True)
    return Call(method="POST", path="/v1/jobs", answer=DryRun, params=params, body=dict(job))


def eta(id_: str) -> Call[Eta]:
    """When a job will start and finish."""
    return Call(method="GET", path=f"/v1/jobs/{id_}/eta", answer=Eta)


def act(id_: str, what: str, fields: Mapping[str, Any] | None = None) -> Call[JobAnswer]:
    """Suspend, resume or change a job."""
    body = None if fields is None else dict(fields)
    return Call(method="POST", path=f"/v1/jobs/{id_}/{what}", answer=JobAnswer, headers=_key(None), body=body)


def set_site(name: str, state: str | None, capacity: Mapping[str, float]) -> Call[list[SiteAnswer]]:
    """Change a site."""
    body = {"state": state, "capacity": dict(capacity)}
    return Call(method="POST", path=f"/v1/sites/{name}", answer=list[SiteAnswer], body=body)


def set_prices(prices: Mapping[str, Any]) -> Call[PricesAnswer]:
    """Put a price list into force."""
    return Call(method="POST", path="/v1/prices", answer=PricesAnswer, body=dict(prices))


def policy(name: str, params: Mapping[str, Any], apply: bool) -> Call[PolicyAnswer]:
    """Ask for another policy."""
    body = {"name": name, "params": dict(params)}
    return Call(method="POST", path="/v1/policy", answer=PolicyAnswer, params={"apply": apply}, body=body)
