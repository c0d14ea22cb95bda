"""Bandwidth by distance: three rules that keep 500-5000 Mbit/s, and random draws around them. numpy only.

The paper (Sec. V-A) states only the range, 500 Mbit/s to 5 Gbit/s, and that bandwidth follows the link's length.

| rule    | bandwidth of a link of d km                                                      |
|---------|----------------------------------------------------------------------------------|
| power   | a power law through (shortest link, 5000) and (longest link, 500)                |
| linear  | a straight line through the same two points                                      |
| inverse | 5000 d0 / d with d0 = a quarter of the median link, clipped to 500-5000          |
| uniform | no distance: uniform between the least and 5000                                  |

A draw multiplies each rule's value with a lognormal factor (sigma 0.3) and clips to [least, 5000]; Mbit/s are whole.
"""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints

RULES = ("power", "linear", "inverse", "uniform")
WIDEST_MBPS = 5000
NARROWEST_MBPS = 500
SIGMA = 0.3
EARTH_KM = 6371.0088
NEAREST_KM = 5.0
MODEL_BYTES = {
    "resnet50": 92_000_000,
    "resnet152": 240_000_000,
    "alexnet": 256_000_000,
    "vgg": 552_000_000,
}
"""Table II: parameters in full precision."""


def great_circle_km(lat: Floats, lon: Floats, a: Ints, b: Ints) -> Floats:
    """Distance (L,) of the nodes a and b of each link, positions in degrees; at least NEAREST_KM."""
    la, lb = np.radians(lat[a]), np.radians(lat[b])
    half = np.sin((lb - la) / 2) ** 2 + np.cos(la) * np.cos(lb) * np.sin(np.radians(lon[b] - lon[a]) / 2) ** 2
    km: Floats = np.maximum(2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0))), NEAREST_KM)
    return km


def rule_mbps(km: Floats, rule: str) -> Floats:
    """The rule's bandwidth (L,) in Mbit/s before any draw; equal lengths give the widest."""
    low, high = float(km.min()), float(km.max())
    if high <= low * (1 + 1e-12):
        return np.full(km.size, float(WIDEST_MBPS))
    if rule == "power":
        exponent = np.log(WIDEST_MBPS / NARROWEST_MBPS) / np.log(high / low)
        power: Floats = WIDEST_MBPS * (km / low) ** -exponent
        return power
    if rule == "linear":
        return WIDEST_MBPS - (WIDEST_MBPS - NARROWEST_MBPS) * (km - low) / (high - low)
    if rule == "inverse":
        reach = float(np.median(km)) / 4
        return np.clip(WIDEST_MBPS * reach / km, NARROWEST_MBPS, WIDEST_MBPS)
    raise ValueError(f"rule is {rule!r}; allowed are {', '.join(RULES)}")


def draw_mbps(km: Floats, rule: str, min_mbps: int, rng: np.random.Generator) -> Ints:
    """One draw of whole Mbit/s (L,) for links of km (L,)."""
    if not 0 < min_mbps <= WIDEST_MBPS:
        raise ValueError(f"min_mbps is {min_mbps}; it must lie between 1 and {WIDEST_MBPS}")
    if rule == "uniform":
        return rng.integers(min_mbps, WIDEST_MBPS, size=km.size, endpoint=True, dtype=np.int64)
    factor = rng.lognormal(0.0, SIGMA, size=km.size)
    mbps = np.rint(np.clip(rule_mbps(km, rule) * factor, min_mbps, WIDEST_MBPS))
    return mbps.astype(np.int64)
