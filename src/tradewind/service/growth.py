"""Sites that join a running service: a setup with further nodes after those that there were, so that numbers stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tradewind.files.messages import shown
from tradewind.model.codec import plain
from tradewind.model.errors import InputError
from tradewind.model.setup import Setup

Fact = tuple[str, tuple[str, ...], int]
"""What a setup says of some nodes: kind, names, number among equals."""


def facts(setup: Setup) -> dict[Fact, Any]:
    """What of a setup cannot be changed while a service runs; capacities and the heights of prices can."""
    names = [node.name for node in setup.nodes]
    found: dict[Fact, Any] = {}

    def say(kind: str, of: tuple[str, ...], what: Any) -> None:
        found[kind, of, sum((kind, of, n) in found for n in range(len(found)))] = what

    for index, node in enumerate(setup.nodes):
        rent = [setup.resources[r] for r in range(len(setup.resources)) if (index, r) in setup.rent]
        parent = names[node.parent] if node.parent >= 0 else ""
        same = replace(node, capacity_milli=(), parent=-1)
        found["node", (node.name,), 0] = [plain(same), parent, rent]
    for link in setup.links:
        say("link", (names[link.a], names[link.b]), plain(replace(link, a=0, b=1)))
    for (a, b), tariff in setup.egress.items():
        found["egress", (names[a], names[b]), 0] = plain(tariff)
    rest = ("resources", "transfer_bytes_per_slot", "slot_us", "window_slots", "transport", "objective")
    for name in rest:
        found[name, (), 0] = getattr(setup, name)
    for name in ("forecast", "spend_caps"):
        found[name, (), 0] = plain(getattr(setup, name))
    for pool in setup.pools:
        of = sorted({names[a] for a, _ in pool.rent} | {names[n] for pair in pool.egress for n in pair})
        say("pool", tuple(of), [pool.name, pool.period_us])
    return found


def difference(a: Setup, b: Setup) -> str:
    """What the nodes that both setups have do not have in common, in words; "": nothing."""
    first, second = facts(a), facts(b)
    common = set(a.node_index) & set(b.node_index)
    for key in [*first, *second]:
        kind, names, _ = key
        if common.issuperset(names) and first.get(key) != second.get(key):
            if names:
                return f"{kind} {' and '.join(names)}"
            return f"{kind} (here {shown(second.get(key))}, there {shown(first.get(key))})"
    return ""


def grown(before: Setup, wanted: Setup) -> Setup:
    """`before` with the nodes that only `wanted` has, with their links and tariffs; InputError if something else differs."""
    if what := difference(before, wanted):
        raise InputError(
            f"this differs from what the service has: {what}; sites may join, and capacities and prices change, nothing else"
        )
    fresh = [node for node in wanted.nodes if node.name not in before.node_index]
    names = {**before.node_index, **{node.name: len(before.nodes) + i for i, node in enumerate(fresh)}}
    place = [names[node.name] for node in wanted.nodes]
    is_new = [node.name not in before.node_index for node in wanted.nodes]

    def moved(table: Mapping[tuple[int, int], Any], both: bool) -> dict[tuple[int, int], Any]:
        return {
            (place[a], place[b] if both else b): value
            for (a, b), value in table.items()
            if is_new[a] or (both and is_new[b])
        }

    nodes = [replace(node, parent=place[node.parent] if node.parent >= 0 else -1) for node in fresh]
    links = [link for link in wanted.links if is_new[link.a] or is_new[link.b]]
    return replace(
        before,
        nodes=(*before.nodes, *nodes),
        links=(*before.links, *(replace(link, a=place[link.a], b=place[link.b]) for link in links)),
        rent={**before.rent, **moved(wanted.rent, False)},
        egress={**before.egress, **moved(wanted.egress, True)},
    )
