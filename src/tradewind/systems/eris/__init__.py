"""Eris: decides which bids win, what they pay, and when and where their jobs run."""

from tradewind.model.system import System

SYSTEM = System(
    name="eris",
    summary="Auctions the capacity of edge sites to jobs that bid for completion times",
    policies={
        "antman": "tradewind.systems.eris.rivals.antman:ANTMAN",
        "antman-elastic": "tradewind.systems.eris.rivals.antman:ANTMAN_ELASTIC",
        "eris": "tradewind.systems.eris.policy.posted:ERIS",
        "eris-paper": "tradewind.systems.eris.paper:PAPER",
        "eris-preemptive": "tradewind.systems.eris.policy.preemptive:PREEMPTIVE",
        "eris-printed": "tradewind.systems.eris.paper:PRINTED",
        "fcfs": "tradewind.systems.eris.rivals.fcfs:FCFS",
        "liquid": "tradewind.systems.eris.rivals.liquid:LIQUID",
        "liquid-elastic": "tradewind.systems.eris.rivals.liquid:LIQUID_ELASTIC",
        "tiresias": "tradewind.systems.eris.rivals.tiresias:TIRESIAS",
        "tiresias-elastic": "tradewind.systems.eris.rivals.tiresias:TIRESIAS_ELASTIC",
    },
    ours=("eris", "eris-preemptive"),
    workloads={
        "eris": "tradewind.systems.eris.workload:ERIS",
    },
    bound="tradewind.systems.eris.bound:bound",
    bound_for=frozenset(("welfare_usd",)),
    offline="tradewind.systems.eris.offline:offline",
    beside=("tiresias-elastic", "antman-elastic", "liquid-elastic"),
    study="tradewind.systems.eris.study.figures:STUDY",
)
