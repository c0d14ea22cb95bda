"""Small scenarios whose jobs are commands: streams, a market, rings (all instants known in advance), and a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.builders import job, link, node, scenario, setup
from tradewind.model.job import Customer, Dataset, Job, Rounds, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.utility import Utility

S = 1_000_000
"""Microseconds of a slot; tests let it pass faster than in real time."""
SLEEP = ("sh", "-c", 'echo "$TRADEWIND_SLOT $RANK" >> ../started; exec sleep 1000')
"""A light rank: records its start and sleeps until it is stopped."""


def _tariff(*usd: float) -> Tariff:
    return Tariff(starts=tuple(2.0 * i for i in range(len(usd))), usd=usd)


def broker(command: Sequence[str] = SLEEP, *, slots: int = 8) -> tuple[Scenario, str]:
    """Two stream jobs at three sites with volume discounts: workers change, the server follows the data."""
    where = setup(
        [node("a"), node("b"), node("c")],
        slot_us=S,
        horizon_us=slots * S,
        rent={(0, 0): _tariff(3.0, 2.0), (1, 0): _tariff(4.0, 1.0), (2, 0): _tariff(2.5, 2.4)},
        egress={(i, j): Tariff(usd=(10.0,)) for i in range(3) for j in range(3) if i != j},
    )

    def stream(index: int, at: int) -> Job:
        return job(
            index, arrive_us=at, work=Stream(bytes_per_worker_slot=100), server=((0, 1000),), servers=1,
            architecture="ps", workers_max=6, deploy_usd=0.001, traffic_bytes_per_worker_slot=1000,
            command=tuple(command),
        )  # fmt: skip

    volumes = [
        (0, 0, 0, 100), (0, 1, 0, 200), (1, 1, 1, 100), (0, 2, 1, 100), (1, 2, 1, 200),
        (0, 3, 0, 100), (0, 3, 2, 200), (1, 3, 1, 100), (0, 4, 2, 100), (1, 4, 0, 100),
    ]  # fmt: skip
    stay = [Customer(runtime_us=5 * S), Customer(runtime_us=4 * S)]
    return scenario([stream(0, 0), stream(1, S)], where=where, customers=stay, volumes=volumes), "mlbroker"


def market(command: Sequence[str] = SLEEP) -> tuple[Scenario, str]:
    """Three bidders who pay for completion times."""
    where = setup(
        [node("a"), node("b")],
        slot_us=S,
        horizon_us=8 * S,
        objective="welfare_usd",
        transfer_bytes_per_slot=10**9,
    )
    bid = Utility(of="delay_slots", shape="sigmoid", args=(100.0, -0.5, 4.0))
    work = Dataset(
        chunks=((0, 3), (1, 2)), chunk_bytes=1000, epochs=1, chunk_epochs_per_worker_slot_milli=1000
    )

    def bidder(index: int, at: int) -> Job:
        return job(
            index, arrive_us=at, work=work, server=((0, 1000),), servers=1, architecture="ps", workers_max=3,
            utility=bid, traffic_bytes_per_worker_slot=10, command=tuple(command),
        )  # fmt: skip

    jobs = [bidder(0, 0), bidder(1, 0), bidder(2, 2 * S)]
    return scenario(jobs, where=where, customers=[Customer(valuation=bid)] * 3), "eris"


def rings(command: Sequence[str] = SLEEP) -> tuple[Scenario, str]:
    """Three rings of one to three workers on three servers."""
    nodes = [node("switch", 0, kind="switch"), *(node(name, 2, kind="server") for name in "abc")]
    links = (link(0, 1), link(0, 2), link(0, 3))
    where = setup(nodes, links=links, slot_us=S, horizon_us=8 * S, objective="utility")

    def ring(index: int, at: int, count: int) -> Job:
        work = Rounds(count=count, unit="worker-slot", comm="ring", compute_us=1000)
        return job(
            index, arrive_us=at, work=work, workers_max=3, ring_bps=1_000_000, model_bytes=1000,
            utility=Utility(of="progress", shape="log1p", args=(1.0, 1.0)), command=tuple(command),
        )  # fmt: skip

    return scenario([ring(0, 0, 5), ring(1, S, 6), ring(2, 2 * S, 2)], where=where), "gadget"


COUNT = """
c=$TRADEWIND_CHECKPOINT_DIR
i=$(cat $c/i 2>/dev/null || echo 0)
trap 'exit 75' TERM
echo "from $i" >> ../begun
while [ $i -lt {n} ]; do
  sleep 0.05
  i=$((i+1))
  [ $RANK = 0 ] && echo $i > $c/new && mv $c/new $c/i
  printf '{{"iteration": %s, "seconds": 0.05, "bytes_sent": 10, "loss": 1, "workers": 1, "at": %s}}\\n' \\
    $i $(date +%s.%N) >> $TRADEWIND_REPORT
done
"""
"""Counts to n, a step every twentieth of a second; rank 0 writes the checkpoint; exits with 75 when stopped."""


def counting(n: int) -> tuple[str, ...]:
    """The command of a job that counts to n."""
    return ("sh", "-c", COUNT.format(n=n))


def gated(n: int, at: int, file: str) -> tuple[str, ...]:
    """The same, but it stays at `at` until a file is in the job's folder."""
    wait = f"  while [ $i -ge {at} ] && [ ! -e ../{file} ]; do sleep 0.05; done\n  sleep 0.05\n"
    return ("sh", "-c", COUNT.format(n=n).replace("  sleep 0.05\n", wait))


def batch() -> tuple[Scenario, str]:
    """Four jobs whose completion is measured, two at a time."""
    where = setup([node("a", 1), node("b", 1)], slot_us=S, horizon_us=10_000 * S, objective="jct_mean_s")
    jobs = [
        job(i, arrive_us=i * S, work=Rounds(count=8, compute_us=10), command=counting(8 + i))
        for i in range(4)
    ]
    return scenario(jobs, where=where), "fifo"


MADE: dict[str, Callable[[], tuple[Scenario, str]]] = {
    "broker": broker, "market": market, "rings": rings, "batch": batch,
}  # fmt: skip
