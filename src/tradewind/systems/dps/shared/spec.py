"""Catalogue lines of sellers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradewind.model.setup import Setup
from tradewind.model.spec import Need, Param, Spec
from tradewind.systems.dps.shared.order import PLACEMENTS
from tradewind.systems.dps.shared.seller import Seller

MakeSeller = Callable[[Setup, Mapping[str, Any], int], Seller]
"""(setup, parameters, seed) -> seller."""


def seller_spec(
    name: str,
    summary: str,
    make: MakeSeller,
    params: Mapping[str, Param],
    *,
    placement: str,
    hindsight: str = "",
    needs: frozenset[Need] = frozenset(),
) -> Spec:
    """A policy that sells bundles; `placement` is the default placement rule."""
    where = Param(
        default=placement,
        doc="placement: pa (the paper's Algorithm 2), best-fit (the fullest server that takes the whole job), random",
        choices=tuple(PLACEMENTS),
    )
    return Spec(
        name=name,
        summary=summary,
        factory=lambda setup, values, rng: make(setup, values, int(rng.integers(2**62))),
        works=frozenset({"rounds/colocated", "rounds/none"}),
        architectures=frozenset({"ps"}),
        objectives=frozenset({"profit_usd", "welfare_usd"}),
        triggers=frozenset({"completion", "change"}),
        params={**params, "placement": where},
        pricer=True,
        binding=True,
        hindsight=hindsight,
        needs=needs,
        system="dps",
    )
