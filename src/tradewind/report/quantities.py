"""Numbers for readers: three digits, a suitable unit, and the name of each metric."""

from __future__ import annotations

import math
from typing import NamedTuple

from tradewind.model.setup import SENSE, Objective

NAMES: dict[str, str] = {
    "cost_usd": "cost",
    "total_usd": "cost and lost value",
    "cost_discount_usd": "discount",
    "profit_usd": "profit",
    "welfare_usd": "social welfare",
    "utility": "utility",
    "epoch_s": "epoch time",
    "jct_mean_s": "mean completion time",
    "makespan_s": "makespan",
    "cost_transfer_usd": "data transfer",
    "cost_rent_usd": "rent",
    "cost_deploy_usd": "deployment",
    "cost_traffic_usd": "training traffic",
    "jobs_accepted": "jobs accepted",
    "jobs_completed": "jobs completed",
}
COSTS = ("cost_rent_usd", "cost_transfer_usd", "cost_traffic_usd", "cost_deploy_usd")
DISCOUNT = "cost_discount_usd"
LONG = {"d": "days", "h": "hours", "min": "minutes", "s": "seconds"}
ACRONYMS = {"gpu": "GPU", "cpu": "CPU", "vcpu": "vCPU", "tpu": "TPU"}
DASH = "–"


class Scale(NamedTuple):
    """A unit for an axis: divide by `size`, write `unit`."""

    size: float
    unit: str


def name(metric: str) -> str:
    """`jct_mean_s` -> mean completion time."""
    if metric in NAMES:
        return NAMES[metric]
    for ending in ("_usd", "_s", "_bytes"):
        metric = metric.removesuffix(ending)
    return metric.replace("_", " ")


def resource(name: str) -> str:
    """A resource name for sentences: `gpu` -> GPU, others unchanged."""
    return ACRONYMS.get(name, name)


def better(objective: Objective) -> str:
    """`lowest` or `highest`, whichever is better for the objective."""
    return "lowest" if SENSE[objective] == "min" else "highest"


def time_scale(seconds: float) -> Scale:
    """A suitable unit for a time span."""
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds")):
        if seconds >= 3 * size:
            return Scale(size, unit)
    return Scale(1e-3, "milliseconds") if 0 < seconds < 1 else Scale(1.0, "seconds")


def data_scale(amount: float) -> Scale:
    """A suitable unit for an amount of bytes."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= size:
            return Scale(size, unit)
    return Scale(1.0, "B")


def rate_scale(bps: float) -> Scale:
    """A suitable unit for a bandwidth."""
    for size, unit in ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= size:
            return Scale(size, unit)
    return Scale(1.0, "bit/s")


def number(value: float, digits: int = 3) -> str:
    """At least `digits` significant digits with thousands separators; a dash for nan."""
    if not math.isfinite(value):
        return DASH if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 9 or size < -4:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    text = f"{value:,.{max(0, digits - 1 - size)}f}"
    if "." in text and float(value).is_integer():
        text = text.partition(".")[0]
    return text.replace(",", "\u202f").replace("-", "−")


def _clock(seconds: float) -> Scale:
    """A suitable unit for a single duration."""
    size = abs(seconds)
    for unit, word, least in ((86400.0, "d", 2), (3600.0, "h", 1), (60.0, "min", 2), (1.0, "s", 1)):
        if size >= least * unit:
            return Scale(unit, word)
    if size == 0:
        return Scale(1.0, "s")
    return Scale(1e-3, "ms") if size >= 1e-3 else Scale(1e-6, "µs")


def duration(seconds: float) -> str:
    """`5400` -> 1.50 h."""
    return measure("_s", seconds)


def measure(metric: str, value: float, like: float | None = None) -> str:
    """A metric's value with the unit that its name ends in, scaled to suit `like` if given."""
    if not math.isfinite(value):
        return number(value)
    model = value if like is None or not math.isfinite(like) else like
    scale = Scale(1.0, "USD" if metric.endswith("_usd") else "")
    if metric.endswith("_s"):
        scale = _clock(model)
    elif metric.endswith("_bytes"):
        scale = data_scale(abs(model))
    text = number(value / scale.size, 3 if like is None else 2)
    return f"{text}\u202f{scale.unit}" if scale.unit else text


def axis(metric: str, largest: float) -> Scale:
    """A suitable unit for an axis that shows a metric up to `largest`."""
    if metric.endswith("_s"):
        scale = _clock(largest)
        return Scale(scale.size, LONG.get(scale.unit, scale.unit))
    return Scale(1.0, "USD" if metric.endswith("_usd") else "")


def percent(share: float) -> str:
    """`0.123` -> 12%; one decimal below 10%."""
    if not math.isfinite(share):
        return DASH
    value = 100 * share
    text = f"{value:.0f}" if abs(value) >= 10 or value == 0 else f"{value:.1f}"
    return text.replace("-", "−") + "%"
