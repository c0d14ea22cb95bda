"""GADGET: ring sizes and their embedding in a cluster."""

from tradewind.model.system import System

SYSTEM = System(
    name="gadget",
    summary="All-reduce rings in a cluster with scarce links: ring sizes and their embedding",
    policies={
        "gadget": "tradewind.systems.gadget.policy:GADGET",
        "gadget-paper": "tradewind.systems.gadget.paper:PAPER",
        "ring-drf": "tradewind.systems.gadget.rivals:DRF",
        "ring-fifo": "tradewind.systems.gadget.rivals:FIFO",
        "ring-las": "tradewind.systems.gadget.rivals:LAS",
        "ring-srtf": "tradewind.systems.gadget.rivals:SRTF",
    },
    ours=("gadget",),
    workloads={
        "gadget": "tradewind.systems.gadget.workload.generator:GADGET",
        "gadget-trace": "tradewind.systems.gadget.workload.trace:GADGET_TRACE",
    },
    bound="tradewind.systems.gadget.bound:bound",
    bound_for=frozenset(("utility",)),
    study="tradewind.systems.gadget.study.figures:STUDY",
)
