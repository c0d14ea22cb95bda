"""Schedulers for fixed jobs on a GPU cluster, and recorded traces."""

from tradewind.model.system import System

SYSTEM = System(
    name="cluster",
    summary="GPU clusters and recorded traces: classic schedulers",
    policies={
        "drf": "tradewind.systems.cluster.policy.drf:DRF",
        "fifo": "tradewind.systems.cluster.policy.fifo:FIFO",
        "fifo-backfill": "tradewind.systems.cluster.policy.fifo:BACKFILL",
        "las": "tradewind.systems.cluster.policy.las:LAS",
        "srsf": "tradewind.systems.cluster.policy.srtf:SRSF",
        "srtf": "tradewind.systems.cluster.policy.srtf:SRTF",
    },
    workloads={
        "cluster": "tradewind.systems.cluster.workload:CLUSTER",
        "trace": "tradewind.traces.workload:TRACE",
    },
    bound="tradewind.systems.cluster.bound:bound",
    bound_for=frozenset(("jct_mean_s", "makespan_s")),
    offline="tradewind.systems.cluster.offline:offline",
)
