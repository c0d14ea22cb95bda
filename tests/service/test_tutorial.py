"""The commands of docs/tutorial.md, as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.service.servers import running

ROOT = Path(__file__).parents[2]


def test_the_tutorial_leads_to_a_bill(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    serve = re.search(r"```sh serve\ntradewind serve (\S+) --data (\S+)\n```", text)
    script = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert serve is not None
    assert script is not None
    config = {**yaml.safe_load((ROOT / serve[1]).read_text()), "fleet": {"as_root": True, "grace_s": 1.0}}
    with running(tmp_path, config) as server:
        commands = script[1].replace(f"{serve[2]}/", f"{server.data}/")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-e", "-c", commands], cwd=ROOT, capture_output=True, text=True, timeout=600,
            env={**os.environ, "PATH": path, "TRADEWIND_SERVER": server.address},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 at oregon; start 2" in done.stdout  # the dry run says where and when
    assert "unknown" not in done.stdout
    for tenant in ("research", "product"):
        bill = next(line for line in done.stdout.splitlines() if line.startswith(f"{tenant}, "))
        assert "USD due" in bill
        assert "discount -" in bill  # they shared a tier
