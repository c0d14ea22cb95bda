"""Why a job cannot be served: the nearest miss, for people."""

from __future__ import annotations

import numpy as np

from tradewind.systems.mixed.kernels.market import Market, most_units
from tradewind.systems.mixed.shared.frame import Supply
from tradewind.systems.mixed.shared.oracles.ask import Ask

ROUNDING = 1e-6
"""Share of a price: the marginal job's price is its worth."""


def nearest_miss(ask: Ask, supply: Supply, *, only_final: bool = False) -> str:
    """What is missing. only_final: "" where it could be served if it were alone, with everything up, at no cost."""
    frame, job = ask.frame, ask.job
    limits = np.broadcast_to(frame.limits(), supply.units.shape)
    alone = frame.market(supply._replace(units=limits.copy()))._replace(tiers=False)
    if ask.reply(alone) is not None:
        return "" if only_final else "no place and price were left for it in this slot"
    fit = [
        most_units(alone, 0, h, ask.worker, job.workers_max) if ask.places[-1, h] else 0
        for h in range(ask.hosts)
    ]
    if sum(fit) < job.workers_min:
        where = max(range(ask.hosts), key=lambda h: (fit[h], -h))
        name = frame.setup.nodes[int(frame.hosts[where])].name
        most = f"holds {sum(fit)}, {name} the most: {fit[where]}"
        return f"it needs {job.workers_min} workers; everything that it may use {most}"
    return f"no schedule of the next {ask.slots} slots is worth anything to it, even at no cost: too little time is left"


def outbid(ask: Ask, market: Market, posted: Market, slot: int) -> str:
    """What the schedule that a job would choose at rent alone costs at the prices of capacity; "" if it is worth more."""
    wanted = ask.reply(market)
    if wanted is None:
        return ""
    needs = (ask.worker, ask.server)
    units, _ = ask.frame.use(wanted.workers, wanted.servers, wanted.gb, needs)
    usd = float((units * posted.linear).sum() + wanted.gb @ posted.byte_usd)
    if usd < wanted.gain * (1.0 - ROUNDING):
        return ""
    rent = float((units * ask.frame.chords(market)).sum())
    return (
        f"; in slot {slot} it was outbid: its best schedule, worth {wanted.gain:,.2f} USD, would have cost "
        f"{usd:,.2f} USD at the prices of capacity, {rent:,.2f} USD of it rent"
    )
