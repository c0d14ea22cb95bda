"""Pages for people: what runs, why, at which price. They read the tables; changes go through the API."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from tradewind.model.tenant import SpendCap
from tradewind.model.units import MILLI, UNLIMITED
from tradewind.report.bills import usd_text
from tradewind.report.html import stylesheet
from tradewind.service.app_state import service_of
from tradewind.service.errors import ApiError
from tradewind.service.feed import document
from tradewind.service.models import QuoteAnswer
from tradewind.service.money import RUNNING, money
from tradewind.service.operations import DRAINED, kept_value
from tradewind.service.reasons import why_of
from tradewind.service.routes_sites import prices_of
from tradewind.service.service import Service, job_document
from tradewind.service.telling import told
from tradewind.service.terms import answer
from tradewind.service.tokens import Token
from tradewind.store.board import Row

routes = APIRouter(include_in_schema=False)
COOKIE, ASKED_BY = "tradewind", "x-tradewind-page"
"""The cookie with a token, and the header with which our own script says that it may be used for the API: no other
site's page can send it."""
MOST_ROWS = 200
OFFERED = ("quoted", "accepted", "declined")
"""Kinds of events that are about an offer."""
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
TABS = {
    "/": "Now", "/jobs": "Jobs", "/market": "Market", "/tenants": "Tenants", "/bills": "Bills",
    "/whatif": "What if", "/audit": "Audit", "/admin": "Admin",
}  # fmt: skip
OPERATORS = ("/audit", "/admin", "/whatif")
"""Pages that are not for tenants."""


def header_from_cookie(request: Request) -> None:
    """Let our own pages use the API with the token of the cookie."""
    secret = request.cookies.get(COOKIE)
    if secret and ASKED_BY in request.headers and "authorization" not in request.headers:
        request.scope["headers"].append((b"authorization", f"Bearer {secret}".encode("latin-1", "replace")))
        request.scope.pop("_headers", None)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("tradewind.service"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
    )
    found.filters.update(
        clock=_clock,
        when=_when,
        usd=_usd,
        span=_span,
        money=usd_text,
        price=_unit_price,
        told=told,
        short=_short,
    )
    return found


def _clock(at_s: float | None) -> str:
    return "–" if at_s is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at_s))


def _when(at_s: float) -> str:
    """A time of the day (UTC), with its date if that is not today's."""
    at, today = time.gmtime(at_s), time.gmtime()
    same = (at.tm_year, at.tm_yday) == (today.tm_year, today.tm_yday)
    form = "%H:%M:%S" if same else "%d %b %H:%M" if at.tm_year == today.tm_year else "%Y-%m-%d %H:%M"
    return time.strftime(form, at)


def _usd(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f} USD"


def _unit_price(value: float) -> str:
    """A price of a unit: cents, and as many digits after them as it has, to a millionth."""
    whole, digits = f"{value:,.6f}".split(".")
    return f"{whole}.{digits.rstrip('0'):0<2}"


def _short(id_: str) -> str:
    """The id of a job with less of its random end."""
    return re.sub(r"(-[0-9a-f]{4})[0-9a-f]{12}$", r"\1", id_)


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


class Visit:
    """A request of a person who has signed in."""

    def __init__(self, request: Request) -> None:
        self.service, self.path = service_of(request), request.url.path
        self.bearer = f"Bearer {request.cookies.get(COOKIE, '')}"
        self.token: Token = self.service.token(self.bearer, "read")

    @property
    def own(self) -> dict[str, Any]:
        """Restricts rows to those of a tenant's own."""
        return {"tenant": self.token.tenant} if self.token.role == "tenant" else {}

    def needs(self, *roles: str) -> None:
        """Refuse others."""
        self.service.token(self.bearer, "read", *roles)

    def part(self, name: str, **values: Any) -> HTMLResponse:
        """A part of a page, which its script asks for."""
        return HTMLResponse(_templates().get_template(name).render(**values), headers=HEADERS)

    async def page(self, name: str, **values: Any) -> HTMLResponse:
        """A page with its frame."""
        tabs = [
            (path, text, path == self.path or (path != "/" and self.path.startswith(path)))
            for path, text in TABS.items()
            if self.token.role != "tenant" or path not in OPERATORS
        ]
        service = self.service
        shown = {
            "tabs": tabs, "token": self.token, "name": service.config.file.name, "policy": service.config.spec.name,
            "market": service.market, "ready": service.engine.ready, "tenants": list(service.config.file.tenants),
            "prices": service.config.spec.pricer,
            "last": await service.read(lambda: service.board.last("board_events", **self.own)),
        }  # fmt: skip
        return HTMLResponse(_templates().get_template(name).render(**shown, **values), headers=HEADERS)


def refused(request: Request, error: ApiError) -> Response | None:
    """A page for people instead of an error for programs; None for requests of programs."""
    if request.url.path.startswith("/v1") or "text/html" not in request.headers.get("accept", ""):
        return None
    if error.status == 401:
        return RedirectResponse("/login", 303)
    text = _templates().get_template("error.html").render(message=str(error), status=error.status)
    return HTMLResponse(text, error.status, headers=HEADERS)


# ---------------------------------------------------------------------- signing in
@routes.get("/login")
async def login_page(request: Request) -> HTMLResponse:
    """Where a token is handed in; meanwhile the process that draws charts starts."""
    service_of(request).painter.start()
    return HTMLResponse(_templates().get_template("login.html").render(wrong=""), headers=HEADERS)


@routes.post("/login")
async def login(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Keep a valid token in a cookie that no script can read."""
    service = service_of(request)
    try:
        service.token(f"Bearer {token.strip()}", "read")
    except ApiError as error:
        text = _templates().get_template("login.html").render(wrong=str(error))
        return HTMLResponse(text, error.status, headers=HEADERS)
    answered = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    answered.set_cookie(COOKIE, token.strip(), httponly=True, samesite="strict", secure=secure, path="/")
    return answered


@routes.post("/logout")
async def logout() -> Response:
    """Forget the token."""
    answered = RedirectResponse("/login", 303)
    answered.delete_cookie(COOKIE, path="/")
    return answered


@routes.get("/page/{file}")
async def static(file: str) -> Response:
    """Our style sheet and our script."""
    kinds = {"app.css": "text/css", "app.js": "text/javascript"}
    if file not in kinds:
        raise ApiError("not_found", f"there is no file {file!r}")
    return Response(_static(file), media_type=kinds[file], headers={"Cache-Control": "max-age=300"})


@cache
def _static(file: str) -> str:
    text = resources.files("tradewind.service").joinpath("static", file).read_text(encoding="utf-8")
    return stylesheet() + text if file == "app.css" else text


# ---------------------------------------------------------------------- pages
@routes.get("/")
async def now(request: Request) -> HTMLResponse:
    """What happens now: jobs by status, sites, the newest events."""
    visit = Visit(request)
    board, own = visit.service.board, visit.own
    counts = await visit.service.read(lambda: board.counts("board_jobs", "status", **own))
    sites = await sites_of(visit.service)
    recent = await visit.service.read(lambda: board.rows("board_events", most=15, **own))
    running = await visit.service.read(lambda: board.rows("board_jobs", most=12, status=list(RUNNING), **own))
    rates = await visit.service.read(lambda: money(visit.service)) if not own else None
    return await visit.page(
        "now.html", counts=counts, sites=sites, events=await told_to(visit, recent), money=rates,
        jobs=[job_document(row) for row in running], now=time.time(),
    )  # fmt: skip


async def sites_of(service: Service) -> list[dict[str, Any]]:
    """Sites with capacity, use in percent, and list price per hour of what is in use."""
    rows = await service.read(lambda: service.board.rows("board_sites", most=10_000))
    setup = service.config.setup
    rent = {
        (setup.nodes[node].name, setup.resources[resource]): tariff.usd[0]
        for (node, resource), tariff in setup.rent.items()
    }
    drained = {
        setup.nodes[n].name for n in await service.read(lambda: kept_value(service.board, DRAINED)) or ()
    }
    found = []
    for row in sorted(rows, key=lambda row: (row["node"], row["resource"])):
        price = rent.get((row["node"], row["resource"]), 0.0) * row["price_factor"]
        used = row["used_milli"] / MILLI
        most = row["capacity_milli"] / MILLI if row["capacity_milli"] < UNLIMITED else None
        share = 100 * used / most if most else 0.0
        found.append(
            {
                **row,
                "most": most,
                "used": used,
                "share": round(share, 1),
                "price": price,
                "drains": row["node"] in drained,
                "usd_per_hour": used * price,
            }
        )
    return found


@routes.get("/jobs")
async def jobs(request: Request, before: int | None = None, status: str = "") -> HTMLResponse:
    """Jobs, newest first, and a form to submit one."""
    visit = Visit(request)
    equal = {**visit.own, **({"status": status} if status else {})}
    rows = await visit.service.read(
        lambda: visit.service.board.rows("board_jobs", before=before, most=MOST_ROWS, **equal)
    )
    more = rows[-1]["number"] if len(rows) == MOST_ROWS else None
    counts = await visit.service.read(lambda: visit.service.board.counts("board_jobs", "status", **visit.own))
    return await visit.page(
        "jobs.html",
        example=_example(visit.service),
        jobs=[job_document(row) for row in rows],
        more=more,
        status=status,
        counts=counts,
        now=time.time(),
    )


def _example(service: Service) -> str:
    """A job to start from, of a kind that the policy runs."""
    setup, works = service.config.setup, service.config.spec.works
    first, last, node = setup.resources[0], setup.resources[-1], setup.nodes[setup.hosts[0]].name
    lines, second = ["id: my-job", f"worker: {{{first}: 1}}"], service.config.file.speed  # of the run
    if "fixed" in works:
        lines += [f"work: {{kind: fixed, runtime_us: {30 * second:g} s}}"]
    else:
        lines += ["architecture: ps", f"server: {{{last}: 1}}", "servers: 1"]
        if "dataset" in works:
            lines += [
                "workers_max: 2",
                f"work: {{kind: dataset, chunks: {{{node}: 20}}, chunk_bytes: 1 MB, epochs: 1,",
            ]
            lines += [
                "  chunk_epochs_per_worker_slot: 2}",
                "utility: {of: delay_slots, shape: linear, args: [50, 1]}",
            ]
        elif "stream" in works:
            lines += [f"work: {{kind: stream, bytes_per_worker_slot: 1 GB, stay_us: {60 * second:g} s}}"]
        else:
            lines += [f"work: {{kind: rounds, count: 30, compute_us: {second:g} s, comm: colocated}}"]
            lines += ["model_bytes: 1 MB", "worker_bps: 1 Gbit/s", "server_bps: 1 Gbit/s"]
    lines += ["command: [sh, -c, 'for i in $(seq 30); do echo step $i; sleep 1; done']", ""]
    return "\n".join(lines)


@routes.get("/jobs/{id}")
async def one_job(request: Request, id: str) -> HTMLResponse:
    """One job: its state, why, where, its events and its log."""
    visit = Visit(request)
    row = await visit.service.job(visit.token, id)
    told = await visit.service.read(
        lambda: visit.service.board.rows("board_events", after=0, most=MOST_ROWS, id=id)
    )
    reasons = await why_of(visit.service, row, forecast=False)
    quotes = await visit.service.read(lambda: visit.service.board.rows("board_quotes", job=id, most=20))
    shown = await visit.service.read(
        lambda: [_quote(answer(visit.service, each, visit.token)) for each in quotes]
    )
    return await visit.page(
        "job.html", job=job_document(row), events=await told_to(visit, told), why=reasons.lines, rule=reasons.rule,
        quotes=shown, text=json.dumps(json.loads(row["body"]), indent=1),
        text_workers=json.loads(row["body"]).get("workers", 1),
        now=time.time(),
    )  # fmt: skip


def _quote(found: QuoteAnswer) -> dict[str, Any]:
    return {**found.model_dump(), "left_s": max(0.0, found.expires_s - time.time())}


@routes.get("/market")
async def market(request: Request) -> HTMLResponse:
    """Quotes, open ones first; prices of sites."""
    visit = Visit(request)
    rows = await visit.service.read(
        lambda: visit.service.board.rows("board_quotes", most=MOST_ROWS, **visit.own)
    )
    rows.sort(key=lambda row: (row["status"] != "open", -row["made_s"]))
    quotes = await visit.service.read(
        lambda: [_quote(answer(visit.service, row, visit.token)) for row in rows]
    )
    asked = sum(quote["status"] in ("accepted", "declined", "expired") for quote in quotes)
    taken = [quote for quote in quotes if quote["status"] == "accepted"]
    return await visit.page(
        "market.html", open=[quote for quote in quotes if quote["status"] == "open"],
        answered=[quote for quote in quotes if quote["status"] != "open"],
        sites=await sites_of(visit.service), asked=asked, taken=len(taken),
        revenue=sum(_price(quote) for quote in taken), list=await prices_of(visit.service),
    )  # fmt: skip


async def told_to(visit: Visit, rows: Sequence[Row], *, reckons: bool = False) -> list[dict[str, Any]]:
    """Events as people see them; those of quotes with price and plan; reckons: and how the price came about."""
    found = [document(row) for row in rows]
    ids = list({each["id"] for each in found if each["kind"] in OFFERED})
    if not ids:
        return found
    quotes = await visit.service.read(lambda: visit.service.board.rows("board_quotes", job=ids, most=1000))
    for each in found:
        mine = [q for q in quotes if q["job"] == each["id"] and q["made_s"] <= each["at_s"] + 1.0]
        if each["kind"] in OFFERED and mine:
            newest = max(mine, key=lambda q: float(q["made_s"]))
            each["body"]["offer"] = _offer(json.loads(newest["body"]), reckons)
    return found


def _offer(body: Mapping[str, Any], reckons: bool) -> str:
    taken, options = body.get("taken", -1), body["options"]
    if not options:
        return ": ".join(text for text in (body["refused"], body["why"]) if text)
    option = (
        options[taken] if taken is not None and taken >= 0 else min(options, key=lambda o: o["price_usd"])
    )
    why = f" ({body['why']})" if body["why"] and reckons else ""
    return f"{option['price_usd']:,.2f} USD: {option['plan']}{why}"


def _price(quote: Mapping[str, Any]) -> float:
    taken = quote["taken"]
    return float(quote["options"][taken]["price_usd"] or 0.0) if taken is not None and taken >= 0 else 0.0


@routes.get("/tenants")
async def tenants(request: Request) -> HTMLResponse:
    """Tenants: jobs by status, and what was agreed."""
    visit = Visit(request)
    found = []
    for name in visit.service.config.file.tenants:
        if visit.own and name != visit.token.tenant:
            continue
        counts = await visit.service.read(
            partial(visit.service.board.counts, "board_jobs", "status", tenant=name)
        )
        jobs = await visit.service.read(
            partial(visit.service.board.rows, "board_jobs", most=10_000, tenant=name)
        )
        spent = sum(row["price_usd"] or 0.0 for row in jobs)
        cap, limits = visit.service.config.setup.cap_of(name), visit.service.config.file.tenants[name]
        budget = "no limit" if cap is None else _budget(cap)
        found.append(
            {
                "name": name,
                "counts": counts,
                "jobs": sum(counts.values()),
                "usd": spent,
                "most": limits.jobs,
                "budget": budget,
            }
        )
    return await visit.page("tenants.html", found=found)


def _budget(cap: SpendCap) -> str:
    parts = [
        f"{usd:g} USD {per}"
        for usd, per in ((cap.total_usd, "in total"), (cap.slot_usd, "per slot"))
        if usd is not None
    ]
    return ", ".join(parts)
