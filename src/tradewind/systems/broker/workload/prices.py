"""What is sold where, and what data between regions costs, from the built-in price list."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tradewind.prices.builtin import catalogue
from tradewind.prices.wan import measured


class ListPrice(NamedTuple):
    """One machine on the list; spot_usd 0: not sold as spot."""

    region: str
    gpu: str
    gpus: int
    usd: float
    spot_usd: float


@cache
def list_prices() -> tuple[ListPrice, ...]:
    """Of every region with known bandwidth and GPU type the smallest machine and the one that is cheapest per GPU."""
    places = set(regions())
    cheapest: dict[tuple[str, str], dict[int, ListPrice]] = {}
    for each in catalogue().machines:
        if each.place in places:
            sizes = cheapest.setdefault((each.place, each.gpu), {})
            price = ListPrice(
                each.place, each.gpu, each.gpus, each.usd_per_hour, each.spot_usd_per_hour or 0.0
            )
            if each.gpus not in sizes or price.usd < sizes[each.gpus].usd:
                sizes[each.gpus] = price
    return tuple(price for key in sorted(cheapest) for price in _offered(cheapest[key].values()))


def _offered(sizes: Iterable[ListPrice]) -> list[ListPrice]:
    small = min(sizes, key=lambda price: price.gpus)
    cheap = min(sizes, key=lambda price: (price.usd / price.gpus, price.gpus))
    return [small] if small == cheap else sorted((small, cheap), key=lambda price: price.gpus)


def regions() -> tuple[str, ...]:
    """All regions with known bandwidth and egress."""
    return measured().places


def between(src: str, dst: str) -> tuple[float, float, float]:
    """(Gbit/s, USD per GB, round trip in ms) from one region to another."""
    path = measured().path(src, dst)
    return path.gbps, catalogue().egress.price(src, dst).usd_per_gb, path.rtt_ms or 0.0
