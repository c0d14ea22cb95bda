"""mlBroker: workers, parameter servers and data moves over data centres whose prices fall with volume."""

from tradewind.model.system import System

SYSTEM = System(
    name="mlbroker",
    summary="Trains on data streams in several regions at the lowest pooled bill, where prices fall with volume",
    policies={
        "central": "tradewind.systems.mlbroker.rivals.alone:CENTRAL",
        "local": "tradewind.systems.mlbroker.rivals.local:LOCAL",
        "mlbroker": "tradewind.systems.mlbroker.policy:MLBROKER",
        "mlbroker-paper": "tradewind.systems.mlbroker.paper:MLBROKER_PAPER",
        "oasis": "tradewind.systems.mlbroker.rivals.oasis:OASIS",
        "selfish": "tradewind.systems.mlbroker.rivals.alone:SELFISH",
    },
    ours=("mlbroker",),
    workloads={
        "mlbroker": "tradewind.systems.mlbroker.workload.generator:MLBROKER",
    },
    bound="tradewind.systems.mlbroker.bound.certified:bound",
    bound_for=frozenset(("cost_usd",)),
    bound_of_served=True,
    offline="tradewind.systems.mlbroker.offline:offline",
    study="tradewind.systems.mlbroker.study.figures:STUDY",
    explain="tradewind.systems.mlbroker.explain.placement:explain",
    bills="tradewind.systems.mlbroker.explain.bills:bills",
    remarks="tradewind.systems.mlbroker.explain.remarks:remarks",
)
