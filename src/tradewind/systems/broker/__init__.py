"""Broker: ordinary training at the lowest bill, over regions, GPU types, machines, spot and discounts."""

from tradewind.model.system import System

SYSTEM = System(
    name="broker",
    summary="Batch training at the lowest bill: regions, GPU types, machines, times, spot and pooled discounts",
    policies={
        "broker": "tradewind.systems.broker.policy:BROKER",
        "broker-central": "tradewind.systems.broker.rivals:CENTRAL",
        "broker-selfish": "tradewind.systems.broker.rivals:SELFISH",
        "skypilot-rule": "tradewind.systems.broker.rivals:SKYPILOT",
    },
    ours=("broker",),
    bound="tradewind.systems.broker.bound.certified:bound",
    bound_for=frozenset(("total_usd",)),
    bound_of_pools=True,
    offline="tradewind.systems.broker.offline:offline",
    study="tradewind.systems.broker.study.figures:STUDY",
    workloads={"broker": "tradewind.systems.broker.workload.generator:BROKER"},
)
