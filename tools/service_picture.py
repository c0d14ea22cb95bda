#!/usr/bin/env python3
"""Draws docs/pictures/service.png: the demo of examples/serve-mixed.yaml with a few jobs, as an operator sees it.

.venv/bin/python tools/service_picture.py [OUT.png]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from playwright.sync_api import sync_playwright

from tradewind.service.client import Client

ROOT = Path(__file__).parents[1]
PORT, START_S, SHOW_S = 8643, 120.0, 14.0
JOBS = ((2, 60), (1, 80), (3, 70), (2, 90), (1, 4), (2, 75), (1, 90), (1, 4))
"""Workers and seconds of each job."""


def main(out: Path) -> None:
    """Start the demo, submit jobs of both tenants, and take the picture while they run."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            sys.executable, "-m", "tradewind.cli.main", "serve", str(ROOT / "examples" / "serve-mixed.yaml"),
            "--data", folder, "--port", str(PORT),
        ]  # fmt: skip
        with subprocess.Popen(argv) as server:
            try:
                token = Path(folder) / "admin.token"
                _wait(token)
                _submit(f"http://127.0.0.1:{PORT}", token.read_text().strip())
                time.sleep(SHOW_S)
                _draw(f"http://127.0.0.1:{PORT}", token.read_text().strip(), out)
            finally:
                server.terminate()


def _wait(token: Path) -> None:
    until = time.monotonic() + START_S
    while not token.exists():
        if time.monotonic() > until:
            raise SystemExit("the service did not start")
        time.sleep(0.2)
    time.sleep(2.0)


def _submit(address: str, token: str) -> None:
    job = yaml.safe_load((ROOT / "examples" / "job-mixed.yaml").read_text())
    with Client(address, token=token) as client:
        for number, (workers, seconds) in enumerate(JOBS):
            tenant = ("research", "product")[number % 2]
            command = ["sh", "-c", f"for i in $(seq {seconds}); do echo step $i; sleep 1; done"]
            work = {"kind": "fixed", "runtime_us": f"{seconds} s"}
            given = {
                "id": f"{tenant}-{number}",
                "workers": workers,
                "work": work,
                "command": command,
                "restarts": 0,
            }
            client.submit({**job, **given}, tenant=tenant)


def _draw(address: str, token: str, out: Path) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(address)
        page.fill("#secret", token)
        page.click("button")
        page.wait_for_url(f"{address}/")
        page.wait_for_selector("[data-chart] svg", state="attached")
        page.wait_for_timeout(1500)
        page.screenshot(path=str(out))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures" / "service.png")
