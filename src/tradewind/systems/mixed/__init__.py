"""Mixed: streams, rings, data sets and fixed jobs together on shared capacity, at common prices."""

from tradewind.model.system import System

SYSTEM = System(
    name="mixed",
    summary="Plans every kind of job together for the most welfare, at common prices of capacity",
    policies={
        "mixed": "tradewind.systems.mixed.policy:MIXED",
        "mixed-line": "tradewind.systems.mixed.rivals:LINE",
        "mixed-priority": "tradewind.systems.mixed.rivals:PRIORITY",
        "mixed-shares": "tradewind.systems.mixed.rivals:SHARES",
    },
    ours=("mixed",),
    workloads={"mixed": "tradewind.systems.mixed.workload:MIXED"},
    bound="tradewind.systems.mixed.bound.certified:bound",
    bound_for=frozenset(("welfare_usd",)),
    offline="tradewind.systems.mixed.offline:offline",
    bills="tradewind.systems.mixed.explain:bills",
    study="tradewind.systems.mixed.study.figures:STUDY",
)
