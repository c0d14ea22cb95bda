"""mlBroker: workers, parameter servers and data moves over data centres whose prices fall with volume."""

from tradewind.model.system import System

SYSTEM = System(
    name="mlbroker",
    summary="Streams of data in several regions at the lowest bill: prices fall with pooled volume",
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
    bound="tradewind.systems.mlbroker.bound:bound",
    bound_for=frozenset(("cost_usd", "mlbroker", "mlbroker-real")),
    bound_of_served=True,
    study="tradewind.systems.mlbroker.study.figures:STUDY",
    explain="tradewind.systems.mlbroker.explain:explain",
    bills="tradewind.systems.mlbroker.bills:bills",
    remarks="tradewind.systems.mlbroker.decided:remarks",
)
