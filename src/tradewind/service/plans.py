"""Plans, offers and quotes as documents for people: names and wall-clock times instead of indices and microseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.model.codec import plain
from tradewind.model.decision import Offer, Quote, Step
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN, US_PER_HOUR

WallOf = Callable[[int], float]
"""Instant in microseconds -> seconds since 1970."""


def step_document(setup: Setup, step: Step, wall: WallOf) -> dict[str, Any]:
    """Where and when a step runs."""
    names = [setup.nodes[node].name for node in step.nodes]
    servers = step.servers or (0,) * len(names)
    return {
        "from_s": wall(step.from_us),
        "until_s": None if step.until_us == OPEN else wall(step.until_us),
        "workers": {name: n for name, n in zip(names, step.workers, strict=True) if n},
        "servers": {name: n for name, n in zip(names, servers, strict=True) if n},
        "routes": [f"{setup.nodes[r.src].name}->{setup.nodes[r.dst].name}" for r in step.routes],
    }


def in_words(setup: Setup, steps: tuple[Step, ...]) -> str:
    """A plan in a line: `2 workers at oregon, 1 at dublin; server at oregon`."""
    if not steps:
        return "waits"
    first = steps[0]
    parts = [
        f"{n} {'worker' if n == 1 else 'workers'} at {setup.nodes[node].name}"
        for node, n in zip(first.nodes, first.workers, strict=True)
        if n
    ]
    text = ", ".join(parts) or "no workers"
    at = [setup.nodes[node].name for node, n in zip(first.nodes, first.servers or (), strict=False) if n]
    if at:
        text += f"; server at {', '.join(at)}"
    more = len({(s.nodes, s.workers, s.servers) for s in steps}) - 1
    return text + (f"; changes {more} {'time' if more == 1 else 'times'}" if more > 0 else "")


def offer_document(setup: Setup, number: int, offer: Offer, wall: WallOf) -> dict[str, Any]:
    """One option of a menu."""
    return {
        "option": number,
        "price_usd": offer.payment_usd,
        "finish_s": wall(offer.finish_us),
        "plan": in_words(setup, offer.plan.steps),
        "steps": [step_document(setup, step, wall) for step in offer.plan.steps[:100]],
        "unit_usd": {setup.resources[r]: usd for r, usd in offer.unit_usd},
        "hours": _hours(setup, offer.plan.steps, offer.finish_us),
    }


def _hours(setup: Setup, steps: tuple[Step, ...], finish_us: int) -> dict[str, list[float]]:
    """Site -> hours of workers and of servers."""
    found: dict[str, list[float]] = {}
    for step in steps:
        hours = max(0, min(step.until_us, finish_us) - step.from_us) / US_PER_HOUR
        servers = step.servers or (0,) * len(step.nodes)
        for node, *counts in zip(step.nodes, step.workers, servers, strict=True):
            row = found.setdefault(setup.nodes[node].name, [0.0, 0.0])
            for kind, count in enumerate(counts):
                row[kind] += count * hours
    return found


def quote_document(setup: Setup, quote: Quote, wall: WallOf) -> dict[str, Any]:
    """The menu of a quote, or why there is none."""
    return {
        "options": [offer_document(setup, i, offer, wall) for i, offer in enumerate(quote.offers)],
        "refused": quote.refused,
        "why": quote.why,
        "posted": None if quote.posted is None else plain(quote.posted),
    }
