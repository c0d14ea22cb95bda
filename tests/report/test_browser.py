"""Reports in a real browser, on desktop and phone, light and dark: complete, self-contained and without errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.lab import sample_study
from tradewind import api
from tradewind.files.jobs_file import PlanFile
from tradewind.lab import tour
from tradewind.lab.reproduce import reproduce
from tradewind.lab.study import Effort
from tradewind.planner import page as plan_page
from tradewind.planner.plan import Overrides, make
from tradewind.prices.builtin import catalogue
from tradewind.prices.wan import measured
from tradewind.registry import studies
from tradewind.report import page as report

JOBS = [
    {"id": "vision", "gpu": "A100 or H100", "gpu_hours": 400, "gpus": "4-32", "data": {"aws:us-east-1": "800 GB"}},
    {"id": "large", "gpu": "A100-80GB", "iterations": 50000, "iteration_s": 1.6, "measured_gpus": 8, "gpus": [8, 16],
     "model": "3 GB", "sync_every": 100, "data": {"europe-west4": "20 TB", "aws:eu-central-1": "18 TB"}},
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTHS = (1280, 390)
SMALL = tour.Demo(
    name="cluster", question="Who?", policies=("las", "fifo"), params={"jobs": 30, "servers": 3}, seeds=2
)


def _chromium() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, f"no browser here: none of {', '.join(NAMES)} is on the PATH; apt-get install chromium"
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One page of each kind: a comparison, a plan, a reproduction, the tour."""
    folder = tmp_path_factory.mktemp("pages")
    scenarios = [api.generate("mlbroker", sites=4, slots=4, jobs_per_slot=4.0, seed=s) for s in range(2)]
    settings = ("mlbroker", "mlbroker:deploy_weight=1", "local")
    runs = api.compare(scenarios, settings, seeds=range(2), bound=True).runs
    compared = report.write(folder / "compare.html", scenarios, runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(studies.entries, "made", "tests.lab.sample_study:STUDY")
        patch.setattr(sample_study, "COUNTER", folder / "count.txt")
        reproduce(["made"], folder / "reproduce", effort=Effort(quick=True, seeds=3))
    tour.tour(folder / "tour", demos=(SMALL,), jobs=1)
    jobs = PlanFile.model_validate({"tradewind_jobs": 1, "jobs": JOBS})
    planned = folder / "plan.html"
    planned.write_text(plan_page.html(make(jobs, {}, catalogue(), measured(), Overrides())))
    return {
        "compare": compared,
        "plan": planned,
        "reproduce": folder / "reproduce" / "index.html",
        "tour": folder / "tour" / "index.html",
    }


@dataclass(slots=True)
class PageLog:
    """Console messages and requests of a page."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def shown(browser: Browser, path: Path, width: int, scheme: str) -> tuple[Page, PageLog]:
    """Open the page in a new window and log its console messages and requests."""
    dark: dict[str, str] = {"color_scheme": scheme}
    context = browser.new_context(viewport={"width": width, "height": 900}, **dark)  # type: ignore[arg-type]
    page, log = context.new_page(), PageLog()
    page.on("console", lambda message: log.messages.append(message.text))
    page.on("pageerror", lambda error: log.messages.append(str(error)))
    page.on("request", lambda request: log.requests.append(request.url))
    page.goto(path.resolve().as_uri())
    return page, log


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["compare", "plan", "reproduce", "tour"])
def test_pages_render_without_errors_or_requests(
    browser: Browser, pages: dict[str, Path], kind: str, width: int
) -> None:
    page, log = shown(browser, pages[kind], width, "light")
    assert log.messages == [], "the console is empty"
    assert [url for url in log.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in log.requests if url.startswith("file:")]) == 1, "the page needs no other file"
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over == 0, "nothing overflows horizontally"
    boxes = page.evaluate(
        "[...document.querySelectorAll('figure svg')].filter(e => e.checkVisibility())"
        ".map(e => e.getBoundingClientRect()).map(b => [b.width, b.height])"
    )
    assert len(boxes) >= 1
    assert all(wide > 150 and high > 40 for wide, high in boxes)
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('main > *, figure')].map(e => e.getBoundingClientRect().right))"
    )
    assert right <= width
    page.context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_name_with_parameters_stays_in_its_column(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    page, _ = shown(browser, pages["compare"], width, "light")
    beyond = page.evaluate(
        "[...document.querySelectorAll('tbody th')].filter(e => e.checkVisibility()).map(e => {"
        " const text = document.createRange(); text.selectNodeContents(e);"
        " return text.getBoundingClientRect().right - e.getBoundingClientRect().right; })"
    )
    assert len(beyond) >= 3
    assert max(beyond) <= 0
    page.context.close()


@pytest.mark.parametrize("kind", ["compare", "plan", "reproduce", "tour"])
def test_text_has_contrast_in_light_and_dark(browser: Browser, pages: dict[str, Path], kind: str) -> None:
    found = {}
    for scheme in ("light", "dark"):
        page, _ = shown(browser, pages[kind], 1280, scheme)
        found[scheme] = page.evaluate(
            "['color', 'backgroundColor'].map(k => getComputedStyle(document.body)[k].match(/\\d+/g).slice(0, 3)"
            ".map(Number).reduce((a, b) => a + b) / 3)"
        )
        page.context.close()
    ink, paper = found["light"]
    assert paper - ink > 150
    ink, paper = found["dark"]
    assert ink - paper > 150


def test_the_table_of_a_plan_fits_a_desktop(browser: Browser, pages: dict[str, Path]) -> None:
    page, _ = shown(browser, pages["plan"], 1280, "light")
    assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") == 0
    assert page.locator("td.words", has_text=" + ").count() >= 1, "a job in two regions, the widest there is"
    page.context.close()


def test_a_printed_report_is_light_and_omits_collapsed_parts(
    browser: Browser, pages: dict[str, Path]
) -> None:
    page, _ = shown(browser, pages["compare"], 1280, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    ink = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).map(Number)")
    assert max(ink) < 100, "dark text on paper, whatever the screen's theme"
    assert page.evaluate("[...document.querySelectorAll('details')].every(e => !e.checkVisibility())")
    page.context.close()


def test_the_tour_names_the_winner_and_links_to_full_reports(pages: dict[str, Path]) -> None:
    text = pages["tour"].read_text()
    assert 'href="cluster.html"' in text
    assert (pages["tour"].parent / "cluster.html").exists()
    assert "las" in text
    assert "offline bound" in text
