"""Events in words, for the pages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tradewind.model.units import MILLI

CHANGES = {
    "price": "list prices of {where} times {value:g}", "capacity": "{where} has {value:g}", "node_up": "{site} is up",
    "node_down": "{site} is down", "link_up": "a link is up", "link_down": "a link is down",
    "bandwidth": "the bandwidth of a link changed", "egress": "an egress price changed",
}  # fmt: skip


def told(event: Mapping[str, Any]) -> str:
    """What an event says beside its kind."""
    body = event["body"]
    match event["kind"]:
        case "changed":
            where = f"{body.get('site', '')} {body.get('resource', '')}".strip()
            form = CHANGES.get(body.get("kind", ""), "")
            return form.format(
                where=where,
                site=body.get("site", "a site"),
                value=body.get("value", 0) / body.get("of", MILLI),
            )
        case "eta":
            at = [time.strftime("%H:%M:%S", time.gmtime(body[name])) for name in ("p50_s", "p90_s")]
            return f"forecast: done {at[0]}, with 90% by {at[1]}"
        case "prices":
            return f"list {body['price_list']} by {body['by']}, in force with the next slot"
        case "planned":
            return f"{body['plan']}" + (f" ({body['because']})" if body.get("because") else "")
        case "started":
            again = f"attempt {body['attempt']}, " if body["attempt"] else ""
            return f"{again}{body['ranks']} {'rank' if body['ranks'] == 1 else 'ranks'}"
        case "stopped":
            why = "the service ended" if body.get("why") == "the run is over" else body.get("why", "")
            mean = (
                f", {body['iterations']} iterations of {body['measured_s']:.3g} s"
                if body.get("iterations")
                else ""
            )
            return f"{why}{mean}"
        case "measured":
            return calibration(body)
        case "quoted" | "accepted" | "declined" if "offer" in body:
            return str(body["offer"])
        case "alarm":
            return str(body.get("text", ""))
        case "voided" | "cancelled" | "suspended":
            return "its work so far is kept" if body.get("work_done") else ""
    return str(body.get("reason", ""))


def calibration(found: Mapping[str, Any]) -> str:
    """What was measured of a job beside what was predicted, in words."""
    times = f"{found['factor']:.3g} times the prediction of {found['predicted_s']:.3g} s"
    if not found["iterations"]:
        return f"it ran {found['measured_s']:.3g} s, {times}"
    error = "" if found.get("error_s") is None else f" ± {found['error_s']:.2g}"
    return f"an iteration takes {found['measured_s']:.3g}{error} s (mean of {found['iterations']}), {times}"
