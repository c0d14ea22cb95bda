"""What Theorem 8 of the paper guarantees of a rounding: the constants α, β^r and γ of Algorithm 2, line 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.gadget.kernels.slot import Rings, Slot, use

ALPHA = 1 / 3
"""Share of the LP's value that a rounding must be worth (Theorem 8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violations:
    """What Theorem 8 lets a rounding use, as use / capacity: beta (R,) of the servers by resource, gamma of the links."""

    beta: Floats
    gamma: float


def violations(slot: Slot, sizes: Ints) -> Violations:
    """β^r and γ of Theorem 8 for rings of these sizes (I,).

    Δ^r is the largest sum over a server of (what a mapping of a job may use there / what one worker needs) squared, Δ
    the same of links, which a ring crosses once in each direction. The paper does not define ε; it is that of its
    reference [5]: the largest need of one worker, or bandwidth of one hop, as a share of a capacity that holds it.
    """
    there = np.broadcast_to(sizes[:, None] > 0, (slot.jobs, slot.servers)).copy()
    if slot.open.size:
        there &= slot.open > 0
    count = np.broadcast_to(sizes[:, None], there.shape).astype(np.float64)
    epsilon = 0.0
    for r in range(slot.need.shape[1]):
        need, room = slot.need[:, r, None], slot.room[None, :, r]
        fits = there & (need > 0) & (need <= room)
        epsilon = max(epsilon, float(np.where(fits, need / np.maximum(room, 1), 0.0).max(initial=0.0)))
        count = np.where(need > 0, np.minimum(count, room // np.maximum(need, 1)), count)
    squares = np.where(there, count, 0.0) ** 2
    delta = [
        float((squares * (slot.need[:, r, None] > 0)).sum(0).max(initial=0.0))
        for r in range(slot.need.shape[1])
    ]
    crossing = slot.band[sizes > 1][:, None]
    links = np.concatenate([slot.link, slot.trunk])[None, :]
    narrow = (crossing > 0) & (crossing <= links)
    epsilon = max(epsilon, float(np.where(narrow, crossing / np.maximum(links, 1), 0.0).max(initial=0.0)))
    hops = float(narrow.sum(0).max(initial=0))
    nodes, edges = max(slot.servers, 2), 2 * links.size
    return Violations(
        beta=1 + epsilon * np.sqrt(2 * np.array(delta) * np.log(nodes)),
        gamma=1 + epsilon * float(np.sqrt(2 * hops * np.log(edges))),
    )


def overuse(slot: Slot, rings: Rings) -> tuple[Floats, float]:
    """(R,) largest use / capacity of a server by resource, and of a link or trunk."""
    room, link, trunk = use(slot, rings)
    share = np.where(room > 0, room / np.maximum(slot.room, 1), 0.0).max(0, initial=0.0)
    used, there = np.concatenate([link, trunk]), np.concatenate([slot.link, slot.trunk])
    return share, float(np.where(used > 0, used / np.maximum(there, 1), 0.0).max(initial=0.0))
