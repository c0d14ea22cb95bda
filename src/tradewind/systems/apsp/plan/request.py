"""What `plan-wan` is asked, and the scenario it is answered on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from tradewind.model.errors import InputError
from tradewind.model.scenario import Scenario
from tradewind.systems.apsp.workload.bandwidth import AUTO, resolve_rule
from tradewind.systems.apsp.workload.build import WanCase, build_scenario
from tradewind.systems.apsp.workload.sizes import model_bytes
from tradewind.systems.apsp.workload.topologies import read_topology
from tradewind.systems.apsp.workload.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """A topology, a model (name or size such as "300 MB"), worker sites, and how data travels.

    rule        how bandwidth follows distance; "auto" takes the file's bandwidths where it has them, else power-exact
    data        what sites exchange where that is not the model's size
    usd_per_gb  price of links that have none
    gap         parameter of the `apsp` policy
    seed        draws the bandwidths, where the rule draws any
    """

    topology: str
    model: str = "resnet50"
    workers: str = ""
    data: str = ""
    usd_per_gb: float | None = None
    transport: str = "store-and-forward"
    rule: str = AUTO
    min_mbps: int = 500
    shared: bool = False
    gap: float = 0.01
    seed: int = 0

    def read(self) -> Topology:
        """The topology, with a price for links that have none."""
        return _priced(read_topology(self.topology), self.usd_per_gb)


def scenario_of(request: PlanRequest, topology: Topology) -> Scenario:
    """The scenario of a request: the `apsp` workload's, with latency."""
    size = model_bytes(request.model)
    if size <= 0:
        raise InputError(f"model {request.model!r} has no bytes to send")
    taken = ("min_mbps", "seed", "workers", "model", "data", "transport", "shared")
    case = WanCase(
        topology=topology,
        rule=resolve_rule(topology, request.rule),
        model_bytes=size,
        latency=True,
        **{name: getattr(request, name) for name in taken},
    )
    return build_scenario(case, {"plan-wan": asdict(request)})


def _priced(topology: Topology, usd_per_gb: float | None) -> Topology:
    """The topology with a price for links that have none; where no link has one, for all."""
    if usd_per_gb is None:
        return topology
    if not 0 <= usd_per_gb < float("inf"):
        raise InputError(f"found {usd_per_gb}; allowed is 0 or more", where="--default-usd-per-gb")
    bare = not any(link.ab_usd_per_gb + link.ba_usd_per_gb for link in topology.links)
    known = [link.priced and not bare for link in topology.links]
    links = tuple(
        link if has else replace(link, ab_usd_per_gb=usd_per_gb, ba_usd_per_gb=usd_per_gb, priced=True)
        for link, has in zip(topology.links, known, strict=True)
    )
    note = f"links without a price: {known.count(False)}, counted at {usd_per_gb:g} USD/GB (--default-usd-per-gb)"
    kept = tuple(n for n in topology.notes if "have no price" not in n)
    return replace(topology, links=links, notes=(*kept, note) if False in known else kept)
