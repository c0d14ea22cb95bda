"""The pages in a real browser: a tenant asks for a price, accepts, sees the job run, reads its log, cancels another."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, Page, sync_playwright

from tests.service.servers import QUEUE, SITES, Server, checked, job, over, running, until
from tradewind.model.units import parse_time_us
from tradewind.service.config import parse
from tradewind.service.pages import _example

MARKET = {
    **QUEUE,
    "setup": {
        "objective": "profit_usd", "slot_us": "1 s", "window_slots": 600, "resources": ["gpu", "ps"],
        "forecast": {"jobs": 100, "jobs.gpu": 100, "jobs.ps": 100},
        "nodes": [{"name": "oregon", "kind": "server", "capacity": {"gpu": 2, "ps": 2}}],
    },
    "policy": {"name": "dps"},
    "quotes": {"hold_s": 60},
}  # fmt: skip
SOLD = """id: {name}
architecture: ps
worker: {{gpu: 1}}
server: {{ps: 1}}
servers: 1
work: {{kind: rounds, count: 60, compute_us: 1 s, comm: colocated}}
model_bytes: 1 MB
worker_bps: 1 Gbit/s
server_bps: 1 Gbit/s
command: [sh, -c, 'echo hello from {name}; {report}; sleep 60']
"""
WAIT_MS = 60_000
REPORT = """for i in 1 2 3; do echo "{\\"iteration\\": $i, \\"seconds\\": 1.25}" >> $TRADEWIND_REPORT; done"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


def signed_in(browser: Browser, server: Server, secret: str, **look: Any) -> tuple[Page, list[str]]:
    """A page of somebody who handed in a token, and the errors of its console."""
    page = browser.new_context(**look).new_page()
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(server.address)
    assert page.url.endswith("/login")
    page.fill("#secret", secret)
    page.click("button")
    page.wait_for_url(f"{server.address}/")
    return page, problems


def test_a_tenant_asks_for_a_price_accepts_reads_the_log_and_cancels(
    browser: Browser, tmp_path: Path
) -> None:
    with running(tmp_path, MARKET) as server:
        page, problems = signed_in(browser, server, server.secret("tenant", "red"))
        assert page.locator("nav a").all_inner_texts() == ["Now", "Jobs", "Market", "Tenants", "Bills"]
        page.goto(f"{server.address}/jobs")
        page.fill("#yaml", SOLD.format(name="first", report=REPORT))
        page.click("#submit button")
        page.wait_for_selector("#said:not(:empty)", timeout=WAIT_MS)
        page.goto(f"{server.address}/market")
        page.click("button:has-text('Accept')", timeout=WAIT_MS)
        page.wait_for_selector("#said:has-text('Agreed')", timeout=WAIT_MS)
        page.wait_for_selector(
            "[aria-label='Answered quotes'] .badge.accepted", timeout=WAIT_MS
        )  # without loading the page again
        assert "expected acceptance" not in page.inner_text(
            "main"
        )  # how the seller reckons is not the buyer's
        page.goto(f"{server.address}/jobs")
        page.click("tbody a")
        page.wait_for_selector(".badge.running", timeout=WAIT_MS)
        page.wait_for_selector("#log:has-text('hello from first')", timeout=WAIT_MS)
        page.wait_for_selector("#eta:has-text('finishes')", timeout=WAIT_MS)
        page.wait_for_selector(
            "figure svg[aria-label*='measured and predicted']", timeout=WAIT_MS, state="attached"
        )
        assert "predicted 1 s" in page.inner_text("figcaption")
        page.on("dialog", lambda dialog: dialog.accept())
        page.click("button:has-text('Cancel this job')")
        page.wait_for_selector("header .badge.cancelled", timeout=WAIT_MS)
        page.goto(f"{server.address}/bills", timeout=WAIT_MS)
        assert "payment" in page.inner_text("[data-bill=red]")
        with page.expect_download() as saved:
            page.click("a.download")
        text = saved.value.path().read_text()
        assert text.startswith("tenant,kind,job")
        assert "red,payment,first-" in text
        assert "blue" not in text
        assert problems == []


def test_a_price_that_holds_no_more_is_said_and_the_fresh_quote_can_be_taken(
    browser: Browser, tmp_path: Path
) -> None:
    with running(tmp_path, MARKET) as server, server.client() as admin:
        page, _ = signed_in(browser, server, server.secret("tenant", "red"))
        asked = SOLD.format(name="moved", report=":")
        kind = {"Content-Type": "application/yaml"}
        first = checked(admin.post("/v1/quotes", params={"tenant": "red"}, content=asked, headers=kind))
        page.route(
            "**/v1/events*", lambda route: route.abort()
        )  # the page does not hear that it was withdrawn
        page.goto(f"{server.address}/market")
        page.wait_for_selector("button:has-text('Accept')", timeout=WAIT_MS)
        checked(admin.post("/v1/sites/oregon", json={"capacity": {"gpu": 1}}))
        page.click("button:has-text('Accept')", timeout=WAIT_MS)
        page.wait_for_selector("#said:has-text('A fresh quote is open')", timeout=WAIT_MS)
        assert checked(admin.get(f"/v1/jobs/{first['job']}"))["status"] == "quoted"  # nothing was bought
        page.goto(f"{server.address}/market")
        page.click("button:has-text('Accept')", timeout=WAIT_MS)
        page.wait_for_selector("#said:has-text('Agreed')", timeout=WAIT_MS)
        until(admin, first["job"], "running")
        none = checked(admin.post("/v1/quotes", params={"tenant": "red"}, content=asked, headers=kind))
        assert (none["options"], none["refused"]) == ([], "capacity")
        page.goto(f"{server.address}/market")
        assert none["why"] in page.inner_text("[aria-label='Answered quotes'] tr:has(.badge.refused)")
        page.goto(server.address)
        assert none["why"] in page.inner_text(".events li:has(.badge.refused)")


@pytest.mark.parametrize("speed", [1, 720])
def test_the_job_that_a_page_offers_declares_what_its_command_takes(speed: int) -> None:
    config = parse({**MARKET, "speed": speed}, Path())
    work = yaml.safe_load(_example(SimpleNamespace(config=config)))["work"]  # type: ignore[arg-type]
    assert work["count"] * parse_time_us(work["compute_us"]) == 30_000_000 * speed


def test_an_operator_sees_everybody_and_the_audit_log_and_a_tenant_does_not(
    browser: Browser, queue: Server
) -> None:
    with queue.tenant("red") as red:
        id_ = checked(red.post("/v1/jobs", json=job("sleep", "0", id="seen")))["id"]
        over(red, id_)
    page, problems = signed_in(browser, queue, queue.secret("operator"))
    for path in (
        "/",
        "/jobs",
        f"/jobs/{id_}",
        "/market",
        "/tenants",
        "/bills",
        "/whatif?policy=srtf",
        "/audit",
    ):
        page.goto(f"{queue.address}{path}")
        assert page.locator("h1").count() == 1
    assert "job.submit" in page.inner_text("main")
    page.goto(f"{queue.address}/whatif")  # offers other policies first than the one that decides
    assert page.locator("#policy option").all_inner_texts()[-1] == "fifo-backfill"
    page.goto(f"{queue.address}/admin")
    assert "Tokens" not in page.inner_text("main")  # sites are the operators', tokens the admins'
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("button:has-text('Drain dublin')")
    page.wait_for_selector("tr:has-text('dublin') .badge:has-text('drains')", timeout=WAIT_MS)
    page.click("button:has-text('Leave dublin')")
    page.wait_for_selector("tr:has-text('dublin') .badge:has-text('down')", timeout=WAIT_MS)
    page.click("button:has-text('Join dublin')")
    page.wait_for_selector("tr:has-text('dublin') .badge", timeout=WAIT_MS, state="detached")
    assert problems == []
    stranger, _ = signed_in(browser, queue, queue.secret("tenant", "blue"))
    for path, status in (("/audit", 403), ("/whatif", 403), ("/admin", 403), (f"/jobs/{id_}", 404)):
        answer = stranger.goto(f"{queue.address}{path}")
        assert answer is not None
        assert answer.status == status
    stranger.goto(f"{queue.address}/jobs")
    assert id_ not in stranger.inner_text("main")


def test_an_admin_makes_and_revokes_a_token_tries_and_changes_a_job_and_downloads_the_records(
    browser: Browser, queue: Server
) -> None:
    page, problems = signed_in(browser, queue, (queue.data / "admin.token").read_text().strip())
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{queue.address}/admin")
    page.select_option("#of", "blue")
    page.fill("#called", "short-lived")
    page.select_option("#scopes", "only read")
    page.select_option("#valid", "in a day")
    page.click("#token button")
    page.wait_for_selector("#token output:has-text('shown only now')", timeout=WAIT_MS)
    secret = page.inner_text("#token output").split()[-1]
    with queue.client(secret) as blue:
        assert blue.get("/v1/jobs").status_code == 200
        assert blue.post("/v1/jobs", json=job("sleep", "0")).status_code == 403
        with queue.client() as admin:
            made = next(each for each in checked(admin.get("/v1/tokens")) if each["name"] == "short-lived")
        assert round(made["expires_s"] - made["made_s"]) == 86_400
        page.click("button:has-text('Revoke short-lived')", timeout=WAIT_MS)
        page.wait_for_selector("tr:has-text('short-lived') .badge:has-text('revoked')", timeout=WAIT_MS)
        assert blue.get("/v1/jobs").status_code == 401
    page.goto(f"{queue.address}/jobs")
    page.fill("#yaml", "worker: {gpu: 1}\nwork: {kind: fixed, runtime_us: 30 s}\ncommand: [sleep, '300']")
    page.click("button:has-text('Try it without effect')")
    page.wait_for_selector("#submit output:has-text('finishes')", timeout=WAIT_MS)
    with queue.tenant("red") as red:
        id_ = checked(red.post("/v1/jobs", json=job("sleep", "300", id="paused")))["id"]
        until(red, id_, "running")
        page.goto(f"{queue.address}/jobs/{id_}")
        page.click("button:has-text('Suspend')")
        page.wait_for_selector("header .badge.suspended", timeout=WAIT_MS)
        page.goto(f"{queue.address}/jobs/{id_}")
        page.fill("#fields", '{"workers": 2}')
        page.click("button:has-text('Change it')")
        page.wait_for_selector("form output:has-text('Done.')", timeout=WAIT_MS)
        assert checked(red.get(f"/v1/jobs/{id_}"))["job"]["workers"] == 2
        checked(red.post(f"/v1/jobs/{id_}/cancel"))
    page.goto(f"{queue.address}/whatif?policy=fifo")
    assert page.locator("button:has-text('Let fifo decide')").count() == 1
    for part in ("scenario", "run"):
        with page.expect_download() as saved:
            page.click(f"a[href^='/export/{part}.json']")
        assert "tradewind" in saved.value.path().read_text()[:200]
    assert problems == []


@pytest.mark.parametrize("look", [{"color_scheme": "light"}, {"color_scheme": "dark"}])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_their_screen_and_can_be_used_by_keyboard(
    browser: Browser, queue: Server, width: int, look: dict[str, Any]
) -> None:
    admin = (queue.data / "admin.token").read_text().strip()
    named = job("sleep", "0", id="a-name-of-a-job-that-is-as-long-as-it-can-be"[:40])
    with queue.tenant("red") as red:
        over(red, checked(red.post("/v1/jobs", json=named))["id"])
    page, problems = signed_in(browser, queue, admin, viewport={"width": width, "height": 800}, **look)
    for path in ("/", "/jobs", "/market", "/tenants", "/bills", "/whatif", "/audit", "/admin"):
        page.goto(f"{queue.address}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.evaluate(
            "[...document.querySelectorAll('main *')].filter(e => e.textContent.trim() && "
            "parseFloat(getComputedStyle(e).fontSize) < 12).length"
        )
        assert small == 0
        if width == 1280:  # no table hides a column
            hidden = (
                "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
            )
            assert page.evaluate(hidden) == 0
    page.goto(queue.address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Now"
    assert problems == []


def test_the_cookie_alone_opens_nothing_for_other_sites(queue: Server) -> None:
    import httpx

    secret = (queue.data / "admin.token").read_text().strip()
    with httpx.Client(base_url=queue.address, cookies={"tradewind": secret}) as client:
        assert client.get("/v1/jobs").status_code == 401
        assert client.post("/v1/tokens", json={"role": "admin"}).status_code == 401
        assert client.get("/v1/jobs", headers={"X-Tradewind-Page": "1"}).status_code == 200
        page = client.get("/", headers={"Accept": "text/html"})
        assert "script-src 'self'" in page.headers["content-security-policy"]
    signed = httpx.post(f"{queue.address}/login", data={"token": secret}).headers["set-cookie"]
    assert "HttpOnly" in signed
    assert "SameSite=strict" in signed


def test_charts_show_sites_jobs_prices_and_the_split_and_a_tenant_sees_its_own(
    browser: Browser, tmp_path: Path
) -> None:
    rent = [{**site, "rent": {"gpu": {"starts": [0, 1], "usd": [4.0, 2.0]}}} for site in SITES]
    config = {**QUEUE, "setup": {**QUEUE["setup"], "nodes": rent}}
    with running(tmp_path, config) as server, server.tenant("red") as red, server.client() as admin:
        first = checked(red.post("/v1/jobs", json=job("sleep", "300", id="first", workers=2)))["id"]
        second = checked(
            admin.post("/v1/jobs", json=job("sleep", "300", id="second"), params={"tenant": "blue"})
        )["id"]
        until(red, first, "running")
        until(admin, second, "running")
        checked(
            admin.post(
                "/v1/prices", json={"rent": {"oregon": {"gpu": {"starts": [0, 1], "usd": [8.0, 4.0]}}}}
            )
        )
        page, problems = signed_in(browser, server, (server.data / "admin.token").read_text().strip())
        chart = page.wait_for_selector("figure svg[aria-label^='Sites: ']", timeout=WAIT_MS, state="attached")
        assert chart is not None
        assert "in use" in str(chart.get_attribute("aria-label"))
        figures = page.inner_text("main")
        assert "if every job rented by itself" in figures
        assert "bound" in figures
        page.goto(f"{server.address}/jobs")
        page.wait_for_selector(
            "figure svg[aria-label='When 2 jobs waited and ran']", timeout=WAIT_MS, state="attached"
        )
        page.goto(f"{server.address}/market")
        page.wait_for_selector("figure svg[aria-label^='List prices']", timeout=WAIT_MS, state="attached")
        page.goto(f"{server.address}/tenants")
        page.wait_for_selector("[aria-label='Bills of this month']", timeout=WAIT_MS, state="attached")
        page.goto(f"{server.address}/audit")
        assert "it arrived" in page.inner_text("main")  # why it was planned
        assert page.inner_text(".figures dd") == "0"  # violations
        assert problems == []
        own, _ = signed_in(browser, server, server.secret("tenant", "blue"))
        own.goto(f"{server.address}/jobs")
        own.wait_for_selector(
            "figure svg[aria-label='When 1 jobs waited and ran']", timeout=WAIT_MS, state="attached"
        )
        assert own.goto(f"{server.address}/charts/iterations?job={first}").status == 404  # type: ignore[union-attr]
        own.goto(f"{server.address}/")
        assert "rented by itself" not in own.inner_text("main")  # what others cost is not told
