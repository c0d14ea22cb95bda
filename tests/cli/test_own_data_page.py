"""docs/own-data.md: its files are valid, and its commands work in the order of the page."""

from __future__ import annotations

import re
import shlex
from math import fsum
from pathlib import Path

import pytest

import tradewind as tw
from tradewind.cli.guard import guarded
from tradewind.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def test_the_three_customers_of_the_price_list_pay_nearly_half_of_their_budgets_on_average(
    tmp_path: Path,
) -> None:
    files = (text.partition("\n") for _, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    (tmp_path / "prices.yaml").write_text(next(rest for name, _, rest in files if name == "# prices.yaml"))
    market = tw.load(tmp_path / "prices.yaml")
    earned = [tw.run(market, policy="dps", seed=seed).metrics["profit_usd"] for seed in range(20)]
    assert fsum(earned) / 20 > 0.4 * 370  # with random probes, as in a market of thousands: 0.18


def test_the_page_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind:
            (tmp_path / text.partition("\n")[0].removeprefix("# ")).write_text(text, encoding="utf-8")
            continue
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            assert words[0] == "tradewind"
            code = guarded(lambda words=words: app(words[1:], standalone_mode=False))  # type: ignore[misc]
            assert code == 0, f"{line}\n{capsys.readouterr().err}"
            ran += 1
    assert ran == 16
    assert (tmp_path / "plan.csv").read_text().startswith("job,")
