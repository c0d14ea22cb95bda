"""APSP: the site of the parameter server in a WAN, and a path and bandwidth per worker site."""

from tradewind.model.system import System

SYSTEM = System(
    name="apsp",
    summary="A parameter server in a wide area network: its site, and a path per worker site",
    policies={
        "apsp": "tradewind.systems.apsp.policy:APSP",
        "apsp-paper": "tradewind.systems.apsp.paper:APSP_PAPER",
        "load-balancing": "tradewind.systems.apsp.rivals:LOAD_BALANCING",
        "most-connected": "tradewind.systems.apsp.rivals:MOST_CONNECTED",
        "random-ps": "tradewind.systems.apsp.rivals:RANDOM_PS",
        "shortest-path": "tradewind.systems.apsp.rivals:SHORTEST_PATH",
    },
    ours=("apsp",),
    workloads={
        "apsp": "tradewind.systems.apsp.workload.generator:APSP",
    },
    bound="tradewind.systems.apsp.bound:bound",
    bound_for=frozenset(("epoch_s",)),
    study="tradewind.systems.apsp.study.figures:STUDY",
)
