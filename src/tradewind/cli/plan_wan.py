"""`tradewind plan-wan`: plan, print and draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tradewind.cli.plan_wan_picture import picture
from tradewind.cli.plan_wan_show import show
from tradewind.model.errors import InputError
from tradewind.systems.apsp.plan.report import report
from tradewind.systems.apsp.plan.request import PlanRequest
from tradewind.systems.apsp.plan.solve import solve
from tradewind.systems.apsp.workload.topologies import SHIPPED


def run(request: PlanRequest, *, as_json: bool, output: Path | None) -> None:
    """Plan, print and draw; without a topology, name the shipped ones."""
    if not request.topology:
        raise InputError(
            f"name a topology: {' or '.join(SHIPPED)} (shipped), or a .graphml, .gml, .json or .csv file",
            where="plan-wan",
        )
    plan = solve(request)
    found = report(plan, request)
    if output is not None:
        drawn = picture(output, plan, _title(found))
        found["pictures"] = [str(path) for path in drawn]
    if as_json:
        print(json.dumps(found, indent=2, allow_nan=False))
        return
    show(found)


def _title(found: dict[str, Any]) -> str:
    return f"{found['topology']}: server at {found['server']}, epoch {found['epoch_s']:.3g} s"
