"""What earlier jobs of the same decision hold, on top of what the view says is taken."""

from __future__ import annotations

from collections.abc import Mapping

from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.view import View


class Reservations:
    """Bandwidth and resources given away within one decision."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._bps: dict[tuple[int, int], int] = {}
        self._milli: dict[tuple[int, int], int] = {}

    def add(self, job: Job, step: Step, sign: int) -> None:
        """Reserve (+1) or release (-1) what a step holds."""
        setup = self._view.setup
        for route in step.routes:
            at = route.src
            for k in route.path:
                link = setup.links[k]
                ways: tuple[int, ...] = (0,) if link.shared or link.a == at else (1,)
                if route.duplex == "push-pull" and not link.shared:
                    ways = (0, 1)
                at = link.b if link.a == at else link.a
                for way in ways:
                    self._bps[k, way] = self._bps.get((k, way), 0) + sign * route.bps
        servers = step.servers or (0,) * len(step.nodes)
        for node, workers, ps in zip(step.nodes, step.workers, servers, strict=True):
            for demand, count in ((job.worker, workers), (job.server, ps)):
                for resource, milli in demand:
                    for place in setup.lineage[node]:
                        key = (place, resource)
                        self._milli[key] = self._milli.get(key, 0) + sign * milli * count

    def free_bps(self, link: int, direction: int) -> int:
        """Bit/s that can be pushed over a link and pulled back, neither taken nor reserved."""
        free = self._view.link_free(link, direction, pulls_back=True)
        return max(0, free - self._bps.get((link, direction), 0))

    def fits(self, node: int, need: Mapping[int, int]) -> bool:
        """Whether a node and its ancestors have this many milli-units of each resource left."""
        return all(
            self._view.free(place, r) - self._milli.get((place, r), 0) >= milli
            for r, milli in need.items()
            for place in self._view.setup.lineage[node]
        )
