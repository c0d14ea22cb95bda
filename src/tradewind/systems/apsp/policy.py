"""`apsp`: the site of the parameter server and one path per worker site, near exact and with a certificate.

This is our algorithm; the paper's is `apsp-paper`. It uses column generation over all paths, integer bounds, rerouting and
branch and price; max-flow where transport is cut-through. See docs/systems/apsp.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.spec import Param
from tradewind.systems.apsp.kernels.network import Net, place, settings_for
from tradewind.systems.apsp.kernels.solve import SolveSettings
from tradewind.systems.apsp.shared.placement import Chosen, MovableServer
from tradewind.systems.apsp.shared.policy import LOOK_AHEAD, placement_spec

GAP = {
    "gap": Param(
        default=0.02,
        doc="networks of up to 30 nodes are solved exactly; on larger ones stop at 1 + gap times the bound",
        least=0,
    )
}


class NearExact(MovableServer):
    """The method of ``apsp``."""

    def __init__(self, gap: float) -> None:
        self._gap = gap

    def settings(self, net: Net) -> SolveSettings:
        """How long to search on this network."""
        return settings_for(net.problem, self._gap)

    def choose(self, net: Net, sinks: Sequence[int]) -> Chosen:
        answer = place(net, self.settings(net), sinks)
        return Chosen(answer.sink, answer.routing, answer.bounds)


APSP = placement_spec(
    "apsp",
    "Parameter-server site and routes in a WAN, near exact with a certified bound; moves when it pays",
    lambda params, rng: NearExact(float(params["gap"])),
    {**GAP, **LOOK_AHEAD},
)
