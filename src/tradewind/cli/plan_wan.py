"""`tradewind plan-wan`: plan, print, draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tradewind.cli.plan_wan_picture import picture
from tradewind.cli.plan_wan_show import show
from tradewind.model.errors import InputError
from tradewind.systems.apsp.plan import Request, report, solve
from tradewind.systems.apsp.workload.topologies import SHIPPED


def run(request: Request, *, as_json: bool, output: Path | None) -> None:
    """The command: plan, print, draw. Without a topology it lists the shipped ones."""
    if not request.topology:
        raise InputError(
            f"name a topology: {' or '.join(SHIPPED)} (shipped), or a .graphml, .gml, .json or .csv file",
            where="plan-wan",
        )
    work, answers = solve(request)
    found = report(work, answers, request)
    if output is not None:
        drawn = picture(output, work.topology, work.net, work.answer, _title(found))
        found["pictures"] = [str(path) for path in drawn]
    if as_json:
        print(json.dumps(found, indent=2, allow_nan=False))
        return
    show(found)


def _title(found: dict[str, Any]) -> str:
    return f"{found['topology']}: server at {found['server']}, an epoch in {found['epoch_s']:.3g} s"
