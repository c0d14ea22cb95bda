"""What the charts of the pages show: rows of the tables as plain data; `Service.painter` draws them."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from tradewind.model.units import MILLI, UNLIMITED
from tradewind.service import charts
from tradewind.service.errors import ApiError
from tradewind.service.money import running_jobs
from tradewind.service.pages import HEADERS, MOST_ROWS, Visit
from tradewind.service.service import Service, job_document
from tradewind.service.telling import calibration
from tradewind.store.board import Row
from tradewind.worlds.fleets.processes.launch import folder_of
from tradewind.worlds.fleets.processes.reports import ReportReader

routes = APIRouter(include_in_schema=False)
MOST_BARS, MOST_POINTS, MOST_RANKS = 25, 400, 8
"""Jobs in a Gantt chart, points of a curve, ranks of which the first that reports is shown."""


@routes.get("/charts/{name}")
async def chart(request: Request, name: str, job: str = "", status: str = "") -> HTMLResponse:
    """A chart as a part of a page; empty where there is nothing to draw."""
    visit = Visit(request)
    makers = {
        "topology": lambda: _topology(visit.service, visit.own),
        "gantt": lambda: _gantt(visit.service, {**visit.own, **({"status": status} if status else {})}),
        "quoted": lambda: {"rows": _answered(visit.service, visit.own)},
        "units": lambda: _units(visit.service, visit.own),
        "acceptance": lambda: {"rows": _answered(visit.service, visit.own)},
        "listed": lambda: _listed(visit.service),
    }
    if name == "iterations":
        row = await visit.service.job(visit.token, job)
        data = await visit.service.read(lambda: _iterations(visit.service, row))
    elif name in makers:
        data = await visit.service.read(makers[name])
    else:
        raise ApiError(
            "not_found", f"there is no chart {name!r}; there are {', '.join([*makers, 'iterations'])}"
        )
    html = await visit.service.painter.do(0, charts.paint, name, json.dumps(data))
    return HTMLResponse(html, headers=HEADERS)


def _topology(service: Service, own: Mapping[str, Any]) -> dict[str, Any]:
    setup = service.config.setup
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in service.board.rows("board_sites", most=10_000):
        rows[row["node"]].append(row)
    servers: dict[str, int] = defaultdict(int)
    flows: dict[tuple[str, str], int] = defaultdict(int)
    for row, _ in running_jobs(service, own):
        places = json.loads(row["places"])
        at = list(places.get("servers", {}))
        for site, count in places.get("servers", {}).items():
            servers[site] += count
        for site, count in places.get("workers", {}).items():
            for server in at:
                if server != site:
                    flows[site, server] += count
        for route in places.get("routes", []):
            a, _, b = route.partition("->")
            flows[a, b] += 1
    shown = [setup.nodes[n] for n in setup.hosts] if len(setup.hosts) <= 40 else []
    switches = [node for node in setup.nodes if node.kind == "switch"]
    names = {node.name for node in (*shown, *switches)}
    links = [
        link
        for link in setup.links
        if setup.nodes[link.a].name in names and setup.nodes[link.b].name in names
    ]
    return {
        "sites": [_site(node.name, rows[node.name], servers[node.name]) for node in shown]
        + [{"name": node.name, "use": "", "capacity": 0.0, "share": 0.0, "servers": 0} for node in switches],
        "links": [[setup.nodes[link.a].name, setup.nodes[link.b].name] for link in links],
        "bps": [0.0] * len(links),
        "flows": [[a, b, n] for (a, b), n in flows.items() if a in names and b in names],
    }


def _site(name: str, rows: Sequence[Row], servers: int) -> dict[str, Any]:
    """A site by its scarcest resource."""
    limited = [row for row in rows if 0 < row["capacity_milli"] < UNLIMITED]
    share = max((row["used_milli"] / row["capacity_milli"] for row in limited), default=0.0)
    scarce = max(limited, key=lambda row: row["used_milli"] / row["capacity_milli"], default=None)
    text = "down" if any(row["is_down"] for row in rows) else ""
    if scarce is not None and not text:
        text = f"{scarce['used_milli'] / MILLI:g}/{scarce['capacity_milli'] / MILLI:g} {scarce['resource']}"
    most = max((row["capacity_milli"] / MILLI for row in limited), default=1.0)
    return {"name": name, "use": text, "capacity": most, "share": share, "servers": servers}


def _gantt(service: Service, equal: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"finished": "good", "left": "good", "failed": "bad", "cancelled": "bad", "refused": "bad"}
    rows = [job_document(row) for row in service.board.rows("board_jobs", most=MOST_BARS, **equal)]
    names = ("id", "submitted_s", "started_s", "ended_s")
    jobs = [{**{name: row[name] for name in names}, "kind": kinds.get(row["status"], "runs")} for row in rows]
    over = all(row["is_over"] for row in rows)
    return {"now_s": 0.0 if over else float(int(time.time())), "jobs": jobs[::-1]}


def _answered(service: Service, own: Mapping[str, Any]) -> list[list[float]]:
    """Quotes that were answered: when they were made, the lowest price, whether they were taken."""
    states = ["accepted", "declined", "expired"]
    rows = service.board.rows("board_quotes", status=states, most=MOST_POINTS, **own)
    found = []
    for row in rows:
        prices = [option["price_usd"] for option in json.loads(row["body"])["options"]]
        if prices:
            found.append([row["made_s"], min(prices), float(row["status"] == "accepted")])
    return sorted(found)


def _units(service: Service, own: Mapping[str, Any]) -> dict[str, Any]:
    """The price of a unit of every resource in quotes, by the time at which they were made."""
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in sorted(
        service.board.rows("board_quotes", most=MOST_POINTS, **own), key=lambda row: float(row["made_s"])
    ):
        for option in json.loads(row["body"])["options"][:1]:
            for resource, usd in option.get("unit_usd", {}).items():
                curves[resource].append((row["made_s"], usd))
    return {"curves": [[name, points] for name, points in sorted(curves.items())]}


def _listed(service: Service) -> dict[str, Any]:
    """List prices over time, from the events of the service."""
    setup, now = service.config.setup, float(int(time.time()))
    told = service.board.rows("board_events", after=0, most=MOST_ROWS * 5, kind="changed", id="")
    first = service.board.rows("board_events", after=0, most=1)
    begin = float(int(first[0]["at_s"])) if first else now - 1
    curves: dict[tuple[int, int], list[tuple[float, float]]] = {
        key: [(begin, tariff.usd[0])] for key, tariff in setup.rent.items()
    }
    for row in told:
        fact = json.loads(row["body"])
        key = (fact["a"], fact["b"])
        if fact["kind"] == "price" and key in curves:
            curves[key].append((row["at_s"], setup.rent[key].usd[0] * fact["value"] / fact.get("of", MILLI)))
    named = [
        [f"{setup.nodes[n].name} {setup.resources[r]}", points] for (n, r), points in sorted(curves.items())
    ]
    return {"first_s": begin, "last_s": max(now // 10 * 10 + 10, begin + 1), "curves": named}


def _iterations(service: Service, row: Row) -> dict[str, Any]:
    """Time of the iterations of a rank, and what was predicted for each attempt."""
    if row["job"] is None:
        return {"measured": [], "predicted": []}
    told = service.board.rows(
        "board_events", after=0, most=1000, id=row["id"], kind=["started", "arrived", "measured"]
    )
    home = next((h for each in told if (h := json.loads(each["body"]).get("home")) is not None), row["job"])
    folder = service.data / "state" / "jobs" / folder_of(home, row["id"])
    by_rank = (
        [r for r in ReportReader(folder, rank, 0).drain() if r.seconds > 0] for rank in range(MOST_RANKS)
    )
    reports = next((each for each in by_rank if each), [])
    step = max(1, len(reports) // MOST_POINTS)
    points = [[each.iteration, each.seconds] for each in reports[::step]]
    guessed = [json.loads(each["body"]).get("predicted_s") for each in told if each["kind"] == "started"]
    known = [each for each in guessed if each]
    ends = (points[0][0], points[-1][0]) if points else ()
    means = [json.loads(each["body"]) for each in told if each["kind"] == "measured"]
    return {
        "measured": points,
        "predicted": [[x, known[-1]] for x in ends] if known else [],
        "said": f"On average {calibration(means[-1])}." if means else "",
    }
